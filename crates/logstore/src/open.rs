//! Opened files and directories of the overlay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use p9::{Attributes, DirEntry, Errno, OpenFlags, Qid, QidType, SetAttributes, SetattrMask};
use store::{OpenNode, OpeningLocks, Result};

use crate::error::{Tried, refusal};
use crate::files::told;
use crate::inode::{Body, Inode};
use crate::names::{Entry, FIRST_COOKIE, Found, Listed};
use crate::node::set_attributes;
use crate::stream::Stream;
use crate::tree::{RACES_MAX, Tree, guard};

/// Entries that a listing copies at a time, so as not to lock the directory while it gives them.
const ENTRIES_AT_A_TIME: usize = 128;

pub(crate) struct LogOpen {
    entry: Arc<Entry>,
    flags: OpenFlags,
    locks: OpeningLocks,
    /// Whether it counts among the openings for writing.
    is_writing: AtomicBool,
    /// The last field: what ends with the stream comes behind what ends with the opening.
    stream: Arc<Stream>,
}

impl LogOpen {
    pub(crate) fn new(stream: &Arc<Stream>, entry: &Arc<Entry>, flags: OpenFlags) -> Self {
        let inode = &entry.inode;
        let locks = OpeningLocks::new(&inode.locks, flags);
        inode.openings.fetch_add(1, Ordering::AcqRel);
        let is_writing = flags.writes() || flags.contains(OpenFlags::TRUNCATE);
        if is_writing {
            guard(&inode.sharing).begin_writing(stream.number);
        }
        let is_writing = AtomicBool::new(is_writing);
        Self { entry: Arc::clone(entry), flags, locks, is_writing, stream: Arc::clone(stream) }
    }

    /// Whether the end of the opening is a consistency point; only the first time.
    fn end_writing(&self) -> bool {
        self.is_writing.swap(false, Ordering::AcqRel)
            && guard(&self.inode().sharing).end_writing(self.stream.number)
    }

    fn inode(&self) -> &Arc<Inode> {
        &self.entry.inode
    }

    fn tree(&self) -> &Tree {
        &self.stream.tree
    }

