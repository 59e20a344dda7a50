//! Making and removing names.

use p9::{Errno, OpenFlags, QidType};

use super::Factory;
use super::helpers::{BOTH, at, create, directory, errno, exists, file, list, read, root};

pub(super) fn directories_are_made_once_with_their_mode(make: Factory<'_>) {
    let root = root(make);
    let qid = root.make_directory(b"dir", 0o750).unwrap();
    assert_eq!(qid.kind, QidType::DIR);
    let dir = at(&root, "dir");
    assert_eq!(dir.qid().path, qid.path);
    let attributes = dir.attributes().unwrap();
    assert!(attributes.is_directory());
    assert_eq!(attributes.mode & 0o777, 0o750);
    assert_eq!(errno(root.make_directory(b"dir", 0o755)), Errno::EEXIST);
    let names = list(&dir);
    assert_eq!(names.len(), 2, "a new directory holds the two dots only");
    let node = file(&root, "file", b"");
    assert_eq!(errno(root.make_directory(b"file", 0o755)), Errno::EEXIST);
    assert_eq!(errno(node.make_directory(b"x", 0o755)), Errno::ENOTDIR);
}

pub(super) fn removal_asks_for_the_right_kind(make: Factory<'_>) {
    let root = root(make);
    directory(&root, "dir");
    file(&root, "file", b"");
    root.make_symlink(b"link", b"dir").unwrap();
    assert_eq!(errno(root.remove(b"dir", false)), Errno::EISDIR);
    assert_eq!(errno(root.remove(b"file", true)), Errno::ENOTDIR);
    assert_eq!(errno(root.remove(b"link", true)), Errno::ENOTDIR);
    assert_eq!(errno(root.remove(b"none", false)), Errno::ENOENT);
    assert_eq!(errno(root.remove(b"none", true)), Errno::ENOENT);
    root.remove(b"link", false).unwrap();
    assert!(exists(&root, "dir"), "removing a link leaves what it leads to");
    root.remove(b"dir", true).unwrap();
    root.remove(b"file", false).unwrap();
    assert_eq!(list(&root).len(), 2);
    assert_eq!(errno(root.remove(b"file", false)), Errno::ENOENT);
}

pub(super) fn directories_must_be_empty_to_go(make: Factory<'_>) {
    let root = root(make);
    let dir = directory(&root, "dir");
    file(&dir, "file", b"");
    assert_eq!(errno(root.remove(b"dir", true)), Errno::ENOTEMPTY);
    assert!(exists(&dir, "file"));
    dir.remove(b"file", false).unwrap();
    root.remove(b"dir", true).unwrap();
    assert!(!exists(&root, "dir"));
}

pub(super) fn symbolic_links_keep_their_target(make: Factory<'_>) {
    let root = root(make);
    let long = [b'x'; 3000];
    let targets: [&[u8]; 5] = [b"a", b"../../..", b"/etc/passwd", b"\xff//\xfe/", &long];
    for (n, target) in targets.iter().enumerate() {
        let name = format!("link{n}");
        root.make_symlink(name.as_bytes(), target).unwrap();
        let link = at(&root, &name);
        assert_eq!(link.read_link().unwrap(), *target);
        assert_eq!(link.attributes().unwrap().size, target.len() as u64);
    }
    assert_eq!(errno(root.make_symlink(b"link0", b"b")), Errno::EEXIST);
    assert_eq!(errno(root.make_symlink(b"empty", b"")), Errno::ENOENT);
    assert_eq!(errno(root.read_link()), Errno::EINVAL);
    assert_eq!(errno(file(&root, "file", b"").read_link()), Errno::EINVAL);
    let too_long = vec![b'x'; 5000];
    assert_eq!(errno(root.make_symlink(b"long", &too_long)), Errno::ENAMETOOLONG);
}

