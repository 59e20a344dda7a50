//! Hyperslabs: regular parts of arrays of many dimensions.
//!
//! What a call of netCDF or HDF5 names by start, count and stride is a [`Slab`]. This room knows which elements two of
//! them share, what is left of one without the other, where the elements lie in memory, and which slabs of many
//! overlap a given one. It is pure; nothing in it is in proportion to the number of elements.
//!
//! One wish for a part of a variable that others have written:
//!
//! 1. [`Slab::strided`] checks start, count and stride and makes a slab of [`Steps`], one for each dimension.
//! 2. A [`SlabTree`] holds the hulls of what was written; [`SlabTree::overlapping`] finds the few that the wish meets.
//! 3. [`Slab::intersection`] is exact for strides, too; [`Slab::without`] is what is still missing.
//! 4. [`Copies::between`] says, as a nest of loops, which runs of one memory become which runs of the other.
#![forbid(unsafe_code)]

mod copies;
mod error;
mod slab;
mod span;
mod steps;
mod tree;

pub use copies::{Copies, Loop, Memory, Run};
pub use error::SlabError;
pub use slab::{Slab, gaps};
pub use span::Span;
pub use steps::Steps;
pub use tree::{Id, SlabTree};
