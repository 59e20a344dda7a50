//! What the kernel asks, and the store's answers.
//!
//! Methods here only take requests apart and put replies together; what is done stands in the
//! modules below.

mod attributes;
mod data;
mod handles;
mod locks;
mod names;
mod nodes;
mod signals;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, Notifier, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLock, ReplyOpen, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use p9::{Errno, LockKind, SetAttributes, SetattrMask};
use store::{LockRange, Node, OpenNode};

use crate::mounted::Options;
use data::Sized as SizedValue;
use handles::{Handles, OpenFile};
use locks::{Asker, Locks};
use names::Entry;
use nodes::Nodes;

/// How long the kernel may answer for a file without asking, as everywhere in Sluice
/// (docs/SEMANTICS.md, "Who sees what was written, and when").
const ATTRIBUTES_TTL: Duration = Duration::from_secs(1);

/// The most that one read or write carries, in bytes: what fits one message of the client, and what
/// the kernel allows without privilege (`FUSE_DEFAULT_MAX_PAGES_LIMIT` in `fs/fuse/fuse_i.h`).
const REQUEST_BYTES_MAX: u32 = 1024 * 1024;

/// Requests that programs do not wait for, such as reading ahead, at a time.
const BACKGROUND_MAX: u16 = 64;

/// The end of a lock that reaches past the end of the file: `OFFSET_MAX` of the kernel.
const LAST_BYTE: u64 = i64::MAX as u64;

/// A store as a file system.
pub(crate) struct Front {
    nodes: Arc<Nodes>,
    files: Handles<OpenFile>,
    /// Open directories with their numbers.
    directories: Handles<(u64, Arc<dyn OpenNode>)>,
    locks: Locks,
    options: Options,
    /// To tell the kernel something that it did not ask for.
    notifier: Arc<OnceLock<Notifier>>,
}

/// On whose behalf the kernel asks.
#[derive(Debug, Clone, Copy)]
struct Asking {
    uid: u32,
    gid: u32,
}

impl From<&Request> for Asking {
    fn from(request: &Request) -> Self {
        Self { uid: request.uid(), gid: request.gid() }
    }
}

fn errno(error: store::Error) -> Errno {
    error.to_errno()
}

fn fuse(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw())
}

impl Front {
    pub(crate) fn new(
        root: Arc<dyn Node>,
        options: Options,
        notifier: Arc<OnceLock<Notifier>>,
    ) -> io::Result<Self> {
        let nodes = Arc::new(Nodes::new(root, options.nodes_max));
        let locks = Locks::new(client_name(), Arc::clone(&notifier))?;
        let (files, directories) = (Handles::default(), Handles::default());
        Ok(Self { nodes, files, directories, locks, options, notifier })
    }
}

/// What this mount is called where locks are held: unlike any other, also of other machines.
fn client_name() -> String {
    let host = rustix::system::uname();
    let process = std::process::id();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("mount-{}-{process}-{:x}", host.nodename().to_string_lossy(), since.as_nanos())
}

fn entry(reply: ReplyEntry, outcome: Result<Entry, Errno>) {
    match outcome {
        Ok(Entry { attr, name_ttl }) => {
            reply.entry_with_ttls(&ATTRIBUTES_TTL, &name_ttl, &attr, Generation(0));
        }
        Err(errno) => reply.error(fuse(errno)),
    }
}

fn empty(reply: ReplyEmpty, outcome: Result<(), Errno>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(fuse(errno)),
    }
}

fn attr(reply: ReplyAttr, outcome: Result<fuser::FileAttr, Errno>) {
    match outcome {
        Ok(attr) => reply.attr(&ATTRIBUTES_TTL, &attr),
        Err(errno) => reply.error(fuse(errno)),
    }
}

fn xattr(reply: ReplyXattr, outcome: Result<SizedValue, Errno>) {
    match outcome {
        Ok(SizedValue::Length(len)) => reply.size(len),
        Ok(SizedValue::Value(value)) => reply.data(&value),
        Err(errno) => reply.error(fuse(errno)),
    }
}

