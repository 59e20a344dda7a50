//! Going from node to node.

use p9::{Errno, QidType};

use super::Factory;
use super::helpers::{BOTH, WRITE, at, create, directory, errno, file, list, read, root};

pub(super) fn an_empty_walk_gives_a_second_handle(make: Factory<'_>) {
    let root = root(make);
    let one = file(&root, "file", b"content");
    let walk = one.walk(&[]).unwrap();
    assert!(walk.qids.is_empty());
    let two = walk.end.unwrap();
    assert_eq!(two.qid().path, one.qid().path);
    drop(one);
    assert_eq!(read(&two), b"content");
    // Also of a file that has lost its name, and while it is open.
    let open = two.open(BOTH).unwrap();
    root.remove(b"file", false).unwrap();
    let three = two.walk(&[]).unwrap().end.unwrap();
    drop((two, open));
    assert_eq!(read(&three), b"content");
}

pub(super) fn a_missing_first_element_is_an_error_and_a_later_one_ends_the_walk(make: Factory<'_>) {
    let root = root(make);
    let a = directory(&root, "a");
    let b = file(&a, "b", b"");
    assert_eq!(errno(root.walk(&[b"x"])), Errno::ENOENT);
    assert_eq!(errno(root.walk(&[b"x", b"b"])), Errno::ENOENT);
    assert_eq!(errno(b.walk(&[b"x"])), Errno::ENOTDIR);
    assert_eq!(errno(b.walk(&[b".."])), Errno::ENOTDIR);
    for (names, reached) in [
        (&[&b"a"[..], b"x"][..], 1),
        (&[b"a", b"b", b"x"], 2),
        (&[b"a", b"b", b".."], 2),
        (&[b"a", b"x", b"b"], 1),
    ] {
        let walk = root.walk(names).unwrap();
        assert_eq!(walk.qids.len(), reached);
        assert!(walk.end.is_none());
    }
    let walk = root.walk(&[b"a", b"b"]).unwrap();
    let paths: Vec<u64> = walk.qids.iter().map(|qid| qid.path).collect();
    assert_eq!(paths, [a.qid().path, b.qid().path]);
    assert_eq!(walk.qids[0].kind, QidType::DIR);
    assert_eq!(walk.qids[1].kind, QidType::empty());
}

pub(super) fn dot_dot_goes_up_but_not_above_the_root(make: Factory<'_>) {
    let root = root(make);
    let a = directory(&root, "a");
    let b = directory(&a, "b");
    assert_eq!(at(&b, "..").qid().path, a.qid().path);
    assert_eq!(at(&b, "../..").qid().path, root.qid().path);
    assert_eq!(at(&b, "../../../../a/b/../b").qid().path, b.qid().path);
    assert_eq!(at(&root, "..").qid().path, root.qid().path);
    let listed = list(&root);
    assert_eq!(listed[&b"."[..]].0.path, root.qid().path);
    assert_eq!(listed[&b".."[..]].0.path, root.qid().path);
    assert_eq!(list(&b)[&b".."[..]].0.path, a.qid().path);
    // What is up is asked when going there, not remembered.
    let c = directory(&root, "c");
    a.rename(b"b", c.as_ref(), b"d").unwrap();
    assert_eq!(at(&b, "..").qid().path, c.qid().path);
}

pub(super) fn symbolic_links_are_nodes_and_not_followed(make: Factory<'_>) {
    let root = root(make);
    let a = directory(&root, "a");
    file(&a, "file", b"content");
    let qid = root.make_symlink(b"link", b"a").unwrap();
    assert_eq!(qid.kind, QidType::SYMLINK);
    let link = at(&root, "link");
    assert_eq!(link.qid().path, qid.path);
    assert!(link.attributes().unwrap().is_symlink());
    assert_eq!(errno(link.walk(&[b"file"])), Errno::ENOTDIR);
    let walk = root.walk(&[b"link", b"file"]).unwrap();
    assert_eq!(walk.qids.len(), 1);
    assert!(walk.end.is_none());
    assert_eq!(errno(link.open(BOTH)), Errno::ELOOP);
    assert_eq!(errno(root.create(b"link", WRITE, 0o644)), Errno::ELOOP);
}

pub(super) fn names_are_any_bytes_up_to_255(make: Factory<'_>) {
    let root = root(make);
    let longest = [b'n'; 255];
    let names: [&[u8]; 5] = [b"\xff\xfe", b"new\nline", b"...", b" ", &longest];
    for name in names {
        root.create(name, BOTH, 0o644).unwrap();
        assert_eq!(root.walk(&[name]).unwrap().qids.len(), 1);
    }
    let listed = list(&root);
    assert_eq!(listed.len(), names.len() + 2);
    assert!(names.iter().all(|name| listed.contains_key(*name)));
    let too_long = [b'n'; 256];
    assert_eq!(errno(root.walk(&[&too_long])), Errno::ENAMETOOLONG);
    assert_eq!(errno(root.create(&too_long, BOTH, 0o644)), Errno::ENAMETOOLONG);
    assert_eq!(errno(root.make_directory(&too_long, 0o755)), Errno::ENAMETOOLONG);
}

pub(super) fn names_that_are_no_names_are_refused(make: Factory<'_>) {
    let root = root(make);
    let (other, _) = create(&root, "other");
    for (name, expected) in [
        (&b""[..], Errno::ENOENT),
        (b"a/b", Errno::EINVAL),
        (b"/", Errno::EINVAL),
        (b"a\0", Errno::EINVAL),
    ] {
        assert_eq!(errno(root.walk(&[name])), expected);
        assert_eq!(errno(root.create(name, BOTH, 0o644)), expected);
        assert_eq!(errno(root.make_directory(name, 0o755)), expected);
        assert_eq!(errno(root.make_symlink(name, b"x")), expected);
        assert_eq!(errno(root.link(other.as_ref(), name)), expected);
        assert_eq!(errno(root.rename(b"other", root.as_ref(), name)), expected);
        assert_eq!(errno(root.remove(name, false)), expected);
    }
    for dots in [&b"."[..], b".."] {
        assert_eq!(errno(root.create(dots, BOTH, 0o644)), Errno::EISDIR);
        assert_eq!(errno(root.make_directory(dots, 0o755)), Errno::EEXIST);
        assert_eq!(errno(root.rename(b"other", root.as_ref(), dots)), Errno::EBUSY);
        assert_eq!(errno(root.remove(dots, false)), Errno::EISDIR);
        assert_eq!(errno(root.remove(dots, true)), Errno::EINVAL);
    }
    assert_eq!(list(&root).len(), 3);
}
