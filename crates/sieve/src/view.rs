//! File views: which bytes of a file a program means, and in which order.

mod list;
mod nested;
mod runs;

pub use list::Builder;
pub use nested::{LEVELS_MAX, Level};
pub use runs::{Block, Blocks, Run, Runs};

use crate::error::{Error, Result};
use list::List;
use nested::Nested;

/// The largest offset a file may have: `off_t` is signed. open(2), lseek(2).
pub const OFFSET_MAX: u64 = i64::MAX as u64;

/// `size` bytes of data, then `hole` bytes that do not belong to the view.
///
/// # Source
/// Zickler 2015, §3.3.2: "each tuple represents a block of data and the delta offset to the next
/// tuple" (`nct_tuple` of Listing 4.1, there of 32 bits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tuple {
    /// Bytes of data. May be 0: then the tuple only moves what follows.
    pub size: u64,
    /// Bytes between the end of the data and the next tuple.
    pub hole: u64,
}

/// Where a byte of data of the view is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Number of the tuple in the view's list, from 0.
    pub tuple: u64,
    /// The tuple itself.
    pub shape: Tuple,
    /// How many bytes of the tuple's data lie before it.
    pub within: u64,
    /// Its offset in the file.
    pub file: u64,
}

/// A displacement and a list of tuples that repeats without end.
///
/// All offsets "in the view" count bytes of data only, from 0. Patterns that have a closed form
/// (strided, nested strided) are recognised when the view is made and take no room; all others
/// take 8 bytes a tuple, or 16 when a size or a hole needs more than 32 bits, and a 64th of 16
/// bytes for the index.
///
/// ```
/// use sieve::FileView;
/// // Of records of 100 bytes behind a header of 16, the first 8 bytes each.
/// let view = FileView::strided(16, 8, 92)?;
/// let blocks: Vec<_> = view.blocks(4, 10)?.map(|block| (block.file, block.len)).collect();
/// assert_eq!(blocks, [(20, 4), (116, 6)]);
/// # Ok::<(), sieve::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileView {
    displacement: u64,
    form: Form,
    /// How many tuples were given; a closed form may need fewer to say the same.
    tuples: u64,
    /// Bytes of data in one turn of `form`.
    size: u64,
    /// Bytes of the file that one turn of `form` spans, the last hole included.
    extent: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// The pattern as it was given, and with neighbours that touch made one.
    Nested {
        given: Box<Nested>,
        dense: Box<Nested>,
    },
    List(List),
}

impl FileView {
    /// A view of all bytes from `displacement` on.
    ///
    /// # Errors
    /// [`Error::Displacement`] when it is no offset of a file.
    pub fn contiguous(displacement: u64) -> Result<Self> {
        Self::strided(displacement, 1 << 30, 0)
    }

    /// Blocks of `block` bytes with `hole` bytes between them.
    ///
    /// # Errors
    /// [`Error::Displacement`] or [`Error::Overflow`] when no file is that long.
    pub fn strided(displacement: u64, block: u64, hole: u64) -> Result<Self> {
        Self::nested(displacement, block, &[], hole)
    }

    /// A strided pattern of strided patterns: `levels[0].count` blocks with `levels[0].hole` bytes
    /// between them, that `levels[1].count` times with `levels[1].hole` between, and so on; `tail`
    /// bytes follow before all repeats. A hyperslab of rank *n* has *n* levels at most.
    ///
    /// # Errors
    /// [`Error::TooDeep`], [`Error::Displacement`], or [`Error::Overflow`] when no file is that
    /// long. A level with a count of 0 makes a view without data.
    pub fn nested(displacement: u64, block: u64, levels: &[Level], tail: u64) -> Result<Self> {
        let given = Nested::new(block, levels, tail)?;
        let tuples = levels.iter().map(|level| level.count).product::<u64>().max(1);
        Self::of_nested(displacement, given, tuples)
    }

