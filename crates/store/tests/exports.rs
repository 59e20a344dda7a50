//! Stores under one root, and stores that cannot be changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use p9::{Errno, LockKind, OpenFlags, QidType, SetAttributes};
use store::fs::FsStore;
use store::mem::MemStore;
use store::{Error, Exports, LockOwner, LockRange, Node, ReadOnly, Result, Store};

const NEW: OpenFlags = OpenFlags::READ_WRITE.union(OpenFlags::EXCLUSIVE);

fn errno<T>(result: Result<T>) -> Option<Errno> {
    result.err().map(|error| error.to_errno())
}

fn at(from: &Arc<dyn Node>, path: &str) -> Arc<dyn Node> {
    let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
    from.walk(&names).unwrap().end.unwrap()
}

fn list(dir: &Arc<dyn Node>) -> BTreeMap<String, (u64, u64)> {
    let mut all = BTreeMap::new();
    let open = dir.open(OpenFlags::DIRECTORY).unwrap();
    open.read_directory(0, &mut |entry| {
        let name = String::from_utf8(entry.name.to_vec()).unwrap();
        all.insert(name, (entry.qid.path, entry.offset)).is_none()
    })
    .unwrap();
    all
}

/// A store that cannot be reached.
struct Gone;

impl Store for Gone {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Err(Error::System { operation: "attach", errno: Errno::EHOSTUNREACH })
    }

    fn blocks(&self) -> bool {
        true
    }
}

