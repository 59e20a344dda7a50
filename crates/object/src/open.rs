//! Opened files.

use std::sync::{Arc, Mutex, PoisonError};

use p9::{Attributes, Errno, OpenFlags, SetAttributes, SetattrMask};
use store::{Error, OpenNode, OpeningLocks, Piece, Result};

use crate::bucket::Meta;
use crate::error::refusal;
use crate::node::check_attributes;
use crate::read::Reader;
use crate::tree::{Found, Tree};
use crate::write::Writing;

/// The greatest offset of a file, as everywhere on Linux.
const OFFSET_MAX: u64 = i64::MAX as u64;

pub(crate) struct OpenFile {
    tree: Arc<Tree>,
    key: String,
    flags: OpenFlags,
    locks: OpeningLocks,
    uses: Mutex<Uses>,
}

/// What an opening reads from and writes to.
#[derive(Default)]
struct Uses {
    reader: Option<Arc<Reader>>,
    writing: Option<Arc<Writing>>,
    /// Whether this opening is one of those that write there.
    has_joined: bool,
}

impl OpenFile {
    pub(crate) fn new(tree: &Arc<Tree>, key: &str, flags: OpenFlags) -> Self {
        let locks = OpeningLocks::new(&tree.locks(key), flags);
        Self { tree: Arc::clone(tree), key: key.to_owned(), flags, locks, uses: Mutex::default() }
    }

    fn uses(&self) -> (Option<Arc<Reader>>, Option<Arc<Writing>>) {
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        (uses.reader.clone(), uses.writing.clone())
    }

    pub(crate) fn read_by(&self, reader: Arc<Reader>) {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).reader = Some(reader);
    }

    /// Only reads what somebody else writes.
    pub(crate) fn look_at(&self, writing: Arc<Writing>) {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).writing = Some(writing);
    }

    /// Begins to write, from nothing if `truncates`.
    pub(crate) fn begin(&self, former: Option<Meta>, truncates: bool) -> Result<()> {
        let writing = self.tree.write(&self.key, former, truncates);
        {
            let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
            uses.writing = Some(Arc::clone(&writing));
            uses.has_joined = true;
        }
        if truncates {
            writing.resize(0)?;
        }
        Ok(())
    }

    /// Begins a file that is not there, as far as is known here.
    ///
    /// # Errors
    /// `EEXIST` where somebody else of this store was faster and it is to be new.
    pub(crate) fn create(&self, is_exclusive: bool) -> Result<()> {
        let writing = self.tree.write(&self.key, None, true);
        if is_exclusive && writing.openers() > 1 {
            self.tree.leave(&self.key, &writing);
            return Err(refusal("open", Errno::EEXIST));
        }
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.writing = Some(writing);
        uses.has_joined = true;
        Ok(())
    }

    /// What is written to.
    fn writing(&self, operation: &'static str) -> Result<Arc<Writing>> {
        let (reader, writing) = self.uses();
        writing.ok_or_else(|| {
            let size = reader.map_or(0, |reader| reader.meta().size);
            self.tree.bucket().say(&format!(
                "{}/{}: {operation}: an object of {size} bytes cannot be changed or appended to, only replaced as a whole; \
                 programs that do so need a log: sluice run --log",
                self.tree.bucket().name(),
                self.key
            ));
            Error::Unsupported { operation, store: "object" }
        })
    }

    /// What is written to, which this opening has no part in any more.
    fn take(&self) -> Option<Arc<Writing>> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut uses.has_joined).then(|| uses.writing.clone()).flatten()
    }

    fn found(&self) -> Found {
        match self.uses() {
            (_, Some(writing)) => Found::Pending(writing),
            (Some(reader), None) => Found::File(reader.meta().clone()),
            // Not before something was set.
            (None, None) => Found::Directory,
        }
    }
}

impl OpenNode for OpenFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if !self.flags.reads() {
            return Err(refusal("read", Errno::EBADF));
        }
        if offset > OFFSET_MAX {
            return Err(refusal("read", Errno::EINVAL));
        }
        match self.uses() {
            (_, Some(writing)) => writing.read_at(buffer, offset),
            (Some(reader), None) => reader.read_at(buffer, offset),
            (None, None) => Err(refusal("read", Errno::EIO)),
        }
    }

    fn at_hand(&self, offset: u64, len: usize) -> Option<Vec<Piece>> {
        match self.uses() {
            (Some(reader), None) if self.flags.reads() && offset <= OFFSET_MAX => {
                let pieces = reader.at_hand(offset, len)?;
                Some(pieces.into_iter().map(|bytes| Box::new(bytes) as Piece).collect())
            }
            _ => None,
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        if !self.flags.writes() {
            return Err(refusal("write", Errno::EBADF));
        }
        let appends = self.flags.contains(OpenFlags::APPEND);
        if !appends && offset > OFFSET_MAX {
            return Err(refusal("write", Errno::EINVAL));
        }
        if !appends && offset.checked_add(data.len() as u64).is_none_or(|end| end > OFFSET_MAX) {
            return Err(refusal("write", Errno::EFBIG));
        }
        self.writing("write")?.write_at(data, (!appends).then_some(offset))
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.tree.attributes(&self.key, &self.found()))
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        check_attributes(set, &self.attributes()?)?;
        if !set.valid.contains(SetattrMask::SIZE) {
            return Ok(());
        }
        if !self.flags.writes() || set.size > OFFSET_MAX {
            return Err(refusal("ftruncate", Errno::EINVAL));
        }
        match self.uses() {
            (_, Some(writing)) => writing.resize(set.size),
            (Some(reader), None) if reader.meta().size == set.size => Ok(()),
            (Some(reader), None) if set.size == 0 => self.begin(Some(reader.meta().clone()), true),
            _ => self.writing("ftruncate").map(|_| ()),
        }
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        let has_joined = self.uses.lock().unwrap_or_else(PoisonError::into_inner).has_joined;
        match self.uses() {
            (_, Some(writing)) if has_joined => {
                writing.store()?;
                self.tree.forget(&self.key);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn locks(&self) -> Option<&OpeningLocks> {
        Some(&self.locks)
    }

    fn close(&self) -> Result<()> {
        let Some(writing) = self.take() else { return Ok(()) };
        let stored = if writing.openers() == 1 { writing.store() } else { Ok(()) };
        if stored.is_err() {
            // Whoever closes it has heard that it is lost.
            self.tree.give_up(&self.key, &writing);
        }
        self.tree.leave(&self.key, &writing);
        self.tree.forget(&self.key);
        stored
    }

    fn lost(&self) {
        if let Some(writing) = self.take() {
            self.tree.leave(&self.key, &writing);
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // Who wanted to know of errors has called close.
        let _ = self.close();
    }
}
