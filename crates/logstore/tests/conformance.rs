//! A log over a store is a store like any other.

use std::sync::{Arc, Mutex};

use store::fs::FsStore;
use store::mem::MemStore;
use store::{Store, conformance};

mod house;

use house::{Attach, Scene};

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

fn over(target: Arc<dyn Store>) -> Arc<dyn Store> {
    let options = hostlog::Options { segment_bytes: 1 << 20, ..house::small() };
    Arc::new(Attach(Scene::with(target, options).store))
}

#[test]
fn a_log_over_memory_keeps_every_promise() {
    conformance::run(&|| over(Arc::new(MemStore::new())));
}

#[test]
fn a_log_over_a_directory_keeps_every_promise() {
    let directories = Directories::default();
    conformance::run(&|| over(directories.store()));
}
