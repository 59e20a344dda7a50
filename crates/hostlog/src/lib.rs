//! An append-only log of changes to files, on a local disk, that survives a crash.
//!
//! It knows neither the files nor where they are kept in the end: who owns a log gives files their
//! numbers, keeps in memory where the newest bytes are, and drains. The way of a write:
//!
//! 1. [`Log::write`] finds a place for the bytes in a [segment](format) under a lock, and writes header and
//!    bytes to it outside of the lock. Segments are filled with zeros ahead of need
//!    ([`Log::prepare_ahead`]), so that no write makes a file longer.
//! 2. They can be read back ([`Log::read`]) from the [`Position`]s that it returned.
//! 3. [`Log::commit`] appends a record that says up to where a file's data counts, waits until everything
//!    before it has been written, and syncs: once for all who wait at that time.
//! 4. After a crash [`Log::open`] walks the segments to the first record that is not the next one. What no
//!    commit covers does not count ([`rules`]); where something is missing that had been durable, it
//!    refuses to go on. [`Log::replay`] tells what counts.
//! 5. What the owner has brought to the target durably it marks as [drained](Log::drained); segments that
//!    hold nothing else are used again.
//!
//! Once a write or a sync has failed, the log takes nothing more: after a failed fsync the system may
//! have dropped the very pages that a second one would report as written.
#![forbid(unsafe_code)]

mod checkpoint;
mod discard;
mod elsewhere;
mod error;
pub mod format;
mod ids;
mod log;
mod manifest;
pub mod media;
mod names;
mod operation;
mod replay;
pub mod rules;
mod shelf;
mod verify;
mod walk;
mod window;

pub use discard::discard;
pub use elsewhere::{Elsewhere, Fetch, Refer};
pub use error::{Error, Result, is_no_space};
pub use ids::{FileId, Group, Member, Position, Sequence};
pub use log::{Change, Log, Options, Placed, Placements, Prepare, Recovery, Status, Write};
pub use manifest::{Description, Manifest};
pub use operation::{Attributes, Operation, Time};
pub use replay::{Replay, Replayed, What};
pub use verify::{SegmentReport, Verification, verify};
