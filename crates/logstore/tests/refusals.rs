//! What the target would refuse later is refused at once.

use std::sync::Arc;

use p9::{Errno, OpenFlags, SetAttributes, SetattrMask};
use store::mem::{MemOptions, MemStore};
use store::{ReadOnly, Store};

mod house;

use house::{BOTH, READ, Scene, at, content_at};

fn errno<T>(result: store::Result<T>) -> Errno {
    match result {
        Ok(_) => panic!("this must fail, and did not"),
        Err(error) => error.to_errno(),
    }
}

#[test]
fn a_read_only_target_is_read_and_not_changed() {
    let target = Arc::new(MemStore::new());
    let top = target.root().unwrap();
    top.make_directory(b"dir", 0o755).unwrap();
    let (_, open) = top.create(b"file", BOTH, 0o644).unwrap();
    open.write_at(b"content", 0).unwrap();
    let scene = Scene::new(Arc::new(ReadOnly::new(target)));
    let root = scene.root();
    let file = at(&root, b"file").unwrap();
    assert_eq!(content_at(&root, "file"), b"content");
    for dir in [&root, &at(&root, b"dir").unwrap()] {
        assert_eq!(errno(dir.create(b"new", BOTH, 0o644)), Errno::EROFS);
        assert_eq!(errno(dir.make_directory(b"new", 0o755)), Errno::EROFS);
        assert_eq!(errno(dir.make_symlink(b"new", b"x")), Errno::EROFS);
        assert_eq!(errno(dir.link(&*file, b"new")), Errno::EROFS);
    }
    assert_eq!(errno(root.remove(b"file", false)), Errno::EROFS);
    assert_eq!(errno(root.rename(b"file", &*root, b"other")), Errno::EROFS);
    for flags in [OpenFlags::WRITE_ONLY, BOTH, OpenFlags::TRUNCATE] {
        assert_eq!(errno(file.open(flags)), Errno::EROFS);
    }
    for valid in [SetattrMask::SIZE, SetattrMask::MODE, SetattrMask::MTIME] {
        let set = SetAttributes { valid, ..SetAttributes::default() };
        assert_eq!(errno(file.set_attributes(&set)), Errno::EROFS, "{valid:?}");
    }
    assert_eq!(scene.log.status().last, hostlog::Sequence(0), "something went to the log");
}

#[test]
fn what_belongs_to_others_in_the_target_is_theirs() {
    let owner = Some((1000, 1000));
    let target = Arc::new(MemStore::with_options(MemOptions { owner, ..MemOptions::default() }));
    target.root().unwrap().create(b"closed", BOTH, 0o000).unwrap();
    target.root().unwrap().create(b"readable", BOTH, 0o444).unwrap();
    let scene = Scene::new(target);
    let root = scene.root();
    let open = |name: &[u8], flags| at(&root, name).unwrap().open(flags);
    assert_eq!(errno(open(b"closed", READ)), Errno::EACCES);
    assert_eq!(errno(open(b"readable", BOTH)), Errno::EACCES);
    open(b"readable", READ).unwrap();
    let set = SetAttributes { valid: SetattrMask::SIZE, ..SetAttributes::default() };
    assert_eq!(errno(at(&root, b"readable").unwrap().set_attributes(&set)), Errno::EACCES);
}

/// Data is never wrong: a file of the target that somebody else has replaced is not read as if it were
/// the one that the log knows.
#[test]
fn a_file_that_others_replaced_between_two_lives_is_not_read() {
    let target = Arc::new(MemStore::new());
    let top = target.root().unwrap();
    top.create(b"file", BOTH, 0o644).unwrap().1.write_at(b"the first one", 0).unwrap();
    let scene = Scene::new(target);
    {
        let open = at(&scene.root(), b"file").unwrap().open(BOTH).unwrap();
        open.write_at(b"THE", 0).unwrap();
    }
    let scene = scene.restart(|_| {
        top.remove(b"file", false).unwrap();
        top.create(b"file", BOTH, 0o644).unwrap().1.write_at(b"the other one", 0).unwrap();
    });
    // What is at the name is the target's; what was written belongs to the one that is gone.
    assert_eq!(content_at(&scene.root(), "file"), b"the other one");
}
