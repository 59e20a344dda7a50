//! Open files of any place.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};

use client::{Opened, RemoteFile};
use p9::SetAttributes;

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

    /// Whether what is written becomes the file only as a whole, when it is closed ([`Writer::finish`]).
    pub(crate) fn is_stored_at_close(&self) -> bool {
        match self {
            Self::Local(_) => false,
            Self::Remote(file) => file.file.handle().is_stored_at_close(),
        }
    }

    /// Closes, and waits until what was written is the file.
    pub(crate) fn finish(self) -> Outcome<()> {
        match self {
            Self::Local(_) => Ok(()),
            Self::Remote(file) => Ok(file.file.finish()?),
        }
    }

    /// Leaves what is [stored at close](Writer::is_stored_at_close) as it was before.
    pub(crate) fn give_up(self) {
        if self.is_stored_at_close()
            && let Self::Remote(file) = self
        {
            // What is under way is called back. To close it would be to store it.
            let _ = file.file.truncate(0);
            std::mem::forget(file);
        }
    }

    /// Cuts off what follows `len` bytes.
    pub(crate) fn cut_at(&self, len: u64) -> Outcome<()> {
        match self {
            Self::Local(file) => Ok(file.set_len(len)?),
            Self::Remote(file) => file.cut_at(len),
        }
    }

    /// Sets permission and times, in one request.
    pub(crate) fn set_meta(&self, mode: u32, times: Option<(Moment, Moment)>) -> Outcome<()> {
        match self {
            Self::Local(file) => {
                file.set_permissions(Permissions::from_mode(mode))?;
                match times {
                    Some((atime, mtime)) => Ok(file.set_times(local::file_times(atime, mtime)?)?),
                    None => Ok(()),
                }
            }
            Self::Remote(file) => file.set_meta(mode, times),
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
        Self { file: RemoteFile::new(opened) }
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

    fn cut_at(&self, len: u64) -> Outcome<()> {
        // The size is known from the opening and our own writes, so that this is rarely a request.
        if self.file.size()? == len {
            return Ok(());
        }
        Ok(self.file.truncate(len)?)
    }

    fn set_meta(&self, mode: u32, times: Option<(Moment, Moment)>) -> Outcome<()> {
        let mut set = remote::mode_only(mode);
        if let Some((atime, mtime)) = times {
            let times = remote::times_only(atime, mtime);
            set = SetAttributes { valid: set.valid | times.valid, mode, ..times };
        }
        Ok(self.file.set_attributes(&set)?)
    }

    fn sync(&self) -> Outcome<()> {
        Ok(self.file.sync(false)?)
    }
}
