//! What is particular to the store of a directory: the kernel beneath it, other processes beside
//! it, and the borders of the exported tree.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use p9::{Errno, LockKind, OpenFlags, QidType};
use store::fs::{FsOptions, FsStore, raise_descriptor_limit};
use store::{LockOwner, LockRange, Node, Result, Store};

struct Export {
    _keep: tempfile::TempDir,
    /// The exported directory; beside it lies `secret`.
    path: PathBuf,
    root: Arc<dyn Node>,
}

fn export() -> Export {
    let keep = tempfile::tempdir().unwrap();
    std::fs::write(keep.path().join("secret"), "not exported").unwrap();
    let path = keep.path().join("export");
    std::fs::create_dir(&path).unwrap();
    let root = FsStore::new(&path).unwrap().root().unwrap();
    Export { _keep: keep, path, root }
}

fn errno<T>(result: Result<T>) -> Option<Errno> {
    result.err().map(|error| error.to_errno())
}

fn walk(from: &Arc<dyn Node>, path: &str) -> Result<Arc<dyn Node>> {
    let names: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
    let walk = from.walk(&names)?;
    walk.end.ok_or(store::Error::System { operation: "walk", errno: Errno::ENOENT })
}

fn read(node: &Arc<dyn Node>) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 16];
    let open = node.open(OpenFlags::empty()).unwrap();
    let len = open.read_at(&mut buffer, 0).unwrap();
    buffer.truncate(len);
    buffer
}

#[test]
fn no_name_leads_out_of_the_export() {
    let it = export();
    std::fs::create_dir_all(it.path.join("a/b")).unwrap();
    symlink("..", it.path.join("up")).unwrap();
    symlink("../secret", it.path.join("out")).unwrap();
    symlink("/etc/passwd", it.path.join("absolute")).unwrap();

    // `..` stops at the root, however often it is repeated.
    let top = walk(&it.root, "a/../../../..").unwrap();
    assert_eq!(top.qid().path, it.root.qid().path);
    assert_eq!(errno(walk(&it.root, "../secret")), Some(Errno::ENOENT));
    // Symbolic links are nodes, not ways.
    for link in ["up", "out", "absolute"] {
        let node = walk(&it.root, link).unwrap();
        assert_eq!(node.qid().kind, QidType::SYMLINK);
        assert_eq!(errno(node.open(OpenFlags::empty())), Some(Errno::ELOOP));
        assert_eq!(errno(node.walk(&[b"secret"])), Some(Errno::ENOTDIR));
        for flags in [OpenFlags::READ_WRITE, OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE] {
            let made = it.root.create(link.as_bytes(), flags, 0o644);
            assert_eq!(errno(made), Some(Errno::ELOOP));
        }
    }
    // Names that are paths are refused.
    for name in [&b"a/b"[..], b"../secret", b"/etc/passwd", b"a\0b"] {
        assert_eq!(errno(it.root.walk(&[name])), Some(Errno::EINVAL));
        assert_eq!(errno(it.root.create(name, OpenFlags::READ_WRITE, 0o644)), Some(Errno::EINVAL));
        assert_eq!(errno(it.root.make_directory(name, 0o755)), Some(Errno::EINVAL));
        assert_eq!(errno(it.root.remove(name, false)), Some(Errno::EINVAL));
        assert_eq!(errno(it.root.rename(b"a", it.root.as_ref(), name)), Some(Errno::EINVAL));
    }
    assert_eq!(errno(it.root.remove(b"..", true)), Some(Errno::EINVAL));
    // Nor does the listing say what is above.
    let mut above = None;
    let listing = it.root.open(OpenFlags::DIRECTORY).unwrap();
    listing
        .read_directory(0, &mut |entry| {
            if entry.name == b".." {
                above = Some(entry.qid.path);
            }
            true
        })
        .unwrap();
    assert_eq!(above, Some(it.root.qid().path));
}

