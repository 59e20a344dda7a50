//! What can go wrong.

use std::io;
use std::path::PathBuf;

/// Why a request on an HDF5 file failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library refused.
    #[error("{}: HDF5 could not {action}: {reason}", path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: String,
        /// The library's own words, the innermost first.
        reason: String,
    },
    /// The system refused.
    #[error("{}: could not {action}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The file holds a dataset in another shape or type than expected.
    #[error("{}: the dataset {dataset} is {found}, expected was {expected}", path.display())]
    Differs {
        /// The file.
        path: PathBuf,
        /// The dataset's path in the file.
        dataset: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A type of HDF5 that no view can hold.
    #[error("{}: the dataset {dataset} has {kind}, which no view can hold", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The dataset's path in the file.
        dataset: String,
        /// The kind of type, in words.
        kind: String,
    },
    /// A name or a size that HDF5 cannot have.
    #[error("{what}")]
    Schema {
        /// What is wrong with the schema.
        what: String,
    },
}

/// The result of a request on an HDF5 file.
pub type Result<T> = std::result::Result<T, Error>;
