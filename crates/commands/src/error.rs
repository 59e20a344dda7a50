//! What can go wrong with a command, beside what the command itself answers.

/// The result of talking to a dataset.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a dataset could not be asked, or what it said instead of doing something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service refused or cannot be reached.
    #[error(transparent)]
    Service(#[from] client::Error),
    /// The dataset, or a next function, says no.
    #[error("{text}")]
    Refused {
        /// In its own words.
        text: String,
    },
    /// The other side does not keep to the messages of the control file.
    #[error("the service's answer to a command cannot be understood: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
    },
    /// The connection broke, and with it what the service knew of the dataset.
    #[error("the connection broke, and the dataset's state at the service is lost; open it again")]
    StateLost,
    /// A command longer than any is.
    #[error("a command of {bytes} bytes; it may have {max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The most.
        max: usize,
    },
}

impl Error {
    /// A refusal in words.
    pub fn refused(text: impl Into<String>) -> Self {
        Self::Refused { text: text.into() }
    }
}
