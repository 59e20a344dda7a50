//! A small 9P2000.L service in the test's process, with a tree in memory and every fault that a
//! test can ask for. It shares no code with the real service beyond the codec.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use client::{Dial, Error, Link, Options, Session};
use p9::frame::{HEADER_LEN, Header};
use p9::{
    Attributes, Data, DirEntry, Errno, Fid, GetattrMask, LockKind, LockStatus, OpenFlags, Qid,
    QidType, Qids, Reply, Request, StatFs, Tag, Time, mode,
};

/// What goes wrong, and how the service is. The `drop_` faults happen once.
#[derive(Clone, Default)]
pub struct Faults {
    /// The connection ends when so many requests of this type were read; the last is not executed.
    pub drop_before: Option<(u8, usize)>,
    /// As `drop_before`, but the last is executed and not answered.
    pub drop_after: Option<(u8, usize)>,
    /// The connection ends in the middle of a reply, when so many bytes were sent.
    pub drop_at_reply_byte: Option<usize>,
    /// Requests that arrive together are executed last first; the service speaks plain 9P2000.L.
    pub reversed: bool,
    /// The service knows no extensions: it refuses them instead of falling back.
    pub plain: bool,
    /// Requests that arrive together are executed in order and answered last first.
    pub replies_reversed: bool,
    /// Changes replies on their way out.
    pub lie: Option<fn(&mut Vec<u8>)>,
    /// Names of attachable trees; the unnamed one only if there are none.
    pub trees: Vec<&'static str>,
    /// Wait before each burst is answered.
    pub delay: Duration,
    /// The most that the service agrees to.
    pub msize_max: Option<u32>,
    /// Nobody listens.
    pub unreachable: bool,
    /// The client has no descriptor left to dial with.
    pub no_descriptors: bool,
    /// The service reads nothing at all.
    pub deaf: bool,
    /// What is written is safe only when it is synced or the file is closed.
    pub closes_count: bool,
    /// Locks are held by somebody else so many more times.
    pub lock_held: usize,
}

pub enum Kind {
    Directory(BTreeMap<Vec<u8>, u64>),
    File(Vec<u8>),
    Symlink(Vec<u8>),
}

pub struct Node {
    pub kind: Kind,
    parent: u64,
}

pub struct World {
    pub nodes: HashMap<u64, Node>,
    next: u64,
    pub faults: Faults,
    /// Names of the requests, as they were read.
    pub log: Vec<&'static str>,
    /// Groups of requests that arrived together, without those of nothing but clunks.
    pub bursts: usize,
    pub dials: usize,
    sockets: Vec<UnixStream>,
}

/// The service; also the dialer that leads to it.
#[derive(Clone)]
pub struct Fake(Arc<Mutex<World>>);

const ROOT: u64 = 1;

impl Fake {
    /// `dir/sub/file`, `dir/link` to it and whatever a path in `files` says: `a/b` is a file,
    /// `a/b/` a directory, `a/b@target` a symbolic link.
    pub fn new(paths: &[&str]) -> Self {
        let root = Node { kind: Kind::Directory(BTreeMap::new()), parent: ROOT };
        let mut world = World {
            nodes: HashMap::from([(ROOT, root)]),
            next: ROOT + 1,
            faults: Faults::default(),
            log: Vec::new(),
            bursts: 0,
            dials: 0,
            sockets: Vec::new(),
        };
        for path in paths {
            let (path, kind) = match path.split_once('@') {
                Some((path, target)) => (path, Kind::Symlink(target.into())),
                None if path.ends_with('/') => {
                    (path.trim_end_matches('/'), Kind::Directory(BTreeMap::new()))
                }
                None => (*path, Kind::File(path.as_bytes().to_vec())),
            };
            let mut dir = ROOT;
            let mut names = path.split('/').peekable();
            let mut kind = Some(kind);
            while let Some(name) = names.next() {
                let found = world.child(dir, name.as_bytes());
                dir = match found {
                    Some(id) => id,
                    None if names.peek().is_none() => {
                        world.add(dir, name.as_bytes(), kind.take().expect("once"))
                    }
                    None => world.add(dir, name.as_bytes(), Kind::Directory(BTreeMap::new())),
                };
            }
        }
        Self(Arc::new(Mutex::new(world)))
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("no panic in the service")
    }

    pub fn with_faults(self, set: impl FnOnce(&mut Faults)) -> Self {
        set(&mut self.world().faults);
        self
    }

