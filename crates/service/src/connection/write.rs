//! Large writes: from the socket to the store while they arrive.
//!
//! Where the store lends a descriptor the kernel moves the data through a pipe, which saves the
//! copy into this process and out of it: a tenth of all that a written byte costs. Whatever goes
//! wrong there is tried again in the ordinary way, which knows how to report it.

use std::sync::Arc;

use p9::frame::{HEADER_LEN, Header, WRITE_REQUEST_OVERHEAD};
use p9::{Errno, Fid, OpenFlags, Reply};
use rustix::buffer::spare_capacity;
use rustix::io::Errno as Os;
use rustix::net::{RecvFlags, recv};

use super::channel::Channel;
use super::input::INPUT_BYTES;
use super::socket::Broken;
use super::{Body, Receiver};
use crate::session::{Entry, Opened, Refusal, guarded};

/// Pieces end at multiples of this in the file, so that no page is written in two halves (the
/// first of which would have to be read from disk).
const PAGE_BYTES: u64 = 4096;

/// Data are written in pieces of about this size. Larger pieces fall out of the processor's cache
/// between receiving and writing; smaller ones make ext4 look at all blocks of a large folio
/// more often.
const PIECE_BYTES: usize = INPUT_BYTES / 8 * 7;

/// The fixed fields of a `Twrite`.
struct WriteHead {
    fid: Fid,
    offset: u64,
    count: usize,
}

impl WriteHead {
    fn parse(fields: &[u8]) -> Option<Self> {
        let (fid, rest) = fields.split_first_chunk::<4>()?;
        let (offset, rest) = rest.split_first_chunk::<8>()?;
        let count = rest.first_chunk::<4>()?;
        Some(Self {
            fid: Fid(u32::from_le_bytes(*fid)),
            offset: u64::from_le_bytes(*offset),
            count: u32::from_le_bytes(*count) as usize,
        })
    }
}

/// How many of the bytes at hand to write next, if `left` are to come in all.
fn part_to_write(offset: u64, at_hand: usize, left: usize) -> usize {
    let aligned = (offset + at_hand as u64) / PAGE_BYTES * PAGE_BYTES;
    match aligned.checked_sub(offset) {
        Some(part) if at_hand < left && part > 0 => part as usize,
        _ => at_hand,
    }
}

/// Has the store take up to `count` bytes out of the channel. 0: not in this way.
fn give(entry: &Entry, channel: &mut Channel, offset: u64, count: usize) -> Result<usize, Broken> {
    let held = channel.held();
    let taken = guarded(|| {
        let node = entry.opened()?.writable()?;
        Ok(node.write_by_kernel(offset, count, &mut |file| channel.give(file, offset, count)))
    });
    let gone = held - channel.held();
    // A store that has failed after the bytes were gone cannot be asked again: the client has to.
    if taken.unwrap_or(0) == gone { Ok(gone) } else { Err(Broken) }
}

