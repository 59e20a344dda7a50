//! Blocks of bytes and their repetition.

use super::{Blocks, FlatError};

/// Bytes in the order in which they are data: the order matters, and blocks may even overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// No bytes.
    Nothing,
    /// `length` bytes, not zero.
    Block {
        /// Where they begin.
        offset: i64,
        /// How many they are.
        length: u64,
    },
    /// A shape several times, each `stride` bytes after the one before.
    Repeat {
        /// Added to the offsets of the first.
        offset: i64,
        /// How often; not zero.
        count: u64,
        /// Bytes from one to the next. May be negative, or zero.
        stride: i64,
        /// What is repeated.
        each: Box<Shape>,
    },
    /// Offsets and lengths of blocks, two or more, without regularity.
    Blocks(Vec<(i64, u64)>),
    /// Different shapes one after the other.
    List(Vec<Shape>),
}

impl Shape {
    /// One block; nothing if it has no bytes.
    #[must_use]
    pub fn block(offset: i64, length: u64) -> Shape {
        if length == 0 { Shape::Nothing } else { Shape::Block { offset, length } }
    }

    /// This shape several times.
    ///
    /// # Errors
    ///
    /// [`FlatError::Overflow`].
    pub fn repeated(self, count: u64, stride: i64) -> Result<Shape, FlatError> {
        if count == 0 || self == Shape::Nothing {
            return Ok(Shape::Nothing);
        }
        if count == 1 {
            return Ok(self);
        }
        // The furthest offset must exist, so that walking through needs no checks.
        let last = i64::try_from(count - 1).ok().and_then(|last| last.checked_mul(stride));
        let (low, high) = self.bounds().ok_or(FlatError::Overflow)?;
        last.and_then(|last| Some((low.checked_add(last)?, high.checked_add(last)?)))
            .ok_or(FlatError::Overflow)?;
        match self {
            Shape::Block { offset, length } if i64::try_from(length) == Ok(stride) => {
                let length = length.checked_mul(count).ok_or(FlatError::Overflow)?;
                Ok(Shape::Block { offset, length })
            }
            // Evenly spaced repetitions of repetitions are one.
            Shape::Repeat { offset, count: inner, stride: step, each }
                if i64::try_from(inner).ok().and_then(|inner| inner.checked_mul(step))
                    == Some(stride) =>
            {
                let count = inner.checked_mul(count).ok_or(FlatError::Overflow)?;
                Ok(Shape::Repeat { offset, count, stride: step, each })
            }
            each => Ok(Shape::Repeat { offset: 0, count, stride, each: Box::new(each) }),
        }
    }

    /// This shape, elsewhere.
    ///
    /// # Errors
    ///
    /// [`FlatError::Overflow`].
    pub fn moved(self, by: i64) -> Result<Shape, FlatError> {
        if by == 0 {
            return Ok(self);
        }
        if let Some((low, high)) = self.bounds() {
            low.checked_add(by).and(high.checked_add(by)).ok_or(FlatError::Overflow)?;
        }
        let moved = |offset: i64| offset.checked_add(by).ok_or(FlatError::Overflow);
        match self {
            Shape::Nothing => Ok(Shape::Nothing),
            Shape::Block { offset, length } => Ok(Shape::Block { offset: moved(offset)?, length }),
            Shape::Repeat { offset, count, stride, each } => {
                Ok(Shape::Repeat { offset: moved(offset)?, count, stride, each })
            }
            each @ (Shape::Blocks(_) | Shape::List(_)) => {
                Ok(Shape::Repeat { offset: by, count: 1, stride: 0, each: Box::new(each) })
            }
        }
    }

    /// Shapes one after the other: neighbours that touch become one, and blocks of one length at one
    /// distance a repetition.
    #[must_use]
    pub fn sequence(shapes: impl IntoIterator<Item = Shape>) -> Shape {
        let mut list: Vec<Shape> = Vec::new();
        for shape in shapes {
            match (list.last_mut(), shape) {
                (_, Shape::Nothing) => {}
                (
                    Some(Shape::Block { offset: before, length }),
                    Shape::Block { offset, length: more },
                ) if end(*before, *length) == Some(offset)
                    && length.checked_add(more).is_some() =>
                {
                    *length += more;
                }
                (_, shape) => list.push(shape),
            }
        }
        match list.len() {
            0 => return Shape::Nothing,
            1 => return list.remove(0),
            _ => {}
        }
        let blocks: Option<Vec<(i64, u64)>> = list
            .iter()
            .map(|shape| match shape {
                Shape::Block { offset, length } => Some((*offset, *length)),
                _ => None,
            })
            .collect();
        match blocks {
            Some(blocks) => regular(&blocks).unwrap_or(Shape::Blocks(blocks)),
            None => Shape::List(list),
        }
    }

