//! What all nodes of a store share: what is at a key, what is being written, which directories have nothing in them yet.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use p9::{Attributes, Errno, GetattrMask, Qid, QidType, Time, mode};
use store::{FileLocks, Result};

use crate::bucket::{Bucket, Listed, Meta};
use crate::error::refusal;
use crate::read::Shared;
use crate::write::{Writing, now};

/// For how long what a listing said of a file is good for who looks at it. Opening it asks anew.
const LISTED_FOR: Duration = Duration::from_secs(1);

/// Entries of listings that are remembered at most.
const LISTED_MAX: usize = 100_000;

/// For how long what a writer left without closing it is kept for who opens it anew.
const ORPHANS_FOR: Duration = Duration::from_secs(60);

/// What is at a key.
#[derive(Clone)]
pub(crate) enum Found {
    Directory,
    File(Meta),
    /// A file that is being written and is not in the bucket yet.
    Pending(Arc<Writing>),
}

pub(crate) struct Tree {
    pub(crate) shared: Arc<Shared>,
    /// The key of the root, without slashes at its ends.
    pub(crate) root: String,
    pub(crate) part_bytes: u64,
    /// User and group that own everything.
    owner: (u32, u32),
    began: Time,
    writing: Mutex<HashMap<String, Arc<Writing>>>,
    /// Directories that are there although nothing in the bucket says so.
    made: Mutex<HashSet<String>>,
    listed: Mutex<HashMap<String, (Instant, Meta)>>,
    locks: Mutex<HashMap<String, Weak<FileLocks>>>,
    root_was_seen: OnceLock<()>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tree {
    pub(crate) fn new(shared: Arc<Shared>, root: String, part_bytes: u64) -> Self {
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self {
            shared,
            root,
            part_bytes,
            owner,
            began: now(),
            writing: Mutex::default(),
            made: Mutex::default(),
            listed: Mutex::default(),
            locks: Mutex::default(),
            root_was_seen: OnceLock::new(),
        }
    }

    pub(crate) fn bucket(&self) -> &Arc<Bucket> {
        &self.shared.bucket
    }

    /// The key above; the root's is its own.
    pub(crate) fn above<'a>(&'a self, key: &'a str) -> &'a str {
        if key == self.root {
            return key;
        }
        key.rsplit_once('/').map_or(&self.root, |(above, _)| above)
    }

    /// What is at a key, as of now; what a listing has said a moment ago is good if `may_be_listed`.
    pub(crate) fn look(
        &self,
        operation: &'static str,
        key: &str,
        may_be_listed: bool,
    ) -> Result<Option<Found>> {
        if key == self.root {
            return Ok(Some(Found::Directory));
        }
        let writing = self.writing(key);
        // Before it is complete, others see what was there before; without that, the new file.
        if let Some(writing) = &writing
            && !writing.replaces()
        {
            return Ok(Some(Found::Pending(Arc::clone(writing))));
        }
        if may_be_listed && let Some(meta) = self.listed(key) {
            return Ok(Some(Found::File(meta)));
        }
        if let Some(meta) = self.bucket().head(operation, key)? {
            return Ok(Some(Found::File(meta)));
        }
        if guard(&self.made).contains(key) || self.bucket().has_below(operation, key)? {
            return Ok(Some(Found::Directory));
        }
        Ok(writing.map(Found::Pending))
    }

    /// Whether the bucket itself can be used; asked once.
    pub(crate) fn see_root(&self) -> Result<()> {
        if self.root_was_seen.get().is_none() && self.bucket().lists() {
            self.bucket().has_below("stat", &self.root)?;
            let _ = self.root_was_seen.set(());
        }
        Ok(())
    }

    pub(crate) fn list(&self, operation: &'static str, key: &str) -> Result<Listed> {
        let mut listed = self.bucket().list(operation, key)?;
        let below = if key.is_empty() { String::new() } else { format!("{key}/") };
        let mut known = guard(&self.listed);
        let now = Instant::now();
        if known.len() + listed.files.len() > LISTED_MAX {
            known.clear();
        }
        for (name, meta) in listed.files.iter().take(LISTED_MAX) {
            known.insert(format!("{below}{name}"), (now, meta.clone()));
        }
        drop(known);
        let made = guard(&self.made);
        listed.exists |= key == self.root || made.contains(key);
        let names: Vec<String> = made
            .iter()
            .filter_map(|made| made.strip_prefix(&below))
            .filter(|name| !name.is_empty() && !name.contains('/'))
            .map(str::to_owned)
            .collect();
        drop(made);
        listed.directories.extend(names);
        listed.directories.sort_unstable();
        listed.directories.dedup();
        // A key that is an object and begins others is the object, as when it is looked for.
        let files: HashSet<&str> = listed.files.iter().map(|(name, _)| name.as_str()).collect();
        let directories = std::mem::take(&mut listed.directories);
        listed.directories =
            directories.into_iter().filter(|name| !files.contains(name.as_str())).collect();
        Ok(listed)
    }

    /// What a listing said of an object lately.
    pub(crate) fn listed(&self, key: &str) -> Option<Meta> {
        let listed = guard(&self.listed);
        let (when, meta) = listed.get(key)?;
        (when.elapsed() < LISTED_FOR).then(|| meta.clone())
    }

    /// Something has become of a key.
    pub(crate) fn forget(&self, key: &str) {
        guard(&self.listed).remove(key);
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// Those of storing its marker.
    pub(crate) fn mark(&self, key: &str) -> Result<()> {
        self.bucket().mark(key)?;
        self.make(key);
        Ok(())
    }

    /// Removes a directory.
    ///
    /// # Errors
    /// Those of removing its marker.
    pub(crate) fn unmark(&self, key: &str) -> Result<()> {
        self.bucket().unmark(key)?;
        self.unmake(key);
        Ok(())
    }

    /// A directory is there from now on, also when nothing in the bucket says so.
    pub(crate) fn make(&self, key: &str) {
        if key != self.root {
            guard(&self.made).insert(key.to_owned());
        }
    }

    /// It is there only if something is in it.
    fn unmake(&self, key: &str) {
        guard(&self.made).remove(key);
    }

    pub(crate) fn writing(&self, key: &str) -> Option<Arc<Writing>> {
        guard(&self.writing).get(key).cloned()
    }

    /// The file at a key is written from now on, by one opening more. `is_new`: it is to be stored also if nothing is
    /// written.
    pub(crate) fn write(&self, key: &str, former: Option<Meta>, is_new: bool) -> Arc<Writing> {
        let mut all = guard(&self.writing);
        let writing = all.entry(key.to_owned()).or_insert_with(|| {
            Arc::new(Writing::new(self.bucket(), key, self.part_bytes, former, is_new))
        });
        writing.join();
        Arc::clone(writing)
    }

    /// An opening has ended. Where it was the last, and nothing is left to be stored, nobody needs to know any more that
    /// the file was written.
    pub(crate) fn leave(self: &Arc<Self>, key: &str, writing: &Arc<Writing>) {
        let mut all = guard(&self.writing);
        let Some(generation) = writing.leave() else { return };
        if !all.get(key).is_some_and(|known| Arc::ptr_eq(known, writing)) {
            return;
        }
        if writing.is_settled() {
            all.remove(key);
            return;
        }
        drop(all);
        let (tree, key, writing) = (Arc::downgrade(self), key.to_owned(), Arc::downgrade(writing));
        std::thread::spawn(move || {
            std::thread::sleep(ORPHANS_FOR);
            if let (Some(tree), Some(writing)) = (tree.upgrade(), writing.upgrade()) {
                tree.drop_orphan(&key, &writing, generation);
            }
        });
    }

    fn drop_orphan(&self, key: &str, writing: &Arc<Writing>, generation: u64) {
        let mut all = guard(&self.writing);
        let is_it = all.get(key).is_some_and(|known| Arc::ptr_eq(known, writing));
        if is_it && writing.is_left(generation) {
            all.remove(key);
            drop(all);
            self.bucket().say(&format!(
                "{}/{key}: its writer has gone without closing it; nothing of it was put into the bucket",
                self.bucket().name()
            ));
            writing.abandon();
        }
    }

    /// What was written is lost.
    pub(crate) fn give_up(&self, key: &str, writing: &Arc<Writing>) {
        let mut all = guard(&self.writing);
        if all.get(key).is_some_and(|known| Arc::ptr_eq(known, writing)) {
            all.remove(key);
        }
        drop(all);
        writing.abandon();
    }

    /// The file at a key is not to be written any more, whoever does.
    pub(crate) fn stop_writing(&self, key: &str) -> Option<Arc<Writing>> {
        guard(&self.writing).remove(key)
    }

    pub(crate) fn locks(&self, key: &str) -> Arc<FileLocks> {
        let mut all = guard(&self.locks);
        all.retain(|_, locks| locks.strong_count() > 0);
        if let Some(locks) = all.get(key).and_then(Weak::upgrade) {
            return locks;
        }
        let locks = Arc::<FileLocks>::default();
        all.insert(key.to_owned(), Arc::downgrade(&locks));
        locks
    }

    pub(crate) fn qid(&self, key: &str, found: &Found) -> Qid {
        let (kind, version) = match found {
            Found::Directory => (QidType::DIR, 0),
            Found::File(meta) => (QidType::empty(), meta.version()),
            // Whoever closes it is to wait for what becomes of it.
            Found::Pending(writing) => (QidType::EXCLUSIVE, writing.version()),
        };
        Qid { kind, version, path: self.identity(key) }
    }

    /// A number for a key of this bucket.
    pub(crate) fn identity(&self, key: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.bucket().name(), key).hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn attributes(&self, key: &str, found: &Found) -> Attributes {
        let (kind, size, mtime) = match found {
            Found::Directory => (mode::DIRECTORY | 0o755, 0, self.began),
            Found::File(meta) => (mode::REGULAR | 0o644, meta.size, meta.mtime),
            Found::Pending(writing) => (mode::REGULAR | 0o644, writing.size(), writing.mtime()),
        };
        let qid = self.qid(key, found);
        let none = Time { seconds: 0, nanoseconds: 0 };
        Attributes {
            valid: match found {
                // A writer that is killed leaves what was there before.
                Found::Pending(_) => GetattrMask::BASIC | GetattrMask::CLOSE_COUNTS,
                Found::Directory | Found::File(_) => GetattrMask::BASIC,
            },
            qid,
            mode: kind,
            uid: self.owner.0,
            gid: self.owner.1,
            nlink: match found {
                Found::Directory => 2,
                Found::Pending(writing) if writing.is_removed() => 0,
                Found::File(_) | Found::Pending(_) => 1,
            },
            size,
            block_size: 1 << 20,
            blocks: size.div_ceil(512),
            atime: mtime,
            mtime,
            ctime: mtime,
            rdev: 0,
            btime: none,
            generation: 0,
            data_version: 0,
        }
    }
}

/// There is none of that name.
pub(crate) fn missing(operation: &'static str) -> store::Error {
    refusal(operation, Errno::ENOENT)
}
