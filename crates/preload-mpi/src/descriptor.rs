//! A descriptor of our own for a file that the program has open through MPI: that of the MPI library is its
//! own business.

use std::ffi::{CStr, OsStr, c_int};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use address::{Resolved, Settings};
use profiles::Place;
use rustix::fs::OFlags;
use rustix::io::Errno;
use sieve::{FileView, Profile};
use transfer::{Engine, FileMap, LocalFile};

use crate::far::FarFile;

/// A file by its device and its number there.
pub(crate) type Identity = (u64, u64);

/// An open file.
#[derive(Debug)]
pub(crate) enum Descriptor {
    /// The kernel's.
    Here(OwnedFd),
    /// At a service.
    Far(FarFile),
}

/// Which file it is, if it is a regular one: to open a pipe or a device a second time can wait for ever,
/// or do something to it.
fn regular(about: &libc::stat) -> Option<Identity> {
    (about.st_mode & libc::S_IFMT == libc::S_IFREG).then_some((about.st_dev, about.st_ino))
}

/// Which regular file a path leads to, for the MPI library: through libc, because `libsluice.so` may
/// redirect it.
pub(crate) fn identity_of(path: &CStr) -> Option<Identity> {
    let mut about = MaybeUninit::uninit();
    // SAFETY: stat(2) with a NUL-terminated path and room for its answer.
    let code = unsafe { libc::stat(path.as_ptr(), about.as_mut_ptr()) };
    // SAFETY: filled in where the call succeeded.
    (code == 0).then(|| unsafe { about.assume_init() }).and_then(|about| regular(&about))
}

impl Descriptor {
    /// Opens as the MPI library does, through libc.
    pub(crate) fn open(path: &CStr, flags: c_int) -> Option<Descriptor> {
        // SAFETY: open(2) with a NUL-terminated path.
        let number = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
        // SAFETY: a descriptor that was just made, and is nobody else's.
        let fd = (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })?;
        // Asked of the kernel itself, to which a redirected descriptor is one that it refuses to use.
        let is_far = rustix::fs::fcntl_getfl(&fd).ok()?.contains(OFlags::PATH);
        Some(if is_far { Descriptor::Far(FarFile::new(fd, flags)) } else { Descriptor::Here(fd) })
    }

    /// Which file it is.
    pub(crate) fn identity(&self) -> Option<Identity> {
        match self {
            Descriptor::Here(fd) => {
                let about = rustix::fs::fstat(fd).ok()?;
                Some((about.st_dev, about.st_ino))
            }
            Descriptor::Far(file) => regular(&file.about().ok()?),
        }
    }

    pub(crate) fn is_far(&self) -> bool {
        matches!(self, Descriptor::Far(_))
    }

    /// The place for which `sluice sieve tune` may have measured a profile.
    pub(crate) fn place(&self, path: &CStr) -> Option<Place> {
        match self {
            Descriptor::Here(_) => {
                Place::of_path(Path::new(OsStr::from_bytes(path.to_bytes()))).ok()
            }
            Descriptor::Far(_) => endpoint_of(path).map(Place::Service),
        }
    }

    /// What can be found out now of what accesses cost.
    pub(crate) fn profile(&self) -> Option<Profile> {
        match self {
            Descriptor::Here(_) => None,
            Descriptor::Far(file) => file.profile(),
        }
    }

    /// Has nothing of the file kept in this process, because other ranks use it at the same time. The kernel's files are
    /// kept for all processes of the node anyway.
    pub(crate) fn keep_nothing(&self) -> Result<(), Errno> {
        match self {
            Descriptor::Here(_) => Ok(()),
            Descriptor::Far(file) => file.keep_nothing(),
        }
    }

    /// Makes durable what was written through it.
    pub(crate) fn synchronise(&self) -> Result<(), Errno> {
        match self {
            Descriptor::Here(fd) => rustix::fs::fsync(fd),
            Descriptor::Far(file) => file.synchronise(),
        }
    }

    /// As [`Engine::read`]; `map` is what is mapped of a file of the kernel's.
    pub(crate) fn read(
        &self,
        engine: &mut Engine,
        view: &FileView,
        map: &FileMap,
        buffer: &mut [u8],
        offset: u64,
        out: &mut [u8],
    ) -> transfer::Result<u64> {
        match self {
            Descriptor::Here(fd) => {
                let target = LocalFile::private(fd.as_fd()).keeping(map);
                engine.read(&target, view, buffer, offset, out)
            }
            Descriptor::Far(file) => engine.read(file, view, buffer, offset, out),
        }
    }

    /// As [`Engine::write`]; `map` as there.
    pub(crate) fn write(
        &self,
        engine: &mut Engine,
        view: &FileView,
        map: &FileMap,
        buffer: &mut [u8],
        offset: u64,
        data: &[u8],
    ) -> transfer::Result<u64> {
        match self {
            Descriptor::Here(fd) => {
                let target = LocalFile::private(fd.as_fd()).keeping(map);
                engine.write(&target, view, buffer, offset, data)
            }
            Descriptor::Far(file) => engine.write(file, view, buffer, offset, data),
        }
    }
}

/// The address of the service that a redirected path leads to, without the path there: as
/// `sluice sieve tune` names it.
pub(crate) fn endpoint_of(path: &CStr) -> Option<String> {
    let path = path.to_bytes();
    if let Some(found) = address::detect(path) {
        return Some(found.uri(path).ok()?.endpoint.to_string());
    }
    let settings = std::env::var_os(Settings::VARIABLE)?;
    let settings = Settings::from_env(settings.as_bytes()).ok()?;
    let cwd = std::env::current_dir().unwrap_or_default();
    match settings.routes.resolve(cwd.as_os_str().as_bytes(), path) {
        Resolved::Remote(hit) => Some(hit.uri().endpoint.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use super::identity_of;

    #[test]
    fn pipes_and_devices_are_not_opened_a_second_time() {
        let directory = tempfile::tempdir().unwrap();
        let c_path = |path: &std::path::Path| CString::new(path.as_os_str().as_bytes()).unwrap();
        let pipe = directory.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [pipe.as_path(), directory.path(), "/dev/null".as_ref()] {
            assert_eq!(identity_of(&c_path(path)), None, "{}", path.display());
        }
        let file = directory.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(identity_of(&c_path(&file)).is_some());
    }
}
