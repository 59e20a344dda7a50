//! A log's files in a directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Media, MediaFile};
use crate::names::{LOCK, SEGMENTS};

/// A directory, of a file system of this machine: that is where a sync means something.
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The log in the directory `root`, which need not exist yet.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Makes the directory where it is missing: only its owner may look inside.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn make(&self) -> io::Result<()> {
        make_directories(&self.root.join(SEGMENTS), &mut sync_directory)?;
        // Another process may have made them a moment ago, and its syncs may be still to come.
        sync_directory(&self.root)?;
        match self.root.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
            _ => Ok(()),
        }
    }
}

/// Makes a directory, and those above it that are missing. Each name is made durable by `sync` of the directory that has
/// it: a log whose directory's name a power cut takes away is lost with all that it holds.
fn make_directories(path: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    let make = || fs::DirBuilder::new().mode(0o700).create(path);
    let made = match make() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_directories(parent, sync)?;
            make()
        }
        made => made,
    };
    match made {
        Ok(()) => sync(parent),
        // Where it is there it does not matter why it cannot be made.
        Err(_) if path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes durable that `path` has its name.
fn sync_name(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), sync_directory)
}

impl Media for Directory {
    fn place(&self) -> PathBuf {
        self.root.clone()
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        self.make()?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.root.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn segments(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.root.join(SEGMENTS)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.ends_with(".seg")) {
                names.push(format!("{SEGMENTS}/{name}"));
            }
        }
        names.sort();
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediaFile>> {
        let path = self.root.join(name);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        sync_name(&path)?;
        Ok(Box::new(DirectoryFile { file }))
    }

    fn open(&self, name: &str, write: bool) -> io::Result<Box<dyn MediaFile>> {
        let file = OpenOptions::new().read(true).write(write).open(self.root.join(name))?;
        Ok(Box::new(DirectoryFile { file }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.root.join(name);
        fs::remove_file(&path)?;
        sync_name(&path)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.root.join(name);
        replace(&path, bytes, &File::sync_all)?;
        sync_name(&path)
    }
}

/// Makes `bytes` the whole content of a small file, after `sync` of what it is then.
///
/// What it held before stays under another name (`.new`), and the next time its place on the disk is written over: so that on
/// a disk that other programs have filled one can still say how far one is.
///
/// # Errors
/// Whatever the system says.
pub fn replace(
    path: &Path,
    bytes: &[u8],
    sync: &dyn Fn(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = Path::new(&fresh);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(false).mode(0o600).open(fresh)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    sync(&file)?;
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    match rustix::fs::renameat_with(rustix::fs::CWD, fresh, rustix::fs::CWD, path, flags) {
        Ok(()) => Ok(()),
        // There is none yet, or the file system cannot.
        Err(_) => fs::rename(fresh, path),
    }
}

struct DirectoryFile {
    file: File,
}

impl MediaFile for DirectoryFile {
    fn write_at(&self, parts: &[IoSlice<'_>], mut offset: u64) -> io::Result<()> {
        let whole: usize = parts.iter().map(|part| part.len()).sum();
        let mut done = match rustix::io::pwritev(&self.file, parts, offset) {
            Ok(written) if written == whole => return Ok(()),
            Ok(written) => written,
            Err(rustix::io::Errno::INTR) => 0,
            Err(errno) => return Err(errno.into()),
        };
        // A short write is rare, so that copying the slices is.
        let mut parts = parts.to_vec();
        let mut parts = parts.as_mut_slice();
        IoSlice::advance_slices(&mut parts, done);
        offset += done as u64;
        while !parts.is_empty() {
            match rustix::io::pwritev(&self.file, parts, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    done = written;
                    IoSlice::advance_slices(&mut parts, done);
                    offset += done as u64;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn fill(&self, len: u64) -> io::Result<()> {
        // Zeros that are written take as long as the data itself, and the first writers would wait for them.
        let flags = rustix::fs::FallocateFlags::empty();
        loop {
            return match rustix::fs::fallocate(&self.file, flags, 0, len) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                    super::fill_by_writing(self, len)
                }
                done => Ok(done?),
            };
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn data_from(&self, offset: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(offset)) {
            Ok(found) => Ok(Some(found)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            // Where holes cannot be told, everything may be data.
            Err(rustix::io::Errno::INVAL) => Ok(Some(offset)),
            Err(errno) => Err(errno.into()),
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_that_was_made_has_its_name_synced_from_above_down() {
        let top = tempfile::tempdir().expect("a directory");
        let path = top.path().join("a/b/c");
        let mut synced = Vec::new();
        let mut sync = |path: &Path| {
            synced.push(path.to_owned());
            Ok(())
        };
        make_directories(&path, &mut sync).expect("directories");
        // There is nothing to sync where nothing was made.
        make_directories(&path, &mut sync).expect("directories");
        let expected = ["", "a", "a/b"].map(|name| top.path().join(name));
        assert!(path.is_dir() && synced.len() == 3);
        assert!(synced.iter().zip(expected).all(|(a, b)| *a == b), "{synced:?}");
        fs::write(top.path().join("file"), "").expect("a file");
        let below = top.path().join("file/below");
        let error = make_directories(&below, &mut |_| Ok(())).expect_err("a file is in the way");
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }
}
