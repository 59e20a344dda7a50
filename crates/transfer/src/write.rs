//! Carrying out the groups of a write.

use std::io::IoSlice;
use std::ops::Range;

use rustix::io::Errno;
use sieve::{Access, FileView, Group, Method, Runs, copy};

use crate::engine::Locking;
use crate::error::{Error, Result};
use crate::read::{MAPPED_BLOCK_MIN, advance, gather_pieces, within};
use crate::target::{LockKind, Target, WriteRequest, read_full, write_full};

/// How much of what is written through a mapping is written by a call, in bytes.
const TOLD_BYTES: u64 = 8;

/// A write through a view, group by group. [`Writer::done`] bytes have been written, whatever came
/// of the group behind them.
pub(crate) struct Writer<'a, T: ?Sized> {
    target: &'a T,
    runs: Runs<'a>,
    /// Where the write starts in the view's data.
    start: u64,
    buffer: &'a mut [u8],
    data: &'a [u8],
    locking: Locking,
}

/// A lock for as long as it lives.
struct Guard<'a, T: Target + ?Sized> {
    target: &'a T,
    file: Option<Range<u64>>,
}

impl<'a, T: Target + ?Sized> Guard<'a, T> {
    fn none(target: &'a T) -> Self {
        Self { target, file: None }
    }

    fn new(target: &'a T, file: Range<u64>, kind: LockKind) -> std::result::Result<Self, Errno> {
        target.lock(file.clone(), kind)?;
        Ok(Self { target, file: Some(file) })
    }
}

impl<T: Target + ?Sized> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.target.unlock(file);
        }
    }
}

fn failed(access: Access, offset: u64, len: u64, errno: Errno) -> Error {
    Error::Io { access, offset, len, errno }
}

/// Whether an error says that there are no locks here, rather than that this one cannot be had.
fn has_no_locks(errno: Errno) -> bool {
    matches!(errno, Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL)
}

impl<'a, T: Target + ?Sized> Writer<'a, T> {
    pub(crate) fn new(
        target: &'a T,
        view: &'a FileView,
        offset: u64,
        buffer: &'a mut [u8],
        data: &'a [u8],
        locking: Locking,
    ) -> Result<Self> {
        let runs = view.runs(offset, data.len() as u64)?;
        Ok(Self { target, runs, start: offset, buffer, data, locking })
    }

    /// Bytes of data written so far.
    pub(crate) fn done(&self) -> u64 {
        self.runs.at() - self.start
    }

    /// Whether all that is to be written is one piece of the file.
    pub(crate) fn is_one_block(&self) -> bool {
        self.runs.peek(u64::MAX).is_some_and(|run| run.len == self.runs.left())
    }

    /// All that is left, as the one block that it is.
    pub(crate) fn one_block(&mut self) -> Result<()> {
        let data = self.runs.at()..self.runs.at() + self.runs.left();
        let start = self.runs.peek(1).map_or(0, |run| run.file);
        let file = start..start + self.runs.left();
        self.blocks(&Group { data, file, method: Method::Each }, 1)
    }

