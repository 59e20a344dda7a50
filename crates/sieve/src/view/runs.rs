//! Walking a view: the blocks that hold a range of its data.

use super::Tuple;
use super::list::List;
use super::nested::{LEVELS_MAX, Nested};

/// `count` blocks of `len` bytes whose starts are `stride` bytes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where the first starts in the file.
    pub file: u64,
    /// Length of each, in bytes; never 0.
    pub len: u64,
    /// From start to start, in bytes; more than `len`, and without meaning when `count` is 1.
    pub stride: u64,
    /// How many; never 0.
    pub count: u64,
}

impl Run {
    /// Bytes of data in all of them.
    #[must_use]
    #[inline]
    pub fn data(&self) -> u64 {
        self.len * self.count
    }

    /// Offset behind the last byte of the last.
    #[must_use]
    #[inline]
    pub fn end(&self) -> u64 {
        self.file + (self.count - 1) * self.stride + self.len
    }
}

/// One contiguous piece of the file, and where its data stands in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Offset in the file.
    pub file: u64,
    /// Offset in the data of the view.
    pub data: u64,
    /// Length in bytes; never 0.
    pub len: u64,
}

/// The runs that hold a range of data, made by [`FileView::runs`](super::FileView::runs).
///
/// It may be walked in parts: [`Runs::peek`] shows what comes next, [`Runs::advance`] steps over
/// any part of it.
#[derive(Debug, Clone)]
pub struct Runs<'a> {
    place: Place<'a>,
    /// Offset in the view's data.
    at: u64,
    /// Bytes of data to go.
    left: u64,
}

#[derive(Debug, Clone)]
enum Place<'a> {
    Nested {
        form: &'a Nested,
        /// Which member of each dimension.
        indices: [u64; LEVELS_MAX + 1],
        /// Where the current block starts in the file.
        file: u64,
        /// Bytes of the block that are behind us.
        within: u64,
    },
    List {
        list: &'a List,
        index: usize,
        /// Where the current tuple starts in the file.
        file: u64,
        /// Bytes of the tuple that are behind us.
        within: u64,
    },
    Nothing,
}

impl<'a> Runs<'a> {
    /// The end of all runs.
    pub(crate) fn nothing(at: u64) -> Self {
        Self { place: Place::Nothing, at, left: 0 }
    }

    /// The caller has checked that the whole range has offsets.
    pub(super) fn nested(form: &'a Nested, displacement: u64, at: u64, left: u64) -> Self {
        let (number, within) = (at / form.block(), at % form.block());
        let indices = form.indices_of(number);
        let strides = form.dimensions().iter().map(|dimension| dimension.stride);
        let file = displacement + indices.iter().zip(strides).map(|(i, s)| i * s).sum::<u64>();
        Self { place: Place::Nested { form, indices, file, within }, at, left }
    }

    pub(super) fn list(
        list: &'a List,
        index: usize,
        file: u64,
        within: u64,
        at: u64,
        left: u64,
    ) -> Self {
        Self { place: Place::List { list, index, file, within }, at, left }
    }

    /// Offset in the data of the view of what comes next.
    #[must_use]
    #[inline]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Bytes of data to go.
    #[must_use]
    #[inline]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// What comes next, in at most `data_max` bytes of data: a whole run, or a part of a block
    /// where the range starts or ends inside one. None at the end, and for a `data_max` of 0.
    #[must_use]
    #[inline]
    pub fn peek(&self, data_max: u64) -> Option<Run> {
        let left = self.left.min(data_max);
        if left == 0 {
            return None;
        }
        Some(match &self.place {
            Place::Nested { form, indices, file, within } => {
                let (block, inner) = (form.block(), form.dimensions()[0]);
                if inner.stride == block {
                    // Dense and still touching: there are no holes at all.
                    Run { file: file + within, len: left, stride: left, count: 1 }
                } else if *within > 0 || left < block {
                    let len = left.min(block - within);
                    Run { file: file + within, len, stride: len, count: 1 }
                } else {
                    let count = (inner.count - indices[0]).min(left / block);
                    Run { file: *file, len: block, stride: inner.stride, count }
                }
            }
            Place::List { list, index, file, within } => {
                let (mut index, mut file, mut within) = (*index, *file, *within);
                loop {
                    let Tuple { size, hole } = list.tuple(index);
                    if within < size {
                        let start = file + within;
                        let mut len = size - within;
                        let mut touching = hole == 0;
                        while touching && len < left {
                            index = if index + 1 == list.len() { 0 } else { index + 1 };
                            let next = list.tuple(index);
                            len += next.size;
                            touching = next.hole == 0;
                        }
                        let len = len.min(left);
                        break Run { file: start, len, stride: len, count: 1 };
                    }
                    file = file.wrapping_add(size + hole);
                    within = 0;
                    index = if index + 1 == list.len() { 0 } else { index + 1 };
                }
            }
            Place::Nothing => return None,
        })
    }

    /// Steps over `data` bytes, which must be no more than the next run has.
    #[inline]
    pub fn advance(&mut self, data: u64) {
        debug_assert!(data <= self.left);
        self.at += data;
        self.left -= data;
        match &mut self.place {
            Place::Nested { form, indices, file, within } => {
                let (block, inner) = (form.block(), form.dimensions()[0]);
                *within += data;
                if *within < block {
                    return;
                }
                let blocks = *within / block;
                *within %= block;
                indices[0] += blocks;
                // Behind the last wanted byte the numbers may wrap; nobody looks at them there.
                *file = file.wrapping_add(blocks.wrapping_mul(inner.stride));
                let mut dimensions = form.dimensions().iter().enumerate();
                while let Some((number, dimension)) = dimensions.next()
                    && indices[number] == dimension.count
                {
                    let Some(outer) = form.dimensions().get(number + 1) else { break };
                    let back = dimension.count.wrapping_mul(dimension.stride);
                    *file = file.wrapping_sub(back).wrapping_add(outer.stride);
                    indices[number] = 0;
                    indices[number + 1] += 1;
                }
            }
            Place::List { list, index, file, within } => {
                let mut data = data;
                loop {
                    let Tuple { size, hole } = list.tuple(*index);
                    let rest = size - *within;
                    if data < rest {
                        *within += data;
                        return;
                    }
                    data -= rest;
                    *within = 0;
                    *file = file.wrapping_add(size + hole);
                    *index = if *index + 1 == list.len() { 0 } else { *index + 1 };
                    if data == 0 {
                        return;
                    }
                }
            }
            Place::Nothing => {}
        }
    }

    /// The next run within at most `data_max` bytes of data, stepped over.
    #[inline]
    pub fn next_within(&mut self, data_max: u64) -> Option<Run> {
        let run = self.peek(data_max)?;
        self.advance(run.data());
        Some(run)
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        self.next_within(u64::MAX)
    }
}

/// The blocks that hold a range of data, made by [`FileView::blocks`](super::FileView::blocks).
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    runs: Runs<'a>,
    run: Run,
    data: u64,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(runs: Runs<'a>) -> Self {
        let data = runs.at();
        // `count: 0` marks a run that is used up.
        Self { runs, run: Run { file: 0, len: 0, stride: 0, count: 0 }, data }
    }
}

impl Iterator for Blocks<'_> {
    type Item = Block;

    #[inline]
    fn next(&mut self) -> Option<Block> {
        if self.run.count == 0 {
            self.run = self.runs.next()?;
        }
        let block = Block { file: self.run.file, data: self.data, len: self.run.len };
        self.run.count -= 1;
        self.run.file = self.run.file.wrapping_add(self.run.stride);
        self.data += self.run.len;
        Some(block)
    }
}
