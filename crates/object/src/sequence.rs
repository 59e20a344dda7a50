//! Who reads in order, and how far to fetch ahead of it. Pure.
//!
//! Requests of a client that reads in order arrive side by side and so in any order: what lies near the place that comes
//! next belongs to the sequence, too.

use std::ops::Range;

/// Sequences told apart in one file.
const STREAMS: usize = 4;

/// What is fetched ahead first.
const FIRST_WINDOW_BYTES: u64 = 1 << 20;

/// Of what lies between the beginning of a sequence and its end, one part in so many is read at least.
const DENSE: u64 = 4;

/// A read so many times its own length beside the expected place still belongs to the sequence: as many are on their way
/// together.
const SLACK_READS: u64 = 16;

#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    /// Where its first read began.
    first: u64,
    /// Bytes that its reads have asked for.
    read: u64,
    next: u64,
    window: u64,
    /// Up to here it was asked for.
    asked: u64,
    /// When it was last moved; 0: not in use.
    used: u64,
}

/// The sequences of one open file.
#[derive(Debug)]
pub(crate) struct Sequences {
    streams: [Stream; STREAMS],
    clock: u64,
    window_max: u64,
}

impl Sequences {
    pub(crate) fn new(window_max: u64) -> Self {
        Self { streams: [Stream::default(); STREAMS], clock: 0, window_max }
    }

    /// Takes note of a read, and says what is to be fetched ahead of it, if anything.
    pub(crate) fn note(&mut self, read: &Range<u64>) -> Option<Range<u64>> {
        self.clock += 1;
        let slack = SLACK_READS * (read.end - read.start).clamp(4 << 10, 1 << 20);
        let near = |stream: &Stream| stream.used > 0 && stream.next.abs_diff(read.start) <= slack;
        let Some(stream) = self.streams.iter_mut().find(|stream| near(stream)) else {
            let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used)?;
            *oldest = Stream {
                first: read.start,
                read: read.end - read.start,
                next: read.end,
                window: 0,
                asked: read.end,
                used: self.clock,
            };
            return None;
        };
        stream.used = self.clock;
        stream.first = stream.first.min(read.start);
        stream.read = stream.read.saturating_add(read.end - read.start);
        if read.end <= stream.next {
            return None;
        }
        stream.next = read.end;
        // Reads anywhere in a small part of the file lie near each other, too, but leave most of it out.
        if stream.read < (stream.next - stream.first) / DENSE {
            return None;
        }
        stream.asked = stream.asked.max(read.end);
        // Filled up when half of it is left.
        if stream.asked - stream.next > stream.window / 2 {
            return None;
        }
        stream.window = (stream.window * 2).max(FIRST_WINDOW_BYTES).min(self.window_max);
        let ahead = stream.asked..stream.next + stream.window;
        stream.asked = ahead.end.max(stream.asked);
        (ahead.start < ahead.end).then_some(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_reader_in_order_is_fetched_ahead_of_without_gaps_up_to_the_limit() {
        let mut sequences = Sequences::new(16 * MIB);
        let mut asked = MIB;
        for n in 0..100 {
            if let Some(ahead) = sequences.note(&(n * MIB..(n + 1) * MIB)) {
                assert_eq!(ahead.start, asked.max((n + 1) * MIB));
                assert!(ahead.end <= (n + 1 + 16) * MIB);
                asked = ahead.end;
            }
        }
        assert!(asked > 108 * MIB, "{asked}");
    }

    #[test]
    fn reads_that_arrive_in_another_order_are_one_sequence() {
        let mut sequences = Sequences::new(16 * MIB);
        let order = [0, 2, 1, 4, 3, 6, 7, 5, 8];
        let ahead = order.map(|n| sequences.note(&(n * MIB..(n + 1) * MIB)));
        assert!(ahead.iter().flatten().count() > 1);
    }

    #[test]
    fn what_is_skipped_now_and_then_does_not_end_a_sequence() {
        let mut sequences = Sequences::new(16 * MIB);
        let records = (0..1000).map(|n| n * 12_000..n * 12_000 + 4096);
        assert!(records.filter_map(|read| sequences.note(&read)).count() >= 4);
    }

    #[test]
    fn reads_anywhere_in_a_small_part_fetch_nothing_ahead() {
        let mut sequences = Sequences::new(16 * MIB);
        let mut ahead = 0;
        for n in 0..1000_u64 {
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let offset = n / 20 * 10 * MIB + (mixed >> 32) % MIB;
            ahead += usize::from(sequences.note(&(offset..offset + 4096)).is_some());
        }
        assert!(ahead <= 100, "{ahead} times");
    }

    #[test]
    fn reads_anywhere_fetch_nothing_ahead() {
        let mut sequences = Sequences::new(16 * MIB);
        for n in 0..100_u64 {
            let offset = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (1 << 40);
            assert_eq!(sequences.note(&(offset..offset + 4096)), None);
        }
    }
}