    /// What is to be written from here on.
    fn rest(&self) -> &'a [u8] {
        &self.data[(self.runs.at() - self.start) as usize..]
    }

    pub(crate) fn group(&mut self, group: &Group, in_flight: u32) -> Result<()> {
        match group.method {
            Method::Each | Method::Mapped => self.blocks(group, in_flight),
            Method::Window | Method::Vector => self.read_modify_write(group),
        }
    }

    /// Blocks by themselves. They change nothing but themselves; a lock, where one is asked for,
    /// keeps away those who are about to write back what they read here.
    fn blocks(&mut self, group: &Group, in_flight: u32) -> Result<()> {
        let target = self.target;
        // Where the mapping does what otherwise a window would, others who write such a pattern by
        // windows are kept out as by one.
        let is_locked = match self.locking {
            Locking::All => true,
            Locking::Windows => group.method == Method::Mapped,
            Locking::SingleWriter => false,
        };
        let _guard = match is_locked {
            true => match Guard::new(target, group.file.clone(), LockKind::Shared) {
                Ok(guard) => guard,
                Err(errno) if has_no_locks(errno) => Guard::none(target),
                Err(errno) => {
                    let (offset, len) = (group.file.start, group.file_len());
                    return Err(Error::Lock { offset, len, errno });
                }
            },
            false => Guard::none(target),
        };
        if group.method == Method::Mapped {
            self.mapped(group.data.end);
        }
        if in_flight > 1 {
            self.batch(group.data.end, in_flight as usize)
        } else {
            self.each(group.data.end)
        }
    }

    /// The blocks up to `data_end` through a mapping, as far as that goes, and but for the last
    /// few bytes: a call that writes those tells everybody that the file has changed. Stores into
    /// a mapping do so some time (POSIX, `mmap`, "st_mtime"), and on tmpfs never.
    fn mapped(&mut self, data_end: u64) {
        let mut pieces = Vec::new();
        let mut ahead = self.runs.clone();
        let mapped_end = data_end - TOLD_BYTES.min(data_end - ahead.at());
        while ahead.at() < mapped_end {
            let len = gather_pieces(&mut ahead, mapped_end, &mut pieces);
            // A call of its own costs a single small block less.
            if pieces.len() < 2 && len < MAPPED_BLOCK_MIN {
                return;
            }
            let data = &self.rest()[..len as usize];
            let done = self.target.write_mapped(&pieces, data).unwrap_or(0) as u64;
            advance(&mut self.runs, done);
            if done < len {
                return;
            }
        }
    }

    fn each(&mut self, data_end: u64) -> Result<()> {
        while let Some(run) = self.runs.peek(data_end - self.runs.at()) {
            for number in 0..run.count {
                let offset = run.file + number * run.stride;
                let block = &self.rest()[..run.len as usize];
                let (done, errno) = write_full(self.target, offset, block);
                self.runs.advance(done as u64);
                if let Some(errno) = errno {
                    return Err(failed(Access::Write, offset, run.len, errno));
                }
            }
        }
        Ok(())
    }

    /// Blocks by themselves, `in_flight` at a time.
    fn batch(&mut self, data_end: u64, in_flight: usize) -> Result<()> {
        let mut ahead = self.runs.clone();
        while ahead.at() < data_end {
            let mut writes = Vec::with_capacity(in_flight);
            while let Some(run) = ahead.peek(data_end - ahead.at())
                && writes.len() < in_flight
            {
                let from = (ahead.at() - self.start) as usize;
                let data = &self.data[from..from + run.len as usize];
                writes.push(WriteRequest { offset: run.file, data, done: 0, errno: None });
                ahead.advance(run.len);
            }
            self.target.write_batch(&mut writes);
            for write in writes {
                self.runs.advance(write.done as u64);
                if write.done < write.data.len() {
                    let errno = write.errno.unwrap_or(Errno::IO);
                    let len = write.data.len() as u64;
                    return Err(failed(Access::Write, write.offset, len, errno));
                }
            }
        }
        Ok(())
    }

    /// Reads the group's part of the file, puts the blocks into it and writes it back, from the
    /// first wanted byte to the last and no farther: the file is no longer afterwards than the
    /// blocks make it. What lies beyond its end reads as zero.
    fn read_modify_write(&mut self, group: &Group) -> Result<()> {
        let span = group.file_len();
        let buffer_len = self.buffer.len() as u64;
        if span > buffer_len {
            return Err(Error::BufferTooSmall { span, buffer: buffer_len });
        }
        if !self.target.is_readable() {
            return Err(Error::NotReadable);
        }
        let target = self.target;
        let offset = group.file.start;
        let _guard = match self.locking {
            Locking::SingleWriter => Guard::none(target),
            Locking::Windows | Locking::All => {
                match Guard::new(target, group.file.clone(), LockKind::Exclusive) {
                    Ok(guard) => guard,
                    // Without locks nothing may be written back that was not asked for.
                    Err(errno) if has_no_locks(errno) => return self.each(group.data.end),
                    Err(errno) => return Err(Error::Lock { offset, len: span, errno }),
                }
            }
        };
        let window = &mut self.buffer[..span as usize];
        let (got, errno) = read_full(target, offset, window);
        if errno.is_some() {
            // The holes may be what cannot be read, and nobody asked for them.
            return self.each(group.data.end);
        }
        window[got..].fill(0);
        match group.method {
            Method::Vector => self.write_vectored(group),
            _ => self.write_window(group),
        }
    }

    /// Puts the blocks into the window and writes it.
    fn write_window(&mut self, group: &Group) -> Result<()> {
        let offset = group.file.start;
        let window = &mut self.buffer[..group.file_len() as usize];
        let mut runs = self.runs.clone();
        let first = runs.peek(1).map_or(offset, |run| run.file);
        let mut end = first;
        while let Some(run) = runs.peek(group.data.end - runs.at()) {
            let from = (runs.at() - self.start) as usize;
            copy::gather(&run, &self.data[from..], window, offset);
            end = run.end();
            runs.advance(run.data());
        }
        let wanted = &self.buffer[(first - offset) as usize..(end - offset) as usize];
        let (done, errno) = write_full(self.target, first, wanted);
        match errno {
            None => self.runs = runs,
            // It may be a hole for which there is no room.
            Some(_) => {
                self.advance_to(first + done as u64, group.data.end);
                return self.each(group.data.end);
            }
        }
        Ok(())
    }

    /// Steps over the blocks, or parts of them, that lie before `file_end`.
    fn advance_to(&mut self, file_end: u64, data_end: u64) {
        while let Some(run) = self.runs.peek(data_end - self.runs.at())
            && let Some(done) = within(&run, file_end)
        {
            self.runs.advance(done.data());
        }
    }

    /// One call that takes each block from its place and each hole from the window.
    fn write_vectored(&mut self, group: &Group) -> Result<()> {
        let offset = group.file.start;
        let window = &self.buffer[..group.file_len() as usize];
        let mut runs = self.runs.clone();
        let first = runs.peek(1).map_or(offset, |run| run.file);
        let mut at = first;
        let mut places = Vec::new();
        while let Some(run) = runs.peek(group.data.end - runs.at()) {
            let from = (runs.at() - self.start) as usize;
            let mut blocks = self.data[from..].chunks(run.len as usize);
            for number in 0..run.count {
                let file = run.file + number * run.stride;
                if file > at {
                    let hole = (at - offset) as usize..(file - offset) as usize;
                    places.push(IoSlice::new(&window[hole]));
                }
                places.push(IoSlice::new(blocks.next().expect("as long as the data")));
                at = file + run.len;
            }
            runs.advance(run.data());
        }
        let done = loop {
            match self.target.write_vectored_at(first, &places) {
                Ok(done) => break done as u64,
                Err(Errno::INTR) => {}
                Err(_) => break 0,
            }
        };
        if done >= at - first {
            self.runs = runs;
            return Ok(());
        }
        // Fewer than asked: the rest block by block, which says why.
        self.advance_to(first + done, group.data.end);
        self.each(group.data.end)
    }
}