#[test]
fn a_directory_moved_out_of_the_export_has_no_way_up() {
    let it = export();
    std::fs::create_dir_all(it.path.join("a/b")).unwrap();
    let inner = walk(&it.root, "a/b").unwrap();
    let outside = it.path.parent().unwrap().join("moved");
    std::fs::rename(it.path.join("a"), outside).unwrap();
    assert_eq!(errno(walk(&inner, "..")), Some(Errno::ENOENT));
    assert_eq!(errno(walk(&inner, "../../secret")), Some(Errno::ENOENT));
    assert_eq!(errno(inner.parent()), Some(Errno::ENOENT));
}

#[test]
fn parent_follows_renames_made_on_this_machine() {
    let it = export();
    std::fs::create_dir_all(it.path.join("a/b")).unwrap();
    std::fs::write(it.path.join("a/b/file"), "x").unwrap();
    let file = walk(&it.root, "a/b/file").unwrap();
    std::fs::rename(it.path.join("a/b/file"), it.path.join("a/other")).unwrap();
    std::fs::rename(it.path.join("a"), it.path.join("c")).unwrap();
    // Something else at the old place must not be taken for it.
    std::fs::create_dir_all(it.path.join("a/b")).unwrap();
    std::fs::write(it.path.join("a/b/file"), "y").unwrap();
    let (dir, name) = file.parent().unwrap();
    assert_eq!(name, b"other");
    assert_eq!(dir.qid().path, walk(&it.root, "c").unwrap().qid().path);
    std::fs::remove_file(it.path.join("c/other")).unwrap();
    assert_eq!(errno(file.parent()), Some(Errno::ENOENT));
    assert_eq!(read(&file), b"x");
}

#[test]
fn a_fifo_is_refused_without_waiting_for_its_other_end() {
    let it = export();
    let made = Command::new("mkfifo").arg(it.path.join("fifo")).status().unwrap();
    assert!(made.success());
    let fifo = walk(&it.root, "fifo").unwrap();
    for flags in [OpenFlags::empty(), OpenFlags::WRITE_ONLY, OpenFlags::READ_WRITE] {
        assert_eq!(errno(fifo.open(flags)), Some(Errno::ENXIO));
        assert_eq!(errno(it.root.create(b"fifo", flags, 0o644)), Some(Errno::ENXIO));
    }
    let set = p9::SetAttributes { valid: p9::SetattrMask::SIZE, ..Default::default() };
    assert_eq!(errno(fifo.set_attributes(&set)), Some(Errno::EINVAL));
}

#[test]
fn inode_numbers_and_times_are_the_kernels() {
    let it = export();
    std::fs::write(it.path.join("file"), "12345").unwrap();
    let native = std::fs::metadata(it.path.join("file")).unwrap();
    let ours = walk(&it.root, "file").unwrap().attributes().unwrap();
    assert_eq!(ours.qid.path, native.ino());
    assert_eq!(ours.size, 5);
    assert_eq!(u64::from(ours.mode), u64::from(native.mode()));
    assert_eq!(ours.mtime.seconds, native.mtime() as u64);
    assert_eq!(ours.mtime.nanoseconds, native.mtime_nsec() as u64);
    assert_eq!(ours.block_size, native.blksize());
    assert_eq!(ours.blocks, native.blocks());
}

#[test]
fn ten_thousand_files_stay_open_at_a_time() {
    let limit = raise_descriptor_limit().unwrap();
    if limit < 10_200 {
        eprintln!("skipped: this user may only have {limit} descriptors");
        return;
    }
    let it = export();
    let mut all = Vec::new();
    for n in 0..10_000 {
        let name = format!("f{n}");
        let flags = OpenFlags::READ_WRITE | OpenFlags::EXCLUSIVE;
        all.push(it.root.create(name.as_bytes(), flags, 0o600).unwrap());
    }
    for (n, (_, open)) in all.iter().enumerate() {
        assert_eq!(open.write_at(&n.to_le_bytes(), 0).unwrap(), 8);
    }
    assert_eq!(read(&walk(&it.root, "f9999").unwrap()), 9999_usize.to_le_bytes());
}

