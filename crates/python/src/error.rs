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
    /// A name that leads to no service.
    #[error(
        "{name} is no address (scdc+uds://…, scdc+tcp://…) and not below a mapped prefix; open local files by Python's own open()"
    )]
    NotFar {
        /// The name.
        name: String,
    },
    /// An address of a kind that this process cannot reach.
    #[error("cannot reach {scheme} addresses from here: {instead}")]
    Unreachable {
        /// The address.
        uri: String,
        /// Its scheme.
        scheme: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// The configuration file is there but cannot be read.
    #[error("cannot read the configuration file: {source}")]
    Unreadable {
        /// Its name.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// What is wrong in the configuration file.
    #[error(transparent)]
    Config(#[from] address::ConfigErrors),
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
            Self::Address(_)
            | Self::Config(_)
            | Self::NotFar { .. }
            | Self::Layout { .. }
            | Self::Pattern { .. } => None,
            Self::Unreachable { uri, .. } => Some((Errno::EOPNOTSUPP.raw(), Some(uri))),
            Self::Unreadable { path, source } => {
                Some((source.raw_os_error().unwrap_or(Errno::EIO.raw()), Some(path)))
            }
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
