//! Why a description cannot be taken over.

/// What is wrong with a description, or with what is asked of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text does not follow the grammar of its language.
    #[error("line {line}: expected {expected}, found {found}")]
    Syntax {
        /// Counted from 1.
        line: usize,
        /// What would have been understood.
        expected: String,
        /// What is there.
        found: String,
    },
    /// It is understood, but no definition says the same.
    #[error("{what}: {reason}")]
    Inexpressible {
        /// Which part of the description.
        what: String,
        /// Why not.
        reason: String,
    },
    /// Something was asked for that is not there.
    #[error("there is no {what} {name:?}; there are: {known}")]
    Unknown {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// A file of numpy that is none.
    #[error("this is no .npy file: {reason}")]
    Npy {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An HDF5 file that cannot be read.
    #[cfg(feature = "hdf5")]
    #[error(transparent)]
    Hdf(#[from] hdf::Error),
    /// A view that cannot be placed.
    #[error(transparent)]
    Layout(#[from] layout::Error),
}

/// The result of an import or export.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn inexpressible(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Error::Inexpressible { what: what.into(), reason: reason.into() }
    }
}
