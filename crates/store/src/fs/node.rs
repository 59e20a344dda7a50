//! Nodes: files by `O_PATH` descriptors.

use std::any::Any;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError, RwLock};

use p9::{Attributes, Errno, OpenFlags, Qid, SetAttributes, SetattrMask, StatFs};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, XattrFlags};

use super::attributes::{self, Identity, file_type, qid_type};
use super::open::FsOpen;
use super::{Export, path_of, refusal, system};
use crate::error::{Error, Result};
use crate::name;
use crate::node::{Node, OpenNode, Walk};

/// How often something is tried again that a concurrent rename or removal spoils.
const RACES_MAX: usize = 16;

/// A file of the exported tree.
pub(super) struct FsNode {
    export: Arc<Export>,
    file: Identity,
    kind: FileType,
    held: RwLock<Held>,
}

/// The descriptor by which a node knows its file.
struct Held {
    fd: Arc<OwnedFd>,
    /// Whether it is the descriptor of an opening, not an `O_PATH` one. A node that was opened
    /// shares its opening's descriptor, so that a fid costs one and not two.
    opened: bool,
}

impl FsNode {
    pub(super) fn root(export: &Arc<Export>) -> Self {
        Self {
            export: Arc::clone(export),
            file: export.identity,
            kind: FileType::Directory,
            held: RwLock::new(Held { fd: Arc::clone(&export.root), opened: false }),
        }
    }

    fn new(export: &Arc<Export>, fd: OwnedFd) -> Result<(Self, Qid)> {
        let (file, found) = attributes::stat(&fd)?;
        let fd = Arc::new(export.keep(fd).map_err(system("open"))?);
        let qid = export.qid(file, &found);
        let held = RwLock::new(Held { fd, opened: false });
        Ok((Self { export: Arc::clone(export), file, kind: file_type(&found), held }, qid))
    }

    fn fd(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner).fd)
    }

    fn is_root(&self) -> bool {
        self.file == self.export.identity
    }

    fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// Another node of the same file, with a descriptor that no opening uses.
    fn second_handle(&self) -> Result<Self> {
        let (fd, opened) = {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
            (Arc::clone(&held.fd), held.opened)
        };
        let fd = if opened {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let again = rustix::fs::open(path_of(&fd), flags, Mode::empty());
            Arc::new(again.and_then(|fd| self.export.keep(fd)).map_err(system("open"))?)
        } else {
            fd
        };
        Ok(Self {
            export: Arc::clone(&self.export),
            file: self.file,
            kind: self.kind,
            held: RwLock::new(Held { fd, opened: false }),
        })
    }

    /// Goes down, or for `..` up, by one element.
    fn step(&self, element: &[u8]) -> Result<(Self, Qid)> {
        if !self.is_directory() {
            return Err(refusal("walk", Errno::ENOTDIR));
        }
        let stay = || Ok((self.second_handle()?, self.qid()));
        match element {
            b"." => stay(),
            b".." if self.is_root() => stay(),
            b".." => {
                let (up, _) = self.locate()?;
                let qid = up.qid();
                Ok((up, qid))
            }
            _ => {
                name::check("walk", element, Errno::EINVAL)?;
                self.entry(element)
            }
        }
    }

    /// The node of a checked name in this directory.
    fn entry(&self, name: &[u8]) -> Result<(Self, Qid)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd =
            rustix::fs::openat(self.fd(), name, flags, Mode::empty()).map_err(system("open"))?;
        Self::new(&self.export, fd)
    }

    /// The directory that holds this file now, and the name there.
    ///
    /// The kernel knows the path of a descriptor's file and keeps it true through renames. What it
    /// says is only a hint, since names can change before they are used: each element is walked
    /// from the root again, and the last must lead to this very file. A file that somebody moved
    /// out of the exported tree is therefore not found, and `..` cannot climb out by way of it.
    pub(super) fn locate(&self) -> Result<(Self, Vec<u8>)> {
        let lost = || refusal("walk", Errno::ENOENT);
        for _ in 0..RACES_MAX {
            let root = read_path(&self.export.root)?;
            let path = read_path(&self.fd())?;
            let below = if root == b"/" { Some(&path[..]) } else { path.strip_prefix(&root[..]) };
            let Some(below) = below.and_then(|path| path.strip_prefix(b"/")) else {
                return Err(lost());
            };
            let mut elements: Vec<&[u8]> = below.split(|byte| *byte == b'/').collect();
            let Some(name) = elements.pop().filter(|name| !name.is_empty()) else {
                return Err(lost());
            };
            let mut dir = Self::root(&self.export);
            let reached = elements.iter().try_for_each(|element| {
                dir = dir.entry(element)?.0;
                Ok::<(), Error>(())
            });
            let found = reached.and_then(|()| attributes::stat_entry(dir.fd(), name));
            if found.is_ok_and(|(file, _)| file == self.file) {
                return Ok((dir, name.to_vec()));
            }
        }
        Err(lost())
    }

    /// Shares the descriptor of an opening.
    fn adopt(&self, fd: &Arc<OwnedFd>) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if !held.opened && !self.is_root() {
            *held = Held { fd: Arc::clone(fd), opened: true };
        }
    }

    fn opened(&self, fd: Arc<OwnedFd>, flags: OpenFlags) -> Arc<FsOpen> {
        Arc::new(FsOpen::new(Arc::clone(&self.export), self.file, fd, flags))
    }

    /// Creates a file that must not exist yet.
    fn create_new(
        &self,
        dir: &OwnedFd,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> rustix::io::Result<OwnedFd> {
        let how = kernel_flags(flags) | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::from_raw_mode(mode & p9::mode::PERMISSIONS);
        self.export.keep(rustix::fs::openat(dir, name, how, mode)?)
    }
}

