//! What all parts of an open remote file work on: its state, and the lock around it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use extent::ByteRange;
use p9::{
    Attributes, Errno, Fid, GetattrMask, OpenFlags, Request, SetAttributes, SetattrMask, Time,
};

use crate::chunks::{Chunks, Content};
use crate::connection::{Body, Connection, Ticket};
use crate::error::{Error, Result};
use crate::handle::{Closing, Handle};
use crate::lock;
use crate::opening::Opened;
use crate::readahead::ReadAhead;
use crate::session::{Repeat, Session};
use crate::siblings::Siblings;
use crate::space::Space;
use crate::writebehind::WriteBehind;

/// For how long cached data and a known size are good without asking, unless a reader goes on
/// sequentially. In milliseconds.
const FRESH_MS: u64 = 1000;

/// Bytes that stay cached after they were read, for readers that step back.
const CONSUMED_MAX: u64 = 2 * 1024 * 1024;

/// The most that one request of a stream of writes carries, in bytes: what is gathered should still
/// be in the processor's cache when it is sent.
const RUN_LEN_MAX: usize = 256 * 1024;

/// A request whose reply is still wanted. Dropped, it is given up.
pub(crate) struct Outstanding {
    connection: Arc<Connection>,
    ticket: Option<Ticket>,
}

impl Outstanding {
    pub(super) fn new(connection: &Arc<Connection>, ticket: Ticket) -> Self {
        Self { connection: Arc::clone(connection), ticket: Some(ticket) }
    }

    pub(super) fn has_arrived(&self) -> bool {
        self.ticket.as_ref().is_some_and(|ticket| self.connection.has_arrived(ticket))
    }

    /// Takes in replies that are here, without waiting.
    pub(super) fn take_in(&self) {
        self.connection.take_in();
    }

    /// Waits for the whole reply, and says who gets its buffer back.
    pub(super) fn wait(mut self) -> Result<(Arc<Connection>, Body)> {
        let ticket = self.ticket.take().ok_or(Error::Refused(Errno::EIO))?;
        let body = self.connection.wait(ticket)?;
        Ok((Arc::clone(&self.connection), body))
    }

    /// Waits for data, straight into `target`.
    pub(super) fn wait_read(mut self, target: &mut [u8]) -> Result<usize> {
        let ticket = self.ticket.take().ok_or(Error::Refused(Errno::EIO))?;
        self.connection.wait_read(ticket, target)
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.connection.forget(ticket);
        }
    }
}

/// Data of a chunk.
pub(crate) enum Bytes {
    /// As it arrived; the connection gets the buffer back.
    Reply(Arc<Connection>, Body),
    /// Read a second time, after a break.
    Own(Vec<u8>),
}

impl AsRef<[u8]> for Bytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Reply(_, body) => body.data(),
            Bytes::Own(bytes) => bytes,
        }
    }
}

impl AsMut<[u8]> for Bytes {
    fn as_mut(&mut self) -> &mut [u8] {
        match self {
            Bytes::Reply(_, body) => body.data_mut(),
            Bytes::Own(bytes) => bytes,
        }
    }
}

/// What tells one content of a file from another.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    mtime: Time,
    size: u64,
    qid_version: u32,
    data_version: u64,
}

impl Stamp {
    fn of(attributes: &Attributes) -> Self {
        Self {
            mtime: attributes.mtime,
            size: attributes.size,
            qid_version: attributes.qid.version,
            data_version: attributes.data_version,
        }
    }
}

