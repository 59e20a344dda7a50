//! A relayed service is a store like any other: over a Unix socket, over two of them, while the
//! service behind is started again, and with many callers at once.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use client::{Options, Place, Session, SocketDial};
use p9::{Errno, OpenFlags};
use service::{Listen, Running, Service};
use store::fs::FsStore;
use store::mem::MemStore;
use store::relay::RelayStore;
use store::{Node, Store, conformance};

/// Keeps services and directories until the test ends.
#[derive(Default)]
struct Kept(Mutex<Vec<(Option<Running>, tempfile::TempDir)>>);

fn serve(store: Arc<dyn Store>, socket: &Path) -> Running {
    let listen = Listen::Unix(socket.to_owned());
    Service::builder(store).listen(listen).start().expect("a service")
}

fn relay(socket: &Path) -> Arc<RelayStore> {
    let dial = SocketDial::new(Place::Unix(socket.to_owned()));
    Arc::new(RelayStore::new(Session::new(Box::new(dial), Options::default()), b""))
}

impl Kept {
    /// `store` behind one more service and relay.
    fn behind(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let running = serve(store, &socket);
        self.0.lock().expect("no panic").push((Some(running), directory));
        relay(&socket)
    }

    fn directory(&self) -> Arc<dyn Store> {
        let directory = tempfile::tempdir().expect("a directory");
        let store = FsStore::new(directory.path()).expect("a store");
        self.0.lock().expect("no panic").push((None, directory));
        Arc::new(store)
    }
}

/// What a relay does not promise: a node's version is that of the last opening, walk or look at its
/// attributes. Asking whenever somebody looks would be a round trip each.
const VERSIONS_AGE: [&str; 1] = ["the_version_is_that_of_the_moment"];

#[test]
fn a_relay_of_memory_keeps_every_promise() {
    let kept = Kept::default();
    conformance::run_except(&|| kept.behind(Arc::new(MemStore::new())), &VERSIONS_AGE);
}

#[test]
fn a_relay_of_a_directory_keeps_every_promise() {
    let kept = Kept::default();
    conformance::run_except(&|| kept.behind(kept.directory()), &VERSIONS_AGE);
}

#[test]
fn a_relay_of_a_relay_keeps_every_promise() {
    let kept = Kept::default();
    let twice = || kept.behind(kept.behind(Arc::new(MemStore::new())));
    conformance::run_except(&twice, &VERSIONS_AGE);
}

#[test]
fn a_relay_can_begin_below_the_root_and_never_leads_above() {
    let kept = Kept::default();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    store.root().expect("root").make_directory(b"base", 0o755).expect("mkdir");
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    kept.0.lock().expect("whole").push((Some(serve(store, &socket)), directory));
    let dial = SocketDial::new(Place::Unix(socket));
    let session = Session::new(Box::new(dial), Options::default());
    let root = RelayStore::new(session, b"base").root().expect("root");
    root.make_directory(b"dir", 0o755).expect("mkdir");
    let names: Vec<&[u8]> = vec![b"..", b"dir", b"..", b"..", b"dir"];
    let walk = root.walk(&names).expect("walk");
    let dir = root.walk(&[b"dir"]).expect("walk").qids[0].path;
    let top = root.qid().path;
    let found: Vec<u64> = walk.qids.iter().map(|qid| qid.path).collect();
    assert_eq!(found, [top, dir, top, top, dir]);
    assert_eq!(root.parent().map(|_| ()).map_err(|e| e.to_errno()), Err(Errno::ENOENT));
}

