//! Why a name leads nowhere.

use address::{AddressError, ConfigErrors, Endpoint, Uri};
use p9::Errno;

/// The result of finding something.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a name leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that leads to no service.
    #[error(
        "`{name}` is neither a URI nor below a mapped prefix of sluice.toml; files of this machine are opened without Sluice"
    )]
    NotFar {
        /// The name.
        name: String,
    },
    /// An address that cannot be understood.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A configuration file with mistakes.
    #[error(transparent)]
    Configuration(#[from] ConfigErrors),
    /// A configuration file that is there but cannot be read.
    #[error("cannot read the configuration file {path}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A kind of address that is not reached from within a program.
    #[error("{uri}: cannot reach {scheme} addresses from here; {instead}")]
    Unreachable {
        /// The address.
        uri: String,
        /// Its scheme.
        scheme: &'static str,
        /// What to do.
        instead: &'static str,
    },
}

impl Error {
    /// For an address that is reached by no socket.
    pub(crate) fn unreachable(uri: &Uri) -> Self {
        let instead = match uri.endpoint {
            Endpoint::Mpi { .. } => {
                "this process is no rank of a job that was started with `sluice serve`"
            }
            Endpoint::Direct => {
                "this process has no stores of its own: name a service by scdc+uds:// or scdc+tcp://"
            }
            _ => {
                "serve it with `sluice serve NAME=URI`, and name that service by scdc+uds:// or scdc+tcp://"
            }
        };
        Self::Unreachable { uri: uri.to_string(), scheme: uri.endpoint.scheme(), instead }
    }

    /// The number for `errno`.
    #[must_use]
    pub fn to_errno(&self) -> i32 {
        match self {
            Self::NotFar { .. } | Self::Configuration(_) => Errno::EINVAL.raw(),
            Self::Address(error) => error.to_errno(),
            Self::Unreadable { source, .. } => source.raw_os_error().unwrap_or(Errno::EIO.raw()),
            Self::Unreachable { .. } => Errno::EOPNOTSUPP.raw(),
        }
    }
}
