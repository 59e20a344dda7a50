//! A bucket under a log: a file tree to look things up and read in, whose files are replaced as wholes.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use p9::{Attributes, Errno, OpenFlags, Qid, QidType, SetAttributes, SetattrMask, StatFs};
use store::{
    Error, FileLocks, LockOwner, LockRange, Next, Node, OpenNode, OpeningLocks, Replacement,
    Result, Store, Version, Walk, Wholes,
};

use crate::bucket::{Meta, join, path};
use crate::error::{Trouble, refusal};
use crate::lineage::{Lineage, Lineages};
use crate::node::ObjectNode;
use crate::replacement::{NOTE, Sending};
use crate::runtime::wait;
use crate::tree::{Found, Tree, missing};

/// So many parts at most, of 10,000 that an object may have.
const PARTS_MAX: u64 = 9_000;

/// What all nodes share.
pub(crate) struct Under {
    pub(crate) tree: Arc<Tree>,
    pub(crate) files: Lineages,
    /// Whether the service has not refused to copy parts yet.
    pub(crate) takes_over: AtomicBool,
    /// What one request copies at most.
    copy_bytes_max: u64,
}

impl Under {
    /// How long the parts are of an object of so many bytes.
    pub(crate) fn part_bytes(&self, size: u64) -> u64 {
        let enough = size.div_ceil(PARTS_MAX).next_multiple_of(1 << 20);
        self.tree.part_bytes.max(enough)
    }
}

/// A bucket, or what is below a prefix of one, as the place that a log is drained to.
pub struct UnderLog {
    under: Arc<Under>,
}

impl UnderLog {
    pub(crate) fn new(tree: Arc<Tree>, copy_bytes_max: u64) -> Self {
        let takes_over = tree.bucket().s3().is_some_and(|s3| !s3.has_checksums);
        let takes_over = AtomicBool::new(takes_over);
        let files = Lineages::default();
        Self { under: Arc::new(Under { tree, files, takes_over, copy_bytes_max }) }
    }
}

impl Store for UnderLog {
    fn root(&self) -> Result<Arc<dyn Node>> {
        let root = ObjectNode::root(&self.under.tree);
        // What is wrong with the bucket or the credentials is better known now than later.
        root.attributes()?;
        Ok(UnderNode::over(&self.under, Arc::new(root)))
    }

    fn blocks(&self) -> bool {
        true
    }

    fn wholes(&self) -> Option<&dyn Wholes> {
        Some(self)
    }
}

impl UnderLog {
    fn key(&self, operation: &'static str, path: &[u8]) -> Result<String> {
        let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        names.try_fold(self.under.tree.root.clone(), |key, name| join(operation, &key, name))
    }
}

impl Wholes for UnderLog {
    fn check(&self, operation: &'static str, path: &[u8]) -> Result<()> {
        let key = self.key(operation, path)?;
        crate::bucket::path(operation, &key).map(drop)
    }

    fn identity(&self, path: &[u8]) -> u64 {
        self.key("stat", path).map_or(0, |key| self.under.tree.identity(&key))
    }

    fn version(&self, path: &[u8]) -> Result<Option<Version>> {
        let key = self.key("stat", path)?;
        Ok(self
            .under
            .tree
            .bucket()
            .head_noted(&key, NOTE)?
            .map(|(meta, note)| version(&meta, note)))
    }

    fn part_bytes(&self, size: u64) -> u64 {
        self.under.part_bytes(size)
    }

    fn replace(&self, path: &[u8], next: &Next) -> Result<Arc<dyn Replacement>> {
        let key = self.key("write", path)?;
        let sending = Sending::begin(&self.under, key, next, self.part_bytes(next.size))?;
        Ok(Arc::new(sending))
    }

    fn abandon(&self, at: &[u8], id: &str) -> Result<()> {
        let key = self.key("write", at)?;
        let bucket = self.under.tree.bucket();
        let Some(s3) = bucket.s3() else { return Ok(()) };
        let path = path("write", &key)?;
        let aborted = wait(object_store::multipart::MultipartStore::abort_multipart(
            &*s3.client,
            &path,
            &id.to_owned(),
        ));
        match aborted {
            Err(error) if Trouble::of(&error) != Trouble::Missing => {
                Err(bucket.fail("remove an unfinished upload of", &key, &error))
            }
            _ => Ok(()),
        }
    }
}

/// What tells a version from others: two of equal bytes are one where the service says so, unless it was noted.
pub(crate) fn version(meta: &Meta, note: Option<String>) -> Version {
    let etag = meta.etag.clone().unwrap_or_default();
    let tag = note.map_or_else(|| etag.clone(), |note| format!("{etag} {note}"));
    Version { tag, size: meta.size }
}

struct UnderNode {
    under: Arc<Under>,
    inner: Arc<dyn Node>,
    key: String,
    /// For what is no directory.
    file: Option<Arc<Lineage>>,
}

