//! A session: one service, one connection at a time, made again when it breaks.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use p9::{Dialect, Errno, Fid};

use crate::connection::Connection;
use crate::dial::Dial;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::interrupt::{INTERRUPTED, interrupted};
use crate::live::Live;
use crate::options::Options;
use crate::path::{Parsed, names_of};
use crate::resolve::{Outcome, Plan, Resolver, Start};
use crate::siblings::Registry;

/// Waits between attempts to make a connection again.
const BACK_OFF_MIN: Duration = Duration::from_millis(20);
const BACK_OFF_MAX: Duration = Duration::from_millis(500);

/// For how long a service may keep a new connection waiting for the answer to `Tversion`.
const NEGOTIATION_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether a request may be made twice when its connection broke before the reply came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// It has the same effect twice as once: reads, writes at an offset, fsync, walks.
    Safe,
    /// Once too often would be wrong: appends, creations, removals, locks. It is made again only
    /// when it surely was not sent.
    OnlyUnsent,
}

/// A path at a service: relative to an open directory or to the service's root.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// Where the path starts; the service's root when there is none.
    pub dir: Option<&'a Handle>,
    /// Components separated by slashes; empty for the start itself. A slash at the end means that
    /// it must be a directory.
    pub path: &'a [u8],
}

impl<'a> At<'a> {
    /// A path from the service's root.
    #[must_use]
    pub fn root(path: &'a [u8]) -> Self {
        Self { dir: None, path }
    }

    /// A path from an open directory.
    #[must_use]
    pub fn dir(dir: &'a Handle, path: &'a [u8]) -> Self {
        Self { dir: Some(dir), path }
    }
}

/// One service. Connects when first needed.
pub struct Session {
    dial: Box<dyn Dial>,
    options: Options,
    generations: AtomicU32,
    /// How often it was left to a parent.
    forks: AtomicU32,
    /// The service has refused the extended dialect.
    plain: AtomicBool,
    line: Line,
    files: Registry,
}

/// What belongs to one process's use of a session. A fork's child goes over to a fresh one, see
/// [`Session::abandon`].
#[derive(Default)]
struct Line {
    current: RwLock<Option<Arc<Live>>>,
    /// Held while a connection is being made.
    dialing: Mutex<Dialing>,
    next: OnceLock<Box<Line>>,
}

#[derive(Default)]
struct Dialing {
    /// There was a connection once, so that a missing service is a break and not a wrong address.
    connected_once: bool,
    /// When the connection was first found broken.
    broken_since: Option<Instant>,
    /// The time for making it again is over.
    given_up: bool,
}

impl Session {
    /// A session that dials when first used.
    #[must_use]
    pub fn new(dial: Box<dyn Dial>, options: Options) -> Arc<Self> {
        Arc::new(Self {
            dial,
            options,
            generations: AtomicU32::new(1),
            forks: AtomicU32::new(0),
            plain: AtomicBool::new(false),
            line: Line::default(),
            files: Registry::default(),
        })
    }

    /// What the session was told.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The service's name in messages to people.
    #[must_use]
    pub fn peer(&self) -> String {
        self.dial.peer()
    }

    /// The remote files that are open.
    #[must_use]
    pub fn files(&self) -> &Registry {
        &self.files
    }

    /// Makes the connection, if there is none, without asking anything of the service.
    ///
    /// # Errors
    /// When the service cannot be reached or speaks another protocol.
    pub fn connect(&self) -> Result<()> {
        self.live().map(|_| ())
    }

    /// For the child after fork(2): leaves the connection to the parent. Nothing is sent on it and
    /// no lock is waited for that a thread of the parent may have held; the child's next operation
    /// dials anew, and handles are opened again on the new connection when next used.
    ///
    /// Locks (fcntl(2)) belong to processes, so the child has none, and what the parent has written
    /// but not synced is the parent's to be told of.
    pub fn abandon(&self) {
        let line = self.line();
        // Another thread of this child may have done it just now; one fresh line is enough.
        if line.next.set(Box::default()).is_ok() {
            self.forks.fetch_add(1, Ordering::Relaxed);
        }
        if let Ok(mut current) = line.current.try_write() {
            // Closes our copy of the descriptor.
            if let Some(live) = current.take() {
                live.connection.abandon();
            }
        }
    }

    /// Before the process ends or becomes another program: a service that does not bear a client's
    /// leaving with requests unanswered gets the time to answer them.
    pub fn part(&self) {
        if let Some(live) = self.current() {
            live.connection.part();
        }
    }

    /// How many forks lie between the process that made it and this one: what a handle remembers of an ancestor's
    /// doings has another number.
    pub(crate) fn forks(&self) -> u32 {
        self.forks.load(Ordering::Relaxed)
    }

    fn line(&self) -> &Line {
        let mut line = &self.line;
        while let Some(next) = line.next.get() {
            line = next;
        }
        line
    }

