//! Sieve: non-contiguous access, planned.
//!
//! A program that wants many small pieces of a file pays for every call; one that reads all of the
//! file pays for every byte. Which is dearer depends on the pattern, on the place where the file
//! is, and on what is at hand already. This room decides it. It is pure: it takes values and
//! returns values, reads no file and no clock, and so can be tested against exhaustive search.
//!
//! The way of one access:
//!
//! 1. A [`FileView`] says which bytes of the file the program means: a displacement and a
//!    repeating list of [`Tuple`]s (data, hole). Patterns with a closed form keep it.
//! 2. The access is a range of the view's *data*. [`FileView::runs`] turns it into strided
//!    [`Run`]s of file offsets, [`FileView::blocks`] into single blocks.
//! 3. Somebody cuts it into [`Group`]s. Either an [aggregate function](aggregate::Aggregate), asked
//!    tuple by tuple ([`aggregate::Groups`]): those of the thesis, or the user's own. Or
//!    [`Adaptive`], which weighs with a [`Profile`] what each way would cost: a
//!    [`Strategy`] for a whole regular pattern, the cheapest cut of a row of blocks
//!    ([`plan::IntervalPlanner`]) for others.
//! 4. Each group names a [`Method`]: every block by its own call; one window through a buffer;
//!    one vectored call; or copies between memory and a mapping. An executor carries it out. With [`Runs::next_within`] it
//!    walks the blocks of the group, [`copy`] moves them between window and memory.
//! 5. The executor tells [`Adaptive::observe`] how long it took; the next plan knows better.
//!
//! The crate `transfer` has executors for local files and for whatever can read and write at an
//! offset.
//!
//! # Source
//! Enno Zickler, "Optimization of non-contiguous MPI-I/O Operations", Universität Hamburg, 2015,
//! cited as "Zickler 2015"; Thakur, Gropp, Lusk, "Data Sieving and Collective I/O in ROMIO", 1999.
#![forbid(unsafe_code)]

pub mod adaptive;
pub mod aggregate;
pub mod copy;
mod error;
mod group;
pub mod model;
pub mod plan;
mod view;

pub use adaptive::{Adaptive, Plan, Prediction};
pub use error::{Error, Result};
pub use group::{Access, Group, Method};
pub use model::{Profile, Warmth};
pub use plan::{Request, Strategy};
pub use view::{
    Block, Blocks, Builder, FileView, LEVELS_MAX, Level, OFFSET_MAX, Position, Run, Runs, Tuple,
};
