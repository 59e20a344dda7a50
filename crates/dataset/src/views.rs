//! A dataset as a store: one directory, in which every view is a file.
//!
//! Files are there because the definition says so, and have the size that it gives them. So nothing
//! can be created, removed or renamed (`EPERM`), and a file is cut to nothing, or to its size, by
//! leaving it as it is: programs that begin to write a file anew do so by `O_TRUNC`.
//!
//! Beside the views there is a directory that is not listed, `.sluice`, by which the dataset is looked
//! at and changed from wherever its store is reached ([`control`]).
//!
//! The conformance suite of stores is not for it, since its checks begin by creating files; what of
//! its promises holds here is tested with views.

mod control;
mod directory;
mod view;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use p9::{Attributes, Errno, GetattrMask, Qid, QidType, StatFs, Time, mode};
use store::{Node, Store, Walk, check_name, walk_by_steps};

use crate::Dataset;
use crate::hash::file_number;
use crate::plan::Plan;

/// The name that no view can have: that of the directory by which a dataset is changed.
pub(crate) const CONTROL: &str = ".sluice";

/// A dataset as a store.
pub struct DatasetStore {
    shared: Arc<Shared>,
}

impl DatasetStore {
    /// Shows the views of a dataset.
    #[must_use]
    pub fn new(dataset: Arc<Dataset>) -> Self {
        let has_failed = AtomicBool::new(false);
        Self { shared: Arc::new(Shared { dataset, has_failed }) }
    }
}

impl Store for DatasetStore {
    fn root(&self) -> store::Result<Arc<dyn Node>> {
        Ok(Arc::new(directory::DirectoryNode::new(&self.shared)))
    }
}

/// What all nodes share.
struct Shared {
    dataset: Arc<Dataset>,
    /// A read has failed, and so may others.
    has_failed: AtomicBool,
}

/// Goes from a directory into the one below it, or to a file in it.
fn walk(
    directory: Arc<dyn Node>,
    names: &[&[u8]],
    find: impl Fn(&[u8]) -> Option<Arc<dyn Node>>,
) -> store::Result<Walk> {
    walk_by_steps(
        || Arc::clone(&directory),
        names,
        |name| match name {
            b"." => Ok(Arc::clone(&directory)),
            b".." => {
                Ok(directory.parent().map_or_else(|_| Arc::clone(&directory), |(parent, _)| parent))
            }
            name => {
                check_name("walk", name, Errno::EINVAL)?;
                find(name).ok_or_else(|| refusal("walk", Errno::ENOENT))
            }
        },
    )
}

fn refusal(operation: &'static str, errno: Errno) -> store::Error {
    store::Error::System { operation, errno }
}

fn failed(operation: &'static str) -> impl Fn(crate::Error) -> store::Error {
    move |error| match error {
        crate::Error::ReadOnly { .. } => store::Error::ReadOnly { operation },
        error => refusal(operation, error.to_errno()),
    }
}

impl Shared {
    fn plan(&self) -> Arc<Plan> {
        self.dataset.shared.plan()
    }

    /// A number of a file that is no view: views have no `/` in their names.
    fn path(&self, name: &[u8]) -> u64 {
        file_number(self.dataset.shared.identity(), name)
    }

    fn is_read_only(&self, view: usize) -> bool {
        self.plan().model.definition.views[view].read_only
    }

    /// The name of a view that has not lost it.
    fn name(&self, view: usize) -> store::Result<Vec<u8>> {
        let plan = self.plan();
        if !plan.model.shown[view] {
            return Err(refusal("parent", Errno::ENOENT));
        }
        Ok(plan.model.definition.views[view].name.clone().into_bytes())
    }

    fn directory_qid(&self) -> Qid {
        Qid { kind: QidType::DIR, version: 0, path: self.path(b"/") }
    }

    fn view_qid(&self, view: usize) -> Qid {
        let version = self.dataset.version();
        Qid { kind: QidType::empty(), version, path: self.plan().uses[view].path }
    }

    fn view_mode(&self, view: usize) -> u32 {
        mode::REGULAR | if self.is_read_only(view) { 0o444 } else { 0o644 }
    }

    fn directory_attributes(&self) -> Attributes {
        Attributes {
            mode: mode::DIRECTORY | 0o555,
            nlink: 2,
            ..attributes(self.directory_qid(), self.dataset.since())
        }
    }

    fn view_attributes(&self, view: usize) -> Attributes {
        let size = self.dataset.size(view);
        Attributes {
            mode: self.view_mode(view),
            size,
            nlink: u64::from(self.plan().model.shown[view]),
            // What it would take if it were stored: programs that look for holes find none.
            blocks: size.div_ceil(512),
            ..attributes(self.view_qid(view), self.dataset.modified())
        }
    }

    fn statfs(&self) -> store::Result<StatFs> {
        let found = self.dataset.room().map_err(failed("statfs"))?;
        Ok(StatFs {
            // V9FS_MAGIC of linux/magic.h: no file system of this machine.
            kind: 0x0102_1997,
            block_size: u32::try_from(found.f_bsize).unwrap_or(4096),
            blocks: found.f_blocks,
            blocks_free: found.f_bfree,
            blocks_available: found.f_bavail,
            files: self.plan().model.views().count() as u64 + 1,
            files_free: 0,
            fsid: self.path(b"/"),
            name_max: 255,
        })
    }
}

fn attributes(qid: Qid, time: Time) -> Attributes {
    Attributes {
        valid: GetattrMask::BASIC,
        qid,
        mode: 0,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        nlink: 1,
        rdev: 0,
        size: 0,
        // As much as is converted at once.
        block_size: crate::WINDOW_BYTES as u64,
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        btime: time,
        generation: 0,
        data_version: 0,
    }
}
