//! Reads: from what is cached, from what is on its way, or asked for now.

use std::sync::MutexGuard;

use extent::ByteRange;
use p9::Errno;

use super::core::{Bytes, Core, Outstanding, State};
use crate::chunks::{At, Content};
use crate::error::{Error, ProtocolError, Result};
use crate::readahead::Advice;
use crate::session::Repeat;

/// A part of a read from this size on is received straight into the caller's buffer; smaller ones
/// come with their surroundings into the cache.
const DIRECT_LEN_MIN: u64 = 64 * 1024;

/// The most of one read that is asked for at once: what else the connection carries waits behind it.
const FETCH_LEN_MAX: usize = 64 * 1024 * 1024;

/// Small reads outside of any sequence ask for whole blocks of this size.
const BLOCK_LEN: u64 = 4096;

/// A part of a read on its way straight into the caller's buffer.
struct Piece {
    len: usize,
    outstanding: Outstanding,
}

/// What came of asking the service.
enum Fetched {
    /// So many bytes stand in the caller's buffer.
    Direct(usize),
    /// Something is in the cache now.
    Cached,
    /// There is nothing at the offset.
    End,
}

impl Core {
    pub(super) fn read_at(&self, target: &mut [u8], offset: u64) -> Result<usize> {
        let mut state = self.enter();
        let end = offset.saturating_add(target.len() as u64);
        if end <= state.consult_at
            && (offset == state.last_end || state.is_fresh())
            && state.chunks.copy_near(target, offset)
        {
            state.last_end = end;
            return Ok(target.len());
        }
        self.read_slowly(state, target, offset)
    }

