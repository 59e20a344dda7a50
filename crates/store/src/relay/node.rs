//! Nodes of a relayed service.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use client::Handle;
use p9::{Attributes, Errno, OpenFlags, Qid, SetAttributes, StatFs};

use crate::error::{Error, Result};
use crate::name;
use crate::node::{Node, OpenNode, Walk};
use crate::relay::names::{Names, Way, Whereabouts};
use crate::relay::open::RelayFile;
use crate::relay::refused;

/// What all nodes of one store share.
pub(super) struct Tree {
    pub(super) place: Handle,
    pub(super) identity: Qid,
    pub(super) names: Names,
}

/// A fid at the other service.
pub(super) struct RelayNode {
    tree: Arc<Tree>,
    place: Handle,
    whereabouts: Arc<Whereabouts>,
    qid: Qid,
    /// The file's version as the other service last told it. Whoever wants a newer one asks for attributes: a request
    /// for each look at [`Node::qid`] would make every read two round trips.
    version: AtomicU32,
}

impl RelayNode {
    pub(super) fn new(tree: &Arc<Tree>, place: Handle, way: Way, qid: Qid) -> Self {
        let whereabouts = tree.names.add(way);
        let version = AtomicU32::new(qid.version);
        Self { tree: Arc::clone(tree), place, whereabouts, qid, version }
    }

    fn learn(&self, told: Qid) {
        self.version.store(told.version, Ordering::Relaxed);
    }

    /// The place, ready to be found again where it is by now.
    fn place(&self) -> &Handle {
        if let Some(way) = self.whereabouts.get() {
            self.tree.tell(&self.place, &way);
        }
        &self.place
    }

    /// From the store's root.
    ///
    /// # Errors
    /// `ENOENT` when the name is gone.
    fn way(&self, operation: &'static str) -> Result<Way> {
        self.whereabouts.get().ok_or(Error::System { operation, errno: Errno::ENOENT })
    }

    /// Where `name` in this directory is, if the directory is somewhere.
    fn way_of(&self, name: &[u8]) -> Option<Way> {
        let mut way = self.whereabouts.get()?;
        way.push(name.to_vec());
        Some(way)
    }

    /// Another node of the same store.
    fn own<'n>(&self, other: &'n dyn Node, operation: &'static str) -> Result<&'n Self> {
        let other: &dyn Any = other;
        match other.downcast_ref::<Self>() {
            Some(node) if Arc::ptr_eq(&node.tree, &self.tree) => Ok(node),
            _ => Err(Error::AcrossStores { operation }),
        }
    }
}

impl Tree {
    /// Tells a handle where its file is, if that has changed.
    pub(super) fn tell(&self, handle: &Handle, way: &Way) {
        let root = self.place.path();
        let mut path = root.to_vec();
        for name in way {
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name);
        }
        if *handle.location() != path[..] {
            handle.relocate(&path);
        }
    }
}

impl Drop for RelayNode {
    fn drop(&mut self) {
        self.tree.names.drop_one(&self.whereabouts);
    }
}

impl Node for RelayNode {
    fn qid(&self) -> Qid {
        Qid { version: self.version.load(Ordering::Relaxed), ..self.qid }
    }

    fn blocks(&self) -> bool {
        true
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let known = self.whereabouts.get();
        let mut way = known.clone().unwrap_or_default();
        let mut sent: Vec<&[u8]> = Vec::with_capacity(names.len());
        let mut parts = Vec::with_capacity(names.len());
        for name in names {
            let part = match *name {
                // No element of a walk at a service (walk(5)).
                b"." => Part::Same,
                // Above the store's root there may be more at the other service.
                b".." if known.is_some() && way.pop().is_none() => Part::Root,
                b".." => Part::Sent,
                name => match name::check("walk", name, Errno::ENOENT) {
                    Ok(()) => {
                        way.push(name.to_vec());
                        Part::Sent
                    }
                    Err(error) if parts.is_empty() => return Err(error),
                    Err(_) => break,
                },
            };
            if part == Part::Sent {
                sent.push(name);
            }
            parts.push(part);
        }
        let whole = parts.len() == names.len();
        let (found, end) = match self.place().walk(&sent) {
            // The first name that was sent was not the first of all.
            Err(client::Error::Refused(_)) if parts.first().is_some_and(|p| *p != Part::Sent) => {
                (Vec::new(), None)
            }
            other => other.map_err(refused("walk"))?,
        };
        let mut found = found.into_iter();
        let mut qids: Vec<Qid> = Vec::with_capacity(names.len());
        for part in parts {
            let qid = match part {
                Part::Sent => found.next(),
                Part::Root => Some(self.tree.identity),
                Part::Same => Some(qids.last().copied().unwrap_or(self.qid())),
            };
            match qid {
                Some(qid) => qids.push(qid),
                None => break,
            }
        }
        let end = end.filter(|_| whole);
        let end = end.map(|place| {
            let qid = qids.last().copied().unwrap_or(self.qid());
            let node = Self::new(&self.tree, place, way, qid);
            if known.is_none() {
                self.tree.names.drop_one(&node.whereabouts);
            }
            Arc::new(node) as Arc<dyn Node>
        });
        Ok(Walk { qids, end })
    }

