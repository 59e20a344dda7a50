//! A log over a store is a store like any other.

use std::sync::{Arc, Mutex};

use store::fs::FsStore;
use store::mem::MemStore;
use store::{Store, conformance};

mod house;

use house::{Attach, Logs};

#[derive(Default)]
struct Directories(Mutex<Vec<tempfile::TempDir>>);

impl Directories {
    fn store(&self) -> Arc<dyn Store> {
        let dir = tempfile::tempdir().unwrap();
        let store = FsStore::new(dir.path()).unwrap();
        self.0.lock().unwrap().push(dir);
        Arc::new(store)
    }
}

#[test]
fn a_log_over_memory_keeps_every_promise() {
    let logs = Logs::default();
    conformance::run(&|| Arc::new(Attach(logs.over(Arc::new(MemStore::new())))));
}

#[test]
fn a_log_over_a_directory_keeps_every_promise() {
    let (logs, directories) = (Logs::default(), Directories::default());
    conformance::run(&|| Arc::new(Attach(logs.over(directories.store()))));
}