/// A lock as the kernel has it: both ends included, `F_*LCK` of fcntl(2).
fn range(kind: i32, first: u64, last: u64) -> Result<LockRange, Errno> {
    let kind = match kind {
        0 => LockKind::READ,
        1 => LockKind::WRITE,
        2 => LockKind::UNLOCK,
        _ => return Err(Errno::EINVAL),
    };
    if last < first {
        return Err(Errno::EINVAL);
    }
    let length = if last >= LAST_BYTE { 0 } else { last - first + 1 };
    Ok(LockRange { kind, start: first, length })
}

impl Filesystem for Front {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = InitFlags::FUSE_ATOMIC_O_TRUNC
            | InitFlags::FUSE_AUTO_INVAL_DATA
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP
            | InitFlags::FUSE_FLOCK_LOCKS
            | InitFlags::FUSE_HANDLE_KILLPRIV_V2
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_POSIX_LOCKS;
        for flag in wanted.iter() {
            // Older kernels have fewer.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        // The kernel names the most that it would read ahead; fuser takes that.
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, self.look_up(parent.0, name.as_bytes()));
    }

    fn forget(&self, _: &Request, number: INodeNo, count: u64) {
        self.nodes.forget(number.0, count);
    }

    fn getattr(&self, _: &Request, number: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        attr(reply, self.attributes(number.0, fh.map(|fh| fh.0)));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut set = SetAttributes::default();
        if let Some(mode) = mode {
            set.valid |= SetattrMask::MODE;
            set.mode = mode & p9::mode::PERMISSIONS;
        }
        if let Some(uid) = uid {
            set.valid |= SetattrMask::UID;
            set.uid = uid;
        }
        if let Some(gid) = gid {
            set.valid |= SetattrMask::GID;
            set.gid = gid;
        }
        if let Some(size) = size {
            set.valid |= SetattrMask::SIZE;
            set.size = size;
        }
        if let Some(atime) = atime {
            let given = SetattrMask::ATIME_SET;
            let (bits, moment) = attributes::set_time(atime, SetattrMask::ATIME, given);
            set.valid |= bits;
            set.atime = moment;
        }
        if let Some(mtime) = mtime {
            let given = SetattrMask::MTIME_SET;
            let (bits, moment) = attributes::set_time(mtime, SetattrMask::MTIME, given);
            set.valid |= bits;
            set.mtime = moment;
        }
        attr(reply, self.set_attributes(number.0, fh.map(|fh| fh.0), &set));
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let target = self.nodes.get(number.0).and_then(|node| node.read_link().map_err(errno));
        match target {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        entry(reply, self.make_node(request.into(), parent.0, name.as_bytes(), mode));
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        entry(reply, self.make_directory(request.into(), parent.0, name.as_bytes(), mode));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.remove(parent.0, name.as_bytes(), false));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.remove(parent.0, name.as_bytes(), true));
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let target = target.as_os_str().as_bytes();
        entry(reply, self.make_symlink(request.into(), parent.0, name.as_bytes(), target));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        // 9P has no word for the rest of what renameat2(2) adds; programs then do without.
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            return reply.error(fuse(Errno::EINVAL));
        }
        let (from, to) = ((parent.0, name.as_bytes()), (new_parent.0, new_name.as_bytes()));
        empty(reply, Front::rename(self, from, to, !flags.is_empty()));
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(reply, Front::link(self, number.0, parent.0, name.as_bytes()));
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match Front::open(self, number.0, attributes::open_flags(flags.0)) {
            Ok((opening, how)) => reply.opened(FileHandle(opening), how),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = attributes::open_flags(flags);
        let place = (parent.0, name.as_bytes());
        match Front::create(self, request.into(), place, flags, mode) {
            Ok((entry, opening)) => {
                // One time for name and attributes: that of the name, which is none.
                let (attr, how) = (&entry.attr, FopenFlags::empty());
                reply.created(&entry.name_ttl, attr, Generation(0), FileHandle(opening), how);
            }
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _number: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        Front::read(self, fh.0, offset, size, reply);
    }

    fn write(
        &self,
        _: &Request,
        _number: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match Front::write(self, fh.0, offset, data, write_flags) {
            Ok(len) => reply.written(len),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn flush(
        &self,
        request: &Request,
        _number: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // Every write was answered by the store, but where a file is stored as a whole this is where its program
        // can still be told. What is left are a process's locks (fcntl(2)).
        let asker = Asker { owner: lock_owner.0, process: request.pid(), thread: request.pid() };
        let released = self.opened(fh.0).and_then(|file| self.locks.release_all(&file, asker));
        let stored = self.opened(fh.0).and_then(|file| file.store_at_close());
        empty(reply, released.and(stored));
    }

    fn release(
        &self,
        _: &Request,
        _number: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if let (Some(owner), Ok(file)) = (lock_owner, self.opened(fh.0)) {
            let asker = Asker { owner: owner.0, process: 0, thread: 0 };
            // Nobody is there to be told.
            let _ = self.locks.release_all(&file, asker);
        }
        Front::release(self, fh.0);
        reply.ok();
    }

    fn fsync(
        &self,
        _: &Request,
        _number: INodeNo,
        fh: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.sync(fh.0, data_only));
    }

    fn opendir(&self, _: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.open_directory(number.0) {
            Ok(opening) => reply.opened(FileHandle(opening), FopenFlags::empty()),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _number: INodeNo,
        fh: FileHandle,
        cookie: u64,
        mut reply: ReplyDirectory,
    ) {
        match self.read_directory(fh.0, cookie, &mut reply) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _number: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.release_directory(fh.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _: &Request,
        _number: INodeNo,
        fh: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.sync_directory(fh.0, data_only));
    }

    fn statfs(&self, _: &Request, number: INodeNo, reply: ReplyStatfs) {
        match self.nodes.get(number.0).and_then(|node| node.statfs().map_err(errno)) {
            Ok(room) => reply.statfs(
                room.blocks,
                room.blocks_free,
                room.blocks_available,
                room.files,
                room.files_free,
                room.block_size,
                room.name_max,
                room.block_size,
            ),
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let node = self.nodes.get(number.0);
        let set = |node: Arc<dyn Node>| {
            node.set_xattr(name.as_bytes(), value, flags as u32).map_err(errno)
        };
        empty(reply, node.and_then(set));
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let node = self.nodes.get(number.0);
        let value = node.and_then(|node| node.xattr(name.as_bytes()).map_err(errno));
        xattr(reply, value.and_then(|value| Self::sized(value, size)));
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let node = self.nodes.get(number.0);
        let names = node.and_then(|node| node.xattr_list().map_err(errno));
        xattr(reply, names.and_then(|names| Self::sized(names, size)));
    }

    fn removexattr(&self, _: &Request, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let node = self.nodes.get(number.0);
        empty(reply, node.and_then(|node| node.remove_xattr(name.as_bytes()).map_err(errno)));
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode != 0 {
            return reply.error(fuse(Errno::EOPNOTSUPP));
        }
        empty(reply, self.allocate(number.0, fh.0, offset, length));
    }

    fn access(&self, request: &Request, number: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        empty(reply, Front::access(self, request.into(), number.0, mask.bits() as u32 & 0o7));
    }

    fn getlk(
        &self,
        request: &Request,
        _number: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        process: u32,
        reply: ReplyLock,
    ) {
        let asker = Asker { owner: lock_owner.0, process, thread: request.pid() };
        let found = range(kind, start, end)
            .and_then(|range| self.locks.in_the_way(&*self.opened(fh.0)?, asker, range));
        match found {
            Ok(None) => reply.locked(0, LAST_BYTE, 2, 0),
            Ok(Some((range, process))) => {
                let end = match range.length {
                    0 => LAST_BYTE,
                    length => range.start + length - 1,
                };
                reply.locked(range.start, end, range.kind.0.into(), process);
            }
            Err(errno) => reply.error(fuse(errno)),
        }
    }

    fn setlk(
        &self,
        request: &Request,
        _number: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        process: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        let asker = Asker { owner: lock_owner.0, process, thread: request.pid() };
        match (range(kind, start, end), self.opened(fh.0)) {
            (Ok(range), Ok(file)) => self.locks.set(&file, asker, range, waits, reply),
            (Err(errno), _) | (_, Err(errno)) => reply.error(fuse(errno)),
        }
    }
}
