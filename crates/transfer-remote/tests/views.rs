//! Views of files at a real service hold what the same views of a byte array hold.

use std::sync::Arc;

use client::{Options, Place, Session, SocketDial};
use p9::OpenFlags;
use service::{Listen, Running, Service};
use sieve::{FileView, Profile, Tuple};
use transfer::{Engine, Locking, Target};
use transfer_remote::ServedFile;

const PLANNERS: [&str; 6] = ["naive", "romio", "simple_pm", "extent", "scanfile", "adaptive"];

/// A service of an empty directory on a Unix socket, with a session to it.
struct Scene {
    dir: tempfile::TempDir,
    session: Arc<Session>,
    _running: Running,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("store")).expect("a directory");
        let store = store::fs::FsStore::new(&dir.path().join("store")).expect("a store");
        let socket = dir.path().join("socket");
        let running = Service::builder(Arc::new(store))
            .listen(Listen::Unix(socket.clone()))
            .start()
            .expect("a service");
        let dial = SocketDial::new(Place::Unix(socket));
        let session = Session::new(Box::new(dial), Options::default());
        Self { dir, session, _running: running }
    }

    fn put(&self, content: &[u8]) {
        std::fs::write(self.dir.path().join("store/file"), content).expect("write");
    }

    fn content(&self) -> Vec<u8> {
        std::fs::read(self.dir.path().join("store/file")).expect("read")
    }

    fn open(&self, flags: OpenFlags) -> ServedFile {
        ServedFile::open(&self.session, b"file", flags, 0o644).expect("open")
    }
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + index / 256) as u8).collect()
}

fn views() -> Vec<FileView> {
    let tuple = |size, hole| Tuple { size, hole };
    vec![
        FileView::contiguous(5).expect("a view"),
        FileView::strided(16, 8, 92).expect("a view"),
        FileView::strided(0, 3000, 7000).expect("a view"),
        FileView::from_tuples(7, [tuple(3, 5), tuple(0, 11), tuple(1000, 13), tuple(40, 9000)])
            .expect("a view"),
    ]
}

/// Offsets of the view's data from `offset` on that lie in the first `limit` bytes of the file.
fn places(view: &FileView, offset: u64, len: u64, limit: usize) -> Vec<usize> {
    let blocks = view.blocks(offset, len).expect("blocks");
    blocks
        .flat_map(|block| block.file..block.file + block.len)
        .map(|place| place as usize)
        .take_while(|place| *place < limit)
        .collect()
}

#[test]
fn every_planner_reads_what_is_there() {
    let scene = Scene::new();
    let file_content = content(150_000);
    scene.put(&file_content);
    let file = scene.open(OpenFlags::empty());
    let profile = file.profile().expect("a profile");
    for name in PLANNERS {
        let mut engine = Engine::by_name(name, profile).expect("a planner");
        for view in views() {
            // The second ends behind the end of the file.
            for (offset, len) in [(2, 5000), (11, 200_000)] {
                let mut out = vec![0; len];
                let mut buffer = vec![0; 20_000];
                let got = engine.read(&file, &view, &mut buffer, offset, &mut out).expect("read");
                let places = places(&view, offset, len as u64, file_content.len());
                let expected: Vec<u8> = places.iter().map(|place| file_content[*place]).collect();
                assert_eq!(got as usize, expected.len(), "{name} {view:?}");
                assert_eq!(out[..expected.len()], expected, "{name} {view:?}");
            }
        }
    }
}

#[test]
fn every_planner_writes_what_is_wanted_and_nothing_else() {
    let scene = Scene::new();
    for name in PLANNERS {
        for locking in [Locking::SingleWriter, Locking::Windows, Locking::All] {
            for view in views() {
                let mut expected = content(50_000);
                scene.put(&expected);
                let file = scene.open(OpenFlags::READ_WRITE);
                let mut engine =
                    Engine::by_name(name, Profile::default()).expect("a planner").locking(locking);
                let data: Vec<u8> = content(9000).iter().map(|byte| !byte).collect();
                let mut buffer = vec![0; 20_000];
                let done = engine.write(&file, &view, &mut buffer, 3, &data).expect("write");
                assert_eq!(done as usize, data.len());
                for (place, byte) in places(&view, 3, 9000, usize::MAX).into_iter().zip(&data) {
                    if expected.len() <= place {
                        expected.resize(place + 1, 0);
                    }
                    expected[place] = *byte;
                }
                assert!(scene.content() == expected, "{name} {locking:?} {view:?}");
            }
        }
    }
}

#[test]
fn descriptors_are_used_only_for_what_they_are_open_for() {
    let scene = Scene::new();
    scene.put(b"content");
    let view = FileView::strided(0, 2, 1).expect("a view");
    let mut engine = Engine::adaptive(Profile::default()).expect("an engine");
    let errno = |outcome: transfer::Result<u64>| match outcome {
        Err(transfer::Error::Io { errno, .. }) => Some(errno),
        _ => None,
    };
    let reading = scene.open(OpenFlags::empty());
    let refused = engine.write(&reading, &view, &mut [0; 100], 0, b"abc");
    assert_eq!(errno(refused), Some(rustix::io::Errno::BADF));
    let writing = scene.open(OpenFlags::WRITE_ONLY);
    let refused = engine.read(&writing, &view, &mut [0; 100], 0, &mut [0; 3]);
    assert_eq!(errno(refused), Some(rustix::io::Errno::BADF));
    // What cannot be read is written block by block.
    engine.write(&writing, &view, &mut [0; 100], 0, b"abc").expect("write");
    assert_eq!(scene.content(), b"abncent");
    let appending = scene.open(OpenFlags::WRITE_ONLY | OpenFlags::APPEND);
    let refused = engine.write(&appending, &view, &mut [0; 100], 0, b"abc");
    assert!(matches!(refused, Err(transfer::Error::Append)));
}

#[test]
fn two_opened_files_exclude_each_other() {
    let scene = Scene::new();
    scene.put(&content(1000));
    let (one, other) = (scene.open(OpenFlags::READ_WRITE), scene.open(OpenFlags::READ_WRITE));
    one.lock(0..100, transfer::LockKind::Exclusive).expect("a lock");
    let lock = client::Lock {
        kind: p9::LockKind::WRITE,
        start: 50,
        length: 10,
        process: 0,
        client: b"somebody".to_vec(),
    };
    let refused = other.handle().lock(&lock, None);
    assert_eq!(refused, Err(client::Error::Refused(p9::Errno::EAGAIN)));
    one.unlock(0..100);
    other.handle().lock(&lock, None).expect("free by now");
}
