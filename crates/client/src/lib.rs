//! The client's side of 9P2000.L: pipelined, without threads of its own.
//!
//! It runs inside other people's programs, so it starts no thread, prints nothing, and touches the
//! system only by raw calls (rustix's Linux backend), never through a libc that may be patched.
//!
//! The way of one read:
//!
//! 1. A [`Session`] stands for one service; it dials when first needed and again when the
//!    connection breaks.
//! 2. [`Session::open`] walks, opens, asks for attributes and reads the first bytes in one batch,
//!    and gives a [`Handle`]. Symbolic links and `..` are resolved here, because services walk
//!    through neither.
//! 3. [`RemoteFile::read_at`] answers from what read-ahead has requested already; requests are
//!    outstanding on the [`Connection`] long before their data is asked for.
//! 4. Whoever waits for a reply reads the socket, also on behalf of the other threads
//!    ([`Connection::wait`]); a large payload goes from the socket straight into its buffer.
#![forbid(unsafe_code)]

mod batch;
mod chunks;
mod connection;
mod dial;
mod error;
mod file;
mod handle;
mod interrupt;
mod link;
mod live;
mod lock;
mod namespace;
mod opening;
mod options;
mod path;
mod readahead;
mod resolve;
mod session;
mod siblings;
mod space;
mod tree;
mod writebehind;
mod xattr;

pub use batch::{ReadPart, WritePart};
pub use connection::{Body, Connection, Ticket};
pub use dial::{Dial, Place, SocketDial, direct};
pub use error::{Error, ProtocolError, Result};
pub use file::RemoteFile;
pub use handle::{FirstRead, Handle, O_PATH};
pub use interrupt::watch_interrupts;
pub use link::{Exchange, Link};
pub use lock::Lock;
pub use opening::Opened;
pub use options::Options;
pub use session::{At, Repeat, Session};
pub use siblings::Registry;

/// A poisoned lock means a panic elsewhere, which the hooks have caught; what is behind our locks
/// is only ever changed in steps that leave it whole.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
