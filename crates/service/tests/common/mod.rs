//! A minimal client that says exactly what it is told to, and a service to talk to.
#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod fault;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use p9::frame::{HEADER_LEN, Header};
use p9::{Errno, Fid, Name, Names, OpenFlags, Optional, Reply, Request, Tag};
use service::{Limits, Running, Service};
use store::Store;
use tempfile::TempDir;

pub const ROOT: Fid = Fid(0);

/// A service over a fresh directory.
pub struct Fixture {
    pub directory: TempDir,
    pub running: Running,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = store::fs::FsStore::new(directory.path()).unwrap();
        let running = start(Arc::new(store), limits);
        Self { directory, running }
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// A connection with no version yet.
    pub fn connect(&self) -> Client {
        connect(&self.running)
    }

    /// A 9P2000.L session whose fid 0 is the root.
    pub fn client(&self) -> Client {
        let mut client = self.connect();
        client.begin("9P2000.L", 1 << 20);
        client
    }

    /// A base 9P2000 session whose fid 0 is the root.
    pub fn legacy(&self) -> Client {
        let mut client = self.connect();
        client.begin("9P2000", 1 << 16);
        client
    }
}

pub fn start(store: Arc<dyn Store>, limits: Limits) -> Running {
    Service::builder(store).limits(limits).start().unwrap()
}

pub fn connect(running: &Running) -> Client {
    let (ours, theirs) = UnixStream::pair().unwrap();
    running.adopt(theirs.into()).unwrap();
    Client::new(ours)
}

/// A reply and the bytes that it borrows from.
pub struct Answer {
    pub header: Header,
    body: Vec<u8>,
}

impl Answer {
    pub fn reply(&self) -> Reply<'_> {
        Reply::decode(self.header.kind, &self.body).unwrap()
    }

    pub fn errno(&self) -> Option<Errno> {
        match self.reply() {
            Reply::Lerror { errno } => Some(errno),
            _ => None,
        }
    }
}

pub struct Client {
    pub stream: Box<dyn Stream>,
}

/// A Unix or TCP stream.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

impl Client {
    pub fn new(stream: UnixStream) -> Self {
        // A test fails rather than hangs.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        Self::over(stream)
    }

    pub fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream) }
    }

    /// Negotiates and attaches fid 0.
    pub fn begin(&mut self, version: &str, msize: u32) {
        let answer = self.call(&Request::Version { msize, version: version.as_bytes() });
        assert_eq!(answer.reply(), Reply::Version { msize, version: version.as_bytes() });
        let answer = self.attach(ROOT, "");
        assert!(matches!(answer.reply(), Reply::Attach { .. }), "{:?}", answer.reply());
    }

    pub fn attach(&mut self, fid: Fid, tree: &str) -> Answer {
        self.call(&Request::Attach {
            fid,
            afid: Fid::NONE,
            uname: b"nobody",
            aname: tree.as_bytes(),
            uid: Optional(None),
        })
    }

    pub fn send(&mut self, tag: u16, request: &Request<'_>) {
        let mut frame = Vec::new();
        request.encode(Tag(tag), &mut frame);
        self.send_bytes(&frame);
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends as much as the service takes before it ends the connection.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The next answer, or `None` at the end of the connection.
    pub fn try_receive(&mut self) -> Option<Answer> {
        let mut header = [0; HEADER_LEN];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("no answer in time")
            }
            Err(_) => return None,
        }
        let header = Header::parse(&header, u32::MAX).unwrap();
        let mut body = vec![0; header.body_len()];
        self.stream.read_exact(&mut body).ok()?;
        Some(Answer { header, body })
    }

    pub fn receive(&mut self) -> Answer {
        self.try_receive().expect("the connection ended")
    }

    pub fn call(&mut self, request: &Request<'_>) -> Answer {
        self.send(1, request);
        let answer = self.receive();
        assert_eq!(answer.header.tag, Tag(1));
        answer
    }

    /// Calls and wants the error's number.
    pub fn refused(&mut self, request: &Request<'_>) -> Errno {
        let answer = self.call(request);
        answer.errno().unwrap_or_else(|| panic!("not refused: {:?}", answer.reply()))
    }

    /// Calls and wants an answer of the same name.
    pub fn done(&mut self, request: &Request<'_>) -> Answer {
        let answer = self.call(request);
        assert_eq!(answer.header.kind, request.kind() + 1, "{:?}", answer.reply());
        answer
    }

    pub fn walk(&mut self, fid: Fid, new_fid: Fid, names: &[&str]) -> Answer {
        self.call(&walk(fid, new_fid, names))
    }

    pub fn open(&mut self, fid: Fid, name: &str, flags: OpenFlags) {
        let answer = self.walk(ROOT, fid, &[name]);
        assert_eq!(answer.header.kind, 111, "{:?}", answer.reply());
        self.done(&Request::Lopen { fid, flags });
    }

    pub fn create(&mut self, fid: Fid, name: &str) {
        self.walk(ROOT, fid, &[]);
        self.done(&Request::Lcreate {
            fid,
            name: name.as_bytes(),
            flags: OpenFlags::READ_WRITE,
            mode: 0o644,
            gid: 0,
        });
    }

    pub fn read(&mut self, fid: Fid, offset: u64, count: u32) -> Vec<u8> {
        let answer = self.call(&Request::Read { fid, offset, count });
        match answer.reply() {
            Reply::Read { data } => data.0.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    pub fn write(&mut self, fid: Fid, offset: u64, data: &[u8]) -> u32 {
        let answer = self.call(&Request::Write { fid, offset, data: p9::Data(data) });
        match answer.reply() {
            Reply::Write { count } => count,
            other => panic!("{other:?}"),
        }
    }

    pub fn size(&mut self, fid: Fid) -> u64 {
        let answer = self.call(&Request::Getattr { fid, mask: p9::GetattrMask::BASIC });
        match answer.reply() {
            Reply::Getattr { attributes } => attributes.size,
            other => panic!("{other:?}"),
        }
    }
}

pub fn walk<'a>(fid: Fid, new_fid: Fid, names: &[&'a str]) -> Request<'a> {
    let names = Names::collect(names.iter().map(|name| -> Name<'a> { name.as_bytes() }));
    Request::Walk { fid, new_fid, names }
}

/// Bytes that differ at every position of a megabyte or so.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 131) ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

/// Waits for something that must come true soon.
pub fn until(condition: impl Fn() -> bool) {
    for _ in 0..5000 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it did not come true");
}
