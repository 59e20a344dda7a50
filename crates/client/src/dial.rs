//! How a session gets its connections.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use address::Endpoint;
use p9::Errno;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    sockopt,
};

use crate::error::{Error, Result};
use crate::interrupt::{INTERRUPTED, interrupted};
use crate::link::{Exchange, Link, errno_of};

/// How long one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The send buffer of a Unix socket in bytes: room for one piece of a large write. What waits in it
/// should still be in the processor's cache when the service receives it (`examples/stream.rs`).
const UNIX_SEND_BUFFER: usize = 256 * 1024;

/// The same for TCP on loopback, where there is no distance to tune for.
const LOOPBACK_SEND_BUFFER: usize = 128 * 1024;

/// The congestion control of loopback, where nothing is ever congested. One that paces what it
/// sends, as a system's default may (BBR), halves the speed there. Every kernel has this one. It
/// must be chosen before connecting: a socket that has begun to pace goes on.
const LOOPBACK_CONGESTION_CONTROL: &str = "reno";

/// Makes links to one service, as often as they are needed.
pub trait Dial: Send + Sync {
    /// A fresh link.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when nobody answers, [`Error::UnknownHost`] when nobody can be asked.
    fn dial(&self, request_timeout: Duration) -> Result<Link>;

    /// The service's name in messages to people.
    fn peer(&self) -> String;
}

/// Where a socket leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A Unix socket's path.
    Unix(PathBuf),
    /// A TCP port of a host.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A service on another rank of this process's MPI job, by the socket that its rank listens on.
    Job {
        /// Name in the abstract name space of Unix sockets.
        socket: Vec<u8>,
        /// The service's name or rank.
        service: String,
    },
}

/// Where a rank's clients find the sockets of their job's services (`ranks::SOCKETS_VARIABLE`).
const JOB_VARIABLE: &str = "SLUICE_MPI_SOCKETS";

impl Place {
    /// Where an address leads on this machine; `None` for what is not a plain socket. A named
    /// service is looked for in the user's runtime directory, a service of an MPI job at the sockets of
    /// this process's rank; `None` also where this process belongs to no such job.
    #[must_use]
    pub fn of(endpoint: &Endpoint) -> Option<Self> {
        match endpoint {
            Endpoint::Unix(name) => {
                let runtime = std::env::var_os("XDG_RUNTIME_DIR");
                let uid = rustix::process::getuid().as_raw();
                Some(Self::Unix(name.resolve(runtime.as_deref().map(AsRef::as_ref), uid)))
            }
            Endpoint::Tcp { host, port } => Some(Self::Tcp { host: host.clone(), port: *port }),
            Endpoint::Mpi { service } => {
                let sockets = std::env::var(JOB_VARIABLE).ok().filter(|name| !name.is_empty())?;
                let socket = format!("sluice-mpi/{sockets}/{service}").into_bytes();
                Some(Self::Job { socket, service: service.clone() })
            }
            Endpoint::Direct | Endpoint::Ssh { .. } | Endpoint::Object { .. } => None,
        }
    }
}

/// Dials a Unix or TCP socket.
#[derive(Debug, Clone)]
pub struct SocketDial {
    /// Where to.
    pub place: Place,
    /// Moves a new socket to a descriptor number where it is not in the program's way.
    pub move_away: fn(OwnedFd) -> OwnedFd,
}

impl SocketDial {
    /// A dialer that leaves sockets at the number that the kernel gave.
    #[must_use]
    pub fn new(place: Place) -> Self {
        Self { place, move_away: |socket| socket }
    }

    fn unix(&self, path: &PathBuf) -> std::result::Result<OwnedFd, Errno> {
        self.unix_address(&SocketAddrUnix::new(path).map_err(errno_of)?)
    }

    fn unix_address(&self, address: &SocketAddrUnix) -> std::result::Result<OwnedFd, Errno> {
        let socket = self.socket(AddressFamily::UNIX)?;
        connect_within(&socket, &address.clone().into())?;
        // Best effort: the kernel may cap what we ask for.
        let _ = sockopt::set_socket_send_buffer_size(&socket, UNIX_SEND_BUFFER);
        Ok(socket)
    }