#[test]
fn files_go_on_when_the_service_behind_is_started_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let export = directory.path().join("export");
    let socket = directory.path().join("socket");
    std::fs::create_dir(&export).expect("mkdir");
    let start = || serve(Arc::new(FsStore::new(&export).expect("a store")), &socket);
    let running = start();
    let root = relay(&socket).root().expect("root");
    root.make_directory(b"dir", 0o755).expect("mkdir");
    let dir = root.walk(&[b"dir"]).expect("walk").end.expect("there");
    let (node, open) = dir.create(b"file", OpenFlags::READ_WRITE, 0o644).expect("create");
    open.write_at(b"before", 0).expect("write");
    drop(running);
    let running = start();
    let mut buffer = [0; 16];
    assert_eq!(open.read_at(&mut buffer, 0).expect("read"), 6);
    // A rename through the relay is known at the next break.
    dir.rename(b"file", root.as_ref(), b"moved").expect("rename");
    root.rename(b"dir", root.as_ref(), b"other").expect("rename");
    drop(running);
    let running = start();
    open.write_at(b"after!", 0).expect("write");
    assert_eq!(node.attributes().expect("stat").size, 6);
    assert_eq!(node.parent().expect("parent").1, b"moved");
    dir.make_directory(b"below", 0o755).expect("mkdir");
    assert!(export.join("other/below").is_dir());
    assert_eq!(std::fs::read(export.join("moved")).expect("read"), b"after!");
    // A file that somebody else moved is not guessed at.
    std::fs::rename(export.join("moved"), export.join("elsewhere")).expect("rename");
    std::fs::write(export.join("moved"), b"another").expect("write");
    drop(running);
    let _running = start();
    let stale = open.read_at(&mut buffer, 0).map_err(|error| error.to_errno());
    assert_eq!(stale, Err(Errno::ESTALE));
}

/// A socket whose bytes arrive `delay` later at the one behind, both ways.
fn slow_road(directory: &Path, to: &Path, delay: Duration) -> PathBuf {
    let path = directory.join("slow");
    let listener = UnixListener::bind(&path).expect("a socket");
    let to = to.to_owned();
    std::thread::spawn(move || {
        while let Ok((near, _)) = listener.accept() {
            let far = UnixStream::connect(&to).expect("the service");
            let pairs = [
                (near.try_clone().expect("a descriptor"), far.try_clone().expect("a descriptor")),
                (far, near),
            ];
            for (mut from, mut to) in pairs {
                let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
                std::thread::spawn(move || {
                    let mut buffer = vec![0; 1 << 16];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        let due = Instant::now() + delay;
                        if sender.send((due, buffer[..count].to_vec())).is_err() {
                            break;
                        }
                    }
                });
                std::thread::spawn(move || {
                    for (due, bytes) in receiver {
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        if to.write_all(&bytes).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    path
}

#[test]
fn callers_do_not_wait_for_one_another() {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let flags = OpenFlags::READ_WRITE;
    let (_, file) = store.root().expect("root").create(b"file", flags, 0o644).expect("create");
    file.write_at(&vec![7; 1 << 20], 0).expect("write");
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    let _running = serve(store, &socket);
    let delay = Duration::from_millis(40);
    let slow = slow_road(directory.path(), &socket, delay);
    let root: Arc<dyn Node> = relay(&slow).root().expect("root");
    let node = root.walk(&[b"file"]).expect("walk").end.expect("there");
    let open = node.open(flags).expect("open");
    let (callers, rounds) = (8_usize, 4_usize);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for caller in 0..callers {
            let open = &open;
            let node = &node;
            scope.spawn(move || {
                for round in 0..rounds {
                    let offset = (caller * rounds + round) as u64 * 4096;
                    let mut buffer = [0; 4096];
                    assert_eq!(open.read_at(&mut buffer, offset).expect("read"), 4096);
                    assert!(buffer.iter().all(|byte| *byte == 7));
                    if caller % 2 == 0 {
                        node.attributes().expect("stat");
                    } else {
                        open.write_at(&[7; 100], offset).expect("write");
                    }
                }
            });
        }
    });
    // One after the other the requests would take callers * rounds * 2 round trips of 80 ms.
    let alone = delay * 2 * (rounds as u32) * 2;
    assert!(start.elapsed() < alone * 3, "{:?}, alone {alone:?}", start.elapsed());
}
