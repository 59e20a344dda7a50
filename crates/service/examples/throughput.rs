//! How much of a raw socket's speed the service reaches.
//!
//! `throughput [MIB [uds-read|uds-write|tcp-read|tcp-write]]`: moves that many MiB (1024) in requests of 1 MiB, 16 in flight, over a Unix
//! socket and over TCP on loopback, reading and writing, and the same amount between two raw
//! sockets with the same buffer sizes: once from memory to memory, once with the file read or
//! written by pread(2) or pwrite(2) at one end, which is the work that the service does too.
//! All are measured alternately; the ratios printed are the medians of five. Beside it, processor time of both sides: on a busy machine it says more than
//! the clock. The larger of the two bounds what an idle machine can reach.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use p9::frame::{HEADER_LEN, Header};
use p9::{Data, Fid, Name, Names, OpenFlags, Optional, Reply, Request, Tag};
use rustix::net::SendFlags;
use rustix::time::{ClockId, clock_gettime};
use service::{Address, Listen, Running, Service};

type Outcome<T> = Result<T, Box<dyn Error>>;

const REQUEST_BYTES: usize = 1 << 20;
const IN_FLIGHT: usize = 16;
const FILE: Fid = Fid(1);

/// A stream of either kind.
trait Stream: Read + Write + Send + AsFd {}
impl<T: Read + Write + Send + AsFd> Stream for T {}

#[derive(Clone, Copy)]
enum Kind {
    Unix,
    Tcp,
}

