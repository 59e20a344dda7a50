//! A service in operation: listeners, connections, and their end.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{self, Timeout};
use store::Store;

use crate::connection::{Bounds, Connection, Pool, Socket, serve};
use crate::direct::next_session;
use crate::listen::{Address, Admission, Listen, Listener};
use crate::session::Session;
use crate::{Error, Limits, Result};

/// How long [`Running::stop`] lets answers in progress leave.
const GRACE: Duration = Duration::from_secs(5);

/// Bytes asked for as a Unix socket's send buffer. The default (208 KiB) makes sender and
/// receiver take turns for every piece of a large read.
const UNIX_BUFFER_BYTES: usize = 1 << 20;

/// A service that is not running yet.
pub struct Service;

impl Service {
    /// Begins to describe a service over `store`.
    #[must_use]
    pub fn builder(store: Arc<dyn Store>) -> Builder {
        Builder {
            store,
            limits: Limits::default(),
            listen: Vec::new(),
            admission: Admission::default(),
        }
    }
}

/// What a service is to be.
pub struct Builder {
    store: Arc<dyn Store>,
    limits: Limits,
    listen: Vec<Listen>,
    admission: Admission,
}

impl Builder {
    /// Adds a place to listen; there may be several, or none ([`Running::adopt`]).
    #[must_use]
    pub fn listen(mut self, listen: Listen) -> Self {
        self.listen.push(listen);
        self
    }

    /// Sets what clients may take.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Allows TCP addresses that other machines can reach, although nothing is encrypted.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.admission.insecure = insecure;
        self
    }

    /// Lets other users of this machine connect to Unix sockets. All of them then act with the
    /// rights of the service's user.
    #[must_use]
    pub fn any_user(mut self, any_user: bool) -> Self {
        self.admission.any_user = any_user;
        self
    }

    /// Binds all addresses and starts to serve. The process's soft limit of open files is raised
    /// to its hard limit, because clients' open files are this process's.
    ///
    /// # Errors
    /// When an address cannot be had; then none is.
    pub fn start(self) -> Result<Running> {
        // Refused only by sandboxes; then there are fewer open files to be had.
        let _ = store::fs::raise_descriptor_limit();
        let mut listeners = Vec::new();
        for listen in &self.listen {
            match Listener::bind(listen, self.admission) {
                Ok(listener) => listeners.push(Arc::new(listener)),
                Err(error) => {
                    listeners.iter().for_each(|listener| listener.close());
                    return Err(error);
                }
            }
        }
        let shared = Arc::new(Shared {
            store: self.store,
            limits: self.limits,
            stopping: AtomicBool::new(false),
            lines: Mutex::default(),
            gone: Condvar::new(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            requests: Arc::default(),
        });
        let running = Running { shared, listeners };
        for listener in &running.listeners {
            let shared = Arc::clone(&running.shared);
            let listener = Arc::clone(listener);
            thread::Builder::new()
                .name("9p-listener".into())
                .spawn(move || shared.accept_all(&listener))
                .map_err(|source| Error::Thread { source })?;
        }
        Ok(running)
    }
}

/// What a service has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections turned away: the wrong user, or too many.
    pub refused: u64,
    /// Connections now.
    pub connections: u64,
    /// Requests received.
    pub requests: u64,
}

/// A service in operation. Dropping it stops it.
pub struct Running {
    shared: Arc<Shared>,
    listeners: Vec<Arc<Listener>>,
}

impl Running {
    /// Where clients can connect, in the order of [`Builder::listen`].
    #[must_use]
    pub fn addresses(&self) -> Vec<Address> {
        self.listeners.iter().map(|listener| listener.address().clone()).collect()
    }

