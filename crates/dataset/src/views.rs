//! A dataset as a store: one directory, in which every view is a file.
//!
//! Files are there because the definition says so, and have the size that it gives them. So nothing
//! can be created, removed or renamed (`EPERM`), and a file is cut to nothing, or to its size, by
//! leaving it as it is: programs that begin to write a file anew do so by `O_TRUNC`.
//!
//! The conformance suite of stores is not for it, since its checks begin by creating files; what of
//! its promises holds here is tested with views.

mod directory;
mod view;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use p9::{Attributes, Errno, GetattrMask, Qid, QidType, StatFs, Time, mode};
use store::{FileLocks, Node, Store};

use crate::Dataset;
use crate::hash::fnv1a;

/// What a store is called in messages.
const STORE: &str = "dataset";

/// A dataset as a store.
pub struct DatasetStore {
    shared: Arc<Shared>,
}

impl DatasetStore {
    /// Shows the views of a dataset.
    #[must_use]
    pub fn new(dataset: Arc<Dataset>) -> Self {
        let locks = (0..dataset.views().len()).map(|_| Arc::default()).collect();
        let names: Vec<&str> = dataset.views().iter().map(|view| view.name.as_str()).collect();
        let paths = paths(dataset.identity(), &names);
        let since = dataset.modified();
        let has_failed = AtomicBool::new(false);
        Self { shared: Arc::new(Shared { dataset, locks, paths, since, has_failed }) }
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
    /// By view.
    locks: Vec<Arc<FileLocks>>,
    /// `qid.path` of the directory and, behind it, of the views.
    paths: Vec<u64>,
    /// The times of the directory.
    since: Time,
    /// A read has failed, and so may others.
    has_failed: AtomicBool,
}

/// Numbers that are the same whenever this dataset is served, and others for another one: a client
/// that comes back after a restart must know its files again.
fn paths(identity: u64, names: &[&str]) -> Vec<u64> {
    let mut paths = vec![fnv1a(&identity.to_le_bytes()) as u64 >> 16];
    for name in names {
        let mut text = identity.to_le_bytes().to_vec();
        text.extend(name.as_bytes());
        let mut path = fnv1a(&text) as u64 >> 16;
        while paths.contains(&path) {
            path += 1;
        }
        paths.push(path);
    }
    paths
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
    fn directory_qid(&self) -> Qid {
        Qid { kind: QidType::DIR, version: 0, path: self.paths[0] }
    }

    fn view_qid(&self, view: usize) -> Qid {
        let version = self.dataset.version();
        Qid { kind: QidType::empty(), version, path: self.paths[1 + view] }
    }

    fn view_mode(&self, view: usize) -> u32 {
        let read_only = self.dataset.views()[view].read_only;
        mode::REGULAR | if read_only { 0o444 } else { 0o644 }
    }

    fn directory_attributes(&self) -> Attributes {
        Attributes {
            mode: mode::DIRECTORY | 0o555,
            nlink: 2,
            ..attributes(self.directory_qid(), self.since)
        }
    }

    fn view_attributes(&self, view: usize) -> Attributes {
        let size = self.dataset.size(view);
        Attributes {
            mode: self.view_mode(view),
            size,
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
            files: self.paths.len() as u64,
            files_free: 0,
            fsid: self.paths[0],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_files_stay_and_differ() {
        let first = paths(7, &["a", "b", "c"]);
        assert_eq!(first, paths(7, &["a", "b", "c"]));
        assert_eq!(first[1..3], paths(7, &["a", "b"])[1..]);
        let other = paths(8, &["a", "b", "c"]);
        assert!(first.iter().all(|path| !other.contains(path)));
    }
}