#[test]
fn a_walked_and_opened_node_costs_one_descriptor() {
    let it = export();
    std::fs::write(it.path.join("file"), "x").unwrap();
    let store = FsStore::with_options(&it.path, FsOptions { descriptors_from: 900 }).unwrap();
    let root = store.root().unwrap();
    // The other tests have descriptors too: count those that lead here.
    let numbers = || {
        let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let here =
            |path: &PathBuf| std::fs::read_link(path).is_ok_and(|to| to.starts_with(&it.path));
        let number = |path: PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
        let ours = all.map(|entry| entry.path()).filter(here).filter_map(number);
        ours.filter(|number| *number >= 900).count()
    };
    assert_eq!(numbers(), 1);
    let node = walk(&root, "file").unwrap();
    assert_eq!(numbers(), 2);
    let open = node.open(OpenFlags::empty()).unwrap();
    assert_eq!(numbers(), 2);
    let again = node.walk(&[]).unwrap();
    drop(open);
    drop(node);
    assert_eq!(numbers(), 2);
    drop(again);
    assert_eq!(numbers(), 1);
}

/// A process of this machine that takes a POSIX lock on the first ten bytes and holds it until its
/// input ends; it says what came of it.
fn foreign_locker(path: &Path) -> (std::process::Child, String) {
    let script = "import fcntl,sys\n\
        f=open(sys.argv[1],'r+b')\n\
        try:\n fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB,10,0)\n print('locked',flush=True)\n\
        except OSError as e: print('refused',flush=True)\n\
        sys.stdin.read()\n";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().to_owned())
}

fn end(mut child: std::process::Child) {
    drop(child.stdin.take().map(|mut stdin| stdin.write_all(b"")));
    child.wait().unwrap();
}

#[test]
fn locks_hold_against_processes_of_this_machine_and_theirs_against_us() {
    let it = export();
    let path = it.path.join("file");
    std::fs::write(&path, "0123456789abcdef").unwrap();
    let node = walk(&it.root, "file").unwrap();
    let open = node.open(OpenFlags::READ_WRITE).unwrap();
    let owner = LockOwner { client: b"one".to_vec(), process: 7 };
    let write = LockRange { kind: LockKind::WRITE, start: 5, length: 1 };

    let (child, said) = foreign_locker(&path);
    assert_eq!(said, "locked");
    assert!(!open.lock(&owner, write).unwrap());
    let (who, range) = open.lock_in_the_way(&owner, write).unwrap().unwrap();
    assert_eq!(who.process, child.id());
    assert_eq!((range.start, range.length), (0, 10));
    end(child);

    assert!(open.lock(&owner, write).unwrap());
    let (child, said) = foreign_locker(&path);
    assert_eq!(said, "refused");
    end(child);
    // Another opening and closing of the file does not end the lock, as it would in a process.
    drop(node.walk(&[]).unwrap().end.unwrap().open(OpenFlags::empty()).unwrap());
    let (child, said) = foreign_locker(&path);
    assert_eq!(said, "refused");
    end(child);

    drop(open);
    let (child, said) = foreign_locker(&path);
    assert_eq!(said, "locked");
    end(child);
}

#[test]
fn a_file_that_only_its_creator_may_write_can_still_be_locked() {
    let it = export();
    let flags = OpenFlags::READ_WRITE | OpenFlags::EXCLUSIVE;
    let (_, open) = it.root.create(b"file", flags, 0o444).unwrap();
    let mode = std::fs::metadata(it.path.join("file")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o444);
    let range = LockRange { kind: LockKind::WRITE, start: 0, length: 0 };
    let [one, two] = [1, 2].map(|process| LockOwner { client: b"c".to_vec(), process });
    assert!(open.lock(&one, range).unwrap());
    assert!(!open.lock(&two, range).unwrap());
    assert!(open.lock(&one, LockRange { kind: LockKind::UNLOCK, ..range }).unwrap());
    assert!(open.lock(&two, range).unwrap());
}
