//! Names: what is in a directory, and changes of it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, Weak};

use p9::Errno;

use super::inode::{Access, Body, Inode};
use super::{Tree, guard, reading, refusal, writing};
use crate::error::Result;

/// One name of a file. It stays the same entry when it is renamed, and so leads a node that was
/// walked to under the old name to the new one.
pub(super) struct Entry {
    pub(super) inode: Arc<Inode>,
    /// None for the root and for what was removed. Changed only under [`Tree::changes`].
    place: Mutex<Option<Place>>,
}

#[derive(Clone)]
struct Place {
    dir: Weak<Entry>,
    name: Vec<u8>,
}

impl Entry {
    pub(super) fn unplaced(inode: Arc<Inode>) -> Arc<Self> {
        Arc::new(Self { inode, place: Mutex::new(None) })
    }

    /// The directory that the entry is in, and its name there.
    pub(super) fn place(&self) -> Option<(Arc<Entry>, Vec<u8>)> {
        let place = guard(&self.place).clone()?;
        Some((place.dir.upgrade()?, place.name))
    }
}

/// The first cookie of an entry; `.` and `..` have those before.
pub(super) const FIRST_COOKIE: u64 = 3;

/// What is in a directory. Cookies only grow: a listing neither skips nor repeats an entry that
/// was there all the while.
pub(super) struct Entries {
    by_name: BTreeMap<Vec<u8>, (u64, Arc<Entry>)>,
    by_cookie: BTreeMap<u64, Vec<u8>>,
    next_cookie: u64,
    /// The directory itself was removed: nothing can be put into it.
    removed: bool,
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            by_name: BTreeMap::new(),
            by_cookie: BTreeMap::new(),
            next_cookie: FIRST_COOKIE,
            removed: false,
        }
    }
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Arc<Entry>> {
        self.by_name.get(name).map(|(_, entry)| Arc::clone(entry))
    }

    /// Up to `count` entries behind a cookie.
    pub(super) fn behind(&self, cookie: u64, count: usize) -> Vec<(u64, Vec<u8>, Arc<Entry>)> {
        let rest = self.by_cookie.range((Bound::Excluded(cookie), Bound::Unbounded));
        rest.take(count)
            .filter_map(|(cookie, name)| Some((*cookie, name.clone(), self.get(name)?)))
            .collect()
    }

    fn insert(&mut self, name: &[u8], entry: Arc<Entry>) {
        self.take(name);
        self.by_cookie.insert(self.next_cookie, name.to_vec());
        self.by_name.insert(name.to_vec(), (self.next_cookie, entry));
        self.next_cookie += 1;
    }

    fn take(&mut self, name: &[u8]) -> Option<Arc<Entry>> {
        let (cookie, entry) = self.by_name.remove(name)?;
        self.by_cookie.remove(&cookie);
        Some(entry)
    }
}

