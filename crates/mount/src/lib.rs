//! Any store as a file system of this machine, by FUSE.
//!
//! Programs that the preload library cannot carry (statically linked ones, those of other users,
//! the shell that is running already) see a [`store::Store`] as a directory. [`Mounted`] stands
//! between the kernel and the store; what is behind the store, a directory, memory or a service on
//! the other side of a connection, makes no difference here.
//!
//! The way of one read:
//!
//! 1. `open("/mnt/a/b")` makes the kernel ask for `a` below the root, then for `b` below `a`. Each
//!    is [`store::Node::walk`] and [`store::Node::attributes`]; the node goes into a table
//!    (`front/nodes.rs`) under the number that the kernel will name it by, which is its qid's path.
//! 2. The kernel asks to open that number: [`store::Node::open`] gives the [`store::OpenNode`] that
//!    is kept under the number of the opening (`front/handles.rs`).
//! 3. `read(2)` finds its pages in the kernel's cache, or the kernel asks for them, several requests
//!    at a time where a program reads in order. One of a few threads takes each request, calls
//!    [`store::OpenNode::read_at`] and hands the bytes over.
//! 4. When the last descriptor is gone the kernel says so, and the opening is dropped; when the
//!    kernel forgets the file, so is the node.
//!
//! Nothing is written later than it is asked for: `write(2)` returns when the store has answered.
//!
//! # Source
//! The kernel's `Documentation/filesystems/fuse/` and `include/uapi/linux/fuse.h`; fuse(4),
//! fusermount3(1).
#![forbid(unsafe_code)]

mod device;
mod error;
mod front;
mod mounted;
mod mounts;

pub use device::availability;
pub use error::{Error, Result};
pub use mounted::{MountPoint, Mounted, Options};
pub use mounts::{Manner, unmount};