impl Receiver<'_> {
    /// Does a `Twrite` that is larger than [`super::STREAM_BYTES`].
    pub(super) fn large_write(&mut self, header: &Header) -> Result<(), Broken> {
        self.want(WRITE_REQUEST_OVERHEAD)?;
        let fields = &self.input.bytes()[HEADER_LEN..WRITE_REQUEST_OVERHEAD];
        let head = match WriteHead::parse(fields) {
            Some(head) if head.count == header.size as usize - WRITE_REQUEST_OVERHEAD => head,
            _ => return self.give_up(header.tag),
        };
        match self.streamable(head.fid) {
            Some(entry) => {
                self.streams = true;
                self.input.consume(WRITE_REQUEST_OVERHEAD);
                self.stream(header, &head, &entry)
            }
            None => {
                self.streams = false;
                self.input.consume(HEADER_LEN);
                let mut body = self.take_body(header.body_len())?;
                let done = self.request(header, Body::Owned(&mut body));
                body.clear();
                self.body = body;
                done
            }
        }
    }

    /// Whether a write may be done in pieces: into a file at an offset (an append must stay in
    /// one piece), right now.
    fn streamable(&self, fid: Fid) -> Option<Arc<Entry>> {
        let entry = self.session().entry(fid).ok()?;
        let at_offsets = |opened: &Opened| !opened.flags.contains(OpenFlags::APPEND);
        let now = !entry.blocks
            && self.pool.is_empty()
            && self.session().terms().is_some()
            && entry.opened().is_ok_and(at_offsets);
        now.then_some(entry)
    }

    /// Receives `count` bytes into one piece of memory.
    fn take_body(&mut self, count: usize) -> Result<Vec<u8>, Broken> {
        let mut body = std::mem::take(&mut self.body);
        if body.capacity() < count {
            body = self.pool.spare();
        }
        body.clear();
        body.reserve_exact(count);
        let at_hand = self.input.len().min(count);
        body.extend_from_slice(&self.input.bytes()[..at_hand]);
        self.input.consume(at_hand);
        if body.len() < count {
            self.flush_out()?;
        }
        if body.capacity() == count {
            while body.len() < count {
                // Memory of exactly this size need not be zeroed before it is filled.
                match recv(self.socket().fd(), spare_capacity(&mut body), RecvFlags::WAITALL) {
                    Ok((0, _)) => return Err(Broken),
                    Ok(_) | Err(Os::INTR) => {}
                    Err(_) => return Err(Broken),
                }
            }
        } else {
            let mut at = body.len();
            body.resize(count, 0);
            while at < count {
                match self.socket().receive(&mut body[at..], || false)? {
                    0 => return Err(Broken),
                    received => at += received,
                }
            }
        }
        Ok(body)
    }

    /// Has the kernel move the next `left` bytes of the socket to a file and returns how many it
    /// moved. If those are not all, the next ones are in the input buffer.
    fn write_by_kernel(
        &mut self,
        entry: &Entry,
        offset: u64,
        left: usize,
    ) -> Result<usize, Broken> {
        let takes = guarded(|| Ok(entry.opened()?.writable()?.takes_from_kernel()));
        if !takes.unwrap_or(false) {
            return Ok(0);
        }
        self.flush_out()?;
        if self.channel.is_none() {
            self.channel = Channel::new();
        }
        let Some(channel) = &mut self.channel else { return Ok(0) };
        let socket = self.pool.worker().socket.fd();
        let mut done = 0;
        while done < left {
            let most = (left - done).min(INPUT_BYTES);
            while channel.held() < most && channel.has_room() {
                channel.take(socket, most - channel.held())?;
            }
            let mut part = part_to_write(offset + done as u64, channel.held(), left - done);
            while part > 0 {
                let given = give(entry, channel, offset + done as u64, part)?;
                if given == 0 {
                    self.input.fill_from(channel)?;
                    return Ok(done);
                }
                done += given;
                part -= given.min(part);
            }
        }
        Ok(done)
    }

    /// Writes the data of a `Twrite` as they arrive. If the store fails, the rest is received and
    /// thrown away, and the answer is the count so far or, if nothing was written, the error: as
    /// write(2) has it.
    fn stream(&mut self, header: &Header, head: &WriteHead, entry: &Entry) -> Result<(), Broken> {
        let mut offset = head.offset;
        let mut left = head.count;
        let mut failure: Option<Refusal> = None;
        if offset.checked_add(left as u64).is_none_or(|end| i64::try_from(end).is_err()) {
            failure = Some(Errno::EFBIG.into());
            self.drain(left)?;
            left = 0;
        }
        if left > 0 && self.input.len() == 0 {
            let moved = self.write_by_kernel(entry, offset, left)?;
            offset += moved as u64;
            left -= moved;
        }
        while left > 0 {
            // Some more than this write's data, so that the next header comes along.
            let most = left + WRITE_REQUEST_OVERHEAD;
            let wanted = left.min(PIECE_BYTES);
            if self.input.len() < wanted {
                self.flush_out()?;
                // Half a request and then silence is a broken client.
                self.input.fill(&self.pool.worker().socket, wanted, most, || false)?;
            }
            let part = part_to_write(offset, self.input.len().min(left), left);
            let data = &self.input.bytes()[..part];
            let written = guarded(|| Ok(entry.opened()?.writable()?.write_at(data, offset)?));
            match written {
                Ok(count) => {
                    offset += count as u64;
                    if count < part {
                        self.drain(left)?;
                        break;
                    }
                }
                Err(refusal) => {
                    failure = Some(refusal);
                    self.drain(left)?;
                    break;
                }
            }
            self.input.consume(part);
            left -= part;
        }
        let written = offset - head.offset;
        match failure {
            Some(refusal) if written == 0 => {
                self.pool.worker().session.refuse(header.tag, refusal, &mut self.out);
            }
            _ => Reply::Write { count: written as u32 }.encode(header.tag, &mut self.out),
        }
        Ok(())
    }
}
