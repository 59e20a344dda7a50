//! What of an open file is mapped.
//!
//! Copying many small blocks from pages that are mapped already takes a fraction of what a system
//! call for each takes; mapping them and entering each page into the tables for the first time
//! takes more. So a mapping only pays when it is kept, and it is kept by whoever keeps the file
//! open. What it costs to touch is known to the planner ([`sieve::plan::Mapped`]).

use std::cell::RefCell;
use std::os::fd::BorrowedFd;

use mapping::{List, Mapping, PIECES_MAX, Pieces};
use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;
use sieve::Access;
use sieve::model::MAP_PART_BYTES;
use sieve::plan::Mapped;

use crate::ranges::Identity;
use crate::target::Piece;

/// The file is mapped in segments of so many bytes.
const SEGMENT_BYTES: u64 = 64 << 20;

/// At most so many segments are mapped, 64 GiB: addresses are not for us alone.
const SEGMENTS_MAX: usize = 1024;

const PARTS: usize = (SEGMENT_BYTES / MAP_PART_BYTES) as usize;

/// What of an open file is mapped; to be kept as long as the file is open, and given to
/// [`LocalFile::keeping`](crate::LocalFile::keeping) for each access.
///
/// Nothing is mapped before it pays. A file that stays here is not gone when its last name is, and
/// its file system cannot be unmounted.
#[derive(Debug, Default)]
pub struct FileMap(RefCell<State>);

#[derive(Debug, Default)]
struct State {
    /// Which file it is; another one behind the same descriptor begins anew.
    identity: Option<Identity>,
    /// Whether this file cannot be mapped, or copying is forbidden here.
    is_refused: bool,
    /// Whether the mappings are for writing, too.
    writes: bool,
    segments: Vec<Option<Segment>>,
    list: List,
    credit_ns: f64,
}

#[derive(Debug)]
struct Segment {
    mapping: Mapping,
    /// One bit for each part that was touched.
    touched: Box<[u64; PARTS / 64]>,
}

impl Segment {
    fn is_touched(&self, part: usize) -> bool {
        self.touched[part / 64] >> (part % 64) & 1 == 1
    }

    fn count_touched(&self, parts: std::ops::Range<usize>) -> u64 {
        if parts == (0..PARTS) {
            return self.touched.iter().map(|word| u64::from(word.count_ones())).sum();
        }
        parts.filter(|part| self.is_touched(*part)).count() as u64
    }

    /// Touches all parts of a range that were not: of each the first page, around which Linux maps
    /// the others that are at hand. To populate all of them by name takes four times as long.
    fn touch(&mut self, parts: std::ops::Range<usize>) -> Result<(), Errno> {
        for part in parts {
            if !self.is_touched(part) {
                let first = part * MAP_PART_BYTES as usize;
                self.mapping.populate(first..first + 1)?;
                self.touched[part / 64] |= 1 << (part % 64);
            }
        }
        Ok(())
    }
}

/// The parts of a segment that some of its bytes lie in.
fn parts(start: u64, end: u64) -> std::ops::Range<usize> {
    (start / MAP_PART_BYTES) as usize..end.div_ceil(MAP_PART_BYTES) as usize
}

/// Cuts a range of the file where segments end: the segment's number, and where within it.
fn cut(start: u64, end: u64) -> impl Iterator<Item = (usize, std::ops::Range<u64>)> {
    let mut at = start;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let number = at / SEGMENT_BYTES;
        let (from, base) = (at, number * SEGMENT_BYTES);
        at = end.min(base + SEGMENT_BYTES);
        Some((number as usize, from - base..at - base))
    })
}

impl FileMap {
    /// Of a file that has not been touched.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What a planner has to know, if a range of the file can be reached through a mapping: a
    /// regular file on a local file system, as long as that, without gaps that reading through a
    /// mapping might fill (as on tmpfs), and opened in a way that lets it be.
    pub(crate) fn planned(
        &self,
        fd: BorrowedFd<'_>,
        file: &std::ops::Range<u64>,
        access: Access,
        flags: OFlags,
    ) -> Option<Mapped> {
        let mut state = self.0.borrow_mut();
        let about = rustix::fs::fstat(fd).ok()?;
        state.meet(fd, &about, flags);
        // What is written through a mapping reaches the device when it is asked to.
        let is_writable = state.writes && !flags.intersects(OFlags::SYNC | OFlags::DSYNC);
        let is_dense = about.st_blocks.saturating_mul(512) >= about.st_size;
        if state.is_refused
            || access == Access::Write && !is_writable
            || !is_dense
            || i64::try_from(file.end).ok()? > about.st_size
        {
            return None;
        }
        let (mut all, mut touched) = (0, 0);
        for (number, within) in cut(file.start, file.end) {
            if number >= SEGMENTS_MAX {
                return None;
            }
            let parts = parts(within.start, within.end);
            all += parts.len() as u64;
            if let Some(Some(segment)) = state.segments.get(number) {
                touched += segment.count_touched(parts);
            }
        }
        Some(Mapped { parts: all, fresh: all - touched, credit_ns: state.credit_ns as u64 })
    }

