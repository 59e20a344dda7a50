//! The store itself: how it is opened, and what the agent and the drain ask of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use hostlog::{Log, Recovery, Sequence};
use store::{Node, Store};

use crate::changes::logged_bytes;
use crate::drained::{Find, Kept};
use crate::error::{Error, Result};
use crate::groups::GroupStatus;
use crate::inode::Body;
use crate::node::{LogNode, pending};
use crate::settle::settle;
use crate::state::State;
use crate::stream::Stream;
use crate::tree::{Tree, guard};

/// What may be chosen about a [`LogStore`].
#[derive(Debug, Clone)]
pub struct Options {
    /// What the files answer for the attribute [`epochs::LOG`]: a text that no other log has.
    pub identity: Vec<u8>,
    /// How long a write waits for space at most.
    pub full_wait: Duration,
    /// How long files are known by the numbers that clients had of them before the store was opened, even
    /// where the log has nothing of them any more.
    pub return_wait: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            identity: b"log".to_vec(),
            full_wait: Duration::from_secs(3600),
            return_wait: Duration::from_secs(600),
        }
    }
}

/// How a store stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Files, directories and links of which the target has not all.
    pub files: u64,
    /// Bytes that are read from the log.
    pub logged_bytes: u64,
    /// Edits of files that do not count yet.
    pub uncommitted_records: u64,
    /// Their bytes.
    pub uncommitted_bytes: u64,
    /// Changes of names that no commit stands behind.
    pub uncommitted_names: u64,
    /// Groups that have files open.
    pub groups: Vec<GroupStatus>,
    /// Writers that wait for space.
    pub waiting: u64,
    /// Whether the log takes nothing more.
    pub failed: bool,
}

/// What a program had written to a file, and did not live to make count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The file, if it has a name.
    pub path: Option<Vec<u8>>,
    /// How much it was.
    pub bytes: u64,
}

/// A log laid over a target.
pub struct LogStore {
    tree: Arc<Tree>,
}

impl LogStore {
    /// Lays a log over a target: what the log has and the target has not is found again. `recovery` is
    /// what opening the log told; `None` for a new one.
    ///
    /// # Errors
    /// When the log or the target cannot be read.
    pub fn open(
        log: Arc<Log>,
        recovery: Option<&Recovery>,
        target: &Arc<dyn Store>,
        options: Options,
    ) -> Result<Arc<Self>> {
        settle(&log)?;
        let state = recovery.map_or(&[][..], |recovery| &recovery.drained_state);
        let state = State::decode(state).ok_or(Error::State)?;
        let last_file = recovery.map_or(0, |recovery| recovery.last_file.0);
        let last_group = recovery.and_then(|recovery| recovery.last_group);
        let root = target.root().map_err(Error::target("attaching"))?;
        // Numbers start where no earlier log had its own: a client that comes back must not take a new
        // file for the one that it knew. 48 bits are a file's (`Inode`).
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let first = seconds.map_or(0, |since| (since.as_secs() & 0xffff_ffff) << 16);
        let next_file = first.max(last_file + 1).max(state.next_file);
        let next_group = last_group.map_or(1, |group| group.0.saturating_add(1));
        let tree = Arc::new(Tree::new(log, target, root, options, next_file, next_group));
        tree.rebuild(&state.files)?;
        Ok(Arc::new(Self { tree }))
    }

    /// Up to where the log may be drained: behind that is what may still come to count, or not to, and what
    /// is read from the log only. The drain asks this before it looks at what counts.
    #[must_use]
    pub fn drainable(&self) -> Sequence {
        self.tree.drainable()
    }

    /// Takes notice that the target has everything up to `through` that counts, durably. From here on the
    /// target serves it, by the nodes that `find` gives for what the log had made: those of this moment.
    /// When this has returned, [`Log::drained`] may be called.
    ///
    /// # Errors
    /// `Lost`: then nothing may be given away.
    pub fn drained(&self, through: Sequence, find: Find<'_>) -> Result<Kept> {
        self.tree.drained(through, find)
    }

    /// Makes the changes of names so far count, durably.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn commit_names(&self) -> Result<()> {
        self.tree.commit_names().map_err(Error::log("committing names in"))
    }

    /// Makes everything count that plain files have so far, durably.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn commit_plain(&self) -> Result<()> {
        self.tree.commit_plain(Sequence(u64::MAX)).map_err(Error::log("committing files in"))
    }

    /// Makes everything count that does not wait for ranks.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn commit_all(&self) -> Result<()> {
        self.commit_plain()?;
        self.commit_names()
    }

    /// From here on those who lose the store have been left by it, and are not lost themselves: what they have
    /// written counts, as if they had closed their files.
    pub fn end(&self) {
        self.tree.is_ending.store(true, Ordering::Release);
    }

    /// Drops, durably, what programs that are gone without closing their files have written since the files' last
    /// consistency points. To be called when nobody is left who could make one: programs that see a file shrink
    /// under them have no way to understand that.
    ///
    /// # Errors
    /// As [`Log::commit`]. A file of which it is then not known what it holds is not read any more.
    pub fn drop_unfinished(&self) -> Result<Vec<Unfinished>> {
        let mut dropped = Vec::new();
        for inode in self.tree.held() {
            if pending(&inode).0 == 0 {
                continue;
            }
            let bytes = self.tree.drop_unfinished(&inode).inspect_err(|_| {
                inode.is_broken.store(true, Ordering::Release);
            });
            let bytes = bytes.map_err(Error::log("dropping what was not finished from"))?;
            if bytes > 0 {
                dropped.push(Unfinished { path: self.tree.path_of_inode(&inode), bytes });
            }
        }
        Ok(dropped)
    }

    /// How the store stands.
    #[must_use]
    pub fn status(&self) -> Status {
        let tree = &self.tree;
        let held = tree.held();
        let groups: Vec<_> = guard(&tree.groups).values().cloned().collect();
        let mut status = Status {
            files: held.len() as u64,
            uncommitted_names: tree.pending_names().1 as u64,
            groups: groups.iter().map(|group| group.status(tree)).collect(),
            waiting: tree.waiting.load(Ordering::Acquire) as u64,
            failed: tree.log.status().failed,
            ..Status::default()
        };
        for inode in held.iter().filter(|inode| matches!(inode.body, Body::File(_))) {
            let (records, bytes) = pending(inode);
            status.uncommitted_records += records;
            status.uncommitted_bytes += bytes;
            status.logged_bytes += logged_bytes(inode);
        }
        status
    }
}

impl Store for LogStore {
    /// One stream: what is attached here writes for one process.
    fn root(&self) -> store::Result<Arc<dyn Node>> {
        let stream = Stream::new(&self.tree);
        Ok(Arc::new(LogNode::new(&stream, &self.tree.root)))
    }

    fn blocks(&self) -> bool {
        true
    }
}
