//! What the checks have in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use p9::{Errno, OpenFlags, Qid};

use super::Factory;
use crate::error::Result;
use crate::node::{Node, OpenNode};

pub(super) const READ: OpenFlags = OpenFlags::empty();
pub(super) const WRITE: OpenFlags = OpenFlags::WRITE_ONLY;
pub(super) const BOTH: OpenFlags = OpenFlags::READ_WRITE;

/// The root of a new store.
pub(super) fn root(make: Factory<'_>) -> Arc<dyn Node> {
    make().root().expect("the root")
}

/// The error number of what must fail.
#[track_caller]
pub(super) fn errno<T>(result: Result<T>) -> Errno {
    match result {
        Ok(_) => panic!("this must fail, and did not"),
        Err(error) => error.to_errno(),
    }
}

#[track_caller]
pub(super) fn at(from: &Arc<dyn Node>, path: &str) -> Arc<dyn Node> {
    let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
    let walk = from.walk(&names).unwrap_or_else(|error| panic!("walk to {path}: {error}"));
    assert_eq!(walk.qids.len(), names.len(), "walk to {path} ends early");
    walk.end.expect("a walk that reached every element has an end")
}

pub(super) fn exists(dir: &Arc<dyn Node>, name: &str) -> bool {
    dir.walk(&[name.as_bytes()]).is_ok()
}

/// Makes a file that must not be there yet.
#[track_caller]
pub(super) fn create(dir: &Arc<dyn Node>, name: &str) -> (Arc<dyn Node>, Arc<dyn OpenNode>) {
    dir.create(name.as_bytes(), BOTH | OpenFlags::EXCLUSIVE, 0o644)
        .unwrap_or_else(|error| panic!("create {name}: {error}"))
}

#[track_caller]
pub(super) fn file(dir: &Arc<dyn Node>, name: &str, content: &[u8]) -> Arc<dyn Node> {
    let (node, open) = create(dir, name);
    assert_eq!(open.write_at(content, 0).expect("write"), content.len());
    node
}

#[track_caller]
pub(super) fn directory(dir: &Arc<dyn Node>, name: &str) -> Arc<dyn Node> {
    dir.make_directory(name.as_bytes(), 0o755)
        .unwrap_or_else(|error| panic!("mkdir {name}: {error}"));
    at(dir, name)
}

#[track_caller]
pub(super) fn read_open(open: &Arc<dyn OpenNode>) -> Vec<u8> {
    let size = open.attributes().expect("attributes").size as usize;
    let mut buffer = vec![0xee; size + 10];
    let len = open.read_at(&mut buffer, 0).expect("read");
    assert_eq!(len, size, "a read of the whole file gives as many bytes as it has");
    buffer.truncate(len);
    buffer
}

#[track_caller]
pub(super) fn read(node: &Arc<dyn Node>) -> Vec<u8> {
    read_open(&node.open(READ).expect("open"))
}

/// An entry of a listing: identity, cookie and type.
pub(super) type Listed = (Qid, u64, u8);

/// All entries by name; every name must come once.
#[track_caller]
pub(super) fn list(dir: &Arc<dyn Node>) -> BTreeMap<Vec<u8>, Listed> {
    let open = dir.open(OpenFlags::DIRECTORY).expect("open directory");
    let mut all = BTreeMap::new();
    open.read_directory(0, &mut |entry| {
        let new = (entry.qid, entry.offset, entry.kind);
        assert!(all.insert(entry.name.to_vec(), new).is_none(), "an entry comes twice");
        true
    })
    .expect("list");
    all
}

/// A moment that file systems with coarse clocks see as a later one.
pub(super) fn wait_for_the_clock() {
    std::thread::sleep(std::time::Duration::from_millis(20));
}
