//! What can go wrong in a job.

use std::io;

use mpi::{FindError, MpiError};

/// The result of being part of a job.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a process cannot be part of a job, or could not remain.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No MPI launcher has started this process.
    #[error("this process is no rank of an MPI job; start it by mpirun, mpiexec or srun")]
    NoJob,
    /// The MPI library of the launcher is not found.
    #[error(
        "cannot load the MPI library that {launcher} belongs to (tried {tried}); name it by \
         SLUICE_MPI_LIBRARY"
    )]
    NoLibrary {
        /// What started this process.
        launcher: &'static str,
        /// The names that were tried.
        tried: String,
        /// What the last of them met.
        #[source]
        source: FindError,
    },
    /// No MPI library is there, or none that is known.
    #[error("cannot use the MPI library of this process")]
    Library {
        /// Why.
        #[source]
        source: FindError,
    },
    /// An MPI call failed.
    #[error("MPI refused")]
    Mpi {
        /// Which, and how.
        #[source]
        source: MpiError,
    },
    /// The library does not let a second thread call it.
    #[error(
        "the MPI library grants thread level {granted}, and MPI_THREAD_MULTIPLE ({wanted}) is needed \
         to carry files beside the program's own messages"
    )]
    ThreadLevel {
        /// What it grants.
        granted: i32,
        /// MPI_THREAD_MULTIPLE.
        wanted: i32,
    },
    /// A name that no service can have.
    #[error(
        "`{name}` cannot be a service's name: it has 1 to 48 letters, digits, `-`, `_` or `.`, not only \
         digits"
    )]
    ServiceName {
        /// The name.
        name: String,
    },
    /// A rank was not started by the same Sluice.
    #[error(
        "rank {rank} of this job was started by another version of Sluice, or not by Sluice: start \
         every rank by `sluice serve` or `sluice run`"
    )]
    Stranger {
        /// The rank.
        rank: u32,
    },
    /// Two services of one name.
    #[error(
        "ranks {first} and {second} of this job both serve as `{name}`; give them different names"
    )]
    SameName {
        /// The name.
        name: String,
        /// One rank.
        first: u32,
        /// The other.
        second: u32,
    },
    /// The system refused a socket or a wait.
    #[error("cannot {what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another process has the sockets' name.
    #[error("the sockets of this rank are taken already: two programs of one rank initialize MPI")]
    SocketsTaken,
}

impl From<MpiError> for Error {
    fn from(source: MpiError) -> Self {
        Error::Mpi { source }
    }
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Error::System { what, source: errno.into() }
    }
}
