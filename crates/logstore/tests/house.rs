//! What the tests share: logs in directories.
#![allow(dead_code)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use hostlog::media::directory::Directory;
use hostlog::{Description, Log};
use logstore::{LogStore, Options};
use store::{Node, Store};

/// A store by handle.
pub(crate) struct Attach(pub(crate) Arc<LogStore>);

impl Store for Attach {
    fn root(&self) -> store::Result<Arc<dyn Node>> {
        self.0.root()
    }

    fn blocks(&self) -> bool {
        self.0.blocks()
    }
}

/// Small logs, kept until the test ends.
#[derive(Default)]
pub(crate) struct Logs(Mutex<Vec<tempfile::TempDir>>);

pub(crate) fn small() -> hostlog::Options {
    let segment_bytes = 256 << 10;
    hostlog::Options { segment_bytes, size_max_bytes: 256 << 20, ready_segments: 1 }
}

pub(crate) fn new_log(path: &Path, options: hostlog::Options) -> Arc<Log> {
    let media = Arc::new(Directory::new(path));
    Arc::new(Log::create(media, &Description::default(), options).unwrap())
}

impl Logs {
    pub(crate) fn over(&self, target: Arc<dyn Store>) -> Arc<LogStore> {
        let dir = tempfile::tempdir().unwrap();
        let log = new_log(dir.path(), small());
        self.0.lock().unwrap().push(dir);
        LogStore::open(log, None, &target, Options::default()).unwrap()
    }
}
