//! Which bytes of a file are where: ranges that never overlap, each with a value.

use std::collections::BTreeMap;

use crate::ByteRange;

/// A value that belongs to a range of bytes and can be cut where the range is.
pub trait Cut: Copy {
    /// The value of what remains when the first `by` bytes are taken away.
    #[must_use]
    fn cut(self, by: u64) -> Self;

    /// Whether `next` is the value of the bytes that follow `len` bytes with this value, so that both
    /// together are one extent.
    fn continued_by(&self, len: u64, next: &Self) -> bool;
}

/// How many extents a leaf holds at most.
const LEAF_LEN_MAX: usize = 256;
/// By how many extents a leaf grows: what it has allocated is at most so many more than it holds.
const LEAF_GROWTH: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent<V> {
    start: u64,
    end: u64,
    value: V,
}

/// A part of a range: bytes with a value, or a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<V> {
    /// Which bytes.
    pub range: ByteRange,
    /// What they map to; `None` for a hole.
    pub value: Option<V>,
}

/// Ranges of bytes, each with a value; the newest wins where they overlap.
///
/// Extents stand sorted in leaves of up to 256, and the leaves in a B-tree by the first offset that may
/// stand in them. Inserting costs a search and moving part of a leaf; an extent costs its own size and a
/// little more, because leaves grow by small steps and one that is appended to is left full.
#[derive(Debug, Clone)]
pub struct ExtentMap<V> {
    /// A leaf's key is at most the first start in it, and larger than all starts of the leaf before. No
    /// leaf is empty.
    leaves: BTreeMap<u64, Vec<Extent<V>>>,
    len: usize,
    bytes: u64,
}

/// Whether some extent of a leaf starts at `offset` or before.
fn starts_by<V>(leaf: &[Extent<V>], offset: u64) -> bool {
    leaf.first().is_some_and(|extent| extent.start <= offset)
}

impl<V> Default for ExtentMap<V> {
    fn default() -> Self {
        Self { leaves: BTreeMap::new(), len: 0, bytes: 0 }
    }
}

impl<V: Cut> ExtentMap<V> {
    /// Nothing but a hole.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many extents there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes have a value.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The offset behind the last byte that has a value; 0 if none has.
    #[must_use]
    pub fn end(&self) -> u64 {
        let last = self.leaves.last_key_value().and_then(|(_, leaf)| leaf.last());
        last.map_or(0, |extent| extent.end)
    }

    /// The value of the byte at `offset`, and how many bytes from there on belong to its extent.
    #[must_use]
    pub fn get(&self, offset: u64) -> Option<(V, u64)> {
        // An extent may reach beyond the key of the next leaf; then the next leaf's first starts later.
        let mut leaves = self.leaves.range(..=offset).rev();
        let (_, leaf) = leaves.find(|(_, leaf)| starts_by(leaf, offset))?;
        let index = leaf.partition_point(|extent| extent.start <= offset).checked_sub(1)?;
        let extent = leaf[index];
        (offset < extent.end)
            .then(|| (extent.value.cut(offset - extent.start), extent.end - offset))
    }

