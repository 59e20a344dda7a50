//! A flat directory of files in memory, served to test remote files: it executes reads and writes
//! that are outstanding together in any order, runs out of space, and hangs up.
#![allow(dead_code, unreachable_pub)]

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use client::{At, Dial, Error, Link, Opened, Options, RemoteFile, Session};
use p9::frame::{HEADER_LEN, Header};
use p9::{
    Attributes, Data, Errno, Fid, GetattrMask, OpenFlags, Qid, QidType, Qids, Reply, Request,
    SetattrMask, StatFs, Tag, Time, mode,
};

/// How the service misbehaves.
#[derive(Clone, Default)]
pub struct Faults {
    /// Executes reads and writes that arrive together in an order made from this seed.
    pub shuffle: Option<u64>,
    /// Waits before it executes, so that more requests arrive together.
    pub linger: Duration,
    /// Bytes that all files together may have; beyond: `ENOSPC`, after what fits.
    pub space: Option<usize>,
    /// Writes that fail with this number.
    pub refuse_writes: Option<Errno>,
    /// Reads and writes until the connection ends, and whether the last is executed.
    pub cut_in: Option<(usize, bool)>,
    /// As `cut_in`, and again after as many.
    pub cut_every: Option<usize>,
    /// The most that a read brings.
    pub read_max: Option<usize>,
    /// Nothing is answered before so many reads were taken in.
    pub hold_until_reads: usize,
    /// Nobody answers any more.
    pub gone: bool,
}

#[derive(Default)]
pub struct World {
    names: BTreeMap<Vec<u8>, u64>,
    pub files: HashMap<u64, Vec<u8>>,
    changes: HashMap<u64, u64>,
    pub faults: Faults,
    /// Names of the requests executed.
    pub log: Vec<&'static str>,
    /// Ranges of the reads and writes executed.
    pub ranges: Vec<(&'static str, u64, usize)>,
    pub keeps_log: bool,
    /// Attributes say 0 instead of the size.
    pub hides_sizes: bool,
    since_cut: usize,
}

/// The service, and the way to it.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<World>>);

const ROOT: u64 = u64::MAX;

impl Memory {
    pub fn new() -> Self {
        let memory = Self::default();
        memory.world().keeps_log = true;
        memory
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("the service does not panic")
    }

    pub fn put(&self, name: &str, data: &[u8]) {
        let mut world = self.world();
        let id = world.create(name.as_bytes());
        world.files.insert(id, data.to_vec());
        world.touch(id);
    }

    pub fn content(&self, name: &str) -> Vec<u8> {
        let world = self.world();
        world.files[&world.names[name.as_bytes()]].clone()
    }

    pub fn set(&self, set: impl FnOnce(&mut Faults)) {
        set(&mut self.world().faults);
    }

    /// How many requests of this name were executed.
    pub fn count(&self, name: &str) -> usize {
        self.world().log.iter().filter(|entry| **entry == name).count()
    }

    pub fn forget_log(&self) {
        let mut world = self.world();
        world.log.clear();
        world.ranges.clear();
    }

    pub fn session(&self, change: impl FnOnce(&mut Options)) -> Arc<Session> {
        let mut options = Options {
            reconnect_for: Duration::from_secs(2),
            request_timeout: Duration::from_secs(20),
            ..Options::default()
        };
        change(&mut options);
        Session::new(Box::new(self.clone()), options)
    }
}

pub fn open(session: &Arc<Session>, name: &str, flags: OpenFlags) -> RemoteFile {
    RemoteFile::new(opened(session, name, flags))
}

pub fn opened(session: &Arc<Session>, name: &str, flags: OpenFlags) -> Opened {
    match session.open(At::root(name.as_bytes()), flags, 0o644) {
        Ok(opened) => opened,
        Err(error) => panic!("{name}: {error}"),
    }
}

impl Dial for Memory {
    fn dial(&self, request_timeout: Duration) -> client::Result<Link> {
        if self.world().faults.gone {
            return Err(Error::Unreachable { peer: self.peer(), errno: Errno::ECONNREFUSED });
        }
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        ours.set_read_timeout(Some(request_timeout)).expect("a timeout");
        for socket in [&ours, &theirs] {
            let _ = rustix::net::sockopt::set_socket_send_buffer_size(socket, 4 << 20);
        }
        let memory = self.clone();
        std::thread::spawn(move || Serving { memory, fids: HashMap::new() }.run(theirs));
        Ok(Link::Stream(OwnedFd::from(ours)))
    }

    fn peer(&self) -> String {
        "memory".to_owned()
    }
}

impl World {
    fn create(&mut self, name: &[u8]) -> u64 {
        let next = self.names.len() as u64 + 1;
        let id = *self.names.entry(name.to_vec()).or_insert(next);
        self.files.entry(id).or_default();
        id
    }

    fn touch(&mut self, id: u64) {
        *self.changes.entry(id).or_default() += 1;
    }

    fn qid(&self, id: u64) -> Qid {
        let kind = if id == ROOT { QidType::DIR } else { QidType::empty() };
        Qid { kind, version: 0, path: id }
    }

