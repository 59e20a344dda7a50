//! What is known about a file besides its bytes.

use std::collections::BTreeSet;

use p9::{Errno, OpenFlags, SetAttributes, SetattrMask, Time, mode};

use super::Factory;
use super::helpers::{
    BOTH, READ, at, create, directory, errno, file, list, read, root, wait_for_the_clock,
};

fn set(valid: SetattrMask) -> SetAttributes {
    SetAttributes { valid, ..SetAttributes::default() }
}

pub(super) fn identities_are_unique_and_stay(make: Factory<'_>) {
    let root = root(make);
    let mut paths = BTreeSet::from([root.qid().path]);
    for n in 0..50 {
        let name = format!("n{n}");
        let path = match n % 3 {
            0 => root.make_directory(name.as_bytes(), 0o755).unwrap().path,
            1 => root.make_symlink(name.as_bytes(), b"x").unwrap().path,
            _ => create(&root, &name).0.qid().path,
        };
        assert!(paths.insert(path), "two files have the same identity");
    }
    for (name, (listed, _, _)) in list(&root) {
        let walked = root.walk(&[&name]).unwrap();
        assert_eq!(walked.qids[0].path, listed.path);
        let node = walked.end.unwrap();
        assert_eq!(node.qid().path, listed.path);
        assert_eq!(node.qid().kind, listed.kind);
        assert_eq!(node.attributes().unwrap().qid.path, listed.path);
    }
    let node = at(&root, "n2");
    let open = node.open(BOTH).unwrap();
    root.rename(b"n2", at(&root, "n0").as_ref(), b"moved").unwrap();
    assert_eq!(at(&root, "n0/moved").qid().path, node.qid().path);
    assert_eq!(open.attributes().unwrap().qid.path, node.qid().path);
}

pub(super) fn the_version_changes_with_the_content(make: Factory<'_>) {
    let root = root(make);
    let (node, open) = create(&root, "file");
    let mut versions = BTreeSet::from([node.qid().version]);
    let mut changed = |what: &str| {
        let known = node.attributes().unwrap().qid;
        assert!(versions.insert(known.version), "{what} leaves the version");
        assert_eq!(known, node.qid());
        wait_for_the_clock();
    };
    open.write_at(b"one", 0).unwrap();
    changed("a write that extends");
    open.write_at(b"two", 0).unwrap();
    changed("a write over what is there");
    node.set_attributes(&set(SetattrMask::SIZE)).unwrap();
    changed("cutting off");
    let again = node.open(BOTH | OpenFlags::TRUNCATE).unwrap();
    again.write_at(b"three", 0).unwrap();
    wait_for_the_clock();
    let before = node.attributes().unwrap().qid;
    again.write_at(b"four", 0).unwrap();
    node.open(READ).unwrap();
    assert_ne!(node.qid(), before, "an opening tells an old version");
    let known = node.attributes().unwrap().qid;
    assert_eq!(known, node.qid());
    assert_eq!(known, root.walk(&[b"file"]).unwrap().qids[0]);
    assert_eq!(known, open.attributes().unwrap().qid);
}

pub(super) fn the_version_is_that_of_the_moment(make: Factory<'_>) {
    let root = root(make);
    let (node, open) = create(&root, "file");
    let before = node.qid();
    wait_for_the_clock();
    open.write_at(b"one", 0).unwrap();
    assert_ne!(node.qid(), before);
}

pub(super) fn modes_can_be_changed(make: Factory<'_>) {
    let root = root(make);
    let (node, open) = create(&root, "file");
    let dir = directory(&root, "dir");
    for mode in [0o600, 0o4755, 0o000, 0o644] {
        let wanted = SetAttributes { mode: mode::REGULAR | mode, ..set(SetattrMask::MODE) };
        node.set_attributes(&wanted).unwrap();
        assert_eq!(node.attributes().unwrap().mode, mode::REGULAR | mode);
    }
    open.set_attributes(&SetAttributes { mode: 0o640, ..set(SetattrMask::MODE) }).unwrap();
    assert_eq!(node.attributes().unwrap().mode, mode::REGULAR | 0o640);
    dir.set_attributes(&SetAttributes { mode: 0o1711, ..set(SetattrMask::MODE) }).unwrap();
    assert_eq!(dir.attributes().unwrap().mode, mode::DIRECTORY | 0o1711);
    // Giving a file to those who have it is always possible.
    let now = node.attributes().unwrap();
    let same =
        SetAttributes { uid: now.uid, gid: now.gid, ..set(SetattrMask::UID | SetattrMask::GID) };
    node.set_attributes(&same).unwrap();
    let then = node.attributes().unwrap();
    assert_eq!((then.uid, then.gid), (now.uid, now.gid));
    node.set_attributes(&set(SetattrMask::empty())).unwrap();
}

