//! Where every element of a view lies, and how bytes go from one view to another.
#![forbid(unsafe_code)]

mod atom;
mod clip;
mod conversion;
mod error;
mod kernels;
mod leaf;
mod lengths;
mod placement;
#[cfg(test)]
mod reference;
mod slab;
mod window;

pub use atom::{DEPTH_MAX, FIELDS_MAX};
pub use conversion::{Conversion, Served};
pub use error::{Error, Result};
pub use lengths::Lengths;
pub use placement::{Layout, Placed, Placement, SEAMS_MAX};
pub use slab::{Dim, Field, Origin, Slab};
