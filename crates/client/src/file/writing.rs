//! Writes: gathered, sent without waiting, acknowledged later.

use std::collections::VecDeque;
use std::sync::MutexGuard;

use extent::ByteRange;
use p9::{Errno, OpenFlags, Reply, Request};

use super::core::{Core, Outstanding, State, now_ms};
use crate::connection::Connection;
use crate::error::{Error, ProtocolError, Result};
use crate::session::Repeat;
use crate::writebehind::{Run, Sent};

/// Writes from this size on are sent from the caller's buffer. Smaller ones are gathered.
const DIRECT_LEN_MIN: usize = 256 * 1024;

/// What is gathered is sent with the next write when it is older than this, or when the program
/// writes more seldom than this. In milliseconds.
const GATHER_MS: u64 = 100;

/// With so many bytes on their way, acknowledgements are looked for.
const TAKE_IN_BYTES: u64 = 512 * 1024;

/// Writes on their way at once.
const SENT_COUNT_MAX: usize = 256;

/// Runs shorter than this are kept in buffers of their size until they are acknowledged.
const SMALL_RUN_LEN: usize = 64 * 1024;

/// The largest size of a file (`off_t`).
const FILE_LEN_MAX: u64 = i64::MAX as u64;

/// A write that is sent and whose data is still the caller's.
struct Lent<'a> {
    range: ByteRange,
    data: &'a [u8],
    request: Outstanding,
}

/// The question how much room there is, if it could be asked.
struct Room(Option<Outstanding>);