/// Two directories of one file system, so that their inode numbers are of one kind, and memory.
fn scene() -> (Vec<tempfile::TempDir>, Arc<dyn Node>) {
    let dirs = vec![tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let fs = |n: usize| Arc::new(FsStore::new(dirs[n].path()).unwrap()) as Arc<dyn Store>;
    let members: [(Vec<u8>, Arc<dyn Store>); 4] = [
        (b"one".to_vec(), fs(0)),
        (b"same".to_vec(), fs(0)),
        (b"two".to_vec(), fs(1)),
        (b"gone".to_vec(), Arc::new(Gone)),
    ];
    let root = Exports::new(members).unwrap().root().unwrap();
    (dirs, root)
}

#[test]
fn the_root_lists_its_members_even_those_out_of_reach() {
    let (_dirs, root) = scene();
    let names: Vec<String> = list(&root).into_keys().collect();
    assert_eq!(names, [".", "..", "gone", "one", "same", "two"]);
    assert_eq!(errno(root.walk(&[b"gone"])), Some(Errno::EHOSTUNREACH));
    assert_eq!(errno(root.walk(&[b"none"])), Some(Errno::ENOENT));
    // From a cookie too.
    let behind = list(&root)["one"].1;
    let mut rest = Vec::new();
    let open = root.open(OpenFlags::empty()).unwrap();
    open.read_directory(behind, &mut |entry| {
        rest.push(entry.name.to_vec());
        true
    })
    .unwrap();
    assert_eq!(rest, [&b"same"[..], b"two"]);
    let found = root.attributes().unwrap();
    assert!(found.is_directory() && found.nlink == 6);
    assert_eq!(root.qid().kind, QidType::DIR);
}

#[test]
fn what_may_wait_for_another_machine_is_known_through_lists_and_read_only_stores() {
    let (_dirs, root) = scene();
    assert!(root.blocks(), "one of the members is elsewhere");
    assert!(!at(&root, "one").blocks());
    assert!(ReadOnly::new(Arc::new(Gone)).blocks());
    let near = Exports::new([(b"near".to_vec(), Arc::new(MemStore::new()) as Arc<dyn Store>)]);
    assert!(!near.unwrap().root().unwrap().blocks());
}

#[test]
fn files_of_different_members_have_different_identities() {
    let (_dirs, root) = scene();
    let mut paths = BTreeSet::from([root.qid().path]);
    for member in ["one", "two"] {
        let top = at(&root, member);
        assert!(paths.insert(top.qid().path));
        let (node, open) = top.create(b"file", NEW, 0o644).unwrap();
        assert!(paths.insert(node.qid().path));
        let known = node.qid().path;
        assert_eq!(open.attributes().unwrap().qid.path, known);
        assert_eq!(node.attributes().unwrap().qid.path, known);
        assert_eq!(list(&top)["file"].0, known);
        assert_eq!(list(&root)[member].0, top.qid().path);
        assert_eq!(root.walk(&[member.as_bytes(), b"file"]).unwrap().qids[1].path, known);
    }
    // The same directory under two names is two members.
    assert!(paths.insert(at(&root, "same/file").qid().path));
}

#[test]
fn dot_dot_leads_from_a_member_to_the_root_and_into_another() {
    let (_dirs, root) = scene();
    at(&root, "one").make_directory(b"dir", 0o755).unwrap();
    at(&root, "two").create(b"file", NEW, 0o644).unwrap();
    let dir = at(&root, "one/dir");
    assert_eq!(at(&dir, "..").qid(), at(&root, "one").qid());
    assert_eq!(at(&dir, "../..").qid(), root.qid());
    assert_eq!(at(&dir, "../../../../two/file").qid(), at(&root, "two/file").qid());
    assert_eq!(at(&root, "one/dir/../../two/../one/dir").qid(), dir.qid());
    assert_eq!(list(&at(&root, "one"))[".."].0, root.qid().path);
    assert_eq!(list(&dir)[".."].0, at(&root, "one").qid().path);
    let (above, name) = at(&root, "two").parent().unwrap();
    assert_eq!((above.qid(), &name[..]), (root.qid(), &b"two"[..]));
    let walk = root.walk(&[b"one", b"..", b"none", b"x"]).unwrap();
    assert!(walk.qids.len() == 2 && walk.end.is_none());
    let walk = root.walk(&[b"one", b"none", b".."]).unwrap();
    assert!(walk.qids.len() == 1 && walk.end.is_none());
}

#[test]
fn the_root_cannot_be_changed_and_members_do_not_mix() {
    let (_dirs, root) = scene();
    let (file, _) = at(&root, "one").create(b"file", NEW, 0o644).unwrap();
    let two = at(&root, "two");
    assert_eq!(errno(root.create(b"x", NEW, 0o644)), Some(Errno::EROFS));
    assert_eq!(errno(root.make_directory(b"x", 0o755)), Some(Errno::EROFS));
    assert_eq!(errno(root.make_directory(b"one", 0o755)), Some(Errno::EEXIST));
    assert_eq!(errno(root.create(b"one", OpenFlags::READ_WRITE, 0o644)), Some(Errno::EISDIR));
    assert_eq!(errno(root.remove(b"one", true)), Some(Errno::EBUSY));
    assert_eq!(errno(root.remove(b"none", true)), Some(Errno::EROFS));
    assert_eq!(errno(root.rename(b"one", root.as_ref(), b"x")), Some(Errno::EROFS));
    assert_eq!(errno(two.link(file.as_ref(), b"file")), Some(Errno::EXDEV));
    let moved = at(&root, "one").rename(b"file", two.as_ref(), b"file");
    assert_eq!(errno(moved), Some(Errno::EXDEV));
    let moved = at(&root, "one").rename(b"file", root.as_ref(), b"file");
    assert_eq!(errno(moved), Some(Errno::EXDEV));
    at(&root, "one").rename(b"file", at(&root, "one").as_ref(), b"renamed").unwrap();
}

#[test]
fn names_that_cannot_be_listed_are_refused() {
    let mem = || Arc::new(MemStore::new()) as Arc<dyn Store>;
    for name in [&b""[..], b".", b"..", b"a/b", &[b'x'; 300]] {
        let made = Exports::new([(name.to_vec(), mem())]);
        assert!(matches!(made, Err(Error::BadName { .. })));
    }
    let twice = Exports::new([(b"a".to_vec(), mem()), (b"a".to_vec(), mem())]);
    let said = twice.err().unwrap().to_string();
    assert_eq!(said, "`a` cannot name an export: given twice");
}

#[test]
fn a_read_only_store_reads_and_refuses_every_change() {
    let mem = Arc::new(MemStore::new());
    let root = mem.root().unwrap();
    root.create(b"file", NEW, 0o644).unwrap().1.write_at(b"content", 0).unwrap();
    root.make_directory(b"dir", 0o755).unwrap();
    root.make_symlink(b"link", b"file").unwrap();
    at(&root, "file").set_xattr(b"user.x", b"1", 0).unwrap();

    let root = ReadOnly::new(mem).root().unwrap();
    let file = at(&root, "dir/../file");
    let open = file.open(OpenFlags::empty()).unwrap();
    let mut buffer = [0; 16];
    assert_eq!(open.read_at(&mut buffer, 0).unwrap(), 7);
    assert_eq!(at(&root, "link").read_link().unwrap(), b"file");
    assert_eq!(file.xattr(b"user.x").unwrap(), b"1");
    assert_eq!(list(&root).len(), 5);
    let lock = LockRange { kind: LockKind::READ, start: 0, length: 0 };
    let owner = LockOwner { client: b"c".to_vec(), process: 1 };
    assert!(open.lock(&owner, lock).unwrap());
    open.sync(false).unwrap();

    let (read_only, exists) = (Some(Errno::EROFS), Some(Errno::EEXIST));
    let set = SetAttributes::default();
    for flags in [OpenFlags::WRITE_ONLY, OpenFlags::READ_WRITE, OpenFlags::TRUNCATE] {
        assert_eq!(errno(file.open(flags)), read_only);
        assert_eq!(errno(root.create(b"file", flags, 0o644)), read_only);
        assert_eq!(errno(root.create(b"new", flags, 0o644)), read_only);
        assert_eq!(errno(root.create(b"file", flags | OpenFlags::EXCLUSIVE, 0o644)), exists);
    }
    let (_, again) = root.create(b"file", OpenFlags::empty(), 0o644).unwrap();
    assert_eq!(errno(again.write_at(b"x", 0)), Some(Errno::EBADF));
    assert_eq!(errno(root.make_directory(b"new", 0o755)), read_only);
    assert_eq!(errno(root.make_directory(b"dir", 0o755)), exists);
    assert_eq!(errno(root.make_symlink(b"new", b"x")), read_only);
    assert_eq!(errno(root.link(file.as_ref(), b"new")), read_only);
    assert_eq!(errno(root.rename(b"file", root.as_ref(), b"new")), read_only);
    assert_eq!(errno(root.remove(b"file", false)), read_only);
    assert_eq!(errno(root.remove(b"dir", true)), read_only);
    assert_eq!(errno(file.set_attributes(&set)), read_only);
    assert_eq!(errno(open.set_attributes(&set)), read_only);
    assert_eq!(errno(file.set_xattr(b"user.x", b"2", 0)), read_only);
    assert_eq!(errno(file.remove_xattr(b"user.x")), read_only);
    // By way of the parent neither.
    let (dir, name) = file.parent().unwrap();
    assert_eq!(errno(dir.remove(&name, false)), read_only);
}

#[test]
fn a_store_comes_and_goes_while_the_list_is_used() {
    let exports = Exports::new([(b"m".to_vec(), Arc::new(MemStore::new()) as Arc<dyn Store>)]);
    let exports = exports.expect("a name");
    let root = exports.root().expect("a root");
    assert!(root.walk(&[b"a"]).is_err());
    exports.add(b"a", Arc::new(MemStore::new())).expect("a name");
    assert!(exports.add(b"a", Arc::new(MemStore::new())).is_err(), "given twice");
    assert!(exports.add(b"x/y", Arc::new(MemStore::new())).is_err(), "no name");
    assert_eq!(exports.names(), [b"a".to_vec(), b"m".to_vec()]);
    let a = root.walk(&[b"a"]).expect("there").end.expect("all");
    let m = root.walk(&[b"m"]).expect("there").end.expect("all");
    assert_ne!(a.qid().path, m.qid().path);
    a.make_directory(b"d", 0o755).expect("made");
    let mut listed = Vec::new();
    let listing = root.open(p9::OpenFlags::DIRECTORY).expect("open");
    listing
        .read_directory(0, &mut |entry| {
            listed.push(entry.name.to_vec());
            true
        })
        .expect("listed");
    listed.sort_unstable();
    assert_eq!(listed, [&b"."[..], b"..", b"a", b"m"]);
    assert!(exports.remove(b"a"));
    assert!(!exports.remove(b"a"));
    assert!(root.walk(&[b"a"]).is_err());
    assert!(a.walk(&[b"d"]).is_ok(), "who has it keeps it");
}
