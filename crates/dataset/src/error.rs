//! What can go wrong with a dataset.

use std::io;
use std::path::{Path, PathBuf};

use p9::Errno;

/// The result of a dataset's work.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a dataset could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something.
    #[error("{operation} {}", path.display())]
    File {
        /// What was tried, as the man page calls it.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// The definition means nothing.
    #[error("{}", text.trim_end())]
    Definition {
        /// The diagnostics, with the source lines that they are about.
        text: String,
    },
    /// The definition means something that cannot be laid out.
    #[error("{}: {why}", path.display())]
    Layout {
        /// The definition.
        path: PathBuf,
        /// What cannot be.
        why: String,
    },
    /// Somebody else has the dataset, or one of its replicas, open.
    #[error(
        "{} is in use by {}; stop it first, two services must not write the same replicas",
        path.display(), holder(*pid)
    )]
    InUse {
        /// The file that is locked.
        path: PathBuf,
        /// The process that has it, where the system tells.
        pid: Option<u32>,
    },
    /// A replica file has not the size that the definition gives it.
    #[error(
        "replica `{replica}`: {} has {found} bytes, but its views take {declared}; it was not \
         written by this definition (or was cut): restore it, or move it away to have it rebuilt",
        path.display()
    )]
    Size {
        /// The replica.
        replica: String,
        /// Its file.
        path: PathBuf,
        /// Bytes it has.
        found: u64,
        /// Bytes it should have.
        declared: u64,
    },
    /// What has a replica's name is no regular file.
    #[error("replica `{replica}`: {} is not a {wanted}", path.display())]
    NotAFile {
        /// The replica.
        replica: String,
        /// What has its name.
        path: PathBuf,
        /// What it should be.
        wanted: &'static str,
    },
    /// Two replicas, or two parts of them, are in one file.
    #[error("replicas `{first}` and `{second}` are the same file, {}", path.display())]
    SameFile {
        /// The replica declared first.
        first: String,
        /// The other.
        second: String,
        /// The file.
        path: PathBuf,
    },
    /// The state that was kept beside the definition cannot be understood.
    #[error(
        "{}: {why}; if its replicas are known to be equal, remove the directory that holds it",
        path.display()
    )]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The definition was changed so that a replica's file means something else.
    #[error(
        "replica `{replica}` was written with another layout: its views, or types in them, have \
         changed since. Serve it with the definition that it was written with, or move {} away \
         to have it rebuilt from other replicas",
        path.display()
    )]
    Changed {
        /// The replica.
        replica: String,
        /// Its file.
        path: PathBuf,
    },
    /// No replica that is written at once holds a part of the dataset.
    #[error(
        "`{part}` of view `{view}` is in no replica that is updated `sync`; put a view with it \
         into one, or make a sync replica `complete`"
    )]
    Unheld {
        /// The view that shows it.
        view: String,
        /// The variable, with the fields below it.
        part: String,
    },
    /// The replicas that hold a part of the dataset are stale.
    #[error("`{part}` of view `{view}` is only in replicas that are not up to date: {reasons}")]
    Lost {
        /// The view that shows it.
        view: String,
        /// The variable, with the fields below it.
        part: String,
        /// Which replicas, and why.
        reasons: String,
    },
    /// A replica that was there already holds something else than others do.
    #[error(
        "replica `{replica}`: byte {offset} of {} is not what {others} would give; which of them is \
         right nobody can tell here: move the wrong one away to have it rebuilt",
        path.display()
    )]
    Differs {
        /// The replica.
        replica: String,
        /// Its file.
        path: PathBuf,
        /// The first byte that differs.
        offset: u64,
        /// The replicas that it was compared with.
        others: String,
    },
    /// A format that is not to be had.
    #[error("replica `{replica}`: {what}")]
    Unsupported {
        /// The replica.
        replica: String,
        /// What is not possible.
        what: &'static str,
    },
    /// A replica that is an HDF5 file cannot be used.
    #[error(transparent)]
    Hdf5(#[from] hdf::Error),
    /// There is no such replica.
    #[error("the definition has no replica `{name}`; it has {has}")]
    NoSuchReplica {
        /// The name asked for.
        name: String,
        /// Those there are.
        has: String,
    },
    /// There is no such view.
    #[error("the dataset has no view `{name}`; it has {has}")]
    NoSuchView {
        /// The name asked for.
        name: String,
        /// Those there are.
        has: String,
    },
    /// A replica is being made, and cannot be made twice at a time.
    #[error("replica `{replica}` is being made already; `sluice layout status` says how far it is")]
    Busy {
        /// The replica.
        replica: String,
    },
    /// A replica that cannot be removed, because others do not have what it has.
    #[error(
        "replica `{replica}` alone holds a part of the dataset; add another replica first, and wait \
         until it is up to date"
    )]
    Needed {
        /// The replica.
        replica: String,
    },
    /// What has the name of a replica that is to be added.
    #[error(
        "replica `{replica}`: {} is there already; move it away, or give the replica another name",
        path.display()
    )]
    Exists {
        /// The replica.
        replica: String,
        /// Its file.
        path: PathBuf,
    },
    /// A definition that cannot take the place of the one in force.
    #[error("{}: {why}", path.display())]
    Change {
        /// The definition.
        path: PathBuf,
        /// Why it cannot.
        why: String,
    },
    /// Something was asked of the dataset that it does not know.
    #[error("{why}")]
    Command {
        /// What is wrong with it, and what there is.
        why: String,
    },
    /// A write through a view that cannot be written.
    #[error("view `{view}` is read-only")]
    ReadOnly {
        /// The view.
        view: String,
    },
    /// A write behind the last byte of a view.
    #[error("view `{view}` ends at byte {size}: nothing can be written at {offset}")]
    PastEnd {
        /// The view.
        view: String,
        /// Its bytes.
        size: u64,
        /// Where a byte was to go.
        offset: u64,
    },
    /// A stored length of an array that no array can have.
    #[error("`{variable}` is the length of an array and cannot be written so: {why}")]
    Length {
        /// The variable that stores it.
        variable: String,
        /// Why not.
        why: String,
    },
    /// Somebody wished it to end.
    #[error("interrupted; the replica stays as it was")]
    Interrupted,
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread {
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl Error {
    /// What a system call on a file answered.
    pub(crate) fn file(operation: &'static str, path: &Path, errno: rustix::io::Errno) -> Self {
        Self::File { operation, path: path.to_path_buf(), source: errno.into() }
    }

    /// What it says with all that caused it, in one line.
    #[must_use]
    pub fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }

    /// The number that a client of the store is given.
    #[must_use]
    pub fn to_errno(&self) -> Errno {
        match self {
            Self::File { source, .. } | Self::Thread { source } => {
                source.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
            }
            Self::ReadOnly { .. } => Errno::EROFS,
            Self::PastEnd { .. } => Errno::EFBIG,
            Self::Length { .. }
            | Self::NoSuchView { .. }
            | Self::Change { .. }
            | Self::Command { .. }
            | Self::Definition { .. }
            | Self::Layout { .. }
            | Self::NoSuchReplica { .. } => Errno::EINVAL,
            Self::InUse { .. } | Self::Busy { .. } | Self::Needed { .. } => Errno::EBUSY,
            Self::Exists { .. } => Errno::EEXIST,
            Self::Unsupported { .. } => Errno::EOPNOTSUPP,
            Self::Interrupted => Errno::EINTR,
            Self::Hdf5(hdf::Error::System { source, .. }) => {
                source.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
            }
            Self::Size { .. }
            | Self::NotAFile { .. }
            | Self::SameFile { .. }
            | Self::State { .. }
            | Self::Changed { .. }
            | Self::Differs { .. }
            | Self::Unheld { .. }
            | Self::Hdf5(_)
            | Self::Lost { .. } => Errno::EIO,
        }
    }

    /// Whether the same may succeed later, without anybody changing anything but the load: a lock
    /// that ends, a disk on which room is made.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.to_errno(),
            Errno::EBUSY | Errno::EINTR | Errno::EAGAIN | Errno::ENOSPC | Errno::EMFILE
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_the_systems_own_number() {
        let error = Error::file("pwrite", Path::new("r"), rustix::io::Errno::NOSPC);
        assert_eq!(error.to_errno(), Errno::ENOSPC);
        assert!(error.is_retryable());
        assert_eq!(error.to_string(), "pwrite r");
        let error = Error::PastEnd { view: "v".into(), size: 8, offset: 8 };
        assert_eq!(error.to_errno(), Errno::EFBIG);
        assert!(!error.is_retryable());
    }
}
