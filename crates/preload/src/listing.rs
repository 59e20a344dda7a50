//! Directory listings as getdents64(2) gives them.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::atomic::Ordering;

use p9::Errno;

use crate::table;

/// Fields of `struct linux_dirent64` before the name: d_ino, d_off, d_reclen, d_type.
const FIXED_LEN: usize = 8 + 8 + 2 + 1;

/// A directory entry.
struct Entry {
    inode: u64,
    offset: u64,
    kind: u8,
    name: Vec<u8>,
}

/// Entries that were fetched and not yet given.
#[derive(Default)]
pub(crate) struct Listing {
    entries: VecDeque<Entry>,
    /// The cookie from which `entries` go on, when there are any.
    from: u64,
}

impl Listing {
    /// The offset was moved: what was fetched does not follow from it.
    pub(crate) fn rewind(&mut self) {
        self.entries.clear();
    }
}

/// getdents64(2).
pub(crate) fn fill(fd: c_int, buffer: &mut [u8]) -> Result<usize, Errno> {
    table::get(fd).ok_or(Errno::EBADF)?.with(fd, |live| {
        let (handle, listing, state) = live.directory()?;
        let mut cookie = state.offset().load(Ordering::Relaxed);
        if listing.entries.is_empty() || listing.from != cookie {
            listing.entries.clear();
            let entries = &mut listing.entries;
            handle
                .read_directory(cookie, &mut |entry| {
                    entries.push_back(Entry {
                        inode: entry.qid.path,
                        offset: entry.offset,
                        kind: entry.kind,
                        name: entry.name.to_vec(),
                    });
                    true
                })
                .map_err(|error| error.to_errno())?;
            listing.from = cookie;
        }
        let mut filled = 0;
        while let Some(entry) = listing.entries.front() {
            // d_name ends in NUL; records are aligned to eight bytes.
            let length = (FIXED_LEN + entry.name.len() + 1).next_multiple_of(8);
            let Some(record) = buffer.get_mut(filled..filled + length) else {
                if filled == 0 {
                    return Err(Errno::EINVAL);
                }
                break;
            };
            record.fill(0);
            record[0..8].copy_from_slice(&entry.inode.to_ne_bytes());
            record[8..16].copy_from_slice(&entry.offset.to_ne_bytes());
            record[16..18].copy_from_slice(&(length as u16).to_ne_bytes());
            record[18] = entry.kind;
            record[FIXED_LEN..FIXED_LEN + entry.name.len()].copy_from_slice(&entry.name);
            filled += length;
            cookie = entry.offset;
            listing.entries.pop_front();
        }
        listing.from = cookie;
        state.offset().store(cookie, Ordering::Relaxed);
        Ok(filled)
    })
}
