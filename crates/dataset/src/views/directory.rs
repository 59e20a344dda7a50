//! The directory of all views.

use std::sync::Arc;

use p9::{Attributes, DirEntry, Errno, OpenFlags, Qid, SetAttributes, StatFs};
use store::{FIRST_COOKIE, Listing, Node, OpenListing, OpenNode, Result, Walk};

use super::control::{self, ControlDirectory};
use super::view::ViewNode;
use super::{Shared, refusal};

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
        Ok(Arc::new(OpenListing(Views(Arc::clone(&self.shared)))))
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

/// All views, once the directory is opened.
struct Views(Arc<Shared>);

impl Listing for Views {
    fn attributes(&self) -> Result<Attributes> {
        Ok(self.0.directory_attributes())
    }

    fn above(&self) -> Qid {
        self.0.directory_qid()
    }

    /// In the order of the definition.
    fn entries(
        &self,
        cookie: u64,
        _is_beginning: bool,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let plan = self.0.plan();
        for (number, view) in plan.model.views() {
            // A view keeps its number whatever comes and goes.
            let offset = FIRST_COOKIE + number as u64;
            let entry = DirEntry::of(self.0.view_qid(number), offset, view.name.as_bytes());
            if offset > cookie && !take(entry) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        Err(refusal("setattr", Errno::EPERM))
    }

    /// As fsync(2) of a file: whoever syncs the directory wants all that is in it.
    fn sync(&self) -> Result<()> {
        self.0.dataset.sync().map_err(super::failed("fsync"))
    }
}
