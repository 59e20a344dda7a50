//! Carrying out the groups of a read.

use std::io::IoSliceMut;

use mapping::PIECES_MAX;
use rustix::io::Errno;
use sieve::{Access, FileView, Group, Method, Run, Runs, copy};

use crate::error::{Error, Result};
use crate::target::{Piece, ReadRequest, Target, read_full};

/// Whether there is more to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All of the group came.
    Going,
    /// The file ends here.
    Ended,
}

/// A read through a view, group by group. [`Reader::done`] bytes are always right, whatever came
/// of the group behind them.
pub(crate) struct Reader<'a, T: ?Sized> {
    target: &'a T,
    runs: Runs<'a>,
    /// Where the read starts in the view's data.
    start: u64,
    buffer: &'a mut [u8],
    out: &'a mut [u8],
}

fn failed(offset: u64, len: u64, errno: Errno) -> Error {
    Error::Io { access: Access::Read, offset, len, errno }
}

impl<'a, T: Target + ?Sized> Reader<'a, T> {
    pub(crate) fn new(
        target: &'a T,
        view: &'a FileView,
        offset: u64,
        buffer: &'a mut [u8],
        out: &'a mut [u8],
    ) -> Result<Self> {
        let runs = view.runs(offset, out.len() as u64)?;
        Ok(Self { target, runs, start: offset, buffer, out })
    }

    /// Bytes of data read so far.
    pub(crate) fn done(&self) -> u64 {
        self.runs.at() - self.start
    }

    /// The part of `out` for `data` of the view.
    fn place(&mut self, data: u64, len: u64) -> &mut [u8] {
        let from = (data - self.start) as usize;
        &mut self.out[from..from + len as usize]
    }

    /// Whether all that is wanted is one piece of the file.
    pub(crate) fn is_one_block(&self) -> bool {
        self.runs.peek(u64::MAX).is_some_and(|run| run.len == self.runs.left())
    }

    /// All that is left, as the one block that it is.
    pub(crate) fn one_block(&mut self) -> Result<Progress> {
        self.each(self.runs.at() + self.runs.left())
    }

    pub(crate) fn group(&mut self, group: &Group) -> Result<Progress> {
        match group.method {
            Method::Each => self.each(group.data.end),
            Method::Window => self.window(group),
            Method::Vector => self.vector(group),
            Method::Mapped => self.mapped(group.data.end),
        }
    }

    /// The blocks up to `data_end` through a mapping, and by themselves what cannot be had so.
    fn mapped(&mut self, data_end: u64) -> Result<Progress> {
        let mut pieces = Vec::with_capacity(PIECES_MAX.min((data_end - self.runs.at()) as usize));
        while self.runs.at() < data_end {
            let mut ahead = self.runs.clone();
            let len = gather_pieces(&mut ahead, data_end, &mut pieces);
            let from = (self.runs.at() - self.start) as usize;
            let out = &mut self.out[from..from + len as usize];
            // A call of its own costs a single small block less.
            let is_worth_it = pieces.len() > 1 || len >= MAPPED_BLOCK_MIN;
            let done = match is_worth_it {
                true => self.target.read_mapped(&pieces, out).unwrap_or(0) as u64,
                false => 0,
            };
            if done < len {
                advance(&mut self.runs, done);
                return self.each(data_end);
            }
            self.runs = ahead;
        }
        Ok(Progress::Going)
    }

    /// Every block up to `data_end` by itself.
    fn each(&mut self, data_end: u64) -> Result<Progress> {
        while let Some(run) = self.runs.peek(data_end - self.runs.at()) {
            for number in 0..run.count {
                let offset = run.file + number * run.stride;
                let target = self.target;
                let place = self.place(self.runs.at(), run.len);
                let (done, errno) = read_full(target, offset, place);
                self.runs.advance(done as u64);
                if let Some(errno) = errno {
                    return Err(failed(offset, run.len, errno));
                }
                if (done as u64) < run.len {
                    return Ok(Progress::Ended);
                }
            }
        }
        Ok(Progress::Going)
    }

    /// All of the group's part of the file into the buffer, and its blocks out of it.
    fn window(&mut self, group: &Group) -> Result<Progress> {
        let span = group.file_len();
        if span > self.buffer.len() as u64 {
            return Err(Error::BufferTooSmall { span, buffer: self.buffer.len() as u64 });
        }
        let offset = group.file.start;
        let (done, errno) = read_full(self.target, offset, &mut self.buffer[..span as usize]);
        let progress = self.scatter(group.data.end, offset, 0, done);
        match errno {
            // What cannot be read may lie in a hole, for which nobody asked.
            Some(_) if progress == Progress::Ended => self.each(group.data.end),
            _ => Ok(progress),
        }
    }

