//! Half-open ranges of file offsets.

/// The bytes from `start` up to, but not including, `end`.
///
/// `start <= end` always holds; a range with `start == end` is empty, contains nothing and
/// overlaps nothing, wherever it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ByteRange {
    start: u64,
    end: u64,
}

impl ByteRange {
    /// The range `[start, end)`; empty at `start` when `end` lies before it.
    #[must_use]
    pub const fn new(start: u64, end: u64) -> Self {
        Self { start, end: if end < start { start } else { end } }
    }

    /// `len` bytes from `start`, cut at the largest offset that there is.
    #[must_use]
    pub const fn at(start: u64, len: u64) -> Self {
        Self { start, end: start.saturating_add(len) }
    }

    /// The first offset.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// The offset behind the last byte.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether there is no byte in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether the byte at `offset` is in it.
    #[must_use]
    pub const fn contains(&self, offset: u64) -> bool {
        self.start <= offset && offset < self.end
    }

    /// Whether every byte of `other` is in it. The empty range is in every range.
    #[must_use]
    pub const fn contains_range(&self, other: &ByteRange) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// Whether some byte is in both.
    #[must_use]
    pub const fn overlaps(&self, other: &ByteRange) -> bool {
        !self.is_empty() && !other.is_empty() && self.start < other.end && other.start < self.end
    }

    /// Whether the two overlap or stand side by side, so that together they are one range.
    #[must_use]
    pub const fn touches(&self, other: &ByteRange) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// The bytes in both; empty where there are none.
    #[must_use]
    pub fn intersection(&self, other: &ByteRange) -> ByteRange {
        let start = self.start.max(other.start);
        ByteRange::new(start, self.end.min(other.end))
    }

    /// The smallest range that contains both. An empty range adds nothing.
    #[must_use]
    pub fn hull(&self, other: &ByteRange) -> ByteRange {
        if self.is_empty() {
            *other
        } else if other.is_empty() {
            *self
        } else {
            ByteRange { start: self.start.min(other.start), end: self.end.max(other.end) }
        }
    }

    /// What is left of it when the bytes of `other` are taken away: a part before and a part
    /// behind, each possibly empty.
    #[must_use]
    pub fn without(&self, other: &ByteRange) -> [ByteRange; 2] {
        if !self.overlaps(other) {
            return [*self, ByteRange::new(self.end, self.end)];
        }
        [
            ByteRange::new(self.start, other.start.max(self.start)),
            ByteRange::new(other.end.min(self.end), self.end),
        ]
    }

    /// Cuts it into a part before `offset` and a part from there on.
    #[must_use]
    pub fn split_at(&self, offset: u64) -> (ByteRange, ByteRange) {
        let cut = offset.clamp(self.start, self.end);
        (ByteRange::new(self.start, cut), ByteRange::new(cut, self.end))
    }

    /// Grown outwards until both ends are multiples of `unit` (a power of two, in bytes).
    #[must_use]
    pub const fn aligned(&self, unit: u64) -> ByteRange {
        debug_assert!(unit.is_power_of_two());
        let mask = unit - 1;
        let end = match self.end.checked_add(mask) {
            Some(end) => end & !mask,
            None => u64::MAX,
        };
        ByteRange { start: self.start & !mask, end }
    }

    /// The range cut into consecutive pieces of at most `len_max` bytes.
    pub fn pieces(self, len_max: u64) -> impl Iterator<Item = ByteRange> {
        let mut rest = self;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (piece, behind) = rest.split_at(rest.start.saturating_add(len_max.max(1)));
            rest = behind;
            Some(piece)
        })
    }
}

impl std::fmt::Display for ByteRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

impl From<std::ops::Range<u64>> for ByteRange {
    fn from(range: std::ops::Range<u64>) -> Self {
        ByteRange::new(range.start, range.end)
    }
}
