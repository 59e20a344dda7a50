//! A set of bytes that does not grow without end.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that may be kept apart before they are widened.
const RANGES_MAX: usize = 4096;

/// Bytes, as ranges that neither overlap nor touch. Beyond [`RANGES_MAX`] of them, ranges grow to
/// multiples of a page, of two, of four …: the set then has more than was added, never less.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// End by begin.
    ends: BTreeMap<u64, u64>,
    /// What begins and ends are multiples of.
    grain: u64,
}

impl Default for Ranges {
    fn default() -> Self {
        Self { ends: BTreeMap::new(), grain: 1 }
    }
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a range.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.insert(range);
        while self.ends.len() > RANGES_MAX {
            self.grain = (self.grain * 2).max(4096);
            for (start, end) in std::mem::take(&mut self.ends) {
                self.insert(start..end);
            }
        }
    }

    fn insert(&mut self, range: Range<u64>) {
        let mut start = range.start / self.grain * self.grain;
        let mut end = range.end.div_ceil(self.grain).saturating_mul(self.grain);
        if let Some((&before, &its_end)) = self.ends.range(..=start).next_back()
            && its_end >= start
        {
            start = before;
            end = end.max(its_end);
        }
        while let Some((&next, &its_end)) = self.ends.range(start..=end).next() {
            end = end.max(its_end);
            self.ends.remove(&next);
        }
        self.ends.insert(start, end);
    }

    /// The ranges, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.ends.iter().map(|(start, end)| *start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ranges: &Ranges) -> Vec<Range<u64>> {
        ranges.iter().collect()
    }

    #[test]
    fn ranges_join_where_they_meet() {
        let mut ranges = Ranges::default();
        ranges.add(10..20);
        ranges.add(30..40);
        ranges.add(5..5);
        assert_eq!(all(&ranges), [10..20, 30..40]);
        ranges.add(20..25);
        assert_eq!(all(&ranges), [10..25, 30..40]);
        ranges.add(12..13);
        ranges.add(0..1);
        ranges.add(24..60);
        assert_eq!(all(&ranges), [0..1, 10..60]);
        ranges.add(0..100);
        assert_eq!(all(&ranges), vec![0..100; 1]);
    }

    #[test]
    fn many_ranges_become_wider_and_lose_nothing() {
        let mut ranges = Ranges::default();
        for at in 0..20_000 {
            ranges.add(at * 1_000_000..at * 1_000_000 + 10);
        }
        assert!(all(&ranges).len() <= RANGES_MAX);
        for at in 0..20_000 {
            let byte = at * 1_000_000 + 9;
            assert!(all(&ranges).iter().any(|range| range.contains(&byte)), "{byte}");
        }
    }
}
