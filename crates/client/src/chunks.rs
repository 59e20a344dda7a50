//! What is known of a file's content: chunks that are here, and chunks that are on their way.
//! Pure: generic over what a request (`P`) and its data (`B`) are.

use extent::ByteRange;

/// Identifies a chunk while its data is being received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkId(u64);

/// How far a chunk has come.
#[derive(Debug)]
pub(crate) enum Content<P, B> {
    /// Requested; nobody receives it yet.
    Pending(P),
    /// Some thread waits for it.
    Arriving,
    /// Here: exactly as many bytes as the chunk's range has.
    Ready(B),
}

#[derive(Debug)]
struct Chunk<P, B> {
    id: ChunkId,
    range: ByteRange,
    content: Content<P, B>,
    /// When it was last used, or made, for eviction.
    used: u64,
    /// Some of it was read by the program.
    consumed: bool,
}

/// What stands at an offset.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// Data, up to this range's end.
    Ready,
    /// A request over this range that nobody receives yet.
    Pending(ByteRange),
    /// A request that another thread receives.
    Arriving,
    /// Nothing.
    Gap,
}

/// The chunks of one file: sorted, never overlapping, never empty.
#[derive(Debug)]
pub(crate) struct Chunks<P, B> {
    sorted: Vec<Chunk<P, B>>,
    /// Where the last copy came from: small sequential reads stay there.
    cursor: usize,
    clock: u64,
    /// Bytes in chunks that were read by the program.
    consumed: u64,
    /// Bytes in the others, those on their way included.
    unread: u64,
}

