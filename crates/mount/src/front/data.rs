//! What the kernel asks about open files and directories, and about attributes.

use std::cell::RefCell;
use std::sync::Arc;

use fuser::{FileAttr, FopenFlags, INodeNo, ReplyData, ReplyDirectory, WriteFlags};
use p9::{Attributes, Errno, OpenFlags, SetAttributes, SetattrMask, mode};

use super::attributes::{entry_kind, file_attr};
use super::handles::OpenFile;
use super::names::Entry;
use super::{Asking, Front, errno, fuse};

thread_local! {
    /// Where data waits for the kernel to take it.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Front {
    pub(super) fn attributes(&self, number: u64, opening: Option<u64>) -> Result<FileAttr, Errno> {
        let found = match opening.map(|opening| self.files.get(opening)) {
            Some(Ok(file)) => file.open().attributes(),
            _ => self.nodes.get(number)?.attributes(),
        };
        let found = found.map_err(errno)?;
        self.nodes.tell(number, &found);
        Ok(file_attr(number, &found))
    }

    pub(super) fn set_attributes(
        &self,
        number: u64,
        opening: Option<u64>,
        set: &SetAttributes,
    ) -> Result<FileAttr, Errno> {
        // An opening may be able to what the file's mode does not allow any more.
        let file = opening.and_then(|opening| self.files.get(opening).ok());
        if let Some(file) = file.filter(|file| file.writes()) {
            file.open().set_attributes(set).map_err(errno)?;
        } else {
            self.nodes.get(number)?.set_attributes(set).map_err(errno)?;
        }
        self.attributes(number, None)
    }

    /// Gives the opening's number and what the kernel is to know of it.
    pub(super) fn open(&self, number: u64, flags: OpenFlags) -> Result<(u64, FopenFlags), Errno> {
        let node = self.nodes.get(number)?;
        let open = node.open(flags).map_err(errno)?;
        let how = self.how(number, flags);
        Ok((self.keep(OpenFile::new(number, Arc::clone(&self.nodes), flags, open)), how))
    }

    fn keep(&self, file: OpenFile) -> u64 {
        self.nodes.opened(file.number);
        self.files.add(file)
    }

    /// A file that has no size and yet is read may be one that is made up as it is read, as those
    /// of proc(5). The kernel would not even ask for its bytes; so it is told to ask.
    fn how(&self, number: u64, flags: OpenFlags) -> FopenFlags {
        let is_empty = self.nodes.told(number).is_none_or(|told| told.size == 0);
        if is_empty && !flags.writes() { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::empty() }
    }

    pub(super) fn create(
        &self,
        asking: Asking,
        (parent, name): (u64, &[u8]),
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Entry, u64), Errno> {
        let dir = self.nodes.get(parent)?;
        let flags = flags | OpenFlags::CREATE;
        let (node, open) = dir.create(name, flags, mode & mode::PERMISSIONS).map_err(errno)?;
        self.give_node(asking, &dir, &node)?;
        let found = open.attributes().map_err(errno)?;
        let entry = self.enter(parent, name, &node, &found);
        let file = OpenFile::new(entry.attr.ino.0, Arc::clone(&self.nodes), flags, open);
        Ok((entry, self.keep(file)))
    }

    pub(super) fn read(&self, opening: u64, offset: u64, size: u32, reply: ReplyData) {
        let file = match self.files.get(opening) {
            Ok(file) => file,
            Err(errno) => return reply.error(fuse(errno)),
        };
        BUFFER.with_borrow_mut(|buffer| {
            let size = size as usize;
            if buffer.len() < size {
                buffer.resize(size, 0);
            }
            match file.open().read_at(&mut buffer[..size], offset) {
                Ok(len) => reply.data(&buffer[..len]),
                Err(error) => reply.error(fuse(error.to_errno())),
            }
        });
    }

    pub(super) fn write(
        &self,
        opening: u64,
        offset: u64,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<u32, Errno> {
        let file = self.files.get(opening)?;
        let written = if flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
            file.for_pages()?.write_at(data, offset)
        } else {
            file.open().write_at(data, offset)
        };
        let written = written.map_err(errno)?;
        if flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
            self.drop_privileges(&file)?;
        }
        Ok(u32::try_from(written).unwrap_or(u32::MAX))
    }

    /// Takes the set-user-id and set-group-id bits from a file that somebody without the right to
    /// keep them has changed (`FUSE_HANDLE_KILLPRIV_V2` in `fuse.h`). A store that acts for root
    /// would not do it by itself.
    fn drop_privileges(&self, file: &OpenFile) -> Result<(), Errno> {
        let is_privileged = |mode: u32| {
            // S_ISGID without the group's execute bit once meant mandatory locking (inode(7)).
            mode & 0o4000 != 0 || mode & 0o2010 == 0o2010
        };
        if !self.nodes.told(file.number).is_some_and(|told| is_privileged(told.mode)) {
            return Ok(());
        }
        let found = file.open().attributes().map_err(errno)?;
        if is_privileged(found.mode) {
            let kept = if found.mode & 0o010 != 0 { !0o6000 } else { !0o4000 };
            let mode = found.mode & mode::PERMISSIONS & kept;
            let valid = SetattrMask::MODE;
            let set = SetAttributes { valid, mode, ..SetAttributes::default() };
            file.open().set_attributes(&set).map_err(errno)?;
        }
        Ok(())
    }

    /// fallocate(2) without flags: the file is at least this long afterwards. The store's disk may
    /// still fill up later, which its writes then report.
    pub(super) fn allocate(
        &self,
        number: u64,
        opening: u64,
        offset: u64,
        length: u64,
    ) -> Result<(), Errno> {
        let file = self.files.get(opening)?;
        let size = offset.checked_add(length).ok_or(Errno::EFBIG)?;
        if file.open().attributes().map_err(errno)?.size < size {
            let valid = SetattrMask::SIZE;
            let set = SetAttributes { valid, size, ..SetAttributes::default() };
            file.open().set_attributes(&set).map_err(errno)?;
            let found = file.open().attributes().map_err(errno)?;
            self.nodes.tell(number, &found);
        }
        Ok(())
    }

    pub(super) fn sync(&self, opening: u64, data_only: bool) -> Result<(), Errno> {
        let file = self.files.get(opening)?;
        file.open().sync(data_only).map_err(errno)?;
        // Who syncs sees what others wrote before: the kernel asks for the attributes before its
        // next read, and drops its pages if they tell of a change.
        if let Some(notifier) = self.notifier.get() {
            let _ = notifier.inval_inode(INodeNo(file.number), -1, 0);
        }
        Ok(())
    }

    pub(super) fn release(&self, opening: u64) {
        if let Some(file) = self.files.remove(opening) {
            let number = file.number;
            drop(file);
            self.nodes.closed(number);
        }
    }

    pub(super) fn open_directory(&self, number: u64) -> Result<u64, Errno> {
        let node = self.nodes.get(number)?;
        let open = node.open(OpenFlags::DIRECTORY).map_err(errno)?;
        self.nodes.opened(number);
        Ok(self.directories.add((number, open)))
    }

    pub(super) fn read_directory(
        &self,
        opening: u64,
        cookie: u64,
        reply: &mut ReplyDirectory,
    ) -> Result<(), Errno> {
        let directory = self.directories.get(opening)?;
        let read = directory.1.read_directory(cookie, &mut |entry| {
            let number = INodeNo(self.nodes.number(entry.qid.path));
            let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(entry.name);
            let is_full = reply.add(number, entry.offset, entry_kind(entry.kind), name);
            !is_full
        });
        read.map_err(errno)
    }

    pub(super) fn sync_directory(&self, opening: u64, data_only: bool) -> Result<(), Errno> {
        self.directories.get(opening)?.1.sync(data_only).map_err(errno)
    }

    pub(super) fn release_directory(&self, opening: u64) {
        if let Some(directory) = self.directories.remove(opening) {
            let number = directory.0;
            drop(directory);
            self.nodes.closed(number);
        }
    }

    /// Whether `asking` may do what `wanted` says (access(2)), where the kernel does not judge by
    /// the mode itself. The store decides when the file is used; only of an owner's own files, and
    /// of executing, the mode tells beforehand.
    pub(super) fn access(&self, asking: Asking, number: u64, wanted: u32) -> Result<(), Errno> {
        let node = self.nodes.get(number)?;
        let found: Attributes = node.attributes().map_err(errno)?;
        let executable = found.mode & 0o111 != 0 || found.is_directory();
        let granted = match asking.uid {
            0 if executable => 0o7,
            0 => 0o6,
            uid if uid == found.uid => found.mode >> 6,
            _ if executable => 0o7,
            _ => 0o6,
        };
        if granted & wanted == wanted { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// An extended attribute's value for a caller with room for `size` bytes; 0 asks for the length.
    pub(super) fn sized(value: Vec<u8>, size: u32) -> Result<Sized, Errno> {
        let len = u32::try_from(value.len()).map_err(|_| Errno::E2BIG)?;
        match size {
            0 => Ok(Sized::Length(len)),
            size if len <= size => Ok(Sized::Value(value)),
            _ => Err(Errno::ERANGE),
        }
    }

    pub(super) fn opened(&self, opening: u64) -> Result<Arc<OpenFile>, Errno> {
        self.files.get(opening)
    }
}

/// The answer to a question for an extended attribute.
pub(super) enum Sized {
    Length(u32),
    Value(Vec<u8>),
}
