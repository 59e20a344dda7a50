//! Any store, without the right to change it.

use std::sync::Arc;

use p9::{Attributes, DirEntry, Errno, OpenFlags, Qid, SetAttributes, StatFs};
use std::os::fd::BorrowedFd;

use crate::error::{Error, Result};
use crate::name;
use crate::node::{LockOwner, LockRange, Node, OpenNode, Store, Walk};

/// A store of which nothing can be changed: whatever would is refused with `EROFS`, as on a file
/// system that is mounted read-only.
pub struct ReadOnly {
    inner: Arc<dyn Store>,
}

impl ReadOnly {
    /// Takes the right to change away from a store.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner }
    }
}

impl Store for ReadOnly {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(wrap(self.inner.root()?))
    }

    fn blocks(&self) -> bool {
        self.inner.blocks()
    }
}

struct ReadOnlyNode {
    inner: Arc<dyn Node>,
}

fn wrap(inner: Arc<dyn Node>) -> Arc<dyn Node> {
    Arc::new(ReadOnlyNode { inner })
}

fn refuse<T>(operation: &'static str) -> Result<T> {
    Err(Error::ReadOnly { operation })
}

impl ReadOnlyNode {
    /// Refuses to make `name`: because it exists already, if it does. `mkdir -p` lives on that
    /// difference, and Linux makes it on its own read-only file systems.
    fn refuse_new<T>(&self, operation: &'static str, name: &[u8]) -> Result<T> {
        name::check(operation, name, Errno::EEXIST)?;
        match self.inner.walk(&[name]) {
            Ok(_) => Err(Error::System { operation, errno: Errno::EEXIST }),
            Err(error) if error.to_errno() == Errno::ENOENT => refuse(operation),
            Err(error) => Err(error),
        }
    }
}

impl Node for ReadOnlyNode {
    fn qid(&self) -> Qid {
        self.inner.qid()
    }

    fn blocks(&self) -> bool {
        self.inner.blocks()
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let Walk { qids, end } = self.inner.walk(names)?;
        Ok(Walk { qids, end: end.map(wrap) })
    }

    fn attributes(&self) -> Result<Attributes> {
        self.inner.attributes()
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        refuse("setattr")
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if flags.writes() || flags.contains(OpenFlags::TRUNCATE) {
            return refuse("open");
        }
        Ok(Arc::new(ReadOnlyOpen { inner: self.inner.open(flags)? }))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        _mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        name::check("open", name, Errno::EISDIR)?;
        if flags.contains(OpenFlags::EXCLUSIVE) {
            return self.refuse_new("open", name);
        }
        match self.inner.walk(&[name]) {
            Ok(Walk { end: Some(node), .. }) => {
                let node = wrap(node);
                let open = node.open(flags)?;
                Ok((node, open))
            }
            Ok(Walk { end: None, .. }) => refuse("open"),
            Err(error) if error.to_errno() == Errno::ENOENT => refuse("open"),
            Err(error) => Err(error),
        }
    }

    fn make_directory(&self, name: &[u8], _mode: u32) -> Result<Qid> {
        self.refuse_new("mkdir", name)
    }

    fn make_symlink(&self, name: &[u8], _target: &[u8]) -> Result<Qid> {
        self.refuse_new("symlink", name)
    }

    fn link(&self, _existing: &dyn Node, name: &[u8]) -> Result<()> {
        self.refuse_new("link", name)
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        self.inner.read_link()
    }

    fn rename(&self, _old: &[u8], _new_dir: &dyn Node, _new: &[u8]) -> Result<()> {
        refuse("rename")
    }

    fn remove(&self, _name: &[u8], _directory: bool) -> Result<()> {
        refuse("unlink")
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let (dir, name) = self.inner.parent()?;
        Ok((wrap(dir), name))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.inner.statfs()
    }

    fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.inner.xattr(name)
    }

    fn xattr_list(&self) -> Result<Vec<u8>> {
        self.inner.xattr_list()
    }

    fn set_xattr(&self, _name: &[u8], _value: &[u8], _flags: u32) -> Result<()> {
        refuse("setxattr")
    }

    fn remove_xattr(&self, _name: &[u8]) -> Result<()> {
        refuse("removexattr")
    }
}

/// What was opened can only be read; its attributes could still be changed through it.
struct ReadOnlyOpen {
    inner: Arc<dyn OpenNode>,
}

impl OpenNode for ReadOnlyOpen {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        // Not opened for writing: the store's own answer.
        self.inner.write_at(data, offset)
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        self.inner.read_directory(cookie, take)
    }

    fn attributes(&self) -> Result<Attributes> {
        self.inner.attributes()
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        refuse("setattr")
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        self.inner.sync(data_only)
    }

    fn lock(&self, owner: &LockOwner, range: LockRange) -> Result<bool> {
        self.inner.lock(owner, range)
    }

    fn lock_in_the_way(
        &self,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        self.inner.lock_in_the_way(owner, range)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.as_fd()
    }
}
