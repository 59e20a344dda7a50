//! What measuring and explaining can fail with.

use std::path::PathBuf;

/// The result of measuring and explaining.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be measured or explained.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A text is no pattern.
    #[error("pattern `{pattern}`: `{part}` {why}")]
    Pattern {
        /// The whole text.
        pattern: String,
        /// The part that is wrong.
        part: String,
        /// How.
        why: &'static str,
    },
    /// No way of access has this name.
    #[error("no method `{name}`: there are adaptive, naive, romio, simple_pm, extent and scanfile")]
    NoWay {
        /// The name.
        name: String,
    },
    /// The view or the request cannot be.
    #[error(transparent)]
    Sieve(#[from] sieve::Error),
    /// A file or directory refused.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The results could not be kept or read.
    #[error("the results in {}", path.display())]
    Results {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// The database is of another kind or age.
    #[error("{} holds no results of this bench (schema {found}, not {expected})", path.display())]
    Schema {
        /// The database.
        path: PathBuf,
        /// Its number.
        found: i64,
        /// The number that this version writes.
        expected: i64,
    },
    /// There are no results of the kind that is asked for.
    #[error("{} holds no {what}", path.display())]
    NoResults {
        /// The database.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// A measured access failed.
    #[error("{lane}: {what}")]
    Lane {
        /// Which way of access.
        lane: String,
        /// What happened.
        what: String,
    },
    /// A plot could not be drawn.
    #[error("cannot draw {title}: {why}")]
    Plot {
        /// Which plot.
        title: String,
        /// What the drawing library said.
        why: String,
    },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Wraps a refusal of the file system.
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}
