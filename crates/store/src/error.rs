//! What can go wrong in a store.

use p9::Errno;

/// The result of a store's work.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system below refused.
    #[error("{operation}: {errno}")]
    System {
        /// What was tried, as the man page calls it.
        operation: &'static str,
        /// What the system answered.
        errno: Errno,
    },
    /// The export is read-only.
    #[error("{operation}: the export is read-only")]
    ReadOnly {
        /// What was tried.
        operation: &'static str,
    },
    /// This kind of store has no such operation.
    #[error("{operation} is not something a {store} store can do")]
    Unsupported {
        /// What was tried.
        operation: &'static str,
        /// The kind of store.
        store: &'static str,
    },
    /// A store cannot be exported by that name.
    #[error("`{name}` cannot name an export: {why}")]
    BadName {
        /// The name, bytes that are not text escaped.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The two nodes of a rename or link are in different stores.
    #[error("{operation} between two stores")]
    AcrossStores {
        /// What was tried.
        operation: &'static str,
    },
}

impl Error {
    /// The number that a 9P2000.L client is given.
    #[must_use]
    pub fn to_errno(&self) -> Errno {
        match self {
            Error::System { errno, .. } => *errno,
            Error::ReadOnly { .. } => Errno::EROFS,
            Error::Unsupported { .. } => Errno::EOPNOTSUPP,
            Error::BadName { .. } => Errno::EINVAL,
            Error::AcrossStores { .. } => Errno::EXDEV,
        }
    }
}