impl<P, B: AsRef<[u8]> + AsMut<[u8]>> Chunks<P, B> {
    pub(crate) fn new() -> Self {
        Self { sorted: Vec::new(), cursor: 0, clock: 0, consumed: 0, unread: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Copies to `target` if the chunk last read from has all of it.
    #[inline]
    pub(crate) fn copy_near(&self, target: &mut [u8], offset: u64) -> bool {
        let Some(chunk) = self.sorted.get(self.cursor) else { return false };
        let Content::Ready(bytes) = &chunk.content else { return false };
        if !chunk.range.contains(offset) {
            return false;
        }
        let rest = &bytes.as_ref()[(offset - chunk.range.start()) as usize..];
        let Some(source) = rest.get(..target.len()) else { return false };
        // A byte at a time is how some programs read; a call to memcpy would be most of its cost.
        if let ([to], [from]) = (&mut *target, source) {
            *to = *from;
        } else {
            target.copy_from_slice(source);
        }
        true
    }

    /// Copies what the chunk at `offset` has, up to `target`'s end, and returns how many bytes.
    pub(crate) fn copy_from(&mut self, target: &mut [u8], offset: u64) -> usize {
        let Some(index) = self.index_at(offset) else { return 0 };
        self.clock += 1;
        self.cursor = index;
        let chunk = &mut self.sorted[index];
        let Content::Ready(bytes) = &chunk.content else { return 0 };
        chunk.used = self.clock;
        if !std::mem::replace(&mut chunk.consumed, true) {
            self.unread -= chunk.range.len();
            self.consumed += chunk.range.len();
        }
        let source = &bytes.as_ref()[(offset - chunk.range.start()) as usize..];
        let count = source.len().min(target.len());
        target[..count].copy_from_slice(&source[..count]);
        count
    }

    /// What stands at `offset`.
    pub(crate) fn at(&self, offset: u64) -> At {
        match self.index_at(offset).map(|index| &self.sorted[index]) {
            None => At::Gap,
            Some(chunk) => match chunk.content {
                Content::Ready(_) => At::Ready,
                Content::Arriving => At::Arriving,
                Content::Pending(_) => At::Pending(chunk.range),
            },
        }
    }

    /// Where the chunk at `offset` ends.
    pub(crate) fn end_at(&self, offset: u64) -> Option<u64> {
        self.index_at(offset).map(|index| self.sorted[index].range.end())
    }

    /// The first offset from `offset` on that some chunk has.
    pub(crate) fn next_start(&self, offset: u64) -> Option<u64> {
        let index = self.sorted.partition_point(|chunk| chunk.range.end() <= offset);
        self.sorted.get(index).map(|chunk| chunk.range.start().max(offset))
    }

    /// The bytes around `offset` that no chunk has; `offset` must be one of them.
    pub(crate) fn gap_around(&self, offset: u64) -> ByteRange {
        let index = self.sorted.partition_point(|chunk| chunk.range.end() <= offset);
        let start = index.checked_sub(1).map_or(0, |before| self.sorted[before].range.end());
        ByteRange::new(start, self.next_start(offset).unwrap_or(u64::MAX))
    }

    /// Adds a chunk over a range where there is none.
    pub(crate) fn insert(&mut self, range: ByteRange, content: Content<P, B>) {
        debug_assert!(!range.is_empty());
        debug_assert!(self.next_start(range.start()).is_none_or(|start| start >= range.end()));
        self.clock += 1;
        let id = ChunkId(self.clock);
        let index = self.sorted.partition_point(|chunk| chunk.range.end() <= range.start());
        let chunk = Chunk { id, range, content, used: self.clock, consumed: false };
        self.sorted.insert(index, chunk);
        self.unread += range.len();
    }

    /// Takes the pending request at `offset` out, chunk and all: for data that goes straight to a
    /// caller.
    pub(crate) fn take_pending(&mut self, offset: u64) -> Option<P> {
        let index = self.index_at(offset)?;
        if !matches!(self.sorted[index].content, Content::Pending(_)) {
            return None;
        }
        match self.remove(index).content {
            Content::Pending(request) => Some(request),
            Content::Arriving | Content::Ready(_) => None,
        }
    }

    /// Takes the pending request at `offset` to receive it; the chunk stays as arriving.
    pub(crate) fn begin_arrival(&mut self, offset: u64) -> Option<(ChunkId, ByteRange, P)> {
        let index = self.index_at(offset)?;
        let chunk = &mut self.sorted[index];
        if !matches!(chunk.content, Content::Pending(_)) {
            return None;
        }
        match std::mem::replace(&mut chunk.content, Content::Arriving) {
            Content::Pending(request) => Some((chunk.id, chunk.range, request)),
            Content::Arriving | Content::Ready(_) => None,
        }
    }

    /// The data of an arriving chunk is here, or (`None`) will not come. Data for a chunk that was
    /// dropped meanwhile is dropped as well: it may be older than what made us drop it. A reply
    /// shorter than the request shortens the chunk.
    pub(crate) fn end_arrival(&mut self, id: ChunkId, data: Option<B>) {
        let Some(index) = self.sorted.iter().position(|chunk| chunk.id == id) else { return };
        let len = data.as_ref().map_or(0, |bytes| bytes.as_ref().len() as u64);
        let chunk = &mut self.sorted[index];
        match data {
            Some(bytes) if len > 0 && len <= chunk.range.len() => {
                self.unread -= chunk.range.len() - len;
                chunk.range = ByteRange::at(chunk.range.start(), len);
                chunk.content = Content::Ready(bytes);
            }
            Some(_) | None => drop(self.remove(index)),
        }
    }

    /// Brings what is here up to date with a write, and drops what is on its way: it may have been
    /// read before or after.
    pub(crate) fn patch(&mut self, offset: u64, data: &[u8]) {
        let written = ByteRange::at(offset, data.len() as u64);
        let mut index = self.sorted.partition_point(|chunk| chunk.range.end() <= offset);
        while let Some(chunk) = self.sorted.get_mut(index) {
            let common = chunk.range.intersection(&written);
            if common.is_empty() {
                break;
            }
            match &mut chunk.content {
                Content::Ready(bytes) => {
                    let to = (common.start() - chunk.range.start()) as usize;
                    let from = (common.start() - offset) as usize;
                    let len = common.len() as usize;
                    bytes.as_mut()[to..to + len].copy_from_slice(&data[from..from + len]);
                    index += 1;
                }
                Content::Pending(_) | Content::Arriving => drop(self.remove(index)),
            }
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.sorted.clear();
        self.consumed = 0;
        self.unread = 0;
    }

    /// Takes out a chunk that is more than may be held, if there is one: of those that the program
    /// has read from, and of those that it has not, what was used longest ago. Chunks that a
    /// thread waits for stay.
    pub(crate) fn take_excess(
        &mut self,
        consumed_max: u64,
        unread_max: u64,
    ) -> Option<Content<P, B>> {
        let consumed = self.consumed > consumed_max;
        if !consumed && self.unread <= unread_max {
            return None;
        }
        let chunks = self.sorted.iter().enumerate();
        let droppable = chunks.filter(|(_, chunk)| {
            chunk.consumed == consumed && !matches!(chunk.content, Content::Arriving)
        });
        let (index, _) = droppable.min_by_key(|(_, chunk)| chunk.used)?;
        Some(self.remove(index).content)
    }

    fn index_at(&self, offset: u64) -> Option<usize> {
        let index = self.sorted.partition_point(|chunk| chunk.range.end() <= offset);
        self.sorted.get(index).filter(|chunk| chunk.range.contains(offset)).map(|_| index)
    }

    fn remove(&mut self, index: usize) -> Chunk<P, B> {
        let chunk = self.sorted.remove(index);
        let held = if chunk.consumed { &mut self.consumed } else { &mut self.unread };
        *held -= chunk.range.len();
        chunk
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE_LEN: usize = 64;

    #[derive(Debug, Clone)]
    enum Step {
        Request(u64, u64),
        Receive(u64, bool),
        Read(u64),
        Write(u64, Vec<u8>),
        Shrink(u64),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        let offset = 0..FILE_LEN as u64;
        prop_oneof![
            (offset.clone(), 1u64..20).prop_map(|(at, len)| Step::Request(at, len)),
            (offset.clone(), any::<bool>()).prop_map(|(at, slow)| Step::Receive(at, slow)),
            offset.clone().prop_map(Step::Read),
            (offset, prop::collection::vec(any::<u8>(), 1..12))
                .prop_map(|(at, data)| Step::Write(at, data)),
            (0u64..80).prop_map(Step::Shrink),
            Just(Step::Clear),
        ]
    }

    fn check(chunks: &Chunks<ByteRange, Vec<u8>>, file: &[u8]) {
        for pair in chunks.sorted.windows(2) {
            assert!(pair[0].range.end() <= pair[1].range.start());
        }
        let held = |consumed| -> u64 {
            let chunks = chunks.sorted.iter().filter(|chunk| chunk.consumed == consumed);
            chunks.map(|chunk| chunk.range.len()).sum()
        };
        assert_eq!((chunks.consumed, chunks.unread), (held(true), held(false)));
        for chunk in &chunks.sorted {
            assert!(!chunk.range.is_empty());
            if let Content::Ready(bytes) = &chunk.content {
                let range = chunk.range.start() as usize..chunk.range.end() as usize;
                assert_eq!(&bytes[..], &file[range]);
            }
        }
    }

    proptest! {
        /// Whatever is requested, received, written and dropped: what is here is the file.
        #[test]
        fn chunks_that_are_here_equal_the_file(
            steps in prop::collection::vec(step(), 1..60)
        ) {
            let mut file: Vec<u8> = (0..FILE_LEN as u8).collect();
            let mut chunks: Chunks<ByteRange, Vec<u8>> = Chunks::new();
            // Data that left the service before a write, and comes after it.
            let mut late: Vec<(ChunkId, Vec<u8>)> = Vec::new();
            for step in steps {
                match step {
                    Step::Request(at, len) => {
                        let end = chunks.next_start(at).unwrap_or(u64::MAX);
                        let range = ByteRange::new(at, end.min(at + len).min(FILE_LEN as u64));
                        if !range.is_empty() {
                            prop_assert_eq!(chunks.at(at), At::Gap);
                            chunks.insert(range, Content::Pending(range));
                        }
                    }
                    Step::Receive(at, slow) => {
                        if let Some((id, range, request)) = chunks.begin_arrival(at) {
                            prop_assert_eq!(range, request);
                            prop_assert_eq!(chunks.at(at), At::Arriving);
                            let data = file[range.start() as usize..range.end() as usize].to_vec();
                            if slow {
                                late.push((id, data));
                            } else {
                                chunks.end_arrival(id, Some(data));
                                prop_assert_eq!(chunks.at(at), At::Ready);
                            }
                        } else if let Some((id, data)) = late.pop() {
                            chunks.end_arrival(id, Some(data));
                        }
                    }
                    Step::Read(at) => {
                        let mut target = [0; 7];
                        let count = chunks.copy_from(&mut target, at);
                        let expected = &file[at as usize..at as usize + count];
                        prop_assert_eq!(&target[..count], expected);
                        if chunks.at(at) == At::Gap {
                            let gap = chunks.gap_around(at);
                            prop_assert!(gap.contains(at));
                            prop_assert!((gap.start()..gap.end().min(FILE_LEN as u64))
                                .all(|at| chunks.at(at) == At::Gap));
                        }
                    }
                    Step::Write(at, data) => {
                        let data = &data[..data.len().min(FILE_LEN - at as usize)];
                        file[at as usize..at as usize + data.len()].copy_from_slice(data);
                        chunks.patch(at, data);
                    }
                    Step::Shrink(budget) => {
                        while chunks.take_excess(budget / 2, budget).is_some() {}
                        let waited = |c: &&Chunk<_, _>| matches!(c.content, Content::Arriving);
                        let kept: u64 =
                            chunks.sorted.iter().filter(waited).map(|c| c.range.len()).sum();
                        prop_assert!(chunks.consumed <= budget / 2);
                        prop_assert!(chunks.unread <= budget.max(kept));
                    }
                    Step::Clear => chunks.clear(),
                }
                check(&chunks, &file);
            }
            for at in 0..FILE_LEN as u64 {
                let mut target = [0; 16];
                let count = chunks.copy_from(&mut target, at);
                prop_assert_eq!(&target[..count], &file[at as usize..at as usize + count]);
                prop_assert_eq!(count > 0, chunks.at(at) == At::Ready);
                if count > 0 {
                    let near = chunks.copy_near(&mut target[..count], at);
                    prop_assert!(near);
                }
            }
        }
    }

    #[test]
    fn a_short_reply_shortens_its_chunk() {
        let mut chunks: Chunks<(), Vec<u8>> = Chunks::new();
        chunks.insert(ByteRange::at(10, 10), Content::Pending(()));
        let (id, ..) = chunks.begin_arrival(12).unwrap();
        chunks.end_arrival(id, Some(vec![1; 4]));
        assert_eq!((chunks.at(13), chunks.at(14)), (At::Ready, At::Gap));
        chunks.insert(ByteRange::at(14, 6), Content::Pending(()));
        let (id, ..) = chunks.begin_arrival(14).unwrap();
        chunks.end_arrival(id, Some(Vec::new()));
        assert_eq!((chunks.at(14), chunks.unread), (At::Gap, 4));
    }
}
