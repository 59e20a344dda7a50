//! Commands on datasets: `cd`, `ls`, `info`, `mkd`, `put`, `get`, `rm` on the files of any service, and whatever a
//! program answers by hooks. Input and output are streams in pieces, so that neither side holds a whole large object.
//!
//! The way of one command, as the C library or `sluice cmd` gives it:
//!
//! 1. [`Dataset::open`] asks the service whether the path is one of hooks: then it has a control file (`.command`),
//!    told from files of the same name by its kind.
//! 2. On files, [`Dataset::run`] (`files`) is a few operations of 9P that every service knows; what `get` gives is read
//!    ahead by [`client::RemoteFile`] as the user takes it.
//! 3. For hooks (`remote`), the command goes as one message into the control file, and its answer comes by a read that
//!    travels with it: one round trip. See `wire` for the messages.
//! 4. There, the [`HookStore`] has the [`Provider`] carry it out: at once if the input is complete (`opening`), or in
//!    a thread that waits for more of it (`worker`). Further output is made when the client asks for it.
//!
//! # Source
//! Hofmann and Rünger, "Sustainability through flexibility" (SIMPAT 58, 2015), for datasets, commands and next
//! functions; the control file is the way of Plan 9.
#![forbid(unsafe_code)]

mod dataset;
mod error;
mod files;
mod hook;
mod line;
mod opening;
mod remote;
mod shelf;
mod stream;
mod wire;
mod worker;

pub use dataset::{Answer, Dataset};
pub use error::{Error, Result};
pub use hook::HookStore;
pub use line::Extent;
pub use stream::{Given, Nothing, Output, Provider, Served, Shape, Source};
