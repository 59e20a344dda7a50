//! A place for tests to stand between a dataset and its files.

use std::path::Path;

/// What is about to be done to a file of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// pread(2).
    Read,
    /// pwrite(2).
    Write,
    /// fdatasync(2) or fsync(2).
    Sync,
    /// open(2) with `O_CREAT`, ftruncate(2), rename(2), unlink(2).
    Change,
}

/// One system call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// What it does.
    pub kind: Kind,
    /// The file.
    pub path: &'a Path,
    /// From which byte on; 0 where it does not matter.
    pub offset: u64,
    /// How many bytes; 0 where it does not matter.
    pub len: usize,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is made.
    Go,
    /// It is made for the first bytes only (at least one), as the kernel may; the rest is another
    /// call.
    Short(usize),
    /// It is not made, and has failed with this errno.
    Fail(i32),
}

/// Judges every call that could change a file, or fail: for tests of what a full disk, a broken
/// one, and an end in the midst of anything leave behind.
pub trait Faults: Send + Sync {
    /// Called before the call, by the thread that makes it.
    fn judge(&self, call: &Call<'_>) -> Verdict;
}
