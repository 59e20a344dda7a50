//! Brings what counts in a host log to the place where it should be, any [`store::Store`], while the log is
//! written or when nobody uses it any more.
//!
//! 1. [`Drain::step`] asks the log for the records that count ([`hostlog::Log::replay`]) and that it has not
//!    brought to the target yet, in their order.
//! 2. Data goes into a [plan](plan) for each file: the newest sequence wins, neighbours become one write.
//! 3. Changes of names are made one by one and in order ([`names`]). Those that must not be made twice are
//!    [written down](journal) before, with the identity of the file that they are about.
//! 4. Plans are [written](write) by a few threads, and the files synced: those of a file before it gets another
//!    name, all others at the end of the step. Where files are only replaced as wholes, each plan makes the
//!    [next version](wholes) of its file.
//! 5. The [owner](Owner) of the log is told how far the target is, and the log gives the space back.
//!
//! Records that do not count yet are passed over, and only the mark in the log stays behind them. What comes to
//! count later than something newer does not hide it. A step that fails, and a process that ends in the middle of
//! one, are the same thing: everything behind the mark is done once more.
#![forbid(unsafe_code)]

mod drain;
mod error;
mod journal;
mod names;
mod owner;
mod pace;
mod plan;
mod progress;
mod run;
mod sequences;
mod target;
mod wholes;
mod write;

pub use drain::{Drain, Options, Step};
pub use error::{Error, Result};
pub use owner::{Bound, Kept, Owner};
pub use pace::Stop;
pub use progress::{Phase, Progress, Snapshot};
pub use run::Until;