/// What the lock guards.
pub(crate) struct State {
    pub(super) chunks: Chunks<Outstanding, Bytes>,
    pub(super) ahead: ReadAhead,
    /// Reads that end behind this offset go past read-ahead.
    pub(super) consult_at: u64,
    /// Where the last read ended.
    pub(super) last_end: u64,
    pub(super) writes: WriteBehind<Outstanding>,
    /// The session has the file among those that must be settled: always while there are writes.
    pub(super) is_listed: bool,
    pub(super) last_write_ms: u64,
    /// Why a write behind failed, until somebody is told.
    pub(super) delayed: Option<Error>,
    /// After a failure every write waits for its reply, until one succeeds.
    pub(super) strict: bool,
    /// Whether there is room for writes that nobody waits for.
    pub(super) space: Space,
    /// Known size in bytes, own writes that are on their way included.
    pub(super) size: u64,
    /// The known size may be answered as the end of the file, once.
    pub(super) end_is_known: bool,
    /// The read that travelled with the open of a file without a size.
    pub(super) first: Option<Outstanding>,
    /// Threads that wait for a chunk that another one receives.
    waiting: usize,
    stamp: Stamp,
    /// When the stamp was last compared; 0: it must be.
    checked_ms: u64,
    /// The epoch of siblings seen; none: they must be made to settle first.
    seen: Option<u64>,
}

impl State {
    /// Drops what is cached; the size is asked for when next needed.
    pub(crate) fn forget_reads(&mut self) {
        self.forget_chunks();
        self.checked_ms = 0;
        self.end_is_known = false;
    }

    fn forget_chunks(&mut self) {
        self.chunks.clear();
        self.ahead.lapse();
        self.consult_at = 0;
    }

    /// Whether what is known may be used without asking.
    #[inline]
    pub(super) fn is_fresh(&self) -> bool {
        now_ms().wrapping_sub(self.checked_ms) < FRESH_MS
    }

    /// Whether the attributes must be asked for before the size can be used.
    pub(super) fn is_stale(&self) -> bool {
        self.checked_ms == 0
    }

    fn apply(&mut self, attributes: &Attributes) {
        let stamp = Stamp::of(attributes);
        if stamp != self.stamp {
            self.forget_chunks();
            self.stamp = stamp;
        }
        self.size = attributes.size.max(self.writes.end());
        self.checked_ms = now_ms();
        self.end_is_known = attributes.size > 0;
    }

    /// Drops cached chunks that are more than may be held.
    pub(super) fn trim(&mut self, unread_max: u64) {
        while let Some(content) = self.chunks.take_excess(CONSUMED_MAX, unread_max) {
            if let Content::Ready(Bytes::Reply(connection, body)) = content {
                connection.recycle(body);
            }
        }
    }
}

/// One open remote file.
pub(crate) struct Core {
    this: Weak<Core>,
    siblings: Arc<Siblings>,
    /// Dropped before the handle: requests on a fid are given up before it is.
    state: Mutex<State>,
    handle: Handle,
    arrived: Condvar,
    pub(super) flags: OpenFlags,
    /// What is written is safe when the file is closed, and may be lost if it is not.
    close_counts: bool,
    /// The most data that one request can carry, in bytes.
    pub(super) payload_max: usize,
    /// Other processes share the offset.
    shared: AtomicBool,
    /// Size and content are not what caches and write-behind take them for: a device, a file made
    /// up while it is read.
    unbuffered: AtomicBool,
}

