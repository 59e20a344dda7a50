//! What can go wrong with a log.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;

use crate::ids::{Position, Sequence};

/// The result of a log's work.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a log could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something that can be tried again later.
    #[error("{operation} {}", path.display())]
    System {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A write or a sync of the log has failed, now or before. What was not committed then may be lost,
    /// and nothing will be committed any more.
    #[error(
        "the log in {} has failed and takes nothing more: what was not committed before may be lost; \
         see to the disk, then run `sluice log recover`",
        place.display()
    )]
    Failed {
        /// The log.
        place: PathBuf,
        /// What failed first.
        #[source]
        source: Arc<Error>,
    },
    /// The log has reached the size it may have, or its disk has no more space for it.
    #[error(
        "the log in {} is full with {bytes} bytes{}: wait for the drain, or give it more space",
        place.display(),
        if *disk_full { ", and so is its disk" } else { "" }
    )]
    Full {
        /// The log.
        place: PathBuf,
        /// The size that it has reached.
        bytes: u64,
        /// Whether the disk is full, rather than the size reached that the log may have.
        disk_full: bool,
    },
    /// Another process uses the log.
    #[error("the log in {} is in use by another process", place.display())]
    Busy {
        /// The log.
        place: PathBuf,
    },
    /// There is no log there.
    #[error("there is no log in {}: it has no log.toml", place.display())]
    Missing {
        /// Where.
        place: PathBuf,
    },
    /// There is a log already.
    #[error("there is a log in {} already: drain or discard it first", place.display())]
    Exists {
        /// Where.
        place: PathBuf,
    },
    /// The log was written by another version of the format.
    #[error(
        "the log in {} has format {found}, this Sluice reads {}: drain it with the version that wrote it",
        place.display(),
        crate::format::VERSION
    )]
    Version {
        /// The log.
        place: PathBuf,
        /// Its version.
        found: u64,
    },
    /// `log.toml` is not what it should be.
    #[error("{} is no description of a log: {why}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Records that are known to have been durable are not there any more.
    #[error(
        "the log in {} is damaged: record {} in {} at byte {offset} holds {found}, but records up to \
         {durable} had been made durable; `sluice log verify` says what is left",
        place.display(), last.0 + 1, segment
    )]
    Corrupt {
        /// The log.
        place: PathBuf,
        /// The last record that is whole.
        last: Sequence,
        /// All up to this one should be.
        durable: Sequence,
        /// The file in which the next was looked for.
        segment: String,
        /// Where in the file.
        offset: u64,
        /// What is there.
        found: String,
    },
    /// What is to be read is not in the log any more.
    #[error("segment {} of the log in {} has been recycled", at.segment, place.display())]
    Recycled {
        /// The log.
        place: PathBuf,
        /// What was to be read.
        at: Position,
    },
    /// Bytes that are in the log of another node cannot be had now.
    #[error("bytes that the log in {} has in log {log:016x} of another node cannot be read", place.display())]
    Elsewhere {
        /// The log.
        place: PathBuf,
        /// The other one.
        log: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The log cannot speak of one more log.
    #[error("the log in {} cannot speak of more than {max} logs of other nodes", place.display())]
    TooManyLogs {
        /// The log.
        place: PathBuf,
        /// The most.
        max: usize,
    },
    /// A record is larger than a segment.
    #[error("a record of {len} bytes does not fit into a segment of {segment_bytes} bytes")]
    TooLarge {
        /// Its payload in bytes.
        len: u64,
        /// The segment's size.
        segment_bytes: u64,
    },
    /// The options make no sense.
    #[error("{what} must be {must}, not {value}")]
    Options {
        /// Which.
        what: &'static str,
        /// What it must be.
        must: &'static str,
        /// What it is.
        value: u64,
    },
    /// Something was marked drained that the log does not have, or has not made durable.
    #[error("records up to {through} cannot be drained: only those up to {durable} are durable")]
    NotDurable {
        /// What was to be marked.
        through: Sequence,
        /// What is durable.
        durable: Sequence,
    },
}

/// Whether the system has no space for something, on the disk or in a quota.
#[must_use]
pub fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Error {
    pub(crate) fn system(
        operation: &'static str,
        place: &std::path::Path,
        name: &str,
        source: io::Error,
    ) -> Self {
        Error::System { operation, path: place.join(name), source }
    }

    /// The number that a program is given.
    #[must_use]
    pub fn to_errno(&self) -> Errno {
        match self {
            Error::System { source, .. } => match Errno::from_io_error(source) {
                Some(errno) => errno,
                None => Errno::IO,
            },
            Error::Failed { .. }
            | Error::Version { .. }
            | Error::Manifest { .. }
            | Error::Corrupt { .. }
            | Error::Elsewhere { .. }
            | Error::TooManyLogs { .. } => Errno::IO,
            Error::Full { .. } => Errno::NOSPC,
            Error::Busy { .. } => Errno::BUSY,
            Error::Missing { .. } => Errno::NOENT,
            Error::Exists { .. } => Errno::EXIST,
            Error::Recycled { .. } => Errno::STALE,
            Error::TooLarge { .. } => Errno::FBIG,
            Error::Options { .. } | Error::NotDurable { .. } => Errno::INVAL,
        }
    }

    /// Whether the same call may succeed later without anybody mending anything in the log: a disk that is full may get
    /// space again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Full { .. } | Error::Busy { .. } | Error::Elsewhere { .. } => true,
            Error::System { source, .. } => is_no_space(source),
            Error::Failed { .. }
            | Error::Missing { .. }
            | Error::Exists { .. }
            | Error::Version { .. }
            | Error::Manifest { .. }
            | Error::Corrupt { .. }
            | Error::Recycled { .. }
            | Error::TooLarge { .. }
            | Error::TooManyLogs { .. }
            | Error::Options { .. }
            | Error::NotDurable { .. } => false,
        }
    }
}
