//! Types of the classic netCDF formats: what a value becomes between a program's memory, a variable, and another
//! program's memory.
//!
//! A model writes an array of doubles into a variable of floats, and another reads it into integers:
//!
//! 1. [`Conversion::new`] is given the three types and refuses what netCDF refuses: text with numbers.
//! 2. Where all three are the same it is [plain](Conversion::is_plain), and bytes are only moved.
//! 3. Otherwise [`Conversion::apply`] takes each value through the variable's type, so that it comes out as from a file,
//!    and counts what was [out of range](Ranges) on either way: for these netCDF answers `NC_ERANGE`, and the others are
//!    converted all the same.
//! 4. What nobody wrote is filled with [`Type::fill`].
//!
//! Values are in the order of bytes of this machine: no file is in between.
#![forbid(unsafe_code)]

mod convert;
mod types;

pub use convert::{Conversion, Ranges, TextWithNumbers};
pub use types::{Format, Type};
