//! A store that panics, waits and fails when told to.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex};

use p9::{
    Attributes, DirEntry, Errno, GetattrMask, OpenFlags, Qid, QidType, SetAttributes, StatFs, Time,
};
use store::{Error, LockOwner, LockRange, Node, OpenNode, Piece, Result, Store, Walk};

/// A door that requests wait at until the test opens it.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
    waiting: Mutex<usize>,
}

impl Gate {
    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn pass(&self) {
        *self.waiting.lock().unwrap() += 1;
        let open = self.open.lock().unwrap();
        drop(self.changed.wait_while(open, |open| !*open).unwrap());
    }

    /// How many requests have come to the gate so far.
    pub fn came(&self) -> usize {
        *self.waiting.lock().unwrap()
    }
}

/// One directory with files whose names say what they do:
/// `panic` panics when read, `full` takes 100,000 bytes and no more, `slow` waits at the gate when
/// synced, `far` waits at the gate when read. Each has the content `DATA`. For `full` the kernel is
/// lent a descriptor, which cannot be written to. `made`, `strewn` and `breaks` are of a settled size,
/// `MADE_SIZE`, and have `made_byte`s; `strewn` is best read at once; `breaks` cannot be read beyond its
/// middle, and admits it afterwards. `hand` has the first 2,000,000 of them at hand, in pieces, and cannot be read.
pub struct FaultStore {
    pub gate: Arc<Gate>,
    /// Whether the store says that it may wait.
    pub blocks: bool,
    /// What was done, in order.
    pub log: Arc<Mutex<Vec<String>>>,
    lent: Arc<File>,
}

pub const DATA: &[u8] = b"0123456789";
pub const MADE_SIZE: u64 = 3_000_000;

pub fn made_byte(at: u64) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}

impl FaultStore {
    pub fn new(blocks: bool) -> Self {
        let lent = Arc::new(File::open("/dev/null").unwrap());
        Self { gate: Arc::default(), blocks, log: Arc::default(), lent }
    }

    fn node(&self, name: &str) -> Arc<dyn Node> {
        Arc::new(FaultNode {
            name: name.to_owned(),
            gate: Arc::clone(&self.gate),
            blocks: self.blocks,
            log: Arc::clone(&self.log),
            lent: Arc::clone(&self.lent),
        })
    }
}

impl Store for FaultStore {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(self.node(""))
    }

    fn blocks(&self) -> bool {
        self.blocks
    }
}

#[derive(Clone)]
struct FaultNode {
    name: String,
    gate: Arc<Gate>,
    blocks: bool,
    log: Arc<Mutex<Vec<String>>>,
    lent: Arc<File>,
}

fn fail<T>(errno: Errno) -> Result<T> {
    Err(Error::System { operation: "test", errno })
}

impl FaultNode {
    fn note(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{what} {}", self.name));
    }
}

impl Node for FaultNode {
    fn qid(&self) -> Qid {
        let kind = if self.name.is_empty() { QidType::DIR } else { QidType::empty() };
        Qid { kind, version: 0, path: self.name.bytes().map(u64::from).sum() }
    }

    fn blocks(&self) -> bool {
        self.blocks
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        self.note("walk from");
        let end = match names {
            [] => self.clone(),
            [name] if self.name.is_empty() => {
                Self { name: String::from_utf8_lossy(name).into_owned(), ..self.clone() }
            }
            _ => return fail(Errno::ENOENT),
        };
        let qids = if names.is_empty() { Vec::new() } else { vec![end.qid()] };
        Ok(Walk { qids, end: Some(Arc::new(end)) })
    }

    fn attributes(&self) -> Result<Attributes> {
        self.note("attributes");
        Ok(attributes(self.qid()))
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        fail(Errno::EPERM)
    }

    fn open(&self, _flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        self.note("open");
        Ok(Arc::new(self.clone()))
    }

    fn create(
        &self,
        _name: &[u8],
        _flags: OpenFlags,
        _mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        fail(Errno::EPERM)
    }

