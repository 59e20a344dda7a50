//! A view as a file.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use p9::{Attributes, Errno, OpenFlags, Qid, SetAttributes, SetattrMask, StatFs, mode};
use store::{Error, Node, OpenNode, OpeningLocks, Result, Walk};

use super::directory::DirectoryNode;
use super::{Shared, failed, refusal};
use crate::direct::Direct;

pub(super) struct ViewNode {
    shared: Arc<Shared>,
    view: usize,
}

impl ViewNode {
    pub(super) fn new(shared: &Arc<Shared>, view: usize) -> Self {
        Self { shared: Arc::clone(shared), view }
    }
}

impl Shared {
    /// Changes nothing, and says whether that is what was asked for.
    ///
    /// A view is never cut. That is granted where it means "begin anew" or "here I am": gfortran
    /// cuts a sequential file behind the first record that it has `written`.
    ///
    /// Times are the dataset's own; setting them is granted and forgotten, because copying
    /// programs set them when all else is done, and fail if they cannot.
    fn set(&self, view: usize, set: &SetAttributes, written: Option<u64>) -> Result<()> {
        let sizes = [Some(0), Some(self.dataset.size(view)), written];
        if set.valid.contains(SetattrMask::SIZE) && !sizes.contains(&Some(set.size)) {
            return Err(refusal("truncate", Errno::EINVAL));
        }
        if set.valid.contains(SetattrMask::SIZE) && self.is_read_only(view) {
            return Err(Error::ReadOnly { operation: "truncate" });
        }
        let own = self.view_mode(view) & mode::PERMISSIONS;
        if set.valid.contains(SetattrMask::MODE) && set.mode & mode::PERMISSIONS != own {
            return Err(refusal("chmod", Errno::EPERM));
        }
        let found = self.view_attributes(view);
        let uid = set.valid.contains(SetattrMask::UID) && set.uid != found.uid;
        let gid = set.valid.contains(SetattrMask::GID) && set.gid != found.gid;
        if uid || gid {
            return Err(refusal("chown", Errno::EPERM));
        }
        Ok(())
    }
}

impl Node for ViewNode {
    fn qid(&self) -> Qid {
        self.shared.view_qid(self.view)
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        if names.is_empty() {
            let again = Self::new(&self.shared, self.view);
            return Ok(Walk { qids: Vec::new(), end: Some(Arc::new(again)) });
        }
        Err(refusal("walk", Errno::ENOTDIR))
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.shared.view_attributes(self.view))
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.shared.set(self.view, set, None)
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if flags.bits() & OpenFlags::ACCESS_MASK == OpenFlags::ACCESS_MASK {
            return Err(refusal("open", Errno::EINVAL));
        }
        if flags.contains(OpenFlags::DIRECTORY) {
            return Err(refusal("open", Errno::ENOTDIR));
        }
        if !self.shared.plan().model.shown[self.view] {
            // It was removed since somebody walked here.
            return Err(refusal("open", Errno::ENOENT));
        }
        let changes = flags.writes() || flags.contains(OpenFlags::TRUNCATE);
        if changes && self.shared.is_read_only(self.view) {
            return Err(Error::ReadOnly { operation: "open" });
        }
        Ok(Arc::new(OpenView::new(&self.shared, self.view, flags)))
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let name = self.shared.name(self.view)?;
        Ok((Arc::new(DirectoryNode::new(&self.shared)), name))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.shared.statfs()
    }
}

struct OpenView {
    shared: Arc<Shared>,
    view: usize,
    flags: OpenFlags,
    locks: OpeningLocks,
    /// Where the bytes of the view lie as they are, if they do.
    direct: Option<Direct>,
    /// Whether a piece of it is strewn over a file.
    is_sparse: bool,
    /// Where the last write ended.
    written: AtomicU64,
}

impl OpenView {
    fn new(shared: &Arc<Shared>, view: usize, flags: OpenFlags) -> Self {
        shared.dataset.opens(view, flags.writes());
        let locks = OpeningLocks::new(&shared.plan().uses[view].locks, flags);
        let direct = if flags.writes() {
            shared.dataset.written_direct(view)
        } else {
            shared.dataset.direct(view)
        };
        let is_sparse = flags.reads() && direct.is_none() && shared.dataset.is_sparse(view);
        let written = AtomicU64::new(0);
        Self { shared: Arc::clone(shared), view, flags, locks, direct, is_sparse, written }
    }
}

impl Drop for OpenView {
    fn drop(&mut self) {
        self.shared.dataset.closes(self.view, self.flags.writes());
    }
}

impl OpenNode for OpenView {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if !self.flags.reads() {
            return Err(refusal("read", Errno::EBADF));
        }
        if offset > i64::MAX as u64 {
            return Err(refusal("read", Errno::EINVAL));
        }
        let read = self.shared.dataset.read(self.view, offset, buffer);
        if read.is_err() {
            self.shared.has_failed.store(true, Ordering::Relaxed);
        }
        read.map_err(failed("read"))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        if !self.flags.writes() {
            return Err(refusal("write", Errno::EBADF));
        }
        let append = self.flags.contains(OpenFlags::APPEND);
        let offset = if append { self.shared.dataset.size(self.view) } else { offset };
        if offset > i64::MAX as u64 {
            return Err(refusal("write", Errno::EINVAL));
        }
        let len = self.shared.dataset.write(self.view, offset, data).map_err(failed("write"))?;
        self.written.store(offset + len as u64, Ordering::Relaxed);
        Ok(len)
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.shared.view_attributes(self.view))
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        if set.valid.contains(SetattrMask::SIZE) && !self.flags.writes() {
            return Err(refusal("ftruncate", Errno::EINVAL));
        }
        let written = self.written.load(Ordering::Relaxed);
        self.shared.set(self.view, set, (written > 0).then_some(written))
    }

    /// Every replica then has what was written, durably.
    fn sync(&self, _data_only: bool) -> Result<()> {
        self.shared.dataset.sync().map_err(failed("fsync"))
    }

    fn locks(&self) -> Option<&OpeningLocks> {
        Some(&self.locks)
    }

    /// The kernel may move bytes out of a replica at any time, but into one only while the dataset
    /// knows.
    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        let direct = self.direct.as_ref().filter(|_| !self.flags.writes())?;
        self.shared.dataset.is_current(direct).then(|| direct.as_fd())
    }

    fn takes_from_kernel(&self) -> bool {
        self.direct.is_some() && self.flags.writes() && !self.flags.contains(OpenFlags::APPEND)
    }

    fn write_by_kernel(
        &self,
        offset: u64,
        len: usize,
        give: &mut dyn FnMut(BorrowedFd<'_>) -> usize,
    ) -> usize {
        let direct = self.direct.as_ref().filter(|_| self.takes_from_kernel());
        let (Some(direct), Some(end)) = (direct, offset.checked_add(len as u64)) else { return 0 };
        // What is wrong is said by the ordinary way, which comes next.
        let written = self.shared.dataset.write_directly(direct, self.view, offset..end, give);
        let written = written.unwrap_or(0);
        if written > 0 {
            self.written.store(offset + written as u64, Ordering::Relaxed);
        }
        written
    }

    /// All that is asked for: a page that has an element of one piece has some of the next ones.
    fn piece_bytes(&self) -> Option<usize> {
        self.is_sparse.then_some(usize::MAX)
    }

    fn settled_size(&self) -> Option<u64> {
        let dataset = &self.shared.dataset;
        let is_settled =
            dataset.has_fixed_sizes() && !self.shared.has_failed.load(Ordering::Relaxed);
        is_settled.then(|| dataset.size(self.view))
    }
}