    /// How many bytes there are; `None` if more than 64 bits can count.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Shape::Nothing => Some(0),
            Shape::Block { length, .. } => Some(*length),
            Shape::Repeat { count, each, .. } => each.bytes()?.checked_mul(*count),
            Shape::Blocks(blocks) => {
                blocks.iter().try_fold(0u64, |sum, (_, length)| sum.checked_add(*length))
            }
            Shape::List(list) => {
                list.iter().try_fold(0u64, |sum, shape| sum.checked_add(shape.bytes()?))
            }
        }
    }

    /// The lowest offset, and the end of the furthest byte; `None` where there are no bytes or the
    /// numbers overflow.
    #[must_use]
    pub fn bounds(&self) -> Option<(i64, i64)> {
        match self {
            Shape::Nothing => None,
            Shape::Block { offset, length } => Some((*offset, end(*offset, *length)?)),
            Shape::Repeat { offset, count, stride, each } => {
                let (low, high) = each.bounds()?;
                let (low, high) = (low.checked_add(*offset)?, high.checked_add(*offset)?);
                let last = i64::try_from(count - 1).ok()?.checked_mul(*stride)?;
                Some((low.min(low.checked_add(last)?), high.max(high.checked_add(last)?)))
            }
            Shape::Blocks(blocks) => {
                let each =
                    blocks.iter().map(|&(offset, length)| Some((offset, end(offset, length)?)));
                widest(each)
            }
            Shape::List(list) => widest(list.iter().map(Shape::bounds)),
        }
    }

    /// Whether the blocks stand in the order of their offsets and none overlaps another. What MPI
    /// demands of a view that is written through (MPI-4.1 §14.3), and what most buffers are.
    #[must_use]
    pub fn is_ascending(&self) -> bool {
        match self {
            Shape::Nothing | Shape::Block { .. } => true,
            Shape::Repeat { count, stride, each, .. } => {
                let apart = || each.bounds().is_some_and(|(low, high)| high - low <= *stride);
                each.is_ascending() && (*count == 1 || apart())
            }
            Shape::Blocks(blocks) => blocks.windows(2).all(|pair| {
                let ((offset, length), (next, _)) = (pair[0], pair[1]);
                end(offset, length).is_some_and(|end| end <= next)
            }),
            Shape::List(list) => {
                list.iter().all(Shape::is_ascending)
                    && list.windows(2).all(|pair| {
                        let bounds = (pair[0].bounds(), pair[1].bounds());
                        matches!(bounds, (Some((_, high)), Some((low, _))) if high <= low)
                    })
            }
        }
    }

    /// The blocks, in order, as large as possible: two that touch are handed out as one.
    #[must_use]
    pub fn blocks(&self) -> Blocks<'_> {
        Blocks::new(self)
    }
}

fn end(offset: i64, length: u64) -> Option<i64> {
    offset.checked_add(i64::try_from(length).ok()?)
}

fn widest(mut all: impl Iterator<Item = Option<(i64, i64)>>) -> Option<(i64, i64)> {
    let first = all.next()??;
    all.try_fold(first, |(low, high), next| {
        let (from, to) = next?;
        Some((low.min(from), high.max(to)))
    })
}

/// Blocks of one length at one distance, as a repetition.
fn regular(blocks: &[(i64, u64)]) -> Option<Shape> {
    let (offset, length) = *blocks.first()?;
    let stride = blocks.get(1)?.0.checked_sub(offset)?;
    let is_regular = blocks
        .windows(2)
        .all(|pair| pair[1].1 == length && pair[1].0.checked_sub(pair[0].0) == Some(stride));
    // A pair is as short as a repetition of two, and simpler.
    (is_regular && blocks.len() > 2).then(|| Shape::Repeat {
        offset: 0,
        count: blocks.len() as u64,
        stride,
        each: Box::new(Shape::Block { offset, length }),
    })
}
