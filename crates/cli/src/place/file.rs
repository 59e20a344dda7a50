//! Open files of any place.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};

use client::{Opened, RemoteFile};

use super::{Meta, Moment, Outcome, local, remote};

/// A file open for reading.
pub(crate) enum Reader {
    Local(File),
    Remote(Box<RemoteOpen>),
}

/// A file open for writing, and for reading what was written.
pub(crate) enum Writer {
    Local(File),
    Remote(Box<RemoteOpen>),
}

impl Reader {
    /// Reads at an offset; 0 bytes only at the end of the file.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome<usize> {
        match self {
            Self::Local(file) => local_read(file, buffer, offset),
            Self::Remote(file) => file.read_at(buffer, offset),
        }
    }

    /// Fills `buffer`; short only at the end of the file.
    pub(crate) fn fill_at(&self, buffer: &mut [u8], offset: u64) -> Outcome<usize> {
        fill(buffer, |rest, done| self.read_at(rest, offset + done))
    }

    /// What is known of the open file.
    pub(crate) fn stat(&self) -> Outcome<Meta> {
        match self {
            Self::Local(file) => Ok(local::meta(&file.metadata()?)),
            Self::Remote(file) => file.stat(),
        }
    }
}

impl Writer {
    pub(crate) fn write_all_at(&self, data: &[u8], offset: u64) -> Outcome<()> {
        match self {
            Self::Local(file) => Ok(file.write_all_at(data, offset)?),
            Self::Remote(file) => file.write_all_at(data, offset),
        }
    }

    /// Fills `buffer`; short only at the end of the file.
    pub(crate) fn fill_at(&self, buffer: &mut [u8], offset: u64) -> Outcome<usize> {
        fill(buffer, |rest, done| match self {
            Self::Local(file) => local_read(file, rest, offset + done),
            Self::Remote(file) => file.read_at(rest, offset + done),
        })
    }

    pub(crate) fn stat(&self) -> Outcome<Meta> {
        match self {
            Self::Local(file) => Ok(local::meta(&file.metadata()?)),
            Self::Remote(file) => file.stat(),
        }
    }

    pub(crate) fn set_len(&self, len: u64) -> Outcome<()> {
        match self {
            Self::Local(file) => Ok(file.set_len(len)?),
            Self::Remote(file) => file.set_len(len),
        }
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Outcome<()> {
        match self {
            Self::Local(file) => Ok(file.set_permissions(Permissions::from_mode(mode))?),
            Self::Remote(file) => file.set_mode(mode),
        }
    }

    pub(crate) fn set_times(&self, atime: Moment, mtime: Moment) -> Outcome<()> {
        match self {
            Self::Local(file) => Ok(file.set_times(local::file_times(atime, mtime)?)?),
            Self::Remote(file) => file.set_times(atime, mtime),
        }
    }

    /// Waits until everything written is on stable storage.
    pub(crate) fn sync(&self) -> Outcome<()> {
        match self {
            Self::Local(file) => Ok(file.sync_all()?),
            Self::Remote(file) => file.sync(),
        }
    }
}

fn local_read(file: &File, buffer: &mut [u8], offset: u64) -> Outcome<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return Ok(other?),
        }
    }
}

fn fill(
    buffer: &mut [u8],
    mut read: impl FnMut(&mut [u8], u64) -> Outcome<usize>,
) -> Outcome<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match read(&mut buffer[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// A file of a service, open: reads are sent ahead, writes are acknowledged behind.
pub(crate) struct RemoteOpen {
    file: RemoteFile,
}

impl RemoteOpen {
    pub(super) fn new(opened: Opened) -> Self {
        Self {
            file: RemoteFile::new(opened),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Outcome<usize> {
        Ok(self.file.read_at(buffer, offset)?)
    }

    fn write_all_at(&self, mut data: &[u8], mut offset: u64) -> Outcome<()> {
        while !data.is_empty() {
            let written = self.file.write_at(data, offset)?;
            data = &data[written..];
            offset += written as u64;
        }
        Ok(())
    }

    fn stat(&self) -> Outcome<Meta> {
        Ok(remote::meta(&self.file.attributes()?))
    }

    fn set_len(&self, size: u64) -> Outcome<()> {
        Ok(self.file.truncate(size)?)
    }

    fn set_mode(&self, mode: u32) -> Outcome<()> {
        Ok(self.file.set_attributes(&remote::mode_only(mode))?)
    }

    fn set_times(&self, atime: Moment, mtime: Moment) -> Outcome<()> {
        Ok(self
            .file
            .set_attributes(&remote::times_only(atime, mtime))?)
    }

    fn sync(&self) -> Outcome<()> {
        Ok(self.file.sync(false)?)
    }
}
