//! Many ranges of a file in one go: all requests are sent before the first reply is waited for, as
//! far as fits the window.

use std::collections::VecDeque;
use std::sync::Arc;

use p9::{Data, Errno, Fid, Reply, Request};

use crate::connection::{Connection, Ticket};
use crate::error::{Error, ProtocolError, Result};
use crate::handle::Handle;
use crate::session::Repeat;

/// Bytes that may be on their way together.
const WINDOW_BYTES: usize = 8 * 1024 * 1024;

/// Requests that may be on their way together.
const WINDOW_REQUESTS: usize = 256;

/// Requests that are sent by one system call, where they are small.
const BURST_REQUESTS: usize = 64;

/// Data up to this length is copied together with other requests rather than sent by itself.
const SMALL_LEN: usize = 16 * 1024;

/// A range of a file to be read, and what became of it.
#[derive(Debug)]
pub struct ReadPart<'a> {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Where the bytes go; as many are asked for as it holds.
    pub target: &'a mut [u8],
    /// How many came, in one piece from the start.
    pub done: usize,
    /// Why no more came, if the service said so; otherwise the file ended, or the service gave
    /// less than was asked for.
    pub refusal: Option<Errno>,
}

/// A range of a file to be written, and what became of it.
#[derive(Debug)]
pub struct WritePart<'a> {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The bytes.
    pub data: &'a [u8],
    /// How many were written, in one piece from the start.
    pub done: usize,
    /// Why no more were, if the service said so.
    pub refusal: Option<Errno>,
}

impl<'a> ReadPart<'a> {
    /// A part that nothing was done for yet.
    #[must_use]
    pub fn new(offset: u64, target: &'a mut [u8]) -> Self {
        Self { offset, target, done: 0, refusal: None }
    }
}

impl<'a> WritePart<'a> {
    /// A part that nothing was done for yet.
    #[must_use]
    pub fn new(offset: u64, data: &'a [u8]) -> Self {
        Self { offset, data, done: 0, refusal: None }
    }
}

impl Handle {
    /// Reads many ranges. What became of each stands in it. A broken connection is made again, and
    /// the whole batch with it.
    ///
    /// # Errors
    /// As [`Handle::with`]; a refusal of a single range is none.
    pub fn read_batch(&self, parts: &mut [ReadPart<'_>]) -> Result<()> {
        self.with(Repeat::Safe, |connection, fid| run(connection, fid, &mut Reads(parts)))
    }

    /// Writes many ranges, which must not overlap: the order among them is not kept. `repeat` says
    /// whether all of it may be done twice when the connection breaks.
    ///
    /// # Errors
    /// As [`Handle::with`]; a refusal of a single range is none.
    pub fn write_batch(&self, repeat: Repeat, parts: &mut [WritePart<'_>]) -> Result<()> {
        let outcome = self.with(repeat, |connection, fid| run(connection, fid, &mut Writes(parts)));
        if parts.iter().any(|part| part.done > 0) {
            self.note_change();
        }
        outcome
    }
}

/// What one message carries of a part.
#[derive(Debug, Clone, Copy)]
struct Piece {
    part: usize,
    start: usize,
    len: usize,
}

/// Ranges to be read or written.
trait Parts {
    fn count(&self) -> usize;
    fn len(&self, part: usize) -> usize;
    fn state(&mut self, part: usize) -> (&mut usize, &mut Option<Errno>);
    fn request(&self, piece: Piece, fid: Fid) -> Request<'_>;
    /// Waits for the reply: how many bytes were carried.
    fn finish(&mut self, connection: &Connection, ticket: Ticket, piece: Piece) -> Result<usize>;
}

struct Reads<'p, 'a>(&'p mut [ReadPart<'a>]);

impl Parts for Reads<'_, '_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn len(&self, part: usize) -> usize {
        self.0[part].target.len()
    }

    fn state(&mut self, part: usize) -> (&mut usize, &mut Option<Errno>) {
        let part = &mut self.0[part];
        (&mut part.done, &mut part.refusal)
    }

    fn request(&self, piece: Piece, fid: Fid) -> Request<'_> {
        let offset = self.0[piece.part].offset.saturating_add(piece.start as u64);
        // A piece is no longer than a message.
        Request::Read { fid, offset, count: piece.len as u32 }
    }

    fn finish(&mut self, connection: &Connection, ticket: Ticket, piece: Piece) -> Result<usize> {
        let target = &mut self.0[piece.part].target[piece.start..piece.start + piece.len];
        connection.wait_read(ticket, target)
    }
}

