//! A file in memory that behaves as badly as a file may: short counts, interruptions, a disk that
//! is full at some point, an end that moves.

use std::cell::{Cell, Ref, RefCell};
use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;

use rustix::io::Errno;
use sieve::plan::Mapped;
use sieve::{Access, Warmth};
use transfer::{LockKind, Piece, ReadRequest, Target, WriteRequest};

use crate::random::Random;

pub(crate) struct Memory {
    content: RefCell<Vec<u8>>,
    random: RefCell<Random>,
    warmth: Warmth,
    vectored: bool,
    announces: bool,
    /// Whether counts are short now and then.
    short: bool,
    /// No byte at or behind this offset can be written.
    pub(crate) full_at: Cell<u64>,
    /// No byte at or behind this offset can be read, up to that one.
    pub(crate) broken_at: Cell<u64>,
    pub(crate) sound_from: Cell<u64>,
    /// After so many reads the file is cut to this length.
    pub(crate) shrink: Cell<Option<(u32, usize)>>,
    pub(crate) readable: Cell<bool>,
    pub(crate) lock_errno: Cell<Option<Errno>>,
    locked: RefCell<Vec<(Range<u64>, LockKind)>>,
    pub(crate) locks_taken: Cell<u32>,
    pub(crate) reads: Cell<u32>,
    pub(crate) writes: Cell<u32>,
    /// Calls with several places in memory, and batches of several requests.
    pub(crate) vectored_calls: Cell<u32>,
    pub(crate) batches: Cell<u32>,
    pub(crate) announced: Cell<u32>,
    /// What a mapping of it would say, and how often one was used.
    pub(crate) mapped: Cell<Option<Mapped>>,
    pub(crate) mapped_calls: Cell<u32>,
}

impl Memory {
    pub(crate) fn new(content: Vec<u8>, warmth: Warmth, random: &mut Random) -> Self {
        Self {
            vectored: random.one_in(2),
            announces: random.one_in(2),
            short: random.one_in(2),
            mapped: Cell::new(random.one_in(2).then(|| Mapped {
                parts: 1 + random.below(4),
                fresh: random.below(2),
                credit_ns: random.below(3000),
            })),
            random: RefCell::new(random.fork()),
            ..Self::plain(content, warmth)
        }
    }

    /// One that behaves well.
    pub(crate) fn plain(content: Vec<u8>, warmth: Warmth) -> Self {
        Self {
            content: RefCell::new(content),
            random: RefCell::new(Random::new(0)),
            warmth,
            vectored: true,
            announces: false,
            short: false,
            full_at: Cell::new(u64::MAX),
            broken_at: Cell::new(u64::MAX),
            sound_from: Cell::new(u64::MAX),
            shrink: Cell::new(None),
            readable: Cell::new(true),
            lock_errno: Cell::new(None),
            locked: RefCell::default(),
            locks_taken: Cell::new(0),
            reads: Cell::new(0),
            writes: Cell::new(0),
            vectored_calls: Cell::new(0),
            batches: Cell::new(0),
            announced: Cell::new(0),
            mapped: Cell::new(None),
            mapped_calls: Cell::new(0),
        }
    }

    pub(crate) fn content(&self) -> Ref<'_, Vec<u8>> {
        self.content.borrow()
    }

    pub(crate) fn assert_unlocked(&self) {
        assert!(self.locked.borrow().is_empty(), "{:?} still locked", self.locked.borrow());
    }

    /// How much of `len` bytes goes through this time; an interruption now and then.
    fn portion(&self, len: usize) -> Result<usize, Errno> {
        let mut random = self.random.borrow_mut();
        if !self.short || len == 0 {
            return Ok(len);
        }
        if random.one_in(16) {
            return Err(Errno::INTR);
        }
        Ok(if random.one_in(3) { 1 + random.below(len as u64) as usize } else { len })
    }
}

