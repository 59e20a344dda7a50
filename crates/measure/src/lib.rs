//! x
#![forbid(unsafe_code)]
pub mod bench;
mod error;
pub mod explain;
pub mod fit;
pub mod learned;
pub mod pattern;
pub mod price;
pub mod tune;
mod way;
pub use error::{Error, Result};
pub use way::Way;
