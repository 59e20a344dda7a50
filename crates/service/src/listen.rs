//! Where a service listens, and who may call.

use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt;

use crate::{Error, Result};

/// Bytes of the receive buffer of TCP on loopback. Left to itself it grows to megabytes, and what
/// waits in it has left the processor's cache when it is received.
const LOOPBACK_RECEIVE_BYTES: usize = 256 << 10;

/// The congestion control of loopback, where nothing is ever congested. One that paces what it
/// sends, as a system's default may (BBR), halves the speed there. Every kernel has this one, and
/// connections inherit it from the socket that listens.
const LOOPBACK_CONGESTION_CONTROL: &str = "reno";

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket. A socket file left behind by a service that is gone is replaced.
    Unix(PathBuf),
    /// A TCP address, `HOST:PORT`; port 0 takes a free one.
    Tcp(String),
}

/// Where a service can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP address with its real port.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// Whom a service lets in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Admission {
    /// Listen where other machines can connect.
    pub(crate) insecure: bool,
    /// Let other users connect to Unix sockets.
    pub(crate) any_user: bool,
}

/// A bound socket.
pub(crate) struct Listener {
    kind: Kind,
    address: Address,
    admission: Admission,
}

enum Kind {
    /// With the socket file's device and inode, to know it again.
    Unix(UnixListener, (u64, u64)),
    Tcp(TcpListener),
}

impl Listener {
    /// # Errors
    /// [`Error::Listen`], [`Error::InUse`], [`Error::NotASocket`], [`Error::Insecure`].
    pub(crate) fn bind(listen: &Listen, admission: Admission) -> Result<Self> {
        match listen {
            Listen::Unix(path) => Self::bind_unix(path, admission),
            Listen::Tcp(address) => Self::bind_tcp(address, admission),
        }
    }

    fn bind_unix(path: &Path, admission: Admission) -> Result<Self> {
        let failed = |source| Error::Listen { address: format!("unix:{}", path.display()), source };
        remove_stale(path)?;
        let listener = UnixListener::bind(path).map_err(failed)?;
        // Between the two calls somebody else may connect; accept checks who it is.
        let mode = if admission.any_user { 0o666 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)?;
        let identity = fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino()));
        Ok(Self {
            kind: Kind::Unix(listener, identity.map_err(failed)?),
            address: Address::Unix(path.to_owned()),
            admission,
        })
    }

    fn bind_tcp(address: &str, admission: Admission) -> Result<Self> {
        let failed = |source| Error::Listen { address: format!("tcp:{address}"), source };
        let resolved: Vec<SocketAddr> = address.to_socket_addrs().map_err(failed)?.collect();
        if !admission.insecure && resolved.iter().any(|address| !address.ip().is_loopback()) {
            return Err(Error::Insecure { address: format!("tcp:{address}") });
        }
        let listener = TcpListener::bind(&resolved[..]).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if address.ip().is_loopback() {
            // Best effort: without it everything works, only slower.
            let _ = sockopt::set_tcp_congestion(&listener, LOOPBACK_CONGESTION_CONTROL);
        }
        Ok(Self { kind: Kind::Tcp(listener), address: Address::Tcp(address), admission })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Waits for the next client. `Ok(None)`: one that may not come in.
    pub(crate) fn accept(&self) -> io::Result<Option<OwnedFd>> {
        match &self.kind {
            Kind::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                let welcome = self.admission.any_user || same_user(&stream)?;
                Ok(welcome.then(|| stream.into()))
            }
            Kind::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nodelay(true)?;
                if peer.ip().is_loopback() {
                    sockopt::set_socket_recv_buffer_size(&stream, LOOPBACK_RECEIVE_BYTES)?;
                }
                // A peer that vanished without a word is noticed within two minutes.
                sockopt::set_socket_keepalive(&stream, true)?;
                sockopt::set_tcp_keepidle(&stream, Duration::from_secs(60))?;
                sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(10))?;
                sockopt::set_tcp_keepcnt(&stream, 6)?;
                Ok(Some(stream.into()))
            }
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Unix(listener, _) => listener.as_fd(),
            Kind::Tcp(listener) => listener.as_fd(),
        }
    }

    /// Makes `accept` return, now and for ever, and takes the socket file away.
    pub(crate) fn close(&self) {
        // On Linux this wakes a thread that waits in accept(2).
        let _ = rustix::net::shutdown(self.fd(), rustix::net::Shutdown::Both);
        if let (Kind::Unix(_, identity), Address::Unix(path)) = (&self.kind, &self.address) {
            let ours = |meta: fs::Metadata| (meta.dev(), meta.ino()) == *identity;
            if fs::symlink_metadata(path).is_ok_and(ours) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Whether the peer is the service's own user, or root.
fn same_user(stream: &UnixStream) -> io::Result<bool> {
    let peer = sockopt::socket_peercred(stream)?.uid;
    Ok(peer.is_root() || peer == rustix::process::geteuid())
}

/// Removes a socket file on which nobody answers.
fn remove_stale(path: &Path) -> Result<()> {
    let failed = |source| Error::Listen { address: format!("unix:{}", path.display()), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(meta) if !meta.file_type().is_socket() => {
            return Err(Error::NotASocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(Error::InUse { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}
