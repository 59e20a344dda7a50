//! A program's buffer: the bytes that a count and a datatype mean.

use std::ffi::c_void;

use mpi::flat::{Blocks, Shape};
use mpi::{Datatype, Mpi};

use crate::romio;

/// Bytes in memory in the order in which they are data.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Address of the buffer as the program passed it; zero for MPI_BOTTOM, when offsets are addresses.
    base: usize,
    shape: Shape,
    bytes: u64,
}

impl Memory {
    /// `None` where the buffer is better left to the MPI library: a type that cannot be flattened, or
    /// whose bytes do not ascend. Open MPI is known to take some of those in another order.
    pub(crate) fn of(
        mpi: &Mpi,
        buffer: *const c_void,
        count: u64,
        datatype: Datatype,
    ) -> Option<Memory> {
        if datatype == mpi.constants().datatype_null {
            return None;
        }
        let flat = romio::flatten(mpi, datatype)?;
        let shape = flat.repeated(count).ok()?;
        let base = buffer.expose_provenance();
        let bytes = shape.bytes()?;
        let (low, high) = shape.bounds()?;
        let address = |offset: i64| (base as i64).checked_add(offset).filter(|at| *at > 0);
        // All within the user's half of the address space, and not at NULL.
        (shape.is_ascending() && address(low).is_some() && address(high).is_some())
            .then_some(Memory { base, shape, bytes })
    }

    /// How many bytes it is.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Address and length, if it is one block.
    pub(crate) fn single(&self) -> Option<(*mut u8, usize)> {
        match &self.shape {
            Shape::Block { offset, length } => {
                Some((self.address(*offset), usize::try_from(*length).ok()?))
            }
            _ => None,
        }
    }

    fn address(&self, offset: i64) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.base.wrapping_add_signed(offset as isize))
    }

    /// A walk through the bytes from the first on.
    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk { memory: self, blocks: self.shape.blocks(), at: std::ptr::null_mut(), left: 0 }
    }
}

/// A place among the bytes.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    memory: &'a Memory,
    blocks: Blocks<'a>,
    at: *mut u8,
    left: usize,
}

impl Walk<'_> {
    /// The next piece of at most `most` bytes.
    fn piece(&mut self, most: usize) -> Option<(*mut u8, usize)> {
        if self.left == 0 {
            let (offset, length) = self.blocks.next()?;
            self.at = self.memory.address(offset);
            self.left = length as usize;
        }
        let (at, length) = (self.at, self.left.min(most));
        self.at = self.at.wrapping_add(length);
        self.left -= length;
        Some((at, length))
    }

    /// Copies the next bytes out of the program's memory, until `to` is full.
    ///
    /// # Safety
    ///
    /// The program's buffer must be readable as its count and datatype say.
    pub(crate) unsafe fn gather(&mut self, mut to: &mut [u8]) {
        while let Some((at, length)) = self.piece(to.len()).filter(|(_, length)| *length > 0) {
            let (now, later) = to.split_at_mut(length);
            // SAFETY: the caller's promise; `now` is memory of our own.
            unsafe { std::ptr::copy_nonoverlapping(at, now.as_mut_ptr(), length) };
            to = later;
        }
    }

    /// Copies `from` into the next bytes of the program's memory.
    ///
    /// # Safety
    ///
    /// The program's buffer must be writable as its count and datatype say.
    pub(crate) unsafe fn scatter(&mut self, mut from: &[u8]) {
        while let Some((at, length)) = self.piece(from.len()).filter(|(_, length)| *length > 0) {
            let (now, later) = from.split_at(length);
            // SAFETY: the caller's promise; `now` is memory of our own.
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), at, length) };
            from = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(base: *mut u8, shape: Shape) -> Memory {
        let bytes = shape.bytes().unwrap();
        Memory { base: base.expose_provenance(), shape, bytes }
    }

    #[test]
    fn pieces_of_any_length_find_their_places() {
        let mut buffer: Vec<u8> = (0..200).map(|value| value as u8).collect();
        let shape = Shape::block(5, 3).repeated(20, 9).unwrap();
        let places: Vec<usize> = (0..20).flat_map(|block| 5 + 9 * block..8 + 9 * block).collect();
        let memory = memory(buffer.as_mut_ptr(), shape);
        for piece in [1, 2, 4, 7, 60] {
            let mut walk = memory.walk();
            let mut gathered = Vec::new();
            for length in std::iter::repeat_n(piece, 60usize.div_ceil(piece)) {
                let mut to = vec![0; length.min(60 - gathered.len())];
                // SAFETY: all places lie within `buffer`.
                unsafe { walk.gather(&mut to) };
                gathered.extend(to);
            }
            let expected: Vec<u8> = places.iter().map(|place| *place as u8).collect();
            assert_eq!(gathered, expected, "pieces of {piece}");
        }
        let mut walk = memory.walk();
        // SAFETY: as above.
        unsafe {
            walk.scatter(&[255; 31]);
            walk.scatter(&[255; 29]);
        }
        for (place, value) in buffer.iter().enumerate() {
            assert_eq!(*value == 255, places.contains(&place), "byte {place}");
        }
    }
}