impl Tree {
    fn user(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// The entry of that name.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`, `ENOENT`.
    pub(super) fn look_up(
        &self,
        operation: &'static str,
        dir: &Entry,
        name: &[u8],
    ) -> Result<Arc<Entry>> {
        let entries = dir.inode.entries(operation)?;
        dir.inode.check(operation, self.user(), Access::SEARCH)?;
        reading(entries).get(name).ok_or(refusal(operation, Errno::ENOENT))
    }

    /// Whether names in that directory may be changed.
    fn check_change(&self, operation: &'static str, dir: &Entry) -> Result<()> {
        let entries = dir.inode.entries(operation)?;
        dir.inode.check(operation, self.user(), Access::SEARCH)?;
        dir.inode.check(operation, self.user(), Access::WRITE)?;
        if reading(entries).removed { Err(refusal(operation, Errno::ENOENT)) } else { Ok(()) }
    }

    fn put(&self, dir: &Arc<Entry>, name: &[u8], entry: &Arc<Entry>) {
        if let Body::Directory(entries) = &dir.inode.body {
            writing(entries).insert(name, Arc::clone(entry));
            *guard(&entry.place) = Some(Place { dir: Arc::downgrade(dir), name: name.to_vec() });
            dir.inode.touch_content(self.uid);
        }
    }

    fn cut(&self, dir: &Entry, name: &[u8]) {
        if let Body::Directory(entries) = &dir.inode.body {
            // The entry's files may be freed by dropping it: not under the lock.
            let entry = writing(entries).take(name);
            drop(entry);
            dir.inode.touch_content(self.uid);
        }
    }

    /// Adds a name for what `make` gives, given owner, group and the bits of the mode that are
    /// inherited.
    ///
    /// # Errors
    /// As open(2) with `O_CREAT | O_EXCL`.
    pub(super) fn add(
        &self,
        operation: &'static str,
        dir: &Arc<Entry>,
        name: &[u8],
        make: impl FnOnce((u32, u32), u32) -> Inode,
    ) -> Result<Arc<Entry>> {
        let _turn = guard(&self.changes);
        let exists = self.look_up(operation, dir, name);
        if exists.is_ok() {
            return Err(refusal(operation, Errno::EEXIST));
        }
        self.check_change(operation, dir)?;
        self.space.take_file(operation)?;
        // A set-group-ID directory gives its group to what is made in it, and to directories the
        // bit too (inode(7)).
        let (group, mode) = dir.inode.group_and_mode();
        let (group, inherited) = if mode & 0o2000 != 0 { (group, 0o2000) } else { (self.gid, 0) };
        let entry = Entry::unplaced(Arc::new(make((self.uid, group), inherited)));
        if entry.inode.is_directory() {
            dir.inode.add_links(1);
        }
        self.put(dir, name, &entry);
        Ok(entry)
    }

    /// Adds another name for a file.
    ///
    /// # Errors
    /// As link(2).
    pub(super) fn link(&self, dir: &Arc<Entry>, name: &[u8], inode: &Arc<Inode>) -> Result<()> {
        let refuse = |errno| Err(refusal("link", errno));
        let _turn = guard(&self.changes);
        if self.look_up("link", dir, name).is_ok() {
            return refuse(Errno::EEXIST);
        }
        self.check_change("link", dir)?;
        if inode.is_directory() {
            return refuse(Errno::EPERM);
        }
        if inode.nlink() == 0 {
            return refuse(Errno::ENOENT);
        }
        inode.add_links(1);
        self.put(dir, name, &Entry::unplaced(Arc::clone(inode)));
        Ok(())
    }

    /// Removes a name.
    ///
    /// # Errors
    /// As unlinkat(2).
    pub(super) fn remove(&self, dir: &Entry, name: &[u8], directory: bool) -> Result<()> {
        let refuse = |errno| Err(refusal("unlink", errno));
        let _turn = guard(&self.changes);
        let entry = self.look_up("unlink", dir, name)?;
        self.check_change("unlink", dir)?;
        match (entry.inode.is_directory(), directory) {
            (true, false) => return refuse(Errno::EISDIR),
            (false, true) => return refuse(Errno::ENOTDIR),
            _ => {}
        }
        self.retire(&entry)?;
        if directory {
            dir.inode.add_links(-1);
        }
        self.cut(dir, name);
        Ok(())
    }

    /// Makes an entry ready to be taken out: directories must be empty.
    fn retire(&self, entry: &Entry) -> Result<()> {
        if let Body::Directory(entries) = &entry.inode.body {
            let mut entries = writing(entries);
            if entries.len() != 0 {
                return Err(refusal("unlink", Errno::ENOTEMPTY));
            }
            entries.removed = true;
            drop(entries);
            entry.inode.add_links(-2);
        } else {
            entry.inode.add_links(-1);
        }
        *guard(&entry.place) = None;
        Ok(())
    }

    /// Moves a name, replacing what has the new one.
    ///
    /// # Errors
    /// As rename(2).
    pub(super) fn rename(
        &self,
        old_dir: &Arc<Entry>,
        old: &[u8],
        new_dir: &Arc<Entry>,
        new: &[u8],
    ) -> Result<()> {
        let refuse = |errno| Err(refusal("rename", errno));
        let _turn = guard(&self.changes);
        old_dir.inode.entries("rename")?;
        new_dir.inode.entries("rename")?;
        let moved = self.look_up("rename", old_dir, old)?;
        self.check_change("rename", old_dir)?;
        self.check_change("rename", new_dir)?;
        if is_within(new_dir, &moved) {
            return refuse(Errno::EINVAL);
        }
        let replaced = self.look_up("rename", new_dir, new).ok();
        let is_directory = moved.inode.is_directory();
        if let Some(replaced) = &replaced {
            // Two names of one file: nothing happens, and both stay (rename(2)).
            if Arc::ptr_eq(&replaced.inode, &moved.inode) {
                return Ok(());
            }
            if is_within(old_dir, replaced) {
                return refuse(Errno::ENOTEMPTY);
            }
            match (is_directory, replaced.inode.is_directory()) {
                (true, false) => return refuse(Errno::ENOTDIR),
                (false, true) => return refuse(Errno::EISDIR),
                _ => {}
            }
            self.retire(replaced)?;
            if is_directory {
                new_dir.inode.add_links(-1);
            }
        }
        // First in, then out: a look-up meanwhile may find both names, but never none.
        self.put(new_dir, new, &moved);
        self.cut(old_dir, old);
        if is_directory {
            old_dir.inode.add_links(-1);
            new_dir.inode.add_links(1);
        }
        moved.inode.add_links(0);
        Ok(())
    }
}

/// Whether `entry` is `above` or lies somewhere below it.
fn is_within(entry: &Arc<Entry>, above: &Arc<Entry>) -> bool {
    let mut here = Some(Arc::clone(entry));
    while let Some(entry) = here {
        if Arc::ptr_eq(&entry.inode, &above.inode) {
            return true;
        }
        here = entry.place().map(|(dir, _)| dir);
    }
    false
}

impl Drop for Tree {
    /// Takes the tree down from the top: dropping it as it hangs would need as much stack as it
    /// is deep, and how deep is the clients' choice.
    fn drop(&mut self) {
        let mut rest = vec![Arc::clone(&self.root)];
        while let Some(entry) = rest.pop() {
            if let Body::Directory(entries) = &entry.inode.body {
                let mut entries = writing(entries);
                entries.by_cookie.clear();
                rest.extend(std::mem::take(&mut entries.by_name).into_values().map(|(_, e)| e));
            }
        }
    }
}
