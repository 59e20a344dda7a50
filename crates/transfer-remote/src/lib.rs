//! A file of a 9P service as a [`Target`]: a view of it is read as one pipelined batch.
//!
//! 1. [`ServedFile::open`] opens a path at a service, past the client's read-ahead and write-behind:
//!    the planner decides what is fetched together.
//! 2. [`ServedFile::profile`] measures the way there, so that the plan weighs that route's latency
//!    against its bandwidth. Holes of some kilobytes are worth less than a turn, but with many
//!    requests under way a turn is shared by all of them.
//! 3. [`transfer::Engine`] plans and hands over batches; [`client::Handle::read_batch`] sends all
//!    requests of one before it waits for the first reply.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use client::{At, Handle, Lock, ReadPart, Repeat, Session, WritePart};
use p9::OpenFlags;
use rustix::io::Errno;
use sieve::{Access, Profile};
use transfer::{LockKind, ReadRequest, Target, WriteRequest};

/// Tells the locks of one opened file from those of another.
static OWNERS: AtomicU32 = AtomicU32::new(1);

/// An open file at a service.
pub struct ServedFile {
    handle: Handle,
    flags: OpenFlags,
    /// Locks belong to the opened file, not to the process, as with `F_OFD_SETLK`.
    owner: u32,
}

impl ServedFile {
    /// Opens `path` at a service with flags as open(2) has them.
    ///
    /// # Errors
    /// As open(2), and when the service cannot be reached.
    pub fn open(
        session: &Arc<Session>,
        path: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> client::Result<Self> {
        let handle = session.open(At::root(path), flags, mode)?.handle;
        Ok(Self { handle, flags, owner: OWNERS.fetch_add(1, Ordering::Relaxed) })
    }

    /// The open file at the service.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Length of the file in bytes.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn len(&self) -> client::Result<u64> {
        Ok(self.handle.attributes()?.size)
    }

    /// Whether the file holds nothing.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn is_empty(&self) -> client::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// What an access costs on the way to this file, measured now by a few small requests and one
    /// read of what is there.
    ///
    /// # Errors
    /// When the service cannot be reached or the file cannot be read.
    pub fn profile(&self) -> client::Result<Profile> {
        transfer::measure_route(
            self.is_readable(),
            || self.len(),
            |reads| {
                let parts = reads.iter_mut().map(|read| ReadPart::new(read.offset, read.buf));
                self.handle.read_batch(&mut parts.collect::<Vec<_>>())
            },
        )
    }

    fn lock_of(&self, kind: p9::LockKind, file: &Range<u64>) -> Lock {
        // A length of 0 would mean up to the end.
        let length = file.end.saturating_sub(file.start).max(1);
        let client = format!("sieve-{}", std::process::id()).into_bytes();
        Lock { kind, start: file.start, length, process: self.owner, client }
    }
}

fn errno_of(error: &client::Error) -> Errno {
    Errno::from_raw_os_error(error.to_errno().raw())
}

fn refusal_of(errno: p9::Errno) -> Errno {
    Errno::from_raw_os_error(errno.raw())
}

impl Target for ServedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let mut part = ReadPart::new(offset, buf);
        self.handle
            .read_batch(std::slice::from_mut(&mut part))
            .map_err(|error| errno_of(&error))?;
        match part.refusal {
            Some(errno) if part.done == 0 => Err(refusal_of(errno)),
            _ => Ok(part.done),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        let mut part = WritePart::new(offset, data);
        self.handle
            .write_batch(Repeat::Safe, std::slice::from_mut(&mut part))
            .map_err(|error| errno_of(&error))?;
        match part.refusal {
            Some(errno) if part.done == 0 => Err(refusal_of(errno)),
            _ => Ok(part.done),
        }
    }

    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        for read in reads.iter_mut() {
            (read.done, read.errno) = (0, None);
        }
        // A service may give less than was asked for without being at the end: what is missing is
        // asked for again, all of it together, until nothing more comes.
        let mut wanted: Vec<usize> = (0..reads.len()).collect();
        while !wanted.is_empty() {
            let mut remaining = wanted.iter().copied().peekable();
            let mut parts = Vec::with_capacity(wanted.len());
            for (index, read) in reads.iter_mut().enumerate() {
                if remaining.next_if_eq(&index).is_some() {
                    let offset = read.offset.saturating_add(read.done as u64);
                    parts.push(ReadPart::new(offset, &mut read.buf[read.done..]));
                }
            }
            let outcome = self.handle.read_batch(&mut parts);
            let states: Vec<_> = parts.iter().map(|part| (part.done, part.refusal)).collect();
            let broken = outcome.err().map(|error| errno_of(&error));
            let mut again = Vec::new();
            for (index, (done, refusal)) in wanted.into_iter().zip(states) {
                let read = &mut reads[index];
                if broken.is_some() {
                    read.errno = broken;
                    continue;
                }
                read.done += done;
                read.errno = refusal.map(refusal_of);
                if done > 0 && read.done < read.buf.len() && read.errno.is_none() {
                    again.push(index);
                }
            }
            wanted = again;
        }
    }

    fn write_batch(&self, writes: &mut [WriteRequest<'_>]) {
        let mut parts: Vec<_> =
            writes.iter().map(|write| WritePart::new(write.offset, write.data)).collect();
        let broken = self.handle.write_batch(Repeat::Safe, &mut parts).err();
        let states: Vec<_> = parts.iter().map(|part| (part.done, part.refusal)).collect();
        for (write, (done, refusal)) in writes.iter_mut().zip(states) {
            write.done = if broken.is_some() { 0 } else { done };
            write.errno = match (&broken, refusal) {
                (Some(error), _) => Some(errno_of(error)),
                (None, refusal) => refusal.map(refusal_of),
            };
            if write.done < write.data.len() && write.errno.is_none() {
                let rest = &write.data[write.done..];
                let offset = write.offset + write.done as u64;
                let (more, errno) = transfer::write_full(self, offset, rest);
                write.done += more;
                write.errno = errno;
            }
        }
    }

    fn check(&self, access: Access) -> transfer::Result<()> {
        let allowed = match access {
            Access::Read => self.is_readable(),
            Access::Write => self.flags.writes(),
        };
        if access == Access::Write && self.flags.contains(OpenFlags::APPEND) {
            return Err(transfer::Error::Append);
        }
        // The service would refuse the first request; an access of no bytes makes none.
        let errno = Errno::BADF;
        if allowed { Ok(()) } else { Err(transfer::Error::Io { access, offset: 0, len: 0, errno }) }
    }

    fn is_readable(&self) -> bool {
        self.flags.reads()
    }

    fn lock(&self, file: Range<u64>, kind: LockKind) -> Result<(), Errno> {
        let kind = match kind {
            LockKind::Shared => p9::LockKind::READ,
            LockKind::Exclusive => p9::LockKind::WRITE,
        };
        let lock = self.lock_of(kind, &file);
        self.handle.lock(&lock, Some(&|| false)).map_err(|error| errno_of(&error))
    }

    fn unlock(&self, file: Range<u64>) {
        // Should the connection have broken, the lock is gone already.
        let _ = self.handle.lock(&self.lock_of(p9::LockKind::UNLOCK, &file), None);
    }
}
