//! `libsluice_nct`: the NCT library's interface for C, over the engine of `transfer`.
//!
//! What the functions promise stands in `include/nct.h`, and is not said twice. One call:
//!
//! 1. `nct_create_view` (`api`) checks what C gave, copies the tuples into a [`sieve::FileView`], and
//!    makes an engine for the method that `info` asks for (`view`). What C gets is a pointer to
//!    both, behind a lock.
//! 2. `nct_read` and `nct_write` borrow the caller's memory for the time of the call and hand it to
//!    [`transfer::Engine`], with the descriptor as [`transfer::LocalFile`].
//! 3. An aggregate function of the user's is called through `callback`, once for each tuple.
//! 4. What went wrong is in `errno`, and in words in a text of the thread (`error`). No panic
//!    leaves: it is `EIO`.
//!
//! # Source
//! Zickler 2015, §4.1 and Listing 4.1.

mod api;
mod callback;
mod error;
mod view;

pub use api::*;
pub use callback::{NctAggregate, NctDecision, NctStep};
pub use error::{Error, Result};
pub use view::{NctInfo, NctTuple, NctTuple64};
