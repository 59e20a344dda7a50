//! Sluice URIs: which service, and which path there.
//!
//! ```text
//! scdc:///base/path                       a store in this process
//! scdc+uds://SOCKET/base/path             a Unix socket: %2Ftmp%2Fs.sock, /tmp/s.sock, or a service's name
//! scdc+tcp://HOST[:PORT]/base/path        a TCP service
//! scdc+mpi://NAME/base/path               a service on a rank of the same MPI job, by its name or its rank
//! scdc+ssh://[USER@]HOST[:PORT]/base/path a service started through ssh
//! s3://BUCKET/key                         a bucket of an object store; gs://BUCKET, az://CONTAINER
//! https://HOST[:PORT]/path                files of a web server; only where an address is meant, see [`detect`](crate::detect())
//! ```
//!
//! `sluice` may stand for `scdc`. Programs that fold slashes turn `://` into `:/`; that is understood. Only the
//! authority is percent-decoded: file names are literal, whatever bytes they have.

mod authority;

use std::fmt;
use std::path::PathBuf;

use crate::error::{UriFault, lossy};
use crate::escape;
use crate::nearest::distance;
use crate::path::{RemotePath, names};
use crate::{AddressError, Detected};

/// TCP port when a URI names none. 564 is 9P's (IANA "9pfs") but only root may listen there; this is its
/// customary unprivileged sibling.
pub const DEFAULT_TCP_PORT: u16 = 5640;

/// How a service is reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// Stores in this process.
    Direct,
    /// A Unix socket.
    Unix(SocketName),
    /// A TCP service.
    Tcp {
        /// Host name or address; IPv6 without brackets.
        host: String,
        /// Port, [`DEFAULT_TCP_PORT`] if none was given.
        port: u16,
    },
    /// A service on another rank of the same MPI job.
    Mpi {
        /// Its name in the job, or the number of its rank.
        service: String,
    },
    /// A service started through the user's own ssh.
    Ssh {
        /// Login name, if given.
        user: Option<String>,
        /// Host as ssh knows it.
        host: String,
        /// Port, if given.
        port: Option<u16>,
    },
    /// A bucket of an object store, or a web server.
    Object {
        /// What is spoken there.
        kind: ObjectKind,
        /// The bucket's name; of a web server the host, with the port where one is given.
        bucket: String,
    },
}

/// What is spoken with an object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// Amazon's S3 and what is compatible with it.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// A web server, by TLS.
    Https,
    /// A web server, without.
    Http,
}

impl ObjectKind {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::S3, Self::Gcs, Self::Azure, Self::Https, Self::Http];

    /// The scheme of its URIs.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "az",
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// The kind whose URIs have that scheme.
    pub fn of_scheme(scheme: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.scheme().as_bytes() == scheme)
    }

    /// Whether it is a web server.
    pub const fn is_web(self) -> bool {
        matches!(self, Self::Https | Self::Http)
    }
}

/// How a URI names a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SocketName {
    /// An absolute path.
    Path(PathBuf),
    /// A service of this user: `sluice/NAME.sock` in the directory for such sockets, see [`SocketName::resolve`].
    Named(String),
}

impl SocketName {
    /// The socket's path. A named service's is `$XDG_RUNTIME_DIR/sluice/NAME.sock`, or without that variable
    /// `/tmp/sluice-UID/NAME.sock`; environment and uid are the caller's to look up.
    pub fn resolve(&self, xdg_runtime_dir: Option<&std::path::Path>, uid: u32) -> PathBuf {
        match self {
            Self::Path(path) => path.clone(),
            Self::Named(name) => {
                let dir = match xdg_runtime_dir.filter(|dir| dir.is_absolute()) {
                    Some(dir) => dir.join("sluice"),
                    None => PathBuf::from(format!("/tmp/sluice-{uid}")),
                };
                dir.join(format!("{name}.sock"))
            }
        }
    }
}

/// A service and a path there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uri {
    /// How the service is reached.
    pub endpoint: Endpoint,
    /// The path below the service's root.
    pub path: RemotePath,
}

impl Uri {
    /// Parses a URI that begins at the first byte.
    ///
    /// # Errors
    /// [`AddressError::Uri`] with the byte at which it stops making sense.
    pub fn parse(text: &[u8]) -> Result<Self, AddressError> {
        let fail = |at, fault| AddressError::uri(text, at, fault);
        let colon = memchr::memchr(b':', text).ok_or_else(|| fail(0, UriFault::NotAUri))?;
        let scheme = &text[..colon];
        if !crate::detect::begins_uri(scheme, text.get(colon + 1))
            && !crate::detect::begins_web_uri(text)
        {
            return Err(fail(0, UriFault::NotAUri));
        }
        if let Some(nul) = memchr::memchr(0, text) {
            return Err(fail(nul, UriFault::Nul));
        }
        let (endpoint, rest_at) =
            authority::parse(scheme, text, colon + 1).map_err(|(at, fault)| fail(at, fault))?;
        Ok(Self { endpoint, path: RemotePath::new(&text[rest_at..]) })
    }

    /// Finds a URI in a path that a program uses. See [`detect`](crate::detect()).
    #[inline]
    pub fn detect(path: &[u8]) -> Option<Detected> {
        crate::detect(path)
    }