impl Core {
    pub(super) fn new(opened: Opened) -> Arc<Self> {
        let Opened { handle, attributes, first } = opened;
        let session = Arc::clone(handle.session());
        let options = session.options();
        let payload_max = session.current().map(|live| live.connection.payload_max());
        // No connection any more: a size that every service takes.
        let payload_max = payload_max.unwrap_or(64 * 1024);
        let flags = handle.flags();
        // An append is one request as long as it fits: other writers may append too.
        let appends = flags.contains(OpenFlags::APPEND);
        let run_len_max = if appends { payload_max } else { payload_max.min(RUN_LEN_MAX) };
        let ahead = ReadAhead::new(options.read_ahead_max as u64, payload_max as u64);
        let mut chunks = Chunks::new();
        let mut early = None;
        if let Some((count, outstanding)) = first.and_then(|first| {
            let count = u64::from(first.count);
            first.take().map(|(connection, ticket)| (count, Outstanding::new(&connection, ticket)))
        }) {
            if attributes.size > 0 && count > 0 {
                chunks.insert(ByteRange::at(0, count), Content::Pending(outstanding));
            } else {
                early = Some(outstanding);
            }
        }
        let state = State {
            chunks,
            ahead,
            consult_at: 0,
            last_end: 0,
            writes: WriteBehind::new(run_len_max),
            is_listed: false,
            last_write_ms: now_ms(),
            delayed: None,
            strict: false,
            space: Space::default(),
            size: attributes.size,
            end_is_known: attributes.size > 0,
            first: early,
            waiting: 0,
            stamp: Stamp::of(&attributes),
            checked_ms: now_ms(),
            seen: None,
        };
        let core = Arc::new_cyclic(|core: &Weak<Core>| Core {
            this: Weak::clone(core),
            siblings: session.files().join(handle.qid().path, Weak::clone(core)),
            handle,
            state: Mutex::new(state),
            arrived: Condvar::new(),
            flags,
            close_counts: flags.writes() && attributes.valid.contains(GetattrMask::CLOSE_COUNTS),
            payload_max,
            shared: AtomicBool::new(false),
            unbuffered: AtomicBool::new(!attributes.is_regular()),
        });
        core.lock().seen = core.siblings.first_epoch(&core, flags.writes());
        core
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(super) fn session(&self) -> &Session {
        self.handle.session()
    }

    /// Whether it matters that the file is closed, and not just left.
    pub(crate) fn close_counts(&self) -> bool {
        self.close_counts
    }

    /// Says to the service that the file is closed. `None`: that does not matter, or a write has failed that nobody was
    /// told of, and then the file must not count as it is.
    pub(crate) fn begin_to_finish(&self) -> Option<Closing> {
        let mut state = self.lock();
        if !self.close_counts || state.delayed.is_some() {
            return None;
        }
        state.forget_reads();
        self.handle.begin_to_finish()
    }

    /// Closes the file, and waits for the answer where that matters.
    pub(super) fn finish(&self) -> Result<()> {
        if !self.close_counts {
            return Ok(());
        }
        // Before their fid goes.
        self.lock().forget_reads();
        self.handle.finish()
    }

    pub(super) fn leave(&self) {
        self.session().files().leave(&self.siblings, self);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The state, after siblings that wrote have settled.
    #[inline]
    pub(super) fn enter(&self) -> MutexGuard<'_, State> {
        let state = self.lock();
        if state.seen == Some(self.siblings.epoch()) {
            return state;
        }
        drop(state);
        self.catch_up()
    }

    #[cold]
    fn catch_up(&self) -> MutexGuard<'_, State> {
        // Before they settle: what they write later counts anew.
        let epoch = self.siblings.epoch();
        for other in self.siblings.others(self) {
            other.settle();
        }
        let mut state = self.lock();
        state.forget_reads();
        state.seen = Some(epoch);
        state
    }

    /// Tells siblings of a write.
    #[inline]
    pub(super) fn note_write(&self, state: &mut State) {
        self.siblings.note_write(&mut state.seen);
    }

    /// Sends what siblings have gathered, and waits. Their errors are kept for them.
    pub(super) fn settle_siblings(&self) -> Result<()> {
        let mut outcome = Ok(());
        for other in self.siblings.others(self) {
            let mut state = other.lock();
            other.settle_locked(&mut state);
            outcome = outcome.and(state.delayed.clone().map_or(Ok(()), Err));
        }
        outcome
    }

    /// Keeps nothing from now on, here and in siblings.
    pub(super) fn set_concurrent(&self) {
        self.siblings.set_concurrent();
        // Errors are kept for those who wrote.
        self.settle();
        let _ = self.settle_siblings();
        self.forget_everywhere();
    }

    /// Whether other processes use the file at the same time.
    #[inline]
    pub(super) fn is_concurrent(&self) -> bool {
        self.siblings.is_concurrent()
    }

    /// Forgets what is cached, here and in siblings: a program that agrees with others on a time does so by
    /// file, not by descriptor.
    pub(super) fn forget_everywhere(&self) {
        let mut state = self.lock();
        state.forget_reads();
        self.siblings.note_sync(&mut state.seen);
    }

    /// Before something is gathered or sent: whoever settles all files must find this one.
    pub(super) fn list(&self, state: &mut State) {
        if !std::mem::replace(&mut state.is_listed, true) {
            self.session().files().list(Weak::clone(&self.this));
        }
    }

