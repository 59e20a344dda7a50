//! A file that belongs to a dataset, and the calls that are made on it.
//!
//! Everything goes by [`rustix`]'s own system calls, as in the other stores: this code may run
//! inside a program whose libc is patched to call it.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hdf::{HdfFile, Schema};
use mapping::Guarded;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::faults::{Call, Faults, Kind, Verdict};

/// What a file is called in the file system, and who may break it.
#[derive(Clone, Default)]
pub(crate) struct Surroundings {
    pub(crate) faults: Option<Arc<dyn Faults>>,
    /// Ranges of so many bytes may be looked at in mappings.
    pub(crate) mapped_read_min_bytes: Option<u64>,
}

impl Surroundings {
    /// How many bytes of a call are to be made.
    fn judge(&self, kind: Kind, path: &Path, offset: u64, len: usize) -> rustix::io::Result<usize> {
        let Some(faults) = &self.faults else { return Ok(len) };
        match faults.judge(&Call { kind, path, offset, len }) {
            Verdict::Go => Ok(len),
            Verdict::Short(some) => Ok(some.clamp(1, len.max(1))),
            Verdict::Fail(errno) => Err(Errno::from_raw_os_error(errno)),
        }
    }

    /// Makes a call that changes names or sizes.
    pub(crate) fn change<T>(
        &self,
        operation: &'static str,
        path: &Path,
        call: impl FnOnce() -> rustix::io::Result<T>,
    ) -> Result<T> {
        self.judge(Kind::Change, path, 0, 0)
            .and_then(|_| call())
            .map_err(|errno| Error::file(operation, path, errno))
    }

    /// Makes the names in a directory durable.
    pub(crate) fn sync_directory(&self, path: &Path) -> Result<()> {
        let error = |errno| Error::file("fsync", path, errno);
        self.judge(Kind::Sync, path, 0, 0).map_err(error)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(error)?;
        rustix::fs::fsync(&dir).map_err(error)
    }
}

/// Replaces a file: after a crash it has the old content or the new one. `beside` is the name, in the
/// same directory, under which it is written; `mode` its permissions, where they are not the usual.
pub(crate) fn replace(
    path: &Path,
    beside: &str,
    content: &[u8],
    mode: Option<Mode>,
    around: &Surroundings,
) -> Result<()> {
    let new = path.with_file_name(beside);
    // One that was not finished.
    match around.change("unlink", &new, || rustix::fs::unlink(&new)) {
        Ok(()) => {}
        Err(error) if error.to_errno() == p9::Errno::ENOENT => {}
        Err(error) => return Err(error),
    }
    let file = File::create(&new, around)?;
    if let Some(mode) = mode {
        around.change("fchmod", &new, || rustix::fs::fchmod(&file.fd, mode))?;
    }
    file.write_at(content, 0)?;
    file.sync()?;
    around.change("rename", path, || rustix::fs::rename(&new, path))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    around.sync_directory(parent.unwrap_or(Path::new(".")))
}

/// An open file.
pub(crate) struct File {
    fd: OwnedFd,
    path: PathBuf,
    around: Surroundings,
    /// Where the bytes are that offsets mean; none: in the file, at these offsets.
    hdf5: Option<HdfFile>,
    /// Made for the first read that looks into it; none: that cannot be done.
    mapped: OnceLock<Option<Guarded>>,
}

