//! The closed form: strided patterns of strided patterns.

use super::OFFSET_MAX;
use crate::error::{Error, Result};

/// How many levels a closed form may have, besides the endless repetition around them.
pub const LEVELS_MAX: usize = 7;

/// One level of a nested pattern: `count` of what is inside, `hole` bytes between each two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Level {
    /// How many.
    pub count: u64,
    /// Bytes between two.
    pub hole: u64,
}

/// One direction in which blocks repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Dimension {
    /// How often; `u64::MAX` for the outermost, which has no end.
    pub(super) count: u64,
    /// From start to start, in bytes of the file.
    pub(super) stride: u64,
    /// Bytes between the end of one and the start of the next.
    hole: u64,
    /// How many blocks one of them has.
    blocks: u64,
}

/// Blocks of one size in up to `LEVELS_MAX + 1` dimensions, the last of them endless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nested {
    block: u64,
    dimensions: [Dimension; LEVELS_MAX + 1],
    depth: usize,
}

impl Nested {
    /// Levels from the inside out, then `tail` bytes before all begins again.
    pub(super) fn new(block: u64, levels: &[Level], tail: u64) -> Result<Self> {
        // A level of one has no hole of its own.
        let needed = levels.iter().filter(|level| level.count != 1).count();
        if needed > LEVELS_MAX {
            return Err(Error::TooDeep { levels: needed, max: LEVELS_MAX });
        }
        let empty = levels.iter().any(|level| level.count == 0);
        let block = if empty { 0 } else { block };
        let mut nested = Self { block, dimensions: Default::default(), depth: 0 };
        let (mut extent, mut blocks) = (block, 1u64);
        let endless = Level { count: u64::MAX, hole: tail };
        for level in levels.iter().filter(|level| level.count > 1).chain([&endless]) {
            let overflow = Error::Overflow { tuple: blocks - 1 };
            let stride = extent.checked_add(level.hole).filter(|stride| *stride <= OFFSET_MAX);
            let stride = stride.ok_or(overflow.clone())?;
            nested.dimensions[nested.depth] =
                Dimension { count: level.count, stride, hole: level.hole, blocks };
            nested.depth += 1;
            if level.count == u64::MAX {
                break;
            }
            extent = stride
                .checked_mul(level.count - 1)
                .and_then(|before| before.checked_add(extent))
                .filter(|extent| *extent <= OFFSET_MAX)
                .ok_or(overflow.clone())?;
            blocks = blocks.checked_mul(level.count).ok_or(overflow)?;
        }
        Ok(nested)
    }

    /// The closed form of a list of tuples of one size, given their holes by number; none when the
    /// holes do not nest.
    pub(super) fn detect(size: u64, len: usize, hole: impl Fn(usize) -> u64) -> Option<Self> {
        let mut levels = Vec::new();
        // `count` groups of `step` tuples are left to be looked at; what is within them nests.
        let (mut step, mut count) = (1, len);
        loop {
            let hole_of = |group: usize| hole((group + 1) * step - 1);
            let first = hole_of(0);
            let Some(run) = (1..count).find(|group| hole_of(*group) != first) else {
                return Nested::new(size, &levels, first).ok();
            };
            let members = run + 1;
            let even = count % members == 0
                && levels.len() < LEVELS_MAX
                && (0..count).all(|group| (group + 1) % members == 0 || hole_of(group) == first);
            if !even {
                return None;
            }
            levels.push(Level { count: members as u64, hole: first });
            step *= members;
            count /= members;
        }
    }

    /// The same bytes with blocks that touch made one.
    pub(super) fn dense(&self) -> Self {
        let mut dense = *self;
        while dense.depth > 1 && dense.dimensions[0].hole == 0 {
            let inner = dense.dimensions[0];
            dense.block = inner.stride * inner.count;
            dense.dimensions.copy_within(1.., 0);
            dense.depth -= 1;
            for dimension in &mut dense.dimensions[..dense.depth] {
                dimension.blocks /= inner.count;
            }
        }
        dense.dimensions[dense.depth..].fill(Dimension::default());
        dense
    }

    pub(super) fn block(&self) -> u64 {
        self.block
    }

    /// The dimensions from the inside out; the last has no end.
    pub(super) fn dimensions(&self) -> &[Dimension] {
        &self.dimensions[..self.depth]
    }

    fn outermost(&self) -> &Dimension {
        &self.dimensions[self.depth - 1]
    }

    /// Bytes of data in one turn.
    pub(super) fn size(&self) -> u64 {
        // At most the extent, which was checked.
        self.block * self.outermost().blocks
    }

    /// Bytes of the file in one turn, the last hole included.
    pub(super) fn extent(&self) -> u64 {
        self.outermost().stride
    }

    /// Where block `number` starts, from the start of the pattern; none beyond 64 bits.
    pub(super) fn offset_of(&self, number: u64) -> Option<u64> {
        let mut rest = number;
        let mut offset = 0u64;
        for dimension in self.dimensions().iter().rev() {
            let index = rest / dimension.blocks;
            rest %= dimension.blocks;
            offset = offset.checked_add(dimension.stride.checked_mul(index)?)?;
        }
        Some(offset)
    }

    /// For each dimension, which of its members block `number` is in.
    pub(super) fn indices_of(&self, number: u64) -> [u64; LEVELS_MAX + 1] {
        let mut indices = [0; LEVELS_MAX + 1];
        let mut rest = number;
        for (index, dimension) in indices.iter_mut().zip(self.dimensions()).rev() {
            *index = rest / dimension.blocks;
            rest %= dimension.blocks;
        }
        indices
    }

    /// Bytes between the end of block `number` and the start of the next.
    pub(super) fn hole_after(&self, number: u64) -> u64 {
        let next = number.wrapping_add(1);
        let outer =
            self.dimensions().iter().rev().find(|dimension| next.is_multiple_of(dimension.blocks));
        // One block is what the innermost dimension counts, so one is always found.
        outer.map_or(0, |dimension| dimension.hole)
    }

    /// What [`Nested::new`] takes.
    pub(super) fn levels(&self) -> (u64, Vec<Level>, u64) {
        let (outermost, inner) = self.dimensions().split_last().expect("there is an endless one");
        let levels =
            inner.iter().map(|dimension| Level { count: dimension.count, hole: dimension.hole });
        (self.block, levels.collect(), outermost.hole)
    }
}
