//! Nodes of the tree.

use std::any::Any;
use std::sync::Arc;

use p9::{Attributes, Errno, OpenFlags, Qid, SetAttributes, StatFs};

use super::inode::{Access, Body, Inode};
use super::open::MemOpen;
use super::tree::Entry;
use super::{Tree, refusal, writing};
use crate::error::{Error, Result};
use crate::name;
use crate::node::{Node, OpenNode, Walk};

/// The longest target of a symbolic link: `PATH_MAX` of linux/limits.h without its NUL.
const TARGET_BYTES_MAX: usize = 4095;

/// How often something is tried again that a concurrent removal spoils.
const RACES_MAX: usize = 16;

pub(super) struct MemNode {
    tree: Arc<Tree>,
    entry: Arc<Entry>,
}

impl MemNode {
    pub(super) fn new(tree: &Arc<Tree>, entry: &Arc<Entry>) -> Self {
        Self { tree: Arc::clone(tree), entry: Arc::clone(entry) }
    }

    fn inode(&self) -> &Arc<Inode> {
        &self.entry.inode
    }

    fn user(&self) -> (u32, u32) {
        (self.tree.uid, self.tree.gid)
    }

    fn is_root(&self) -> bool {
        Arc::ptr_eq(&self.entry, &self.tree.root)
    }

    fn at(&self, entry: &Arc<Entry>) -> Self {
        Self::new(&self.tree, entry)
    }

    fn step(&self, element: &[u8]) -> Result<Self> {
        if !self.inode().is_directory() {
            return Err(refusal("walk", Errno::ENOTDIR));
        }
        match element {
            b"." => Ok(self.at(&self.entry)),
            b".." if self.is_root() => Ok(self.at(&self.entry)),
            b".." => match self.entry.place() {
                Some((dir, _)) => Ok(self.at(&dir)),
                None => Err(refusal("walk", Errno::ENOENT)),
            },
            _ => {
                name::check("walk", element, Errno::EINVAL)?;
                Ok(self.at(&self.tree.look_up("walk", &self.entry, element)?))
            }
        }
    }

    /// The other node of an operation, when it is of this tree.
    fn kin<'n>(&self, operation: &'static str, other: &'n dyn Node) -> Result<&'n Self> {
        (other as &dyn Any)
            .downcast_ref::<Self>()
            .filter(|other| Arc::ptr_eq(&self.tree, &other.tree))
            .ok_or(Error::AcrossStores { operation })
    }

    fn opened(&self, flags: OpenFlags) -> Arc<dyn OpenNode> {
        Arc::new(MemOpen::new(&self.tree, &self.entry, flags))
    }
}

