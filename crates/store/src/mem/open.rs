//! Opened files and directories of the tree.

use std::sync::Arc;

use p9::{Attributes, DirEntry, Errno, OpenFlags, Qid, SetAttributes, SetattrMask};

use super::inode::{Body, Inode};
use super::tree::{Entry, FIRST_COOKIE};
use super::{Tree, reading, refusal, writing};
use crate::error::Result;
use crate::locks::OpeningLocks;
use crate::node::OpenNode;

/// Entries that a listing copies at a time, so as not to lock the directory while it gives them.
const ENTRIES_AT_A_TIME: usize = 128;

pub(super) struct MemOpen {
    tree: Arc<Tree>,
    entry: Arc<Entry>,
    flags: OpenFlags,
    locks: OpeningLocks,
}

impl MemOpen {
    pub(super) fn new(tree: &Arc<Tree>, entry: &Arc<Entry>, flags: OpenFlags) -> Self {
        let locks = OpeningLocks::new(&entry.inode.locks, flags);
        Self { tree: Arc::clone(tree), entry: Arc::clone(entry), flags, locks }
    }

    fn inode(&self) -> &Inode {
        &self.entry.inode
    }

    /// Offers `.` or `..`.
    fn give_dots(&self, cookie: u64, take: &mut dyn FnMut(DirEntry<'_>) -> bool) -> bool {
        let up = self.entry.place().map_or_else(|| Arc::clone(&self.entry), |(dir, _)| dir);
        let dots = [(1, &b"."[..], &self.entry), (2, b"..", &up)];
        dots.iter()
            .filter(|(own, ..)| *own > cookie)
            .all(|(own, name, entry)| take(DirEntry::of(qid(&entry.inode), *own, name)))
    }
}

/// The qid of a directory entry.
fn qid(inode: &Inode) -> Qid {
    Qid { kind: inode.kind(), version: 0, path: inode.number }
}

impl OpenNode for MemOpen {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let Body::File(content) = &self.inode().body else {
            return Err(refusal("read", Errno::EISDIR));
        };
        if !self.flags.reads() {
            return Err(refusal("read", Errno::EBADF));
        }
        if offset > i64::MAX as u64 {
            return Err(refusal("read", Errno::EINVAL));
        }
        let len = reading(content).read(buffer, offset);
        self.inode().touch_access();
        Ok(len)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        let Body::File(content) = &self.inode().body else {
            return Err(refusal("write", Errno::EBADF));
        };
        if !self.flags.writes() {
            return Err(refusal("write", Errno::EBADF));
        }
        let mut content = writing(content);
        let offset = if self.flags.contains(OpenFlags::APPEND) { content.size() } else { offset };
        if offset > i64::MAX as u64 {
            return Err(refusal("write", Errno::EINVAL));
        }
        let len = content.write(data, offset).map_err(|errno| refusal("write", errno))?;
        // Under the lock, so that whoever sees the bytes sees the new version too.
        if len > 0 {
            self.inode().touch_content(self.tree.uid);
        }
        Ok(len)
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let entries = self.inode().entries("getdents64")?;
        if self.inode().nlink() == 0 {
            return Err(refusal("getdents64", Errno::ENOENT));
        }
        if !self.give_dots(cookie, take) {
            return Ok(());
        }
        let mut cookie = cookie.max(FIRST_COOKIE - 1);
        loop {
            let some = reading(entries).behind(cookie, ENTRIES_AT_A_TIME);
            if some.is_empty() {
                self.inode().touch_access();
                return Ok(());
            }
            for (offset, name, entry) in some {
                if !take(DirEntry::of(qid(&entry.inode), offset, &name)) {
                    return Ok(());
                }
                cookie = offset;
            }
        }
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.inode().attributes())
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        if set.valid.contains(SetattrMask::SIZE) && !self.flags.writes() {
            return Err(refusal("ftruncate", Errno::EINVAL));
        }
        self.inode().set_attributes((self.tree.uid, self.tree.gid), true, set)
    }

    /// Memory is as durable as it gets at once.
    fn sync(&self, _data_only: bool) -> Result<()> {
        Ok(())
    }

    fn locks(&self) -> Option<&OpeningLocks> {
        Some(&self.locks)
    }
}
