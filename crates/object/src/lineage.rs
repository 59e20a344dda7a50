//! Files of a bucket under a log, over their versions and names: a file that the log's drain replaces or renames is the same
//! file for who has it open. In the bucket there is only what a key has at the moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use p9::Errno;
use store::Result;

use crate::bucket::Meta;
use crate::error::refusal;
use crate::read::Reader;
use crate::tree::Tree;

/// How often a read begins anew because the version was replaced under it.
const REPLACED_MAX: usize = 16;

/// A file.
pub(crate) struct Lineage {
    pub(crate) number: u64,
    now: Mutex<Now>,
}

/// What it is at the moment.
struct Now {
    key: String,
    /// False when its name is gone, or another file's: what is left of it is what was under that key.
    is_named: bool,
    meta: Meta,
    reader: Option<Arc<Reader>>,
}

impl Now {
    fn become_version(&mut self, meta: Meta) {
        if self.meta.etag != meta.etag || self.meta.size != meta.size {
            self.reader = None;
        }
        self.meta = meta;
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lineage {
    /// Its key, as long as that is its own.
    pub(crate) fn key(&self) -> Option<String> {
        let now = guard(&self.now);
        now.is_named.then(|| now.key.clone())
    }

    pub(crate) fn meta(&self) -> Meta {
        guard(&self.now).meta.clone()
    }

    /// Asks what it is now.
    ///
    /// # Errors
    /// `ESTALE` where its name is gone.
    pub(crate) fn look(&self, tree: &Tree, operation: &'static str) -> Result<Meta> {
        let mut now = guard(&self.now);
        if !now.is_named {
            return Err(refusal(operation, Errno::ESTALE));
        }
        let found = tree.bucket().head(operation, &now.key)?;
        let meta = found.ok_or(refusal(operation, Errno::ESTALE))?;
        now.become_version(meta.clone());
        Ok(meta)
    }

    fn reader(&self, tree: &Tree) -> Arc<Reader> {
        let mut now = guard(&self.now);
        let Now { key, meta, reader, .. } = &mut *now;
        let fresh = || Arc::new(Reader::new(&tree.shared, key, meta.clone()));
        Arc::clone(reader.get_or_insert_with(fresh))
    }

    /// Has the version read at last: of what is read of two, the log has what differs.
    pub(crate) fn read_at(&self, tree: &Tree, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut last = self.reader(tree);
        for _ in 0..REPLACED_MAX {
            match last.read_at(buffer, offset) {
                Err(error) if error.to_errno() == Errno::ESTALE => {}
                done => return done,
            }
            let next = self.reader(tree);
            if Arc::ptr_eq(&last, &next) {
                let before = last.meta().etag.clone();
                if self.look(tree, "read")?.etag == before {
                    return Err(refusal("read", Errno::ESTALE));
                }
            }
            last = self.reader(tree);
        }
        Err(refusal("read", Errno::ESTALE))
    }
}

/// All that somebody has.
#[derive(Default)]
pub(crate) struct Lineages {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_key: HashMap<String, Weak<Lineage>>,
    by_number: HashMap<u64, Weak<Lineage>>,
    sweep_at: usize,
}

impl Table {
    fn sweep(&mut self) {
        if self.by_number.len() > self.sweep_at {
            self.by_key.retain(|_, file| file.strong_count() > 0);
            self.by_number.retain(|_, file| file.strong_count() > 0);
            self.sweep_at = (2 * self.by_number.len()).max(1024);
        }
    }
}

impl Lineages {
    fn known(&self, key: &str) -> Option<Arc<Lineage>> {
        guard(&self.table).by_key.get(key).and_then(Weak::upgrade)
    }

    /// The file that an object is.
    pub(crate) fn of(&self, tree: &Tree, key: &str, meta: Meta) -> Arc<Lineage> {
        let mut table = guard(&self.table);
        // What was seen of it on the way here may be older than what is known.
        if let Some(file) = table.by_key.get(key).and_then(Weak::upgrade) {
            return file;
        }
        // Another that had this key once may have the number.
        let is_free = |table: &Table, number: &u64| {
            table.by_number.get(number).is_none_or(|file| file.strong_count() == 0)
        };
        let first = tree.identity(key);
        let number = (0..).map(|n| first ^ n << 1).find(|number| is_free(&table, number));
        let number = number.unwrap_or(first);
        let now = Now { key: key.to_owned(), is_named: true, meta, reader: None };
        let file = Arc::new(Lineage { number, now: Mutex::new(now) });
        table.by_key.insert(key.to_owned(), Arc::downgrade(&file));
        table.by_number.insert(number, Arc::downgrade(&file));
        table.sweep();
        file
    }

    /// The file at a key has another version.
    pub(crate) fn replaced(&self, key: &str, meta: Meta) {
        if let Some(file) = self.known(key) {
            guard(&file.now).become_version(meta);
        }
    }

    /// The file at a key has lost it.
    pub(crate) fn removed(&self, key: &str) {
        let file = guard(&self.table).by_key.remove(key).and_then(|file| file.upgrade());
        if let Some(file) = file {
            guard(&file.now).is_named = false;
        }
    }

    /// Moves the file of a key by `work`, which says what it is then. Who reads it waits.
    pub(crate) fn rename(
        &self,
        from: &str,
        to: &str,
        work: impl FnOnce() -> Result<Meta>,
    ) -> Result<()> {
        let Some(file) = self.known(from) else {
            self.removed(to);
            return work().map(drop);
        };
        self.removed(to);
        let mut now = guard(&file.now);
        let meta = work()?;
        *now = Now { key: to.to_owned(), is_named: true, meta, reader: None };
        drop(now);
        let mut table = guard(&self.table);
        table.by_key.remove(from);
        table.by_key.insert(to.to_owned(), Arc::downgrade(&file));
        Ok(())
    }
}
