//! What can go wrong before a client is there; after that, errors are answers.

use std::io;
use std::path::PathBuf;

/// The result of starting a service.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a service does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Another service answers on this socket.
    #[error("a service is already listening on {}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something that is not a socket has the name.
    #[error("{} exists and is not a socket: it was left alone", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// An address that other machines can reach, without encryption.
    #[error(
        "{address} can be reached from other machines and would be neither encrypted nor \
         authenticated: listen on 127.0.0.1, or say --insecure"
    )]
    Insecure {
        /// The address asked for.
        address: String,
    },
    /// The directory of a store cannot be offered.
    #[error("store `{name}`: cannot offer the directory {}", path.display())]
    Directory {
        /// The store.
        name: String,
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: store::Error,
    },
    /// A store cannot be offered.
    #[error("store `{name}` cannot be offered")]
    Store {
        /// The store.
        name: String,
        /// Why.
        #[source]
        source: store::Error,
    },
    /// A dataset cannot be offered.
    #[error("store `{name}`: cannot offer the dataset {}", path.display())]
    Dataset {
        /// The store.
        name: String,
        /// Its definition.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A bucket cannot be offered.
    #[error("store `{name}`: cannot offer {uri}")]
    Object {
        /// The store.
        name: String,
        /// The bucket's address.
        uri: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A relay to what is not a socket.
    #[error(
        "store `{name}`: cannot relay to {uri}; a relay leads to a scdc+uds:// or scdc+tcp:// \
         address"
    )]
    Relay {
        /// The store.
        name: String,
        /// Where to.
        uri: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread {
        /// What the system said.
        #[source]
        source: io::Error,
    },
}
