//! What goes wrong, and which exception it is.

use p9::Errno;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// The result of an operation.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// What should be an address is none.
    #[error(transparent)]
    Address(#[from] address::AddressError),
    /// A name that leads nowhere.
    #[error("{}", chain(.0))]
    Reach(#[from] reach::Error),
    /// Where a service in Python does not listen.
    #[error("{endpoint}: a service in Python listens on unix:PATH or tcp:HOST:PORT")]
    Listen {
        /// The address.
        endpoint: String,
    },
    /// The service refused, or was not heard.
    #[error("{}{}", in_words(source), advice(source))]
    Service {
        /// The file.
        name: String,
        /// What the service said.
        source: client::Error,
    },
    /// A non-contiguous access failed.
    #[error("{}", chain(source))]
    Sieve {
        /// The file.
        name: String,
        /// Why.
        source: transfer::Error,
    },
    /// A pattern that is none.
    #[error("{source}")]
    Pattern {
        /// Why.
        #[from]
        source: sieve::Error,
    },
    /// A definition that is none, or says nothing that numpy could read.
    #[error("{name}: {reason}")]
    Layout {
        /// The dataset.
        name: String,
        /// Why.
        reason: String,
    },
    /// A service cannot be started.
    #[error("{}", chain(source))]
    Serve {
        /// Why.
        #[from]
        source: service::Error,
    },
}

/// An error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn in_words(error: &client::Error) -> String {
    match error {
        client::Error::Refused(errno) => errno.message().to_owned(),
        other => chain(other),
    }
}

fn advice(error: &client::Error) -> &'static str {
    match error {
        client::Error::Unreachable { .. } => {
            "; is a service running there? `sluice serve` starts one"
        }
        client::Error::UnknownHost { .. } => "; check how the host's name is spelt",
        client::Error::Version { .. } => "; only 9P2000.L services can be used",
        client::Error::AbsoluteLink { .. } => "; its target lies outside the service",
        _ => "",
    }
}

impl Error {
    /// The number and the file of an `OSError`; none for what is wrong with the arguments.
    fn errno(&self) -> Option<(i32, Option<&str>)> {
        match self {
            Self::Address(_) | Self::Layout { .. } | Self::Pattern { .. } => None,
            Self::Reach(error) => match error {
                reach::Error::Unreachable { uri, .. } => Some((error.to_errno(), Some(uri))),
                reach::Error::Unreadable { path, .. } => Some((error.to_errno(), Some(path))),
                reach::Error::NotFar { .. }
                | reach::Error::Address(_)
                | reach::Error::Configuration(_) => None,
            },
            Self::Listen { endpoint } => Some((Errno::EOPNOTSUPP.raw(), Some(endpoint))),
            Self::Service { name, source } => Some((source.to_errno().raw(), Some(name))),
            Self::Sieve { name, source } => Some((source.to_errno().raw_os_error(), Some(name))),
            Self::Serve { source } => Some((serve_errno(source), None)),
        }
    }
}

fn serve_errno(error: &service::Error) -> i32 {
    match error {
        service::Error::Listen { source, .. } | service::Error::Thread { source } => {
            source.raw_os_error().unwrap_or(Errno::EIO.raw())
        }
        // EADDRINUSE (errno(3)), which 9P does not carry.
        service::Error::InUse { .. } => 98,
        service::Error::NotASocket { .. } => Errno::EEXIST.raw(),
        service::Error::Insecure { .. } => Errno::EPERM.raw(),
        service::Error::Directory { source, .. } | service::Error::Store { source, .. } => {
            source.to_errno().raw()
        }
        service::Error::Dataset { .. }
        | service::Error::Object { .. }
        | service::Error::Relay { .. } => Errno::EOPNOTSUPP.raw(),
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        let Some((errno, name)) = error.errno() else { return PyValueError::new_err(text) };
        // The class is asked, not only named: it gives an instance of the subclass for the number, such as FileNotFoundError.
        let made = Python::attach(|py| {
            let class = py.get_type::<PyOSError>();
            let made = match name {
                Some(name) => class.call1((errno, &text, name)),
                None => class.call1((errno, &text)),
            };
            made.map(Self::from_value)
        });
        made.unwrap_or_else(|failed| failed)
    }
}
