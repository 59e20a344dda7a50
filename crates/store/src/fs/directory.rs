//! Listing a directory: getdents64(2) with the file system's own cookies.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use p9::{DirEntry, Qid};
use rustix::fs::{FileType, RawDir, SeekFrom};

use super::attributes::{self, Identity, qid_type};
use super::{Export, system};
use crate::error::Result;

/// Bytes asked of getdents64(2) at a time: what glibc's readdir uses.
const BUFFER_BYTES: usize = 32 * 1024;

/// Where a listing stands.
///
/// A client lists in several requests, and between two of them often removes what it was told
/// (`rm -r`). Where cookies are positions (tmpfs before Linux 6.6), seeking to one then skips
/// entries. So a listing that goes on where it stopped does not seek: what the kernel gave beyond
/// the last entry taken is kept.
#[derive(Default)]
pub(super) struct Listing {
    /// The cookie of the last entry taken.
    cookie: u64,
    /// Entries read and not taken, last first.
    pending: Vec<Entry>,
}

struct Entry {
    inode: u64,
    cookie: u64,
    kind: FileType,
    name: Vec<u8>,
}

/// What a listing is of.
pub(super) struct Listed<'a> {
    pub(super) export: &'a Export,
    pub(super) fd: &'a OwnedFd,
    pub(super) file: Identity,
}

impl Listing {
    pub(super) fn read(
        &mut self,
        of: &Listed<'_>,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        if cookie == 0 || cookie != self.cookie {
            self.pending.clear();
            rustix::fs::seek(of.fd, SeekFrom::Start(cookie)).map_err(system("lseek"))?;
            self.cookie = cookie;
        }
        while let Some(entry) = self.pending.pop() {
            if !of.give(entry.inode, entry.cookie, entry.kind, &entry.name, take) {
                self.pending.push(entry);
                return Ok(());
            }
            self.cookie = entry.cookie;
        }
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut entries = RawDir::new(of.fd, &mut buffer);
        let mut refused = false;
        // After a refusal only what is in the buffer already is looked at.
        while !(refused && entries.is_buffer_empty()) {
            let Some(entry) = entries.next() else { break };
            let entry = entry.map_err(system("getdents64"))?;
            let (inode, next) = (entry.ino(), entry.next_entry_cookie());
            let (kind, name) = (entry.file_type(), entry.file_name().to_bytes());
            refused = refused || !of.give(inode, next, kind, name, take);
            if refused {
                self.pending.push(Entry { inode, cookie: next, kind, name: name.to_vec() });
            } else {
                self.cookie = next;
            }
        }
        self.pending.reverse();
        Ok(())
    }
}

impl Listed<'_> {
    /// Offers one entry.
    ///
    /// The qid's version is unknown (0): learning it would cost a call per entry. At a mount
    /// point, the inode is that of the directory beneath, as readdir(3) has it too.
    fn give(
        &self,
        inode: u64,
        cookie: u64,
        kind: FileType,
        name: &[u8],
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> bool {
        let at_root = self.file == self.export.identity;
        // Above the root there is nothing that a client should know of.
        let inode = if name == b".." && at_root { self.file.inode } else { inode };
        let kind = if kind == FileType::Unknown { self.kind_of(name) } else { kind };
        let path = self.export.qid_path(Identity { inode, ..self.file });
        take(DirEntry {
            qid: Qid { kind: qid_type(kind), version: 0, path },
            offset: cookie,
            kind: entry_type(kind),
            name,
        })
    }

    /// The type, where the file system keeps none in its directories.
    fn kind_of(&self, name: &[u8]) -> FileType {
        attributes::stat_entry(self.fd.as_fd(), name)
            .map_or(FileType::Unknown, |(_, found)| attributes::file_type(&found))
    }
}

/// `DT_*` of readdir(3): the type bits of the mode, shifted (`IFTODT` of dirent.h).
fn entry_type(kind: FileType) -> u8 {
    match kind {
        FileType::Unknown => 0,
        kind => (kind.as_raw_mode() >> 12) as u8,
    }
}