    /// All extents, in order.
    pub fn iter(&self) -> impl Iterator<Item = (ByteRange, V)> + '_ {
        self.leaves
            .values()
            .flatten()
            .map(|extent| (ByteRange::new(extent.start, extent.end), extent.value))
    }

    /// The extents that meet `range`, whole, in order.
    fn meeting(&self, range: ByteRange) -> impl Iterator<Item = &Extent<V>> {
        // The last extent that starts before the range may reach into it.
        let mut before = self.leaves.range(..=range.start()).rev();
        let from = before.find(|(_, leaf)| starts_by(leaf, range.start()));
        let from = from.map_or(0, |(key, _)| *key);
        let leaves = self.leaves.range(from..).map(|(_, leaf)| leaf);
        let mut first = true;
        leaves
            .flat_map(move |leaf| {
                let skip = match std::mem::take(&mut first) {
                    true => leaf.partition_point(|extent| extent.end <= range.start()),
                    false => 0,
                };
                &leaf[skip..]
            })
            .skip_while(move |extent| extent.end <= range.start())
            .take_while(move |extent| extent.start < range.end())
    }

    /// `range` in pieces, in order and without gaps: extents, cut at its ends, and holes.
    pub fn overlay(&self, range: ByteRange) -> impl Iterator<Item = Piece<V>> + '_ {
        let mut at = range.start();
        let mut extents = self.meeting(range).peekable();
        std::iter::from_fn(move || {
            if at >= range.end() {
                return None;
            }
            let (end, value) = match extents.peek() {
                Some(extent) if extent.start <= at => {
                    let value = extent.value.cut(at - extent.start);
                    let end = extent.end.min(range.end());
                    extents.next();
                    (end, Some(value))
                }
                Some(extent) => (extent.start, None),
                None => (range.end(), None),
            };
            let piece = Piece { range: ByteRange::new(at, end), value };
            at = end;
            Some(piece)
        })
    }

    /// Makes `value` that of all bytes of `range`. What was there is told to `displaced`, in order, and
    /// merged with its neighbours is whatever they continue.
    pub fn insert(&mut self, range: ByteRange, value: V, displaced: impl FnMut(ByteRange, V)) {
        if range.is_empty() {
            return;
        }
        self.clear(range, displaced);
        let mut fresh = Extent { start: range.start(), end: range.end(), value };
        self.bytes += range.len();
        if let Some(before) = self.ending_at(fresh.start) {
            let extent = *before;
            if extent.value.continued_by(extent.end - extent.start, &fresh.value) {
                before.end = fresh.end;
                fresh = *before;
                if let Some(behind) = self.starting_at(fresh.end)
                    && fresh.value.continued_by(fresh.end - fresh.start, &behind.value)
                {
                    self.remove(behind.start);
                    if let Some(before) = self.ending_at(fresh.end) {
                        before.end = behind.end;
                    }
                }
                return;
            }
        }
        if let Some(behind) = self.starting_at(fresh.end)
            && fresh.value.continued_by(fresh.end - fresh.start, &behind.value)
        {
            self.remove(behind.start);
            fresh.end = behind.end;
        }
        self.add(fresh);
    }

    /// Makes a hole of all bytes of `range`. What was there is told to `displaced`, in order.
    pub fn clear(&mut self, range: ByteRange, mut displaced: impl FnMut(ByteRange, V)) {
        if range.is_empty() {
            return;
        }
        // One extent may reach over the beginning, or over both ends.
        if let Some(extent) = self.covering(range.start())
            && extent.start < range.start()
        {
            let whole = *extent;
            extent.end = range.start();
            self.bytes -= whole.end - range.start();
            let behind = whole.value.cut(range.start() - whole.start);
            let end = whole.end.min(range.end());
            displaced(ByteRange::new(range.start(), end), behind);
            if whole.end > range.end() {
                let value = whole.value.cut(range.end() - whole.start);
                self.bytes += whole.end - range.end();
                self.add(Extent { start: range.end(), end: whole.end, value });
                return;
            }
        }
        self.clear_starts(range, &mut displaced);
    }

    /// The same for extents that start in `range`, of which the last may reach over its end.
    fn clear_starts(&mut self, range: ByteRange, displaced: &mut impl FnMut(ByteRange, V)) {
        let from = self.leaves.range(..=range.start()).next_back().map_or(0, |(key, _)| *key);
        let mut emptied = Vec::new();
        let mut over = None;
        for (key, leaf) in self.leaves.range_mut(from..range.end()) {
            let first = leaf.partition_point(|extent| extent.start < range.start());
            let behind = leaf.partition_point(|extent| extent.start < range.end());
            for extent in leaf.drain(first..behind) {
                self.len -= 1;
                self.bytes -= extent.end - extent.start;
                displaced(ByteRange::new(extent.start, extent.end.min(range.end())), extent.value);
                if extent.end > range.end() {
                    let value = extent.value.cut(range.end() - extent.start);
                    over = Some(Extent { start: range.end(), end: extent.end, value });
                }
            }
            if leaf.is_empty() {
                emptied.push(*key);
            } else if leaf.capacity() > leaf.len() + 2 * LEAF_GROWTH {
                leaf.shrink_to(leaf.len() + LEAF_GROWTH);
            }
        }
        for key in emptied {
            self.leaves.remove(&key);
        }
        if let Some(extent) = over {
            self.bytes += extent.end - extent.start;
            self.add(extent);
        }
    }

    /// Makes a hole of everything from `size` on.
    pub fn truncate(&mut self, size: u64, displaced: impl FnMut(ByteRange, V)) {
        self.clear(ByteRange::new(size, u64::MAX), displaced);
    }

    fn covering(&mut self, offset: u64) -> Option<&mut Extent<V>> {
        let mut leaves = self.leaves.range_mut(..=offset).rev();
        let (_, leaf) = leaves.find(|(_, leaf)| starts_by(leaf, offset))?;
        let index = leaf.partition_point(|extent| extent.start <= offset).checked_sub(1)?;
        leaf.get_mut(index).filter(|extent| offset < extent.end)
    }

    fn ending_at(&mut self, offset: u64) -> Option<&mut Extent<V>> {
        let last = offset.checked_sub(1)?;
        self.covering(last).filter(|extent| extent.end == offset)
    }

    fn starting_at(&self, offset: u64) -> Option<Extent<V>> {
        let (_, leaf) = self.leaves.range(..=offset).next_back()?;
        let index = leaf.binary_search_by_key(&offset, |extent| extent.start).ok()?;
        Some(leaf[index])
    }

    /// Removes the extent that starts at `offset`, whose bytes become another's.
    fn remove(&mut self, offset: u64) {
        let Some((key, leaf)) = self.leaves.range_mut(..=offset).next_back() else {
            return;
        };
        if let Ok(index) = leaf.binary_search_by_key(&offset, |extent| extent.start) {
            leaf.remove(index);
            self.len -= 1;
            if leaf.is_empty() {
                let key = *key;
                self.leaves.remove(&key);
            }
        }
    }

    /// Adds an extent that meets no other.
    fn add(&mut self, extent: Extent<V>) {
        self.len += 1;
        let Some((_, leaf)) = self.leaves.range_mut(..=extent.start).next_back() else {
            // Before all others: the first leaf takes it under a lower key.
            let leaf = match self.leaves.pop_first() {
                Some((_, leaf)) => leaf,
                None => Vec::new(),
            };
            self.leaves.insert(0, leaf);
            self.len -= 1;
            return self.add(extent);
        };
        let index = leaf.partition_point(|other| other.start < extent.start);
        if leaf.len() < LEAF_LEN_MAX {
            if leaf.len() == leaf.capacity() {
                leaf.reserve_exact(LEAF_GROWTH.min(LEAF_LEN_MAX - leaf.len()));
            }
            leaf.insert(index, extent);
            return;
        }
        // What is appended to is left full; what is inserted into is halved.
        if index == leaf.len() {
            let mut fresh = Vec::with_capacity(LEAF_GROWTH);
            fresh.push(extent);
            self.leaves.insert(extent.start, fresh);
            return;
        }
        let half = LEAF_LEN_MAX / 2;
        let mut upper = Vec::with_capacity(half + LEAF_GROWTH);
        upper.extend(leaf.drain(half..));
        leaf.shrink_to(half + LEAF_GROWTH);
        let key = upper[0].start;
        self.leaves.insert(key, upper);
        self.len -= 1;
        self.add(extent);
    }
}
