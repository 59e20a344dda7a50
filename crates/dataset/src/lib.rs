//! Replicas of one dataset, kept equal, and its views as the files of a store.
//!
//! A definition (`drepl`) says which views there are and in which replicas they are stored; `layout`
//! says which bytes of one are which of the other. Here are the files.
//!
//! The way of a write through a view:
//!
//! 1. The [`DatasetStore`] hands it to [`Dataset::write`], which takes its turn: replicas must get
//!    writes in one order.
//! 2. If it changes the length of an array, everything is placed anew first (`lengths`).
//! 3. The first write into a region of a view says durably that replicas may differ there
//!    (`intents`).
//! 4. For every replica that is up to date and of kind `sync`, in the order of the definition, the
//!    conversion of the view is clipped to the range and carried out (`flow`): runs of bytes are
//!    written as they are, of others windows of the file are read, changed and written. A replica
//!    that fails is stale from then on, which is written down before anything is acknowledged.
//! 5. Replicas of kind `async` get it through a bounded queue, those of kind `on-close` remember
//!    that they lack it (`upkeep`).
//!
//! A read takes no turn: [`Dataset::read`] converts from the replicas that are not behind, the one
//! that costs least.
//!
//! After a crash, [`Dataset::open`] makes equal what the intents name, from the replicas that are
//! written at once.
//!
//! While it is open, another definition can take the place of the one in force (`change`), and
//! replicas are made or made anew while others write (`filling`); `control` is how that is asked for
//! from wherever the store is reached.
//!
//! # Source
//!
//! Ionkov, Lang, Maltzahn, "DRepl: Optimizing Access to Application Data for Analysis and
//! Visualization", §III. Write intents are those of a RAID's bitmap (md(4)).
#![forbid(unsafe_code)]

mod change;
mod control;
mod copying;
mod dataset;
pub mod definition;
mod direct;
mod edit;
mod error;
mod explain;
mod faults;
mod file;
mod filling;
mod fingerprint;
mod flow;
mod hash;
mod hdf5;
mod intents;
mod lengths;
mod member;
mod notice;
mod opening;
mod plan;
mod queue;
mod ranges;
mod replica;
mod report;
mod state;
mod status;
mod upkeep;
mod views;

pub use change::Changed;
pub use dataset::Dataset;
pub use edit::Edit;
pub use error::{Error, Result};
pub use explain::{Explanation, VariablePlace, ViewPlace};
pub use faults::{Call, Faults, Kind, Verdict};
pub use flow::MAPPED_READ_BYTES;
pub(crate) use flow::WINDOW_BYTES;
pub use notice::{Notice, Tell};
pub use opening::Options;
pub use report::{ReplicaReport, Report, ViewReport};
pub use state::Condition;
pub use status::{Service, Status};
pub use views::DatasetStore;
