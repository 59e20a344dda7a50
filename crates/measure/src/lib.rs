//! Measure: what non-contiguous access costs, before and after it is done.
//!
//! The crates `sieve` and `transfer` plan and carry out accesses; here they are explained, timed and
//! compared. The way from a pattern to a page of plots:
//!
//! 1. [`pattern`] reads a pattern as people write it; [`explain`] says how it would be accessed, and
//!    what each [`Way`] would cost by the cost model ([`price`]).
//! 2. The model's parameters come from [`tune`], which times a designed set of calls at a place and
//!    fits costs to them ([`fit`]).
//! 3. [`bench`] has all ways carry out a grid of patterns, on a real file or on a simulated cluster,
//!    and keeps every time in SQLite.
//! 4. [`page`] shows a run as tables and plots ([`plot`]).
//! 5. [`learned`] predicts from such a run which way is the best for a pattern that was not in it,
//!    and says how good such predictions are.
//!
//! Nothing here prints: whoever calls is told by closures how far things are.
#![forbid(unsafe_code)]

pub mod bench;
mod error;
pub mod explain;
pub mod fit;
pub mod learned;
pub mod page;
pub mod pattern;
pub mod plot;
pub mod price;
pub mod tune;
mod way;

pub use error::{Error, Result};
pub use way::Way;
