//! How a datatype was made, and what follows from that.

use super::{FlatError, Shape};

/// A datatype, as MPI describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// Bytes of data.
    pub size: u64,
    /// Where its span begins, in bytes.
    pub lower_bound: i64,
    /// Bytes from one instance to the next.
    pub extent: i64,
    /// How it was made.
    pub made: Made,
}

/// How a datatype was made (MPI-4.1 §5.1). Displacements and strides are in bytes, lengths in
/// instances of the inner type, which stand at the distance of its extent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// Predefined, all bytes together.
    Dense,
    /// Predefined, with gaps: offsets and lengths in bytes.
    Blocks(Vec<(i64, u64)>),
    /// The same data as another type (duplicated, or with other bounds).
    Same(Box<Type>),
    /// Instances one after the other.
    Contiguous {
        /// How many.
        count: u64,
        /// Of what.
        of: Box<Type>,
    },
    /// Blocks at one distance.
    Vector {
        /// Number of blocks.
        count: u64,
        /// Instances in each.
        length: u64,
        /// Bytes from one block to the next.
        stride: i64,
        /// Of what.
        of: Box<Type>,
    },
    /// Blocks at given places.
    Indexed {
        /// Displacement and number of instances of each block.
        places: Vec<(i64, u64)>,
        /// Of what.
        of: Box<Type>,
    },
    /// Blocks of different types: displacement, number of instances, type.
    Struct(Vec<(i64, u64, Type)>),
    /// A box within an array.
    Subarray {
        /// The array's size in each dimension.
        sizes: Vec<u64>,
        /// The box's size in each dimension.
        subsizes: Vec<u64>,
        /// Where the box begins in each dimension.
        starts: Vec<u64>,
        /// Which dimension is contiguous.
        order: Order,
        /// What the array holds.
        of: Box<Type>,
    },
    /// One process's part of a distributed array.
    Darray {
        /// Which process.
        rank: u64,
        /// The array's size in each dimension.
        sizes: Vec<u64>,
        /// How each dimension is dealt out.
        distributions: Vec<Distribution>,
        /// Number of processes in each dimension.
        grid: Vec<u64>,
        /// Which dimension is contiguous.
        order: Order,
        /// What the array holds.
        of: Box<Type>,
    },
}

/// Which dimension of an array is contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The last.
    C,
    /// The first.
    Fortran,
}

/// How a dimension of an array is dealt out to processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// One block each, of this length or of equal lengths.
    Block(Option<u64>),
    /// Blocks of this length in turn.
    Cyclic(u64),
    /// Not at all.
    None,
}

impl Type {
    /// Whether a predefined type with gaps, such as MPI_DOUBLE_INT, is among what it was made of.
    #[must_use]
    pub fn has_gapped_pairs(&self) -> bool {
        match &self.made {
            Made::Dense => false,
            Made::Blocks(_) => true,
            Made::Struct(fields) => fields.iter().any(|(_, _, of)| of.has_gapped_pairs()),
            Made::Same(of)
            | Made::Contiguous { of, .. }
            | Made::Vector { of, .. }
            | Made::Indexed { of, .. }
            | Made::Subarray { of, .. }
            | Made::Darray { of, .. } => of.has_gapped_pairs(),
        }
    }

    /// The bytes of one instance.
    ///
    /// # Errors
    ///
    /// [`FlatError`].
    pub(super) fn shape(&self) -> Result<Shape, FlatError> {
        match &self.made {
            Made::Dense => Ok(Shape::block(0, self.size)),
            Made::Blocks(blocks) => Ok(Shape::sequence(
                blocks.iter().map(|&(offset, length)| Shape::block(offset, length)),
            )),
            Made::Same(of) => of.shape(),
            Made::Contiguous { count, of } => of.shape()?.repeated(*count, of.extent),
            Made::Vector { count, length, stride, of } => {
                of.shape()?.repeated(*length, of.extent)?.repeated(*count, *stride)
            }
            Made::Indexed { places, of } => {
                let each = of.shape()?;
                let place = |&(at, length): &(i64, u64)| {
                    each.clone().repeated(length, of.extent)?.moved(at)
                };
                let shapes: Result<Vec<Shape>, FlatError> = places.iter().map(place).collect();
                Ok(Shape::sequence(shapes?))
            }
            Made::Struct(fields) => {
                let place = |(at, length, of): &(i64, u64, Type)| {
                    of.shape()?.repeated(*length, of.extent)?.moved(*at)
                };
                let shapes: Result<Vec<Shape>, FlatError> = fields.iter().map(place).collect();
                Ok(Shape::sequence(shapes?))
            }
            Made::Subarray { sizes, subsizes, starts, order, of } => {
                subarray(sizes, subsizes, starts, *order, of)
            }
            Made::Darray { rank, sizes, distributions, grid, order, of } => {
                darray(*rank, sizes, distributions, grid, *order, of)
            }
        }
    }
}