    /// After everything is acknowledged.
    pub(super) fn unlist(&self, state: &mut State) {
        if std::mem::replace(&mut state.is_listed, false) {
            self.session().files().unlist(self);
        }
    }

    /// Asks for the attributes and drops what is cached if the content has changed.
    pub(super) fn check(&self, state: &mut State) -> Result<Attributes> {
        let attributes = self.handle.attributes();
        match &attributes {
            Ok(attributes) => state.apply(attributes),
            Err(_) => state.forget_reads(),
        }
        attributes
    }

    pub(super) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    pub(super) fn set_shared(&self, shared: bool) {
        self.shared.store(shared, Ordering::Relaxed);
        let mut state = self.lock();
        self.settle_locked(&mut state);
        if self.flags.writes() {
            state.forget_reads();
        }
    }

    pub(super) fn is_unbuffered(&self) -> bool {
        self.unbuffered.load(Ordering::Relaxed)
    }

    /// Whether nothing that was read, sizes included, may be used again: other processes share the offset or
    /// write to the file, or the session is told to keep nothing.
    pub(super) fn is_uncached(&self) -> bool {
        self.is_unbuffered()
            || self.siblings.is_concurrent()
            || (self.is_shared() && self.flags.writes())
            || self.session().options().read_ahead_max == 0
    }

    pub(super) fn set_unbuffered(&self) {
        self.unbuffered.store(true, Ordering::Relaxed);
    }

    /// The most that read-ahead may hold for this file.
    pub(super) fn unread_max(&self) -> u64 {
        // A request more than the window, for the one being read.
        let options = self.session().options();
        options.read_ahead_max as u64 + u64::from(options.msize)
    }

    /// Sends one request; the reply is left to come.
    pub(super) fn submit(
        &self,
        repeat: Repeat,
        mut send: impl FnMut(&Connection, Fid) -> Result<Ticket>,
    ) -> Result<Outstanding> {
        self.handle.with(repeat, |connection, fid| {
            Ok(Outstanding::new(connection, send(connection, fid)?))
        })
    }

    /// Sends requests for data, in one message where that is possible.
    pub(super) fn submit_reads(&self, ranges: &[ByteRange]) -> Result<Vec<Outstanding>> {
        self.handle.with(Repeat::Safe, |connection, fid| {
            let request = |range: &ByteRange| {
                let (offset, count) = (range.start(), range.len() as u32);
                Request::Read { fid, offset, count }
            };
            let requests: Vec<Request<'_>> = ranges.iter().map(request).collect();
            let tickets = connection.submit_all(&requests)?.into_iter();
            Ok(tickets.map(|ticket| Outstanding::new(connection, ticket)).collect())
        })
    }

    /// Waits until some chunk has been received by another thread.
    pub(super) fn wait_for_arrival<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
    ) -> MutexGuard<'s, State> {
        state.waiting += 1;
        let mut state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Tells threads that wait for a chunk.
    pub(super) fn announce_arrival(&self, state: &State) {
        if state.waiting > 0 {
            self.arrived.notify_all();
        }
    }

    /// The size in bytes, own writes included.
    pub(super) fn size(&self) -> Result<u64> {
        let mut state = self.enter();
        if !state.is_fresh() || self.is_uncached() || self.is_shared() {
            if self.appends() {
                self.settle_locked(&mut state);
            }
            self.check(&mut state)?;
        }
        Ok(state.size)
    }

    /// The attributes, behind all writes before.
    pub(super) fn attributes(&self) -> Result<Attributes> {
        let mut state = self.enter();
        self.settle_locked(&mut state);
        self.check(&mut state)
    }

    /// Changes attributes, behind all writes before.
    pub(super) fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        let mut state = self.enter();
        self.settle_locked(&mut state);
        let outcome = self.handle.set_attributes(set);
        if set.valid.contains(SetattrMask::SIZE) {
            self.note_write(&mut state);
            state.forget_reads();
        }
        outcome
    }
}

/// The time in milliseconds, of a clock that is cheap to read and steps by a few of them.
#[inline]
pub(super) fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    // Never 0, which stands for "not known".
    (now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000).max(1)
}
