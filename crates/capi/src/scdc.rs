//! The interface of the SCDC library (`scdc.h`): services and clients inside a program.
//!
//! What the functions do stands in docs/C-API.md. One command:
//!
//! 1. `scdc_dataset_cmd` (`variadic`, `datasets`) finds the dataset of its handle. Hooks of this process are called
//!    with the caller's own input and output (`hooks`); everything else is a [`commands::Dataset`], also files of this
//!    process, through [`service::Direct`].
//! 2. Input is taken from the caller's buffers and next functions as it is wanted (`inout`). Output goes into the
//!    caller's buffer, and what does not fit waits behind a next function of ours (`outputs`).
//! 3. In a program that serves, a [`commands::HookStore`] hands commands that come over a node port (`ports`) to the
//!    hooks, with objects of ours whose next functions lead to the client.

mod datasets;
mod hooks;
mod inout;
mod library;
mod outputs;
mod ports;
mod providers;
mod relays;
mod report;
mod tapes;
mod uri;
mod variadic;

pub use datasets::scdc_dataset_close;
pub use inout::*;
pub use library::*;
pub use ports::*;
pub use providers::*;
pub use report::*;
pub use tapes::*;
pub use variadic::*;
