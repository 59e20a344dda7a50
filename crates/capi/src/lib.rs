//! `libsluice_c`: files of a service for programs that are written for Sluice, in C and in whatever can call C.
//!
//! What the functions promise stands in `include/sluice.h`, and is not said twice. One call:
//!
//! 1. `sluice_open` (`files`) takes a URI or a path below a mapped prefix; `places` finds the service, and has one
//!    [`client::Session`] for each.
//! 2. What C gets is not an address of ours but a number (`handles`), so that a handle that is NULL, closed or of
//!    another kind is an error and no crash.
//! 3. `sluice_pread` and `sluice_pwrite` borrow the caller's memory for the time of the call and hand it to
//!    [`client::RemoteFile`].
//! 4. What went wrong is in `errno`, and in words in a text of the thread (`error`). No panic leaves: it is `EIO`.

mod error;
mod files;
mod handles;
mod listing;
mod places;
pub mod scdc;

pub use error::{Error, Result, sluice_error};
pub use files::*;
pub use listing::*;
