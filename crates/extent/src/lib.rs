//! Byte ranges: what a read wants, what a write covers, what a cache holds.
//!
//! This room is pure and has no dependencies. Everything above it that reasons about parts of
//! files does so in terms of [`ByteRange`]:
//!
//! 1. A call names an offset and a length; [`ByteRange::at`] makes a range of it.
//! 2. Whoever holds data for some range is asked whether it [contains](ByteRange::contains_range)
//!    or [meets](ByteRange::overlaps) the wanted one.
//! 3. [`ByteRange::intersection`] and [`ByteRange::without`] say which part is served from where.
#![forbid(unsafe_code)]

mod map;
mod range;

pub use map::{Cut, ExtentMap, Piece};
pub use range::ByteRange;