    fn attributes(&self, id: u64) -> Attributes {
        let change = self.changes.get(&id).copied().unwrap_or(0);
        let time = Time { seconds: change, nanoseconds: 0 };
        let size = self.files.get(&id).map_or(0, Vec::len) as u64;
        Attributes {
            valid: GetattrMask::BASIC,
            qid: self.qid(id),
            mode: if id == ROOT { mode::DIRECTORY | 0o755 } else { mode::REGULAR | 0o644 },
            uid: 0,
            gid: 0,
            nlink: 1,
            rdev: 0,
            size: if self.hides_sizes { 0 } else { size },
            block_size: 4096,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            btime: Time::default(),
            generation: 0,
            data_version: 0,
        }
    }

    fn write(&mut self, id: u64, offset: usize, data: &[u8]) -> Result<u32, Errno> {
        if let Some(errno) = self.faults.refuse_writes {
            return Err(errno);
        }
        let held: usize = self.files.values().map(Vec::len).sum();
        let len = self.files[&id].len();
        let mut data = data;
        if let Some(space) = self.faults.space {
            let room = (len + space.saturating_sub(held)).saturating_sub(offset);
            if room == 0 {
                return Err(Errno::ENOSPC);
            }
            data = &data[..data.len().min(room)];
        }
        self.touch(id);
        let Some(file) = self.files.get_mut(&id) else { return Err(Errno::EBADF) };
        if file.len() < offset {
            file.resize(offset, 0);
        }
        let over = data.len().min(file.len() - offset);
        file[offset..offset + over].copy_from_slice(&data[..over]);
        file.extend_from_slice(&data[over..]);
        Ok(data.len() as u32)
    }
}

/// One connection.
struct Serving {
    memory: Memory,
    fids: HashMap<Fid, (u64, OpenFlags)>,
}

struct Over;

impl Serving {
    fn run(mut self, mut socket: UnixStream) {
        // Replies wait by themselves: how many requests are taken in does not depend on who receives when.
        let (replies, to_send) = channel::<Vec<u8>>();
        let mut sending = socket.try_clone().expect("another descriptor");
        let memory = self.memory.clone();
        std::thread::spawn(move || {
            to_send.iter().try_for_each(|reply| {
                while memory.count("Read") < memory.world().faults.hold_until_reads {
                    std::thread::sleep(Duration::from_millis(1));
                }
                sending.write_all(&reply)
            })
        });
        let mut buffer = vec![0; 9 << 20];
        let mut filled = 0;
        loop {
            let linger = self.memory.world().faults.linger;
            if !linger.is_zero() {
                std::thread::sleep(linger);
            }
            match socket.read(&mut buffer[filled..]) {
                Ok(0) | Err(_) => return,
                Ok(count) => filled += count,
            }
            let mut frames = Vec::new();
            let mut at = 0;
            while let Some(header) = buffer[at..filled].first_chunk::<HEADER_LEN>() {
                let header = Header::parse(header, u32::MAX).expect("a frame");
                let end = at + header.size as usize;
                if end > filled {
                    break;
                }
                let body = &buffer[at + HEADER_LEN..end];
                let request = Request::decode(header.kind, body).expect("a request");
                frames.push((header.tag, request));
                at = end;
            }
            if self.execute_all(frames, &replies).is_err() {
                return;
            }
            buffer.copy_within(at..filled, 0);
            filled -= at;
        }
    }

