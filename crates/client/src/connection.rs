//! One connection: many requests in flight, no thread of its own.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use p9::frame::{HEADER_LEN, Header, IO_HEADER_LEN, READ_REPLY_OVERHEAD};
use p9::{Data, Dialect, Errno, Fid, Reply, Request, Tag};
use rustix::net::sockopt::{self, Timeout};

use crate::error::{Error, ProtocolError, Result};
use crate::link::{Exchange, Link, Sent, has_hung_up, has_input, receive, send_some, wait_either};
use crate::lock;

/// Frames up to this size are received through the small buffer; larger ones go straight to
/// their own.
const RECEIVE_BUFFER_LEN: usize = 16 * 1024;

/// Replies shorter than this are received into memory of their own: the spare buffers are kept as
/// long as they were once filled, which need not be done again then.
const SPARE_LEN_MIN: usize = 4096;

/// Requests without a reply, or with one not yet asked for; tags are indices below this. All that
/// the protocol has: files that are open and not being read may each keep a few.
const IN_FLIGHT_MAX: usize = Tag::NONE.0 as usize;

/// `Tversion` travels with `NOTAG`; it is the first request of all and has this slot.
const VERSION_SLOT: Tag = Tag(0);

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

struct Receiver {
    buffer: Box<[u8; RECEIVE_BUFFER_LEN]>,
    start: usize,
    end: usize,
}

