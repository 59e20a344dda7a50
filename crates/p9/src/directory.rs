//! Directory entries as `Rreaddir` packs them.

use crate::Qid;
use crate::wire::{Field, Name, Reader, WireError};

/// One entry: `qid[13] offset[8] type[1] name[s]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// Identity of the file.
    pub qid: Qid,
    /// Where the listing goes on after this entry: a cookie, not a byte count.
    pub offset: u64,
    /// `DT_*` of readdir(3).
    pub kind: u8,
    /// The name within its directory.
    pub name: Name<'a>,
}

impl<'a> DirEntry<'a> {
    /// The entry of a directory, a symbolic link or a regular file, as the qid says. Entries have no version.
    #[must_use]
    pub fn of(qid: Qid, offset: u64, name: Name<'a>) -> Self {
        Self { qid: Qid { version: 0, ..qid }, offset, kind: qid.kind.entry_type(), name }
    }

    /// Bytes that the entry takes in a reply.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        13 + 8 + 1 + 2 + self.name.len()
    }

    /// Appends the entry to the data of a `Rreaddir`.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.qid.put(out);
        self.offset.put(out);
        self.kind.put(out);
        self.name.put(out);
    }
}

/// Walks over the entries of a `Rreaddir`. Ends after the first malformed one.
#[derive(Debug, Clone)]
pub struct DirEntries<'a> {
    rest: &'a [u8],
}

impl<'a> DirEntries<'a> {
    /// Entries within the data of a reply.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }
}

impl<'a> Iterator for DirEntries<'a> {
    type Item = Result<DirEntry<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut from = Reader::new(self.rest);
        let entry = (|| {
            Ok(DirEntry {
                qid: Qid::get(&mut from)?,
                offset: u64::get(&mut from)?,
                kind: u8::get(&mut from)?,
                name: Name::get(&mut from)?,
            })
        })();
        self.rest = match entry {
            Ok(_) => from.take(from.left(), "entries").unwrap_or(&[]),
            Err(_) => &[],
        };
        Some(entry)
    }
}