    fn execute_all(
        &mut self,
        mut frames: Vec<(Tag, Request<'_>)>,
        replies: &Sender<Vec<u8>>,
    ) -> Result<(), Over> {
        let transfers = |(_, request): &(Tag, Request<'_>)| {
            matches!(request, Request::Read { .. } | Request::Write { .. })
        };
        let seed = self.memory.world().faults.shuffle;
        if let Some(mut seed) = seed {
            for group in frames.chunk_by_mut(|a, b| transfers(a) && transfers(b)) {
                self.refuse_overlaps(group);
                for i in (1..group.len()).rev() {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    group.swap(i, (seed >> 33) as usize % (i + 1));
                }
            }
            self.memory.set(|faults| faults.shuffle = Some(seed));
        }
        for frame in &frames {
            let goes_on = if transfers(frame) { self.cut()? } else { true };
            let reply = self.execute(frame.0, &frame.1);
            if !goes_on {
                return Err(Over);
            }
            replies.send(reply).map_err(|_| Over)?;
        }
        Ok(())
    }

    /// Counts down to the end of the connection. `Err`: now; `false`: when this request is executed,
    /// without a reply.
    fn cut(&mut self) -> Result<bool, Over> {
        let mut world = self.memory.world();
        world.since_cut += 1;
        let since = world.since_cut;
        let cut = match (world.faults.cut_in, world.faults.cut_every) {
            (Some((after, executes)), _) if since >= after => Some(executes),
            (_, Some(every)) if since >= every => Some(every % 2 == 0),
            _ => None,
        };
        let Some(executes) = cut else { return Ok(true) };
        world.faults.cut_in = None;
        world.since_cut = 0;
        if executes { Ok(false) } else { Err(Over) }
    }

    /// The client promised never to have two overlapping writes outstanding.
    fn refuse_overlaps(&self, group: &[(Tag, Request<'_>)]) {
        let written = |request: &Request<'_>| match request {
            Request::Write { fid, offset, data } => {
                Some((self.fids[fid], *offset, *offset + data.0.len() as u64))
            }
            _ => None,
        };
        let writes: Vec<_> = group.iter().filter_map(|(_, request)| written(request)).collect();
        for (i, a) in writes.iter().enumerate() {
            for b in &writes[..i] {
                let apart = a.0.0 != b.0.0 || a.1 >= b.2 || b.1 >= a.2;
                assert!(apart || a.0.1.contains(OpenFlags::APPEND), "{a:?} overlaps {b:?}");
            }
        }
    }

    fn execute(&mut self, tag: Tag, request: &Request<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        let memory = self.memory.clone();
        let mut world = memory.world();
        if world.keeps_log {
            world.log.push(request.name());
            match *request {
                Request::Read { offset, count, .. } => {
                    world.ranges.push(("Read", offset, count as usize));
                }
                Request::Write { offset, data, .. } => {
                    world.ranges.push(("Write", offset, data.0.len()));
                }
                _ => {}
            }
        }
        match self.answer(&mut world, request) {
            Ok(reply) => {
                let tail = reply.encode_head(tag, &mut out);
                out.extend_from_slice(tail);
            }
            Err(errno) => Reply::Lerror { errno }.encode(tag, &mut out),
        }
        out
    }

    fn answer<'w>(
        &mut self,
        world: &'w mut World,
        request: &Request<'_>,
    ) -> Result<Reply<'w>, Errno> {
        let fid = |fid: &Fid| self.fids.get(fid).copied().ok_or(Errno::EBADF);
        match request {
            Request::Version { msize, .. } => {
                self.fids.clear();
                Ok(Reply::Version { msize: *msize, version: b"9P2000.L" })
            }
            Request::Attach { fid, .. } => {
                self.fids.insert(*fid, (ROOT, OpenFlags::empty()));
                Ok(Reply::Attach { qid: world.qid(ROOT) })
            }
            Request::Walk { fid: from, new_fid, names } => {
                let mut id = fid(from)?.0;
                let mut qids = Vec::new();
                for name in names.as_slice() {
                    id = *world.names.get(*name).ok_or(Errno::ENOENT)?;
                    qids.push(world.qid(id));
                }
                self.fids.insert(*new_fid, (id, OpenFlags::empty()));
                Ok(Reply::Walk { qids: Qids::collect(qids) })
            }
            Request::Lopen { fid: opened, flags } => {
                let id = fid(opened)?.0;
                if flags.contains(OpenFlags::TRUNCATE) {
                    world.files.insert(id, Vec::new());
                    world.touch(id);
                }
                self.fids.insert(*opened, (id, *flags));
                Ok(Reply::Lopen { qid: world.qid(id), iounit: 0 })
            }
            Request::Lcreate { fid, name, flags, .. } => {
                let id = world.create(name);
                self.fids.insert(*fid, (id, *flags));
                Ok(Reply::Lcreate { qid: world.qid(id), iounit: 0 })
            }
            Request::Getattr { fid: of, .. } => {
                Ok(Reply::Getattr { attributes: world.attributes(fid(of)?.0) })
            }
            Request::Setattr { fid: of, set } => {
                let id = fid(of)?.0;
                if set.valid.contains(SetattrMask::SIZE) {
                    world.touch(id);
                    world.files.entry(id).or_default().resize(set.size as usize, 0);
                }
                Ok(Reply::Setattr {})
            }
            Request::Read { fid: of, offset, count } => {
                let id = fid(of)?.0;
                let count = (*count as usize).min(world.faults.read_max.unwrap_or(usize::MAX));
                let data = world.files.get(&id).map_or(&[][..], Vec::as_slice);
                let rest = data.get(*offset as usize..).unwrap_or(&[]);
                Ok(Reply::Read { data: Data(&rest[..rest.len().min(count)]) })
            }
            Request::Write { fid: of, offset, data } => {
                let (id, flags) = fid(of)?;
                let end = world.files[&id].len();
                let appends = flags.contains(OpenFlags::APPEND);
                let offset = if appends { end } else { *offset as usize };
                world.write(id, offset, data.0).map(|count| Reply::Write { count })
            }
            Request::Statfs { .. } => {
                let held: usize = world.files.values().map(Vec::len).sum();
                let free = world.faults.space.map_or(1 << 40, |space| space.saturating_sub(held));
                let blocks_available = (free / 4096) as u64;
                let statfs = StatFs {
                    block_size: 4096,
                    blocks: 1 << 30,
                    blocks_available,
                    ..StatFs::default()
                };
                Ok(Reply::Statfs { statfs })
            }
            Request::Fsync { .. } => Ok(Reply::Fsync {}),
            Request::Clunk { fid } => match self.fids.remove(fid) {
                Some(_) => Ok(Reply::Clunk {}),
                None => Err(Errno::EBADF),
            },
            _ => Err(Errno::EOPNOTSUPP),
        }
    }
}