    fn attributes(&self) -> Result<Attributes> {
        let found = self.place().attributes().map_err(refused("stat"))?;
        self.learn(found.qid);
        Ok(found)
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.place().set_attributes(set).map_err(refused("setattr"))
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        let flags = flags - OpenFlags::CREATE - OpenFlags::EXCLUSIVE;
        let handle = self.place().open_here(flags).map_err(refused("open"))?;
        self.learn(handle.qid());
        Ok(Arc::new(RelayFile::new(&self.tree, &self.whereabouts, handle, flags)))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        name::check("open", name, Errno::EISDIR)?;
        let flags = flags | OpenFlags::CREATE;
        let created = self.place().create_here(name, flags, mode);
        let (place, handle) = created.map_err(refused("open"))?;
        let way =
            self.way_of(name).ok_or(Error::System { operation: "open", errno: Errno::ENOENT })?;
        let qid = place.qid();
        let node = Self::new(&self.tree, place, way, qid);
        let open = RelayFile::new(&self.tree, &node.whereabouts, handle, flags);
        Ok((Arc::new(node), Arc::new(open)))
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        name::check("mkdir", name, Errno::EEXIST)?;
        self.place().make_directory_here(name, mode).map_err(refused("mkdir"))
    }

    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        name::check("symlink", name, Errno::EEXIST)?;
        self.place().symlink_here(name, target).map_err(refused("symlink"))
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        name::check("link", name, Errno::EEXIST)?;
        let existing = self.own(existing, "link")?;
        self.place().link_here(existing.place(), name).map_err(refused("link"))
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        self.place().read_link_here().map_err(refused("readlink"))
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        name::check("rename", old, Errno::EBUSY)?;
        name::check("rename", new, Errno::EBUSY)?;
        let new_dir = self.own(new_dir, "rename")?;
        let same = self.is_same_file(old, new_dir, new);
        self.place().rename_here(old, new_dir.place(), new).map_err(refused("rename"))?;
        if let (Some(from), Some(to), false) = (self.way_of(old), new_dir.way_of(new), same) {
            self.tree.names.renamed(&from, &to);
        }
        Ok(())
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        let dots = if directory { Errno::EINVAL } else { Errno::EISDIR };
        name::check("unlink", name, dots)?;
        self.place().remove_here(name, directory).map_err(refused("unlink"))?;
        if let Some(way) = self.way_of(name) {
            self.tree.names.removed(&way);
        }
        Ok(())
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let mut way = self.way("parent")?;
        let lost = || Error::System { operation: "parent", errno: Errno::ENOENT };
        let name = way.pop().ok_or_else(lost)?;
        let names: Vec<&[u8]> = way.iter().map(Vec::as_slice).collect();
        let (qids, place) = self.tree.place.walk(&names).map_err(refused("parent"))?;
        let place = place.ok_or_else(lost)?;
        let qid = qids.last().copied().unwrap_or(self.tree.identity);
        Ok((Arc::new(Self::new(&self.tree, place, way, qid)), name))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.place().statfs().map_err(refused("statfs"))
    }

    fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        if name.is_empty() {
            return Err(Error::System { operation: "getxattr", errno: Errno::ERANGE });
        }
        self.place().xattr(name).map_err(refused("getxattr"))
    }

    fn xattr_list(&self) -> Result<Vec<u8>> {
        self.place().xattr_list().map_err(refused("listxattr"))
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        self.place().set_xattr(name, value, flags).map_err(refused("setxattr"))
    }

    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        self.place().remove_xattr(name).map_err(refused("removexattr"))
    }
}

/// How an element of a walk is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// By the other service.
    Sent,
    /// With the store's root, which is its own parent.
    Root,
    /// With the element before.
    Same,
}

impl RelayNode {
    /// Whether both names are one file already, so that renaming one to the other does nothing
    /// (rename(2)). Asked only where some node in use may have lost its name otherwise.
    fn is_same_file(&self, old: &[u8], new_dir: &Self, new: &[u8]) -> bool {
        let identity = |dir: &Self, name: &[u8]| {
            let (qids, _) = dir.place().walk(&[name]).ok()?;
            qids.first().map(|qid| qid.path)
        };
        let Some(target) = new_dir.way_of(new) else { return false };
        if !self.tree.names.is_known(&target) {
            return false;
        }
        identity(self, old).is_some_and(|old| identity(new_dir, new) == Some(old))
    }
}