pub(super) fn times_are_kept_to_the_nanosecond(make: Factory<'_>) {
    let root = root(make);
    let (node, open) = create(&root, "file");
    let time = |seconds, nanoseconds| Time { seconds, nanoseconds };
    let both =
        SetattrMask::ATIME | SetattrMask::ATIME_SET | SetattrMask::MTIME | SetattrMask::MTIME_SET;
    let (early, late) = (time(1, 999_999_999), time(1_700_000_000, 123_456_789));
    node.set_attributes(&SetAttributes { atime: early, mtime: late, ..set(both) }).unwrap();
    let now = node.attributes().unwrap();
    assert_eq!((now.atime, now.mtime), (early, late));
    let only = SetattrMask::MTIME | SetattrMask::MTIME_SET;
    open.set_attributes(&SetAttributes { mtime: early, ..set(only) }).unwrap();
    let now = node.attributes().unwrap();
    assert_eq!((now.atime, now.mtime), (early, early));
    // To the clock of the store; a change does that by itself.
    node.set_attributes(&set(SetattrMask::MTIME)).unwrap();
    let touched = node.attributes().unwrap().mtime;
    assert!(touched > late);
    wait_for_the_clock();
    open.write_at(b"x", 0).unwrap();
    let now = node.attributes().unwrap();
    assert!(now.mtime > touched && now.ctime > touched);
    let before = root.attributes().unwrap().mtime;
    wait_for_the_clock();
    directory(&root, "dir");
    assert!(root.attributes().unwrap().mtime > before);
    // Also of symbolic links and directories.
    root.make_symlink(b"link", b"file").unwrap();
    for name in ["link", "dir"] {
        let node = at(&root, name);
        node.set_attributes(&SetAttributes { mtime: late, ..set(only) }).unwrap();
        assert_eq!(node.attributes().unwrap().mtime, late);
    }
    assert!(at(&root, "file").attributes().unwrap().mtime > late);
}

pub(super) fn impossible_times_are_refused(make: Factory<'_>) {
    let root = root(make);
    let (node, _) = create(&root, "file");
    let before = node.attributes().unwrap().mtime;
    // Among them UTIME_NOW and UTIME_OMIT.
    for nanoseconds in [1_000_000_000, (1 << 30) - 1, (1 << 30) - 2, u64::MAX] {
        let mtime = Time { seconds: 5, nanoseconds };
        let wanted = SetAttributes { mtime, ..set(SetattrMask::MTIME | SetattrMask::MTIME_SET) };
        assert_eq!(errno(node.set_attributes(&wanted)), Errno::EINVAL);
    }
    assert_eq!(node.attributes().unwrap().mtime, before);
}

pub(super) fn sizes_can_be_set_without_opening(make: Factory<'_>) {
    let root = root(make);
    let node = file(&root, "file", &[7; 100_000]);
    let size = |size| SetAttributes { size, ..set(SetattrMask::SIZE) };
    node.set_attributes(&size(70_000)).unwrap();
    node.set_attributes(&size(200_000)).unwrap();
    let all = read(&node);
    assert_eq!(all.len(), 200_000);
    assert!(all[..70_000].iter().all(|byte| *byte == 7));
    assert!(all[70_000..].iter().all(|byte| *byte == 0), "what was cut off came back");
    assert_eq!(node.attributes().unwrap().size, 200_000);
    node.set_attributes(&size(0)).unwrap();
    assert_eq!(read(&node), b"");
    assert_eq!(errno(root.set_attributes(&size(0))), Errno::EISDIR);
    root.make_symlink(b"link", b"file").unwrap();
    assert_eq!(errno(at(&root, "link").set_attributes(&size(0))), Errno::EINVAL);
    errno(node.set_attributes(&size(u64::MAX)));
}