    /// What was done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            accepted: self.shared.accepted.load(Ordering::Relaxed),
            refused: self.shared.refused.load(Ordering::Relaxed),
            connections: self.shared.lines().len() as u64,
            requests: self.shared.requests.load(Ordering::Relaxed),
        }
    }

    /// Serves a stream socket that is connected already, such as one end of a socketpair(2).
    ///
    /// # Errors
    /// [`Error::Thread`].
    pub fn adopt(&self, socket: OwnedFd) -> Result<()> {
        self.shared.serve(socket).map_err(|source| Error::Thread { source })
    }

    /// Stops: no new connections, no new requests; answers in progress may leave for some
    /// seconds. True when every connection has ended; false when a store still holds one up.
    pub fn stop(self) -> bool {
        self.end()
    }

    fn end(&self) -> bool {
        self.shared.stopping.store(true, Ordering::Release);
        self.listeners.iter().for_each(|listener| listener.close());
        for line in self.shared.lines().values() {
            // What has arrived is still answered; then the connection finds its end.
            line.worker().socket().shut_down_receiving();
        }
        if self.shared.wait_until_gone(GRACE) {
            return true;
        }
        for line in self.shared.lines().values() {
            line.worker().socket().shut_down();
        }
        self.shared.wait_until_gone(GRACE)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// What listeners and connections share.
struct Shared {
    store: Arc<dyn Store>,
    limits: Limits,
    stopping: AtomicBool,
    /// Connections by session number.
    lines: Mutex<HashMap<u64, Arc<Pool<Connection>>>>,
    /// A connection has ended.
    gone: Condvar,
    accepted: AtomicU64,
    refused: AtomicU64,
    requests: Arc<AtomicU64>,
}

impl Shared {
    fn lines(&self) -> MutexGuard<'_, HashMap<u64, Arc<Pool<Connection>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept_all(self: &Arc<Self>, listener: &Listener) {
        while !self.stopping.load(Ordering::Acquire) {
            match listener.accept() {
                Ok(Some(socket)) => {
                    if self.serve(socket).is_err() {
                        self.refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(None) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) if self.stopping.load(Ordering::Acquire) => break,
                // The client gave up, or descriptors have run out (accept(2)): others go on, and
                // so does this one as soon as there is room.
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Starts a connection's thread. The socket is closed if that fails.
    fn serve(self: &Arc<Self>, socket: OwnedFd) -> io::Result<()> {
        self.prepare(&socket)?;
        let id = next_session();
        let session = Session::new(Arc::clone(&self.store), self.limits.clone(), id);
        let connection = Connection::new(Socket::new(socket), session, Arc::clone(&self.requests));
        let bounds = Bounds {
            waiting: self.limits.waiting,
            bytes: self.limits.waiting_bytes,
            workers: self.limits.workers,
        };
        let line = Arc::new(Pool::new(connection, bounds));
        {
            let mut lines = self.lines();
            if lines.len() >= self.limits.connections {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            lines.insert(id, Arc::clone(&line));
        }
        let end = End { shared: Arc::clone(self), id };
        // If the thread cannot be started, dropping the closure takes the entry out again.
        thread::Builder::new().name("9p-connection".into()).spawn(move || {
            let end = end;
            serve(&line);
            drop(line);
            drop(end);
        })?;
        self.accepted.fetch_add(1, Ordering::Relaxed);
        // A connection that came in while the others were told to end is told now.
        if self.stopping.load(Ordering::Acquire)
            && let Some(line) = self.lines().get(&id)
        {
            line.worker().socket().shut_down_receiving();
        }
        Ok(())
    }

    fn prepare(&self, socket: &OwnedFd) -> io::Result<()> {
        sockopt::set_socket_timeout(socket, Timeout::Recv, self.limits.idle)?;
        sockopt::set_socket_timeout(socket, Timeout::Send, Some(self.limits.stall))?;
        if sockopt::socket_domain(socket)? == rustix::net::AddressFamily::UNIX {
            // Above the system's limit only with the right to; less is slower, not wrong.
            let _ = sockopt::set_socket_send_buffer_size(socket, UNIX_BUFFER_BYTES);
        }
        Ok(())
    }

    fn wait_until_gone(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        let mut lines = self.lines();
        while !lines.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            lines = self.gone.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Takes a connection out of the table when its thread ends, by a panic too.
struct End {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for End {
    fn drop(&mut self) {
        let gone = self.shared.lines().remove(&self.id);
        if let Some(line) = &gone {
            line.worker().socket().shut_down();
        }
        drop(gone);
        self.shared.gone.notify_all();
    }
}
