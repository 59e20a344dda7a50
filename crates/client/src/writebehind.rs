//! Writes on their way: what is gathered, what is sent and not yet acknowledged. Pure: generic
//! over what a sent request (`T`) is; the caller sends and waits, this module says what and when.
//!
//! A service may execute requests that are outstanding together in any order. So two writes that
//! overlap are never outstanding together: [`WriteBehind::in_the_way`] names what must be waited
//! for first. What is gathered is newer than what is sent.

use std::collections::VecDeque;

use extent::ByteRange;

/// Contiguous bytes that are not sent yet.
#[derive(Debug)]
pub(crate) struct Run {
    offset: u64,
    bytes: Vec<u8>,
    /// When its first byte was written, in milliseconds.
    pub(crate) since_ms: u64,
}

impl Run {
    pub(crate) fn range(&self) -> ByteRange {
        ByteRange::at(self.offset, self.bytes.len() as u64)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Takes as many bytes of a write as continue or overwrite it, up to `capacity` in all.
    #[inline]
    fn join(&mut self, data: &[u8], offset: u64, capacity: usize) -> usize {
        let Some(at) = offset.checked_sub(self.offset) else { return 0 };
        if at > self.bytes.len() as u64 {
            return 0;
        }
        let at = at as usize;
        let data = &data[..data.len().min(capacity.saturating_sub(at))];
        let over = data.len().min(self.bytes.len() - at);
        if over > 0 {
            self.bytes[at..at + over].copy_from_slice(&data[..over]);
        }
        self.bytes.extend_from_slice(&data[over..]);
        data.len()
    }
}

/// A write that is sent. Its data is kept until it is acknowledged, to be sent again should the
/// connection break, and to be read meanwhile.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    pub(crate) range: ByteRange,
    pub(crate) bytes: Vec<u8>,
    pub(crate) request: T,
}

/// The writes of one open file.
#[derive(Debug)]
pub(crate) struct WriteBehind<T> {
    run: Option<Run>,
    sent: VecDeque<Sent<T>>,
    sent_bytes: u64,
    /// The most that one request carries, in bytes.
    run_len_max: usize,
}

impl<T> WriteBehind<T> {
    pub(crate) fn new(run_len_max: usize) -> Self {
        Self { run: None, sent: VecDeque::new(), sent_bytes: 0, run_len_max: run_len_max.max(1) }
    }