struct Writes<'p, 'a>(&'p mut [WritePart<'a>]);

impl Parts for Writes<'_, '_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn len(&self, part: usize) -> usize {
        self.0[part].data.len()
    }

    fn state(&mut self, part: usize) -> (&mut usize, &mut Option<Errno>) {
        let part = &mut self.0[part];
        (&mut part.done, &mut part.refusal)
    }

    fn request(&self, piece: Piece, fid: Fid) -> Request<'_> {
        let part = &self.0[piece.part];
        let offset = part.offset.saturating_add(piece.start as u64);
        Request::Write { fid, offset, data: Data(&part.data[piece.start..piece.start + piece.len]) }
    }

    fn finish(&mut self, connection: &Connection, ticket: Ticket, piece: Piece) -> Result<usize> {
        let body = connection.wait(ticket)?;
        let count = match body.reply() {
            Ok(Reply::Write { count }) => count as usize,
            _ => return Err(Error::Refused(Errno::EIO)),
        };
        connection.recycle(body);
        if count > piece.len {
            let peer = connection.peer().to_owned();
            let source = ProtocolError::TooMuch { count, asked: piece.len };
            return Err(Error::Protocol { peer, source });
        }
        Ok(count)
    }
}

/// Sends pieces as far as the window allows, takes in the oldest reply, and so on.
fn run(connection: &Arc<Connection>, fid: Fid, parts: &mut dyn Parts) -> Result<()> {
    let mut waiting = Pieces::new(parts, connection.payload_max());
    let mut under_way: VecDeque<(Ticket, Piece)> = VecDeque::new();
    let mut bytes = 0;
    loop {
        while bytes < WINDOW_BYTES && under_way.len() < WINDOW_REQUESTS {
            let burst = waiting.burst(parts);
            if burst.is_empty() {
                break;
            }
            let requests: Vec<_> = burst.iter().map(|piece| parts.request(*piece, fid)).collect();
            let tickets = match requests.as_slice() {
                // By itself it is not copied.
                [request] => vec![connection.submit(request)?],
                requests => connection.submit_all(requests)?,
            };
            bytes += burst.iter().map(|piece| piece.len).sum::<usize>();
            under_way.extend(tickets.into_iter().zip(burst));
        }
        let Some((ticket, piece)) = under_way.pop_front() else { return Ok(()) };
        bytes -= piece.len;
        let (done, _) = parts.state(piece.part);
        if *done < piece.start {
            // Behind a gap. Of a write it still matters that it is over.
            let _ = parts.finish(connection, ticket, piece);
            continue;
        }
        match parts.finish(connection, ticket, piece) {
            Ok(count) => *parts.state(piece.part).0 += count,
            Err(Error::Refused(errno)) => *parts.state(piece.part).1 = Some(errno),
            Err(error) => return Err(error),
        }
    }
}

/// The pieces not sent yet.
struct Pieces {
    part: usize,
    start: usize,
    payload_max: usize,
}

impl Pieces {
    /// All of them; what an earlier attempt came to is forgotten.
    fn new(parts: &mut dyn Parts, payload_max: usize) -> Self {
        for part in 0..parts.count() {
            let (done, refusal) = parts.state(part);
            (*done, *refusal) = (0, None);
        }
        Self { part: 0, start: 0, payload_max }
    }

    /// The next ones that are sent together: many small ones or a large one.
    fn burst(&mut self, parts: &mut dyn Parts) -> Vec<Piece> {
        let mut burst = Vec::new();
        while self.part < parts.count() && burst.len() < BURST_REQUESTS {
            let len = parts.len(self.part);
            // A part that has been refused ends there.
            let refused = parts.state(self.part).1.is_some();
            if self.start >= len || refused {
                self.part += 1;
                self.start = 0;
                continue;
            }
            let len = (len - self.start).min(self.payload_max);
            if len > SMALL_LEN && !burst.is_empty() {
                break;
            }
            burst.push(Piece { part: self.part, start: self.start, len });
            self.start += len;
            if len > SMALL_LEN {
                break;
            }
        }
        burst
    }
}