pub(super) fn sizes_can_be_set_through_an_opening_for_writing(make: Factory<'_>) {
    let root = root(make);
    let (node, open) = root.create(b"file", BOTH, 0o444).unwrap();
    open.write_at(b"content", 0).unwrap();
    let four = SetAttributes { size: 4, ..set(SetattrMask::SIZE) };
    open.set_attributes(&four).unwrap();
    assert_eq!(read(&node), b"cont");
    let reading = node.open(READ).unwrap();
    assert_eq!(errno(reading.set_attributes(&four)), Errno::EINVAL);
    root.remove(b"file", false).unwrap();
    open.set_attributes(&SetAttributes { size: 2, ..set(SetattrMask::SIZE) }).unwrap();
    assert_eq!(open.attributes().unwrap().size, 2);
}

pub(super) fn links_of_directories_are_counted(make: Factory<'_>) {
    let root = root(make);
    let links = || root.attributes().unwrap().nlink;
    assert_eq!(links(), 2);
    directory(&root, "a");
    directory(&root, "b");
    file(&root, "file", b"");
    assert_eq!(links(), 4);
    root.rename(b"a", root.as_ref(), b"b").unwrap();
    assert_eq!(links(), 3);
    root.remove(b"b", true).unwrap();
    assert_eq!(links(), 2);
}

pub(super) fn a_removed_file_has_no_links_but_attributes(make: Factory<'_>) {
    let root = root(make);
    let (node, open) = create(&root, "file");
    open.write_at(b"content", 0).unwrap();
    root.remove(b"file", false).unwrap();
    for found in [node.attributes().unwrap(), open.attributes().unwrap()] {
        assert_eq!((found.nlink, found.size), (0, 7));
        assert!(found.is_regular());
    }
    open.set_attributes(&SetAttributes { mode: 0o600, ..set(SetattrMask::MODE) }).unwrap();
    assert_eq!(node.attributes().unwrap().mode & 0o777, 0o600);
}

pub(super) fn statfs_tells_of_some_room(make: Factory<'_>) {
    let found = root(make).statfs().unwrap();
    assert!(found.block_size > 0 && found.blocks > 0 && found.name_max >= 255);
    assert!(found.blocks_free <= found.blocks && found.blocks_available <= found.blocks);
}

/// Nothing is checked where the place beneath has none (`EOPNOTSUPP`).
pub(super) fn extended_attributes_are_kept(make: Factory<'_>) {
    const CREATE: u32 = 1;
    const REPLACE: u32 = 2;
    let root = root(make);
    let node = file(&root, "file", b"");
    if node.set_xattr(b"user.one", b"1", 0).is_err_and(|e| e.to_errno() == Errno::EOPNOTSUPP) {
        return;
    }
    assert_eq!(node.xattr(b"user.one").unwrap(), b"1");
    assert_eq!(errno(node.xattr(b"user.none")), Errno::ENODATA);
    assert_eq!(errno(node.set_xattr(b"user.one", b"2", CREATE)), Errno::EEXIST);
    assert_eq!(errno(node.set_xattr(b"user.two", b"2", REPLACE)), Errno::ENODATA);
    node.set_xattr(b"user.one", &[0xfe; 1000], REPLACE).unwrap();
    assert_eq!(node.xattr(b"user.one").unwrap(), [0xfe; 1000]);
    node.set_xattr(b"user.empty", b"", CREATE).unwrap();
    assert_eq!(node.xattr(b"user.empty").unwrap(), b"");
    let listed = node.xattr_list().unwrap();
    let ours: BTreeSet<&[u8]> = listed
        .split_inclusive(|byte| *byte == 0)
        .filter(|name| name.starts_with(b"user."))
        .collect();
    assert_eq!(ours, BTreeSet::from([&b"user.empty\0"[..], b"user.one\0"]));
    node.remove_xattr(b"user.one").unwrap();
    assert_eq!(errno(node.remove_xattr(b"user.one")), Errno::ENODATA);
    assert_eq!(errno(node.xattr(b"user.one")), Errno::ENODATA);
    let dir = directory(&root, "dir");
    dir.set_xattr(b"user.dir", b"d", 0).unwrap();
    assert_eq!(dir.xattr(b"user.dir").unwrap(), b"d");
    assert_eq!(errno(node.set_xattr(b"nonsense", b"", 0)), Errno::EOPNOTSUPP);
}
