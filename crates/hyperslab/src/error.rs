//! What no slab can be.

/// A slab that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlabError {
    /// The last element would lie beyond 2^63 - 1, which is the greatest offset of MPI and netCDF.
    #[error(
        "dimension {dimension}: {count} elements from {start} by steps of {step} end beyond 2^63 - 1"
    )]
    TooFar {
        /// The dimension, from 0.
        dimension: usize,
        /// The first index.
        start: u64,
        /// How many.
        count: u64,
        /// From one to the next.
        step: u64,
    },
    /// A step of 0.
    #[error("dimension {dimension}: a stride of 0; strides are at least 1")]
    NoStep {
        /// The dimension, from 0.
        dimension: usize,
    },
    /// Lists of different lengths.
    #[error(
        "{starts} starts, {counts} counts and {steps} strides: there is one of each for each dimension"
    )]
    Ranks {
        /// How many starts.
        starts: usize,
        /// How many counts.
        counts: usize,
        /// How many strides.
        steps: usize,
    },
}
