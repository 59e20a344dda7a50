//! Opened files and directories.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use p9::{Attributes, DirEntry, Errno, OpenFlags, SetAttributes, SetattrMask};
use rustix::io::Errno as KernelErrno;

use super::attributes::{self, Identity};
use super::directory::{Listed, Listing};
use super::lock::FileLocks;
use super::{Export, path_of, refusal, system};
use crate::error::Result;
use crate::node::{LockOwner, LockRange, OpenNode};

pub(super) struct FsOpen {
    export: Arc<Export>,
    file: Identity,
    fd: Arc<OwnedFd>,
    flags: OpenFlags,
    listing: Mutex<Listing>,
    locks: FileLocks,
}

impl FsOpen {
    pub(super) fn new(
        export: Arc<Export>,
        file: Identity,
        fd: Arc<OwnedFd>,
        flags: OpenFlags,
    ) -> Self {
        let locks = FileLocks::default();
        Self { export, file, fd, flags, listing: Mutex::default(), locks }
    }
}

impl Drop for FsOpen {
    fn drop(&mut self) {
        self.locks.release(&self.export.locks);
    }
}

impl OpenNode for FsOpen {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match rustix::io::pread(&self.fd, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(len) => done += len,
                Err(KernelErrno::INTR) => {}
                // What was read before is still good, and the next read tells again.
                Err(_) if done > 0 => break,
                Err(errno) => return Err(system("read")(errno)),
            }
        }
        Ok(done)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        loop {
            match rustix::io::pwrite(&self.fd, &data[done..], offset + done as u64) {
                Ok(len) => done += len,
                Err(KernelErrno::INTR) => continue,
                Err(_) if done > 0 => return Ok(done),
                Err(errno) => return Err(system("write")(errno)),
            }
            if done == data.len() {
                return Ok(done);
            }
        }
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let of = Listed { export: &self.export, fd: &self.fd, file: self.file };
        self.listing.lock().unwrap_or_else(PoisonError::into_inner).read(&of, cookie, take)
    }

    fn attributes(&self) -> Result<Attributes> {
        let (file, found) = attributes::stat(&self.fd)?;
        Ok(self.export.attributes(file, &found))
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        if set.valid.contains(SetattrMask::SIZE) {
            rustix::fs::ftruncate(&self.fd, set.size).map_err(system("ftruncate"))?;
        }
        let mode = if set.valid == SetattrMask::CTIME { self.attributes()?.mode } else { 0 };
        attributes::change(&path_of(&self.fd), mode, set)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        if data_only {
            rustix::fs::fdatasync(&self.fd).map_err(system("fdatasync"))
        } else {
            rustix::fs::fsync(&self.fd).map_err(system("fsync"))
        }
    }

    fn lock(&self, owner: &LockOwner, range: LockRange) -> Result<bool> {
        let allowed = match range.kind {
            p9::LockKind::READ => self.flags.reads(),
            p9::LockKind::WRITE => self.flags.writes(),
            _ => true,
        };
        if !allowed {
            return Err(refusal("fcntl", Errno::EBADF));
        }
        self.locks.lock(&self.export, self.file, &self.fd, owner, range)
    }

    fn lock_in_the_way(
        &self,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        self.locks.in_the_way(&self.export, self.file, &self.fd, owner, range)
    }

    /// None when writes append: splice(2) does not write to such descriptors.
    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        let appends = self.flags.contains(OpenFlags::APPEND) && self.flags.writes();
        (!appends).then(|| self.fd.as_ref().as_fd())
    }
}
