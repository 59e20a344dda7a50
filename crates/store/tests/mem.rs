//! What is particular to memory: its limits, and rights that only its owner's bits grant.

use std::sync::Arc;

use p9::{Errno, OpenFlags, SetAttributes, SetattrMask};
use store::mem::{MemOptions, MemStore};
use store::{Node, Result, Store};

const NEW: OpenFlags = OpenFlags::READ_WRITE.union(OpenFlags::EXCLUSIVE);

fn errno<T>(result: Result<T>) -> Option<Errno> {
    result.err().map(|error| error.to_errno())
}

fn limited(bytes_max: Option<u64>, files_max: Option<u64>) -> Arc<dyn Node> {
    let options = MemOptions { bytes_max, files_max, owner: None };
    MemStore::with_options(options).root().unwrap()
}

fn free_bytes(root: &Arc<dyn Node>) -> u64 {
    let found = root.statfs().unwrap();
    found.blocks_free * u64::from(found.block_size)
}

#[test]
fn a_full_store_says_so_and_keeps_what_it_has() {
    let root = limited(Some(1 << 20), None);
    let (_, open) = root.create(b"file", NEW, 0o644).unwrap();
    // As much as fits is written, as write(2) does; the next byte is refused.
    let data = vec![7; 3 << 19];
    assert_eq!(open.write_at(&data, 0).unwrap(), 1 << 20);
    assert_eq!(errno(open.write_at(b"x", 1 << 20)), Some(Errno::ENOSPC));
    assert_eq!(open.write_at(b"y", 5).unwrap(), 1, "what has room already can be written over");
    assert_eq!(open.attributes().unwrap().size, 1 << 20);
    assert_eq!(free_bytes(&root), 0);
    // Room comes back by cutting off, and when the last user of a removed file is gone.
    let set = SetAttributes { valid: SetattrMask::SIZE, size: 100_000, ..Default::default() };
    open.set_attributes(&set).unwrap();
    assert_eq!(free_bytes(&root), (1 << 20) - 102_400);
    root.remove(b"file", false).unwrap();
    assert_eq!(free_bytes(&root), (1 << 20) - 102_400);
    drop(open);
    assert_eq!(free_bytes(&root), 1 << 20);
}

#[test]
fn holes_take_no_room() {
    let root = limited(Some(1 << 20), None);
    let (_, open) = root.create(b"file", NEW, 0o644).unwrap();
    assert_eq!(open.write_at(b"far", 1 << 40).unwrap(), 3);
    assert_eq!(open.write_at(b"near", 0).unwrap(), 4);
    let found = open.attributes().unwrap();
    assert_eq!(found.size, (1 << 40) + 3);
    assert_eq!(found.blocks * 512, 2 * 4096);
    let mut buffer = [1; 100];
    assert_eq!(open.read_at(&mut buffer, 1 << 30).unwrap(), 100);
    assert_eq!(buffer, [0; 100]);
}

#[test]
fn files_are_counted_while_anybody_has_them() {
    let root = limited(None, Some(4));
    let (one, _) = root.create(b"one", NEW, 0o644).unwrap();
    root.make_directory(b"two", 0o755).unwrap();
    root.make_symlink(b"three", b"x").unwrap();
    assert_eq!(errno(root.create(b"four", NEW, 0o644)), Some(Errno::ENOSPC));
    assert_eq!(errno(root.make_directory(b"four", 0o755)), Some(Errno::ENOSPC));
    root.link(one.as_ref(), b"four").unwrap();
    root.remove(b"four", false).unwrap();
    root.remove(b"one", false).unwrap();
    assert_eq!(errno(root.create(b"five", NEW, 0o644)), Some(Errno::ENOSPC));
    drop(one);
    root.create(b"five", NEW, 0o644).unwrap();
}

#[test]
fn permission_bits_bind_an_ordinary_user() {
    let options = MemOptions { owner: Some((1000, 1000)), ..MemOptions::default() };
    let root = MemStore::with_options(options).root().unwrap();
    let (node, open) = root.create(b"file", NEW, 0o444).unwrap();
    assert_eq!(open.write_at(b"content", 0).unwrap(), 7);
    assert_eq!(errno(node.open(OpenFlags::READ_WRITE)), Some(Errno::EACCES));
    assert_eq!(errno(node.open(OpenFlags::TRUNCATE)), Some(Errno::EACCES));
    node.open(OpenFlags::empty()).unwrap();
    let size = SetAttributes { valid: SetattrMask::SIZE, ..SetAttributes::default() };
    assert_eq!(errno(node.set_attributes(&size)), Some(Errno::EACCES));
    let give = SetAttributes { valid: SetattrMask::UID, uid: 7, ..SetAttributes::default() };
    assert_eq!(errno(node.set_attributes(&give)), Some(Errno::EPERM));

    root.make_directory(b"dir", 0o555).unwrap();
    let dir = root.walk(&[b"dir"]).unwrap().end.unwrap();
    assert_eq!(errno(dir.create(b"x", NEW, 0o644)), Some(Errno::EACCES));
    assert_eq!(errno(root.rename(b"file", dir.as_ref(), b"x")), Some(Errno::EACCES));
    root.make_directory(b"locked", 0o666).unwrap();
    let locked = root.walk(&[b"locked"]).unwrap().end.unwrap();
    assert_eq!(errno(locked.walk(&[b"x"])), Some(Errno::EACCES));
    root.remove(b"locked", true).unwrap();
}

#[test]
fn a_tree_deeper_than_the_stack_goes_away() {
    let store = MemStore::new();
    let mut here = store.root().unwrap();
    for _ in 0..200_000 {
        here.make_directory(b"d", 0o755).unwrap();
        here = here.walk(&[b"d"]).unwrap().end.unwrap();
    }
    drop(here);
    drop(store);
}

#[test]
fn a_new_store_does_not_number_its_files_as_one_before() {
    let first = MemStore::new().root().unwrap().qid().path;
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let second = MemStore::new().root().unwrap().qid().path;
    assert!(second > first + 1_000_000);
}