/// A negotiated connection to a service. All methods may be called from any thread.
pub struct Connection {
    link: Link,
    peer: String,
    msize: u32,
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
    /// Negotiates version and message size over a fresh link. `peer` names the service in errors.
    /// A socket's `SO_RCVTIMEO` bounds how long the service may be silent or deaf.
    ///
    /// # Errors
    /// When the link breaks or the peer speaks no 9P2000.L.
    pub fn negotiate(link: Link, peer: &str, msize: u32) -> Result<Self> {
        let patience = match &link {
            Link::Stream(socket) => sockopt::socket_timeout(socket, Timeout::Recv)
                .ok()
                .flatten(),
            Link::Local(_) => None,
        };
        let mut connection = Self {
            link,
            patience,
            peer: peer.to_owned(),
            msize,
            sender: Mutex::new(Vec::with_capacity(4096)),
            receiver: Mutex::new(Receiver {
                buffer: Box::new([0; RECEIVE_BUFFER_LEN]),
                start: 0,
                end: 0,
            }),
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
        let version = Dialect::Linux.as_str().as_bytes();
        let body = connection.call(&Request::Version { msize, version })?;
        match body.reply().map_err(|e| connection.protocol(e))? {
            Reply::Version {
                msize: agreed,
                version: b"9P2000.L",
            } if agreed >= 512 => {
                connection.msize = agreed.min(msize);
                Ok(connection)
            }
            Reply::Version { version, .. } => Err(Error::Version {
                peer: connection.peer.clone(),
                version: String::from_utf8_lossy(version).into_owned(),
            }),
            _ => Err(connection.wrong_reply(&body, 100)),
        }
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
                        requests
                            .iter()
                            .zip(&tickets)
                            .try_for_each(|(request, ticket)| {
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
        if self.is_broken() {
            Err(self.not_sent(Errno::ECONNRESET))
        } else {
            Ok(())
        }
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
                    return Err(self.protocol(ProtocolError::TooMuch {
                        count,
                        asked: target.len(),
                    }));
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
        self.submit(&Request::Write {
            fid,
            offset,
            data: Data(data),
        })
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
        matches!(
            lock(&self.slots).entries[usize::from(ticket.tag.0)],
            Slot::Arrived(_)
        )
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
            } else if !slots
                .entries
                .iter()
                .any(|slot| matches!(slot, Slot::Forgotten))
            {
                // Nothing that may still arrive would free a tag.
                return Err(Error::Refused(Errno::ENFILE));
            } else {
                // Every tag is out: take in a reply, which frees a forgotten one sooner or later.
                drop(slots);
                self.read_one_for_all()?;
                continue;
            };
            slots.entries[usize::from(tag)] = Slot::Waiting;
            return Ok(Ticket {
                tag: Tag(tag),
                asked,
            });
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
        let on_wire = if matches!(request, Request::Version { .. }) {
            Tag::NONE
        } else {
            tag
        };
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
                    if self
                        .patience
                        .is_some_and(|patience| since.elapsed() > patience)
                    {
                        return Err(self.lost(Errno::ETIMEDOUT));
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
        let mut frame = Vec::new();
        let on_wire = if matches!(request, Request::Version { .. }) {
            Tag::NONE
        } else {
            tag
        };
        request.encode(on_wire, &mut frame);
        let mut reply = lock(&self.slots).spare.pop().unwrap_or_default();
        reply.clear();
        service.exchange(&frame, &mut reply);
        self.deliver_local(tag, reply)
    }

    fn wait_into(&self, ticket: Ticket, target: &mut [u8]) -> Result<Arrival> {
        let index = usize::from(ticket.tag.0);
        let mut slots = lock(&self.slots);
        loop {
            if matches!(slots.entries[index], Slot::Arrived(_)) {
                let taken = std::mem::replace(&mut slots.entries[index], Slot::Free);
                slots.release(ticket.tag);
                let Slot::Arrived(body) = taken else { continue };
                drop(slots);
                return self.accept(body, ticket.asked).map(Arrival::Body);
            }
            if let Some(error) = &slots.failed {
                return Err(error.clone());
            }
            if slots.reader {
                slots.waiters += 1;
                slots = self
                    .arrived
                    .wait(slots)
                    .unwrap_or_else(PoisonError::into_inner);
                slots.waiters -= 1;
                continue;
            }
            slots.reader = true;
            drop(slots);
            let outcome = self.read_frame(Some((&ticket, &mut *target)));
            slots = self.leave_reader();
            match outcome {
                Ok(Some(count)) => {
                    slots.release(ticket.tag);
                    return Ok(Arrival::Direct(count));
                }
                Ok(None) => {}
                Err(error) => {
                    drop(slots);
                    self.fail(&error);
                    return Err(error);
                }
            }
        }
    }

    fn leave_reader(&self) -> MutexGuard<'_, Slots> {
        let mut slots = lock(&self.slots);
        slots.reader = false;
        if slots.waiters > 0 {
            self.arrived.notify_all();
        }
        slots
    }

    /// Takes in one frame for whoever waits for it, unless another thread is at it.
    fn read_one_for_all(&self) -> Result<()> {
        {
            let mut slots = lock(&self.slots);
            if slots.reader {
                slots.waiters += 1;
                let mut slots = self
                    .arrived
                    .wait(slots)
                    .unwrap_or_else(PoisonError::into_inner);
                slots.waiters -= 1;
                return Ok(());
            }
            slots.reader = true;
        }
        let outcome = self.read_frame(None);
        drop(self.leave_reader());
        outcome.map(|_| ()).inspect_err(|error| self.fail(error))
    }

    /// Reads one frame. `Some(count)`: it was the data wanted and went straight into the target.
    fn read_frame(&self, wanted: Option<(&Ticket, &mut [u8])>) -> Result<Option<usize>> {
        let Link::Stream(socket) = &self.link else {
            // Replies of a local service are there when submit returns.
            return Err(self.lost(Errno::EPROTO));
        };
        let mut receiver = lock(&self.receiver);
        let lost = |errno| self.lost(errno);
        let mut header = [0; HEADER_LEN];
        // Data that goes straight into a large target must not go through the buffer first.
        let direct = wanted.as_ref().is_some_and(|(_, target)| target.len() >= RECEIVE_BUFFER_LEN);
        let ahead = if direct { READ_REPLY_OVERHEAD } else { RECEIVE_BUFFER_LEN };
        receiver.fill(socket, ahead).map_err(lost)?;
        receiver.take(socket, &mut header).map_err(lost)?;
        let header = Header::parse(&header, self.msize).map_err(|e| self.protocol(e.into()))?;
        let body_len = header.body_len();
        let tag = if header.tag == Tag::NONE {
            VERSION_SLOT
        } else {
            header.tag
        };
        if let Some((ticket, target)) = wanted
            && tag == ticket.tag
            && header.kind == p9_read_reply()
            && !target.is_empty()
            && body_len >= READ_REPLY_OVERHEAD - HEADER_LEN
        {
            let mut count = [0; 4];
            receiver.take(socket, &mut count).map_err(lost)?;
            let count = u32::from_le_bytes(count) as usize;
            let Some(room) = target.get_mut(..count).filter(|_| count == body_len - 4) else {
                let asked = target.len();
                return Err(self.protocol(ProtocolError::TooMuch { count, asked }));
            };
            receiver.take(socket, room).map_err(lost)?;
            return Ok(Some(count));
        }
        let mut bytes = self.buffer(tag, body_len)?;
        receiver.take(socket, &mut bytes).map_err(lost)?;
        drop(receiver);
        self.deliver(
            tag,
            Body {
                kind: header.kind,
                bytes,
                start: 0,
            },
        )?;
        Ok(None)
    }

    /// A buffer of exactly `len` bytes, from the spare ones where one is large enough.
    fn buffer(&self, tag: Tag, len: usize) -> Result<Vec<u8>> {
        let mut slots = lock(&self.slots);
        match slots.entries.get(usize::from(tag.0)) {
            Some(Slot::Waiting | Slot::Forgotten) => {}
            _ => return Err(self.protocol(ProtocolError::UnknownTag { tag: tag.0 })),
        }
        if len < SPARE_LEN_MIN {
            return Ok(vec![0; len]);
        }
        // The one used last, which is in the processor's cache.
        let fitting = slots.spare.iter().rposition(|spare| spare.len() >= len);
        let larger = fitting.or_else(|| slots.spare.iter().rposition(|s| s.capacity() >= len));
        let mut bytes = larger.map(|i| slots.spare.remove(i)).unwrap_or_default();
        drop(slots);
        // Shrinking is free; growing zeroes only what was never used before.
        if bytes.len() < len {
            bytes.resize(len, 0)
        } else {
            bytes.truncate(len)
        }
        Ok(bytes)
    }

    fn deliver(&self, tag: Tag, body: Body) -> Result<()> {
        let mut slots = lock(&self.slots);
        let index = usize::from(tag.0);
        match slots.entries.get(index) {
            Some(Slot::Waiting) => slots.entries[index] = Slot::Arrived(body),
            Some(Slot::Forgotten) => {
                slots.release(tag);
                slots.keep_spare(body.bytes);
            }
            _ => return Err(self.protocol(ProtocolError::UnknownTag { tag: tag.0 })),
        }
        Ok(())
    }

    fn deliver_local(&self, tag: Tag, frame: Vec<u8>) -> Result<()> {
        let Some(header) = frame.first_chunk::<HEADER_LEN>() else {
            return Err(self.lost(Errno::EPROTO));
        };
        let header = Header::parse(header, u32::MAX).map_err(|e| self.protocol(e.into()))?;
        self.deliver(
            tag,
            Body {
                kind: header.kind,
                bytes: frame,
                start: HEADER_LEN,
            },
        )
    }

    /// Turns an error reply into an error and checks that the reply is the request's.
    fn accept(&self, body: Body, asked: u8) -> Result<Body> {
        if body.kind == asked + 1 {
            return Ok(body);
        }
        match body.reply() {
            Ok(Reply::Lerror { errno }) => Err(Error::Refused(errno)),
            Ok(Reply::Error { text }) => Err(Error::Refused(Errno::from_text(text))),
            Ok(_) => Err(self.wrong_reply(&body, asked)),
            Err(error) => Err(self.protocol(error)),
        }
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
            other if other.is_retryable() => other.clone(),
            _ => return,
        };
        let mut slots = lock(&self.slots);
        slots.failed.get_or_insert(error);
        self.arrived.notify_all();
    }

    fn lost(&self, errno: Errno) -> Error {
        Error::Lost {
            peer: self.peer.clone(),
            errno,
        }
    }

    fn not_sent(&self, errno: Errno) -> Error {
        Error::NotSent {
            peer: self.peer.clone(),
            errno,
        }
    }

    fn protocol(&self, source: ProtocolError) -> Error {
        Error::Protocol {
            peer: self.peer.clone(),
            source,
        }
    }

    fn wrong_reply(&self, body: &Body, asked: u8) -> Error {
        self.protocol(ProtocolError::WrongReply {
            kind: body.kind,
            asked,
        })
    }
}

/// The type byte of `Rread`, from the one table that has it.
fn p9_read_reply() -> u8 {
    Reply::Read { data: Data(&[]) }.kind()
}

enum Arrival {
    Body(Body),
    Direct(usize),
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

impl Receiver {
    fn holds_bytes(&self) -> bool {
        self.start < self.end
    }

    /// Receives up to `ahead` bytes into the buffer if it is empty.
    fn fill(&mut self, socket: &OwnedFd, ahead: usize) -> std::result::Result<(), Errno> {
        if !self.holds_bytes() {
            self.start = 0;
            self.end = 0;
            self.end = receive(socket, &mut self.buffer[..ahead], false)?;
        }
        Ok(())
    }

    /// Fills `target`, from the buffer first, then from the socket: large rests directly, small
    /// ones through the buffer so that one call brings several small frames.
    fn take(&mut self, socket: &OwnedFd, target: &mut [u8]) -> std::result::Result<(), Errno> {
        let mut filled = 0;
        while filled < target.len() {
            if self.start == self.end {
                let rest = &mut target[filled..];
                if rest.len() >= RECEIVE_BUFFER_LEN / 2 {
                    filled += receive(socket, rest, true)?;
                    continue;
                }
                self.start = 0;
                self.end = receive(socket, &mut self.buffer[..], false)?;
            }
            let rest = &mut target[filled..];
            let count = rest.len().min(self.end - self.start);
            rest[..count].copy_from_slice(&self.buffer[self.start..self.start + count]);
            self.start += count;
            filled += count;
        }
        Ok(())
    }
}
