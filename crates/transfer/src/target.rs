//! What can be read and written at an offset.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;

use rustix::io::Errno;
use sieve::plan::Mapped;
use sieve::{Access, Warmth};

/// One read of a batch.
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// Offset in the file.
    pub offset: u64,
    /// Where the bytes go; as many are wanted as it holds.
    pub buf: &'a mut [u8],
    /// How many bytes came; fewer than wanted only at the end of the file or after an error.
    pub done: usize,
    /// What stopped it.
    pub errno: Option<Errno>,
}

/// One write of a batch.
#[derive(Debug)]
pub struct WriteRequest<'a> {
    /// Offset in the file.
    pub offset: u64,
    /// The bytes.
    pub data: &'a [u8],
    /// How many went; fewer than there are only after an error.
    pub done: usize,
    /// What stopped it.
    pub errno: Option<Errno>,
}

/// A part of a file that is copied from or to a mapping of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Offset in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: usize,
}

/// Who else may hold a lock on the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Others of this kind.
    Shared,
    /// Nobody.
    Exclusive,
}

/// A file, or something like it: local, at the other end of a connection, simulated.
///
/// Offsets are those of the file. Calls that carry data may carry less than was asked, as
/// pread(2) and pwrite(2) may; a read of 0 bytes means the end of the file.
pub trait Target {
    /// Reads at an offset.
    ///
    /// # Errors
    /// What stands in the way.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Errno>;

    /// Writes at an offset.
    ///
    /// # Errors
    /// What stands in the way.
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<usize, Errno>;

    /// Reads one part of the file into several places in memory.
    ///
    /// # Errors
    /// What stands in the way.
    fn read_vectored_at(&self, offset: u64, bufs: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        match bufs.iter_mut().find(|buf| !buf.is_empty()) {
            Some(buf) => self.read_at(offset, buf),
            None => Ok(0),
        }
    }

    /// Writes one part of the file from several places in memory.
    ///
    /// # Errors
    /// What stands in the way.
    fn write_vectored_at(&self, offset: u64, bufs: &[IoSlice<'_>]) -> Result<usize, Errno> {
        match bufs.iter().find(|buf| !buf.is_empty()) {
            Some(buf) => self.write_at(offset, buf),
            None => Ok(0),
        }
    }

    /// Whether vectored calls carry all of their places in one request.
    fn is_vectored(&self) -> bool {
        false
    }

    /// Reads that may be under way together. Each is carried on until it has all its bytes, or the
    /// end of the file or an error stops it.
    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        for read in reads {
            (read.done, read.errno) = read_full(self, read.offset, read.buf);
        }
    }

    /// Writes that may be under way together; the ranges do not overlap.
    fn write_batch(&self, writes: &mut [WriteRequest<'_>]) {
        for write in writes {
            (write.done, write.errno) = write_full(self, write.offset, write.data);
        }
    }

    /// Whether [`Target::announce`] does anything.
    fn announces(&self) -> bool {
        false
    }

    /// Says that a range will be read soon, so that it can be fetched while others are read. Then
    /// requests that are under way together need no memory of their own.
    fn announce(&self, file: Range<u64>) {
        let _ = file;
    }

    /// What a planner has to know if a range of the file can be reached through a mapping; none if
    /// it cannot.
    fn mapped(&self, file: Range<u64>, access: Access) -> Option<Mapped> {
        let _ = (file, access);
        None
    }

    /// Changes what may be spent on touching parts of the mapping for the first time, in
    /// nanoseconds.
    fn credit(&self, change_ns: f64) {
        let _ = change_ns;
    }

    /// Copies pieces, which follow each other in the file, to `out` through a mapping. Returns how
    /// many bytes came.
    ///
    /// # Errors
    /// What stands in the way. The same bytes may be had by other calls.
    fn read_mapped(&self, pieces: &[Piece], out: &mut [u8]) -> Result<usize, Errno> {
        let _ = (pieces, out);
        Err(Errno::NOSYS)
    }

    /// Copies `data` to pieces, which follow each other in the file, through a mapping. Returns how
    /// many bytes went.
    ///
    /// # Errors
    /// As [`Target::read_mapped`].
    fn write_mapped(&self, pieces: &[Piece], data: &[u8]) -> Result<usize, Errno> {
        let _ = (pieces, data);
        Err(Errno::NOSYS)
    }

    /// Whether an access of no bytes would be allowed, and whether the file can do this at all.
    ///
    /// # Errors
    /// As the access would.
    fn check(&self, access: Access) -> crate::Result<()> {
        let _ = access;
        Ok(())
    }

    /// Whether what is written can be read.
    fn is_readable(&self) -> bool {
        true
    }

    /// Whether a range is at hand, as far as can be told without waiting. Cold is right for
    /// whatever has no cache.
    fn warmth(&self, file: Range<u64>) -> Warmth {
        let _ = file;
        Warmth::Cold
    }

    /// Waits for a lock on a range, against everybody who locks, in whatever process.
    ///
    /// # Errors
    /// What stands in the way; `ENOLCK` where there are no locks.
    fn lock(&self, file: Range<u64>, kind: LockKind) -> Result<(), Errno> {
        let _ = (file, kind);
        Err(Errno::NOLCK)
    }

    /// Gives a lock back.
    fn unlock(&self, file: Range<u64>) {
        let _ = file;
    }
}

/// Reads until the buffer is full, the file ends or an error comes: how much, and the error.
pub fn read_full<T: Target + ?Sized>(
    target: &T,
    offset: u64,
    buf: &mut [u8],
) -> (usize, Option<Errno>) {
    let mut done = 0;
    while done < buf.len() {
        match target.read_at(offset + done as u64, &mut buf[done..]) {
            Ok(0) => break,
            Ok(count) => done += count.min(buf.len() - done),
            Err(Errno::INTR) => {}
            Err(errno) => return (done, Some(errno)),
        }
    }
    (done, None)
}

/// Writes until all is written or an error comes: how much, and the error.
pub fn write_full<T: Target + ?Sized>(
    target: &T,
    offset: u64,
    data: &[u8],
) -> (usize, Option<Errno>) {
    let mut done = 0;
    while done < data.len() {
        match target.write_at(offset + done as u64, &data[done..]) {
            // Nothing written and no error: trying for ever would not help.
            Ok(0) => return (done, Some(Errno::IO)),
            Ok(count) => done += count.min(data.len() - done),
            Err(Errno::INTR) => {}
            Err(errno) => return (done, Some(errno)),
        }
    }
    (done, None)
}