/// The path that the kernel knows for a descriptor's file.
fn read_path(fd: &OwnedFd) -> Result<Vec<u8>> {
    let path = rustix::fs::readlink(path_of(fd), Vec::new()).map_err(system("readlink"))?;
    Ok(path.into_bytes())
}

/// Which of a client's flags the kernel is given. The others are the walk's business, or harmful
/// to a service: `O_DIRECT` asks for alignments that no client knows of, `O_NONBLOCK` means
/// nothing for regular files.
fn kernel_flags(flags: OpenFlags) -> OFlags {
    let mut how = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
    how |= OFlags::from_bits_retain(flags.bits() & OpenFlags::ACCESS_MASK);
    how.set(OFlags::APPEND, flags.contains(OpenFlags::APPEND));
    how.set(OFlags::DSYNC, flags.contains(OpenFlags::DSYNC));
    how.set(OFlags::SYNC, flags.contains(OpenFlags::SYNC));
    how
}

/// Opens anew the file that `fd` refers to, whatever its names are by now.
pub(super) fn reopen(
    export: &Export,
    fd: &OwnedFd,
    flags: OpenFlags,
) -> rustix::io::Result<OwnedFd> {
    let mut how = kernel_flags(flags) & !OFlags::NOFOLLOW;
    how.set(OFlags::TRUNC, flags.contains(OpenFlags::TRUNCATE));
    export.keep(rustix::fs::open(path_of(fd), how, Mode::empty())?)
}

/// Refuses what must not be opened: the kernel would follow nothing here, but it would wait for
/// the other end of a FIFO, and act on devices.
fn check_open(kind: FileType, flags: OpenFlags) -> Result<()> {
    let changes = flags.writes() || flags.contains(OpenFlags::TRUNCATE);
    let errno = match kind {
        _ if flags.bits() & OpenFlags::ACCESS_MASK == OpenFlags::ACCESS_MASK => Errno::EINVAL,
        FileType::Directory if changes => Errno::EISDIR,
        FileType::Directory => return Ok(()),
        FileType::Symlink => Errno::ELOOP,
        _ if flags.contains(OpenFlags::DIRECTORY) => Errno::ENOTDIR,
        FileType::RegularFile => return Ok(()),
        _ => Errno::ENXIO,
    };
    Err(refusal("open", errno))
}

impl Node for FsNode {
    fn qid(&self) -> Qid {
        match attributes::stat(self.fd()) {
            Ok((file, found)) => self.export.qid(file, &found),
            // Only a file system that failed altogether; identity is still known.
            Err(_) => {
                Qid { kind: qid_type(self.kind), version: 0, path: self.export.qid_path(self.file) }
            }
        }
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let mut qids = Vec::with_capacity(names.len());
        let mut here = None;
        for element in names {
            match here.as_ref().unwrap_or(self).step(element) {
                Ok((node, qid)) => {
                    qids.push(qid);
                    here = Some(node);
                }
                Err(error) if qids.is_empty() => return Err(error),
                Err(_) => return Ok(Walk { qids, end: None }),
            }
        }
        let end = here.map_or_else(|| self.second_handle(), Ok)?;
        Ok(Walk { qids, end: Some(Arc::new(end)) })
    }

