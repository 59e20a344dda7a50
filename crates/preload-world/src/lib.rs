//! `libsluice_world.so`: an unmodified MPI program as one part of a job.
//!
//! `sluice run` preloads it into a program that uses MPI and is started together with services
//! (`sluice serve --listen mpi:NAME`), or with other programs, by one launcher. The launcher puts all of
//! them into one MPI_COMM_WORLD. To the program it must look as if it were alone.
//!
//! 1. The program calls MPI_Init, which arrives at `hooks`. The library is initialized with
//!    MPI_THREAD_MULTIPLE, because a second thread is going to call it.
//! 2. `part` joins the job (`ranks::Job::join`) and gets a communicator of the ranks that belong to the
//!    program. From now on `world` puts it in the place of MPI_COMM_WORLD wherever the program passes
//!    that as an argument: every function of MPI that takes a communicator is in the tables of
//!    `communicators`.
//! 3. A thread carries what the program, and whatever it starts, says to services: it listens on sockets
//!    that `libsluice.so` connects to.
//! 4. The program calls MPI_Finalize. What it wrote is settled, the thread says goodbye and ends.
//!
//! Functions with large counts (`MPI_Send_c` …) are in a library of their own, `libsluice_world_large.so`:
//! an MPI library that lacks them must go on lacking them, for programs look.
//!
//! Without the variable that `sluice run` sets, every call goes on as it came.

mod communicators;
mod hooks;
mod missing;
mod nonblocking;
mod part;
mod translate;
mod world;
