//! Opened directories.
//!
//! A cookie is made of an entry's name, so that it means the same in every listing, whatever comes and goes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use p9::{Attributes, DirEntry, Qid, QidType, SetAttributes};
use store::{FIRST_COOKIE, Listing, Result};

use crate::node::check_attributes;
use crate::tree::{Found, Tree, missing};

/// Cookies, names and whether they are directories.
type Entries = Arc<Vec<(u64, String, bool)>>;

/// What is in a directory of a bucket.
pub(crate) struct Directory {
    tree: Arc<Tree>,
    key: String,
    entries: Mutex<Option<Entries>>,
}

impl Directory {
    pub(crate) fn new(tree: &Arc<Tree>, key: &str) -> Self {
        Self { tree: Arc::clone(tree), key: key.to_owned(), entries: Mutex::default() }
    }

    /// What is there, asked anew at each beginning.
    fn known(&self, from_start: bool) -> Result<Entries> {
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

impl Listing for Directory {
    fn attributes(&self) -> Result<Attributes> {
        Ok(self.tree.attributes(&self.key, &Found::Directory))
    }

    fn above(&self) -> Qid {
        self.tree.qid(self.tree.above(&self.key), &Found::Directory)
    }

    fn entries(
        &self,
        cookie: u64,
        is_beginning: bool,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let known = self.known(is_beginning)?;
        let first = known.partition_point(|(own, ..)| *own <= cookie);
        for (own, name, is_directory) in &known[first..] {
            let key =
                if self.key.is_empty() { name.clone() } else { format!("{}/{name}", self.key) };
            let kind = if *is_directory { QidType::DIR } else { QidType::empty() };
            let qid = Qid { kind, version: 0, path: self.tree.identity(&key) };
            if !take(DirEntry::of(qid, *own, name.as_bytes())) {
                break;
            }
        }
        Ok(())
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        check_attributes(set, &self.attributes()?)
    }
}