impl Core {
    pub(super) fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        if self.appends() {
            // pwrite(2), BUGS: so does Linux.
            return self.append(data).map(|_| data.len());
        }
        let mut state = self.enter();
        self.begin_write(&mut state, data, offset)?;
        if self.is_unbuffered() {
            drop(state);
            return self.write_through(data, offset);
        }
        if data.is_empty() {
            return Ok(0);
        }
        self.note_write(&mut state);
        if !state.chunks.is_empty() {
            state.chunks.patch(offset, data);
        }
        state.size = state.size.max(offset + data.len() as u64);
        let joined = state.writes.join(data, offset);
        let due = self.is_due(&mut state);
        if joined == data.len() && !state.writes.is_full() && !due {
            return Ok(joined);
        }
        self.write_slowly(state, data, offset, joined, due)
    }

    /// What every write begins with: may it be, and has an earlier one failed?
    #[inline]
    fn begin_write(&self, state: &mut State, data: &[u8], offset: u64) -> Result<()> {
        if !self.flags.writes() {
            return Err(Error::Refused(Errno::EBADF));
        }
        if offset.saturating_add(data.len() as u64) > FILE_LEN_MAX {
            return Err(Error::Refused(Errno::EFBIG));
        }
        match state.delayed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Goes on with a write of which `joined` bytes are gathered; `due`: they are to be sent.
    #[inline(never)]
    fn write_slowly(
        &self,
        mut state: MutexGuard<'_, State>,
        data: &[u8],
        offset: u64,
        mut joined: usize,
        due: bool,
    ) -> Result<usize> {
        let room = self.ask_for_room(&state);
        loop {
            if state.writes.is_full() {
                self.send_locked(&mut state);
            }
            let rest = &data[joined..];
            if rest.is_empty() {
                break;
            }
            if state.delayed.is_some() {
                // An earlier write has failed meanwhile: no more than what was taken.
                return self.part_or_error(&mut state, joined);
            }
            let at = offset + joined as u64;
            let count = state.writes.join(rest, at);
            if count > 0 {
                joined += count;
                continue;
            }
            self.send_locked(&mut state);
            if rest.len() >= DIRECT_LEN_MIN {
                joined += self.send_direct(&mut state, rest, at);
            } else {
                self.start_run(&mut state, at);
            }
        }
        if room.is_some() || self.is_immediate(&state) {
            self.conclude_write(&mut state, room)?;
        } else if due {
            self.send_locked(&mut state);
        }
        Ok(data.len())
    }

    /// Waits for a write that is not to be reported as done before it is.
    fn conclude_write(&self, state: &mut State, room: Option<Room>) -> Result<()> {
        self.settle_locked(state);
        if let Some(error) = state.delayed.take() {
            return Err(error);
        }
        state.strict = false;
        if let Some(Room(asked)) = room {
            let answer = asked.and_then(|request| request.wait().ok());
            let statfs = answer.as_ref().and_then(|(_, body)| match body.reply() {
                Ok(Reply::Statfs { statfs }) => Some(statfs),
                _ => None,
            });
            state.space.learn(statfs.as_ref(), now_ms());
        }
        Ok(())
    }

    /// Asks for the room there is if this write must, ahead of the write itself.
    fn ask_for_room(&self, state: &State) -> Option<Room> {
        state.space.must_ask(now_ms()).then(|| {
            let asked = self.submit(Repeat::Safe, |connection, fid| {
                connection.submit(&Request::Statfs { fid })
            });
            Room(asked.ok())
        })
    }

    fn part_or_error(&self, state: &mut State, joined: usize) -> Result<usize> {
        match state.delayed.take() {
            Some(error) if joined == 0 => Err(error),
            kept => {
                state.delayed = kept;
                Ok(joined)
            }
        }
    }

    /// Appends, and returns the size of the file after it as far as it is known here.
    pub(super) fn append(&self, data: &[u8]) -> Result<u64> {
        let mut state = self.enter();
        self.begin_write(&mut state, data, 0)?;
        if self.is_unbuffered() {
            drop(state);
            self.write_through(data, 0)?;
            return self.size();
        }
        if state.is_stale() {
            self.settle_locked(&mut state);
            self.check(&mut state)?;
        }
        if data.is_empty() {
            return Ok(state.size);
        }
        self.note_write(&mut state);
        state.end_is_known = false;
        let room = self.ask_for_room(&state);
        // One record is one request as long as that is possible: other writers may append too.
        if !state.writes.has_room_for(data.len()) {
            self.send_locked(&mut state);
        }
        for piece in data.chunks(state.writes.run_len_max()) {
            if state.delayed.is_some() {
                break;
            }
            let at = state.size;
            state.size += piece.len() as u64;
            if state.writes.join(piece, at) == piece.len() {
                continue;
            }
            self.send_locked(&mut state);
            if piece.len() >= DIRECT_LEN_MIN {
                self.send_direct(&mut state, piece, at);
            } else {
                self.start_run(&mut state, at);
                state.writes.join(piece, at);
            }
        }
        if self.is_due(&mut state) || state.writes.is_full() {
            self.send_locked(&mut state);
        }
        if room.is_some() || self.is_immediate(&state) {
            self.conclude_write(&mut state, room)?;
            if self.is_shared() {
                self.check(&mut state)?;
            }
        }
        Ok(state.size)
    }

    pub(super) fn appends(&self) -> bool {
        self.flags.contains(OpenFlags::APPEND)
    }

    /// Whether what is gathered should be sent with this call.
    #[inline]
    fn is_due(&self, state: &mut State) -> bool {
        let now = now_ms();
        let last = std::mem::replace(&mut state.last_write_ms, now);
        let since = state.writes.run().map_or(now, |run| run.since_ms);
        let waits = self.is_immediate(state) || state.space.is_used_up();
        waits || now - since >= GATHER_MS || now - last >= GATHER_MS
    }

    /// Whether a write waits for its reply.
    #[inline]
    fn is_immediate(&self, state: &State) -> bool {
        state.strict
            || self.is_shared()
            || self.is_concurrent()
            || self.flags.contains(OpenFlags::DSYNC)
            || self.behind_max() == 0
    }

    fn behind_max(&self) -> u64 {
        self.session().options().write_behind_max as u64
    }

    /// Sends what is gathered, without waiting for the acknowledgement.
    pub(crate) fn send(&self) {
        self.send_locked(&mut self.lock());
    }

    pub(super) fn send_locked(&self, state: &mut State) {
        let Some(run) = state.writes.take_run() else { return };
        let range = run.range();
        self.make_room(state, range, 0);
        match self.submit_write(range, run.bytes()) {
            Ok(request) => {
                let bytes = self.fitting(run);
                state.writes.push_sent(Sent { range, bytes, request });
            }
            Err(error) => {
                self.fail(state, error);
                self.session().files().keep_buffer(run.into_bytes());
            }
        }
    }

    /// Begins to gather at `offset`.
    fn start_run(&self, state: &mut State, offset: u64) {
        self.list(state);
        let buffer = self.session().files().take_buffer();
        state.writes.start(buffer, offset, now_ms());
    }

    /// Sends from the caller's buffer, piece by piece, and returns how many bytes it took: less
    /// than all when a write has failed. What the service has not acknowledged by the time that
    /// everything is sent is copied; of a write of several pieces it is the smaller part.
    fn send_direct(&self, state: &mut State, data: &[u8], offset: u64) -> usize {
        let piece_len = state.writes.run_len_max();
        let lent_max = (self.behind_max() / piece_len as u64).min(SENT_COUNT_MAX as u64) as usize;
        let mut lent = VecDeque::new();
        let mut taken = 0;
        for data in data.chunks(piece_len) {
            if state.delayed.is_some() {
                break;
            }
            let range = ByteRange::at(offset + taken as u64, data.len() as u64);
            taken += data.len();
            self.make_room(state, range, (lent.len() * piece_len) as u64);
            self.finish_lent(state, &mut lent, lent_max.saturating_sub(1));
            match self.submit_write(range, data) {
                Ok(request) => lent.push_back(Lent { range, data, request }),
                Err(error) => self.fail(state, error),
            }
        }
        if let Some(last) = lent.back() {
            last.request.take_in();
        }
        self.finish_lent(state, &mut lent, usize::MAX);
        for Lent { range, data, request } in lent {
            let mut bytes = self.session().files().take_buffer();
            bytes.clear();
            bytes.extend_from_slice(data);
            self.list(state);
            state.writes.push_sent(Sent { range, bytes, request });
        }
        taken
    }

    /// Finishes the oldest writes: all up to the first whose reply is not here, and more as long as
    /// there are more than `count_max`.
    fn finish_lent(&self, state: &mut State, lent: &mut VecDeque<Lent<'_>>, count_max: usize) {
        while lent.len() > count_max || lent.front().is_some_and(|l| l.request.has_arrived()) {
            let Some(Lent { range, data, request }) = lent.pop_front() else { return };
            let outcome = self.written(request, range, data);
            self.conclude(state, outcome);
        }
    }

    /// The run's bytes, in a buffer that is not much too large for them.
    fn fitting(&self, run: Run) -> Vec<u8> {
        let bytes = run.into_bytes();
        if bytes.len() > SMALL_RUN_LEN || bytes.capacity() <= bytes.len() * 2 {
            return bytes;
        }
        let fitting = bytes.clone();
        self.session().files().keep_buffer(bytes);
        fitting
    }

    /// Waits until a write to `range` may be sent, with `lent` bytes on their way that `state` does
    /// not know of.
    fn make_room(&self, state: &mut State, range: ByteRange, lent: u64) {
        state.space.spend(range.len());
        // Buffers whose writes are acknowledged are used again while they are in the processor's
        // cache, so acknowledgements are taken in as they come.
        if state.writes.sent_bytes() >= TAKE_IN_BYTES
            && let Some(oldest) = state.writes.oldest()
        {
            oldest.request.take_in();
        }
        loop {
            let Some(oldest) = state.writes.oldest() else { return };
            let must_wait = self.appends()
                || state.writes.sent_count() >= SENT_COUNT_MAX
                || state.writes.sent_bytes() + lent + range.len() > self.behind_max()
                || state.writes.in_the_way(&range);
            if !must_wait && !oldest.request.has_arrived() {
                return;
            }
            self.finish_oldest(state);
        }
    }

    fn submit_write(&self, range: ByteRange, data: &[u8]) -> Result<Outstanding> {
        let repeat = if self.appends() { Repeat::OnlyUnsent } else { Repeat::Safe };
        self.submit(repeat, |connection, fid| connection.submit_write(fid, range.start(), data))
    }

    fn finish_oldest(&self, state: &mut State) {
        let Some(sent) = state.writes.take_oldest() else { return };
        let outcome = self.written(sent.request, sent.range, &sent.bytes);
        self.session().files().keep_buffer(sent.bytes);
        self.conclude(state, outcome);
    }

    /// Waits for a write's reply; repeats the write when the connection broke, and the rest of it
    /// when the service took only a part.
    fn written(&self, request: Outstanding, range: ByteRange, data: &[u8]) -> Result<()> {
        let done = match request.wait() {
            Ok((connection, body)) => {
                let count = count_written(&connection, body.reply(), data.len());
                connection.recycle(body);
                self.handle().note_change();
                count?
            }
            // Whether an append was executed nobody can tell.
            Err(error) if error.is_retryable() && !self.appends() => 0,
            Err(error) => return Err(error),
        };
        self.write_all(&data[done..], range.start() + done as u64)
    }

    /// Writes and waits, until all is written.
    fn write_all(&self, mut data: &[u8], mut offset: u64) -> Result<()> {
        while !data.is_empty() {
            let count = self.write_through(data, offset)?;
            if count == 0 {
                return Err(Error::Refused(Errno::EIO));
            }
            data = &data[count..];
            offset += count as u64;
        }
        Ok(())
    }

    /// Writes once, as much as one request can carry, and waits.
    fn write_through(&self, data: &[u8], offset: u64) -> Result<usize> {
        let safe = !self.appends() && !self.is_unbuffered();
        let repeat = if safe { Repeat::Safe } else { Repeat::OnlyUnsent };
        let count = self.handle().with(repeat, |connection, fid| {
            let piece = &data[..data.len().min(connection.payload_max())];
            let ticket = connection.submit_write(fid, offset, piece)?;
            let body = connection.wait(ticket)?;
            let count = count_written(connection, body.reply(), piece.len());
            connection.recycle(body);
            count
        })?;
        self.handle().note_change();
        Ok(count)
    }

    fn conclude(&self, state: &mut State, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.fail(state, error);
        }
    }

    /// Keeps an error for the next call that can report it. What is cached may hold data that the
    /// service does not have.
    fn fail(&self, state: &mut State, error: Error) {
        state.delayed.get_or_insert(error);
        state.strict = true;
        state.forget_reads();
    }

    /// Sends what is gathered and waits for all acknowledgements. Errors are kept. Returns whether
    /// there was anything.
    pub(crate) fn settle(&self) -> bool {
        self.settle_locked(&mut self.lock())
    }

    pub(crate) fn settle_locked(&self, state: &mut State) -> bool {
        let anything = !state.writes.is_empty();
        self.send_locked(state);
        while state.writes.oldest().is_some() {
            self.finish_oldest(state);
        }
        self.unlist(state);
        anything
    }

    pub(super) fn flush(&self) -> Result<()> {
        let mut state = self.lock();
        self.settle_locked(&mut state);
        state.delayed.take().map_or(Ok(()), Err)
    }
}

fn count_written(
    connection: &Connection,
    reply: std::result::Result<Reply<'_>, ProtocolError>,
    asked: usize,
) -> Result<usize> {
    let wrong = |source| Error::Protocol { peer: connection.peer().to_owned(), source };
    match reply.map_err(wrong)? {
        Reply::Write { count } if count as usize <= asked => Ok(count as usize),
        Reply::Write { count } => {
            Err(wrong(ProtocolError::TooMuch { count: count as usize, asked }))
        }
        other => Err(wrong(ProtocolError::WrongReply { kind: other.kind(), asked: 118 })),
    }
}
