//! One connection: many requests in flight, no thread of its own.

mod receive;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use p9::frame::IO_HEADER_LEN;
use p9::{Data, Dialect, Errno, Fid, Reply, Request, Tag};
use rustix::net::sockopt::{self, Timeout};

use crate::error::{Error, ProtocolError, Result};
use crate::interrupt::{INTERRUPTED, interrupted};
use crate::link::{Exchange, Link, Sent, has_hung_up, has_input, send_some, wait_either};
use crate::lock;
use receive::{Arrival, Receiver};

/// Replies shorter than this are received into memory of their own: the spare buffers are kept as
/// long as they were once filled, which need not be done again then.
const SPARE_LEN_MIN: usize = 4096;

/// Requests without a reply, or with one not yet asked for; tags are indices below this. All that
/// the protocol has: files that are open and not being read may each keep a few.
const IN_FLIGHT_MAX: usize = Tag::NONE.0 as usize;

/// `Tversion` travels with `NOTAG`; it is the first request of all and has this slot.
const VERSION_SLOT: Tag = Tag(0);

/// How long the last replies of a foreign service are waited for before hanging up.
const PARTING_TIME_MAX: Duration = Duration::from_millis(500);

/// Reply buffers kept for the next replies.
const SPARE_BUFFERS_MAX: usize = 24;

/// A request whose reply is to be waited for, or given up with [`Connection::forget`].
#[derive(Debug)]
#[must_use = "a request that nobody waits for keeps its tag"]
pub struct Ticket {
    tag: Tag,
    asked: u8,
}

/// A reply as it arrived.
#[derive(Debug)]
pub struct Body {
    kind: u8,
    bytes: Vec<u8>,
    /// Where the fields begin: a local service's reply keeps its header in front.
    start: usize,
}

impl Body {
    /// The reply's message.
    ///
    /// # Errors
    /// When the service sent fields that the protocol does not allow.
    pub fn reply(&self) -> std::result::Result<Reply<'_>, ProtocolError> {
        Ok(Reply::decode(self.kind, &self.bytes[self.start..])?)
    }

    /// The data of a `Rread`, `Rreaddir`: the bytes behind the count.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.bytes.get(self.start + 4..).unwrap_or(&[])
    }

    /// The same, to be changed.
    pub(crate) fn data_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start + 4..).unwrap_or(&mut [])
    }
}

enum Slot {
    Free,
    Waiting,
    /// Nobody will ask: drop the reply when it comes.
    Forgotten,
    Arrived(Body),
}

struct Slots {
    entries: Vec<Slot>,
    free: VecDeque<u16>,
    /// Some thread is reading the socket.
    reader: bool,
    waiters: usize,
    failed: Option<Error>,
    spare: Vec<Vec<u8>>,
}

/// A negotiated connection to a service. All methods may be called from any thread.
pub struct Connection {
    link: Link,
    peer: String,
    msize: u32,
    dialect: Dialect,
    /// Another process goes on with it.
    abandoned: AtomicBool,
    /// How long the socket may stay full.
    patience: Option<Duration>,
    /// Guards the order of frames on the wire; holds the buffer for their heads.
    sender: Mutex<Vec<u8>>,
    /// Held by the thread that has `Slots::reader`.
    receiver: Mutex<Receiver>,
    slots: Mutex<Slots>,
    arrived: Condvar,
}

