//! When to ask for bytes before they are wanted, and for how many. Pure: no data, no requests.
//!
//! A program's reads are sorted into a few *streams*, so that threads which read different parts
//! of one file, or a library that alternates between an index and the data, are each seen as
//! sequential. Along a stream the window grows with every confirmation; outside of streams nothing
//! is asked for but what is wanted.

use extent::ByteRange;

/// Streams told apart in one file.
const STREAMS: usize = 4;

/// The first window and the smallest request of read-ahead, in bytes.
const FIRST_WINDOW: u64 = 128 * 1024;

/// How much a window grows each time it proves right.
const GROWTH: u64 = 4;

/// Requests that a full window is cut into, at least.
const REQUESTS_PER_WINDOW: u64 = 8;

/// The largest request ahead of small reads. They are served from the reply, piece by piece, and it should still be in the
/// processor's cache when the last piece is; and a program that reads no more than some MiB soon has all the memory that
/// its replies need.
const SMALL_READS_REQUEST_LEN_MAX: u64 = 256 * 1024;

/// How many times a full window is filled up while a reader crosses it.
const FILLS_PER_WINDOW: u64 = 4;

/// A stream not seen for so many notes has ended.
const RECENT: u64 = 32;

/// Reads from this size on set the size of the requests ahead of them, so that each can later be
/// received straight into a caller's buffer.
const MATCHED_READ_LEN_MIN: u64 = 64 * 1024;

/// A read so far beside a stream's position still belongs to it: stdio re-reads whole pages after
/// a seek, and records are skipped.
const SLACK: u64 = 16 * 1024;

/// What to do beyond the bytes that a read wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advice {
    /// Have this many bytes behind the read requested; 0: none, or enough are.
    pub(crate) ahead: u64,
    /// In requests of this many bytes.
    pub(crate) request_len: u64,
    /// The read is one of a sequence.
    pub(crate) is_sequential: bool,
    /// Ask again when a read ends behind this offset.
    pub(crate) consult_at: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    /// Where the next read was expected.
    next: u64,
    /// Up to here reads need not have been noted.
    consult_at: u64,
    window: u64,
    /// When reads come to here, the window is filled up.
    due_at: u64,
    /// The window has proven right when reads come to here.
    grow_at: u64,
    /// When it was last moved; 0: not in use.
    used: u64,
}

/// The streams of one open file.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    streams: [Stream; STREAMS],
    clock: u64,
    window_max: u64,
    request_len_max: u64,
}

impl ReadAhead {
    /// `window_max`: bytes on their way at most; 0 turns read-ahead off. `request_len_max`: what
    /// one reply can carry.
    pub(crate) fn new(window_max: u64, request_len_max: u64) -> Self {
        let request_len_max = request_len_max.max(1);
        Self { streams: [Stream::default(); STREAMS], clock: 0, window_max, request_len_max }
    }

    /// Takes note of a read and says how far to read ahead of it.
    pub(crate) fn note(&mut self, read: ByteRange) -> Advice {
        self.clock += 1;
        let found = self.streams.iter().position(|stream| stream.continues_with(read.start()));
        let index = found.unwrap_or_else(|| self.begin(read));
        let share = self.window_max / self.busy_besides(index);
        let stream = &mut self.streams[index];
        if found.is_some() && read.end() >= stream.grow_at {
            // A window smaller than the reads themselves keeps nothing in flight.
            let proven = (stream.window * GROWTH).max(read.len().saturating_mul(2));
            stream.window = proven.max(FIRST_WINDOW);
            stream.grow_at = read.end().saturating_add(stream.window / 2);
        }
        stream.window = stream.window.min(self.window_max);
        stream.next = read.end();
        stream.used = self.clock;
        let window = stream.window.min(share);
        let request_len = self.request_len(window, read.len());
        let stream = &mut self.streams[index];
        let due = found.is_none() || read.end() > stream.due_at;
        if due {
            // A full window is filled up several requests at a time: one message wakes the
            // service once.
            let step = request_len.max(window / FILLS_PER_WINDOW);
            let full = read.end().saturating_add(step);
            stream.due_at = if window < share { stream.grow_at } else { full };
        }
        stream.consult_at = stream.due_at;
        let ahead = if due { window } else { 0 };
        let is_sequential = window > 0;
        Advice { ahead, request_len, is_sequential, consult_at: stream.consult_at }
    }

