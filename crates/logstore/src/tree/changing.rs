//! Changing names in memory: the record is written.

use std::sync::Arc;

use hostlog::Sequence;
use p9::Errno;

use super::{Access, Tree, guard};
use crate::error::refusal;
use crate::inode::{Body, Inode};
use crate::names::{Entry, Place, Slot};

impl Tree {
    /// Sees to it that names in a directory may be changed.
    pub(crate) fn check_change(
        &self,
        operation: &'static str,
        dir: &Arc<Inode>,
    ) -> store::Result<()> {
        let names = dir.names(operation)?;
        self.user.check(operation, dir, Access::SEARCH)?;
        self.user.check(operation, dir, Access::WRITE)?;
        let is_writable = {
            let names = guard(names);
            if names.is_removed {
                return Err(refusal(operation, Errno::ENOENT));
            }
            names.is_writable
        };
        if !is_writable {
            self.check_writable(operation, dir)?;
            guard(names).is_writable = true;
        }
        dir.load_meta(operation)
    }

    /// Asks the target to change nothing, which what is read-only refuses all the same.
    pub(crate) fn check_writable(
        &self,
        operation: &'static str,
        inode: &Inode,
    ) -> store::Result<()> {
        match inode.base_node(operation)? {
            Some(base) => base.set_attributes(&p9::SetAttributes::default()),
            None => Ok(()),
        }
    }

    pub(crate) fn put(&self, dir: &Arc<Inode>, name: &[u8], entry: &Arc<Entry>, since: Sequence) {
        entry.inode.add_bound(dir, name);
        entry.move_to(Some(Place { dir: Arc::clone(dir), name: name.to_vec() }));
        {
            let mut known = guard(&entry.inode.entries);
            known.retain(|other| other.strong_count() > 0);
            if !known.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(entry))) {
                known.push(Arc::downgrade(entry));
            }
        }
        entry.inode.touched_by(since);
        self.hold(&entry.inode);
        self.set(dir, name, Slot::Present { entry: Arc::clone(entry), since }, since);
    }

    pub(crate) fn cut(&self, dir: &Arc<Inode>, name: &[u8], since: Sequence) {
        self.set(dir, name, Slot::Removed { since }, since);
    }

    fn set(&self, dir: &Arc<Inode>, name: &[u8], slot: Slot, since: Sequence) {
        if let Body::Directory(names) = &dir.body {
            guard(names).set(name, slot);
        }
        self.hold(dir);
        dir.touched_by(since);
        dir.touch_content(self.user.uid);
        let place = Place { dir: Arc::clone(dir), name: name.to_vec() };
        guard(&self.undrained).entry(since).or_default().push(place);
    }

    /// Takes out the names that were changed up to `through`.
    pub(crate) fn take_undrained(&self, through: Sequence) -> Vec<Place> {
        let mut all = guard(&self.undrained);
        let later = all.split_off(&Sequence(through.0 + 1));
        let drained = std::mem::replace(&mut *all, later);
        drained.into_values().flatten().collect()
    }
}
