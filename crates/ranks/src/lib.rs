//! Services and clients on the ranks of one MPI job: 9P connections carried as MPI messages.
//!
//! Every rank of such a job is one of three: a *service* (`sluice serve --listen mpi:NAME`), an *agent*,
//! which is a process of ours that runs a program beside it, or a *program* that uses MPI itself. The
//! latter two are clients.
//!
//! The way of one connection:
//!
//! 1. A process that is ours loads the MPI library that its launcher belongs to ([`launcher`]) and
//!    initializes it; in a program, it has done so itself.
//! 2. [`Job::join`], collective: a private communicator, who is what ([`Member`]), and for programs a
//!    communicator of their own that stands for their MPI_COMM_WORLD.
//! 3. A client listens, for each service, on a Unix socket in the abstract name space ([`socket_name`]):
//!    what the program and its children do with MPI is none of their clients' business, they see a
//!    socket.
//! 4. A connection to that socket is a `stream`: the `relay` carries its bytes as messages of the
//!    private communicator, under a window in each direction, to the service's rank.
//! 5. There they come out of a socket pair, whose other end the 9P service adopts.
//! 6. Nobody waits inside MPI: `pace` lets a rank look often while something happens and sleep when
//!    nothing does. A client looks only as long as an answer is awaited (`frames`): in a program, nothing
//!    of ours calls MPI at other times.
//! 7. Clients say goodbye; when all have, services say farewell, and all go to MPI_Finalize together.
//!
//! MPI is called by one thread only, the one that runs [`Job::serve`] or [`Job::attend`].
#![forbid(unsafe_code)]

mod control;
mod error;
mod frames;
mod job;
pub mod launcher;
mod message;
mod pace;
mod post;
mod relay;
mod stream;

pub use control::Control;
pub use error::{Error, Result};
pub use job::{Job, Member, Role, ServiceName};
pub use relay::Parting;

/// Names, in the environment of a client's programs, the sockets of its rank.
pub const SOCKETS_VARIABLE: &str = "SLUICE_MPI_SOCKETS";

/// Says to a program that uses MPI which of the job's programs share its MPI_COMM_WORLD.
pub const WORLD_VARIABLE: &str = "SLUICE_MPI_WORLD";

/// The name, in the abstract name space of Unix sockets, under which a rank's clients reach a service:
/// by its name, or by its rank in the job. `sockets` is the value of [`SOCKETS_VARIABLE`].
#[must_use]
pub fn socket_name(sockets: &str, service: &str) -> Vec<u8> {
    format!("sluice-mpi/{sockets}/{service}").into_bytes()
}