    fn attributes(&self) -> Result<Attributes> {
        let (file, found) = attributes::stat(self.fd())?;
        Ok(self.export.attributes(file, &found))
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        let fd = self.fd();
        if set.valid.contains(SetattrMask::SIZE) {
            match self.kind {
                FileType::RegularFile => {}
                FileType::Directory => return Err(refusal("truncate", Errno::EISDIR)),
                _ => return Err(refusal("truncate", Errno::EINVAL)),
            }
            // truncate(2) asks for the right to write, as this opening does.
            let open = reopen(&self.export, &fd, OpenFlags::WRITE_ONLY);
            open.and_then(|open| rustix::fs::ftruncate(open, set.size))
                .map_err(system("truncate"))?;
        }
        let mode = if set.valid == SetattrMask::CTIME { self.attributes()?.mode } else { 0 };
        attributes::change(&path_of(&fd), mode, set)
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        check_open(self.kind, flags)?;
        let fd = Arc::new(reopen(&self.export, &self.fd(), flags).map_err(system("open"))?);
        self.adopt(&fd);
        Ok(self.opened(fd, flags))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        name::check("open", name, Errno::EISDIR)?;
        let access = flags.bits() & OpenFlags::ACCESS_MASK;
        if access == OpenFlags::ACCESS_MASK || flags.contains(OpenFlags::DIRECTORY) {
            return Err(refusal("open", Errno::EINVAL));
        }
        let dir = self.fd();
        for _ in 0..RACES_MAX {
            match self.create_new(&dir, name, flags, mode) {
                Ok(fd) => {
                    let (file, found) = attributes::stat(&fd)?;
                    restore_mode(&dir, &fd, mode, found.stx_mode.into())?;
                    let fd = Arc::new(fd);
                    let held = RwLock::new(Held { fd: Arc::clone(&fd), opened: true });
                    let kind = FileType::RegularFile;
                    let node = Self { export: Arc::clone(&self.export), file, kind, held };
                    let open = node.opened(fd, flags);
                    return Ok((Arc::new(node), open));
                }
                Err(rustix::io::Errno::EXIST) if !flags.contains(OpenFlags::EXCLUSIVE) => {}
                Err(errno) => return Err(system("open")(errno)),
            }
            // It exists. Whether it may be opened must be known before it is: O_CREAT alone would
            // wait at a FIFO.
            match self.entry(name) {
                Ok((node, _)) => {
                    let open = node.open(flags)?;
                    return Ok((Arc::new(node), open));
                }
                Err(error) if error.to_errno() == Errno::ENOENT => {}
                Err(error) => return Err(error),
            }
        }
        Err(refusal("open", Errno::EAGAIN))
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        name::check("mkdir", name, Errno::EEXIST)?;
        let dir = self.fd();
        let wanted = Mode::from_raw_mode(mode & p9::mode::PERMISSIONS);
        rustix::fs::mkdirat(&dir, name, wanted).map_err(system("mkdir"))?;
        let (node, qid) = self.entry(name)?;
        let fd = node.fd();
        let (_, found) = attributes::stat(&fd)?;
        restore_mode(&dir, &fd, mode, found.stx_mode.into())?;
        Ok(qid)
    }

    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        name::check("symlink", name, Errno::EEXIST)?;
        let dir = self.fd();
        rustix::fs::symlinkat(target, &dir, name).map_err(system("symlink"))?;
        let (file, found) = attributes::stat_entry(&dir, name)?;
        Ok(self.export.qid(file, &found))
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        let existing = self.kin("link", existing)?;
        name::check("link", name, Errno::EEXIST)?;
        // Following is what makes the descriptor's file, not the link in /proc, get the name.
        let follow = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(CWD, path_of(&existing.fd()), self.fd(), name, follow)
            .map_err(system("link"))
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        if self.kind != FileType::Symlink {
            return Err(refusal("readlink", Errno::EINVAL));
        }
        let target =
            rustix::fs::readlinkat(self.fd(), c"", Vec::new()).map_err(system("readlink"))?;
        Ok(target.into_bytes())
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        let new_dir = self.kin("rename", new_dir)?;
        name::check("rename", old, Errno::EBUSY)?;
        name::check("rename", new, Errno::EBUSY)?;
        rustix::fs::renameat(self.fd(), old, new_dir.fd(), new).map_err(system("rename"))
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        let (dots, flags) = if directory {
            (Errno::EINVAL, AtFlags::REMOVEDIR)
        } else {
            (Errno::EISDIR, AtFlags::empty())
        };
        name::check("unlink", name, dots)?;
        rustix::fs::unlinkat(self.fd(), name, flags).map_err(system("unlink"))
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        if self.is_root() {
            return Err(refusal("parent", Errno::EBUSY));
        }
        let (dir, name) = self.locate()?;
        Ok((Arc::new(dir), name))
    }

    fn statfs(&self) -> Result<StatFs> {
        attributes::statfs(&self.fd())
    }

    fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        let path = path_of(&self.fd());
        sized("getxattr", |room| match room {
            None => rustix::fs::getxattr_query(&path, name),
            Some(buffer) => rustix::fs::getxattr(&path, name, buffer),
        })
    }

    fn xattr_list(&self) -> Result<Vec<u8>> {
        let path = path_of(&self.fd());
        sized("listxattr", |room| match room {
            None => rustix::fs::listxattr_query(&path),
            Some(buffer) => rustix::fs::listxattr(&path, buffer),
        })
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let flags = XattrFlags::from_bits_retain(flags);
        rustix::fs::setxattr(path_of(&self.fd()), name, value, flags).map_err(system("setxattr"))
    }

    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        rustix::fs::removexattr(path_of(&self.fd()), name).map_err(system("removexattr"))
    }
}

