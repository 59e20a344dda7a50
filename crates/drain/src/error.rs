//! What can stand in the way of a drain.

use std::io;
use std::path::PathBuf;

use hostlog::{FileId, Sequence};

/// The result of draining.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be drained. Nothing is lost by any of them: the log keeps it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The target refused, or cannot be reached.
    #[error("the target cannot {operation} {path}")]
    Target {
        /// What was tried.
        operation: &'static str,
        /// On which file, relative to the target.
        path: String,
        /// What the target said.
        #[source]
        source: store::Error,
    },
    /// The target took nothing of a write.
    #[error("the target took none of {len} bytes of {path} at {offset}")]
    NothingWritten {
        /// The file, relative to the target.
        path: String,
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// What is to be renamed, linked or changed is not in the target.
    #[error(
        "the target has no {path} to {operation} (record {sequence} of the log): put it back, or discard the log"
    )]
    Missing {
        /// What was to be done.
        operation: &'static str,
        /// The file, relative to the target.
        path: String,
        /// By which record.
        sequence: Sequence,
    },
    /// The target has something else under a name that the log is to make.
    #[error(
        "the target has something else at {path}, where record {sequence} of the log makes {what}: move it away"
    )]
    InTheWay {
        /// Where.
        path: String,
        /// What was to be made.
        what: &'static str,
        /// By which record.
        sequence: Sequence,
    },
    /// The log could not be read or marked.
    #[error(transparent)]
    Log(#[from] hostlog::Error),
    /// The drain's own file could not be read or written.
    #[error("{operation} {}", path.display())]
    Journal {
        /// What was tried.
        operation: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The drain's own file is damaged.
    #[error("{} is damaged: which changes of names the target has is not known; see docs/LOG.md", path.display())]
    JournalDamaged {
        /// Which file.
        path: PathBuf,
    },
    /// A record is about a file that no record before it named.
    #[error("record {sequence} of the log is about file {file}, which no record before it names")]
    UnknownFile {
        /// The record.
        sequence: Sequence,
        /// The file.
        file: FileId,
    },
    /// A record of the namespace came to count after later ones.
    #[error(
        "record {sequence} of the log changes names, but came to count after record {done} did"
    )]
    OutOfOrder {
        /// The record.
        sequence: Sequence,
        /// Changes of names up to here are done.
        done: Sequence,
    },
    /// The owner of the log does not want what is drained to be given away.
    #[error("what is drained cannot leave the log")]
    Owner {
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It was asked to stop.
    #[error("the drain was stopped")]
    Stopped,
}

impl Error {
    /// Whether trying again later may help: once the target is mended, or by itself.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Target { .. }
            | Error::NothingWritten { .. }
            | Error::Missing { .. }
            | Error::InTheWay { .. } => true,
            Error::Log(source) => source.is_retryable(),
            // A file of the target may have been taken away for a moment.
            Error::Owner { .. } => true,
            // The log's disk may get space again; a file that was not replaced is as it was.
            Error::Journal { source, .. } => hostlog::is_no_space(source),
            Error::JournalDamaged { .. }
            | Error::UnknownFile { .. }
            | Error::OutOfOrder { .. }
            | Error::Stopped => false,
        }
    }
}

/// A path of the log for messages.
pub(crate) fn shown(path: &[u8]) -> String {
    if path.is_empty() {
        "its top directory".to_owned()
    } else {
        String::from_utf8_lossy(path).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_of_the_log_that_is_full_is_waited_for_and_one_that_fails_is_not() {
        let journal = |kind: io::ErrorKind| Error::Journal {
            operation: "writing",
            path: PathBuf::from("drain"),
            source: kind.into(),
        };
        assert!(journal(io::ErrorKind::StorageFull).is_retryable());
        assert!(journal(io::ErrorKind::QuotaExceeded).is_retryable());
        assert!(!journal(io::ErrorKind::PermissionDenied).is_retryable());
        let source = io::ErrorKind::StorageFull.into();
        let log = hostlog::Error::System { operation: "making", path: PathBuf::new(), source };
        assert!(Error::Log(log).is_retryable());
    }
}