impl Target for Memory {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.reads.set(self.reads.get() + 1);
        if !self.readable.get() {
            return Err(Errno::BADF);
        }
        let mut content = self.content.borrow_mut();
        if let Some((reads, len)) = self.shrink.get()
            && self.reads.get() > reads
        {
            content.truncate(len);
        }
        let there = content.get(offset as usize..).unwrap_or(&[]);
        let mut len = self.portion(buf.len().min(there.len()))?;
        let is_behind = offset >= self.sound_from.get();
        let sound = if is_behind { u64::MAX } else { self.broken_at.get().saturating_sub(offset) };
        if len as u64 > sound {
            if sound == 0 {
                return Err(Errno::IO);
            }
            len = sound as usize;
        }
        buf[..len].copy_from_slice(&there[..len]);
        Ok(len)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        self.writes.set(self.writes.get() + 1);
        let room = self.full_at.get().saturating_sub(offset);
        if room == 0 {
            return Err(Errno::NOSPC);
        }
        let len = self.portion(data.len())?.min(usize::try_from(room).unwrap_or(usize::MAX));
        let mut content = self.content.borrow_mut();
        let end = offset as usize + len;
        if content.len() < end {
            content.resize(end, 0);
        }
        content[offset as usize..end].copy_from_slice(&data[..len]);
        Ok(len)
    }

    fn read_vectored_at(&self, offset: u64, bufs: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        assert!(bufs.len() <= 1024, "{} places", bufs.len());
        self.vectored_calls.set(self.vectored_calls.get() + 1);
        let mut all = vec![0; bufs.iter().map(|buf| buf.len()).sum()];
        let done = self.read_at(offset, &mut all)?;
        let mut rest = &all[..done];
        for buf in bufs {
            let (part, behind) = rest.split_at(rest.len().min(buf.len()));
            buf[..part.len()].copy_from_slice(part);
            rest = behind;
        }
        Ok(done)
    }

    fn write_vectored_at(&self, offset: u64, bufs: &[IoSlice<'_>]) -> Result<usize, Errno> {
        assert!(bufs.len() <= 1024, "{} places", bufs.len());
        self.vectored_calls.set(self.vectored_calls.get() + 1);
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.write_at(offset, &all)
    }

    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        self.batches.set(self.batches.get() + u32::from(reads.len() > 1));
        for read in reads {
            (read.done, read.errno) = transfer::read_full(self, read.offset, read.buf);
        }
    }

    fn write_batch(&self, writes: &mut [WriteRequest<'_>]) {
        self.batches.set(self.batches.get() + u32::from(writes.len() > 1));
        for write in writes {
            (write.done, write.errno) = transfer::write_full(self, write.offset, write.data);
        }
    }

    fn is_vectored(&self) -> bool {
        self.vectored
    }

    fn announces(&self) -> bool {
        self.announces
    }

    fn announce(&self, file: Range<u64>) {
        assert!(self.announces && file.start < file.end);
        self.announced.set(self.announced.get() + 1);
    }

    fn mapped(&self, file: Range<u64>, _: Access) -> Option<Mapped> {
        let is_there = file.end <= self.content.borrow().len() as u64 && self.readable.get();
        self.mapped.get().filter(|_| is_there)
    }

    fn read_mapped(&self, pieces: &[Piece], out: &mut [u8]) -> Result<usize, Errno> {
        self.mapped_calls.set(self.mapped_calls.get() + 1);
        assert!(pieces.len() <= 1024);
        assert_eq!(pieces.iter().map(|piece| piece.len).sum::<usize>(), out.len());
        let mut done = 0;
        for piece in pieces {
            let place = &mut out[done..done + piece.len];
            let (some, errno) = match self.read_at(piece.offset, place) {
                Ok(some) => (some, None),
                Err(errno) => (0, Some(errno)),
            };
            done += some;
            if some < piece.len {
                return if done == 0 { Err(errno.unwrap_or(Errno::FAULT)) } else { Ok(done) };
            }
        }
        Ok(done)
    }

    fn write_mapped(&self, pieces: &[Piece], data: &[u8]) -> Result<usize, Errno> {
        self.mapped_calls.set(self.mapped_calls.get() + 1);
        assert!(pieces.len() <= 1024);
        assert_eq!(pieces.iter().map(|piece| piece.len).sum::<usize>(), data.len());
        let mut done = 0;
        for piece in pieces {
            // A mapping makes no file longer.
            if piece.offset + piece.len as u64 > self.content.borrow().len() as u64 {
                return if done == 0 { Err(Errno::FAULT) } else { Ok(done) };
            }
            let some = match self.write_at(piece.offset, &data[done..done + piece.len]) {
                Ok(some) => some,
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => 0,
            };
            done += some;
            if some < piece.len {
                break;
            }
        }
        Ok(done)
    }

    fn is_readable(&self) -> bool {
        self.readable.get()
    }

    fn warmth(&self, _: Range<u64>) -> Warmth {
        self.warmth
    }

    fn lock(&self, file: Range<u64>, kind: LockKind) -> Result<(), Errno> {
        if let Some(errno) = self.lock_errno.get() {
            return Err(errno);
        }
        self.locks_taken.set(self.locks_taken.get() + 1);
        self.locked.borrow_mut().push((file, kind));
        Ok(())
    }

    fn unlock(&self, file: Range<u64>) {
        let mut locked = self.locked.borrow_mut();
        let held = locked.iter().position(|(range, _)| *range == file).expect("it is locked");
        locked.remove(held);
    }
}