    /// The connection in use, if one is up.
    pub(crate) fn current(&self) -> Option<Arc<Live>> {
        let current = self.line().current.read().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|live| !live.connection.is_broken()).cloned()
    }

    /// The connection in use, or a new one.
    pub(crate) fn live(&self) -> Result<Arc<Live>> {
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let line = self.line();
        let mut dialing = line.dialing.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been faster.
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let live = Arc::new(self.dial_until_over(&mut dialing)?);
        let mut current = line.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::clone(&live));
        Ok(live)
    }

    /// Dials; after a break again and again until the time for that is over. When it is, every
    /// further operation tries just once, so that a program with many files does not wait for each.
    fn dial_until_over(&self, dialing: &mut Dialing) -> Result<Live> {
        let mut wait = BACK_OFF_MIN;
        let since = *dialing.broken_since.get_or_insert_with(Instant::now);
        loop {
            if interrupted() {
                return Err(self.given_up());
            }
            match self.dial_once() {
                Ok(live) => {
                    *dialing = Dialing { connected_once: true, ..Dialing::default() };
                    return Ok(live);
                }
                Err(error) if !dialing.connected_once || error.is_local_shortage() => {
                    dialing.broken_since = None;
                    return Err(error);
                }
                Err(error) => {
                    let over = since.elapsed() + wait > self.options.reconnect_for;
                    if dialing.given_up || over || !error.is_retryable() {
                        dialing.given_up = true;
                        return Err(after_break(error));
                    }
                }
            }
            pause(wait);
            wait = (wait * 2).min(BACK_OFF_MAX);
        }
    }

    /// A signal came while something was waited for.
    fn given_up(&self) -> Error {
        Error::Lost { peer: self.dial.peer(), errno: INTERRUPTED }
    }

    fn dial_once(&self) -> Result<Live> {
        let connection = if self.plain.load(Ordering::Relaxed) {
            self.negotiate(Dialect::Linux)?
        } else {
            match self.negotiate(Dialect::Sluice) {
                // A foreign service may answer an extension that it does not know by anything
                // but plain 9P2000.L, and must then be asked for that on a connection of its own.
                Err(Error::Version { .. }) => {
                    let connection = self.negotiate(Dialect::Linux)?;
                    self.plain.store(true, Ordering::Relaxed);
                    connection
                }
                other => other?,
            }
        };
        connection.limit_waits(self.options.request_timeout);
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        Ok(Live::new(connection, generation, &self.options.uname))
    }

    fn negotiate(&self, dialect: Dialect) -> Result<Connection> {
        let timeout = self.options.request_timeout;
        let link = self.dial.dial(timeout)?;
        // Whatever a service may be busy with later, it says at once what it speaks.
        link.limit_waits(timeout.min(NEGOTIATION_TIMEOUT));
        Connection::negotiate(link, &self.dial.peer(), self.options.msize, dialect)
    }

    /// Runs `work` on a connection, and again on a new one when the old one breaks meanwhile and
    /// `repeat` allows it.
    pub(crate) fn attempt<T>(
        &self,
        repeat: Repeat,
        mut work: impl FnMut(&Arc<Live>) -> Result<T>,
    ) -> Result<T> {
        let mut first_break: Option<Instant> = None;
        let mut wait = Duration::ZERO;
        loop {
            let live = self.live()?;
            let outcome = match repeat {
                Repeat::Safe => work(&live),
                Repeat::OnlyUnsent => live.connection.probe().and_then(|()| work(&live)),
            };
            let error = match outcome {
                Err(error @ Error::NotSent { .. }) => error,
                Err(error @ Error::Lost { .. }) if repeat == Repeat::Safe => error,
                other => return other,
            };
            if interrupted() {
                return Err(self.given_up());
            }
            // A service that breaks again and again at the same request: first at once, then
            // slower, then not any more.
            let since = *first_break.get_or_insert_with(Instant::now);
            if since.elapsed() + wait > self.options.reconnect_for {
                return Err(error);
            }
            if !wait.is_zero() {
                pause(wait);
            }
            wait = (wait * 2).clamp(BACK_OFF_MIN, BACK_OFF_MAX);
        }
    }

    /// Resolves a path with a plan on a given connection.
    pub(crate) fn resolve<'p, T>(
        live: &Arc<Live>,
        at: At<'_>,
        parsed: &Parsed<'_>,
        plan: &Plan<'p>,
        done: impl FnOnce(Outcome<'_>, Fid) -> Result<T>,
    ) -> Result<T> {
        let run = |start: Start<'_>, parsed: &Parsed<'_>| {
            let outcome = Resolver::new(live, start, parsed).run(plan)?;
            done(outcome, start.fid)
        };
        match at.dir {
            None => {
                let root = live.root_of(&parsed.names)?;
                let way: Vec<&[u8]> = root.prefix.iter().map(Vec::as_slice).collect();
                let below = Parsed { names: parsed.names[way.len()..].to_vec(), ..parsed.clone() };
                let floor = way.len().max(1);
                run(Start { fid: root.fid, way: &way, floor }, &below)
            }
            Some(dir) => {
                let fid = dir.place(live)?;
                let location = dir.location();
                let way = names_of(&location);
                run(Start { fid, way: &way, floor: dir.floor(live, &way)? }, parsed)
            }
        }
    }
}

/// Once a connection was up, a service that cannot be reached is a broken one: programs know how
/// to handle `EIO` from a file they had, not `ECONNREFUSED`.
fn after_break(error: Error) -> Error {
    match error {
        Error::Unreachable { peer, errno } => Error::Lost { peer, errno },
        Error::UnknownHost { peer, .. } => Error::Lost { peer, errno: Errno::EHOSTUNREACH },
        Error::NotInJob { service } => {
            let peer = format!("service `{service}` of this MPI job");
            Error::Lost { peer, errno: Errno::ECONNREFUSED }
        }
        other => other,
    }
}

/// Sleeps by a raw call.
pub(crate) fn pause(time: Duration) {
    if let Ok(time) = rustix::time::Timespec::try_from(time) {
        let _ = rustix::thread::nanosleep(&time);
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        Error::Refused(errno)
    }
}