fn main() -> Outcome<()> {
    let mib: usize = std::env::args().nth(1).map_or(Ok(1024), |text| text.parse())?;
    // The file stays in the page cache. (Writing to tmpfs is slower than that: single pages.)
    let directory = std::env::temp_dir().join(format!("throughput-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let done = run(&directory, mib, std::env::args().nth(2));
    std::fs::remove_dir_all(&directory)?;
    done
}

fn run(directory: &Path, mib: usize, only: Option<String>) -> Outcome<()> {
    std::fs::write(directory.join("data"), vec![7_u8; mib << 20])?;
    let store = store::fs::FsStore::new(directory)?;
    let socket = directory.join("socket");
    let running = Service::builder(Arc::new(store))
        .listen(Listen::Unix(socket))
        .listen(Listen::Tcp("127.0.0.1:0".into()))
        .start()?;
    for (kind, name) in [(Kind::Unix, "uds"), (Kind::Tcp, "tcp")] {
        for (writing, direction) in [(false, "read"), (true, "write")] {
            let name = format!("{name}-{direction}");
            if only.as_ref().is_some_and(|only| *only != name) {
                continue;
            }
            let file = directory.join("data");
            let mut rounds = Vec::new();
            for _ in 0..5 {
                rounds.push([
                    measure(mib, || ours(&running, kind, mib, writing))?,
                    measure(mib, || raw(kind, mib, None))?,
                    measure(mib, || raw(kind, mib, Some((&file, writing))))?,
                ]);
            }
            let median = |of: &dyn Fn(&[Speed; 3]) -> f64| {
                let mut values: Vec<f64> = rounds.iter().map(of).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            let ratio = |other: usize| {
                median(&move |round| round[0].bytes_per_ns / round[other].bytes_per_ns)
            };
            let [ours, socket, socket_and_file] = rounds[rounds.len() / 2];
            println!(
                "{name}: {ours}; socket {socket}, ratio {:.2}; \
                 socket and file {socket_and_file}, ratio {:.2}",
                ratio(1),
                ratio(2)
            );
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Speed {
    bytes_per_ns: f64,
    /// Processor time in ms per GB of the thread that drives, and of all others.
    near: f64,
    far: f64,
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { bytes_per_ns, near, far } = self;
        write!(f, "{bytes_per_ns:.2} GB/s ({near:.0} + {far:.0} ms/GB)")
    }
}

fn measure(mib: usize, work: impl FnOnce() -> Outcome<f64>) -> Outcome<Speed> {
    let clock = |id| {
        let time = clock_gettime(id);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let (thread, process) = (clock(ClockId::ThreadCPUTime), clock(ClockId::ProcessCPUTime));
    let bytes_per_ns = work()?;
    let near = clock(ClockId::ThreadCPUTime) - thread;
    let all = clock(ClockId::ProcessCPUTime) - process;
    let gigabytes = (mib << 20) as f64 / 1e9;
    Ok(Speed { bytes_per_ns, near: near / gigabytes, far: (all - near) / gigabytes })
}

/// Speed of a raw stream in GB/s: one side sends 1 MiB at a time, the other receives. The far side
/// reads what it sends from a file, or writes what it receives to it.
fn raw(kind: Kind, mib: usize, file: Option<(&Path, bool)>) -> Outcome<f64> {
    let (mut near, mut far): (Box<dyn Stream>, Box<dyn Stream>) = match kind {
        Kind::Unix => {
            let (a, b) = UnixStream::pair()?;
            (Box::new(a), Box::new(b))
        }
        Kind::Tcp => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let a = TcpStream::connect(listener.local_addr()?)?;
            (Box::new(a), Box::new(listener.accept()?.0))
        }
    };
    choose_buffer(&*near, kind)?;
    choose_buffer(&*far, kind)?;
    let writing = file.is_some_and(|(_, writing)| writing);
    let file = match file {
        Some((path, _)) => Some(File::options().read(true).write(true).open(path)?),
        None => None,
    };
    let begun = Instant::now();
    let elsewhere = thread::spawn(move || -> std::io::Result<()> {
        let mut block = vec![7_u8; REQUEST_BYTES];
        for i in 0..mib {
            let offset = (i * REQUEST_BYTES) as u64;
            if writing {
                far.read_exact(&mut block)?;
            }
            match &file {
                Some(file) if writing => file.write_all_at(&block, offset)?,
                Some(file) => file.read_exact_at(&mut block, offset)?,
                None => {}
            }
            if !writing {
                far.write_all(&block)?;
            }
        }
        Ok(())
    });
    let mut block = vec![0_u8; REQUEST_BYTES];
    for _ in 0..mib {
        if writing { near.write_all(&block)? } else { near.read_exact(&mut block)? }
    }
    elsewhere.join().map_err(|_| "the other side panicked")??;
    Ok((mib << 20) as f64 / begun.elapsed().as_secs_f64() / 1e9)
}

/// The send buffers that a careful client asks for: on TCP small enough that the data are still in
/// the processor's cache when the other side receives them.
fn choose_buffer(stream: &dyn Stream, kind: Kind) -> Outcome<()> {
    let bytes = match kind {
        Kind::Unix => 1 << 20,
        Kind::Tcp => 128 << 10,
    };
    Ok(rustix::net::sockopt::set_socket_send_buffer_size(stream.as_fd(), bytes)?)
}

/// Speed through the service in GB/s.
fn ours(running: &Running, kind: Kind, mib: usize, writing: bool) -> Outcome<f64> {
    let mut stream: Box<dyn Stream> = match (kind, &running.addresses()[..]) {
        (Kind::Unix, [Address::Unix(path), ..]) => Box::new(UnixStream::connect(path)?),
        (Kind::Tcp, [_, Address::Tcp(address)]) => {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        _ => return Err("unexpected addresses".into()),
    };
    choose_buffer(&*stream, kind)?;
    let msize = (REQUEST_BYTES + 24) as u32;
    call(&mut *stream, &Request::Version { msize, version: b"9P2000.L" })?;
    let attach = Request::Attach {
        fid: Fid(0),
        afid: Fid::NONE,
        uname: b"",
        aname: b"",
        uid: Optional(Some(p9::NO_UID)),
    };
    call(&mut *stream, &attach)?;
    let name: Name<'_> = b"data";
    call(
        &mut *stream,
        &Request::Walk { fid: Fid(0), new_fid: FILE, names: Names::collect([name]) },
    )?;
    call(&mut *stream, &Request::Lopen { fid: FILE, flags: OpenFlags::READ_WRITE })?;
    let begun = Instant::now();
    if writing {
        write(&mut *stream, mib)?
    } else {
        read(&mut *stream, mib)?
    }
    Ok((mib << 20) as f64 / begun.elapsed().as_secs_f64() / 1e9)
}

fn call(stream: &mut dyn Stream, request: &Request<'_>) -> Outcome<()> {
    let mut frame = Vec::new();
    request.encode(Tag(0), &mut frame);
    stream.write_all(&frame)?;
    let mut body = Vec::new();
    let header = receive(stream, &mut body)?;
    if header.kind != request.kind() + 1 {
        return Err(format!("{:?}", Reply::decode(header.kind, &body)).into());
    }
    Ok(())
}

fn receive(stream: &mut dyn Stream, body: &mut Vec<u8>) -> Outcome<Header> {
    let mut header = [0; HEADER_LEN];
    stream.read_exact(&mut header)?;
    let header = Header::parse(&header, u32::MAX)?;
    body.resize(header.body_len(), 0);
    stream.read_exact(body)?;
    Ok(header)
}

fn read(stream: &mut dyn Stream, mib: usize) -> Outcome<()> {
    let mut body = vec![0; REQUEST_BYTES + 4];
    let mut frame = Vec::new();
    for i in 0..mib + IN_FLIGHT {
        if i < mib {
            let offset = (i * REQUEST_BYTES) as u64;
            frame.clear();
            Request::Read { fid: FILE, offset, count: REQUEST_BYTES as u32 }
                .encode(Tag((i % 64) as u16), &mut frame);
            stream.write_all(&frame)?;
        }
        if i >= IN_FLIGHT {
            let header = receive(stream, &mut body)?;
            if header.kind != 117 || body.len() != REQUEST_BYTES + 4 {
                return Err("a short read".into());
            }
        }
    }
    Ok(())
}

fn write(stream: &mut dyn Stream, mib: usize) -> Outcome<()> {
    let block = vec![7_u8; REQUEST_BYTES];
    let mut body = Vec::new();
    let mut frame = Vec::new();
    for i in 0..mib + IN_FLIGHT {
        if i < mib {
            let offset = (i * REQUEST_BYTES) as u64;
            frame.clear();
            let data = Request::Write { fid: FILE, offset, data: Data(&block) }
                .encode_head(Tag((i % 64) as u16), &mut frame);
            // The head is 23 bytes and leaves together with the data.
            if rustix::net::send(stream.as_fd(), &frame, SendFlags::MORE)? != frame.len() {
                return Err("a torn head".into());
            }
            stream.write_all(data)?;
        }
        if i >= IN_FLIGHT {
            let header = receive(stream, &mut body)?;
            if Reply::decode(header.kind, &body)? != (Reply::Write { count: REQUEST_BYTES as u32 })
            {
                return Err("a short write".into());
            }
        }
    }
    Ok(())
}