/// What makes a file itself on this machine: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl File {
    /// Opens a file for reading and writing; none if there is none of the name.
    ///
    /// # Errors
    /// As open(2).
    pub(crate) fn open(path: &Path, around: &Surroundings) -> Result<Option<Self>> {
        match rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Some(Self::of(fd, path, around))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::file("open", path, errno)),
        }
    }

    /// Creates a file that must not exist, empty.
    ///
    /// # Errors
    /// As open(2).
    pub(crate) fn create(path: &Path, around: &Surroundings) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let fd = around.change("open", path, || rustix::fs::open(path, flags, mode))?;
        Ok(Self::of(fd, path, around))
    }

    fn of(fd: OwnedFd, path: &Path, around: &Surroundings) -> Self {
        Self {
            fd,
            path: path.to_path_buf(),
            around: around.clone(),
            hdf5: None,
            mapped: OnceLock::new(),
        }
    }

    /// The HDF5 file that this is, of which the datasets of a schema are used.
    ///
    /// # Errors
    /// When it is none, or holds other datasets.
    pub(crate) fn into_hdf5(mut self, schema: &Schema) -> Result<Self> {
        self.hdf5 = Some(HdfFile::open(&self.path, schema, true)?);
        Ok(self)
    }

    /// Makes a new HDF5 file with the datasets of a schema, all zeros.
    ///
    /// # Errors
    /// As open(2), or when the schema cannot be expressed.
    pub(crate) fn create_hdf5(path: &Path, schema: &Schema, around: &Surroundings) -> Result<Self> {
        around.change("open", path, || Ok(()))?;
        let made = HdfFile::create(path, schema)?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty());
        let fd = fd.map_err(|errno| Error::file("open", path, errno))?;
        let mut file = Self::of(fd, path, around);
        file.hdf5 = Some(made);
        Ok(file)
    }

    /// Whether offsets are those of the file.
    pub(crate) fn is_raw(&self) -> bool {
        self.hdf5.is_none()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name it has from now on: it was renamed.
    pub(crate) fn renamed(mut self, path: &Path) -> Self {
        self.path = path.to_path_buf();
        self
    }

    fn error(&self, operation: &'static str) -> impl Fn(Errno) -> Error {
        move |errno| Error::file(operation, &self.path, errno)
    }

    /// Takes the file for this opening alone, until it is closed (flock(2)).
    ///
    /// # Errors
    /// [`Error::InUse`] when somebody else has it.
    pub(crate) fn lock(&self) -> Result<()> {
        match rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(Errno::WOULDBLOCK) => {
                let pid = self.identity().ok().and_then(lock_holder);
                Err(Error::InUse { path: self.path.clone(), pid })
            }
            Err(errno) => Err(self.error("flock")(errno)),
        }
    }

    /// Whether it is a regular file.
    pub(crate) fn is_regular(&self) -> Result<bool> {
        let found = rustix::fs::fstat(&self.fd).map_err(self.error("fstat"))?;
        Ok(FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
    }

    pub(crate) fn identity(&self) -> Result<Identity> {
        let found = rustix::fs::fstat(&self.fd).map_err(self.error("fstat"))?;
        Ok(Identity { device: found.st_dev, inode: found.st_ino })
    }

    /// Its size in bytes: how far offsets go.
    pub(crate) fn size(&self) -> Result<u64> {
        if let Some(hdf5) = &self.hdf5 {
            return Ok(hdf5.schema().size());
        }
        let found = rustix::fs::fstat(&self.fd).map_err(self.error("fstat"))?;
        Ok(found.st_size.unsigned_abs())
    }

    /// When it was written last.
    pub(crate) fn modified(&self) -> Result<p9::Time> {
        let found = rustix::fs::fstat(&self.fd).map_err(self.error("fstat"))?;
        Ok(p9::Time { seconds: found.st_mtime as u64, nanoseconds: found.st_mtime_nsec as u64 })
    }

    /// Cuts it, or extends it by zeros.
    pub(crate) fn set_size(&self, size: u64) -> Result<()> {
        let call = || rustix::fs::ftruncate(&self.fd, size);
        self.around.change("ftruncate", &self.path, call)
    }

    /// Fills `buffer`. What is missing at the end is an error: a file of a dataset has its size.
    pub(crate) fn read_at(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<()> {
        if let Some(hdf5) = &self.hdf5 {
            let judged = self.around.judge(Kind::Read, &self.path, offset, buffer.len());
            judged.map_err(self.error("pread"))?;
            return Ok(hdf5.read_at(buffer, offset)?);
        }
        while !buffer.is_empty() {
            let read = self
                .around
                .judge(Kind::Read, &self.path, offset, buffer.len())
                .and_then(|len| rustix::io::pread(&self.fd, &mut buffer[..len], offset));
            match read {
                // Somebody cut the file since it was opened.
                Ok(0) => return Err(self.error("pread (the file has become shorter)")(Errno::IO)),
                Ok(len) => {
                    buffer = &mut buffer[len..];
                    offset += len as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("pread")(errno)),
            }
        }
        Ok(())
    }

    /// Has somebody look at a range of the file. False: nothing of that counts, and the bytes have to
    /// be read.
    pub(crate) fn look(&self, range: &Range<u64>, look: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let Some(least) = self.around.mapped_read_min_bytes else { return Ok(false) };
        if range.end - range.start < least || self.hdf5.is_some() {
            return Ok(false);
        }
        let Some(mapped) = self.mapped.get_or_init(|| self.map()) else { return Ok(false) };
        let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end))
        else {
            return Ok(false);
        };
        if end > mapped.len() {
            // It was shorter then.
            return Ok(false);
        }
        let judged = self.around.judge(Kind::Read, &self.path, range.start, end - start);
        if judged.map_err(self.error("pread"))? < end - start {
            return Ok(false);
        }
        // The last page may go on behind the end of the file.
        Ok(mapped.look(start..end, look).is_some() && self.size()? >= range.end)
    }

    fn map(&self) -> Option<Guarded> {
        let len = usize::try_from(self.size().ok()?).ok()?;
        mapping::is_local(self.fd.as_fd())
            .then(|| Guarded::new(self.fd.as_fd(), len).ok())
            .flatten()
    }

    /// Whether somebody else may write so many bytes to its descriptor.
    pub(crate) fn may_be_written(&self, offset: u64, len: usize) -> bool {
        let judged = self.around.judge(Kind::Write, &self.path, offset, len);
        self.is_raw() && judged == Ok(len)
    }

    /// Writes all of `data`.
    pub(crate) fn write_at(&self, mut data: &[u8], mut offset: u64) -> Result<()> {
        if let Some(hdf5) = &self.hdf5 {
            let judged = self.around.judge(Kind::Write, &self.path, offset, data.len());
            judged.map_err(self.error("pwrite"))?;
            return Ok(hdf5.write_at(data, offset)?);
        }
        while !data.is_empty() {
            let written = self
                .around
                .judge(Kind::Write, &self.path, offset, data.len())
                .and_then(|len| rustix::io::pwrite(&self.fd, &data[..len], offset));
            match written {
                Ok(len) => {
                    data = &data[len..];
                    offset += len as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error("pwrite")(errno)),
            }
        }
        Ok(())
    }

    /// Makes its data durable, and its size.
    pub(crate) fn sync(&self) -> Result<()> {
        self.around.judge(Kind::Sync, &self.path, 0, 0).map_err(self.error("fdatasync"))?;
        match &self.hdf5 {
            Some(hdf5) => Ok(hdf5.sync()?),
            None => rustix::fs::fdatasync(&self.fd).map_err(self.error("fdatasync")),
        }
    }
}

impl Drop for File {
    /// Closing would end the lock only with the last copy of the descriptor, and a child of another
    /// thread may have one between its fork(2) and execve(2).
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.fd, FlockOperation::Unlock);
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The process that holds a flock(2) on a file, as /proc/locks tells.
///
/// # Source
/// proc_locks(5): `1: FLOCK ADVISORY WRITE 4711 08:02:123456 0 EOF`, numbers of the device in hex.
fn lock_holder(file: Identity) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["FLOCK", _, _, pid, place, ..] = words.get(1..)? else { return None };
        let inode = place.rsplit(':').next()?.parse::<u64>().ok()?;
        let pid = pid.parse().ok()?;
        // The device is left out: what it is called there differs from stat(2) on some systems.
        (inode == file.inode && pid > 0).then_some(pid)
    })
}
