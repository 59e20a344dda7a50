//! What all nodes of a store share.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use hostlog::{FileId, Log, Sequence};
use p9::{QidType, Time, mode};
use rustix::time::ClockId;
use store::{Node, Store};

use crate::Options;
use crate::groups::Group;
use crate::inode::{Body, FILE_ID_STEP, Inode, marks};
use crate::names::{Entry, Place};

mod changing;
mod finding;
mod inodes;
mod records;
mod rights;

use inodes::Table;
pub(crate) use rights::{Access, User};

/// How often something is tried again that a concurrent drain spoils.
pub(crate) const RACES_MAX: usize = 16;

/// The overlay. Locks are taken in the order `changes`, a content, names, `table`; what is in an inode
/// besides, last.
pub(crate) struct Tree {
    pub(crate) log: Arc<Log>,
    pub(crate) options: Options,
    pub(crate) root: Arc<Entry>,
    pub(crate) user: User,
    pub(crate) name_bytes_max: usize,
    /// The target, where its files are only replaced as wholes.
    of_wholes: Option<Arc<dyn Store>>,
    next_file: AtomicU64,
    next_stream: AtomicU32,
    pub(crate) next_group: AtomicU32,
    /// Held while names change.
    pub(crate) changes: Mutex<()>,
    table: Mutex<Table>,
    /// Names that the target does not have as the log has them, by the record that changed them.
    undrained: Mutex<BTreeMap<Sequence, Vec<Place>>>,
    /// Records of the namespace that no commit stands behind.
    pending_names: Mutex<VecDeque<Sequence>>,
    pub(crate) groups: Mutex<HashMap<epochs::Group, Arc<Group>>>,
    /// What clients had before the store was opened: they may come back.
    pub(crate) returning: Mutex<Option<Returning>>,
    /// What was closed a moment ago.
    passed_on: Mutex<VecDeque<(Instant, Arc<Inode>)>>,
    /// Writers that wait for space.
    pub(crate) waiting: AtomicUsize,
    /// What lies up to here nobody reads from the log any more.
    pub(crate) forgotten: AtomicU64,
    /// Clients that are lost from here on are lost because nobody serves them any more.
    pub(crate) is_ending: AtomicBool,
}

/// Since when, and what.
pub(crate) type Returning = (Instant, HashMap<FileId, Arc<Inode>>);

impl Tree {
    pub(crate) fn new(
        log: Arc<Log>,
        target: &Arc<dyn Store>,
        root: Arc<dyn Node>,
        options: Options,
        next_file: u64,
        next_group: u32,
    ) -> Self {
        let name_max = root.statfs().map_or(0, |found| found.name_max as usize);
        let longest = store::NAME_BYTES_MAX;
        Self {
            log,
            options,
            root: Entry::unplaced(Arc::new(Inode::of_target(root))),
            user: User::own(),
            of_wholes: target.wholes().is_some().then(|| Arc::clone(target)),
            name_bytes_max: if name_max == 0 { longest } else { name_max.min(longest) },
            next_file: AtomicU64::new(next_file.next_multiple_of(FILE_ID_STEP)),
            next_stream: AtomicU32::new(1),
            next_group: AtomicU32::new(next_group),
            changes: Mutex::default(),
            table: Mutex::default(),
            undrained: Mutex::default(),
            pending_names: Mutex::default(),
            groups: Mutex::default(),
            returning: Mutex::default(),
            passed_on: Mutex::default(),
            waiting: AtomicUsize::new(0),
            forgotten: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
        }
    }

    /// A number for something that the log makes, or for something that the target has.
    pub(crate) fn new_file(&self, kind: QidType, made_here: bool) -> FileId {
        let number = self.next_file.fetch_add(FILE_ID_STEP, Ordering::Relaxed);
        FileId(number | marks(kind, made_here))
    }

    pub(crate) fn next_file(&self) -> u64 {
        self.next_file.load(Ordering::Relaxed)
    }

    pub(crate) fn new_stream(&self) -> u32 {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for Tree {
    /// Names and the directories that they are in know each other: here the rings are opened.
    fn drop(&mut self) {
        guard(&self.undrained).clear();
        let held = self.held();
        for inode in held.iter().chain([&self.root.inode]) {
            if let Body::Directory(names) = &inode.body {
                let slots = guard(names).clear();
                drop(slots);
            }
        }
        for inode in &held {
            guard(&inode.home).take();
        }
    }
}

/// The mode of a new file of a kind.
pub(crate) fn regular(mode: u32) -> u32 {
    mode::REGULAR | mode & mode::PERMISSIONS
}

pub(crate) fn now() -> Time {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    Time { seconds: now.tv_sec as u64, nanoseconds: now.tv_nsec as u64 }
}

// A thread that panicked while it held one of these locks left nothing half done that another
// could not live with.

pub(crate) fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn reading<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn writing<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
