//! Coupling rehearsed: the engine that will couple programs, driven for thousands of ranks in one process.
//!
//! Nothing is imitated but the network and the copying: each rank is a [`matching::Node`], every message between them is the
//! one that would be sent, and is counted with its bytes.
//!
//! 1. A [`Scenario`] says who writes and reads which parts of which variables; [`s3d`] makes that of the S3D-IO benchmark.
//! 2. [`Scenario::run`] lets all ranks write, read and finish at the same moment, and carries their messages in virtual time
//!    over a [`Machine`].
//! 3. The [`Outcome`] has two kinds of figures: what was counted (messages, bytes, requests of each matcher) and the time
//!    that matching took on this machine are facts; times of transfer are what the model of the machine makes of them.
//! 4. [`experiment`] holds the tables and figures of the paper.
#![forbid(unsafe_code)]

pub mod experiment;
mod machine;
mod outcome;
pub mod s3d;
mod scenario;
mod simulate;

pub use machine::Machine;
pub use outcome::{Outcome, Tally};
pub use scenario::{Scenario, ScenarioError};
