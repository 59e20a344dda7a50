//! 9P2000.L and 9P2000: what travels between a Sluice client and a service.
//!
//! This room is pure. It turns bytes into messages and messages into bytes, and knows nothing of
//! files, sockets or threads; it can therefore be fuzzed and property-tested alone.
//!
//! The way of one request:
//!
//! 1. A transport reads [`frame::HEADER_LEN`] bytes and [`frame::Header::parse`] checks them
//!    against the negotiated message size.
//! 2. With the rest of the frame in hand, [`Request::decode`] borrows names and data from it:
//!    nothing is copied, and every length is checked before it is used.
//! 3. The service acts and answers with a [`Reply`], whose [`Reply::encode_head`] writes all but
//!    the trailing data, so that a large payload goes out by `writev` or `sendfile`.
//!
//! # Source
//! 9P2000: Plan 9 manual, section 5. 9P2000.L: diod's `protocol.md` and Linux
//! `include/net/9p/9p.h`.
#![forbid(unsafe_code)]

mod dialect;
mod directory;
mod errno;
pub mod frame;
mod legacy;
mod message;
mod types;
mod wire;

pub use dialect::Dialect;
pub use directory::{DirEntries, DirEntry};
pub use errno::Errno;
pub use legacy::{LegacyMode, LegacyStat};
pub use message::{Reply, Request};
pub use types::*;
pub use wire::{Data, Name, Names, Optional, Qids, WireError};
