//! `libsluice_mpi.so`: the MPI-IO of an unmodified program, whichever MPI it uses.
//!
//! It is loaded into a program by `LD_PRELOAD` and stands before the MPI library's functions that open,
//! close, read and write files. It links no MPI: the same file serves Open MPI, MPICH, Intel MPI and
//! the standard interface of MPI-5.
//!
//! The way of one `MPI_File_read`:
//!
//! 1. The program calls `MPI_File_read`, or its Fortran binding does, under that name or under the
//!    profiling name `PMPI_File_read`. Either way the call arrives at `hooks`, through the PLT.
//! 2. `inside` notes that the thread is inside. What the MPI library calls on its own behalf while it
//!    serves the program is not looked at.
//! 3. `trace` counts the call, if the user asked for that.
//! 4. If the user wished so (`wish`) and the file's view has holes, the sieve carries the call out
//!    (`strided`): the view, flattened when it was set (`view`), says which bytes of the file, the
//!    buffer's datatype says which bytes of memory (`memory`), the file pointer is asked of the MPI
//!    library and told back to it, and so is the count in the status.
//! 5. Otherwise the call goes to the next definition of the same name: another preloaded tool's, or the
//!    MPI library's (`next`). So do collective calls, shared pointers, atomic mode, and whatever the
//!    sieve could not do exactly.
//!
//! Fortran names (`fortran`) are only counted: every Fortran binding goes on to the C functions. A
//! binding that did not would show in the trace as Fortran calls without C calls.
//!
//! Inside someone else's process we are guests: nothing is printed, no thread is started, and a
//! program that was not asked to be changed sees every call with its own arguments, once.

mod descriptor;
mod epochs;
mod far;
mod files;
mod fortran;
mod hooks;
mod inside;
mod memory;
mod names;
mod notes;
mod probe;
mod romio;
mod strided;
mod trace;
mod view;
mod wish;
