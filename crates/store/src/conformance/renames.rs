//! Renaming, as rename(2) has it.

use p9::Errno;

use super::Factory;
use super::helpers::{at, directory, errno, exists, file, list, read, root};

pub(super) fn a_rename_replaces_files_and_empty_directories(make: Factory<'_>) {
    let root = root(make);
    let a = directory(&root, "a");
    let old = file(&root, "old", b"old");
    let replaced = file(&a, "new", b"new");
    root.rename(b"old", a.as_ref(), b"new").unwrap();
    assert!(!exists(&root, "old"));
    assert_eq!(at(&a, "new").qid().path, old.qid().path);
    assert_eq!(read(&at(&a, "new")), b"old");
    assert_eq!(replaced.attributes().unwrap().nlink, 0);
    let b = directory(&root, "b");
    directory(&root, "empty");
    a.rename(b"new", b.as_ref(), b"new").unwrap();
    root.rename(b"b", root.as_ref(), b"empty").unwrap();
    assert_eq!(at(&root, "empty").qid().path, b.qid().path);
    assert_eq!(read(&at(&root, "empty/new")), b"old");
    let names: Vec<Vec<u8>> = list(&root).into_keys().collect();
    assert_eq!(names, [&b"."[..], b"..", b"a", b"empty"]);
    // Onto itself: nothing.
    b.rename(b"new", b.as_ref(), b"new").unwrap();
    assert_eq!(read(&at(&b, "new")), b"old");
}

pub(super) fn a_rename_between_kinds_is_refused(make: Factory<'_>) {
    let root = root(make);
    let dir = directory(&root, "dir");
    let full = directory(&root, "full");
    file(&full, "x", b"");
    file(&root, "file", b"content");
    assert_eq!(errno(root.rename(b"file", root.as_ref(), b"dir")), Errno::EISDIR);
    assert_eq!(errno(root.rename(b"dir", root.as_ref(), b"file")), Errno::ENOTDIR);
    assert_eq!(errno(root.rename(b"dir", root.as_ref(), b"full")), Errno::ENOTEMPTY);
    assert_eq!(errno(root.rename(b"none", root.as_ref(), b"x")), Errno::ENOENT);
    let node = at(&root, "file");
    assert_eq!(errno(root.rename(b"file", node.as_ref(), b"x")), Errno::ENOTDIR);
    assert_eq!(errno(node.rename(b"x", root.as_ref(), b"y")), Errno::ENOTDIR);
    assert_eq!(read(&node), b"content");
    assert_eq!(dir.attributes().unwrap().nlink, 2);
    assert!(exists(&full, "x"));
}

pub(super) fn a_directory_cannot_move_into_itself(make: Factory<'_>) {
    let root = root(make);
    let a = directory(&root, "a");
    let b = directory(&a, "b");
    let c = directory(&b, "c");
    for below in [&a, &b, &c] {
        assert_eq!(errno(root.rename(b"a", below.as_ref(), b"x")), Errno::EINVAL);
    }
    // Nor onto what it is in.
    assert_eq!(errno(b.rename(b"c", root.as_ref(), b"a")), Errno::ENOTEMPTY);
    assert_eq!(at(&root, "a/b/c").qid().path, c.qid().path);
}

pub(super) fn renaming_one_of_two_names_onto_the_other_does_nothing(make: Factory<'_>) {
    let root = root(make);
    let one = file(&root, "one", b"content");
    root.link(one.as_ref(), b"two").unwrap();
    root.rename(b"one", root.as_ref(), b"two").unwrap();
    assert!(exists(&root, "one") && exists(&root, "two"));
    assert_eq!(one.attributes().unwrap().nlink, 2);
}

pub(super) fn renames_move_whole_trees(make: Factory<'_>) {
    let root = root(make);
    let from = directory(&root, "from");
    let to = directory(&root, "to");
    let tree = directory(&from, "tree");
    let inner = directory(&tree, "inner");
    file(&inner, "file", b"content");
    let links = |dir: &std::sync::Arc<dyn crate::Node>| dir.attributes().unwrap().nlink;
    assert_eq!((links(&from), links(&to), links(&tree)), (3, 2, 3));
    from.rename(b"tree", to.as_ref(), b"moved").unwrap();
    assert_eq!((links(&from), links(&to), links(&tree)), (2, 3, 3));
    assert_eq!(read(&at(&root, "to/moved/inner/file")), b"content");
    assert_eq!(read(&at(&inner, "file")), b"content");
    assert_eq!(at(&tree, "..").qid().path, to.qid().path);
}

pub(super) fn two_stores_do_not_mix(make: Factory<'_>) {
    let (one, two) = (root(make), root(make));
    let node = file(&one, "file", b"content");
    assert_eq!(errno(one.rename(b"file", two.as_ref(), b"file")), Errno::EXDEV);
    assert_eq!(errno(two.link(node.as_ref(), b"file")), Errno::EXDEV);
    assert!(exists(&one, "file"));
    assert!(!exists(&two, "file"));
}