    pub fn set(&self, set: impl FnOnce(&mut Faults)) {
        set(&mut self.world().faults);
    }

    pub fn session(&self) -> Arc<Session> {
        self.session_with(|_| {})
    }

    pub fn session_with(&self, change: impl FnOnce(&mut Options)) -> Arc<Session> {
        let mut options = Options {
            reconnect_for: Duration::from_millis(400),
            request_timeout: Duration::from_secs(2),
            ..Options::default()
        };
        change(&mut options);
        Session::new(Box::new(self.clone()), options)
    }

    /// Forgets what was logged so far.
    pub fn reset(&self) {
        let mut world = self.world();
        world.log.clear();
        world.bursts = 0;
    }

    pub fn bursts(&self) -> usize {
        self.world().bursts
    }

    pub fn dials(&self) -> usize {
        self.world().dials
    }

    pub fn count(&self, name: &str) -> usize {
        self.world().log.iter().filter(|entry| **entry == name).count()
    }

    pub fn content(&self, path: &str) -> Option<Vec<u8>> {
        let world = self.world();
        let id = path.split('/').try_fold(ROOT, |dir, name| world.child(dir, name.as_bytes()))?;
        match &world.nodes[&id].kind {
            Kind::File(data) => Some(data.clone()),
            _ => None,
        }
    }

    pub fn exists(&self, path: &str) -> bool {
        let world = self.world();
        path.split('/').try_fold(ROOT, |dir, name| world.child(dir, name.as_bytes())).is_some()
    }

    /// Ends all connections, as a service does that is killed, and waits until that is done.
    pub fn cut(&self) {
        for socket in self.world().sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Puts another file in a file's place.
    pub fn replace(&self, path: &str, data: &[u8]) {
        let mut world = self.world();
        let (dir, name) = path.rsplit_once('/').expect("a path of two names");
        let dir = dir.split('/').try_fold(ROOT, |dir, name| world.child(dir, name.as_bytes()));
        world.add(dir.expect("the directory is there"), name.as_bytes(), Kind::File(data.to_vec()));
    }
}

impl Dial for Fake {
    fn dial(&self, request_timeout: Duration) -> client::Result<Link> {
        let mut world = self.world();
        world.dials += 1;
        if world.faults.no_descriptors {
            return Err(Error::Unreachable { peer: self.peer(), errno: Errno::EMFILE });
        }
        if world.faults.unreachable {
            return Err(Error::Unreachable { peer: self.peer(), errno: Errno::ECONNREFUSED });
        }
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        ours.set_read_timeout(Some(request_timeout)).expect("a timeout");
        world.sockets.push(theirs.try_clone().expect("a descriptor"));
        if !world.faults.deaf {
            let fake = self.clone();
            std::thread::spawn(move || Serving::new(fake).run(theirs));
        }
        Ok(Link::Stream(OwnedFd::from(ours)))
    }

    fn peer(&self) -> String {
        "the fake".to_owned()
    }
}

impl World {
    fn child(&self, dir: u64, name: &[u8]) -> Option<u64> {
        match &self.nodes.get(&dir)?.kind {
            Kind::Directory(entries) => entries.get(name).copied(),
            _ => None,
        }
    }

    fn add(&mut self, dir: u64, name: &[u8], kind: Kind) -> u64 {
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, Node { kind, parent: dir });
        if let Some(Node { kind: Kind::Directory(entries), .. }) = self.nodes.get_mut(&dir) {
            entries.insert(name.to_vec(), id);
        }
        id
    }

    fn qid(&self, id: u64) -> Qid {
        let kind = match self.nodes[&id].kind {
            Kind::Directory(_) => QidType::DIR,
            Kind::File(_) => QidType::empty(),
            Kind::Symlink(_) => QidType::SYMLINK,
        };
        Qid { kind, version: 0, path: id }
    }

    fn attributes(&self, id: u64) -> Attributes {
        let (kind, size) = match &self.nodes[&id].kind {
            Kind::Directory(_) => (mode::DIRECTORY | 0o755, 4096),
            Kind::File(data) => (mode::REGULAR | 0o644, data.len() as u64),
            Kind::Symlink(target) => (mode::SYMLINK | 0o777, target.len() as u64),
        };
        Attributes {
            valid: if self.faults.closes_count {
                GetattrMask::BASIC | GetattrMask::CLOSE_COUNTS
            } else {
                GetattrMask::BASIC
            },
            qid: self.qid(id),
            mode: kind,
            uid: 0,
            gid: 0,
            nlink: 1,
            rdev: 0,
            size,
            block_size: 4096,
            blocks: size.div_ceil(512),
            atime: Time::default(),
            mtime: Time::default(),
            ctime: Time::default(),
            btime: Time::default(),
            generation: 0,
            data_version: 0,
        }
    }
}

