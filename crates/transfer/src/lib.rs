//! Transfer: carrying out non-contiguous accesses.
//!
//! The crate `sieve` says how an access through a view is best cut into groups; here the groups are
//! read and written. One access, from the call to the last byte:
//!
//! 1. [`Engine::read`] is told the target, the view, a buffer to sieve in, an offset in the view's
//!    data and where the bytes go.
//! 2. The planner cuts the access into groups: an aggregate function is asked tuple by tuple; the
//!    adaptive planner plans one slice of it at a time, for data that is at hand or for data that is
//!    not, as [`Target::warmth`] says.
//! 3. Each group is carried out by its method: blocks by themselves, straight to the caller's
//!    memory; a window through the buffer; one vectored call; copies between the caller's memory and
//!    a mapping of the file that is kept ([`FileMap`]). Where several requests may be under
//!    way together, as many as fit are handed to [`Target::read_batch`] at once.
//! 4. A write around holes locks the window ([`Locking`]), reads it, puts the blocks into it and
//!    writes it back from the first wanted byte to the last.
//! 5. The time that a slice took goes back to the planner, which plans the next slice better.
//!
//! What is promised: a read never returns a byte that is not in the file; a write changes no byte
//! that is not in the view, and makes the file no longer than its last wanted byte. The count that
//! is returned is always a prefix of the data, all of which was carried.
//!
//! [`tune`] measures what the planner's parameters are found from, [`measure_route`] the parameters of a
//! way by messages.
//!
//! Whatever reads and writes at an offset is a [`Target`]: [`LocalFile`] is one, and a file at the
//! other end of a connection, or a simulated one, can be another.
#![forbid(unsafe_code)]

mod engine;
mod error;
mod local;
mod map;
mod ranges;
mod read;
mod route;
mod target;
pub mod tune;
mod write;

pub use engine::{Engine, Locking, Planner};
pub use error::{Error, Result};
pub use local::LocalFile;
pub use map::FileMap;
pub use route::measure_route;
pub use target::{LockKind, Piece, ReadRequest, Target, WriteRequest, read_full, write_full};
