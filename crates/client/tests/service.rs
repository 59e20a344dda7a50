//! Against the real service: over Unix and TCP sockets and in the same process, through restarts,
//! from many threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use client::{At, Error, Exchange, Handle, Lock, Options, Place, Repeat, Session, SocketDial};
use p9::{Errno, LockKind, OpenFlags};
use service::{Address, Direct, Listen, Running, Service};
use store::fs::FsStore;
use store::{Exports, Store};

struct InProcess(Direct);

impl Exchange for InProcess {
    fn exchange(&self, request: &[u8], reply: &mut Vec<u8>) {
        self.0.exchange(request, reply);
    }
}

struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    /// An export `base` with a file of 4 MiB and one of five bytes.
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("export")).expect("mkdir");
        std::fs::write(directory.path().join("export/big"), pattern(0, 4 << 20)).expect("write");
        std::fs::write(directory.path().join("export/small"), b"small").expect("write");
        Self { directory }
    }

    fn export(&self, name: &str) -> PathBuf {
        self.directory.path().join("export").join(name)
    }

    fn store(&self) -> Arc<dyn Store> {
        let store: Arc<dyn Store> = Arc::new(FsStore::new(&self.export("")).expect("a store"));
        Arc::new(Exports::new([(b"base".to_vec(), store)]).expect("exports"))
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn start(&self, listen: Listen) -> Running {
        Service::builder(self.store()).listen(listen).start().expect("a service")
    }
}

fn pattern(offset: usize, len: usize) -> Vec<u8> {
    (offset..offset + len).map(|i| (i / 5 % 251) as u8).collect()
}

fn options() -> Options {
    Options { read_ahead_max: 0, ..Options::default() }
}

fn unix(socket: &Path) -> Arc<Session> {
    let dial = SocketDial::new(Place::Unix(socket.to_owned()));
    Session::new(Box::new(dial), options())
}

fn open(session: &Arc<Session>, path: &str, flags: OpenFlags) -> Handle {
    session.open(At::root(path.as_bytes()), flags, 0o644).expect("open").handle
}

fn read(handle: &Handle, offset: usize, len: usize) -> client::Result<Vec<u8>> {
    let mut target = vec![0; len];
    let count = handle.with(Repeat::Safe, |connection, fid| {
        connection.wait_read(connection.submit_read(fid, offset as u64, len as u32)?, &mut target)
    })?;
    target.truncate(count);
    Ok(target)
}

fn exercise(session: &Arc<Session>, scene: &Scene) {
    let big = open(session, "base/big", OpenFlags::READ_WRITE);
    assert!(read(&big, 12_345, 1 << 20) == Ok(pattern(12_345, 1 << 20)));
    let made = open(session, "base/made", OpenFlags::CREATE | OpenFlags::WRITE_ONLY);
    made.with(Repeat::Safe, |connection, fid| {
        let tickets: client::Result<Vec<_>> = (0..8)
            .map(|i| connection.submit_write(fid, i << 20, &pattern((i as usize) << 20, 1 << 20)))
            .collect();
        tickets?.into_iter().try_for_each(|ticket| connection.wait(ticket).map(|_| ()))
    })
    .expect("write");
    made.sync(true).expect("fsync");
    assert!(std::fs::read(scene.export("made")).expect("read") == pattern(0, 8 << 20));
    session.rename(At::root(b"base/made"), At::root(b"base/moved"), false).expect("rename");
    session.remove(At::root(b"base/moved"), false).expect("unlink");
    let none = session.stat(At::root(b"base/moved"), true);
    assert_eq!(none.map(|a| a.size), Err(Error::Refused(Errno::ENOENT)));
    // Not a symbolic link: an answer of one round trip, and no reason to ask twice.
    let not_link = session.read_link(At::root(b"base/small"));
    assert_eq!(not_link, Err(Error::Refused(Errno::EINVAL)));
}

#[test]
fn every_transport_carries_everything() {
    let scene = Scene::new();
    let running = scene.start(Listen::Unix(scene.socket()));
    exercise(&unix(&scene.socket()), &scene);
    drop(running);

    let running = scene.start(Listen::Tcp("127.0.0.1:0".into()));
    let Some(Address::Tcp(address)) = running.addresses().pop() else { panic!("a TCP address") };
    let place = Place::Tcp { host: "localhost".into(), port: address.port() };
    exercise(&Session::new(Box::new(SocketDial::new(place)), options()), &scene);

    let service = Arc::new(InProcess(Direct::new(scene.store())));
    exercise(&Session::new(Box::new(client::direct(service)), options()), &scene);
}

#[test]
fn a_service_nobody_runs_is_refused_at_once() {
    let scene = Scene::new();
    let stat = |session: Arc<Session>| session.stat(At::root(b"base"), true).map(|a| a.size);
    let missing = stat(unix(&scene.socket())).map_err(|error| error.to_errno());
    // Not ENOENT: that would say that the file is missing, and `rm -f` would be content.
    assert_eq!(missing, Err(Errno::ECONNREFUSED));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let place = Place::Tcp { host: "127.0.0.1".into(), port };
    let refused = stat(Session::new(Box::new(SocketDial::new(place)), options()));
    assert_eq!(refused.map_err(|error| error.to_errno()), Err(Errno::ECONNREFUSED));
}

