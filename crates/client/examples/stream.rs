//! How fast remote files are, over a real service: cost of tiny calls, and streaming against a
//! bare socket of the same kind.
//!
//! `cargo run --release -p client --example stream [uds|tcp|direct] [MIB]`

use std::error::Error;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use client::{At, Dial, Options, Place, RemoteFile, Session, SocketDial, direct};
use p9::OpenFlags;
use service::{Address, Direct, Listen, Running, Service};
use store::Store;

const MIB: usize = 1 << 20;
const READ_LENS: [usize; 5] = [8 << 10, 128 << 10, 256 << 10, MIB, 4 * MIB];

fn main() -> Result<(), Box<dyn Error>> {
    let kind = std::env::args().nth(1).unwrap_or_else(|| "uds".to_owned());
    let mib: usize = std::env::args().nth(2).and_then(|arg| arg.parse().ok()).unwrap_or(256);
    let total = mib * MIB;
    let dir = tempfile::tempdir_in("/dev/shm")?;
    let store: Arc<dyn Store> = Arc::new(store::fs::FsStore::new(dir.path())?);
    let service = serve(&kind, store, &dir.path().join("socket"))?;
    let session = Session::new(service.dial, Options::default());
    std::fs::write(dir.path().join("data"), vec![7; total])?;
    std::fs::write(dir.path().join("out"), vec![7; total])?;

    let file = open(&session, "data", OpenFlags::empty());
    let mut byte = [0];
    let calls = (32 * MIB).min(total);
    per_call("read, 1 byte", calls, || {
        for offset in 0..calls {
            file.read_at(black_box(&mut byte), offset as u64).expect("read");
        }
    });
    let file = open(&session, "out", OpenFlags::READ_WRITE);
    per_call("write, 1 byte", calls, || {
        for offset in 0..calls {
            file.write_at(black_box(&byte), offset as u64).expect("write");
        }
        file.flush().expect("flush");
    });

    for len in READ_LENS {
        let file = open(&session, "data", OpenFlags::empty());
        compare(format!("read, {} KiB", len >> 10), &kind, total, || read_all(&file, total, len));
    }
    for len in READ_LENS {
        let file = open(&session, "out", OpenFlags::WRITE_ONLY);
        let data = vec![9; len];
        compare(format!("write, {} KiB", len >> 10), &kind, total, || {
            for offset in (0..total).step_by(len) {
                file.write_at(&data, offset as u64).expect("write");
            }
            file.close().expect("close");
        });
    }
    Ok(())
}

/// A service and the way to it. It stops when this is dropped.
struct Served {
    dial: Box<dyn Dial>,
    _running: Option<Running>,
}

fn serve(
    kind: &str,
    store: Arc<dyn Store>,
    socket: &std::path::Path,
) -> Result<Served, Box<dyn Error>> {
    if kind == "direct" {
        let dial = direct(Arc::new(Direct::new(store)));
        return Ok(Served { dial: Box::new(dial), _running: None });
    }
    let listen = match kind {
        "tcp" => Listen::Tcp("127.0.0.1:0".to_owned()),
        _ => Listen::Unix(socket.to_owned()),
    };
    let running = Service::builder(store).listen(listen).start()?;
    let place = match running.addresses().first() {
        Some(Address::Tcp(address)) => {
            Place::Tcp { host: address.ip().to_string(), port: address.port() }
        }
        _ => Place::Unix(socket.to_owned()),
    };
    Ok(Served { dial: Box::new(SocketDial::new(place)), _running: Some(running) })
}

fn open(session: &Arc<Session>, name: &str, flags: OpenFlags) -> RemoteFile {
    match session.open(At::root(name.as_bytes()), flags, 0o644) {
        Ok(opened) => RemoteFile::new(opened),
        Err(error) => panic!("{name}: {error}"),
    }
}

fn per_call(what: &str, calls: usize, work: impl FnOnce()) {
    let begin = own_time();
    work();
    println!("{what:16} {:6.1} ns", (own_time() - begin) * 1e9 / calls as f64);
}

/// The caller's own processor time in seconds, which counts on a busy machine too.
fn own_time() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Runs `work` and bare sockets alternately and reports the medians: GB/s, GB per second of the
/// caller's processor time, and both in relation.
fn compare(what: String, kind: &str, bytes: usize, mut work: impl FnMut()) {
    let mut ratios = Vec::new();
    let mut rates = Vec::new();
    for _ in 0..5 {
        let ours = rate(bytes, &mut work);
        let bare = if kind == "tcp" { bare_tcp(bytes) } else { bare_unix(bytes) };
        rates.push(ours);
        ratios.push((ours.0 / bare.0, ours.1 / bare.1));
    }
    let median = |values: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = values.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "{what:16} {:6.2} GB/s {:5.2} x bare; {:6.2} GB per own second, {:5.2} x bare",
        median(&rates, |rate| rate.0),
        median(&ratios, |ratio| ratio.0),
        median(&rates, |rate| rate.1),
        median(&ratios, |ratio| ratio.1),
    );
}

fn rate(bytes: usize, mut work: impl FnMut()) -> (f64, f64) {
    let begin = (Instant::now(), own_time());
    work();
    let gigabytes = bytes as f64 / 1e9;
    (gigabytes / begin.0.elapsed().as_secs_f64(), gigabytes / (own_time() - begin.1))
}

fn read_all(file: &RemoteFile, total: usize, len: usize) {
    let mut buffer = vec![0; len];
    let mut offset = 0;
    file.invalidate();
    while offset < total {
        let count = file.read_at(&mut buffer, offset as u64).expect("read");
        assert_ne!(count, 0, "the file ends early");
        offset += count;
    }
}

/// What a pair of connected Unix sockets carries from one thread to another.
fn bare_unix(total: usize) -> (f64, f64) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    bare(total, ours, theirs)
}

fn bare_tcp(total: usize) -> (f64, f64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let ours = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
    let (theirs, _) = listener.accept().expect("a connection");
    bare(total, ours, theirs)
}

fn bare<S: Read + Write + AsFd + Send + 'static>(
    total: usize,
    mut ours: S,
    mut theirs: S,
) -> (f64, f64) {
    if std::any::type_name::<S>().contains("Unix") {
        for socket in [&ours, &theirs] {
            let _ = rustix::net::sockopt::set_socket_send_buffer_size(socket, 4 << 20);
        }
    }
    let sender = std::thread::spawn(move || {
        let data = vec![1; MIB];
        for _ in 0..total / MIB {
            theirs.write_all(&data).expect("send");
        }
    });
    let mut buffer = vec![0; MIB];
    let rate = rate(total, || {
        for _ in 0..total / MIB {
            ours.read_exact(&mut buffer).expect("receive");
        }
    });
    sender.join().expect("the sender");
    rate
}
