//! What nodes tell each other.

use hyperslab::Slab;

use crate::node::Role;
use crate::{Cycle, File, Place, Variable, Why};

/// A message from one node to another, about one cycle of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The file.
    pub file: File,
    /// The cycle; for questions about the queue, the writer's own count of it.
    pub cycle: Cycle,
    /// What is told.
    pub said: Said,
}

/// What is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A writer or reader to a matcher: requests.
    Batch(Batch),
    /// A matcher to an owner: whom to send what.
    Deliver(Vec<Deliver>),
    /// A matcher to a reader: what nobody wrote and is filled.
    Gaps(Vec<Gap>),
    /// A matcher to a reader: wishes that cannot be fulfilled, by their numbers.
    Refuse(Vec<(u32, Why)>),
    /// A matcher to a writer: nobody will ask for this cycle any more.
    Closed,
    /// A writer to the first matcher: may this cycle be written?
    MayBegin,
    /// The first matcher to a writer: yes, as the cycle of this number; or no, it is dropped.
    Begin(Option<Cycle>),
    /// A writer or reader to the first matcher, at the end of a cycle: the cycle whose requests this one's are, if it was
    /// recorded.
    SameAs(Role, Option<Cycle>),
    /// The first matcher to everybody who takes part in a role: whether the recorded cycle is replayed.
    Replay(Role, bool),
    /// A reader to the first matcher: it has all of a replayed cycle.
    Done,
}

/// Requests of one rank for one matcher.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// What the rank takes the file's definition for.
    pub definition: u64,
    /// What it has written.
    pub announces: Vec<Announce>,
    /// What it wishes to read.
    pub wishes: Vec<Wish>,
    /// It has written everything that it will, in this cycle.
    pub written: bool,
    /// It wishes no more.
    pub wished: bool,
    /// How many records there are for all that it knows.
    pub records: u64,
}

/// A part of a slab that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announce {
    /// Of which variable.
    pub variable: Variable,
    /// Which of the rank's writes in this cycle.
    pub request: u32,
    /// How often the file had been synchronised before: a write of a later epoch is newer, whoever made it.
    pub epoch: u32,
    /// What.
    pub slab: Slab,
}

/// A part of a slab that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Of which variable.
    pub variable: Variable,
    /// Which of the rank's reads in this cycle.
    pub wish: u32,
    /// What.
    pub slab: Slab,
}

/// A part of a write that belongs to a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deliver {
    /// Which of the owner's writes.
    pub request: u32,
    /// Who wants it.
    pub reader: Place,
    /// Which of the reader's wishes.
    pub wish: u32,
    /// What.
    pub part: Slab,
}

/// A part of a wish that nobody wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Which of the reader's wishes.
    pub wish: u32,
    /// What.
    pub part: Slab,
}
