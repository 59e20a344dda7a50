//! The umask is the process's: what changes it has a test program of its own.

use p9::OpenFlags;
use rustix::fs::Mode;
use store::Store;
use store::fs::FsStore;

#[test]
fn the_umask_of_this_process_does_not_apply_to_what_clients_create() {
    let dir = tempfile::tempdir().unwrap();
    let root = FsStore::new(dir.path()).unwrap().root().unwrap();
    let before = rustix::process::umask(Mode::from_raw_mode(0o077));

    let flags = OpenFlags::READ_WRITE | OpenFlags::EXCLUSIVE;
    for mode in [0o666, 0o644, 0o600, 0o777, 0o000] {
        let name = format!("file{mode:o}");
        let (node, open) = root.create(name.as_bytes(), flags, mode).unwrap();
        assert_eq!(node.attributes().unwrap().mode & 0o7777, mode);
        assert_eq!(open.attributes().unwrap().mode & 0o7777, mode);
        let name = format!("dir{mode:o}");
        root.make_directory(name.as_bytes(), mode).unwrap();
        let made = root.walk(&[name.as_bytes()]).unwrap().end.unwrap();
        assert_eq!(made.attributes().unwrap().mode & 0o7777, mode);
    }
    // Nor has it been changed.
    assert_eq!(rustix::process::umask(before).as_raw_mode(), 0o077);
}
