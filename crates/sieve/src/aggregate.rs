//! Aggregate functions: does the next tuple join this access?
//!
//! # Source
//! Zickler 2015, §3.3.3 (what they are), §4.4 (what else they control), §4.5 (two of them). Two
//! things are added that the thesis leaves for later: a function is told whether the access reads
//! or writes, and a group that turns out to hold one tuple only is reached without the buffer, so
//! that nothing is read in order to write it (§5.3.5 names that as the flaw of the original).

mod functions;
mod walk;

pub use functions::{Extent, FileSystem, Naive, Romio, ScanFile, SimplePm};
pub use walk::Groups;

use crate::group::Access;

/// What an aggregate function is told about the tuple at hand.
///
/// The names of the thesis stand in brackets (Listing 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Whether the access reads or writes.
    pub access: Access,
    /// Number of the tuple in the view's list (`curTupleNum`).
    pub tuple: u64,
    /// Offset in the file of the first byte on offer (`curLogicalOffset`).
    pub file: u64,
    /// Offset of that byte in the data of the view (`curViewOffset`).
    pub data: u64,
    /// Bytes of data gathered for this access before this tuple (`viewBytesToAccNext`).
    pub data_gathered: u64,
    /// Bytes of the file that this access would span with all that is on offer on this tuple
    /// (`logicalBytesToAccNext`).
    pub span: u64,
    /// Bytes of the tuple on offer: what is wanted of it and has room in the buffer
    /// (`bytesToAccOnTuple`, on entry).
    pub bytes_max: u64,
    /// Whether nothing of the tuple is left behind the bytes on offer.
    pub completes_tuple: bool,
    /// Bytes between the end of the tuple and the next (`deltaOffset`).
    pub hole: u64,
    /// Bytes of data that the request still wants, those on offer included.
    pub data_left: u64,
    /// Size of the sieving buffer in bytes (`buffsize`).
    pub buffer_bytes: u64,
}

impl Step {
    /// Bytes that the buffer has room for behind what is on offer.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.span)
    }
}

/// What an aggregate function answers.
///
/// The three numbers matter only when the access ends with this tuple: because `join` is false,
/// because the buffer has no room for the hole and a byte behind it, or because the request ends
/// here. "None of the parameters have any effect if the next tuple will be aggregated" (§4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Whether the hole and the next tuple join this access (the return value).
    pub join: bool,
    /// Bytes of the tuple that this access takes (`bytesToAccOnTuple`); at most
    /// [`Step::bytes_max`]. The next access starts with the rest.
    pub bytes: u64,
    /// Bytes of the hole that this access takes behind the tuple (`holeBytesToAggrOnTuple`). Only
    /// minded when the tuple is taken to its end.
    pub hole_after: u64,
    /// Bytes of the hole that the next access takes before the next tuple
    /// (`holeBytesToAggrOnNextAcc`). Only minded when the tuple is taken to its end.
    pub hole_before_next: u64,
}

impl Decision {
    /// The next tuple joins.
    #[must_use]
    pub fn join(step: &Step) -> Self {
        Self { join: true, ..Self::stop(step) }
    }

    /// The access ends behind the bytes on offer, without a byte of a hole.
    #[must_use]
    pub fn stop(step: &Step) -> Self {
        Self { join: false, bytes: step.bytes_max, hole_after: 0, hole_before_next: 0 }
    }
}

/// A function that decides which tuples are reached together.
pub trait Aggregate {
    /// Its name, for messages.
    fn name(&self) -> &str;

    /// Asked for every tuple in turn.
    fn decide(&mut self, step: &Step) -> Decision;

    /// Whether tuples are gathered in the buffer. A function that never joins need not have one,
    /// and is then offered every tuple whole.
    fn gathers(&self) -> bool {
        true
    }
}

/// How an answer has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Nonsense {
    /// More of the tuple than was on offer.
    #[error("{bytes} bytes of the tuple, of which {max} were on offer")]
    TooManyBytes {
        /// The answer.
        bytes: u64,
        /// What was on offer.
        max: u64,
    },
    /// An access without a byte.
    #[error("an access of no bytes, which would never end")]
    NoProgress,
    /// More of the hole than there is.
    #[error("{after} bytes of the hole behind and {before_next} before the next, of {hole}")]
    TooMuchHole {
        /// Bytes behind the tuple.
        after: u64,
        /// Bytes before the next.
        before_next: u64,
        /// The hole's size.
        hole: u64,
    },
    /// More of the hole than the buffer has room for.
    #[error("{bytes} bytes of the hole, but the buffer has room for {room}")]
    NoRoom {
        /// Bytes that were to be added.
        bytes: u64,
        /// What there is room for.
        room: u64,
    },
}