    /// Nothing is gathered and everything acknowledged.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_none() && self.sent.is_empty()
    }

    pub(crate) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// How many writes are sent and not acknowledged.
    pub(crate) fn sent_count(&self) -> usize {
        self.sent.len()
    }

    /// Bytes that are sent and not acknowledged.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// The most that one request carries, in bytes.
    pub(crate) fn run_len_max(&self) -> usize {
        self.run_len_max
    }

    /// Gathers the beginning of a write that goes on from, or into, what is gathered; returns how
    /// many bytes. 0: the run must be sent first, or there is none.
    #[inline]
    pub(crate) fn join(&mut self, data: &[u8], offset: u64) -> usize {
        match &mut self.run {
            Some(run) => run.join(data, offset, self.run_len_max),
            None => 0,
        }
    }

    /// Whether the run, if there is one, has room for so many bytes more at its end.
    pub(crate) fn has_room_for(&self, len: usize) -> bool {
        self.run.as_ref().is_none_or(|run| run.bytes.len() + len <= self.run_len_max)
    }

    /// Whether the run is as long as one gets.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.bytes.len() >= self.run_len_max)
    }

    /// Starts a run in `buffer`, whose old content is dropped. There must be none.
    pub(crate) fn start(&mut self, mut buffer: Vec<u8>, offset: u64, now_ms: u64) {
        debug_assert!(self.run.is_none());
        buffer.clear();
        self.run = Some(Run { offset, bytes: buffer, since_ms: now_ms });
    }

    /// Takes the run out in order to send it.
    pub(crate) fn take_run(&mut self) -> Option<Run> {
        self.run.take().filter(|run| !run.bytes.is_empty())
    }

    /// Notes a write as sent.
    pub(crate) fn push_sent(&mut self, sent: Sent<T>) {
        debug_assert!(!self.in_the_way(&sent.range));
        self.sent_bytes += sent.range.len();
        self.sent.push_back(sent);
    }

    /// The write sent longest ago.
    pub(crate) fn oldest(&self) -> Option<&Sent<T>> {
        self.sent.front()
    }

    /// Takes the write out that was sent longest ago, to wait for it.
    pub(crate) fn take_oldest(&mut self) -> Option<Sent<T>> {
        let sent = self.sent.pop_front()?;
        self.sent_bytes -= sent.range.len();
        Some(sent)
    }

    /// Whether some write that is sent overlaps `range`.
    pub(crate) fn in_the_way(&self, range: &ByteRange) -> bool {
        self.sent.iter().any(|sent| sent.range.overlaps(range))
    }

    /// Copies what is gathered or sent at `offset`, up to `target`'s end or that of one piece, and
    /// returns how many bytes.
    pub(crate) fn copy_from(&self, target: &mut [u8], offset: u64) -> usize {
        let run = self.run.iter().map(|run| (run.range(), &run.bytes));
        let sent = self.sent.iter().map(|sent| (sent.range, &sent.bytes));
        // The run first: it is newer.
        let Some((range, bytes)) = run.chain(sent).find(|(range, _)| range.contains(offset)) else {
            return 0;
        };
        let mut source = &bytes[(offset - range.start()) as usize..];
        if let Some(run) = &self.run
            && run.offset > offset
        {
            let len = source.len().min((run.offset - offset) as usize);
            source = &source[..len];
        }
        let count = source.len().min(target.len());
        target[..count].copy_from_slice(&source[..count]);
        count
    }

    /// Where what is gathered or sent at `offset` ends.
    pub(crate) fn end_at(&self, offset: u64) -> Option<u64> {
        let run = self.run.iter().map(Run::range);
        let mut ranges = run.chain(self.sent.iter().map(|sent| sent.range));
        ranges.find(|range| range.contains(offset)).map(|range| range.end())
    }

    /// The end of the last byte that is gathered or sent; 0 when there is none.
    pub(crate) fn end(&self) -> u64 {
        let run = self.run.iter().map(Run::range);
        run.chain(self.sent.iter().map(|sent| sent.range)).map(|r| r.end()).max().unwrap_or(0)
    }

    /// The first offset from `offset` on that is gathered or sent.
    pub(crate) fn next_start(&self, offset: u64) -> Option<u64> {
        let run = self.run.iter().map(Run::range);
        let sent = self.sent.iter().map(|sent| sent.range);
        let from = |range: ByteRange| range.start().max(offset);
        run.chain(sent).filter(|range| range.end() > offset).map(from).min()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE_LEN: usize = 96;

    #[derive(Debug, Clone)]
    enum Step {
        Write(u64, Vec<u8>),
        Send,
        Acknowledge,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u64..60, prop::collection::vec(any::<u8>(), 1..30))
                .prop_map(|(at, data)| Step::Write(at, data)),
            1 => Just(Step::Send),
            2 => Just(Step::Acknowledge),
        ]
    }

    /// A service that has executed the acknowledged writes only.
    struct Model {
        writes: WriteBehind<()>,
        service: Vec<u8>,
    }

    impl Model {
        fn acknowledge(&mut self) {
            if let Some(sent) = self.writes.take_oldest() {
                let range = sent.range.start() as usize..sent.range.end() as usize;
                self.service[range].copy_from_slice(&sent.bytes);
            }
        }

        fn send(&mut self) {
            let Some(run) = self.writes.take_run() else { return };
            while self.writes.in_the_way(&run.range()) {
                self.acknowledge();
            }
            let range = run.range();
            self.writes.push_sent(Sent { range, bytes: run.into_bytes(), request: () });
        }
    }

    proptest! {
        /// However writes are cut, gathered and acknowledged: what is here over what the service
        /// has is what was written, and writes outstanding together never overlap.
        #[test]
        fn nothing_written_is_lost_or_reordered(
            steps in prop::collection::vec(step(), 1..60)
        ) {
            let mut file = vec![0; FILE_LEN];
            let mut model = Model { writes: WriteBehind::new(16), service: vec![0; FILE_LEN] };
            for step in steps {
                match step {
                    Step::Write(mut at, data) => {
                        file[at as usize..at as usize + data.len()].copy_from_slice(&data);
                        let mut rest = &data[..];
                        while !rest.is_empty() {
                            let count = model.writes.join(rest, at);
                            if count == 0 {
                                model.send();
                                model.writes.start(Vec::new(), at, 0);
                            }
                            at += count as u64;
                            rest = &rest[count..];
                        }
                    }
                    Step::Send => model.send(),
                    Step::Acknowledge => model.acknowledge(),
                }
                let sent = &model.writes.sent;
                for (i, a) in sent.iter().enumerate() {
                    prop_assert!(sent.iter().skip(i + 1).all(|b| !a.range.overlaps(&b.range)));
                    prop_assert!(a.bytes.len() <= 16);
                }
                let bytes: usize = sent.iter().map(|sent| sent.bytes.len()).sum();
                prop_assert_eq!(model.writes.sent_bytes(), bytes as u64);
                let mut seen = model.service.clone();
                let mut at = 0;
                while let Some(start) = model.writes.next_start(at) {
                    let start = start as usize;
                    let count = model.writes.copy_from(&mut seen[start..], start as u64);
                    prop_assert!(count > 0);
                    at = (start + count) as u64;
                }
                prop_assert_eq!(&seen, &file);
            }
            model.send();
            while !model.writes.is_empty() {
                model.acknowledge();
            }
            prop_assert_eq!(&model.service, &file);
        }
    }

    #[test]
    fn a_run_takes_no_more_than_a_request_can_carry() {
        let mut writes: WriteBehind<()> = WriteBehind::new(8);
        assert_eq!(writes.join(b"abc", 5), 0);
        writes.start(Vec::new(), 5, 0);
        assert_eq!(writes.join(b"abcdef", 5), 6);
        assert_eq!(writes.join(b"XY", 7), 2);
        assert_eq!(writes.join(b"z", 12), 0, "a gap");
        assert_eq!(writes.join(b"z", 4), 0, "before it");
        assert_eq!(writes.join(b"ghi", 11), 2);
        assert!(writes.is_full());
        assert_eq!(writes.take_run().map(Run::into_bytes).as_deref(), Some(&b"abXYefgh"[..]));
    }
}
