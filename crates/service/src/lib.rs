//! A 9P2000.L and 9P2000 service over any [`store::Store`].
//!
//! The protocol itself ([`Session`]) knows no socket and no thread: it takes a request and gives
//! an answer. [`Direct`] uses it as a plain function call within the same process; a
//! [`Service`] puts it behind Unix and TCP sockets.
//!
//! The way of one request over a socket:
//!
//! 1. A listener's thread accepts, checks who is calling, and starts one thread for the
//!    connection.
//! 2. That thread receives into one reused buffer and takes whole frames from it. As long as
//!    frames are at hand, their answers gather in one buffer and leave in one system call.
//! 3. A request that does not wait for anything is answered at once by the session, so that
//!    requests take effect **in order of arrival**: a walk, an open, a getattr and a read may be
//!    sent back to back. One that may wait (durability, locks, a store that is itself remote)
//!    goes to the connection's pool of workers. There, requests that name the same fid keep their
//!    order where it matters (see `order.rs`), and others overtake.
//! 4. Large reads leave by sendfile(2) where the store lends a descriptor; large writes reach
//!    the store in pieces while the rest is still arriving.
//!
//! # Rights
//! Everything is done with the rights of the service's own process. The user name of an attach
//! is accepted and not looked at: who may connect is decided at the socket (same user on a Unix
//! socket, loopback on TCP), not by what a client claims. On a machine with other users prefer the
//! Unix socket: every one of them can connect to a TCP port on loopback. Files that a client creates belong to
//! the service's user and group; the group in .L's creating requests is ignored.
//!
//! # Order of reads and later writes
//! The bytes of a read are those of the file at a moment between the arrival of the request and
//! the receipt of its answer. A client that sends an overlapping write before it has received
//! the answer of a read may find either in it.
#![forbid(unsafe_code)]

mod connection;
mod direct;
mod error;
mod limits;
mod listen;
mod order;
mod running;
mod session;
mod stores;

pub use direct::Direct;
pub use error::{Error, Result};
pub use limits::Limits;
pub use listen::{Address, Listen};
pub use running::{Builder, Counters, Running, Service};
pub use session::{Session, Verdict};
pub use store::Store;
pub use store::fs::FsOptions;
pub use stores::{OpenDataset, OpenObject, open_stores};