    #[inline(never)]
    fn read_slowly<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        target: &mut [u8],
        offset: u64,
    ) -> Result<usize> {
        if !self.flags.reads() {
            return Err(Error::Refused(Errno::EBADF));
        }
        if target.is_empty() {
            return Ok(0);
        }
        let uncached = self.is_uncached();
        if uncached || self.appends() {
            // Where an append went is known to the service only.
            self.settle_locked(&mut state);
        }
        if uncached {
            drop(state);
            return self.read_uncached(target, offset);
        }
        let goes_on = offset == state.last_end;
        if state.is_stale() || (!goes_on && !state.chunks.is_empty() && !state.is_fresh()) {
            self.check(&mut state)?;
        }
        let (mut state, outcome) = self.read_cached(state, target, offset);
        if let Ok(count) = outcome {
            state.last_end = offset + count as u64;
        }
        outcome
    }

    /// Reads piece by piece, each from where it is newest: writes on their way, the cache, the
    /// service.
    fn read_cached<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        target: &mut [u8],
        offset: u64,
    ) -> (MutexGuard<'s, State>, Result<usize>) {
        let read = ByteRange::at(offset, target.len() as u64);
        let advice = state.ahead.note(read);
        state.consult_at = advice.consult_at;
        let mut filled = 0;
        let mut end_seen_at = None;
        while filled < target.len() {
            let at = offset + filled as u64;
            let rest = &mut target[filled..];
            if at >= state.size {
                if filled == 0 {
                    return self.read_past_end(state, rest, at);
                }
                break;
            }
            let written = state.writes.copy_from(rest, at);
            if written > 0 {
                filled += written;
                continue;
            }
            match state.chunks.at(at) {
                At::Ready => {
                    filled += state.chunks.copy_from(rest, at);
                    continue;
                }
                At::Arriving => {
                    state = self.wait_for_arrival(state);
                    continue;
                }
                At::Pending(_) | At::Gap => {}
            }
            let fetched;
            (state, fetched) = self.fetch(state, rest, at, &advice);
            match fetched {
                Ok(Fetched::Direct(count)) => filled += count,
                Ok(Fetched::Cached) => {}
                Ok(Fetched::End) => {
                    if end_seen_at.replace(at) == Some(at) {
                        // Somebody made the file shorter.
                        state.forget_reads();
                        break;
                    }
                    // Before a write behind the end there are zeros, once it is executed; and
                    // what was read ahead may have been read before that.
                    self.settle_locked(&mut state);
                }
                // What was read before counts; who comes again is told.
                Err(_) if filled > 0 => break,
                Err(error) => return (state, Err(error)),
            }
        }
        self.read_ahead(&mut state, read.end(), &advice);
        (state, Ok(filled))
    }

    /// Asks the service for what is wanted and for what will be, and receives the former.
    fn fetch<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        rest: &mut [u8],
        at: u64,
        advice: &Advice,
    ) -> (MutexGuard<'s, State>, Result<Fetched>) {
        // First, so that what is received gets the memory of what was read.
        state.trim(self.unread_max());
        let wanted = ByteRange::at(at, rest.len().min(FETCH_LEN_MAX) as u64);
        let pieces = match self.submit_pieces(&mut state, wanted) {
            Ok(pieces) => pieces,
            Err(error) => return (state, Err(error)),
        };
        if pieces.is_empty() {
            if state.chunks.at(at) == At::Gap
                && let Err(error) = self.submit_chunk(&mut state, wanted, advice)
            {
                return (state, Err(error));
            }
            self.read_ahead(&mut state, wanted.end(), advice);
            return self.receive_chunk(state, at);
        }
        self.read_ahead(&mut state, wanted.end(), advice);
        drop(state);
        let outcome = self.receive_pieces(pieces, rest, at);
        let outcome = outcome.map(|count| match count {
            0 => Fetched::End,
            count => Fetched::Direct(count),
        });
        (self.lock(), outcome)
    }

    /// Requests for the beginning of `wanted` that can be received into the caller's buffer: those
    /// on their way already and new ones, as far as both go without interruption.
    fn submit_pieces(&self, state: &mut State, wanted: ByteRange) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        let end = wanted.end().min(state.size);
        let mut at = wanted.start();
        while at < end {
            match state.chunks.at(at) {
                At::Pending(range) if range.start() == at && range.end() <= wanted.end() => {
                    let Some(outstanding) = state.chunks.take_pending(at) else { break };
                    pieces.push(Piece { len: range.len() as usize, outstanding });
                    at = range.end();
                }
                At::Gap => {
                    let gap = self.gap_at(state, at).intersection(&ByteRange::new(at, end));
                    if gap.len() < DIRECT_LEN_MIN {
                        break;
                    }
                    let ranges: Vec<_> = gap.pieces(self.payload_max as u64).collect();
                    let outstanding = self.submit_reads(&ranges)?.into_iter();
                    pieces.extend(ranges.iter().zip(outstanding).map(|(range, outstanding)| {
                        Piece { len: range.len() as usize, outstanding }
                    }));
                    at = gap.end();
                }
                At::Pending(_) | At::Arriving | At::Ready => break,
            }
        }
        Ok(pieces)
    }

    /// Receives pieces in order and returns how many bytes are there without interruption. The
    /// lock is not held.
    fn receive_pieces(&self, pieces: Vec<Piece>, rest: &mut [u8], at: u64) -> Result<usize> {
        let mut filled = 0;
        for piece in pieces {
            let target = &mut rest[filled..filled + piece.len];
            let count = match piece.outstanding.wait_read(target) {
                Err(error) if error.is_retryable() => self.read_now(target, at + filled as u64),
                outcome => outcome,
            };
            match count {
                Ok(count) => filled += count,
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
            if count != Ok(piece.len) {
                break;
            }
        }
        Ok(filled)
    }

    /// Requests the chunk that a small read needs.
    fn submit_chunk(&self, state: &mut State, wanted: ByteRange, advice: &Advice) -> Result<()> {
        let at = wanted.start();
        let gap = self.gap_at(state, at).intersection(&ByteRange::new(0, state.size));
        let chunk = if advice.is_sequential {
            ByteRange::at(at, advice.request_len.max(wanted.len()))
        } else {
            wanted.aligned(BLOCK_LEN)
        };
        let chunk = chunk.intersection(&gap);
        let (chunk, _) = chunk.split_at(chunk.start() + self.payload_max as u64);
        let outstanding = self.submit_read(chunk)?;
        state.chunks.insert(chunk, Content::Pending(outstanding));
        Ok(())
    }

    /// Receives the chunk at `at` into the cache.
    fn receive_chunk<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        at: u64,
    ) -> (MutexGuard<'s, State>, Result<Fetched>) {
        let Some((id, range, outstanding)) = state.chunks.begin_arrival(at) else {
            // Dropped to make room; it will be asked for again.
            return (state, Ok(Fetched::Cached));
        };
        drop(state);
        let outcome = match outstanding.wait() {
            Ok((connection, body)) if body.data().len() as u64 <= range.len() => {
                Ok(Bytes::Reply(connection, body))
            }
            Ok((connection, body)) => {
                let (count, asked) = (body.data().len(), range.len() as usize);
                let source = ProtocolError::TooMuch { count, asked };
                Err(Error::Protocol { peer: connection.peer().to_owned(), source })
            }
            Err(error) if error.is_retryable() => {
                let mut bytes = vec![0; range.len() as usize];
                self.read_now(&mut bytes, range.start()).map(|count| {
                    bytes.truncate(count);
                    Bytes::Own(bytes)
                })
            }
            Err(error) => Err(error),
        };
        let mut state = self.lock();
        let outcome = match outcome {
            Ok(bytes) => {
                let fetched =
                    if bytes.as_ref().is_empty() { Fetched::End } else { Fetched::Cached };
                state.chunks.end_arrival(id, Some(bytes));
                Ok(fetched)
            }
            Err(error) => {
                state.chunks.end_arrival(id, None);
                Err(error)
            }
        };
        self.announce_arrival(&state);
        (state, outcome)
    }

    /// Requests what `advice` says will be wanted behind `from`.
    fn read_ahead(&self, state: &mut State, from: u64, advice: &Advice) {
        let to = from.saturating_add(advice.ahead).min(state.size);
        let mut ranges = Vec::new();
        let mut at = from;
        while at < to {
            if let Some(end) = state.chunks.end_at(at).or_else(|| state.writes.end_at(at)) {
                at = end;
                continue;
            }
            let gap = self.gap_at(state, at).intersection(&ByteRange::new(at, state.size));
            let (request, _) = gap.split_at(at.saturating_add(advice.request_len));
            if request.end() > to && request.end() < gap.end() {
                // The rest of the window has no room for a whole request.
                break;
            }
            ranges.push(request);
            at = request.end();
        }
        if ranges.is_empty() {
            return;
        }
        // Nobody waits for it: if it cannot be had, who needs it will be told.
        let requests = self.submit_reads(&ranges).unwrap_or_default();
        for (range, request) in ranges.into_iter().zip(requests) {
            state.chunks.insert(range, Content::Pending(request));
        }
        state.trim(self.unread_max());
    }

    /// The bytes around `at` that are neither cached nor being written.
    fn gap_at(&self, state: &State, at: u64) -> ByteRange {
        let gap = state.chunks.gap_around(at);
        if state.writes.is_empty() {
            return gap;
        }
        let written = state.writes.next_start(at).unwrap_or(u64::MAX);
        gap.intersection(&ByteRange::new(at, written))
    }

    /// A read at or behind the known end. Nothing is answered without asking but the first time:
    /// programs read until they get nothing, and those that follow a growing file come again.
    fn read_past_end<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        rest: &mut [u8],
        at: u64,
    ) -> (MutexGuard<'s, State>, Result<usize>) {
        if std::mem::take(&mut state.end_is_known) && state.is_fresh() {
            return (state, Ok(0));
        }
        let first = state.first.take().filter(|_| state.size == 0);
        drop(state);
        if let Some(first) = first
            && let Ok((connection, body)) = first.wait()
        {
            let is_empty = body.data().is_empty();
            connection.recycle(body);
            if is_empty {
                return (self.lock(), Ok(0));
            }
            // A file that has no size but data is made up while it is read.
            self.set_unbuffered();
        }
        let room = rest.len();
        let outcome = self.read_now(rest, at);
        let mut state = self.lock();
        if let Ok(count @ 1..) = outcome {
            state.size = state.size.max(at + count as u64);
            if count == room {
                // There is more, probably: let the size be asked for.
                state.forget_reads();
            }
        }
        (state, outcome)
    }

    fn submit_read(&self, range: ByteRange) -> Result<Outstanding> {
        self.submit(Repeat::Safe, |connection, fid| {
            connection.submit_read(fid, range.start(), range.len() as u32)
        })
    }

    /// Reads past all caches. Programs do not expect a regular file to give less than there is.
    fn read_uncached(&self, target: &mut [u8], offset: u64) -> Result<usize> {
        let mut filled = self.read_now(target, offset)?;
        while !self.is_unbuffered() && (1..target.len()).contains(&filled) {
            match self.read_now(&mut target[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                // What was read before counts; who comes again is told.
                Err(_) => break,
            }
        }
        Ok(filled)
    }

    /// Reads once, past all caches and as much as one request can carry, and waits.
    fn read_now(&self, target: &mut [u8], offset: u64) -> Result<usize> {
        self.handle().with(Repeat::Safe, |connection, fid| {
            let count = target.len().min(connection.payload_max());
            let ticket = connection.submit_read(fid, offset, count as u32)?;
            connection.wait_read(ticket, &mut target[..count])
        })
    }
}
