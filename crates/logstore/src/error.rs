//! What can go wrong between the log and the target.

use hostlog::FileId;
use p9::Errno;

/// The result of this crate's work.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the log could not be laid over the target, or told that the target has caught up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log refused.
    #[error("{operation} the log")]
    Log {
        /// What was tried.
        operation: &'static str,
        /// What the log said.
        #[source]
        source: hostlog::Error,
    },
    /// The target refused.
    #[error("{operation} the target of the log")]
    Target {
        /// What was tried.
        operation: &'static str,
        /// What the target said.
        #[source]
        source: store::Error,
    },
    /// What was written beside the watermark is none of ours.
    #[error(
        "the log says in an unknown form what its files are called in the target: drain it with the \
         version of Sluice that wrote it"
    )]
    State,
    /// A file was drained, and nobody knows where it is.
    #[error(
        "file {file} was brought to the target up to record {through}, but is not found there: nothing of \
         it is taken out of the log"
    )]
    Lost {
        /// Which.
        file: FileId,
        /// Up to where.
        through: hostlog::Sequence,
    },
}

impl Error {
    /// The number that a program is given.
    #[must_use]
    pub fn to_errno(&self) -> Errno {
        match self {
            Error::Log { source, .. } => Errno::from_raw(source.to_errno().raw_os_error()),
            Error::Target { source, .. } => source.to_errno(),
            Error::State => Errno::EIO,
            Error::Lost { .. } => Errno::ESTALE,
        }
    }

    pub(crate) fn log(operation: &'static str) -> impl Fn(hostlog::Error) -> Self {
        move |source| Error::Log { operation, source }
    }

    pub(crate) fn target(operation: &'static str) -> impl Fn(store::Error) -> Self {
        move |source| Error::Target { operation, source }
    }
}

/// Why an operation was not done: waiting helps where the log is full.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The log is full.
    Full,
    /// What the client is told.
    For(store::Error),
}

impl From<store::Error> for Refused {
    fn from(error: store::Error) -> Self {
        Refused::For(error)
    }
}

/// What an operation that appends to the log comes to.
pub(crate) type Tried<T> = std::result::Result<T, Refused>;

/// Says of the log's refusals what the client is told.
pub(crate) fn logged(operation: &'static str) -> impl Fn(hostlog::Error) -> Refused {
    move |error| {
        let errno = Errno::from_raw(error.to_errno().raw_os_error());
        let full = errno == Errno::ENOSPC;
        if full { Refused::Full } else { Refused::For(refusal(operation, errno)) }
    }
}

pub(crate) fn refusal(operation: &'static str, errno: Errno) -> store::Error {
    store::Error::System { operation, errno }
}

pub(crate) fn refuse<T>(operation: &'static str, errno: Errno) -> Tried<T> {
    Err(Refused::For(refusal(operation, errno)))
}