impl UnderNode {
    fn over(under: &Arc<Under>, inner: Arc<dyn Node>) -> Arc<dyn Node> {
        let (key, file) = match (&*inner as &dyn Any).downcast_ref::<ObjectNode>() {
            Some(node) => {
                let file = match node.seen() {
                    Found::File(meta) => Some(under.files.of(&under.tree, node.key(), meta)),
                    Found::Directory | Found::Pending(_) => None,
                };
                (node.key().to_owned(), file)
            }
            None => (String::new(), None),
        };
        Arc::new(Self { under: Arc::clone(under), inner, key, file })
    }

    fn unsupported<T>(&self, operation: &'static str) -> Result<T> {
        Err(Error::Unsupported { operation, store: "object" })
    }

    fn rename_file(&self, from: &str, to: &str, meta: Meta) -> Result<()> {
        let tree = &self.under.tree;
        let bucket = tree.bucket();
        self.under.files.rename(from, to, || {
            if meta.size <= self.under.copy_bytes_max {
                bucket.copy(from, to)?;
            } else {
                Sending::copy_whole(&self.under, from, to, meta)?;
            }
            tree.forget(to);
            let meta = bucket.head("rename", to)?.ok_or(missing("rename"))?;
            bucket.delete("rename", from)?;
            tree.forget(from);
            Ok(meta)
        })?;
        // As elsewhere, a directory does not go with its last file.
        tree.make(tree.above(from));
        Ok(())
    }
}

impl Node for UnderNode {
    fn qid(&self) -> Qid {
        match &self.file {
            Some(file) => {
                let version = file.meta().version();
                Qid { kind: QidType::empty(), version, path: file.number }
            }
            None => self.inner.qid(),
        }
    }

    fn blocks(&self) -> bool {
        true
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let walk = self.inner.walk(names)?;
        Ok(Walk { end: walk.end.map(|end| Self::over(&self.under, end)), ..walk })
    }

    fn attributes(&self) -> Result<Attributes> {
        let Some(file) = &self.file else { return self.inner.attributes() };
        let meta = file.look(&self.under.tree, "stat")?;
        Ok(attributes(&self.under.tree, file, meta))
    }

    /// What objects cannot keep is dropped.
    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        if set.valid.contains(SetattrMask::SIZE) {
            return self.unsupported("truncate");
        }
        Ok(())
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        let Some(file) = &self.file else { return self.inner.open(flags) };
        if flags.contains(OpenFlags::DIRECTORY) {
            return Err(refusal("open", Errno::ENOTDIR));
        }
        if file.key().is_some() {
            file.look(&self.under.tree, "open")?;
        }
        let locks = OpeningLocks::new(&Arc::<FileLocks>::default(), flags);
        Ok(Arc::new(UnderFile { under: Arc::clone(&self.under), file: Arc::clone(file), locks }))
    }

    fn create(
        &self,
        _name: &[u8],
        _flags: OpenFlags,
        _mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        self.unsupported("create")
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        self.inner.make_directory(name, mode)
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        let target = (new_dir as &dyn Any).downcast_ref::<Self>();
        let target = target.filter(|target| Arc::ptr_eq(&target.under, &self.under));
        let Some(target) = target else {
            return Err(Error::AcrossStores { operation: "rename" });
        };
        let from = join("rename", &self.key, old)?;
        let to = join("rename", &target.key, new)?;
        if from == to {
            return Ok(());
        }
        match self.under.tree.look("rename", &from, false)? {
            Some(Found::File(meta)) => self.rename_file(&from, &to, meta),
            Some(_) => self.unsupported("rename"),
            None => Err(missing("rename")),
        }
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        self.inner.remove(name, directory)?;
        self.under.files.removed(&join("unlink", &self.key, name)?);
        Ok(())
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let (above, name) = self.inner.parent()?;
        Ok((Self::over(&self.under, above), name))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.inner.statfs()
    }
}

fn attributes(tree: &Tree, file: &Lineage, meta: Meta) -> Attributes {
    let key = file.key().unwrap_or_default();
    let found = tree.attributes(&key, &Found::File(meta));
    Attributes { qid: Qid { path: file.number, ..found.qid }, ..found }
}

/// A file that is read, whichever version it has.
struct UnderFile {
    under: Arc<Under>,
    file: Arc<Lineage>,
    locks: OpeningLocks,
}

impl OpenNode for UnderFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(&self.under.tree, buffer, offset)
    }

    fn write_at(&self, _data: &[u8], _offset: u64) -> Result<usize> {
        Err(Error::Unsupported { operation: "write", store: "object" })
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(attributes(&self.under.tree, &self.file, self.file.meta()))
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        if set.valid.contains(SetattrMask::SIZE) {
            return Err(Error::Unsupported { operation: "ftruncate", store: "object" });
        }
        Ok(())
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }

    fn lock(&self, owner: &LockOwner, range: LockRange) -> Result<bool> {
        self.locks.lock(owner, range)
    }

    fn lock_in_the_way(
        &self,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        self.locks.in_the_way(owner, range)
    }
}
