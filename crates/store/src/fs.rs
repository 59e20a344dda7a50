//! A directory of this machine as a store.
//!
//! A [node](node::FsNode) holds an `O_PATH` descriptor and so follows its file through every
//! rename. Names are resolved one at a time with `O_NOFOLLOW`, relative to the descriptor of the
//! directory that they are in: a single name that is neither `..` nor holds a `/` cannot lead out
//! of the exported tree, on any kernel and whatever else happens to the tree meanwhile. `..` is
//! never given to the kernel (see [`node::FsNode::locate`]).
//!
//! Calls that the kernel offers by path only reach the very file of a descriptor through
//! `/proc/thread-self/fd/N`; so does opening it for reading or writing.
//!
//! Everything goes by [`rustix`]'s own system calls, because this code also runs inside programs
//! whose libc is patched to call it. Two libc functions remain, and pass through such a patch by
//! the descriptor being nobody else's: `close` when a descriptor is dropped, and `fcntl` for
//! [locks](lock).
//!
//! # Source
//! path_resolution(7), open(2) on `O_PATH`, proc_pid_fd(5).

mod attributes;
mod directory;
mod lock;
mod node;
mod open;

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as KernelErrno;
use rustix::process::{Resource, Rlimit};

use crate::error::{Error, Result};
use crate::node::{Node, Store};
use attributes::Identity;

/// A directory of this machine, exported as a tree.
pub struct FsStore {
    export: Arc<Export>,
}

/// What may be chosen about an [`FsStore`].
#[derive(Debug, Clone, Copy, Default)]
pub struct FsOptions {
    /// The lowest number that the store's descriptors may have; 0 leaves it to the kernel.
    ///
    /// Inside somebody else's program, low numbers belong to the program: it may expect the next
    /// `open` to give 3, or `dup2` over a number that it never saw in use.
    pub descriptors_from: u32,
}

impl FsStore {
    /// Exports the directory at `path`; symbolic links on the way to it are followed.
    ///
    /// # Errors
    /// As open(2) with `O_DIRECTORY`.
    pub fn new(path: &Path) -> Result<Self> {
        Self::with_options(path, FsOptions::default())
    }

    /// As [`FsStore::new`], with choices.
    ///
    /// # Errors
    /// As open(2) with `O_DIRECTORY`.
    pub fn with_options(path: &Path, options: FsOptions) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty()).map_err(system("open"))?;
        let (identity, _) = attributes::stat(&root)?;
        let descriptors_from = i32::try_from(options.descriptors_from).unwrap_or(i32::MAX);
        let root = Arc::new(raise(root, descriptors_from).map_err(system("open"))?);
        let locks = lock::LockFiles::default();
        Ok(Self { export: Arc::new(Export { root, identity, descriptors_from, locks }) })
    }
}

impl Store for FsStore {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(Arc::new(node::FsNode::root(&self.export)))
    }
}

/// What all nodes of a store share.
struct Export {
    root: Arc<OwnedFd>,
    identity: Identity,
    descriptors_from: i32,
    locks: lock::LockFiles,
}

impl Export {
    /// Takes a new descriptor into the store's keeping.
    fn keep(&self, fd: OwnedFd) -> rustix::io::Result<OwnedFd> {
        raise(fd, self.descriptors_from)
    }
}

/// Moves a descriptor to a number of at least `floor`.
fn raise(fd: OwnedFd, floor: i32) -> rustix::io::Result<OwnedFd> {
    if fd.as_raw_fd() >= floor { Ok(fd) } else { rustix::io::fcntl_dupfd_cloexec(&fd, floor) }
}

/// The path by which the kernel finds what a descriptor refers to, the final symbolic link of it
/// included: it is a jump, not a name that is looked up.
///
/// `thread-self` and not `self`, since the first thread of a program may have ended before the
/// others, and `/proc/self/fd` with it.
fn path_of(fd: &OwnedFd) -> String {
    format!("/proc/thread-self/fd/{}", fd.as_raw_fd())
}

/// Turns the kernel's answer into an error of this crate.
fn system(operation: &'static str) -> impl Fn(KernelErrno) -> Error {
    move |errno| refusal(operation, p9::Errno::from_raw(errno.raw_os_error()))
}

fn refusal(operation: &'static str, errno: p9::Errno) -> Error {
    Error::System { operation, errno }
}

/// Lets this process have as many descriptors as its hard limit allows, and says how many that is.
///
/// A fid holds one descriptor, and the usual soft limit of 1,024 (kept so low for select(2)) would
/// be a client's limit too. To be called once, when a service starts; not inside somebody else's
/// program.
///
/// # Errors
/// As setrlimit(2).
pub fn raise_descriptor_limit() -> Result<u64> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        rustix::process::setrlimit(Resource::Nofile, raised).map_err(system("setrlimit"))?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}
