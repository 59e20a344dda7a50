//! The receiving half: whoever waits reads the socket, also for the others.

use std::os::fd::OwnedFd;
use std::sync::{MutexGuard, PoisonError};

use p9::frame::{HEADER_LEN, Header, READ_REPLY_OVERHEAD};
use p9::{Data, Errno, Reply, Tag};

use super::{Body, Connection, SPARE_LEN_MIN, Slot, Slots, Ticket, VERSION_SLOT};
use crate::error::{Error, ProtocolError, Result};
use crate::interrupt::{INTERRUPTED, TICK, interrupted, is_watched};
use crate::link::{Link, receive};
use crate::lock;

/// Frames up to this size are received through the small buffer; larger ones go straight to
/// their own.
const RECEIVE_BUFFER_LEN: usize = 16 * 1024;

/// What was received and not yet given on.
pub(super) struct Receiver {
    buffer: Box<[u8; RECEIVE_BUFFER_LEN]>,
    start: usize,
    end: usize,
}

/// The type byte of `Rread`, from the one table that has it.
fn p9_read_reply() -> u8 {
    Reply::Read { data: Data(&[]) }.kind()
}

/// How a reply came.
pub(super) enum Arrival {
    Body(Body),
    /// So many bytes of data went straight to where they were wanted.
    Direct(usize),
}

impl Connection {
    pub(super) fn wait_into(&self, ticket: Ticket, target: &mut [u8]) -> Result<Arrival> {
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
                slots = match is_watched() {
                    false => self.arrived.wait(slots).unwrap_or_else(PoisonError::into_inner),
                    true => {
                        let waited = self.arrived.wait_timeout(slots, TICK);
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                };
                slots.waiters -= 1;
                if slots.reader && is_watched() {
                    drop(slots);
                    if interrupted() {
                        self.forget(ticket);
                        return Err(self.lost(INTERRUPTED));
                    }
                    slots = lock(&self.slots);
                }
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

    pub(super) fn leave_reader(&self) -> MutexGuard<'_, Slots> {
        let mut slots = lock(&self.slots);
        slots.reader = false;
        if slots.waiters > 0 {
            self.arrived.notify_all();
        }
        slots
    }

    /// Takes in one frame for whoever waits for it, unless another thread is at it.
    pub(super) fn read_one_for_all(&self) -> Result<()> {
        {
            let mut slots = lock(&self.slots);
            if slots.reader {
                slots.waiters += 1;
                let mut slots = self.arrived.wait(slots).unwrap_or_else(PoisonError::into_inner);
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
    pub(super) fn read_frame(&self, wanted: Option<(&Ticket, &mut [u8])>) -> Result<Option<usize>> {
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
        let tag = if header.tag == Tag::NONE { VERSION_SLOT } else { header.tag };
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
        self.deliver(tag, Body { kind: header.kind, bytes, start: 0 })?;
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
        let spare = larger.map(|i| slots.spare.remove(i));
        drop(slots);
        // Memory that comes zeroed from the system is not touched before the data arrives.
        let mut bytes = spare.unwrap_or_else(|| vec![0; len]);
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

    pub(super) fn deliver_local(&self, tag: Tag, frame: Vec<u8>) -> Result<()> {
        let Some(header) = frame.first_chunk::<HEADER_LEN>() else {
            return Err(self.lost(Errno::EPROTO));
        };
        let header = Header::parse(header, u32::MAX).map_err(|e| self.protocol(e.into()))?;
        self.deliver(tag, Body { kind: header.kind, bytes: frame, start: HEADER_LEN })
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
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self { buffer: Box::new([0; RECEIVE_BUFFER_LEN]), start: 0, end: 0 }
    }

    pub(super) fn holds_bytes(&self) -> bool {
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
