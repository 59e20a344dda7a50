//! What is open, by the numbers that the kernel is given for openings.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use p9::{Errno, LockKind, OpenFlags, QidType};
use store::OpenNode;

use super::nodes::Nodes;

/// Openings of one kind.
pub(super) struct Handles<T> {
    next: AtomicU64,
    open: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self { next: AtomicU64::new(1), open: RwLock::default() }
    }
}

impl<T> Handles<T> {
    /// Keeps an opening and gives its number.
    pub(super) fn add(&self, opened: T) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(number, Arc::new(opened));
        number
    }

    /// # Errors
    /// `EBADF` for a number that is not in use.
    pub(super) fn get(&self, number: u64) -> Result<Arc<T>, Errno> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&number).cloned().ok_or(Errno::EBADF)
    }

    /// Ends an opening; what still uses it goes on.
    pub(super) fn remove(&self, number: u64) -> Option<Arc<T>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }
}

/// An open regular file.
pub(super) struct OpenFile {
    /// The file's number.
    pub(super) number: u64,
    /// Where its node is. It is not held here: every name that is looked up makes a node, and a store
    /// may need a descriptor for each.
    nodes: Arc<Nodes>,
    flags: OpenFlags,
    open: Arc<dyn OpenNode>,
    /// A second opening that does not append, for pages of a mapping.
    pages: Mutex<Option<Arc<dyn OpenNode>>>,
    /// A second opening for kinds of locks that the first does not allow.
    locks: Mutex<Option<Arc<dyn OpenNode>>>,
}

impl OpenFile {
    pub(super) fn new(
        number: u64,
        nodes: Arc<Nodes>,
        flags: OpenFlags,
        open: Arc<dyn OpenNode>,
    ) -> Self {
        let (pages, locks) = (Mutex::default(), Mutex::default());
        Self { number, nodes, flags, open, pages, locks }
    }

    /// Makes a file of what was written, where that is done for the whole of it.
    pub(super) fn store_at_close(&self) -> Result<(), Errno> {
        if !self.flags.writes() {
            return Ok(());
        }
        let found = self.open.attributes().map_err(|error| error.to_errno())?;
        if !found.qid.kind.contains(QidType::EXCLUSIVE) {
            return Ok(());
        }
        self.open.sync(false).map_err(|error| error.to_errno())
    }

    /// Whether it was opened for writing.
    pub(super) fn writes(&self) -> bool {
        self.flags.writes()
    }

    /// The opening as the program has it.
    pub(super) fn open(&self) -> &Arc<dyn OpenNode> {
        &self.open
    }

    /// An opening that writes where it is told. The kernel writes back pages of a mapping through
    /// any opening of the file that can write, also one that appends.
    pub(super) fn for_pages(&self) -> Result<Arc<dyn OpenNode>, Errno> {
        if !self.flags.contains(OpenFlags::APPEND) {
            return Ok(Arc::clone(&self.open));
        }
        self.second(&self.pages, OpenFlags::WRITE_ONLY)
    }

    /// An opening that may take a kind of lock. flock(2) asks for no right; fcntl(2) does, but then
    /// the kernel has looked already.
    pub(super) fn for_lock(&self, kind: LockKind) -> Result<Arc<dyn OpenNode>, Errno> {
        let allowed = match kind {
            LockKind::READ => self.flags.reads(),
            LockKind::WRITE => self.flags.writes(),
            _ => true,
        };
        if allowed {
            return Ok(Arc::clone(&self.open));
        }
        self.second(&self.locks, OpenFlags::READ_WRITE)
    }

    fn second(
        &self,
        place: &Mutex<Option<Arc<dyn OpenNode>>>,
        flags: OpenFlags,
    ) -> Result<Arc<dyn OpenNode>, Errno> {
        let mut second = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*second {
            return Ok(Arc::clone(open));
        }
        let node = self.nodes.get(self.number)?;
        let open = node.open(flags).map_err(|error| error.to_errno())?;
        *second = Some(Arc::clone(&open));
        Ok(open)
    }
}