    /// Copies the blocks up to `data_end` out of `len` bytes of the buffer from `at`, which hold the
    /// file from `offset` on.
    fn scatter(&mut self, data_end: u64, offset: u64, at: usize, len: usize) -> Progress {
        let window = &self.buffer[at..at + len];
        let window_end = offset + len as u64;
        while let Some(run) = self.runs.peek(data_end - self.runs.at()) {
            let run = match within(&run, window_end) {
                Some(run) => run,
                None => return Progress::Ended,
            };
            let from = (self.runs.at() - self.start) as usize;
            copy::scatter(&run, window, offset, &mut self.out[from..]);
            self.runs.advance(run.data());
        }
        Progress::Going
    }

    /// One call that puts each block in its place and each hole into the buffer.
    fn vector(&mut self, group: &Group) -> Result<Progress> {
        let mut places = Vec::new();
        let mut runs = self.runs.clone();
        let mut at = group.file.start;
        let from = (runs.at() - self.start) as usize;
        let (mut out, mut spare) = (&mut self.out[from..], &mut self.buffer[..]);
        while let Some(run) = runs.next_within(group.data.end - runs.at()) {
            for number in 0..run.count {
                let offset = run.file + number * run.stride;
                let hole = (offset - at) as usize;
                if hole > spare.len() {
                    let buffer = self.buffer.len() as u64;
                    return Err(Error::BufferTooSmall { span: group.file_len(), buffer });
                }
                if hole > 0 {
                    places.push(IoSliceMut::new(spare.split_off_mut(..hole).expect("checked")));
                }
                let block = out.split_off_mut(..run.len as usize).expect("as long as the data");
                places.push(IoSliceMut::new(block));
                at = offset + run.len;
            }
        }
        let done = loop {
            match self.target.read_vectored_at(group.file.start, &mut places) {
                Ok(done) => break done,
                Err(Errno::INTR) => {}
                Err(_) => return self.each(group.data.end),
            }
        };
        let end = group.file.start + done as u64;
        while let Some(run) = self.runs.peek(group.data.end - self.runs.at()) {
            match within(&run, end) {
                Some(run) => self.runs.advance(run.data()),
                // Fewer than asked: at the end of the file, or the kernel had its reasons. Asking
                // for what is left block by block tells which.
                None => return self.each(group.data.end),
            }
        }
        Ok(Progress::Going)
    }

    /// Reads `groups` with up to `in_flight` requests under way together.
    pub(crate) fn batch(
        &mut self,
        groups: &mut dyn Iterator<Item = Group>,
        in_flight: u32,
    ) -> Result<Progress> {
        let mut groups = groups.peekable();
        let mut ahead = self.runs.clone();
        let in_flight = in_flight.max(1) as usize;
        if self.target.announces() {
            return self.announced(&mut groups, &mut ahead, in_flight);
        }
        while groups.peek().is_some() {
            let batch = self.gather_batch(&mut groups, &mut ahead, in_flight)?;
            if self.run_batch(&batch)? == Progress::Ended {
                return Ok(Progress::Ended);
            }
        }
        Ok(Progress::Going)
    }

    /// Reads pieces one after the other, each announced long before: while one half of what may be
    /// under way is read, the other is fetched.
    fn announced(
        &mut self,
        groups: &mut std::iter::Peekable<&mut dyn Iterator<Item = Group>>,
        ahead: &mut Runs<'a>,
        in_flight: usize,
    ) -> Result<Progress> {
        let half = in_flight.div_ceil(2);
        let mut current = Vec::new();
        loop {
            let next = self.gather_batch(groups, ahead, half)?;
            for piece in &next {
                self.target.announce(piece.offset..piece.offset + piece.span);
            }
            let is_last = next.is_empty() && groups.peek().is_none();
            for piece in std::mem::replace(&mut current, next) {
                let progress = match &piece.group {
                    Some(group) => self.group(group)?,
                    None => self.each(self.runs.at() + piece.data)?,
                };
                if progress == Progress::Ended {
                    return Ok(Progress::Ended);
                }
            }
            if is_last {
                return Ok(Progress::Going);
            }
        }
    }

