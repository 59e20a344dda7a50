//! One rank of a program that hands its files to others from memory to memory.
//!
//! Knows neither MPI nor PnetCDF: whoever stands before these gives it calls, and a [`Group`] for what ranks do together.
//!
//! One file, from the rank that writes it to the one that reads it:
//!
//! 1. [`Plan::of_environment`] says which component this process is of, and [`Plan::role`] what it does with a file of a name.
//!    [`Exchange::join`] makes the process's place in the meeting directory and starts the one thread that serves the others.
//! 2. The writer calls [`Exchange::create`]. The first rank of the group leaves in the directory who has opened the file, and the
//!    how-manieth time it is.
//! 3. [`Written::define`] is given the header and the variables, [`Written::write`] parts of them. Nothing moves yet: what a
//!    variable's type cannot hold is known at once, the rest is noted. [`Written::settle`] copies what still lies in the program's
//!    memory, or sees it fetched, before the program changes it.
//! 4. [`Written::finish`], or [`Written::close`], ends a cycle. Now readers see the file: [`Exchange::open`], which waits for this, answers with
//!    the header, and [`Wanted::read`] and [`Wanted::wait`] fetch what they want.
//! 5. Each rank drives a [`matching::Node`] for the opening. Where both ranks are on one node the reader copies straight
//!    from the writer's memory into its own; elsewhere bytes come through the connection.
//! 6. [`Exchange::leave`] waits until what was written is read, or nobody is left to read it.
//!
//! Every wait ends: with what it was for, with a [`Fault`] as soon as somebody that it depends on is gone, or with one after
//! [`Plan::patience`].

mod carry;
mod exchange;
mod fault;
mod hub;
mod lane;
mod link;
mod lobby;
mod meeting;
mod memory;

mod plan;
mod tally;
mod thread;
mod wanted;
mod wire;
mod written;

pub use coupling::{Configuration, CycleEnd, Mode, Rule};
pub use exchange::{Exchange, Group, Unread};
pub use fault::Fault;
pub use hyperslab::{Memory, Slab};
pub use lobby::{Lobby, Traffic};
pub use matching::{Length, Role, Variable, VariableSpec};
pub use nctypes::{Format, Type};
pub use plan::Plan;
pub use tally::{Flowing, Tally};
pub use wanted::{Ranged, Token, Wanted};
pub use written::Written;