    /// The canonical text of this URI; [`Uri::parse`] gives the same URI back.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.endpoint.to_bytes();
        out.push(b'/');
        out.extend_from_slice(self.path.as_bytes());
        out
    }

    /// This URI with names appended to its path.
    #[must_use]
    pub fn join(&self, rest: &[u8]) -> Self {
        Self { endpoint: self.endpoint.clone(), path: self.path.join(rest) }
    }
}

impl Endpoint {
    /// The canonical text, without the slash that begins the path: `scdc+tcp://host`, `scdc://`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.scheme().as_bytes().to_vec();
        out.extend_from_slice(b"://");
        match self {
            Self::Direct => {}
            Self::Unix(SocketName::Named(name)) => {
                escape::encode_into(&mut out, name.as_bytes(), escape::is_unreserved)
            }
            Self::Unix(SocketName::Path(path)) => {
                let path = path.as_os_str().as_encoded_bytes();
                if authority::reads_back_unescaped(path) {
                    out.extend_from_slice(path);
                } else {
                    escape::encode_into(&mut out, path, escape::is_unreserved);
                }
            }
            Self::Tcp { host, port } => {
                push_host(&mut out, host);
                if *port != DEFAULT_TCP_PORT {
                    out.extend_from_slice(format!(":{port}").as_bytes());
                }
            }
            Self::Mpi { service } => {
                // Dots alone would be folded away as a path component.
                let keep = |byte| escape::is_unreserved(byte) && byte != b'.';
                escape::encode_into(&mut out, service.as_bytes(), keep)
            }
            Self::Ssh { user, host, port } => {
                if let Some(user) = user {
                    out.extend_from_slice(user.as_bytes());
                    out.push(b'@');
                }
                push_host(&mut out, host);
                if let Some(port) = port {
                    out.extend_from_slice(format!(":{port}").as_bytes());
                }
            }
            Self::Object { bucket, .. } => out.extend_from_slice(bucket.as_bytes()),
        }
        out
    }

    /// The scheme of URIs with this endpoint.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Direct => "scdc",
            Self::Unix(_) => "scdc+uds",
            Self::Tcp { .. } => "scdc+tcp",
            Self::Mpi { .. } => "scdc+mpi",
            Self::Ssh { .. } => "scdc+ssh",
            Self::Object { kind, .. } => kind.scheme(),
        }
    }

    /// Parses what `serve --listen` takes: `unix:PATH`, `tcp:HOST:PORT`, `mpi:NAME`, or the URI of a service's
    /// root.
    ///
    /// A relative `PATH` is kept as it is: the caller knows the working directory. Port 0 of `tcp:` is
    /// any free port.
    ///
    /// # Errors
    /// [`AddressError::Listen`], or [`AddressError::Uri`] for a malformed URI.
    pub fn parse_listen(text: &[u8]) -> Result<Self, AddressError> {
        let fail = |fault| AddressError::Listen { text: lossy(text), fault };
        if let Some(path) = text.strip_prefix(b"unix:").or_else(|| text.strip_prefix(b"uds:")) {
            if path.is_empty() {
                return Err(fail(UriFault::Missing { what: "the socket's path" }));
            }
            if path.contains(&0) {
                return Err(fail(UriFault::Nul));
            }
            return Ok(Self::Unix(SocketName::Path(authority::path_buf(path))));
        }
        if let Some(address) = text.strip_prefix(b"tcp:")
            && !address.starts_with(b"/")
        {
            // Only a listener may leave the choice of the port to the system.
            let (address, unnamed_port) = match address.strip_suffix(b":0") {
                Some(host) => (host, 0),
                None => (address, DEFAULT_TCP_PORT),
            };
            let (host, port) =
                authority::host_and_port(address).map_err(|(_, fault)| fail(fault))?;
            return Ok(Self::Tcp { host, port: port.unwrap_or(unnamed_port) });
        }
        if let Some(name) = text.strip_prefix(b"mpi:").filter(|name| !name.starts_with(b"/")) {
            if name.is_empty() {
                return Err(fail(UriFault::Missing { what: "the service's name" }));
            }
            let name = std::str::from_utf8(name).map_err(|_| fail(UriFault::NotAUri))?;
            return Ok(Self::Mpi { service: name.to_owned() });
        }
        let uri = if crate::detect::is_scheme(
            text.split(|&byte| byte == b':').next().unwrap_or_default(),
        ) {
            Uri::parse(&[text, b"/"].concat())?
        } else {
            return Err(fail(UriFault::NotAUri));
        };
        match uri.endpoint {
            _ if !uri.path.is_root() => Err(fail(UriFault::PathAfterEndpoint)),
            Self::Unix(_) | Self::Tcp { .. } | Self::Mpi { .. } => Ok(uri.endpoint),
            other @ (Self::Direct | Self::Ssh { .. } | Self::Object { .. }) => {
                Err(fail(UriFault::CannotListen { transport: other.scheme() }))
            }
        }
    }
}

fn push_host(out: &mut Vec<u8>, host: &str) {
    let brackets = host.contains(':');
    if brackets {
        out.push(b'[');
    }
    out.extend_from_slice(host.as_bytes());
    if brackets {
        out.push(b']');
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

impl fmt::Debug for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uri({self})")
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

impl std::str::FromStr for Uri {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text.as_bytes())
    }
}

#[cfg(test)]
mod tests;