    /// Changes what may be spent on touching parts.
    pub(crate) fn credit(&self, change_ns: f64) {
        let mut state = self.0.borrow_mut();
        state.credit_ns = (state.credit_ns + change_ns).max(0.0);
    }

    /// Copies pieces, which follow each other in the file, to `out`: how many bytes came.
    pub(crate) fn read(
        &self,
        fd: BorrowedFd<'_>,
        pieces: &[Piece],
        out: &mut [u8],
    ) -> Result<usize, Errno> {
        self.0.borrow_mut().copy(fd, pieces, |pieces| pieces.copy_out(out))
    }

    /// Copies `data` to pieces, which follow each other in the file: how many bytes went.
    pub(crate) fn write(
        &self,
        fd: BorrowedFd<'_>,
        pieces: &[Piece],
        data: &[u8],
    ) -> Result<usize, Errno> {
        self.0.borrow_mut().copy(fd, pieces, |pieces| pieces.copy_in(data))
    }
}

impl State {
    /// Begins anew if the file is another than before.
    fn meet(&mut self, fd: BorrowedFd<'_>, about: &Stat, flags: OFlags) {
        let identity = (about.st_dev, about.st_ino);
        // O_RDONLY is 0 and O_RDWR a value of its own: open(2).
        let mode = flags & OFlags::RWMODE;
        let writes = mode == OFlags::RDWR;
        if self.identity == Some(identity) && self.writes == writes {
            return;
        }
        let is_regular = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
        let is_refused = mode == OFlags::WRONLY || !is_regular || !mapping::is_local(fd);
        *self = Self { identity: Some(identity), is_refused, writes, ..Self::default() };
    }

    fn copy(
        &mut self,
        fd: BorrowedFd<'_>,
        blocks: &[Piece],
        call: impl FnOnce(&Pieces<'_>) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let Some(last) = blocks.last() else { return Ok(0) };
        let end = last.offset + last.len as u64;
        // Blocks of one part follow each other.
        let mut seen = (usize::MAX, usize::MAX);
        for block in blocks {
            for (number, within) in cut(block.offset, block.offset + block.len as u64) {
                let parts = parts(within.start, within.end);
                if parts.len() == 1 && seen == (number, parts.start) {
                    continue;
                }
                seen = (number, parts.end - 1);
                self.touch(fd, number, parts)?;
            }
        }
        let mut pieces = Pieces::new(&mut self.list);
        'all: for block in blocks {
            for (number, within) in cut(block.offset, block.offset + block.len as u64) {
                if pieces.count() == PIECES_MAX {
                    break 'all;
                }
                let segment = self.segments[number].as_ref().expect("touched above");
                let len = (within.end - within.start) as usize;
                pieces.push(&segment.mapping, within.start as usize, len);
            }
        }
        let done = call(&pieces);
        drop(pieces);
        match done {
            // A filter of system calls, or a kernel without them.
            Err(Errno::PERM | Errno::NOSYS) => self.refuse(),
            // The rest of the file's last page is zero, and is nobody's.
            Ok(_) if rustix::fs::fstat(fd)?.st_size < end as i64 => return Err(Errno::FAULT),
            _ => {}
        }
        done
    }

    fn touch(
        &mut self,
        fd: BorrowedFd<'_>,
        number: usize,
        parts: std::ops::Range<usize>,
    ) -> Result<(), Errno> {
        if self.segments.len() <= number {
            self.segments.resize_with(number + 1, || None);
        }
        let segment = match &mut self.segments[number] {
            Some(segment) => segment,
            none => {
                let offset = number as u64 * SEGMENT_BYTES;
                match Mapping::new(fd, offset, SEGMENT_BYTES as usize, self.writes) {
                    Ok(mapping) => {
                        none.insert(Segment { mapping, touched: Box::new([0; PARTS / 64]) })
                    }
                    Err(errno) => {
                        self.refuse();
                        return Err(errno);
                    }
                }
            }
        };
        match segment.touch(parts) {
            // Linux before 5.14: each page would be faulted in by itself.
            Err(Errno::INVAL) => {
                self.refuse();
                Err(Errno::INVAL)
            }
            touched => touched,
        }
    }

    /// This file is not to be reached so any more.
    fn refuse(&mut self) {
        self.is_refused = true;
        self.segments.clear();
    }
}
