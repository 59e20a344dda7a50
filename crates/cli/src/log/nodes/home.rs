//! The way to the home, and how it lets the others in.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use client::{Dial, Error, Link, Options, Place, Session, SocketDial};
use p9::Errno;
use rustix::net::sockopt;
use service::Running;
use store::relay::RelayStore;
use store::{Node as StoreNode, Store};

use super::greeting::{self, Secret};
use super::{Meeting, Node};
use crate::log::files::Place as LogPlace;

/// Callers whose greeting is awaited at a time; others are turned away.
const GREETING_MAX: usize = 64;
/// A caller that vanished without a word is noticed within two minutes.
const SILENT: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(10), 6);
/// How long a node may be silent while it is asked something.
const ANSWER: Duration = Duration::from_secs(60);

/// A socket at which those are let in who know a secret, until this is dropped.
pub(crate) struct Gate {
    listener: Arc<TcpListener>,
    closed: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Gate {
    /// Lets callers in; `serve` gets each in a thread of its own.
    pub(crate) fn open(
        listener: TcpListener,
        secret: Secret,
        serve: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = Arc::new(listener);
        let closed = Arc::new(AtomicBool::new(false));
        let (serve, greeting) = (Arc::new(serve), Arc::new(AtomicUsize::new(0)));
        let thread = {
            let (listener, closed) = (Arc::clone(&listener), Arc::clone(&closed));
            std::thread::spawn(move || {
                while !closed.load(Ordering::Acquire) {
                    let Ok((mut stream, _)) = listener.accept() else {
                        // The caller gave up, or descriptors have run out (accept(2)).
                        std::thread::sleep(Duration::from_millis(20));
                        continue;
                    };
                    if greeting.fetch_add(1, Ordering::AcqRel) >= GREETING_MAX {
                        greeting.fetch_sub(1, Ordering::AcqRel);
                        continue;
                    }
                    let (serve, greeting) = (Arc::clone(&serve), Arc::clone(&greeting));
                    let secret = secret.clone();
                    std::thread::spawn(move || {
                        let greeted = greeting::receive(&mut stream, &secret);
                        greeting.fetch_sub(1, Ordering::AcqRel);
                        if greeted.and_then(|()| Ok(watched(&stream)?)).is_ok() {
                            serve(stream);
                        }
                    });
                }
            })
        };
        Self { listener, closed, thread: Some(thread) }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        // On Linux this wakes a thread that waits in accept(2).
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watched(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENT.0)?;
    sockopt::set_tcp_keepintvl(stream, SILENT.1)?;
    sockopt::set_tcp_keepcnt(stream, SILENT.2)
}

/// Lets the agents of other nodes in, and tells them where.
pub(crate) fn welcome(
    meeting: &Meeting,
    place: &LogPlace,
    (log, target): (&str, &str),
    listen: Option<&str>,
    running: &Arc<Running>,
) -> Result<Gate> {
    let (listener, address) = super::listener(listen)?;
    let secret = Secret::random().context("no random numbers for a secret")?;
    let running: Weak<Running> = Arc::downgrade(running);
    let gate = Gate::open(listener, secret.clone(), move |stream| {
        if let Some(running) = running.upgrade() {
            // Closed where it cannot be served: the caller sees that.
            let _ = running.adopt(OwnedFd::from(stream));
        }
    });
    let here = Node::here(place, target);
    meeting.publish_home(&Node { log: log.to_owned(), address: Some(address), secret, ..here })?;
    Ok(gate)
}

/// Calls an agent of another node.
pub(crate) fn call(node: &Node) -> Result<TcpStream> {
    let Some(dial) = NodeDial::to(node) else {
        bail!("the agent on {} has not said where it is", node.host);
    };
    dial.stream(ANSWER)
        .with_context(|| format!("cannot reach the agent on {} ({})", node.host, dial.peer()))
}

/// Whether the home answers; false: it has not begun yet.
pub(crate) fn reach(home: &Node) -> Result<bool> {
    match home.address {
        Some(_) => call(home).map(|_| true),
        None => Ok(false),
    }
}

/// Dials an agent, and proves to belong to its job.
struct NodeDial {
    socket: SocketDial,
    secret: Secret,
}

impl NodeDial {
    fn to(node: &Node) -> Option<Self> {
        let address: std::net::SocketAddr = node.address.as_ref()?.parse().ok()?;
        let place = Place::Tcp { host: address.ip().to_string(), port: address.port() };
        Some(Self { socket: SocketDial::new(place), secret: node.secret.clone() })
    }

    fn stream(&self, request_timeout: Duration) -> client::Result<TcpStream> {
        let refused = |error: std::io::Error| Error::Unreachable {
            peer: self.peer(),
            errno: error.raw_os_error().map_or(Errno::EACCES, Errno::from_raw),
        };
        let Link::Stream(socket) = self.socket.dial(request_timeout)? else {
            return Err(refused(std::io::ErrorKind::Unsupported.into()));
        };
        let mut stream = TcpStream::from(socket);
        greeting::call(&mut stream, &self.secret).map_err(refused)?;
        stream.set_read_timeout(Some(request_timeout)).map_err(refused)?;
        Ok(stream)
    }
}

impl Dial for NodeDial {
    fn dial(&self, request_timeout: Duration) -> client::Result<Link> {
        Ok(Link::Stream(self.stream(request_timeout)?.into()))
    }

    fn peer(&self) -> String {
        self.socket.peer()
    }
}

/// The home's store, each time by a connection of its own: there, too, one stream is one process, and when that is
/// killed the home sees its connection break.
pub(crate) struct HomeStore {
    home: Node,
}

impl HomeStore {
    pub(crate) fn new(home: Node) -> Self {
        Self { home }
    }
}

impl Store for HomeStore {
    fn root(&self) -> store::Result<Arc<dyn StoreNode>> {
        let unreachable =
            || store::Error::System { operation: "attach", errno: Errno::EHOSTUNREACH };
        let dial = NodeDial::to(&self.home).ok_or_else(unreachable)?;
        // A connection made again would be another stream: what the first one had written is lost with it.
        let options = Options {
            reconnect_for: Duration::ZERO,
            request_timeout: ANSWER,
            ..Options::default()
        };
        RelayStore::new(Session::new(Box::new(dial), options), b"").root()
    }

    fn blocks(&self) -> bool {
        true
    }
}
