//! A store with one more name at its root, which says what kind of store it is to whoever asks for that name.

use std::any::Any;
use std::sync::Arc;

use p9::{Attributes, Errno, GetattrMask, OpenFlags, Qid, QidType, SetAttributes, StatFs, mode};

use crate::error::{Error, Result};
use crate::node::{Node, OpenNode, Store, Walk};
use crate::wrapper::hand_on;

/// A store whose root has a file that is not listed and cannot be opened; its kind is what it tells.
pub struct Marked {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Arc<dyn Store>,
    name: Vec<u8>,
    kind: QidType,
}

impl Marked {
    /// Marks `inner` by a file `name` of the given kind.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, name: &[u8], kind: QidType) -> Self {
        Self { shared: Arc::new(Shared { inner, name: name.to_vec(), kind }) }
    }
}

impl Store for Marked {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(Arc::new(MarkedNode {
            shared: Arc::clone(&self.shared),
            inner: self.shared.inner.root()?,
        }))
    }

    fn blocks(&self) -> bool {
        self.shared.inner.blocks()
    }
}

/// A file of the store within.
struct MarkedNode {
    shared: Arc<Shared>,
    inner: Arc<dyn Node>,
}

impl MarkedNode {
    fn at(&self, inner: Arc<dyn Node>) -> Arc<dyn Node> {
        Arc::new(Self { shared: Arc::clone(&self.shared), inner })
    }

    /// The other node of an operation as the store within knows it.
    fn kin<'n>(&self, operation: &'static str, other: &'n dyn Node) -> Result<&'n dyn Node> {
        (other as &dyn Any)
            .downcast_ref::<Self>()
            .filter(|other| Arc::ptr_eq(&self.shared, &other.shared))
            .map(|other| other.inner.as_ref())
            .ok_or(Error::AcrossStores { operation })
    }
}

impl Node for MarkedNode {
    hand_on!(qid blocks attributes set_attributes read_link remove statfs);
    hand_on!(xattr xattr_list set_xattr remove_xattr);

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        if names == [&self.shared.name[..]]
            && self.shared.inner.root()?.qid().path == self.inner.qid().path
        {
            let mark = Mark { shared: Arc::clone(&self.shared), root: Arc::clone(&self.inner) };
            return Ok(Walk { qids: vec![mark.qid()], end: Some(Arc::new(mark)) });
        }
        let Walk { qids, end } = self.inner.walk(names)?;
        Ok(Walk { qids, end: end.map(|end| self.at(end)) })
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        self.inner.open(flags)
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        let (node, open) = self.inner.create(name, flags, mode)?;
        Ok((self.at(node), open))
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        self.inner.make_directory(name, mode)
    }

    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        self.inner.make_symlink(name, target)
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        self.inner.link(self.kin("link", existing)?, name)
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        self.inner.rename(old, self.kin("rename", new_dir)?, new)
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let (dir, name) = self.inner.parent()?;
        Ok((self.at(dir), name))
    }
}

/// The file that tells.
struct Mark {
    shared: Arc<Shared>,
    root: Arc<dyn Node>,
}

fn refuse<T>(operation: &'static str) -> Result<T> {
    Err(Error::System { operation, errno: Errno::EPERM })
}

impl Node for Mark {
    fn qid(&self) -> Qid {
        // No store numbers its files from the end.
        Qid { kind: self.shared.kind, version: 0, path: (1 << 56) - 1 }
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        if !names.is_empty() {
            return Err(Error::System { operation: "walk", errno: Errno::ENOTDIR });
        }
        let same = Self { shared: Arc::clone(&self.shared), root: Arc::clone(&self.root) };
        Ok(Walk { qids: Vec::new(), end: Some(Arc::new(same)) })
    }

    fn attributes(&self) -> Result<Attributes> {
        let root = self.root.attributes()?;
        let valid = GetattrMask::BASIC;
        Ok(Attributes {
            valid,
            qid: self.qid(),
            mode: mode::REGULAR,
            nlink: 1,
            size: 0,
            blocks: 0,
            ..root
        })
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        refuse("setattr")
    }

    fn open(&self, _flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        refuse("open")
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let root = Arc::clone(&self.shared.inner).root()?;
        Ok((
            Arc::new(MarkedNode { shared: Arc::clone(&self.shared), inner: root }),
            self.shared.name.clone(),
        ))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.root.statfs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::MemStore;

    #[test]
    fn a_marked_store_tells_its_kind_at_the_root_alone_and_is_otherwise_the_same() {
        let kind = QidType::APPEND | QidType::TEMPORARY;
        let store = Marked::new(Arc::new(MemStore::new()), b".kind", kind);
        let root = store.root().expect("a root");
        root.make_directory(b"d", 0o755).expect("made");
        assert_eq!(root.walk(&[b".kind"]).expect("there").qids[0].kind, kind);
        assert!(
            root.walk(&[b".kind"])
                .expect("there")
                .end
                .expect("all")
                .open(OpenFlags::empty())
                .is_err()
        );
        let below = root.walk(&[b"d", b".kind"]).expect("the first");
        assert!(below.end.is_none());
        let d = root.walk(&[b"d"]).expect("there").end.expect("all");
        root.create(b"f", OpenFlags::READ_WRITE, 0o644).expect("made");
        root.rename(b"f", &*d, b"g").expect("renamed within the store");
        let up = d.walk(&[b".."]).expect("there").end.expect("all");
        assert_eq!(up.walk(&[b".kind"]).expect("still").qids[0].kind, kind);
    }
}
