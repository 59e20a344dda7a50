//! Finding files by their names, and names of files.

use std::sync::Arc;

use p9::Errno;

use super::{Access, RACES_MAX, Tree, guard};
use crate::error::refusal;
use crate::inode::Inode;
use crate::names::{Entry, Place, Slot};

impl Tree {
    /// Checks a name that is to be in a directory.
    pub(crate) fn check_name(
        &self,
        operation: &'static str,
        name: &[u8],
        for_dots: Errno,
    ) -> store::Result<()> {
        store::check_name(operation, name, for_dots)?;
        if name.len() > self.name_bytes_max {
            return Err(refusal(operation, Errno::ENAMETOOLONG));
        }
        Ok(())
    }

    /// Refuses what a target of whole files can never have: links, and directories that move.
    pub(crate) fn check_possible(
        &self,
        operation: &'static str,
        errno: Errno,
    ) -> store::Result<()> {
        if self.of_wholes.is_some() { Err(refusal(operation, errno)) } else { Ok(()) }
    }

    /// Checks a path that something is to have.
    pub(crate) fn check_path(&self, operation: &'static str, path: &[u8]) -> store::Result<()> {
        match self.of_wholes.as_ref().and_then(|target| target.wholes()) {
            Some(wholes) => wholes.check(operation, path),
            None => Ok(()),
        }
    }

    /// The entry of that name.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`, `ENOENT`, and what the target says.
    pub(crate) fn look_up(
        &self,
        operation: &'static str,
        dir: &Arc<Inode>,
        name: &[u8],
    ) -> store::Result<Arc<Entry>> {
        let names = dir.names(operation)?;
        self.user.check(operation, dir, Access::SEARCH)?;
        let none = || refusal(operation, Errno::ENOENT);
        for _ in 0..RACES_MAX {
            let before = {
                let names = guard(names);
                match names.get(name) {
                    Some(Slot::Present { entry, .. }) => return Ok(Arc::clone(entry)),
                    Some(Slot::Removed { .. }) => return Err(none()),
                    Some(Slot::Seen(_)) | None => names.given_back,
                }
            };
            let base = dir.base_node(operation)?.ok_or_else(none)?;
            let node = base.walk(&[name])?.end.ok_or_else(none)?;
            let inode = self.inode_of(node);
            let mut names = guard(names);
            match names.get(name) {
                Some(Slot::Present { entry, .. }) => return Ok(Arc::clone(entry)),
                Some(Slot::Removed { .. }) => return Err(none()),
                Some(Slot::Seen(_)) | None if names.given_back != before => continue,
                Some(Slot::Seen(entry)) => {
                    let known = entry.upgrade();
                    if let Some(entry) = known.filter(|entry| Arc::ptr_eq(&entry.inode, &inode)) {
                        return Ok(entry);
                    }
                }
                None => {}
            }
            let entry = Entry::placed(inode, dir, name);
            names.set(name, Slot::Seen(Arc::downgrade(&entry)));
            return Ok(entry);
        }
        Err(refusal(operation, Errno::EAGAIN))
    }

    /// The path of a name from the target's root, if it still has one.
    pub(crate) fn path_of(&self, place: &Place) -> Option<Vec<u8>> {
        let mut elements = vec![place.name.clone()];
        let mut dir = Arc::clone(&place.dir);
        while !Arc::ptr_eq(&dir, &self.root.inode) {
            let home = guard(&dir.home).clone()?;
            elements.push(home.name);
            dir = home.dir;
        }
        elements.reverse();
        Some(elements.join(&b'/'))
    }

    /// A path by which an inode can be found.
    pub(crate) fn path_of_inode(&self, inode: &Arc<Inode>) -> Option<Vec<u8>> {
        if Arc::ptr_eq(inode, &self.root.inode) {
            return Some(Vec::new());
        }
        self.places_of(inode).iter().find_map(|place| self.path_of(place))
    }

    /// Whether `dir` is `above` or lies somewhere below it.
    pub(crate) fn is_within(&self, dir: &Arc<Inode>, above: &Arc<Inode>) -> bool {
        let mut here = Some(Arc::clone(dir));
        while let Some(inode) = here {
            if Arc::ptr_eq(&inode, above) {
                return true;
            }
            here = guard(&inode.home).as_ref().map(|home| Arc::clone(&home.dir));
        }
        false
    }
}
