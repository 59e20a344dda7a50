//! Opened directories.
//!
//! A cookie is made of an entry's name, so that it means the same in every listing, whatever comes and goes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use p9::{Attributes, DirEntry, Errno, Qid, QidType, SetAttributes};
use store::{LockOwner, LockRange, OpenNode, Result};

use crate::error::refusal;
use crate::node::check_attributes;
use crate::tree::{Found, Tree, missing};

/// The first cookie that is not of `.` or `..`.
const FIRST_COOKIE: u64 = 3;

/// Cookies, names and whether they are directories.
type Entries = Arc<Vec<(u64, String, bool)>>;

pub(crate) struct OpenDirectory {
    tree: Arc<Tree>,
    key: String,
    entries: Mutex<Option<Entries>>,
}

impl OpenDirectory {
    pub(crate) fn new(tree: &Arc<Tree>, key: &str) -> Self {
        Self { tree: Arc::clone(tree), key: key.to_owned(), entries: Mutex::default() }
    }

    /// What is there, asked anew at each beginning.
    fn entries(&self, from_start: bool) -> Result<Entries> {
        let mut known = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entries) = known.as_ref().filter(|_| !from_start) {
            return Ok(Arc::clone(entries));
        }
        let listed = self.tree.list("getdents64", &self.key)?;
        if !listed.exists {
            return Err(missing("getdents64"));
        }
        let files = listed.files.into_iter().map(|(name, _)| (name, false));
        let directories = listed.directories.into_iter().map(|name| (name, true));
        let mut entries: Vec<(u64, String, bool)> =
            files.chain(directories).map(|(name, is_dir)| (cookie(&name), name, is_dir)).collect();
        entries.sort_unstable();
        // Two names of one cookie: the second gets the next one that is free.
        for n in 1..entries.len() {
            entries[n].0 = entries[n].0.max(entries[n - 1].0 + 1);
        }
        let entries = Arc::new(entries);
        *known = Some(Arc::clone(&entries));
        Ok(entries)
    }
}

fn cookie(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    // Positive as a signed number, as offsets are.
    (hasher.finish() >> 1).max(FIRST_COOKIE)
}

impl OpenNode for OpenDirectory {
    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> Result<usize> {
        Err(refusal("read", Errno::EISDIR))
    }

    fn write_at(&self, _data: &[u8], _offset: u64) -> Result<usize> {
        Err(refusal("write", Errno::EBADF))
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let entries = self.entries(cookie == 0)?;
        let directory = |key: &str| self.tree.qid(key, &Found::Directory);
        let dots = [(1, &b"."[..], &*self.key), (2, b"..", self.tree.above(&self.key))];
        for (own, name, key) in dots {
            if own > cookie && !take(DirEntry { qid: directory(key), offset: own, kind: 4, name }) {
                return Ok(());
            }
        }
        let first = entries.partition_point(|(own, ..)| *own <= cookie);
        for (own, name, is_directory) in &entries[first..] {
            let key =
                if self.key.is_empty() { name.clone() } else { format!("{}/{name}", self.key) };
            let (kind, entry_type) =
                if *is_directory { (QidType::DIR, 4) } else { (QidType::empty(), 8) };
            let qid = Qid { kind, version: 0, path: self.tree.identity(&key) };
            let entry = DirEntry { qid, offset: *own, kind: entry_type, name: name.as_bytes() };
            if !take(entry) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.tree.attributes(&self.key, &Found::Directory))
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        check_attributes(set, &self.attributes()?)
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }

    fn lock(&self, _owner: &LockOwner, _range: LockRange) -> Result<bool> {
        Err(refusal("fcntl", Errno::EBADF))
    }

    fn lock_in_the_way(
        &self,
        _owner: &LockOwner,
        _range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        Err(refusal("fcntl", Errno::EBADF))
    }
}
