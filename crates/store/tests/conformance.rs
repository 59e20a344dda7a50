//! Every store of this crate passes the suite that all stores must pass.

use std::sync::{Arc, Mutex};

use store::fs::FsStore;
use store::mem::{MemOptions, MemStore};
use store::{Exports, Node, Result, Store, conformance};

/// Keeps directories until the test ends.
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

/// A member of a list of exports, seen as a store of its own.
struct Member(Exports);

impl Store for Member {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(self.0.root()?.walk(&[b"member"])?.end.unwrap())
    }
}

fn member(store: Arc<dyn Store>) -> Arc<dyn Store> {
    let other: Arc<dyn Store> = Arc::new(MemStore::new());
    let list = [(b"member".to_vec(), store), (b"other".to_vec(), other)];
    Arc::new(Member(Exports::new(list).unwrap()))
}

/// What is different at the top of a member: it has something above it.
const MEMBER_HAS_A_PARENT: [&str; 2] = [
    "dot_dot_goes_up_but_not_above_the_root",
    "parent_is_lost_with_the_name_and_never_known_at_the_root",
];

#[test]
fn a_directory_keeps_every_promise() {
    let directories = Directories::default();
    conformance::run(&|| directories.store());
}

#[test]
fn memory_keeps_every_promise() {
    conformance::run(&|| Arc::new(MemStore::new()));
}

#[test]
fn memory_of_an_ordinary_user_keeps_every_promise() {
    let owner = Some((1000, 1000));
    let options = MemOptions { owner, ..MemOptions::default() };
    conformance::run(&|| Arc::new(MemStore::with_options(options)));
}

#[test]
fn a_member_of_a_list_keeps_every_promise_of_its_store() {
    let directories = Directories::default();
    conformance::run_except(&|| member(directories.store()), &MEMBER_HAS_A_PARENT);
    conformance::run_except(&|| member(Arc::new(MemStore::new())), &MEMBER_HAS_A_PARENT);
}