/// One connection.
struct Serving {
    fake: Fake,
    fids: HashMap<Fid, (u64, bool)>,
    msize: u32,
    counts: HashMap<u8, usize>,
    replied: usize,
}

/// The connection ends.
struct Over;

impl Serving {
    fn new(fake: Fake) -> Self {
        Self { fake, fids: HashMap::new(), msize: 8192, counts: HashMap::new(), replied: 0 }
    }

    fn run(mut self, mut socket: UnixStream) {
        self.serve(&mut socket);
        // The world has another descriptor of it; the peer may have closed already.
        let _ = socket.shutdown(Shutdown::Both);
    }

    fn serve(&mut self, socket: &mut UnixStream) {
        let mut buffer = Vec::new();
        let mut chunk = vec![0; 4 << 20];
        loop {
            match socket.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(count) => buffer.extend_from_slice(&chunk[..count]),
            }
            let mut frames = Vec::new();
            while let Some(header) = buffer.first_chunk::<HEADER_LEN>() {
                let header = Header::parse(header, u32::MAX).expect("a frame");
                let len = header.size as usize;
                if buffer.len() < len {
                    break;
                }
                let rest = buffer.split_off(len);
                frames.push((header, std::mem::replace(&mut buffer, rest)));
            }
            if self.burst(frames, socket).is_err() {
                return;
            }
        }
    }

    fn burst(
        &mut self,
        mut frames: Vec<(Header, Vec<u8>)>,
        socket: &mut UnixStream,
    ) -> Result<(), Over> {
        let faults = self.fake.world().faults.clone();
        if frames.iter().any(|(header, _)| header.kind != 120) {
            self.fake.world().bursts += 1;
        }
        if !faults.delay.is_zero() {
            std::thread::sleep(faults.delay);
        }
        if faults.reversed {
            frames.reverse();
        }
        let mut replies: Vec<Vec<u8>> = Vec::new();
        let mut over = Ok(());
        for (header, frame) in frames {
            let request = Request::decode(header.kind, &frame[HEADER_LEN..]).expect("a request");
            self.fake.world().log.push(request.name());
            let count = self.counts.entry(header.kind).or_default();
            *count += 1;
            if faults.drop_before.is_some_and(|fault| fault == (header.kind, *count)) {
                self.fake.set(|faults| faults.drop_before = None);
                over = Err(Over);
                break;
            }
            let unanswered = faults.drop_after.is_some_and(|fault| fault == (header.kind, *count));
            let mut out = Vec::new();
            self.execute(header.tag, &request, &mut out);
            if unanswered {
                self.fake.set(|faults| faults.drop_after = None);
                over = Err(Over);
                break;
            }
            if let Some(lie) = faults.lie {
                lie(&mut out);
            }
            replies.push(out);
        }
        if faults.replies_reversed {
            replies.reverse();
        }
        let mut out = replies.concat();
        if let Some(limit) = faults.drop_at_reply_byte
            && self.replied + out.len() > limit
        {
            out.truncate(limit.saturating_sub(self.replied));
            self.fake.set(|faults| faults.drop_at_reply_byte = None);
            over = Err(Over);
        }
        self.replied += out.len();
        socket.write_all(&out).map_err(|_| Over)?;
        over
    }

    fn execute(&mut self, tag: Tag, request: &Request<'_>, out: &mut Vec<u8>) {
        let mut held = Vec::new();
        match self.answer(request, &mut held) {
            Ok(reply) => reply.encode(tag, out),
            Err(errno) => Reply::Lerror { errno }.encode(tag, out),
        }
    }

    fn fid(&self, fid: Fid) -> Result<u64, Errno> {
        self.fids.get(&fid).map(|(id, _)| *id).ok_or(Errno::EBADF)
    }

    fn answer<'o>(
        &mut self,
        request: &Request<'_>,
        held: &'o mut Vec<u8>,
    ) -> Result<Reply<'o>, Errno> {
        let fake = self.fake.clone();
        let mut guard = fake.world();
        let world = &mut *guard;
        match *request {
            Request::Version { msize, version } => {
                self.msize = msize.min(world.faults.msize_max.unwrap_or(u32::MAX));
                let extended = version == b"9P2000.L.sluice";
                if extended && world.faults.plain {
                    return Err(Errno::EIO);
                }
                let extended = extended && !world.faults.reversed;
                let version: &[u8] = if extended { b"9P2000.L.sluice" } else { b"9P2000.L" };
                Ok(Reply::Version { msize: self.msize, version })
            }
            Request::Attach { fid, aname, .. } => {
                let mut id = ROOT;
                if world.faults.trees.is_empty() == aname.is_empty() {
                    let tree = String::from_utf8_lossy(aname);
                    if !aname.is_empty() && !world.faults.trees.contains(&tree.as_ref()) {
                        return Err(Errno::EACCES);
                    }
                    for name in aname.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
                        id = world.child(id, name).ok_or(Errno::ENOENT)?;
                    }
                } else {
                    return Err(Errno::EPERM);
                }
                self.fids.insert(fid, (id, false));
                Ok(Reply::Attach { qid: world.qid(id) })
            }
            Request::Walk { fid, new_fid, names } => {
                let mut id = self.fid(fid)?;
                assert!(fid == new_fid || !self.fids.contains_key(&new_fid), "fid in use");
                assert!(!self.fids[&fid].1, "walk from an open fid");
                let mut qids = Vec::new();
                for name in names.as_slice() {
                    let next = match (&world.nodes[&id].kind, *name) {
                        (Kind::Directory(_), b"..") => Ok(world.nodes[&id].parent),
                        (Kind::Directory(entries), name) => {
                            entries.get(name).copied().ok_or(Errno::ENOENT)
                        }
                        _ => Err(Errno::ENOTDIR),
                    };
                    match next {
                        Ok(next) => id = next,
                        Err(errno) if qids.is_empty() => return Err(errno),
                        Err(_) => break,
                    }
                    qids.push(world.qid(id));
                }
                if qids.len() == names.as_slice().len() {
                    self.fids.insert(new_fid, (id, false));
                }
                Ok(Reply::Walk { qids: Qids::collect(qids) })
            }
            Request::Clunk { fid } => {
                self.fids.remove(&fid).ok_or(Errno::EBADF)?;
                Ok(Reply::Clunk {})
            }
            Request::Getattr { fid, .. } => {
                Ok(Reply::Getattr { attributes: world.attributes(self.fid(fid)?) })
            }
            Request::Setattr { fid, set } => {
                let id = self.fid(fid)?;
                match &mut world.nodes.get_mut(&id).ok_or(Errno::ENOENT)?.kind {
                    Kind::File(data) => data.resize(set.size as usize, 0),
                    Kind::Symlink(_) => panic!("set attributes of a symbolic link"),
                    Kind::Directory(_) => {}
                }
                Ok(Reply::Setattr {})
            }
            Request::Statfs { fid } => {
                self.fid(fid)?;
                Ok(Reply::Statfs { statfs: StatFs { name_max: 255, ..StatFs::default() } })
            }
            Request::Lopen { fid, flags } => {
                let id = self.fid(fid)?;
                match &mut world.nodes.get_mut(&id).ok_or(Errno::ENOENT)?.kind {
                    Kind::Symlink(_) => return Err(Errno::ELOOP),
                    Kind::Directory(_) if flags.writes() => return Err(Errno::EISDIR),
                    Kind::File(_) if flags.contains(OpenFlags::DIRECTORY) => {
                        return Err(Errno::ENOTDIR);
                    }
                    Kind::File(data) if flags.contains(OpenFlags::TRUNCATE) => data.clear(),
                    _ => {}
                }
                self.fids.insert(fid, (id, true));
                Ok(Reply::Lopen { qid: world.qid(id), iounit: 0 })
            }
            Request::Lcreate { fid, name, flags, .. } => {
                let dir = self.fid(fid)?;
                let id = match world.child(dir, name) {
                    Some(_) if flags.contains(OpenFlags::EXCLUSIVE) => return Err(Errno::EEXIST),
                    Some(id) => id,
                    None => world.add(dir, name, Kind::File(Vec::new())),
                };
                self.fids.insert(fid, (id, true));
                Ok(Reply::Lcreate { qid: world.qid(id), iounit: 0 })
            }
            Request::Mkdir { dir, name, .. } => {
                let dir = self.fid(dir)?;
                if world.child(dir, name).is_some() {
                    return Err(Errno::EEXIST);
                }
                let id = world.add(dir, name, Kind::Directory(BTreeMap::new()));
                Ok(Reply::Mkdir { qid: world.qid(id) })
            }
            Request::Symlink { dir, name, target, .. } => {
                let dir = self.fid(dir)?;
                let id = world.add(dir, name, Kind::Symlink(target.to_vec()));
                Ok(Reply::Symlink { qid: world.qid(id) })
            }
            Request::Link { dir, fid, name } => {
                let (dir, id) = (self.fid(dir)?, self.fid(fid)?);
                if let Some(Node { kind: Kind::Directory(entries), .. }) = world.nodes.get_mut(&dir)
                {
                    entries.insert(name.to_vec(), id);
                }
                Ok(Reply::Link {})
            }
            Request::Unlinkat { dir, name, .. } => {
                let dir = self.fid(dir)?;
                match &mut world.nodes.get_mut(&dir).ok_or(Errno::ENOENT)?.kind {
                    Kind::Directory(entries) => entries.remove(name).ok_or(Errno::ENOENT)?,
                    _ => return Err(Errno::ENOTDIR),
                };
                Ok(Reply::Unlinkat {})
            }
            Request::Renameat { old_dir, old_name, new_dir, new_name } => {
                let (old_dir, new_dir) = (self.fid(old_dir)?, self.fid(new_dir)?);
                let id = world.child(old_dir, old_name).ok_or(Errno::ENOENT)?;
                for (dir, name, entry) in [(old_dir, old_name, None), (new_dir, new_name, Some(id))]
                {
                    let Some(Node { kind: Kind::Directory(entries), .. }) =
                        world.nodes.get_mut(&dir)
                    else {
                        return Err(Errno::ENOTDIR);
                    };
                    match entry {
                        Some(id) => entries.insert(name.to_vec(), id),
                        None => entries.remove(name),
                    };
                }
                Ok(Reply::Renameat {})
            }
            Request::Readlink { fid } => match &world.nodes[&self.fid(fid)?].kind {
                Kind::Symlink(target) => {
                    held.extend_from_slice(target);
                    Ok(Reply::Readlink { target: held })
                }
                _ => Err(Errno::EINVAL),
            },
            Request::Read { fid, offset, count } => match &world.nodes[&self.fid(fid)?].kind {
                Kind::File(data) => {
                    let rest = data.get(offset as usize..).unwrap_or(&[]);
                    held.extend_from_slice(&rest[..rest.len().min(count as usize)]);
                    Ok(Reply::Read { data: Data(held) })
                }
                _ => Err(Errno::EISDIR),
            },
            Request::Write { fid, offset, data: Data(new) } => {
                let id = self.fid(fid)?;
                match &mut world.nodes.get_mut(&id).ok_or(Errno::ENOENT)?.kind {
                    Kind::File(data) => {
                        let end = offset as usize + new.len();
                        if data.len() < end {
                            data.resize(end, 0);
                        }
                        data[offset as usize..end].copy_from_slice(new);
                        Ok(Reply::Write { count: new.len() as u32 })
                    }
                    _ => Err(Errno::EISDIR),
                }
            }
            Request::Readdir { fid, offset, count } => {
                let id = self.fid(fid)?;
                let Kind::Directory(entries) = &world.nodes[&id].kind else {
                    return Err(Errno::ENOTDIR);
                };
                for (index, (name, id)) in entries.iter().enumerate().skip(offset as usize) {
                    let entry =
                        DirEntry { qid: world.qid(*id), offset: index as u64 + 1, kind: 0, name };
                    if held.len() + entry.encoded_len() > count as usize {
                        break;
                    }
                    entry.put(held);
                }
                Ok(Reply::Readdir { data: Data(held) })
            }
            Request::Fsync { fid, .. } => self.fid(fid).map(|_| Reply::Fsync {}),
            Request::Lock { fid, kind, .. } => {
                self.fid(fid)?;
                if kind != LockKind::UNLOCK && world.faults.lock_held > 0 {
                    world.faults.lock_held -= 1;
                    return Ok(Reply::Lock { status: LockStatus::BLOCKED });
                }
                Ok(Reply::Lock { status: LockStatus::SUCCESS })
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }
}
