//! Memory as a store: a whole tree with the semantics of a local file system, gone with its
//! process.
//!
//! - [`inode`] is a file whatever its names: attributes and content.
//! - [`content`] is a regular file's bytes, sparse, in blocks.
//! - [`tree`] is names: an entry knows its directory, so that a node follows its file through a
//!   rename as an open descriptor would.
//! - [`node`] and [`open`] are what clients hold.
//!
//! Changes of the tree take turns; reading and writing of different files do not wait for each
//! other, nor do look-ups.

mod content;
mod inode;
mod node;
mod open;
mod tree;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use p9::{Errno, StatFs, Time};
use rustix::time::ClockId;

use crate::error::{Error, Result};
use crate::name::NAME_BYTES_MAX;
use crate::node::{Node, Store};
use inode::Inode;
use tree::Entry;

/// A tree in memory.
pub struct MemStore {
    tree: Arc<Tree>,
}

/// What may be chosen about a [`MemStore`].
#[derive(Debug, Clone, Copy, Default)]
pub struct MemOptions {
    /// Bytes that files may take in all, counted in blocks of 4 KiB; `None`: as many as there are.
    pub bytes_max: Option<u64>,
    /// Files, directories and symbolic links in all; `None`: as many as there is room for.
    pub files_max: Option<u64>,
    /// User and group that own the tree and whose rights apply; `None`: those of this process.
    pub owner: Option<(u32, u32)>,
}

impl MemStore {
    /// An empty tree without limits.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(MemOptions::default())
    }

    /// An empty tree, with choices.
    #[must_use]
    pub fn with_options(options: MemOptions) -> Self {
        let (uid, gid) = options.owner.unwrap_or_else(|| {
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
        });
        let space = Arc::new(Space {
            bytes_max: options.bytes_max,
            files_max: options.files_max,
            bytes: AtomicU64::new(0),
            files: AtomicU64::new(1),
        });
        // Numbers start where no earlier tree of this kind had its own: a client that comes back
        // after a restart must not take a new file for the one that it knew.
        let first = (now().seconds & 0xffff_ffff) << 24;
        let root = Arc::new(Inode::directory(first, 0o755, (uid, gid), &space));
        Self {
            tree: Arc::new(Tree {
                root: Entry::unplaced(root),
                uid,
                gid,
                space,
                next_number: AtomicU64::new(first + 1),
                changes: Mutex::new(()),
            }),
        }
    }
}

impl Default for MemStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemStore {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(Arc::new(node::MemNode::new(&self.tree, &self.tree.root)))
    }
}

/// What all nodes of a store share.
struct Tree {
    root: Arc<Entry>,
    uid: u32,
    gid: u32,
    space: Arc<Space>,
    next_number: AtomicU64,
    /// Held while names change.
    changes: Mutex<()>,
}

impl Tree {
    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn statfs(&self) -> StatFs {
        /// What is told where there is no limit: programs compare it with what they need.
        const PLENTY: u64 = 1 << 50;
        let blocks = self.space.bytes_max.unwrap_or(PLENTY) / content::GRAIN_BYTES;
        let used = self.space.bytes.load(Ordering::Relaxed) / content::GRAIN_BYTES;
        let files = self.space.files_max.unwrap_or(PLENTY / 1024);
        let blocks_free = blocks.saturating_sub(used);
        StatFs {
            // TMPFS_MAGIC of linux/magic.h: what programs know that keeps files in memory.
            kind: 0x0102_1994,
            block_size: content::GRAIN_BYTES as u32,
            blocks,
            blocks_free,
            blocks_available: blocks_free,
            files,
            files_free: files.saturating_sub(self.space.files.load(Ordering::Relaxed)),
            fsid: self.root.inode.number,
            name_max: NAME_BYTES_MAX as u32,
        }
    }
}

/// What the tree takes, and may take.
struct Space {
    bytes_max: Option<u64>,
    files_max: Option<u64>,
    bytes: AtomicU64,
    files: AtomicU64,
}

impl Space {
    fn take(used: &AtomicU64, max: Option<u64>, more: u64) -> bool {
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|sum| max.is_none_or(|max| *sum <= max))
        })
        .is_ok()
    }

    fn take_bytes(&self, more: u64) -> bool {
        Self::take(&self.bytes, self.bytes_max, more)
    }

    fn give_bytes(&self, fewer: u64) {
        self.bytes.fetch_sub(fewer, Ordering::Relaxed);
    }

    fn take_file(&self, operation: &'static str) -> Result<()> {
        if Self::take(&self.files, self.files_max, 1) {
            Ok(())
        } else {
            Err(refusal(operation, Errno::ENOSPC))
        }
    }

    fn give_file(&self) {
        self.files.fetch_sub(1, Ordering::Relaxed);
    }
}

fn refusal(operation: &'static str, errno: Errno) -> Error {
    Error::System { operation, errno }
}

fn now() -> Time {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    Time { seconds: now.tv_sec as u64, nanoseconds: now.tv_nsec as u64 }
}

// A thread that panicked while it held one of these locks left nothing half done that another
// could not live with: every change is a few assignments.

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reading<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn writing<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
