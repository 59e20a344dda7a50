//! Any list of tuples, packed, with an index that finds a byte of data in it.

use super::{FileView, OFFSET_MAX, Tuple};
use crate::error::{Error, Result};
use crate::view::nested::Nested;

/// Every how many tuples the index notes how much lies before. Finding a tuple costs a binary
/// search among the notes and a walk of at most so many tuples.
const INDEX_EVERY: usize = 64;

/// Sizes and holes, of 32 bits while all fit in that.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Packed {
    Narrow(Vec<[u32; 2]>),
    Wide(Vec<[u64; 2]>),
}

/// How much lies before a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Before {
    /// Bytes of data.
    data: u64,
    /// Bytes of the file, from the start of the first tuple.
    file: u64,
}

/// Tuples without a closed form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    packed: Packed,
    index: Vec<Before>,
    total: Before,
}

/// A tuple found by an offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) index: usize,
    /// Bytes of data before it.
    pub(super) data: u64,
    /// Bytes of the file before it.
    pub(super) file: u64,
}

impl List {
    pub(super) fn len(&self) -> usize {
        match &self.packed {
            Packed::Narrow(tuples) => tuples.len(),
            Packed::Wide(tuples) => tuples.len(),
        }
    }

    #[inline]
    pub(super) fn tuple(&self, index: usize) -> Tuple {
        match &self.packed {
            Packed::Narrow(tuples) => {
                let [size, hole] = tuples[index];
                Tuple { size: size.into(), hole: hole.into() }
            }
            Packed::Wide(tuples) => {
                let [size, hole] = tuples[index];
                Tuple { size, hole }
            }
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.total.data
    }

    pub(super) fn extent(&self) -> u64 {
        self.total.file
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let index = self.index.capacity() * size_of::<Before>();
        index
            + match &self.packed {
                Packed::Narrow(tuples) => tuples.capacity() * 8,
                Packed::Wide(tuples) => tuples.capacity() * 16,
            }
    }

    /// The tuple that holds byte `offset` of the data of one turn (`offset < self.size()`).
    pub(super) fn find(&self, offset: u64) -> Found {
        // The first note is of (0, 0), so there is one that is not behind the offset.
        let note = self.index.partition_point(|before| before.data <= offset) - 1;
        let Before { mut data, mut file } = self.index[note];
        let mut index = note * INDEX_EVERY;
        loop {
            let Tuple { size, hole } = self.tuple(index);
            if offset < data + size {
                return Found { index, data, file };
            }
            data += size;
            file += size + hole;
            index += 1;
        }
    }
}

/// Makes a view of tuples that come one by one, so that a list of many millions need never exist
/// in a wider form than the view's own.
#[derive(Debug)]
pub struct Builder {
    packed: Packed,
    index: Vec<Before>,
    total: Before,
}

impl Builder {
    /// A builder with room for `tuples`, a guess.
    #[must_use]
    pub fn with_capacity(tuples: usize) -> Self {
        // A guess that is far off must not take memory that is not there.
        let tuples = tuples.min(1 << 28);
        Self {
            packed: Packed::Narrow(Vec::with_capacity(tuples)),
            index: Vec::with_capacity(tuples.div_ceil(INDEX_EVERY)),
            total: Before::default(),
        }
    }

    /// Adds a tuple behind those there are.
    ///
    /// # Errors
    /// [`Error::Overflow`] when no file is long enough for it.
    pub fn push(&mut self, tuple: Tuple) -> Result<()> {
        let Tuple { size, hole } = tuple;
        let number = match &self.packed {
            Packed::Narrow(tuples) => tuples.len(),
            Packed::Wide(tuples) => tuples.len(),
        };
        let before = self.total;
        let file = before.file.checked_add(size).and_then(|end| end.checked_add(hole));
        let Some(file) = file.filter(|file| *file <= OFFSET_MAX) else {
            return Err(Error::Overflow { tuple: number as u64 });
        };
        if number.is_multiple_of(INDEX_EVERY) {
            self.index.push(before);
        }
        // The data is no more than the file, which was checked.
        self.total = Before { data: before.data + size, file };
        match (&mut self.packed, u32::try_from(size), u32::try_from(hole)) {
            (Packed::Wide(tuples), ..) => tuples.push([size, hole]),
            (Packed::Narrow(tuples), Ok(size), Ok(hole)) => tuples.push([size, hole]),
            (Packed::Narrow(tuples), ..) => {
                let mut wide = Vec::with_capacity(tuples.capacity().max(number + 1));
                wide.extend(tuples.iter().map(|[size, hole]| [u64::from(*size), u64::from(*hole)]));
                wide.push([size, hole]);
                self.packed = Packed::Wide(wide);
            }
        }
        Ok(())
    }

    /// The view of what was added, from `displacement` on, in closed form if it has one.
    ///
    /// # Errors
    /// [`Error::NoTuples`] when nothing was added, [`Error::Displacement`].
    pub fn finish(self, displacement: u64) -> Result<FileView> {
        let mut list = List { packed: self.packed, index: self.index, total: self.total };
        if list.len() == 0 {
            return Err(Error::NoTuples);
        }
        let size = list.tuple(0).size;
        if (1..list.len()).all(|index| list.tuple(index).size == size)
            && let Some(nested) = Nested::detect(size, list.len(), |index| list.tuple(index).hole)
        {
            return FileView::of_nested(displacement, nested, list.len() as u64);
        }
        match &mut list.packed {
            Packed::Narrow(tuples) => tuples.shrink_to_fit(),
            Packed::Wide(tuples) => tuples.shrink_to_fit(),
        }
        list.index.shrink_to_fit();
        FileView::of_list(displacement, list)
    }
}
