//! Half-open ranges of indices.

/// The indices from `start` up to, but not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The first.
    pub start: u64,
    /// Behind the last.
    pub end: u64,
}

impl Span {
    /// `[start, end)`.
    #[must_use]
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end }
    }

    /// Whether an index is in both. What is empty overlaps nothing.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        let start = if self.start > other.start { self.start } else { other.start };
        let end = if self.end < other.end { self.end } else { other.end };
        start < end
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn hull(&self, other: &Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}