impl Connection {
    /// Negotiates version and message size over a fresh link: `dialect` or, where the service does
    /// not know it, what it extends. `peer` names the service in errors. A socket's `SO_RCVTIMEO`
    /// bounds how long the service may be silent or deaf.
    ///
    /// # Errors
    /// [`Error::Version`] when the peer speaks no 9P2000.L; when the link breaks.
    pub fn negotiate(link: Link, peer: &str, msize: u32, dialect: Dialect) -> Result<Self> {
        let patience = match &link {
            Link::Stream(socket) => sockopt::socket_timeout(socket, Timeout::Recv).ok().flatten(),
            Link::Local(_) => None,
        };
        let mut connection = Self {
            link,
            patience,
            peer: peer.to_owned(),
            msize,
            dialect,
            abandoned: AtomicBool::new(false),
            sender: Mutex::new(Vec::with_capacity(4096)),
            receiver: Mutex::new(Receiver::new()),
            slots: Mutex::new(Slots {
                entries: Vec::new(),
                free: VecDeque::new(),
                reader: false,
                waiters: 0,
                failed: None,
                spare: Vec::new(),
            }),
            arrived: Condvar::new(),
        };
        let version = dialect.as_str().as_bytes();
        let body = match connection.call(&Request::Version { msize, version }) {
            Ok(body) => body,
            // version(5) knows no refusal but `unknown`; diod refuses what it does not know.
            Err(Error::Refused(errno)) => return Err(connection.unknown_version(errno.message())),
            Err(error) => return Err(error),
        };
        let Reply::Version { msize: agreed, version } =
            body.reply().map_err(|e| connection.protocol(e))?
        else {
            return Err(connection.wrong_reply(&body, 100));
        };
        match Dialect::negotiate(version) {
            Some(answer @ (Dialect::Sluice | Dialect::Linux))
                if agreed >= 512 && answer.as_str().as_bytes() == version =>
            {
                connection.msize = agreed.min(msize);
                connection.dialect = answer;
                Ok(connection)
            }
            _ => Err(connection.unknown_version(&String::from_utf8_lossy(version))),
        }
    }

    fn unknown_version(&self, version: &str) -> Error {
        Error::Version { peer: self.peer.clone(), version: version.to_owned() }
    }