impl FsNode {
    /// The other node of an operation, when it is of this export.
    fn kin<'n>(&self, operation: &'static str, other: &'n dyn Node) -> Result<&'n Self> {
        (other as &dyn Any)
            .downcast_ref::<Self>()
            .filter(|other| Arc::ptr_eq(&self.export, &other.export))
            .ok_or(Error::AcrossStores { operation })
    }
}

/// Reads a value whose length must be asked for first, and may change in between.
fn sized(
    operation: &'static str,
    mut call: impl FnMut(Option<&mut [u8]>) -> rustix::io::Result<usize>,
) -> Result<Vec<u8>> {
    loop {
        let mut value = vec![0; call(None).map_err(system(operation))?];
        if value.is_empty() {
            return Ok(value);
        }
        match call(Some(&mut value)) {
            Ok(len) => {
                value.truncate(len);
                return Ok(value);
            }
            Err(rustix::io::Errno::RANGE) => {}
            Err(errno) => return Err(system(operation)(errno)),
        }
    }
}

/// Gives back the permission bits that this process's umask took from a new file: the client has
/// applied its own already.
///
/// The umask belongs to the whole process, and inside somebody else's program that is not ours to
/// change; so it is read, and only where bits are missing. Below a directory with a default ACL
/// they are missing for another reason, umask(2).
fn restore_mode(dir: &OwnedFd, fd: &OwnedFd, wanted: u32, mode: u32) -> Result<()> {
    let lost = wanted & !mode & 0o777;
    if lost == 0 || rustix::fs::getxattr_query(path_of(dir), c"system.posix_acl_default").is_ok() {
        return Ok(());
    }
    let taken = lost & process_umask().unwrap_or(0o777);
    if taken == 0 {
        return Ok(());
    }
    attributes::chmod(&path_of(fd), mode | taken)
}

/// The umask without changing it, which umask(2) cannot: the `Umask:` line of
/// proc_pid_status(5), since Linux 4.7.
fn process_umask() -> Option<u32> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let status = rustix::fs::open(c"/proc/thread-self/status", flags, Mode::empty()).ok()?;
    let mut text = [0; 512];
    let len = rustix::io::read(status.as_fd(), &mut text).ok()?;
    let line =
        text[..len].split(|byte| *byte == b'\n').find_map(|l| l.strip_prefix(b"Umask:\t"))?;
    u32::from_str_radix(std::str::from_utf8(line).ok()?, 8).ok()
}
