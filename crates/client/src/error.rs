//! What can go wrong between a client and its service.

use p9::{Errno, WireError};

/// The result of talking to a service.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a service could not be asked, or what it answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The service refused, as the call on its side would have.
    #[error("{0}")]
    Refused(Errno),
    /// The connection broke and could not be made again in time.
    #[error("the connection to {peer} broke: {errno}")]
    Lost {
        /// The service.
        peer: String,
        /// What the socket said.
        errno: Errno,
    },
    /// The connection was found broken before anything of the request was sent, so that the
    /// request can be made again whatever it is.
    #[error("the connection to {peer} was broken: {errno}")]
    NotSent {
        /// The service.
        peer: String,
        /// What the socket said.
        errno: Errno,
    },
    /// No connection could be made.
    #[error("cannot reach {peer}: {errno}")]
    Unreachable {
        /// The service.
        peer: String,
        /// What the socket said.
        errno: Errno,
    },
    /// No connection could be made, because the host's name leads to no address.
    #[error("cannot reach {peer}: the name `{host}` cannot be resolved")]
    UnknownHost {
        /// The service.
        peer: String,
        /// The name.
        host: String,
    },
    /// No rank of this process's MPI job serves under a name, or none does at this time.
    #[error(
        "no rank of this MPI job serves as `{service}` now: the name is wrong, the service has ended, or the \
         program has not called MPI_Init yet or has called MPI_Finalize already"
    )]
    NotInJob {
        /// The service's name or rank.
        service: String,
    },
    /// The service speaks no dialect that we do.
    #[error("{peer} does not speak 9P2000.L but answers `{version}`")]
    Version {
        /// The service.
        peer: String,
        /// What it offered.
        version: String,
    },
    /// The service answered what the protocol does not allow.
    #[error("{peer} broke the 9P protocol")]
    Protocol {
        /// The service.
        peer: String,
        /// What was wrong.
        #[source]
        source: ProtocolError,
    },
    /// A symbolic link with an absolute target, which means something only to who knows how paths
    /// are mapped: the way goes on at `target`, then `rest`.
    #[error("symbolic link to {}", target.escape_ascii())]
    AbsoluteLink {
        /// What the link says.
        target: Vec<u8>,
        /// What follows the link in the path, without a leading slash.
        rest: Vec<u8>,
    },
}

/// How a service broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A message that cannot be read.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A reply to a request that was never made.
    #[error("reply with tag {tag}, which no request has")]
    UnknownTag {
        /// The tag.
        tag: u16,
    },
    /// A reply of another type than the request's.
    #[error("reply of type {kind} to a request of type {asked}")]
    WrongReply {
        /// The reply's type byte.
        kind: u8,
        /// The request's type byte.
        asked: u8,
    },
    /// More data than was asked for.
    #[error("{count} bytes in answer to a request for {asked}")]
    TooMuch {
        /// Bytes in the reply.
        count: usize,
        /// Bytes asked for.
        asked: usize,
    },
}

impl Error {
    /// The number that a program sees in `errno`.
    #[must_use]
    pub fn to_errno(&self) -> Errno {
        match self {
            Error::Refused(errno) => *errno,
            Error::Lost { .. }
            | Error::NotSent { .. }
            | Error::Version { .. }
            | Error::Protocol { .. } => Errno::EIO,
            // A socket that is not there says nothing of the file: a program must not take it for absent.
            Error::Unreachable { errno: Errno::ENOENT, .. } => Errno::ECONNREFUSED,
            Error::Unreachable { errno, .. } => *errno,
            Error::UnknownHost { .. } => Errno::EHOSTUNREACH,
            Error::NotInJob { .. } => Errno::ECONNREFUSED,
            Error::AbsoluteLink { .. } => Errno::EXDEV,
        }
    }

    /// Whether this process or machine has no descriptor left for a connection: nothing that waiting for
    /// the service would change.
    #[must_use]
    pub fn is_local_shortage(&self) -> bool {
        matches!(self, Error::Unreachable { errno: Errno::EMFILE | Errno::ENFILE, .. })
    }

    /// Whether the connection is at fault, so that a new one may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Lost { .. }
            | Error::NotSent { .. }
            | Error::Unreachable { .. }
            | Error::UnknownHost { .. }
            | Error::Protocol { .. } => true,
            // What has left a job does not come back.
            Error::NotInJob { .. }
            | Error::Refused(_)
            | Error::Version { .. }
            | Error::AbsoluteLink { .. } => false,
        }
    }
}
