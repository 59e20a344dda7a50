//! What can be wrong with a stored profile.

use std::path::PathBuf;

/// The result of keeping and looking up profiles.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What it said.
        #[source]
        source: std::io::Error,
    },
    /// The file is no TOML, or a field is missing, unknown or of another type.
    #[error("{} is no profile", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and what.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A parameter cannot be what it is said to be.
    #[error("{} holds a parameter that cannot be", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// Which one.
        #[source]
        source: sieve::Error,
    },
}
