//! Where a log's files are: a directory of a disk, or a simulated disk for tests.

use std::io::{self, IoSlice};
use std::path::PathBuf;

/// How much is written at once when a file is filled with zeros.
const ZEROS_BYTES: u64 = 1 << 20;

pub mod directory;
pub mod simulated;

/// A place that holds the files of one log.
///
/// Names are those of docs/LOGFORMAT.md: `segments/NNNNNNNN.seg`, `checkpoint`, `log.toml`.
pub trait Media: Send + Sync {
    /// What to call it in messages.
    fn place(&self) -> PathBuf;

    /// Keeps every other process out until what is returned is dropped.
    ///
    /// # Errors
    /// `WouldBlock` where somebody has it; whatever the system says.
    fn lock(&self) -> io::Result<Box<dyn Send + Sync>>;

    /// The names of all segment files.
    ///
    /// # Errors
    /// Whatever the system says.
    fn segments(&self) -> io::Result<Vec<String>>;

    /// Makes a new, empty file; it and its name are durable once it has been synced.
    ///
    /// # Errors
    /// `AlreadyExists`; whatever the system says.
    fn create(&self, name: &str) -> io::Result<Box<dyn MediaFile>>;

    /// Opens a file, to write too where `write` says so.
    ///
    /// # Errors
    /// `NotFound`; whatever the system says.
    fn open(&self, name: &str, write: bool) -> io::Result<Box<dyn MediaFile>>;

    /// Removes a file.
    ///
    /// # Errors
    /// Whatever the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes `bytes` the whole content of a small file: after a crash it is the old or the new, and when
    /// this has returned it is the new.
    ///
    /// # Errors
    /// Whatever the system says.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
}

/// One of those files.
pub trait MediaFile: Send + Sync {
    /// Writes all of `parts`, one after the other, from `offset` on.
    ///
    /// # Errors
    /// Whatever the system says; some of the bytes may have been written then.
    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<()>;

    /// Makes a new, empty file so long, full of zeros, so that no later write to it needs space.
    ///
    /// # Errors
    /// Whatever the system says, `StorageFull` among it.
    fn fill(&self, len: u64) -> io::Result<()> {
        fill_by_writing(self, len)
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` where the file ends before; whatever the system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// From where on, at `offset` or behind it, it may hold something else than zeros; `None` where nothing does.
    ///
    /// # Errors
    /// Whatever the system says.
    fn data_from(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(Some(offset))
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// Whatever the system says.
    fn size(&self) -> io::Result<u64>;

    /// Makes durable what was written to it, as fdatasync(2) does. Once it has failed, what was written
    /// before may be lost even if it succeeds the next time.
    ///
    /// # Errors
    /// Whatever the system says.
    fn sync(&self) -> io::Result<()>;
}

fn fill_by_writing(file: &(impl MediaFile + ?Sized), len: u64) -> io::Result<()> {
    let zeros = vec![0; ZEROS_BYTES.min(len) as usize];
    let mut at = 0;
    while at < len {
        let piece = ZEROS_BYTES.min(len - at);
        file.write_at(&[IoSlice::new(&zeros[..piece as usize])], at)?;
        at += piece;
    }
    Ok(())
}