    /// Offers `.` or `..`.
    fn give_dots(&self, cookie: u64, take: &mut dyn FnMut(DirEntry<'_>) -> bool) -> bool {
        let own = Arc::clone(self.inode());
        let up = self.entry.place().map_or_else(|| Arc::clone(&own), |place| place.dir);
        let dots = [(1, &b"."[..], own.number()), (2, b"..", up.number())];
        dots.iter().filter(|(offset, ..)| *offset > cookie).all(|(offset, name, path)| {
            let qid = Qid { kind: QidType::DIR, version: 0, path: *path };
            take(DirEntry::of(qid, *offset, name))
        })
    }

    fn write(&self, data: &[u8], offset: u64) -> Tried<usize> {
        let offset = (!self.flags.contains(OpenFlags::APPEND)).then_some(offset);
        self.tree().write(self.stream.number, self.inode(), data, offset)
    }
}

impl Drop for LogOpen {
    fn drop(&mut self) {
        let inode = &self.entry.inode;
        if inode.openings.fetch_sub(1, Ordering::AcqRel) == 1 {
            inode.close_reader();
            self.stream.tree.pass_on(inode);
        }
        // Nobody is there to be told of a failure; from then on every commit tells of it.
        let _ = self.close();
    }
}

impl OpenNode for LogOpen {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if self.inode().is_directory() {
            return Err(refusal("read", Errno::EISDIR));
        }
        if !self.flags.reads() {
            return Err(refusal("read", Errno::EBADF));
        }
        self.tree().read(self.inode(), buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        if !self.flags.writes() || self.inode().is_directory() {
            return Err(refusal("write", Errno::EBADF));
        }
        if offset > i64::MAX as u64 && !self.flags.contains(OpenFlags::APPEND) {
            return Err(refusal("write", Errno::EINVAL));
        }
        let mut done = 0;
        while done < data.len() {
            let at = offset.saturating_add(done as u64);
            match self.tree().patiently("write", || self.write(&data[done..], at)) {
                Ok(0) => break,
                Ok(len) => done += len,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
            if at + 1 > i64::MAX as u64 {
                break;
            }
        }
        if self.flags.intersects(OpenFlags::DSYNC | OpenFlags::SYNC) && done > 0 {
            self.sync(true)?;
        }
        Ok(done)
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let inode = self.inode();
        let names = inode.names("getdents64")?;
        if guard(names).is_removed {
            return Err(refusal("getdents64", Errno::ENOENT));
        }
        if !self.give_dots(cookie, take) {
            return Ok(());
        }
        if cookie < FIRST_COOKIE {
            self.tree().refresh(inode)?;
        }
        let mut cookie = cookie.max(FIRST_COOKIE - 1);
        loop {
            let some = guard(names).behind(cookie, ENTRIES_AT_A_TIME);
            if some.is_empty() {
                return Ok(());
            }
            for (offset, name, found) in some {
                let (number, kind, entry_type) = match found {
                    Found::Entry(entry) => {
                        let kind = entry.inode.kind();
                        (entry.inode.number(), kind, kind.entry_type())
                    }
                    Found::Target(listed) => {
                        (self.tree().number_of(listed.number), listed.kind, listed.entry_type)
                    }
                };
                let qid = Qid { kind, version: 0, path: number };
                if !take(DirEntry { qid, offset, kind: entry_type, name: &name }) {
                    return Ok(());
                }
                cookie = offset;
            }
        }
    }

    fn attributes(&self) -> Result<Attributes> {
        self.inode().attributes()
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        if set.valid.contains(SetattrMask::SIZE) && !self.flags.writes() {
            return Err(refusal("ftruncate", Errno::EINVAL));
        }
        set_attributes(&self.stream, self.inode(), set)
    }

    /// In a file of a group it makes durable and commits nothing: that is up to all ranks.
    fn sync(&self, _data_only: bool) -> Result<()> {
        let (tree, inode) = (self.tree(), self.inode());
        let synced = match &inode.body {
            Body::File(_) if guard(&inode.sharing).is_by_groups() => tree.log.sync(),
            Body::File(_) => tree.commit(self.stream.number, inode),
            Body::Directory(_) | Body::Symlink(_) => tree.commit_names(),
        };
        synced.map_err(|error| told("fsync", error))
    }

    fn close(&self) -> Result<()> {
        if !self.end_writing() {
            return Ok(());
        }
        let committed = self.tree().commit_if_plain(self.stream.number, self.inode());
        committed.map_err(|error| told("close", error))
    }

    /// What was written since the last consistency point counts no more than if the log had been lost with
    /// the program, unless somebody makes one who still has the file open.
    fn lost(&self) {
        // When it is the service that ends, nobody is lost.
        if !self.tree().is_ending.load(Ordering::Acquire) {
            let _ = self.end_writing();
        }
    }

    fn locks(&self) -> Option<&OpeningLocks> {
        Some(&self.locks)
    }
}

impl Tree {
    /// Asks the target for the names of a directory.
    pub(crate) fn refresh(&self, dir: &Arc<Inode>) -> Result<()> {
        let names = dir.names("getdents64")?;
        for _ in 0..RACES_MAX {
            let before = guard(names).given_back;
            let listed = match dir.base_node("getdents64")? {
                Some(base) => list(&base)?,
                None => Vec::new(),
            };
            let mut names = guard(names);
            if names.given_back == before {
                names.refresh(listed);
                return Ok(());
            }
        }
        Err(refusal("getdents64", Errno::EAGAIN))
    }
}

/// What a directory of the target lists, but for `.` and `..`.
pub(crate) fn list(base: &Arc<dyn store::Node>) -> Result<Vec<(Vec<u8>, Listed)>> {
    let mut listed = Vec::new();
    let open = base.open(OpenFlags::DIRECTORY)?;
    open.read_directory(0, &mut |entry| {
        if entry.name != b"." && entry.name != b".." {
            let (number, kind) = (entry.qid.path, entry.qid.kind);
            listed.push((entry.name.to_vec(), Listed { number, kind, entry_type: entry.kind }));
        }
        true
    })?;
    Ok(listed)
}
