//! Which bytes a datatype consists of, in closed form. Pure: MPI is not needed here.
//!
//! A [`Type`] says how a datatype was made; [`Flat::of`] turns it into a [`Shape`]: blocks of bytes, and
//! repetitions of shapes at a stride. A vector, a subarray or a distributed array stays as large as its
//! number of dimensions. [`Shape::blocks`] walks through the bytes in the order of the type map, in
//! blocks as large as possible.

mod blocks;
mod made;
mod shape;
#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use made::{Distribution, Made, Order, Type};
pub use shape::Shape;

/// Why a datatype has no layout that can be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlatError {
    /// A displacement or a length does not fit in 64 bits.
    #[error("a displacement does not fit in 64 bits")]
    Overflow,
    /// The dimensions of an array type contradict each other.
    #[error("the dimensions of an array type contradict each other")]
    Dimensions,
    /// The bytes found are not as many as MPI says there are.
    #[error("the type has {expected} bytes, but {found} were found")]
    Size {
        /// What MPI_Type_size says.
        expected: u64,
        /// What the layout holds.
        found: u64,
    },
}

/// The bytes of one instance of a datatype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flat {
    /// Bytes of data.
    pub size: u64,
    /// Where the span that instances are laid out by begins, relative to the instance's address.
    pub lower_bound: i64,
    /// Bytes from the address of one instance to that of the next.
    pub extent: i64,
    /// Where the data is, relative to the instance's address, in the order of the type map.
    pub shape: Shape,
}

impl Flat {
    /// The layout of a datatype.
    ///
    /// # Errors
    ///
    /// [`FlatError`].
    pub fn of(described: &Type) -> Result<Flat, FlatError> {
        let shape = described.shape()?;
        let found = shape.bytes().ok_or(FlatError::Overflow)?;
        if found != described.size {
            return Err(FlatError::Size { expected: described.size, found });
        }
        if found > 0 {
            shape.bounds().ok_or(FlatError::Overflow)?;
        }
        Ok(Flat {
            size: described.size,
            lower_bound: described.lower_bound,
            extent: described.extent,
            shape,
        })
    }

    /// Whether any number of instances, one after the other, is one block without a gap.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        match &self.shape {
            Shape::Nothing => true,
            Shape::Block { length, .. } => i64::try_from(*length) == Ok(self.extent),
            Shape::Repeat { .. } | Shape::Blocks(_) | Shape::List(_) => false,
        }
    }

    /// The layout of several instances one after the other, as of a buffer or a file view.
    ///
    /// # Errors
    ///
    /// [`FlatError::Overflow`].
    pub fn repeated(&self, count: u64) -> Result<Shape, FlatError> {
        self.shape.clone().repeated(count, self.extent)
    }
}
