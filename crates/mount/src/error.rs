//! Why a store could not be mounted, or unmounted.

use std::path::PathBuf;

use p9::Errno;

/// The result of mounting and unmounting.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store could not be mounted, or a mount not be ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing at the path.
    #[error("{} does not exist; make the directory first", dir.display())]
    NoDirectory {
        /// Where it should be mounted.
        dir: PathBuf,
    },
    /// Something else is at the path.
    #[error("{} is not a directory; name an empty one", dir.display())]
    NotADirectory {
        /// Where it should be mounted.
        dir: PathBuf,
    },
    /// The directory's files would be hidden.
    #[error("{} is not empty; name an empty directory, so that nothing is hidden", dir.display())]
    NotEmpty {
        /// Where it should be mounted.
        dir: PathBuf,
    },
    /// Something is mounted there.
    #[error("something is mounted on {} already; `sluice umount {}` ends it if it is ours", dir.display(), dir.display())]
    AlreadyMounted {
        /// Where it should be mounted.
        dir: PathBuf,
    },
    /// A mount whose process is gone.
    #[error("{} is a mount whose process has ended; `sluice umount {}` clears it away", dir.display(), dir.display())]
    Dead {
        /// Where it should be mounted.
        dir: PathBuf,
    },
    /// The directory cannot be looked at.
    #[error("cannot look at {}", dir.display())]
    Directory {
        /// Where it should be mounted.
        dir: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The store does not answer.
    #[error("cannot reach what is to be mounted")]
    Store {
        /// What the store said.
        #[source]
        source: store::Error,
    },
    /// The store's top is no directory.
    #[error("what is to be mounted is not a directory")]
    StoreIsNoDirectory,
    /// The kernel has no FUSE, or this container does not show it.
    #[error(
        "there is no /dev/fuse here; load the kernel's module (`modprobe fuse`), or let the container have the device"
    )]
    NoDevice,
    /// The device is there, but may not be used.
    #[error(
        "cannot open /dev/fuse; ask for permission to use it, or install fuse3, whose fusermount3 may"
    )]
    Device {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Only root may mount by itself; others need the helper.
    #[error("mounting needs root, or fusermount3; install the package fuse3")]
    NoHelper,
    /// The helper refused.
    #[error("fusermount3 refused: {words}")]
    Helper {
        /// What it printed.
        words: String,
    },
    /// The kernel refused.
    #[error("cannot mount on {}", dir.display())]
    Mount {
        /// Where it should be mounted.
        dir: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The kernel and we did not come to terms, or its requests cannot be read any more.
    #[error("the conversation with the kernel failed")]
    Conversation {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// There is nothing to unmount.
    #[error("{} is not a mount of sluice", dir.display())]
    NotMounted {
        /// What was named.
        dir: PathBuf,
    },
    /// Programs use it.
    #[error("{} is in use; close what is open there and leave the directory, or use --lazy", dir.display())]
    Busy {
        /// What was to be unmounted.
        dir: PathBuf,
    },
    /// The kernel or the helper refused to unmount.
    #[error("cannot unmount {}", dir.display())]
    Unmount {
        /// What was to be unmounted.
        dir: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// The number that stands for it, as mount(2) and umount(2) have them.
    #[must_use]
    pub fn to_errno(&self) -> Errno {
        let of =
            |source: &std::io::Error| source.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        match self {
            Error::NoDirectory { .. } => Errno::ENOENT,
            Error::NotADirectory { .. } | Error::StoreIsNoDirectory => Errno::ENOTDIR,
            Error::NotEmpty { .. } => Errno::ENOTEMPTY,
            Error::AlreadyMounted { .. } | Error::Busy { .. } => Errno::EBUSY,
            Error::Dead { .. } => Errno::ENOTCONN,
            Error::Store { source } => source.to_errno(),
            Error::NoDevice => Errno::ENODEV,
            Error::NoHelper | Error::Helper { .. } => Errno::EPERM,
            Error::NotMounted { .. } => Errno::EINVAL,
            Error::Directory { source, .. }
            | Error::Device { source }
            | Error::Mount { source, .. }
            | Error::Conversation { source }
            | Error::Unmount { source, .. } => of(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_a_number_and_never_repeats_its_cause() {
        let source = || std::io::Error::from_raw_os_error(Errno::EACCES.raw());
        let dir = || PathBuf::from("/mnt");
        let errors = [
            (Error::NoDirectory { dir: dir() }, Errno::ENOENT),
            (Error::NotEmpty { dir: dir() }, Errno::ENOTEMPTY),
            (Error::Dead { dir: dir() }, Errno::ENOTCONN),
            (Error::Device { source: source() }, Errno::EACCES),
            (Error::Mount { dir: dir(), source: source() }, Errno::EACCES),
            (Error::Unmount { dir: dir(), source: source() }, Errno::EACCES),
        ];
        for (error, errno) in errors {
            assert_eq!(error.to_errno(), errno, "{error}");
            assert!(!error.to_string().contains(&source().to_string()), "{error}");
        }
    }
}