    /// The requests that fit into one batch, in the order of the data.
    fn gather_batch(
        &self,
        groups: &mut std::iter::Peekable<&mut dyn Iterator<Item = Group>>,
        ahead: &mut Runs<'a>,
        requests_max: usize,
    ) -> Result<Vec<Part>> {
        let mut batch = Vec::with_capacity(requests_max);
        // What is announced is read later, through all of the buffer.
        let announces = self.target.announces();
        let mut room = self.buffer.len() as u64;
        while let Some(group) = groups.peek()
            && batch.len() < requests_max
        {
            let data_end = group.data.end;
            if group.method == Method::Each {
                let Some(run) = ahead.peek(data_end - ahead.at()) else {
                    groups.next();
                    continue;
                };
                let (offset, len) = (run.file, run.len);
                batch.push(Part { offset, span: len, data: len, group: None });
                ahead.advance(len);
                continue;
            }
            let span = group.file_len();
            if span > room && !announces {
                if batch.is_empty() {
                    let buffer = self.buffer.len() as u64;
                    return Err(Error::BufferTooSmall { span, buffer });
                }
                break;
            }
            room = room.saturating_sub(span);
            let data = data_end - ahead.at();
            while let Some(run) = ahead.peek(data_end - ahead.at()) {
                ahead.advance(run.data());
            }
            let offset = group.file.start;
            batch.push(Part { offset, span, data, group: groups.next() });
        }
        Ok(batch)
    }

    fn run_batch(&mut self, batch: &[Part]) -> Result<Progress> {
        let from = (self.runs.at() - self.start) as usize;
        let (mut out, mut buffer) = (&mut self.out[from..], &mut self.buffer[..]);
        let mut reads = Vec::with_capacity(batch.len());
        for piece in batch {
            let place = out.split_off_mut(..piece.data as usize).expect("as long as the data");
            let buf = if piece.group.is_some() {
                buffer.split_off_mut(..piece.span as usize).expect("as much as there is room")
            } else {
                place
            };
            reads.push(ReadRequest { offset: piece.offset, buf, done: 0, errno: None });
        }
        self.target.read_batch(&mut reads);
        let results: Vec<_> = reads.into_iter().map(|read| (read.done, read.errno)).collect();
        let mut at = 0;
        for (piece, (done, errno)) in batch.iter().zip(results) {
            let progress = if piece.group.is_some() {
                self.scatter(self.runs.at() + piece.data, piece.offset, at, done)
            } else {
                self.runs.advance(done as u64);
                if (done as u64) < piece.data { Progress::Ended } else { Progress::Going }
            };
            if piece.group.is_some() {
                at += piece.span as usize;
            }
            if progress == Progress::Ended {
                return match errno {
                    Some(errno) => Err(failed(piece.offset, piece.span, errno)),
                    None => Ok(Progress::Ended),
                };
            }
        }
        Ok(Progress::Going)
    }
}

/// The smallest block that is worth a copy from or to a mapping for itself, in bytes.
pub(crate) const MAPPED_BLOCK_MIN: u64 = 16 << 10;

/// As many blocks before `data_end` as one copy takes, stepped over: how many bytes they have.
pub(crate) fn gather_pieces(runs: &mut Runs<'_>, data_end: u64, pieces: &mut Vec<Piece>) -> u64 {
    let start = runs.at();
    pieces.clear();
    while pieces.len() < PIECES_MAX
        && let Some(run) = runs.peek(data_end - runs.at())
    {
        let count = run.count.min((PIECES_MAX - pieces.len()) as u64);
        let offsets = (0..count).map(|number| run.file + number * run.stride);
        pieces.extend(offsets.map(|offset| Piece { offset, len: run.len as usize }));
        runs.advance(count * run.len);
    }
    runs.at() - start
}

/// Steps over `data` bytes, however many runs they are.
pub(crate) fn advance(runs: &mut Runs<'_>, mut data: u64) {
    while let Some(run) = runs.peek(data) {
        runs.advance(run.data());
        data -= run.data();
    }
}

/// One request of a batch.
#[derive(Debug)]
struct Part {
    offset: u64,
    /// Bytes of the file.
    span: u64,
    /// Bytes of data.
    data: u64,
    /// The group that goes through the buffer; none for a block that goes straight to its place.
    group: Option<Group>,
}

/// The first part of a run that lies before `end`: whole blocks, or else a part of the first.
pub(crate) fn within(run: &Run, end: u64) -> Option<Run> {
    let room = end.checked_sub(run.file).filter(|room| *room > 0)?;
    if room < run.len {
        return Some(Run { len: room, stride: room, count: 1, ..*run });
    }
    let count = ((room - run.len) / run.stride + 1).min(run.count);
    Some(Run { count, ..*run })
}
