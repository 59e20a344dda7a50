//! A store before another that fails at one call and at all behind it, as if it or its client had ended.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use p9::{Attributes, DirEntry, Errno, OpenFlags, Qid, SetAttributes, StatFs};
use store::{Error, LockOwner, LockRange, Node, OpenNode, Result, Store, Walk};

/// Whether what was asked at the call that fails is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    Half,
    Whole,
}

#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) calls: AtomicU64,
    pub(crate) at: AtomicU64,
    pub(crate) effect: Effect,
    /// Identities of files that got bytes or attributes and no sync since.
    pub(crate) unsynced: Mutex<BTreeSet<u64>>,
}

impl Fault {
    fn error() -> Error {
        Error::System { operation: "fault", errno: Errno::EIO }
    }

    /// Does `call`, unless this is the one that fails without effect or one behind it.
    fn pass<T>(&self, call: impl FnOnce(Effect) -> Result<T>) -> Result<T> {
        let count = self.calls.fetch_add(1, Ordering::SeqCst);
        let at = self.at.load(Ordering::SeqCst);
        if count < at {
            return call(Effect::Whole);
        }
        if count == at && self.effect != Effect::None {
            call(self.effect)?;
        }
        Err(Self::error())
    }

    fn dirty(&self, id: u64) {
        self.unsynced.lock().unwrap().insert(id);
    }
}

pub(crate) struct FaultyStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) fault: Arc<Fault>,
}

struct FaultyNode {
    inner: Arc<dyn Node>,
    fault: Arc<Fault>,
}

struct FaultyOpen {
    inner: Arc<dyn OpenNode>,
    id: u64,
    fault: Arc<Fault>,
}

fn node(inner: Arc<dyn Node>, fault: &Arc<Fault>) -> Arc<dyn Node> {
    Arc::new(FaultyNode { inner, fault: Arc::clone(fault) })
}

fn open(inner: Arc<dyn OpenNode>, id: u64, fault: &Arc<Fault>) -> Arc<dyn OpenNode> {
    Arc::new(FaultyOpen { inner, id, fault: Arc::clone(fault) })
}

fn inner(node: &dyn Node) -> &dyn Node {
    let any: &dyn Any = node;
    &*any.downcast_ref::<FaultyNode>().expect("a node of this store").inner
}

impl Store for FaultyStore {
    fn root(&self) -> Result<Arc<dyn Node>> {
        self.fault.pass(|_| Ok(node(self.inner.root()?, &self.fault)))
    }
}

impl Node for FaultyNode {
    fn qid(&self) -> Qid {
        self.inner.qid()
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        self.fault.pass(|_| {
            let walk = self.inner.walk(names)?;
            Ok(Walk { end: walk.end.map(|end| node(end, &self.fault)), ..walk })
        })
    }

    fn attributes(&self) -> Result<Attributes> {
        self.fault.pass(|_| self.inner.attributes())
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.fault.dirty(self.qid().path);
        self.fault.pass(|_| self.inner.set_attributes(set))
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        self.fault.pass(|_| Ok(open(self.inner.open(flags)?, self.qid().path, &self.fault)))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        self.fault.pass(|_| {
            let (made, opened) = self.inner.create(name, flags, mode)?;
            let id = made.qid().path;
            Ok((node(made, &self.fault), open(opened, id, &self.fault)))
        })
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        self.fault.pass(|_| self.inner.make_directory(name, mode))
    }

    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        self.fault.pass(|_| self.inner.make_symlink(name, target))
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        self.fault.pass(|_| self.inner.link(inner(existing), name))
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        self.fault.pass(|_| self.inner.read_link())
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        self.fault.pass(|_| self.inner.rename(old, inner(new_dir), new))
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        self.fault.pass(|_| self.inner.remove(name, directory))
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        self.fault.pass(|_| {
            let (parent, name) = self.inner.parent()?;
            Ok((node(parent, &self.fault), name))
        })
    }

    fn statfs(&self) -> Result<StatFs> {
        self.fault.pass(|_| self.inner.statfs())
    }
}

impl OpenNode for FaultyOpen {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.fault.pass(|_| self.inner.read_at(buffer, offset))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        self.fault.dirty(self.id);
        self.fault.pass(|effect| match effect {
            Effect::Half => self.inner.write_at(&data[..data.len() / 2], offset),
            _ => self.inner.write_at(data, offset),
        })
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        self.fault.pass(|_| self.inner.read_directory(cookie, take))
    }

    fn attributes(&self) -> Result<Attributes> {
        self.fault.pass(|_| self.inner.attributes())
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.fault.dirty(self.id);
        self.fault.pass(|_| self.inner.set_attributes(set))
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        self.fault.pass(|_| self.inner.sync(data_only))?;
        self.fault.unsynced.lock().unwrap().remove(&self.id);
        Ok(())
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
}