    /// What was read ahead is gone.
    pub(crate) fn lapse(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.due_at = 0);
    }

    /// A stream for a read that continues none, in place of the one used longest ago.
    fn begin(&mut self, read: ByteRange) -> usize {
        // A first read at the start of a file is most often the first of many.
        let window = if read.start() == 0 { FIRST_WINDOW.max(read.len()) } else { 0 };
        let grow_at = read.end().max(window / 2);
        let oldest = (0..STREAMS).min_by_key(|&i| self.streams[i].used).unwrap_or(0);
        self.streams[oldest] = Stream { window, grow_at, ..Stream::default() };
        oldest
    }

    /// How many streams share the window with this one, itself included.
    fn busy_besides(&self, index: usize) -> u64 {
        let recent = self.clock.saturating_sub(RECENT);
        let others = self.streams.iter().enumerate().filter(|(i, stream)| {
            *i != index && stream.window > FIRST_WINDOW && stream.used > recent
        });
        1 + others.count() as u64
    }

    fn request_len(&self, window: u64, read_len: u64) -> u64 {
        if read_len >= MATCHED_READ_LEN_MIN {
            return read_len.min(self.request_len_max);
        }
        let even = (window / REQUESTS_PER_WINDOW).max(FIRST_WINDOW);
        even.min(SMALL_READS_REQUEST_LEN_MAX).min(self.request_len_max)
    }
}

impl Stream {
    fn continues_with(&self, offset: u64) -> bool {
        let from = self.next.saturating_sub(SLACK);
        let to = self.consult_at.max(self.next).saturating_add(SLACK);
        self.used > 0 && (from..=to).contains(&offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn ahead() -> ReadAhead {
        ReadAhead::new(8 * MIB, MIB)
    }

    #[test]
    fn the_window_grows_as_a_reader_gets_on_up_to_its_limit() {
        let mut ahead = ahead();
        let mut consult_at = 0;
        let mut grown = Vec::new();
        for offset in (0..4 * MIB).step_by(4096) {
            let read = ByteRange::at(offset, 4096);
            if read.end() > consult_at {
                let advice = ahead.note(read);
                assert!(advice.request_len <= MIB && advice.request_len >= FIRST_WINDOW);
                consult_at = advice.consult_at;
                if grown.last().is_none_or(|(_, window)| *window != advice.ahead / 1024) {
                    grown.push((offset / 1024, advice.ahead / 1024));
                }
            }
        }
        assert_eq!(grown, [(0, 128), (64, 512), (324, 2048), (1352, 8192)]);
    }

    #[test]
    fn random_reads_get_nothing_ahead() {
        let mut ahead = ahead();
        let mut offset = 77 * MIB;
        for _ in 0..100 {
            assert_eq!(ahead.note(ByteRange::at(offset, 4096)).ahead, 0);
            offset = (offset * 7 + 13 * MIB) % (1 << 40) + MIB;
        }
    }

    #[test]
    fn backward_strides_get_nothing_ahead() {
        let mut ahead = ahead();
        for step in (1..100).rev() {
            assert_eq!(ahead.note(ByteRange::at(step * 64 * 1024, 4096)).ahead, 0);
        }
    }

    #[test]
    fn interleaved_readers_are_each_sequential() {
        let mut ahead = ahead();
        for step in 0..4 {
            for reader in 0..STREAMS as u64 {
                let read = ByteRange::at(reader * 100 * MIB + step * 4096, 4096);
                let advice = ahead.note(read);
                if step > 0 {
                    assert!(advice.is_sequential, "reader {reader}, step {step}");
                }
            }
        }
    }

    #[test]
    fn large_reads_set_the_size_of_requests() {
        let mut ahead = ahead();
        assert_eq!(ahead.note(ByteRange::at(0, 256 * 1024)).request_len, 256 * 1024);
        assert_eq!(ahead.note(ByteRange::at(256 * 1024, 4 * MIB)).request_len, MIB);
        let advice = ahead.note(ByteRange::at(4 * MIB + 256 * 1024, 4 * MIB));
        assert_eq!((advice.request_len, advice.ahead), (MIB, 8 * MIB));
    }

    #[test]
    fn a_full_window_is_filled_up_a_few_times_while_it_is_crossed() {
        let mut ahead = ahead();
        let reads = (0..64 * MIB).step_by(128 * 1024).map(|at| ByteRange::at(at, 128 * 1024));
        let fills = reads.filter(|read| ahead.note(*read).ahead > 0).count();
        assert!((32..45).contains(&fills), "{fills} times over eight windows");
        ahead.lapse();
        assert!(ahead.note(ByteRange::at(64 * MIB, 4096)).ahead > 0);
    }

    #[test]
    fn read_ahead_can_be_turned_off() {
        let mut ahead = ReadAhead::new(0, MIB);
        for step in 0..4 {
            assert_eq!(ahead.note(ByteRange::at(step * 4096, 4096)).ahead, 0);
        }
    }
}
