//! The numbers by which the log names things.

use std::fmt;

/// Where a record stands in the log's order. The first is 1; no number is ever used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(pub u64);

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A file, by the number that the log's owner gave it. The log does not know what it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileId(pub u64);

impl FileId {
    /// No file: a commit of it commits the namespace alone.
    pub const NONE: FileId = FileId(0);
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Ranks that opened one file together, by a number that is never 0 and never used twice in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(pub u32);

/// One of a group's epochs. Epochs begin wherever the group likes and grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Whose epoch.
    pub group: Group,
    /// Which.
    pub epoch: u32,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {} of group {}", self.epoch, self.group.0)
    }
}

/// Where a byte of a payload lies in the log: eight bytes, so that a million extents stay small.
///
/// `segment` counts uses of segment files and is never used twice, so a position that outlived its
/// segment is noticed ([`Error::Recycled`](crate::Error::Recycled)) and never answered with other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Which use of a segment file.
    pub segment: u32,
    /// The offset in the file.
    pub offset: u32,
}

impl Position {
    /// The position `by` bytes further on, in the same payload.
    #[must_use]
    pub fn advanced(self, by: u64) -> Self {
        let offset = u64::from(self.offset) + by;
        Self { segment: self.segment, offset: u32::try_from(offset).unwrap_or(u32::MAX) }
    }
}

impl extent::Cut for Position {
    fn cut(self, by: u64) -> Self {
        self.advanced(by)
    }

    fn continued_by(&self, len: u64, next: &Self) -> bool {
        self.segment == next.segment && u64::from(self.offset) + len == u64::from(next.offset)
    }
}
