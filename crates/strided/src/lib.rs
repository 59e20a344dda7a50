//! Copies between byte slices whose elements lie strided on both sides.
//!
//! [`copy`] is given the dimensions of both sides and what of each element is moved. It finds out
//! what kind of a copy that is and lets a loop do it that is made for it:
//!
//! 1. Bytes that follow each other on both sides are one `memcpy`, or a run of numbers whose bytes
//!    are reversed.
//! 2. Short inner dimensions (a vector of 3 in a struct) become fields of the element.
//! 3. Where the destination is an array of structs and the source has an array for each field, all
//!    arrays are woven (`weave`) at once.
//! 4. Where it is the other way round, and registers are wide, structs are `split` into all arrays
//!    at once.
//! 5. Otherwise each field is gathered or scattered (`line`) along the innermost dimension, in tiles
//!    that stay in the cache until the last field was moved.
//! 6. Where the innermost dimension of one side is not the other's, it is a `transpose`,
//!    done in squares of a cache line.
//!
//! Copies that are larger than the last cache are stored past the caches (`stores`).
//!
//! The loops are compiled for AVX-512 and AVX2 as well, and the best one that the processor has is
//! taken (`level`). Where compilers make nothing good of it, registers of 64 bytes are permuted by
//! hand (`wide`). These two modules are what `unsafe` there is.
#![deny(unsafe_code)]

mod level;
mod line;
mod shape;
mod split;
mod stores;
#[cfg(test)]
mod tests;
mod transpose;
mod weave;
#[cfg(target_arch = "x86_64")]
mod wide;
mod word;

pub use shape::{Dim, Run, copy, fill};
