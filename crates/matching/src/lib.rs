//! Who of several programs holds what another one wants.
//!
//! Programs that hand each other files can hand each other the data instead, if somebody finds out which rank of the one
//! holds what a rank of the other reads. That is done here, as a state machine: messages in, messages out. Nothing in
//! this room sends, waits or touches data; a [`Node`] is one rank, and who drives it gives it what arrives and carries out
//! its [`Action`]s.
//!
//! One cycle of a file, from the first write to the last byte read:
//!
//! 1. Everybody knows the [`Coupling`]: components, files, and which ranks write and read them. [`Node::define`] adds the
//!    file's variables, [`Node::begin`] begins a cycle.
//! 2. [`Node::write`] and [`Node::read`] note a slab of a variable and where it lies in memory. No data moves.
//! 3. [`Node::finish`] sends every request to the matchers, which are some of the writers' ranks. Each is responsible for a
//!    part of every variable, so requests are cut where parts meet ([`Share`]).
//! 4. A matcher that has heard of all writes of the cycle looks for each wish which writes overlap it ([`Board`]). Where
//!    writes overlap each other the newest wins. It tells the owners whom to send which part to, and tells the reader what
//!    nobody wrote.
//! 5. An owner's node answers with [`Action::Copy`]: which runs of elements of which memory go to whom. The bytes travel
//!    outside of this room, as values of the variable's type; [`Node::arrived`] says where they belong.
//! 6. When all readers have finished, matchers tell the writers, whose memory is [released](Action::Released).
//!
//! With [`FileSpec::replay`] a cycle whose requests are those of a recorded one skips 3 and 4. Messages between two nodes must
//! arrive in the order in which they were sent, and bytes before messages that are sent after them.
#![forbid(unsafe_code)]

mod admission;
mod board;
mod coupling;
mod error;
mod message;
mod node;
mod pattern;
mod share;
mod wire;

pub use board::{Board, Load};
pub use coupling::{
    Component, Coupling, CouplingError, Cycle, Distribution, File, FileSpec, FullQueue, Length,
    Place, Variable, VariableSpec,
};
pub use error::{Refusal, Why};
pub use message::{Announce, Batch, Deliver, Gap, Message, Said, Wish};
pub use node::{Action, Arrival, Copy, Fill, Handle, Node, Request, RequestError, Role};
pub use pattern::{Flow, Pattern, Recording};
pub use share::Share;
pub use wire::WireError;
