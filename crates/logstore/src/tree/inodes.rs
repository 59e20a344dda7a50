//! Which inodes there are, by what they are known by, and how long they are kept.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, Weak};
use std::time::{Duration, Instant};

use hostlog::{FileId, Sequence};
use p9::{Qid, QidType};
use store::Node;

use super::{Tree, guard};
use crate::inode::{Base, Inode, is_made_here};

/// For how long a file is known by the number that the log gave it after nobody has it open any more: a process
/// that becomes another program opens what it passes on to that a moment later.
const PASSED_ON: Duration = Duration::from_secs(10);

/// How many such files are remembered at most: each is named in every mark of the drain.
const PASSED_ON_MAX: usize = 256;

/// Inodes by what they are known by.
#[derive(Default)]
pub(super) struct Table {
    /// By the target's `qid.path`.
    of_target: HashMap<u64, Weak<Inode>>,
    by_file: HashMap<FileId, Weak<Inode>>,
    /// Those of which the target has not all.
    held: HashMap<usize, Arc<Inode>>,
    sweep_at: usize,
}

impl Tree {
    fn table(&self) -> MutexGuard<'_, Table> {
        guard(&self.table)
    }

    /// The inode of a node of the target: the same as long as anybody has it.
    pub(crate) fn inode_of(&self, node: Arc<dyn Node>) -> Arc<Inode> {
        let qid = node.qid();
        if qid.path == self.root.inode.number() {
            return Arc::clone(&self.root.inode);
        }
        let mut table = self.table();
        let known = table.of_target.get(&qid.path).and_then(Weak::upgrade);
        if let Some(inode) = known.filter(|inode| inode.kind() == kind_of(qid)) {
            return inode;
        }
        let inode = Arc::new(Inode::of_target(node));
        table.of_target.insert(qid.path, Arc::downgrade(&inode));
        table.sweep();
        inode
    }

    /// The number that clients know a file of the target by.
    pub(crate) fn number_of(&self, path: u64) -> u64 {
        let known = self.table().of_target.get(&path).and_then(Weak::upgrade);
        known.map_or(path, |inode| inode.number())
    }

    /// Takes notice which file of the target an inode is.
    pub(crate) fn found(&self, inode: &Arc<Inode>, node: Arc<dyn Node>) {
        let path = node.qid().path;
        inode.set_number(path);
        inode.set_base(Base::Node(node));
        self.table().of_target.insert(path, Arc::downgrade(inode));
    }

    /// Makes an inode known by its file id, and keeps it until the target has all of it.
    pub(crate) fn hold(&self, inode: &Arc<Inode>) {
        let mut table = self.table();
        if !inode.is_held.swap(true, Ordering::AcqRel) {
            table.know(inode);
            table.held.insert(address(inode), Arc::clone(inode));
        }
    }

    /// The same, for who holds the content's lock.
    pub(crate) fn hold_written(&self, inode: &Arc<Inode>) {
        if !inode.is_held.load(Ordering::Acquire) {
            self.hold(inode);
        }
    }

    /// Keeps an inode no more, unless there is a record about it behind `through`: who writes one notes it
    /// in the inode first and then holds that.
    pub(crate) fn release(&self, inode: &Arc<Inode>, through: Sequence) {
        let mut table = self.table();
        if inode.last() > through {
            return;
        }
        inode.is_held.store(false, Ordering::Release);
        let released = table.held.remove(&address(inode));
        drop(table);
        drop(released);
    }

    /// Keeps an inode for a moment that nobody has open any more.
    pub(crate) fn pass_on(&self, inode: &Arc<Inode>) {
        if inode.file_id().is_some_and(is_made_here) && inode.nlink() != Some(0) {
            let mut all = guard(&self.passed_on);
            let gone = if all.len() < PASSED_ON_MAX { None } else { all.pop_front() };
            all.push_back((Instant::now(), Arc::clone(inode)));
            drop(all);
            drop(gone);
        }
    }

    /// Lets go of what was kept for a moment.
    pub(crate) fn forget_passed_on(&self) {
        let is_over = |(since, inode): &(Instant, Arc<Inode>)| {
            since.elapsed() > PASSED_ON || inode.nlink() == Some(0)
        };
        let mut all = guard(&self.passed_on);
        let (gone, kept) = all.drain(..).partition(is_over);
        *all = kept;
        drop(all);
        let gone: VecDeque<_> = gone;
        drop(gone);
    }

    pub(crate) fn held(&self) -> Vec<Arc<Inode>> {
        self.table().held.values().cloned().collect()
    }

    /// The file ids that somebody still has something of.
    pub(crate) fn known_files(&self) -> Vec<FileId> {
        let mut table = self.table();
        table.by_file.retain(|_, inode| inode.strong_count() > 0);
        let alive = table
            .by_file
            .iter()
            .filter(|(_, inode)| inode.upgrade().is_some_and(|inode| inode.nlink() != Some(0)));
        alive.map(|(file, _)| *file).collect()
    }

    /// Makes a file known by its id, without keeping it.
    pub(crate) fn know(&self, inode: &Arc<Inode>) {
        self.table().know(inode);
    }
}

impl Table {
    fn know(&mut self, inode: &Arc<Inode>) {
        if let Some(file) = inode.file_id() {
            self.by_file.insert(file, Arc::downgrade(inode));
        }
    }

    fn sweep(&mut self) {
        if self.of_target.len() > self.sweep_at {
            self.of_target.retain(|_, inode| inode.strong_count() > 0);
            self.sweep_at = (2 * self.of_target.len()).max(1024);
        }
    }
}

fn address(inode: &Arc<Inode>) -> usize {
    Arc::as_ptr(inode).addr()
}

fn kind_of(qid: Qid) -> QidType {
    qid.kind & (QidType::DIR | QidType::SYMLINK)
}
