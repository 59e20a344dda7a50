//! The files that the program has open through MPI, as far as the sieve needs to know them.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_int};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpi::{Datatype, File, Flat, Info, Mpi};
use rustix::fs::{FileType, OFlags, Stat};
use sieve::Profile;
use transfer::{Engine, FileMap, Locking};

use crate::view::View;
use crate::wish::{self, Wish};

/// Memory for windows, for each file with a sieve. ROMIO takes 4 MiB to read and 512 KiB to write.
const BUFFER_BYTES: usize = 4 << 20;

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    path: Option<Vec<u8>>,
    /// Which regular file was behind the path when the program opened it. `None` if it was none: to open
    /// a pipe or a device a second time can wait for ever, or do something to it.
    identity: Option<Identity>,
    amode: c_int,
    state: Mutex<State>,
    /// Whether we wrote and have not synchronised.
    wrote: AtomicBool,
}

/// A file by its device and its number there.
type Identity = (u64, u64);

/// What changes while a file is open. Whoever carries out a call holds it: the file pointer and the
/// buffer are one.
#[derive(Debug)]
pub(crate) struct State {
    wish: Wish,
    has_single_writer: bool,
    pub(crate) sieve: Option<Sieve>,
    /// `None` where the sieve cannot have the view.
    pub(crate) view: Option<View>,
}

/// What carries out calls.
#[derive(Debug)]
pub(crate) struct Sieve {
    /// A descriptor of our own: that of the MPI library is its own business.
    pub(crate) fd: OwnedFd,
    pub(crate) engine: Engine,
    pub(crate) buffer: Vec<u8>,
    /// What of the file is mapped.
    pub(crate) map: FileMap,
}

static FILES: Mutex<Option<HashMap<File, Arc<OpenFile>>>> = Mutex::new(None);

fn files() -> MutexGuard<'static, Option<HashMap<File, Arc<OpenFile>>>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The record of an open file.
pub(crate) fn find(file: File) -> Option<Arc<OpenFile>> {
    files().as_ref()?.get(&file).cloned()
}

/// Remembers a file that was just opened.
pub(crate) fn opened(mpi: &Mpi, file: File, name: &CStr, amode: c_int, info: Info) {
    let mut state = State {
        wish: Wish::of_environment(),
        has_single_writer: false,
        sieve: None,
        view: whole_file(),
    };
    state.take_hints(mpi, info);
    let path = local_path(name.to_bytes()).map(<[u8]>::to_vec);
    let file_of_ours = OpenFile {
        // Asked of the kernel itself: a file that `libsluice.so` redirects is none for us anyway.
        identity: path.as_deref().and_then(|path| regular(&rustix::fs::stat(path).ok()?)),
        path,
        amode,
        state: Mutex::new(state),
        wrote: AtomicBool::new(false),
    };
    file_of_ours.prepare(mpi, &mut file_of_ours.state());
    files().get_or_insert_default().insert(file, Arc::new(file_of_ours));
}

/// Forgets a file that is about to be closed.
pub(crate) fn closing(file: File) {
    let forgotten = files().as_mut().and_then(|files| files.remove(&file));
    // Closed outside of the table's lock.
    drop(forgotten);
}

/// The view of a file that was just opened: bytes (MPI-4.1 §14.2.1).
fn whole_file() -> Option<View> {
    let byte = mpi::flat::Type { size: 1, lower_bound: 0, extent: 1, made: mpi::flat::Made::Dense };
    View::new(0, 1, &Flat::of(&byte).ok()?)
}

/// Which file it is, if it is a regular one.
fn regular(about: &Stat) -> Option<Identity> {
    let is_regular = FileType::from_raw_mode(about.st_mode) == FileType::RegularFile;
    is_regular.then_some((about.st_dev, about.st_ino))
}

/// Opens as the MPI library does, through libc: the file may be one that `libsluice.so` redirects. Such
/// a descriptor cannot be read or written by the kernel, and is none for us.
fn open(path: &CStr, flags: c_int) -> Option<OwnedFd> {
    // SAFETY: open(2) with a NUL-terminated path.
    let number = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
    // SAFETY: a descriptor that was just made, and is nobody else's.
    let fd = (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })?;
    let is_path = rustix::fs::fcntl_getfl(&fd).ok()?.contains(OFlags::PATH);
    (!is_path).then_some(fd)
}

/// A file name without the prefix by which ROMIO lets the user choose a file system. `None` where the
/// prefix stands for something that has no path, or is not known.
fn local_path(name: &[u8]) -> Option<&[u8]> {
    const PREFIXES: [&[u8]; 5] = [b"ufs", b"nfs", b"xfs", b"lustre", b"gpfs"];
    let head = name.split(|byte| *byte == b'/').next()?;
    match head.iter().position(|byte| *byte == b':') {
        None => Some(name),
        Some(colon) => PREFIXES.contains(&&name[..colon]).then(|| &name[colon + 1..]),
    }
}

impl OpenFile {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes new hints.
    pub(crate) fn hinted(&self, mpi: &Mpi, info: Info) {
        let mut state = self.state();
        state.take_hints(mpi, info);
        self.prepare(mpi, &mut state);
    }