pub(super) fn hard_links_are_one_file(make: Factory<'_>) {
    let root = root(make);
    let dir = directory(&root, "dir");
    let one = file(&root, "one", b"content");
    dir.link(one.as_ref(), b"two").unwrap();
    let two = at(&dir, "two");
    assert_eq!(two.qid().path, one.qid().path);
    assert_eq!(one.attributes().unwrap().nlink, 2);
    two.open(BOTH).unwrap().write_at(b"C", 0).unwrap();
    assert_eq!(read(&one), b"Content");
    root.remove(b"one", false).unwrap();
    assert_eq!(two.attributes().unwrap().nlink, 1);
    assert_eq!(read(&two), b"Content");
    // A symbolic link can have two names as well, and stays one.
    root.make_symlink(b"link", b"dir").unwrap();
    root.link(at(&root, "link").as_ref(), b"link2").unwrap();
    assert_eq!(at(&root, "link2").read_link().unwrap(), b"dir");
}

pub(super) fn links_that_cannot_be_are_refused(make: Factory<'_>) {
    let root = root(make);
    let dir = directory(&root, "dir");
    let one = file(&root, "one", b"");
    file(&root, "two", b"");
    assert_eq!(errno(root.link(one.as_ref(), b"two")), Errno::EEXIST);
    assert_eq!(errno(root.link(dir.as_ref(), b"three")), Errno::EPERM);
    assert_eq!(errno(one.link(one.as_ref(), b"x")), Errno::ENOTDIR);
    root.remove(b"one", false).unwrap();
    assert_eq!(errno(root.link(one.as_ref(), b"again")), Errno::ENOENT);
}

pub(super) fn parent_follows_a_rename(make: Factory<'_>) {
    let root = root(make);
    let a = directory(&root, "a");
    let b = directory(&root, "b");
    let node = file(&a, "file", b"");
    let check = |dir_path: u64, name: &[u8]| {
        let (dir, known) = node.parent().unwrap();
        assert_eq!(dir.qid().path, dir_path);
        assert_eq!(known, name);
        assert_eq!(dir.walk(&[&known]).unwrap().qids[0].path, node.qid().path);
    };
    check(a.qid().path, b"file");
    a.rename(b"file", a.as_ref(), b"other").unwrap();
    check(a.qid().path, b"other");
    a.rename(b"other", b.as_ref(), b"file").unwrap();
    check(b.qid().path, b"file");
    // And when the directory moves, with a decoy left in its place.
    root.rename(b"b", a.as_ref(), b"c").unwrap();
    let decoy = directory(&root, "b");
    file(&decoy, "file", b"");
    check(b.qid().path, b"file");
    let (above, name) = b.parent().unwrap();
    assert_eq!((above.qid().path, &name[..]), (a.qid().path, &b"c"[..]));
    // A second handle knows it as well, also of an opened node.
    let _open = node.open(BOTH).unwrap();
    let (_, name) = node.walk(&[]).unwrap().end.unwrap().parent().unwrap();
    assert_eq!(name, b"file");
}

pub(super) fn parent_is_lost_with_the_name_and_never_known_at_the_root(make: Factory<'_>) {
    let root = root(make);
    errno(root.parent());
    let node = file(&root, "file", b"");
    root.remove(b"file", false).unwrap();
    assert_eq!(errno(node.parent()), Errno::ENOENT);
    file(&root, "file", b"");
    assert_eq!(errno(node.parent()), Errno::ENOENT);
    let dir = directory(&root, "dir");
    root.remove(b"dir", true).unwrap();
    assert_eq!(errno(dir.parent()), Errno::ENOENT);
}

pub(super) fn nothing_is_made_in_a_removed_directory(make: Factory<'_>) {
    let root = root(make);
    let dir = directory(&root, "dir");
    let (node, _) = create(&root, "file");
    root.remove(b"dir", true).unwrap();
    assert_eq!(errno(dir.create(b"x", BOTH | OpenFlags::EXCLUSIVE, 0o644)), Errno::ENOENT);
    assert_eq!(errno(dir.make_directory(b"x", 0o755)), Errno::ENOENT);
    assert_eq!(errno(dir.make_symlink(b"x", b"y")), Errno::ENOENT);
    assert_eq!(errno(dir.link(node.as_ref(), b"x")), Errno::ENOENT);
    assert_eq!(errno(root.rename(b"file", dir.as_ref(), b"x")), Errno::ENOENT);
    assert!(exists(&root, "file"));
}
