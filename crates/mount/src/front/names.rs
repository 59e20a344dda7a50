//! What the kernel asks about names: looking up, making, removing, moving.

use std::sync::Arc;
use std::time::Duration;

use fuser::FileAttr;
use p9::{Attributes, Errno, OpenFlags, SetAttributes, SetattrMask, mode};
use store::Node;

use super::attributes::file_attr;
use super::{ATTRIBUTES_TTL, Asking, Front, errno};

/// What the kernel is told of a name.
pub(super) struct Entry {
    pub(super) attr: FileAttr,
    /// How long the kernel may take the name for granted. A file that somebody else has put in the
    /// place of this one must be found by the next open, as close-to-open consistency has it; so
    /// only directories are.
    pub(super) name_ttl: Duration,
}

impl Front {
    pub(super) fn look_up(&self, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        let dir = self.nodes.get(parent)?;
        let walk = dir.walk(&[name]).map_err(errno)?;
        let node = walk.end.ok_or(Errno::ENOENT)?;
        let found = node.attributes().map_err(errno)?;
        Ok(self.enter(parent, name, &node, &found))
    }

    /// Writes down what was found, or made, at a name.
    pub(super) fn enter(
        &self,
        parent: u64,
        name: &[u8],
        node: &Arc<dyn Node>,
        found: &Attributes,
    ) -> Entry {
        let number = self.nodes.enter(parent, name, node, found);
        let name_ttl = if found.is_directory() { ATTRIBUTES_TTL } else { Duration::ZERO };
        Entry { attr: file_attr(number, found), name_ttl }
    }

    pub(super) fn make_directory(
        &self,
        asking: Asking,
        parent: u64,
        name: &[u8],
        mode: u32,
    ) -> Result<Entry, Errno> {
        let dir = self.nodes.get(parent)?;
        dir.make_directory(name, mode & mode::PERMISSIONS).map_err(errno)?;
        self.give(asking, &dir, name)?;
        self.look_up(parent, name)
    }

    pub(super) fn make_symlink(
        &self,
        asking: Asking,
        parent: u64,
        name: &[u8],
        target: &[u8],
    ) -> Result<Entry, Errno> {
        let dir = self.nodes.get(parent)?;
        dir.make_symlink(name, target).map_err(errno)?;
        self.give(asking, &dir, name)?;
        self.look_up(parent, name)
    }

    /// Regular files only: stores have no word for devices, FIFOs and sockets.
    pub(super) fn make_node(
        &self,
        asking: Asking,
        parent: u64,
        name: &[u8],
        mode: u32,
    ) -> Result<Entry, Errno> {
        if mode & mode::TYPE_MASK != mode::REGULAR {
            return Err(Errno::EPERM);
        }
        let dir = self.nodes.get(parent)?;
        let flags = OpenFlags::WRITE_ONLY | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        dir.create(name, flags, mode & mode::PERMISSIONS).map_err(errno)?;
        self.give(asking, &dir, name)?;
        self.look_up(parent, name)
    }

    pub(super) fn link(&self, number: u64, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        let existing = self.nodes.get(number)?;
        let dir = self.nodes.get(parent)?;
        dir.link(&*existing, name).map_err(errno)?;
        self.look_up(parent, name)
    }

    pub(super) fn remove(&self, parent: u64, name: &[u8], directory: bool) -> Result<(), Errno> {
        let dir = self.nodes.get(parent)?;
        dir.remove(name, directory).map_err(errno)?;
        self.nodes.removed(parent, name);
        Ok(())
    }

    /// With `no_replace` nothing that is there is replaced; 9P has no word for that, so a file that
    /// another client makes at that very moment is, as everywhere in Sluice.
    pub(super) fn rename(
        &self,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        no_replace: bool,
    ) -> Result<(), Errno> {
        let dir = self.nodes.get(from.0)?;
        let new_dir = self.nodes.get(to.0)?;
        if no_replace {
            match new_dir.walk(&[to.1]).map_err(errno) {
                Ok(_) => return Err(Errno::EEXIST),
                Err(Errno::ENOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        dir.rename(from.1, &*new_dir, to.1).map_err(errno)?;
        self.nodes.renamed(from, to);
        Ok(())
    }

    /// Gives what was just made to whoever asked for it, where that is somebody else than the store
    /// acts for. Only root's stores can; of others all files are the same user's.
    fn give(&self, asking: Asking, dir: &Arc<dyn Node>, name: &[u8]) -> Result<(), Errno> {
        if !self.options.allow_other {
            return Ok(());
        }
        let Some(node) = dir.walk(&[name]).map_err(errno)?.end else { return Ok(()) };
        self.give_node(asking, dir, &node)
    }

    /// As [`Front::give`], for a node that is at hand.
    pub(super) fn give_node(
        &self,
        asking: Asking,
        dir: &Arc<dyn Node>,
        node: &Arc<dyn Node>,
    ) -> Result<(), Errno> {
        if !self.options.allow_other {
            return Ok(());
        }
        let found = node.attributes().map_err(errno)?;
        let dir = dir.attributes().map_err(errno)?;
        // A directory with S_ISGID gives its own group to what is made in it (inode(7)).
        let gid = if dir.mode & 0o2000 != 0 { dir.gid } else { asking.gid };
        if (found.uid, found.gid) == (asking.uid, gid) {
            return Ok(());
        }
        let mut set = SetAttributes {
            valid: SetattrMask::UID | SetattrMask::GID,
            uid: asking.uid,
            gid,
            ..SetAttributes::default()
        };
        match node.set_attributes(&set).map_err(errno) {
            Err(Errno::EPERM) => return Ok(()),
            other => other?,
        }
        // chown(2) takes S_ISUID and S_ISGID away.
        let lost = found.mode & 0o6000;
        if lost != 0 && !found.is_symlink() {
            set = SetAttributes {
                valid: SetattrMask::MODE,
                mode: found.mode & mode::PERMISSIONS,
                ..SetAttributes::default()
            };
            node.set_attributes(&set).map_err(errno)?;
        }
        Ok(())
    }
}