impl Node for MemNode {
    fn qid(&self) -> Qid {
        self.inode().qid()
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let mut qids = Vec::with_capacity(names.len());
        let mut here = self.at(&self.entry);
        for element in names {
            match here.step(element) {
                Ok(node) => here = node,
                Err(error) if qids.is_empty() => return Err(error),
                Err(_) => return Ok(Walk { qids, end: None }),
            }
            qids.push(here.qid());
        }
        Ok(Walk { qids, end: Some(Arc::new(here)) })
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.inode().attributes())
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.inode().set_attributes(self.user(), false, set)
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        let refuse = |errno| Err(refusal("open", errno));
        if flags.bits() & OpenFlags::ACCESS_MASK == OpenFlags::ACCESS_MASK {
            return refuse(Errno::EINVAL);
        }
        let changes = flags.writes() || flags.contains(OpenFlags::TRUNCATE);
        match &self.inode().body {
            Body::Symlink(_) => return refuse(Errno::ELOOP),
            Body::Directory(_) if changes => return refuse(Errno::EISDIR),
            Body::File(_) if flags.contains(OpenFlags::DIRECTORY) => {
                return refuse(Errno::ENOTDIR);
            }
            Body::Directory(_) | Body::File(_) => {}
        }
        if flags.reads() {
            self.inode().check("open", self.user(), Access::READ)?;
        }
        if changes {
            self.inode().check("open", self.user(), Access::WRITE)?;
        }
        if let (Body::File(content), true) =
            (&self.inode().body, flags.contains(OpenFlags::TRUNCATE))
        {
            writing(content).resize(0).map_err(|errno| refusal("open", errno))?;
            self.inode().touch_content(self.tree.uid);
        }
        Ok(self.opened(flags))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        name::check("open", name, Errno::EISDIR)?;
        let access = flags.bits() & OpenFlags::ACCESS_MASK;
        if access == OpenFlags::ACCESS_MASK || flags.contains(OpenFlags::DIRECTORY) {
            return Err(refusal("open", Errno::EINVAL));
        }
        let space = &self.tree.space;
        for _ in 0..RACES_MAX {
            let added = self.tree.add("open", &self.entry, name, |owner, _| {
                Inode::file(self.tree.number(), mode, owner, space)
            });
            match added {
                // Who creates a file has the access that it asked for, whatever the mode says.
                Ok(entry) => {
                    let node = self.at(&entry);
                    let open = node.opened(flags);
                    return Ok((Arc::new(node), open));
                }
                Err(error) if error.to_errno() != Errno::EEXIST => return Err(error),
                Err(error) if flags.contains(OpenFlags::EXCLUSIVE) => return Err(error),
                Err(_) => {}
            }
            match self.tree.look_up("open", &self.entry, name) {
                Ok(entry) => {
                    let node = self.at(&entry);
                    let open = node.open(flags)?;
                    return Ok((Arc::new(node), open));
                }
                Err(error) if error.to_errno() == Errno::ENOENT => {}
                Err(error) => return Err(error),
            }
        }
        Err(refusal("open", Errno::EAGAIN))
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        name::check("mkdir", name, Errno::EEXIST)?;
        let entry = self.tree.add("mkdir", &self.entry, name, |owner, inherited| {
            // mkdir(2) takes the nine permission bits and the sticky bit only.
            let mode = mode & 0o1777 | inherited;
            Inode::directory(self.tree.number(), mode, owner, &self.tree.space)
        })?;
        Ok(entry.inode.qid())
    }

    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        name::check("symlink", name, Errno::EEXIST)?;
        let errno = match target {
            [] => Some(Errno::ENOENT),
            _ if target.contains(&0) => Some(Errno::EINVAL),
            _ if target.len() > TARGET_BYTES_MAX => Some(Errno::ENAMETOOLONG),
            _ => None,
        };
        if let Some(errno) = errno {
            return Err(refusal("symlink", errno));
        }
        let entry = self.tree.add("symlink", &self.entry, name, |owner, _| {
            Inode::symlink(self.tree.number(), target, owner, &self.tree.space)
        })?;
        Ok(entry.inode.qid())
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        let existing = self.kin("link", existing)?;
        name::check("link", name, Errno::EEXIST)?;
        self.tree.link(&self.entry, name, existing.inode())
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        match &self.inode().body {
            Body::Symlink(target) => Ok(target.clone()),
            Body::File(_) | Body::Directory(_) => Err(refusal("readlink", Errno::EINVAL)),
        }
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        let new_dir = self.kin("rename", new_dir)?;
        name::check("rename", old, Errno::EBUSY)?;
        name::check("rename", new, Errno::EBUSY)?;
        self.tree.rename(&self.entry, old, &new_dir.entry, new)
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        name::check("unlink", name, if directory { Errno::EINVAL } else { Errno::EISDIR })?;
        self.tree.remove(&self.entry, name, directory)
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        if self.is_root() {
            return Err(refusal("parent", Errno::EBUSY));
        }
        let (dir, name) = self.entry.place().ok_or(refusal("parent", Errno::ENOENT))?;
        Ok((Arc::new(self.at(&dir)), name))
    }

    fn statfs(&self) -> Result<StatFs> {
        Ok(self.tree.statfs())
    }

    fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.inode().xattr(name)
    }

    fn xattr_list(&self) -> Result<Vec<u8>> {
        Ok(self.inode().xattr_list())
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        self.inode().set_xattr(name, value, flags)
    }

    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        self.inode().remove_xattr(name)
    }
}