    /// Whether the service acts on requests in the order in which they arrive, so that one may be
    /// sent that depends on another without waiting for that one's reply.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.dialect == Dialect::Sluice
    }

    /// Bounds how long a reply may be awaited in silence.
    pub(crate) fn limit_waits(&self, limit: Duration) {
        self.link.limit_waits(limit);
    }

    /// Who is at the other end.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The negotiated message size in bytes.
    #[must_use]
    pub fn msize(&self) -> u32 {
        self.msize
    }

    /// The most data that one read or write may carry, in bytes: what is left of the message
    /// size, in whole pages.
    #[must_use]
    pub fn payload_max(&self) -> usize {
        let room = (self.msize - IO_HEADER_LEN) as usize;
        if room >= 4096 { room & !4095 } else { room }
    }

    /// Whether the connection has broken; a new one is needed then.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        lock(&self.slots).failed.is_some()
    }

    /// Sends a request and returns at once.
    ///
    /// # Errors
    /// When the connection is broken or breaks.
    pub fn submit(&self, request: &Request<'_>) -> Result<Ticket> {
        let ticket = self.take_tag(request)?;
        let outcome = match &self.link {
            Link::Stream(socket) => {
                let mut frames = lock(&self.sender);
                frames.clear();
                let tail = self.encode(request, ticket.tag, &mut frames);
                tail.and_then(|tail| self.send(socket, &frames, tail))
            }
            Link::Local(service) => self.exchange(service.as_ref(), request, ticket.tag),
        };
        match outcome {
            Ok(()) => Ok(ticket),
            Err(error) => {
                self.fail(&error);
                self.cancel(ticket.tag);
                Err(error)
            }
        }
    }

    /// Sends several small requests at once, in one system call where the socket has room. Data
    /// that they carry is copied.
    ///
    /// # Errors
    /// As [`Connection::submit`]; with [`Error::NotSent`] and [`Error::Refused`] none of them was
    /// sent.
    pub fn submit_all(&self, requests: &[Request<'_>]) -> Result<Vec<Ticket>> {
        let mut tickets = Vec::with_capacity(requests.len());
        let mut outcome = requests
            .iter()
            .try_for_each(|request| self.take_tag(request).map(|ticket| tickets.push(ticket)));
        if outcome.is_ok() {
            outcome = match &self.link {
                Link::Stream(socket) => {
                    let mut frames = lock(&self.sender);
                    frames.clear();
                    let encoded =
                        requests.iter().zip(&tickets).try_for_each(|(request, ticket)| {
                            let tail = self.encode(request, ticket.tag, &mut frames)?;
                            frames.extend_from_slice(tail);
                            Ok(())
                        });
                    encoded.and_then(|()| self.send(socket, &frames, &[]))
                }
                Link::Local(service) => requests
                    .iter()
                    .zip(&tickets)
                    .try_for_each(|(r, ticket)| self.exchange(service.as_ref(), r, ticket.tag)),
            };
        }
        match outcome {
            Ok(()) => Ok(tickets),
            Err(error) => {
                self.fail(&error);
                tickets.iter().for_each(|ticket| self.cancel(ticket.tag));
                Err(error)
            }
        }
    }

    /// Looks whether the service has hung up, without waiting. For requests that must not be made
    /// twice: a connection known to be broken is replaced before they are sent.
    ///
    /// # Errors
    /// [`Error::NotSent`] when the connection is broken.
    pub fn probe(&self) -> Result<()> {
        let hung_up = match &self.link {
            Link::Stream(socket) => has_hung_up(socket),
            Link::Local(_) => false,
        };
        if hung_up {
            self.fail(&self.lost(Errno::ECONNRESET));
        }
        if self.is_broken() { Err(self.not_sent(Errno::ECONNRESET)) } else { Ok(()) }
    }

    /// Waits for a reply. The waiting thread reads the socket when no other does, and hands other
    /// replies to their waiters.
    ///
    /// # Errors
    /// [`Error::Refused`] when the service said so, else what broke the connection.
    pub fn wait(&self, ticket: Ticket) -> Result<Body> {
        match self.wait_into(ticket, &mut [])? {
            Arrival::Body(body) => Ok(body),
            // No room was offered, so nothing can have been put there.
            Arrival::Direct(_) => Err(self.protocol(ProtocolError::TooMuch { count: 0, asked: 0 })),
        }
    }

    /// Sends a request and waits for its reply.
    ///
    /// # Errors
    /// As [`Connection::wait`].
    pub fn call(&self, request: &Request<'_>) -> Result<Body> {
        let ticket = self.submit(request)?;
        self.wait(ticket)
    }

    /// Asks for `count` bytes at `offset`.
    ///
    /// # Errors
    /// As [`Connection::submit`].
    pub fn submit_read(&self, fid: Fid, offset: u64, count: u32) -> Result<Ticket> {
        self.submit(&Request::Read { fid, offset, count })
    }

    /// Waits for a read whose whole count fits into `target` and returns how many bytes came.
    /// The payload goes from the socket straight into `target` when it has not arrived yet.
    ///
    /// # Errors
    /// As [`Connection::wait`].
    pub fn wait_read(&self, ticket: Ticket, target: &mut [u8]) -> Result<usize> {
        match self.wait_into(ticket, target)? {
            Arrival::Direct(count) => Ok(count),
            Arrival::Body(body) => {
                let data = body.data();
                let Some(room) = target.get_mut(..data.len()) else {
                    let count = data.len();
                    return Err(
                        self.protocol(ProtocolError::TooMuch { count, asked: target.len() })
                    );
                };
                room.copy_from_slice(data);
                let count = data.len();
                self.recycle(body);
                Ok(count)
            }
        }
    }

    /// Sends a write.
    ///
    /// # Errors
    /// As [`Connection::submit`].
    pub fn submit_write(&self, fid: Fid, offset: u64, data: &[u8]) -> Result<Ticket> {
        self.submit(&Request::Write { fid, offset, data: Data(data) })
    }

    /// Gives up on a reply: it is dropped when it comes. For clunks nobody waits for and for
    /// read-ahead that turned out useless.
    pub fn forget(&self, ticket: Ticket) {
        let mut slots = lock(&self.slots);
        let index = usize::from(ticket.tag.0);
        match std::mem::replace(&mut slots.entries[index], Slot::Forgotten) {
            Slot::Arrived(body) => {
                slots.release(ticket.tag);
                slots.keep_spare(body.bytes);
            }
            Slot::Waiting | Slot::Forgotten | Slot::Free => {}
        }
    }

    /// Waits until every request has its reply, those included that nobody asks for any more. For
    /// services that do not bear a client's leaving, or a clunk, before that.
    ///
    /// # Errors
    /// When the connection is broken or breaks.
    pub(crate) fn quiesce(&self) -> Result<()> {
        let is_busy = |slots: &Slots| {
            slots.entries.iter().any(|slot| matches!(slot, Slot::Waiting | Slot::Forgotten))
        };
        loop {
            {
                let slots = lock(&self.slots);
                if let Some(error) = &slots.failed {
                    return Err(error.clone());
                }
                if !is_busy(&slots) {
                    return Ok(());
                }
            }
            self.read_one_for_all()?;
        }
    }

    /// Before hanging up: a foreign service may die of replies that nobody takes (diod does, of
    /// SIGPIPE), so they are waited for.
    pub(crate) fn part(&self) {
        if !self.is_ordered() {
            let _ = self.quiesce();
        }
    }

    /// Leaves the connection to another process, which goes on with it.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Takes in the replies that are here already, without waiting for others.
    pub fn take_in(&self) {
        let Link::Stream(socket) = &self.link else { return };
        loop {
            let mut slots = lock(&self.slots);
            if slots.reader || slots.failed.is_some() {
                return;
            }
            slots.reader = true;
            drop(slots);
            let here = lock(&self.receiver).holds_bytes() || has_input(socket);
            let outcome = if here { self.read_frame(None).map(|_| ()) } else { Ok(()) };
            drop(self.leave_reader());
            if let Err(error) = &outcome {
                self.fail(error);
            }
            if !here || outcome.is_err() {
                return;
            }
        }
    }

    /// Whether the reply is here already. Reads nothing from the socket.
    #[must_use]
    pub fn has_arrived(&self, ticket: &Ticket) -> bool {
        matches!(lock(&self.slots).entries[usize::from(ticket.tag.0)], Slot::Arrived(_))
    }

    /// Gives a reply's buffer back for later replies.
    pub fn recycle(&self, body: Body) {
        lock(&self.slots).keep_spare(body.bytes);
    }

    fn take_tag(&self, request: &Request<'_>) -> Result<Ticket> {
        let asked = request.kind();
        loop {
            let mut slots = lock(&self.slots);
            if slots.failed.is_some() {
                return Err(self.not_sent(Errno::ECONNRESET));
            }
            let tag = if let Some(tag) = slots.free.pop_front() {
                tag
            } else if slots.entries.len() < IN_FLIGHT_MAX {
                slots.entries.push(Slot::Free);
                (slots.entries.len() - 1) as u16
            } else if !slots.entries.iter().any(|slot| matches!(slot, Slot::Forgotten)) {
                // Nothing that may still arrive would free a tag.
                return Err(Error::Refused(Errno::ENFILE));
            } else {
                // Every tag is out: take in a reply, which frees a forgotten one sooner or later.
                drop(slots);
                self.read_one_for_all()?;
                continue;
            };
            slots.entries[usize::from(tag)] = Slot::Waiting;
            return Ok(Ticket { tag: Tag(tag), asked });
        }
    }

    /// Appends a request's frame, all but the tail, which is returned.
    fn encode<'a>(
        &self,
        request: &Request<'a>,
        tag: Tag,
        frames: &mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        let start = frames.len();
        let on_wire = if matches!(request, Request::Version { .. }) { Tag::NONE } else { tag };
        let tail = request.encode_head(on_wire, frames);
        if frames.len() - start + tail.len() > self.msize as usize {
            // A name or value that the negotiated messages cannot hold.
            return Err(Error::Refused(Errno::ENAMETOOLONG));
        }
        Ok(tail)
    }

    /// Sends frames. While the socket is full, replies are taken in: the service may be unable to
    /// read because we are not.
    fn send(&self, socket: &OwnedFd, head: &[u8], tail: &[u8]) -> Result<()> {
        let total = head.len() + tail.len();
        let mut sent = 0;
        let mut full_since: Option<Instant> = None;
        while sent < total {
            let head_rest = head.get(sent..).unwrap_or(&[]);
            let tail_rest = &tail[sent.saturating_sub(head.len())..];
            match send_some(socket, head_rest, tail_rest) {
                Ok(Sent::Bytes(count)) => {
                    sent += count;
                    full_since = None;
                }
                Ok(Sent::Full) => {
                    let since = *full_since.get_or_insert_with(Instant::now);
                    if self.patience.is_some_and(|patience| since.elapsed() > patience) {
                        return Err(self.lost(Errno::ETIMEDOUT));
                    }
                    if interrupted() {
                        return Err(self.lost(INTERRUPTED));
                    }
                    let can_read = !lock(&self.slots).reader;
                    if wait_either(socket, can_read) && can_read {
                        self.read_one_for_all()?;
                    }
                    if let Some(error) = &lock(&self.slots).failed {
                        return Err(error.clone());
                    }
                }
                Err(errno) if sent == 0 => return Err(self.not_sent(errno)),
                Err(errno) => return Err(self.lost(errno)),
            }
        }
        Ok(())
    }

    fn exchange(&self, service: &dyn Exchange, request: &Request<'_>, tag: Tag) -> Result<()> {
        let (frame, reply) = {
            let mut slots = lock(&self.slots);
            (slots.spare.pop(), slots.spare.pop())
        };
        let (mut frame, mut reply) = (frame.unwrap_or_default(), reply.unwrap_or_default());
        frame.clear();
        reply.clear();
        let on_wire = if matches!(request, Request::Version { .. }) { Tag::NONE } else { tag };
        request.encode(on_wire, &mut frame);
        service.exchange(&frame, &mut reply);
        lock(&self.slots).keep_spare(frame);
        self.deliver_local(tag, reply)
    }

    fn cancel(&self, tag: Tag) {
        let mut slots = lock(&self.slots);
        slots.entries[usize::from(tag.0)] = Slot::Free;
        slots.free.push_back(tag.0);
    }

    /// Breaks the connection, unless the error is one that leaves it whole.
    fn fail(&self, error: &Error) {
        let error = match error {
            // What was in flight may have been executed.
            Error::NotSent { errno, .. } => self.lost(*errno),
            // Who gave up is one thread; to the others it is a break like any other.
            Error::Lost { errno: INTERRUPTED, .. } => self.lost(Errno::ECONNRESET),
            other if other.is_retryable() => other.clone(),
            _ => return,
        };
        let mut slots = lock(&self.slots);
        slots.failed.get_or_insert(error);
        self.arrived.notify_all();
    }

    fn lost(&self, errno: Errno) -> Error {
        Error::Lost { peer: self.peer.clone(), errno }
    }

    fn not_sent(&self, errno: Errno) -> Error {
        Error::NotSent { peer: self.peer.clone(), errno }
    }

    fn protocol(&self, source: ProtocolError) -> Error {
        Error::Protocol { peer: self.peer.clone(), source }
    }

    fn wrong_reply(&self, body: &Body, asked: u8) -> Error {
        self.protocol(ProtocolError::WrongReply { kind: body.kind, asked })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !*self.abandoned.get_mut() {
            self.limit_waits(PARTING_TIME_MAX);
            self.part();
        }
    }
}

impl Slots {
    fn release(&mut self, tag: Tag) {
        self.entries[usize::from(tag.0)] = Slot::Free;
        self.free.push_back(tag.0);
    }

    fn keep_spare(&mut self, bytes: Vec<u8>) {
        if bytes.capacity() >= SPARE_LEN_MIN && self.spare.len() < SPARE_BUFFERS_MAX {
            self.spare.push(bytes);
        }
    }
}
