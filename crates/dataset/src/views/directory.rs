//! The directory of all views.

use std::sync::Arc;

use p9::{Attributes, DirEntry, Errno, LockKind, OpenFlags, Qid, SetAttributes, StatFs};
use store::{Error, LockOwner, LockRange, Node, OpenNode, Result, Walk};

use super::control::{self, ControlDirectory};
use super::view::ViewNode;
use super::{STORE, Shared, refusal};

/// The cookie of `..`; views have those behind, in the order of the definition.
const DOTS_COOKIE: u64 = 2;

/// `DT_DIR` and `DT_REG` of readdir(3).
const DIRECTORY_ENTRY: u8 = 4;
const FILE_ENTRY: u8 = 8;

/// What readdir(3) calls the kind of a file.
pub(super) fn entry_kind(qid: Qid) -> u8 {
    if qid.kind.contains(p9::QidType::DIR) { DIRECTORY_ENTRY } else { FILE_ENTRY }
}

pub(super) struct DirectoryNode {
    shared: Arc<Shared>,
}

impl DirectoryNode {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared) }
    }

    fn again(&self) -> Arc<dyn Node> {
        Arc::new(Self::new(&self.shared))
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        let plan = self.shared.plan();
        let mut views = plan.model.views();
        views.find(|(_, view)| view.name.as_bytes() == name).map(|(number, _)| number)
    }

    /// Refuses to make a name: because it is there, if it is.
    fn refuse_new<T>(&self, operation: &'static str, name: &[u8]) -> Result<T> {
        let errno = match name {
            b"" => Errno::ENOENT,
            b"." | b".." => Errno::EEXIST,
            _ if self.find(name).is_some() => Errno::EEXIST,
            _ => Errno::EPERM,
        };
        Err(refusal(operation, errno))
    }
}

impl Node for DirectoryNode {
    fn qid(&self) -> Qid {
        self.shared.directory_qid()
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        super::walk(self.again(), names, |name| {
            if name == control::DIRECTORY {
                return Some(Arc::new(ControlDirectory::new(&self.shared)));
            }
            let view = self.find(name)?;
            Some(Arc::new(ViewNode::new(&self.shared, view)))
        })
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.shared.directory_attributes())
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        Err(refusal("setattr", Errno::EPERM))
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if flags.writes() || flags.contains(OpenFlags::TRUNCATE) {
            return Err(refusal("open", Errno::EISDIR));
        }
        Ok(Arc::new(OpenDirectory { shared: Arc::clone(&self.shared) }))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        _mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        if matches!(name, b"." | b"..") {
            return Err(refusal("open", Errno::EISDIR));
        }
        match self.find(name) {
            Some(view) if !flags.contains(OpenFlags::EXCLUSIVE) => {
                let node = ViewNode::new(&self.shared, view);
                let open = node.open(flags)?;
                Ok((Arc::new(node), open))
            }
            _ => self.refuse_new("open", name),
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

    fn rename(&self, old: &[u8], _new_dir: &dyn Node, _new: &[u8]) -> Result<()> {
        let errno = if self.find(old).is_some() { Errno::EPERM } else { Errno::ENOENT };
        Err(refusal("rename", errno))
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        let errno = match self.find(name) {
            None => Errno::ENOENT,
            Some(_) if directory => Errno::ENOTDIR,
            Some(_) => Errno::EPERM,
        };
        Err(refusal("unlink", errno))
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        Err(refusal("parent", Errno::EBUSY))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.shared.statfs()
    }
}

struct OpenDirectory {
    shared: Arc<Shared>,
}

impl OpenNode for OpenDirectory {
    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> Result<usize> {
        Err(refusal("read", Errno::EISDIR))
    }

    fn write_at(&self, _data: &[u8], _offset: u64) -> Result<usize> {
        Err(refusal("write", Errno::EBADF))
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let own = self.shared.directory_qid();
        for (name, offset) in [(&b"."[..], 1), (b"..", DOTS_COOKIE)] {
            let entry = DirEntry { qid: own, offset, kind: DIRECTORY_ENTRY, name };
            if offset > cookie && !take(entry) {
                return Ok(());
            }
        }
        let plan = self.shared.plan();
        for (number, view) in plan.model.views() {
            // A view keeps its number whatever comes and goes.
            let offset = DOTS_COOKIE + 1 + number as u64;
            let qid = Qid { version: 0, ..self.shared.view_qid(number) };
            let entry = DirEntry { qid, offset, kind: FILE_ENTRY, name: view.name.as_bytes() };
            if offset > cookie && !take(entry) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.shared.directory_attributes())
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        Err(refusal("setattr", Errno::EPERM))
    }

    /// As fsync(2) of a file: whoever syncs the directory wants all that is in it.
    fn sync(&self, _data_only: bool) -> Result<()> {
        self.shared.dataset.sync().map_err(super::failed("fsync"))
    }

    fn lock(&self, _owner: &LockOwner, range: LockRange) -> Result<bool> {
        if range.kind == LockKind::UNLOCK {
            return Ok(true);
        }
        Err(Error::Unsupported { operation: "locking a directory", store: STORE })
    }

    fn lock_in_the_way(
        &self,
        _owner: &LockOwner,
        _range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        Ok(None)
    }
}