    /// Any list of tuples, in the order of the file.
    ///
    /// # Errors
    /// [`Error::NoTuples`], [`Error::Displacement`], or [`Error::Overflow`] when no file is that
    /// long.
    pub fn from_tuples(displacement: u64, tuples: impl IntoIterator<Item = Tuple>) -> Result<Self> {
        let tuples = tuples.into_iter();
        let mut builder = Builder::with_capacity(tuples.size_hint().0);
        for tuple in tuples {
            builder.push(tuple)?;
        }
        builder.finish(displacement)
    }

    /// Blocks by where they are: `(start, len)` in bytes from the start of the pattern, ascending,
    /// in a pattern that repeats every `extent` bytes. This is what a flattened MPI datatype or a
    /// selection of HDF5 looks like. What lies before the first block is a hole, too.
    ///
    /// # Errors
    /// [`Error::Overlap`] when a block starts before its predecessor ends, be it that of the next
    /// turn; else as [`FileView::from_tuples`].
    pub fn from_blocks(
        displacement: u64,
        extent: u64,
        blocks: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Self> {
        let blocks = blocks.into_iter();
        let mut builder = Builder::with_capacity(blocks.size_hint().0);
        let (mut first, mut end, mut number) = (0, 0, 0);
        let mut last: Option<u64> = None;
        for (start, len) in blocks {
            if number == 0 {
                first = start;
            } else if start < end {
                return Err(Error::Overlap { block: number, start, end });
            }
            if let Some(size) = last {
                builder.push(Tuple { size, hole: start - end })?;
            }
            last = Some(len);
            end = start.checked_add(len).ok_or(Error::Overflow { tuple: number })?;
            number += 1;
        }
        let size = last.ok_or(Error::NoTuples)?;
        let next = first.checked_add(extent).ok_or(Error::Overflow { tuple: number })?;
        if next < end {
            return Err(Error::Overlap { block: number, start: next, end });
        }
        builder.push(Tuple { size, hole: next - end })?;
        builder.finish(displacement.checked_add(first).ok_or(Error::Displacement { displacement })?)
    }

    fn of_nested(displacement: u64, given: Nested, tuples: u64) -> Result<Self> {
        if displacement > OFFSET_MAX {
            return Err(Error::Displacement { displacement });
        }
        let (size, extent) = (given.size(), given.extent());
        let (dense, given) = (Box::new(given.dense()), Box::new(given));
        Ok(Self { displacement, form: Form::Nested { given, dense }, tuples, size, extent })
    }

    fn of_list(displacement: u64, list: List) -> Result<Self> {
        if displacement > OFFSET_MAX {
            return Err(Error::Displacement { displacement });
        }
        let (tuples, size, extent) = (list.len() as u64, list.size(), list.extent());
        Ok(Self { displacement, form: Form::List(list), tuples, size, extent })
    }

    /// Offset of the first tuple in the file, in bytes.
    #[must_use]
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// How many tuples the list has.
    #[must_use]
    pub fn tuple_count(&self) -> u64 {
        self.tuples
    }

    /// Bytes of data in one turn of the pattern. A turn of a closed form is the shortest that
    /// repeats, and may be shorter than the list that was given.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of the file in one turn of the pattern, holes included.
    #[must_use]
    pub fn extent(&self) -> u64 {
        self.extent
    }

    /// The pattern's closed form with touching neighbours made one, if it has one: the block's
    /// size, the levels from the inside out, and the hole behind all of them.
    #[must_use]
    pub fn closed_form(&self) -> Option<(u64, Vec<Level>, u64)> {
        match &self.form {
            Form::Nested { dense, .. } => Some(dense.levels()),
            Form::List(_) => None,
        }
    }

    /// Bytes of memory that the list takes, the index included; 0 for a closed form.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match &self.form {
            Form::Nested { .. } => 0,
            Form::List(list) => list.memory_bytes(),
        }
    }

    /// Where byte `offset` of the view's data is.
    ///
    /// # Errors
    /// [`Error::NoData`], or [`Error::TooFar`] when no file is that long.
    pub fn position(&self, offset: u64) -> Result<Position> {
        if self.size == 0 {
            return Err(Error::NoData);
        }
        let too_far = Error::TooFar { offset, len: 1 };
        let (tuple, shape, within, file) = match &self.form {
            Form::Nested { given, .. } => {
                let (block, within) = (offset / given.block(), offset % given.block());
                let Some(file) = given.offset_of(block) else { return Err(too_far) };
                let shape = Tuple { size: given.block(), hole: given.hole_after(block) };
                (block % self.tuples, shape, within, file)
            }
            Form::List(list) => {
                let (turn, rest) = (offset / self.size, offset % self.size);
                let found = list.find(rest);
                let Some(file) =
                    turn.checked_mul(self.extent).and_then(|base| base.checked_add(found.file))
                else {
                    return Err(too_far);
                };
                (found.index as u64, list.tuple(found.index), rest - found.data, file)
            }
        };
        match self.displacement.checked_add(within).and_then(|base| base.checked_add(file)) {
            Some(file) if file < OFFSET_MAX => Ok(Position { tuple, shape, within, file }),
            _ => Err(too_far),
        }
    }

    /// The tuples from the one that holds byte `offset` of the view's data, without end: each with
    /// its number in the list. Empty tuples between two that hold data are among them.
    ///
    /// # Errors
    /// As [`FileView::position`].
    pub fn tuples_from(&self, offset: u64) -> Result<impl Iterator<Item = (u64, Tuple)> + '_> {
        let start = self.position(offset)?;
        let mut index = start.tuple;
        let mut block = match &self.form {
            Form::Nested { given, .. } => offset / given.block(),
            Form::List(_) => 0,
        };
        Ok(std::iter::from_fn(move || {
            let number = index;
            index = if index + 1 == self.tuples { 0 } else { index + 1 };
            let tuple = match &self.form {
                Form::Nested { given, .. } => {
                    let hole = given.hole_after(block);
                    block = block.wrapping_add(1);
                    Tuple { size: given.block(), hole }
                }
                Form::List(list) => list.tuple(number as usize),
            };
            Some((number, tuple))
        }))
    }

    /// Checks that `len` bytes of data from `offset` of the view lie in what a file can hold.
    fn check(&self, offset: u64, len: u64) -> Result<()> {
        let too_far = Error::TooFar { offset, len };
        let end = offset.checked_add(len).ok_or(too_far.clone())?;
        match self.position(end - 1) {
            Err(Error::TooFar { .. }) => Err(too_far),
            other => other.map(|_| ()),
        }
    }

    /// The pieces of the file that hold `len` bytes of data from byte `offset` of the view's data,
    /// in order, as strided runs: a regular pattern is one run (and a partial block before and
    /// behind it), however many blocks there are. Neighbours without a hole are one block, except
    /// where the hole is that of an outer level of a closed form.
    ///
    /// # Errors
    /// [`Error::TooFar`] when no file reaches that far, [`Error::NoData`] when `len` is not 0 and
    /// the view has none.
    pub fn runs(&self, offset: u64, len: u64) -> Result<Runs<'_>> {
        if len == 0 {
            return Ok(Runs::nothing(offset));
        }
        self.check(offset, len)?;
        Ok(match &self.form {
            Form::Nested { dense, .. } => Runs::nested(dense, self.displacement, offset, len),
            Form::List(list) => {
                let found = list.find(offset % self.size);
                let base = offset / self.size * self.extent + self.displacement;
                let within = offset % self.size - found.data;
                Runs::list(list, found.index, base + found.file, within, offset, len)
            }
        })
    }

    /// The same as [`FileView::runs`], block by block.
    ///
    /// # Errors
    /// As [`FileView::runs`].
    pub fn blocks(&self, offset: u64, len: u64) -> Result<Blocks<'_>> {
        Ok(Blocks::new(self.runs(offset, len)?))
    }

    /// The part of the file from the first wanted byte to behind the last.
    ///
    /// # Errors
    /// As [`FileView::runs`].
    pub fn span(&self, offset: u64, len: u64) -> Result<std::ops::Range<u64>> {
        if len == 0 {
            return Ok(0..0);
        }
        self.check(offset, len)?;
        Ok(self.position(offset)?.file..self.position(offset + len - 1)?.file + 1)
    }
}
