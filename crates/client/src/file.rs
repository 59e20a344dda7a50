//! An open remote file as read(2) and write(2) want it: buffered, read ahead, written behind.

pub(crate) mod core;
mod parts;
mod reading;
mod writing;

use std::sync::Arc;

use p9::{Attributes, SetAttributes, SetattrMask};

use crate::batch::{ReadPart, WritePart};
use crate::error::Result;
use crate::handle::Handle;
use crate::opening::Opened;
use core::Core;

/// An open remote file, shared by all descriptors of a process that came from one open(2). All
/// methods may be called from any thread.
///
/// *Reading.* A sequential reader's data is requested before it is asked for, small reads are
/// served from memory, large ones arrive straight in the caller's buffer. What is cached is good
/// until the file is opened again ([`RemoteFile::invalidate`]), and for a second where a reader
/// does not just go on. A read at the known end asks the service, but for the first one after the
/// size became known.
///
/// *Writing.* Small writes are gathered, full requests are sent without waiting. A write that
/// fails later is reported by the next of [`write_at`](RemoteFile::write_at),
/// [`append`](RemoteFile::append), [`flush`](RemoteFile::flush), [`sync`](RemoteFile::sync) and
/// [`close`](RemoteFile::close), once; from then on every write waits for its reply until one
/// succeeds. Reads see all writes of this process at once, through whatever file they were made.
///
/// *Breaks.* Data is kept until the service has acknowledged it, and sent again on a new
/// connection. Appends are not, as nobody can know whether they were executed: their fate is `EIO`.
///
/// # Source
/// Close-to-open consistency: RFC 7530, section 10.3.1. Late errors: write(2), NOTES.
pub struct RemoteFile {
    core: Arc<Core>,
}

impl RemoteFile {
    /// A file over what an open gave.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self { core: Core::new(opened) }
    }

    /// The handle beneath, for what is not buffered: locks, extended attributes.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        self.core.handle()
    }

    /// Reads at `offset` and returns how many bytes; fewer than asked at the end of the file.
    ///
    /// # Errors
    /// As pread(2); `EIO` when the service cannot be reached any more.
    #[inline]
    pub fn read_at(&self, target: &mut [u8], offset: u64) -> Result<usize> {
        self.core.read_at(target, offset)
    }

    /// Writes at `offset` and returns how many bytes were taken.
    ///
    /// # Errors
    /// As pwrite(2), and those of earlier writes.
    #[inline]
    pub fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        self.core.write_at(data, offset)
    }

    /// Reads many ranges in one go, past the cache: all requests are under way together. What became
    /// of each stands in it; a service may give less than was asked for without being at the end.
    ///
    /// # Errors
    /// As pread(2); a refusal of a single range is none.
    pub fn read_parts(&self, parts: &mut [ReadPart<'_>]) -> Result<()> {
        self.core.read_parts(parts)
    }

    /// Writes many ranges, which must not overlap, in one go. When this returns, the service has
    /// acknowledged them: there is no later error.
    ///
    /// # Errors
    /// As pwrite(2), and those of earlier writes; a refusal of a single range is none. `EINVAL` for a
    /// file opened with `O_APPEND`, where the order matters.
    pub fn write_parts(&self, parts: &mut [WritePart<'_>]) -> Result<()> {
        self.core.write_parts(parts)
    }

    /// Appends to a file opened with `O_APPEND` and returns the size after it. Where others append
    /// too, that is a guess until [`RemoteFile::attributes`] is asked.
    ///
    /// # Errors
    /// As write(2), and those of earlier writes.
    pub fn append(&self, data: &[u8]) -> Result<u64> {
        self.core.append(data)
    }

    /// Sends what is gathered without waiting for the acknowledgement.
    pub fn send(&self) {
        self.core.send();
    }

    /// Sends what is gathered and waits until the service has acknowledged everything.
    ///
    /// # Errors
    /// Those of earlier writes.
    pub fn flush(&self) -> Result<()> {
        self.core.flush()
    }

    /// Flushes and makes data, and unless `data_only` attributes, durable: whatever this process has written
    /// to the file, through other openings, too. What was cached is forgotten, by those, too: programs that
    /// agree on a time (MPI-4.1 §14.6.1: sync, barrier, sync) see each other's data after it.
    ///
    /// # Errors
    /// As fsync(2), and those of earlier writes; other openings are told of theirs all the same.
    pub fn sync(&self, data_only: bool) -> Result<()> {
        let written = self.core.flush().and(self.core.settle_siblings());
        let synced = self.handle().sync(data_only);
        self.core.forget_everywhere();
        written.and(synced)
    }

    /// The size in bytes, own writes included. Asked of the service when what is known is older
    /// than a second.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn size(&self) -> Result<u64> {
        self.core.size()
    }

    /// The attributes, after all own writes were executed. Errors of those are kept.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn attributes(&self) -> Result<Attributes> {
        self.core.attributes()
    }

    /// Changes attributes, after all own writes were executed. Errors of those are kept.
    ///
    /// # Errors
    /// As ftruncate(2), fchmod(2), fchown(2), futimens(3).
    pub fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.core.set_attributes(set)
    }

    /// Cuts or extends with zeros to `size` bytes.
    ///
    /// # Errors
    /// As ftruncate(2).
    pub fn truncate(&self, size: u64) -> Result<()> {
        let valid = SetattrMask::SIZE;
        self.core.set_attributes(&SetAttributes { valid, size, ..SetAttributes::default() })
    }

    /// Drops what is cached: after a lock was taken, others' writes must be seen.
    pub fn invalidate(&self) {
        self.core.lock().forget_reads();
    }

    /// Other processes share the offset, or no longer do: as long as they do, every write waits
    /// for its reply and nothing that can be written is cached.
    pub fn set_shared(&self, shared: bool) {
        self.core.set_shared(shared);
    }

    /// Other processes use the file at the same time and rely on seeing what each of them has written: as long as
    /// this process has it open, by whichever opening, every write waits for its reply and every read and size is asked
    /// of the service.
    pub fn set_concurrent(&self) {
        self.core.set_concurrent();
    }

    /// Whether the service tells a file that is closed from one whose client is gone.
    #[must_use]
    pub fn close_counts(&self) -> bool {
        self.core.close_counts()
    }

    /// Closes the file, for the last user of it. Where it means something to the service, its answer is waited for: what
    /// was written is then safe.
    ///
    /// # Errors
    /// As close(2), and those of earlier writes.
    pub fn finish(self) -> Result<()> {
        let flushed = self.core.flush();
        flushed.and(self.core.finish())
    }

    /// Flushes, for close(2). The service is told when the last user lets go of the file.
    ///
    /// # Errors
    /// Those of earlier writes.
    pub fn close(&self) -> Result<()> {
        self.core.flush()
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        // Who wanted to know of errors has called close.
        self.core.settle();
        self.core.leave();
    }
}