    fn make_directory(&self, _name: &[u8], _mode: u32) -> Result<Qid> {
        panic!("asked to make a directory")
    }

    fn make_symlink(&self, _name: &[u8], _target: &[u8]) -> Result<Qid> {
        fail(Errno::EPERM)
    }

    fn link(&self, _existing: &dyn Node, _name: &[u8]) -> Result<()> {
        fail(Errno::EPERM)
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        fail(Errno::EINVAL)
    }

    fn rename(&self, _old: &[u8], _new_dir: &dyn Node, _new: &[u8]) -> Result<()> {
        fail(Errno::EPERM)
    }

    fn remove(&self, _name: &[u8], _directory: bool) -> Result<()> {
        fail(Errno::EPERM)
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        fail(Errno::EPERM)
    }

    fn statfs(&self) -> Result<StatFs> {
        Ok(StatFs::default())
    }
}

fn attributes(qid: Qid) -> Attributes {
    Attributes {
        valid: GetattrMask::BASIC,
        qid,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        nlink: 1,
        rdev: 0,
        size: DATA.len() as u64,
        block_size: 4096,
        blocks: 1,
        atime: Time::default(),
        mtime: Time::default(),
        ctime: Time::default(),
        btime: Time::default(),
        generation: 0,
        data_version: 0,
    }
}

impl OpenNode for FaultNode {
    fn piece_bytes(&self) -> Option<usize> {
        (self.name == "strewn").then_some(usize::MAX)
    }

    fn settled_size(&self) -> Option<u64> {
        let is_made = ["made", "strewn", "breaks"].contains(&self.name.as_str());
        let has_broken = self.log.lock().unwrap().iter().any(|entry| entry == "break breaks");
        (is_made && !has_broken).then_some(MADE_SIZE)
    }

    fn at_hand(&self, offset: u64, len: usize) -> Option<Vec<Piece>> {
        let end = offset + len as u64;
        if self.name != "hand" || end > 2_000_000 {
            return None;
        }
        let pieces = (offset..end).step_by(700);
        let made = |at: u64| (at..end.min(at + 700)).map(made_byte).collect::<Vec<u8>>();
        Some(pieces.map(|at| Box::new(made(at)) as Piece).collect())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        match self.name.as_str() {
            "panic" | "hand" => panic!("asked to panic"),
            "far" => self.gate.pass(),
            "made" | "strewn" | "breaks" => {
                self.note("read");
                let count = buffer.len().min(MADE_SIZE.saturating_sub(offset) as usize);
                if self.name == "breaks" && offset + count as u64 > MADE_SIZE / 2 {
                    self.note("break");
                    return fail(Errno::EIO);
                }
                for (at, byte) in (offset..).zip(&mut buffer[..count]) {
                    *byte = made_byte(at);
                }
                return Ok(count);
            }
            _ => {}
        }
        self.note("read");
        let rest = DATA.get(offset as usize..).unwrap_or(&[]);
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        self.note("write");
        match self.name.as_str() {
            "panic" => panic!("asked to panic"),
            "full" => match 100_000_u64.saturating_sub(offset) {
                0 => fail(Errno::ENOSPC),
                room => Ok(data.len().min(room as usize)),
            },
            _ => Ok(data.len()),
        }
    }

    fn read_directory(
        &self,
        _cookie: u64,
        _take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        Ok(())
    }

    fn attributes(&self) -> Result<Attributes> {
        Node::attributes(self)
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        fail(Errno::EPERM)
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        if self.name == "slow" {
            self.gate.pass();
        }
        self.note("sync");
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.note("close");
        if self.name == "unsafe" { fail(Errno::ENOSPC) } else { Ok(()) }
    }

    fn lost(&self) {
        self.note("lose");
    }

    fn lock(&self, _owner: &LockOwner, _range: LockRange) -> Result<bool> {
        Ok(true)
    }

    fn lock_in_the_way(
        &self,
        _owner: &LockOwner,
        _range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        Ok(None)
    }

    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        (self.name == "full").then(|| self.lent.as_fd())
    }
}
