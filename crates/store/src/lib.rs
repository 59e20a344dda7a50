//! Places where data lives, behind one trait.
//!
//! A [`Store`] is a tree of [`Node`]s; opening a node gives an [`OpenNode`]. A directory, memory,
//! another service behind a relay, and later an object store, a layout view or a program's hook
//! are all stores, and whatever can hold a [`Store`] can hold each of them: the 9P service, the
//! in-process transport, the conformance suite.
//!
//! The way of one read, as the service drives it:
//!
//! 1. [`Store::root`] answers an attach with a node.
//! 2. [`Node::walk`] goes down by names; symbolic links are not followed, they are nodes.
//! 3. [`Node::open`] turns the node into an [`OpenNode`] that stays valid when the file is renamed
//!    or removed.
//! 4. [`OpenNode::read_at`] fills a buffer, or, where [`OpenNode::as_fd`] lends a descriptor, the
//!    service lets the kernel move the bytes.
#![forbid(unsafe_code)]

pub mod conformance;
mod error;
mod exports;
pub mod fs;
mod listing;
mod locks;
mod marked;
pub mod mem;
mod name;
mod node;
mod read_only;
pub mod relay;
mod wholes;
mod wrapper;

pub use error::{Error, Result};
pub use exports::Exports;
pub use listing::{FIRST_COOKIE, Listing, OpenListing, walk_by_steps};
pub use locks::{FileLocks, OpeningLocks};
pub use marked::Marked;
pub use name::{NAME_BYTES_MAX, check as check_name};
pub use node::{LockOwner, LockRange, Node, OpenNode, Piece, Store, Walk};
pub use read_only::ReadOnly;
pub use wholes::{Next, Replacement, Version, Wholes};