#[test]
fn restarts_under_load_lose_and_double_nothing() {
    let scene = Scene::new();
    let session = unix(&scene.socket());
    let running = scene.start(Listen::Unix(scene.socket()));
    let appended =
        open(&session, "base/log", OpenFlags::CREATE | OpenFlags::APPEND | OpenFlags::WRITE_ONLY);
    let big = Arc::new(open(&session, "base/big", OpenFlags::READ_WRITE));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (acknowledged, unknown) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3_usize)
            .map(|thread| {
                let (big, stop) = (&big, &stop);
                scope.spawn(move || {
                    let mut round = thread;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        round += 3;
                        let offset = round * 77_777 % (3 << 20);
                        assert!(read(big, offset, 100_000) == Ok(pattern(offset, 100_000)));
                    }
                })
            })
            .collect();
        let appender = {
            let (appended, stop) = (&appended, &stop);
            scope.spawn(move || {
                let (mut acknowledged, mut unknown) = (Vec::new(), Vec::new());
                for number in 0_u32.. {
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    let outcome = appended.with(Repeat::OnlyUnsent, |connection, fid| {
                        connection.wait(connection.submit_write(fid, 0, &number.to_le_bytes())?)
                    });
                    match outcome {
                        Ok(_) => acknowledged.push(number),
                        Err(Error::Lost { .. }) => unknown.push(number),
                        Err(error) => panic!("append: {error}"),
                    }
                }
                (acknowledged, unknown)
            })
        };
        let mut running = running;
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(60));
            drop(running);
            std::thread::sleep(Duration::from_millis(30));
            running = scene.start(Listen::Unix(scene.socket()));
        }
        std::thread::sleep(Duration::from_millis(60));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().expect("reads"));
        appender.join().expect("appends")
    });
    let log = std::fs::read(scene.export("log")).expect("read");
    let found: Vec<u32> =
        log.chunks(4).map(|c| u32::from_le_bytes(c.try_into().expect("whole"))).collect();
    // In order, each at most once, each acknowledged one there.
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(acknowledged.iter().all(|number| found.binary_search(number).is_ok()));
    let known = |number: &u32| acknowledged.contains(number) || unknown.contains(number);
    assert!(found.iter().all(known));
    assert!(unknown.len() <= 5, "{unknown:?}");
}

#[test]
fn thousands_of_files_stay_open_at_once() {
    let scene = Scene::new();
    let _running = scene.start(Listen::Unix(scene.socket()));
    let dial = SocketDial::new(Place::Unix(scene.socket()));
    // With the read that travels along, whose replies nobody takes.
    let session = Session::new(Box::new(dial), Options::default());
    let count = 3000;
    let opened: Vec<_> = (0..count)
        .map(|_| session.open(At::root(b"base/small"), OpenFlags::empty(), 0).expect("open"))
        .collect();
    for opened in opened {
        assert_eq!(opened.attributes.size, 5);
        let (connection, ticket) = opened.first.and_then(|first| first.take()).expect("a read");
        assert_eq!(connection.wait(ticket).expect("data").data(), b"small");
        assert_eq!(read(&opened.handle, 0, 9).as_deref(), Ok(&b"small"[..]));
    }
}

#[test]
fn locks_keep_others_out_until_their_holder_is_gone() {
    let scene = Scene::new();
    let _running = scene.start(Listen::Unix(scene.socket()));
    let (one, two) = (unix(&scene.socket()), unix(&scene.socket()));
    let one = open(&one, "base/small", OpenFlags::READ_WRITE);
    let two = open(&two, "base/small", OpenFlags::READ_WRITE);
    let lock = |kind, process| Lock { kind, start: 0, length: 0, process, client: b"host".into() };
    one.lock(&lock(LockKind::WRITE, 1), None).expect("free");
    let refused = two.lock(&lock(LockKind::READ, 1), None);
    assert_eq!(refused, Err(Error::Refused(Errno::EAGAIN)));
    let holder = two.lock_in_the_way(&lock(LockKind::READ, 1)).expect("asked");
    assert_eq!(holder.map(|holder| holder.kind), Some(LockKind::WRITE));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| two.lock(&lock(LockKind::WRITE, 1), Some(&|| false)));
        std::thread::sleep(Duration::from_millis(30));
        assert!(!waiter.is_finished());
        one.close();
        assert_eq!(waiter.join().expect("no panic"), Ok(()));
    });
}

#[test]
fn extended_attributes_are_set_read_listed_and_removed() {
    let scene = Scene::new();
    let _running = scene.start(Listen::Unix(scene.socket()));
    let session = unix(&scene.socket());
    let at = At::root(b"base/small");
    let value = pattern(0, 3000);
    match session.set_xattr(at, true, b"user.sluice", &value, 0) {
        // The file system of the test directory has none.
        Err(Error::Refused(Errno::EOPNOTSUPP)) => return,
        other => other.expect("set"),
    }
    assert!(session.xattr(at, true, b"user.sluice") == Ok(value.clone()));
    let handle = open(&session, "base/small", OpenFlags::READ_WRITE);
    assert!(handle.xattr(b"user.sluice") == Ok(value));
    assert_eq!(handle.xattr_list().as_deref(), Ok(&b"user.sluice\0"[..]));
    // An empty value is a value; replacing by it is no removal.
    handle.set_xattr(b"user.sluice", b"", 2).expect("replace");
    assert_eq!(session.xattr(at, true, b"user.sluice").as_deref(), Ok(&b""[..]));
    let twice = session.set_xattr(at, true, b"user.sluice", b"x", 1);
    assert_eq!(twice, Err(Error::Refused(Errno::EEXIST)));
    session.remove_xattr(at, true, b"user.sluice").expect("remove");
    let gone = handle.xattr(b"user.sluice");
    assert_eq!(gone, Err(Error::Refused(Errno::ENODATA)));
    assert_eq!(handle.remove_xattr(b"user.sluice"), Err(Error::Refused(Errno::ENODATA)));
}