    fn tcp(&self, address: SocketAddr, timeout: Duration) -> std::result::Result<OwnedFd, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = self.socket(family)?;
        if address.ip().is_loopback() {
            // Best effort: without it everything works, only slower.
            let _ = sockopt::set_tcp_congestion(&socket, LOOPBACK_CONGESTION_CONTROL);
        }
        connect_within(&socket, &address.into())?;
        let options = || -> rustix::io::Result<()> {
            sockopt::set_tcp_nodelay(&socket, true)?;
            if address.ip().is_loopback() {
                sockopt::set_socket_send_buffer_size(&socket, LOOPBACK_SEND_BUFFER)?;
            }
            sockopt::set_socket_keepalive(&socket, true)?;
            sockopt::set_tcp_keepidle(&socket, Duration::from_secs(20))?;
            sockopt::set_tcp_keepintvl(&socket, Duration::from_secs(5))?;
            // How long sent data may stay unacknowledged (tcp(7)).
            let limit = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
            sockopt::set_tcp_user_timeout(&socket, limit)
        };
        options().map_err(errno_of)?;
        Ok(socket)
    }

    fn socket(&self, family: AddressFamily) -> std::result::Result<OwnedFd, Errno> {
        // Non-blocking only until connected, so that connecting can be given up.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(errno_of)?;
        Ok((self.move_away)(socket))
    }

    /// Why a host's name led nowhere: libc does not say when it had no descriptor to look it up with.
    fn unresolved(&self, host: &str) -> Error {
        match self.socket(AddressFamily::INET) {
            Err(errno @ (Errno::EMFILE | Errno::ENFILE)) => {
                Error::Unreachable { peer: self.peer(), errno }
            }
            _ => Error::UnknownHost { peer: self.peer(), host: host.to_owned() },
        }
    }

    fn connected(&self, timeout: Duration) -> Result<OwnedFd> {
        let outcome = match &self.place {
            Place::Unix(path) => self.unix(path),
            Place::Job { socket, service } => {
                let address = SocketAddrUnix::new_abstract_name(socket).map_err(errno_of);
                return address.and_then(|address| self.unix_address(&address)).map_err(|errno| {
                    match errno {
                        // Nobody listens: no such service, or none now.
                        Errno::ECONNREFUSED => Error::NotInJob { service: service.clone() },
                        errno => Error::Unreachable { peer: self.peer(), errno },
                    }
                });
            }
            Place::Tcp { host, port } => {
                let Ok(addresses) = (host.as_str(), *port).to_socket_addrs() else {
                    return Err(self.unresolved(host));
                };
                let mut outcome = Err(Errno::EHOSTUNREACH);
                for address in addresses {
                    outcome = self.tcp(address, timeout);
                    if outcome.is_ok() {
                        break;
                    }
                }
                outcome
            }
        };
        outcome.map_err(|errno| Error::Unreachable { peer: self.peer(), errno })
    }
}

impl Dial for SocketDial {
    fn dial(&self, request_timeout: Duration) -> Result<Link> {
        let socket = self.connected(request_timeout)?;
        let finish = || {
            rustix::io::ioctl_fionbio(&socket, false)?;
            let receive = sockopt::Timeout::Recv;
            sockopt::set_socket_timeout(&socket, receive, Some(request_timeout))
        };
        finish()
            .map_err(|error| Error::Unreachable { peer: self.peer(), errno: errno_of(error) })?;
        Ok(Link::Stream(socket))
    }

    fn peer(&self) -> String {
        match &self.place {
            Place::Unix(path) => path.display().to_string(),
            Place::Job { service, .. } => format!("service `{service}` of this MPI job"),
            Place::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Place::Tcp { host, port } => format!("{host}:{port}"),
        }
    }
}

/// Connects, for at most [`CONNECT_TIMEOUT`].
fn connect_within(socket: &OwnedFd, address: &SocketAddrAny) -> std::result::Result<(), Errno> {
    let limit = Timespec { tv_sec: CONNECT_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
    match connect(socket, address) {
        Ok(()) => return Ok(()),
        Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::INTR) => {}
        // A Unix socket whose queue is full: connect(2) cannot be waited for there.
        Err(rustix::io::Errno::AGAIN) => return Err(Errno::ECONNREFUSED),
        Err(error) => return Err(errno_of(error)),
    }
    loop {
        let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)];
        match poll(&mut fds, Some(&limit)) {
            Ok(0) => return Err(Errno::ETIMEDOUT),
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) if interrupted() => return Err(INTERRUPTED),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(errno_of(error)),
        }
    }
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) | Err(error) => Err(errno_of(error)),
    }
}

/// "Dials" a service in this process.
struct Direct(Arc<dyn Exchange>);

impl Dial for Direct {
    fn dial(&self, _request_timeout: Duration) -> Result<Link> {
        Ok(Link::Local(Arc::clone(&self.0)))
    }

    fn peer(&self) -> String {
        "this process".to_owned()
    }
}

/// A dialer for a service in the same process: every request is a function call.
#[must_use]
pub fn direct(service: Arc<dyn Exchange>) -> impl Dial {
    Direct(service)
}
