//! Any store, without the right to change it.

use std::sync::Arc;

use p9::{Errno, OpenFlags, SetAttributes};

use crate::error::{Error, Result};
use crate::name;
use crate::node::{Node, OpenNode, Store, Walk};
use crate::wrapper::{hand_on, refuse_changes};

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
    hand_on!(qid blocks attributes read_link statfs xattr xattr_list);
    refuse_changes!();

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let Walk { qids, end } = self.inner.walk(names)?;
        Ok(Walk { qids, end: end.map(wrap) })
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

    fn remove(&self, _name: &[u8], _directory: bool) -> Result<()> {
        refuse("unlink")
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let (dir, name) = self.inner.parent()?;
        Ok((wrap(dir), name))
    }
}

/// What was opened can only be read; its attributes could still be changed through it.
struct ReadOnlyOpen {
    inner: Arc<dyn OpenNode>,
}

impl OpenNode for ReadOnlyOpen {
    // Not opened for writing: a write gets the store's own answer.
    hand_on!(read_at write_at read_directory attributes sync close lost lock lock_in_the_way);
    hand_on!(at_hand as_fd piece_bytes settled_size);

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        refuse("setattr")
    }
}