    /// Takes a new view, and the hints that came with it.
    pub(crate) fn viewed(
        &self,
        mpi: &Mpi,
        displacement: i64,
        etype: Datatype,
        filetype: Datatype,
        datarep: &CStr,
        info: Info,
    ) {
        let mut state = self.state();
        state.take_hints(mpi, info);
        state.view = None;
        self.prepare(mpi, &mut state);
        // Types are only looked at when somebody wants to know.
        let is_plain = datarep.to_bytes().eq_ignore_ascii_case(b"native")
            && displacement != mpi.constants().numbers.displacement_current;
        if state.sieve.is_some() && is_plain {
            let etype_bytes = mpi.type_size(etype).unwrap_or(0);
            let filetype = mpi.flatten(filetype).ok();
            state.view = filetype.and_then(|flat| View::new(displacement, etype_bytes, &flat));
        }
    }

    /// Has no view any more that can be relied on: one was refused, and what is in force is the MPI
    /// library's affair.
    pub(crate) fn view_refused(&self) {
        self.state().view = None;
    }

    /// Makes or drops the sieve as wished.
    fn prepare(&self, mpi: &Mpi, state: &mut State) {
        let Wish::Sieve(method) = state.wish else {
            state.sieve = None;
            return;
        };
        if state.sieve.is_some() {
            return;
        }
        let locking = if state.has_single_writer { Locking::SingleWriter } else { Locking::All };
        let engine = Engine::by_name(method, self.profile());
        state.sieve = engine.zip(self.open(mpi)).map(|(engine, fd)| Sieve {
            fd,
            engine: engine.locking(locking),
            buffer: Vec::new(),
            map: FileMap::new(),
        });
    }

    /// What was measured for the place of the file by `sluice sieve tune`, else the default.
    fn profile(&self) -> Profile {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let (config, home) = (variable("XDG_CONFIG_HOME"), variable("HOME"));
        let measured = || {
            let directory = profiles::directory(config.as_deref(), home.as_deref())?;
            let place =
                profiles::Place::of_path(Path::new(OsStr::from_bytes(self.path.as_deref()?)));
            // A profile that cannot be read is none: there is nobody here to tell.
            profiles::load(&directory, &place.ok()?).ok()?
        };
        measured().map_or_else(Profile::default, |stored| stored.profile)
    }

    /// Opens the file for ourselves. `None` where that cannot be, or is not a regular file of this
    /// machine's, or is another one than the program has open: hints may come when the file has been
    /// renamed, deleted or replaced, or the process is in another directory. Then the MPI library does
    /// everything.
    fn open(&self, mpi: &Mpi) -> Option<OwnedFd> {
        let mode = &mpi.constants().numbers.mode;
        if self.amode & mode.sequential != 0 {
            return None;
        }
        let identity = self.identity?;
        let path = CString::new(self.path.as_deref()?).ok()?;
        let fd = if self.amode & mode.rdonly != 0 {
            open(&path, libc::O_RDONLY)?
        } else {
            // Windows are read before they are written, also where the program may only write.
            match open(&path, libc::O_RDWR) {
                Some(fd) => fd,
                None if self.amode & mode.wronly != 0 => open(&path, libc::O_WRONLY)?,
                None => return None,
            }
        };
        (regular(&rustix::fs::fstat(&fd).ok()?) == Some(identity)).then_some(fd)
    }

    /// Whether the program may read, and whether it may write.
    pub(crate) fn allows(&self, mpi: &Mpi) -> (bool, bool) {
        let mode = &mpi.constants().numbers.mode;
        (self.amode & mode.wronly == 0, self.amode & mode.rdonly == 0)
    }

    pub(crate) fn note_write(&self) {
        self.wrote.store(true, Ordering::Release);
    }

    /// Makes what we wrote durable; false if that failed. The MPI library may think that there is
    /// nothing to do: ROMIO synchronises only ranks that have written.
    pub(crate) fn synchronise(&self) -> bool {
        if !self.wrote.swap(false, Ordering::AcqRel) {
            return true;
        }
        // Without a sieve any more, its descriptor has been closed, and the kernel tells the error to
        // whoever asks next.
        self.state().sieve.as_ref().is_none_or(|sieve| rustix::fs::fsync(&sieve.fd).is_ok())
    }
}

impl State {
    fn take_hints(&mut self, mpi: &Mpi, info: Info) {
        if let Some(wish) = Wish::of_hints(mpi, info) {
            if wish != self.wish {
                self.sieve = None;
            }
            self.wish = wish;
        }
        if let Some(single) = wish::has_single_writer(mpi, info) {
            if single != self.has_single_writer {
                self.sieve = None;
            }
            self.has_single_writer = single;
        }
    }
}

impl Sieve {
    /// The buffer, made at its first use. An empty one makes every block a call by itself.
    pub(crate) fn make_buffer(&mut self) {
        if self.buffer.is_empty() && self.buffer.try_reserve_exact(BUFFER_BYTES).is_ok() {
            self.buffer.resize(BUFFER_BYTES, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{local_path, regular};

    #[test]
    fn pipes_and_devices_are_not_opened_a_second_time() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [pipe.as_path(), directory.path(), "/dev/null".as_ref()] {
            assert_eq!(regular(&rustix::fs::stat(path).unwrap()), None, "{}", path.display());
        }
        let file = directory.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(regular(&rustix::fs::stat(&file).unwrap()).is_some());
    }

    #[test]
    fn prefixes_of_romio_are_taken_off_and_others_are_declined() {
        assert_eq!(local_path(b"/a/b:c"), Some(&b"/a/b:c"[..]));
        assert_eq!(local_path(b"ufs:/a"), Some(&b"/a"[..]));
        assert_eq!(local_path(b"data"), Some(&b"data"[..]));
        assert_eq!(local_path(b"scdc+tcp://host/a"), None);
        assert_eq!(local_path(b"pvfs2:/a"), None);
    }
}
