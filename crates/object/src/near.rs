//! Reads anywhere that stay in one region for a while: what lies between two of them costs less than another request, and
//! is likely to be wanted. Pure.

use std::collections::VecDeque;
use std::ops::Range;

/// Reads that are remembered.
const RECENT: usize = 16;

/// So many of them must lie near before more is asked for than is wanted.
const NEAR_MIN: usize = 2;

/// A read of more bytes is no small one.
const SMALL_BYTES: u64 = 64 << 10;

/// The latest small reads of one open file that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Near {
    recent: VecDeque<Range<u64>>,
}

impl Near {
    /// Takes note of a read, and says what is to be asked for: also what lies between it and others, at most `reach` bytes
    /// to each side.
    pub(crate) fn widen(&mut self, read: Range<u64>, reach: u64) -> Range<u64> {
        if read.end.saturating_sub(read.start) > SMALL_BYTES {
            return read;
        }
        let before =
            |other: &&Range<u64>| other.end <= read.start && read.start - other.end <= reach;
        let behind =
            |other: &&Range<u64>| other.start >= read.end && other.start - read.end <= reach;
        let is_near = |other: &&Range<u64>| before(other) || behind(other);
        let mut wide = read.clone();
        if self.recent.iter().filter(is_near).count() >= NEAR_MIN {
            let start = self.recent.iter().filter(before).map(|other| other.end).max();
            let end = self.recent.iter().filter(behind).map(|other| other.start).min();
            wide = start.unwrap_or(read.start)..end.unwrap_or(read.end);
        }
        self.recent.truncate(RECENT - 1);
        self.recent.push_front(read);
        wide
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_reads_of_one_region_nothing_is_left_out() {
        let mut near = Near::default();
        assert_eq!(near.widen(1000..1010, 500), 1000..1010);
        assert_eq!(near.widen(1400..1410, 500), 1400..1410, "one other is no region");
        assert_eq!(near.widen(1200..1210, 500), 1010..1400);
        assert_eq!(near.widen(900..910, 500), 900..1000);
        assert_eq!(near.widen(5000..5010, 500), 5000..5010, "far away");
        assert_eq!(near.widen(1900..1910, 500), 1900..1910, "one at the edge of what is near");
    }

    #[test]
    fn regions_that_were_left_are_forgotten() {
        let mut near = Near::default();
        for n in 0..RECENT as u64 + 2 {
            near.widen(n * 10_000..n * 10_000 + 10, 100);
        }
        assert_eq!(near.recent.len(), RECENT);
        assert_eq!(near.widen(20..30, 100), 20..30);
        assert_eq!(near.widen(40..50, 100), 40..50);
    }

    #[test]
    fn large_reads_are_left_as_they_are() {
        let mut near = Near::default();
        for start in [0, 200_000, 400_000] {
            assert_eq!(near.widen(start..start + 100_000, 1 << 20), start..start + 100_000);
        }
    }
}
