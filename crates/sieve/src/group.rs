//! What a planner hands to an executor: groups of blocks, each reached in one way.

use std::ops::Range;

/// Whether bytes go from the file or to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// How the blocks of a group are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Every block by a call of its own, straight between the file and the program's memory.
    Each,
    /// One call for all of the group's part of the file, holes included, through a buffer. Writes
    /// read the part first, so that the holes keep what they hold.
    Window,
    /// One call for all of it that names a place in memory for every block, and the buffer for
    /// every hole (`preadv`, `pwritev`): no block is copied twice.
    Vector,
    /// Blocks straight between a mapping of the file and the program's memory, many with each call:
    /// no hole is carried.
    Mapped,
}

/// Blocks that follow each other in a view and are reached together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The wanted bytes, as a range of the view's data.
    pub data: Range<u64>,
    /// The part of the file to be reached: from the first wanted byte (or earlier) to the last (or
    /// later). What is beyond the wanted bytes is only ever read.
    pub file: Range<u64>,
    /// How.
    pub method: Method,
}

impl Group {
    /// Bytes of data in it.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.data.end - self.data.start
    }

    /// Bytes of the file that it spans.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.file.end - self.file.start
    }
}