/// The dimensions of an array of `of`, the contiguous one first, each with its size and the distance in
/// bytes of its elements.
fn dimensions(sizes: &[u64], order: Order, of: &Type) -> Result<Vec<(usize, u64, i64)>, FlatError> {
    let mut stride = of.extent;
    let mut fastest_first: Vec<usize> = (0..sizes.len()).collect();
    if order == Order::C {
        fastest_first.reverse();
    }
    let mut dimensions = Vec::with_capacity(sizes.len());
    for dimension in fastest_first {
        let size = sizes[dimension];
        dimensions.push((dimension, size, stride));
        let size = i64::try_from(size).map_err(|_| FlatError::Overflow)?;
        stride = stride.checked_mul(size).ok_or(FlatError::Overflow)?;
    }
    Ok(dimensions)
}

/// `index` elements at a distance of `stride`, in bytes.
fn distance(index: u64, stride: i64) -> Result<i64, FlatError> {
    let index = i64::try_from(index).map_err(|_| FlatError::Overflow)?;
    index.checked_mul(stride).ok_or(FlatError::Overflow)
}

fn subarray(
    sizes: &[u64],
    subsizes: &[u64],
    starts: &[u64],
    order: Order,
    of: &Type,
) -> Result<Shape, FlatError> {
    if subsizes.len() != sizes.len() || starts.len() != sizes.len() {
        return Err(FlatError::Dimensions);
    }
    let mut shape = of.shape()?;
    let mut at = 0i64;
    for (dimension, size, stride) in dimensions(sizes, order, of)? {
        let (subsize, start) = (subsizes[dimension], starts[dimension]);
        if start.checked_add(subsize).is_none_or(|end| end > size) {
            return Err(FlatError::Dimensions);
        }
        shape = shape.repeated(subsize, stride)?;
        at = at.checked_add(distance(start, stride)?).ok_or(FlatError::Overflow)?;
    }
    shape.moved(at)
}

/// # Source
///
/// MPI-4.1 §5.1.4: the grid of processes is in row-major order, whatever the order of the array.
fn darray(
    rank: u64,
    sizes: &[u64],
    distributions: &[Distribution],
    grid: &[u64],
    order: Order,
    of: &Type,
) -> Result<Shape, FlatError> {
    if distributions.len() != sizes.len() || grid.len() != sizes.len() || grid.contains(&0) {
        return Err(FlatError::Dimensions);
    }
    let mut coordinates = vec![0; grid.len()];
    let mut left = rank;
    for dimension in (0..grid.len()).rev() {
        coordinates[dimension] = left % grid[dimension];
        left /= grid[dimension];
    }
    let mut shape = of.shape()?;
    for (dimension, size, stride) in dimensions(sizes, order, of)? {
        let (mine, processes) = (coordinates[dimension], grid[dimension]);
        shape = match distributions[dimension] {
            Distribution::None => shape.repeated(size, stride)?,
            Distribution::Block(length) => {
                let length = length.unwrap_or(size.div_ceil(processes));
                let start = mine.checked_mul(length).ok_or(FlatError::Overflow)?.min(size);
                let count = length.min(size - start);
                shape.repeated(count, stride)?.moved(distance(start, stride)?)?
            }
            Distribution::Cyclic(length) => cyclic(shape, size, stride, length, mine, processes)?,
        };
    }
    Ok(shape)
}

/// One process's blocks of a dimension that is dealt out in turn. The last may be shorter.
fn cyclic(
    each: Shape,
    size: u64,
    stride: i64,
    length: u64,
    mine: u64,
    processes: u64,
) -> Result<Shape, FlatError> {
    if length == 0 {
        return Err(FlatError::Dimensions);
    }
    let round = length.checked_mul(processes).ok_or(FlatError::Overflow)?;
    let first = length.checked_mul(mine).ok_or(FlatError::Overflow)?;
    let Some(behind) = size.checked_sub(first) else { return Ok(Shape::Nothing) };
    let (rounds, rest) = (behind / round, behind % round);
    let full = rounds + u64::from(rest >= length);
    let partial = if rest < length { rest } else { 0 };
    let blocks = each
        .clone()
        .repeated(length, stride)?
        .repeated(full, distance(round, stride)?)?
        .moved(distance(first, stride)?)?;
    let at = full.checked_mul(round).and_then(|at| at.checked_add(first));
    let last = if partial == 0 {
        Shape::Nothing
    } else {
        let at = distance(at.ok_or(FlatError::Overflow)?, stride)?;
        each.repeated(partial, stride)?.moved(at)?
    };
    Ok(Shape::sequence([blocks, last]))
}
