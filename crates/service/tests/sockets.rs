//! Listeners: who may connect, what is left behind, how a service ends.

mod common;

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::fault::{FaultStore, MADE_SIZE, made_byte};
use common::{Client, Fixture, ROOT, walk};
use p9::{Errno, Fid, OpenFlags, Reply, Request};
use service::{Address, Error, Limits, Listen, Service};
use store::Store;

fn store() -> Arc<dyn Store> {
    Arc::new(FaultStore::new(false))
}

#[test]
fn unix_socket_is_private_and_taken_away_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let running = Service::builder(store()).listen(Listen::Unix(path.clone())).start().unwrap();
    assert_eq!(running.addresses(), [Address::Unix(path.clone())]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = Client::new(UnixStream::connect(&path).unwrap());
    client.begin("9P2000.L", 8192);
    assert!(running.stop());
    assert!(!path.exists());
    assert!(client.try_receive().is_none());
}

#[test]
fn stale_socket_is_replaced_a_living_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let start = || Service::builder(store()).listen(Listen::Unix(path.clone())).start();
    let running = start().unwrap();
    assert!(matches!(start(), Err(Error::InUse { .. })));
    // Who was refused must not take the other's socket away.
    Client::new(UnixStream::connect(&path).unwrap()).begin("9P2000.L", 8192);
    drop(running);
    fs::write(&path, "precious").unwrap();
    assert!(matches!(start(), Err(Error::NotASocket { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn tcp_is_loopback_unless_told_otherwise() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let started = Service::builder(store()).listen(Listen::Tcp(address.into())).start();
        assert!(matches!(started, Err(Error::Insecure { .. })), "{address}");
    }
    let anywhere = Service::builder(store()).insecure(true).listen(Listen::Tcp("0.0.0.0:0".into()));
    assert!(anywhere.start().is_ok());
    let running = Service::builder(store())
        .listen(Listen::Tcp("127.0.0.1:0".into()))
        .listen(Listen::Tcp("127.0.0.1:0".into()))
        .start()
        .unwrap();
    assert_eq!(running.addresses().len(), 2);
    for address in running.addresses() {
        let Address::Tcp(address) = address else { panic!() };
        let stream = TcpStream::connect(address).unwrap();
        let mut client = Client::over(stream);
        client.begin("9P2000.L", 8192);
    }
    assert_eq!(running.counters().accepted, 2);
}

#[test]
fn stop_lets_answers_in_progress_leave() {
    let store = Arc::new(FaultStore::new(false));
    let gate = Arc::clone(&store.gate);
    let running = common::start(store, Limits::default());
    let mut client = common::connect(&running);
    client.begin("9P2000.L", 8192);
    client.open(Fid(1), "slow", OpenFlags::READ_WRITE);
    client.send(9, &Request::Fsync { fid: Fid(1), data_only: p9::Optional(None) });
    while gate.came() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let stopping = std::thread::spawn(move || running.stop());
    std::thread::sleep(Duration::from_millis(50));
    gate.open();
    assert_eq!(client.receive().header.kind, 51);
    assert!(client.try_receive().is_none());
    assert!(stopping.join().unwrap());
}

#[test]
fn stop_ends_idle_and_stuck_connections() {
    let fixture = Fixture::new();
    fs::write(fixture.path("big"), vec![1; 1 << 20]).unwrap();
    let mut idle = fixture.client();
    let mut stuck = fixture.client();
    stuck.open(Fid(1), "big", OpenFlags::empty());
    // Far more than socket buffers hold, and nobody reads it.
    for tag in 0..64 {
        stuck.send(tag, &Request::Read { fid: Fid(1), offset: 0, count: 1 << 20 });
    }
    let begun = Instant::now();
    assert!(fixture.running.stop());
    assert!(begun.elapsed() < Duration::from_secs(8));
    assert!(idle.try_receive().is_none());
}

#[test]
fn connections_are_limited() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let running = Service::builder(store())
        .limits(limits)
        .listen(Listen::Unix(path.clone()))
        .start()
        .unwrap();
    let connect = || Client::new(UnixStream::connect(&path).unwrap());
    let (mut one, mut two) = (connect(), connect());
    one.begin("9P2000.L", 8192);
    two.begin("9P2000.L", 8192);
    assert!(connect().try_receive().is_none());
    common::until(|| running.counters().refused == 1);
    drop(one);
    common::until(|| running.counters().connections == 1);
    connect().begin("9P2000.L", 8192);
    two.done(&walk(ROOT, Fid(1), &["x"]));
}

#[test]
fn idle_connections_end_if_that_is_wanted() {
    let limits = Limits { idle: Some(Duration::from_millis(50)), ..Limits::default() };
    let fixture = Fixture::with_limits(limits);
    let mut client = fixture.client();
    assert!(client.try_receive().is_none());
}

#[test]
fn a_client_that_waits_for_an_answer_is_not_idle() {
    let limits = Limits { idle: Some(Duration::from_millis(300)), ..Limits::default() };
    let store = Arc::new(FaultStore::new(false));
    let gate = Arc::clone(&store.gate);
    let running = common::start(store, limits);
    let mut client = common::connect(&running);
    client.begin("9P2000.L", 8192);
    client.open(Fid(1), "slow", OpenFlags::READ_WRITE);
    client.send(9, &Request::Fsync { fid: Fid(1), data_only: p9::Optional(None) });
    std::thread::sleep(Duration::from_millis(700));
    gate.open();
    assert_eq!(client.receive().header.kind, 51);
    assert!(client.try_receive().is_none());
}

#[test]
fn bytes_that_are_made_when_they_are_read_leave_in_pieces() {
    let store = Arc::new(FaultStore::new(false));
    let log = Arc::clone(&store.log);
    let running = common::start(store, Limits::default());
    let mut client = common::connect(&running);
    client.begin("9P2000.L", 1 << 20);
    client.open(Fid(1), "made", OpenFlags::empty());
    client.open(Fid(2), "strewn", OpenFlags::empty());
    let reads =
        [(0, 1 << 20), (1, 700_001), (MADE_SIZE - 900_000, 1 << 20), (5, 262_145), (5, 262_144)];
    let pieces = [(Fid(1), 256 << 10), (Fid(2), 1 << 20)];
    for ((offset, count), (fid, piece)) in
        reads.into_iter().flat_map(|read| pieces.map(|pieces| (read, pieces)))
    {
        log.lock().unwrap().clear();
        // Answers stay in their order when several requests are on their way.
        client.send(1, &Request::Read { fid, offset, count });
        client.send(2, &Request::Read { fid, offset: 7, count: 3 });
        let answer = client.receive();
        let Reply::Read { data } = answer.reply() else { panic!("{:?}", answer.reply()) };
        let wanted = u64::from(count).min((1 << 20) - 11).min(MADE_SIZE - offset);
        assert_eq!(data.0.len() as u64, wanted);
        assert!((offset..).zip(data.0).all(|(at, byte)| *byte == made_byte(at)), "{offset}");
        let answer = client.receive();
        assert!(matches!(answer.reply(), Reply::Read { data } if data.0.len() == 3));
        let pieces = wanted.div_ceil(piece);
        assert_eq!(log.lock().unwrap().len() as u64, pieces + 1, "{offset}");
    }
}

#[test]
fn a_piece_that_cannot_be_had_ends_the_connection_and_then_is_an_error() {
    let running = common::start(Arc::new(FaultStore::new(false)), Limits::default());
    let connect = || {
        let mut client = common::connect(&running);
        client.begin("9P2000.L", 1 << 20);
        client.open(Fid(1), "breaks", OpenFlags::empty());
        client
    };
    let read = |offset| Request::Read { fid: Fid(1), offset, count: 1 << 20 };
    let mut client = connect();
    assert_eq!(client.done(&read(0)).header.kind, 117);
    client.send(1, &read(1_000_000));
    // The head has promised more than comes.
    let mut rest = Vec::new();
    let _ = std::io::Read::read_to_end(&mut client.stream, &mut rest);
    assert!(rest.len() > 256 << 10 && rest.len() < 1 << 20, "{} bytes", rest.len());
    let mut again = connect();
    assert_eq!(again.refused(&read(1_000_000)), Errno::EIO);
    assert_eq!(again.done(&read(0)).header.kind, 117);
}
