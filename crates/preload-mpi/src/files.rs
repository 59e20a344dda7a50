//! The files that the program has open through MPI, as far as the sieve needs to know them.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpi::{Datatype, File, Flat, Info, Mpi};
use sieve::Profile;
use transfer::{Engine, FileMap, Locking};

use crate::descriptor::{self, Descriptor, Identity};
use crate::epochs::{Agreement, Member};
use crate::names;
use crate::romio;
use crate::view::View;
use crate::wish::{self, Wish};

/// Memory for windows, for each file with a sieve. ROMIO takes 4 MiB to read and 512 KiB to write.
const BUFFER_BYTES: usize = 4 << 20;

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    path: Option<CString>,
    /// Which regular file was behind the path when the program opened it. `None` if it was none: to open
    /// a pipe or a device a second time can wait for ever, or do something to it.
    identity: Option<Identity>,
    amode: c_int,
    /// Whether the path leads to a service.
    is_far: bool,
    state: Mutex<State>,
    /// Whether we wrote and have not synchronised.
    wrote: AtomicBool,
    /// As what a host log knows this rank.
    member: Option<Member>,
}

/// What changes while a file is open. Whoever carries out a call holds it: the file pointer and the
/// buffer are one.
#[derive(Debug)]
pub(crate) struct State {
    wish: Wish,
    has_single_writer: bool,
    /// Kept until the file is closed, also where the sieve is wished away meanwhile: closing a
    /// descriptor gives up every traditional lock that this process has on the file (fcntl(2)).
    descriptor: Option<Arc<Descriptor>>,
    /// Kept while other ranks use the file, too: it has nothing of the file kept in this process. Not for the sieve, which
    /// leaves files alone that were renamed or deleted before it was wished.
    concurrent: Option<Descriptor>,
    pub(crate) sieve: Option<Sieve>,
    /// `None` where the sieve cannot have the view.
    pub(crate) view: Option<View>,
}

/// What carries out calls.
#[derive(Debug)]
pub(crate) struct Sieve {
    /// A descriptor of our own: that of the MPI library is its own business.
    pub(crate) descriptor: Arc<Descriptor>,
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

/// Remembers a file that was just opened by so many ranks, as they had agreed.
pub(crate) fn opened(
    mpi: &Mpi,
    file: File,
    name: &CStr,
    amode: c_int,
    info: Info,
    ranks: u32,
    agreement: Option<Agreement>,
) {
    let mut state = State {
        wish: Wish::of_environment(),
        has_single_writer: false,
        descriptor: None,
        concurrent: None,
        sieve: None,
        view: whole_file(),
    };
    state.take_hints(mpi, info);
    let path = names::path_of(name.to_bytes()).and_then(|path| CString::new(path).ok());
    let file_of_ours = OpenFile {
        identity: path.as_deref().and_then(descriptor::identity_of),
        is_far: path.as_deref().is_some_and(|path| descriptor::endpoint_of(path).is_some()),
        path,
        amode,
        state: Mutex::new(state),
        wrote: AtomicBool::new(false),
        member: agreement.and_then(|agreement| agreement.join(name)),
    };
    let mut state = file_of_ours.state();
    if file_of_ours.is_far && ranks > 1 && amode & mpi.constants().numbers.mode.rdonly == 0 {
        state.concurrent = file_of_ours.open(mpi);
        // A descriptor that `libsluice.so` does not know any more fails by itself.
        let _ = state.concurrent.as_ref().map(Descriptor::keep_nothing);
    }
    file_of_ours.prepare(mpi, &mut state);
    drop(state);
    files().get_or_insert_default().insert(file, Arc::new(file_of_ours));
}

/// Forgets a file that is about to be closed. What is to be told when it is closed is left.
pub(crate) fn closing(file: File) -> Option<Arc<OpenFile>> {
    let forgotten = files().as_mut().and_then(|files| files.remove(&file))?;
    // Closed outside of the table's lock, and before the MPI library closes its own descriptor.
    let mut state = forgotten.state();
    (state.sieve, state.descriptor, state.concurrent) = (None, None, None);
    drop(state);
    Some(forgotten)
}

/// The view of a file that was just opened: bytes (MPI-4.1 §14.2.1).
fn whole_file() -> Option<View> {
    let byte = mpi::flat::Type { size: 1, lower_bound: 0, extent: 1, made: mpi::flat::Made::Dense };
    View::new(0, 1, &Flat::of(&byte).ok()?)
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
            let filetype = romio::flatten(mpi, filetype);
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
        if state.descriptor.is_none() {
            state.descriptor = self.open(mpi).map(Arc::new);
        }
        let Some(descriptor) = &state.descriptor else { return };
        let locking = if state.has_single_writer { Locking::SingleWriter } else { Locking::All };
        let engine = Engine::by_name(method, self.profile(descriptor));
        state.sieve = engine.map(|engine| Sieve {
            descriptor: Arc::clone(descriptor),
            engine: engine.locking(locking),
            buffer: Vec::new(),
            map: FileMap::new(),
        });
    }

    /// What was measured for the place of the file by `sluice sieve tune`, else what is found out now,
    /// else the default.
    fn profile(&self, descriptor: &Descriptor) -> Profile {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let (config, home) = (variable("XDG_CONFIG_HOME"), variable("HOME"));
        let measured = || {
            let directory = profiles::directory(config.as_deref(), home.as_deref())?;
            let place = descriptor.place(self.path.as_deref()?)?;
            // A profile that cannot be read is none: there is nobody here to tell.
            profiles::load(&directory, &place).ok()?
        };
        let stored = measured().map(|stored| stored.profile);
        stored.or_else(|| descriptor.profile()).unwrap_or_default()
    }

    /// Opens the file for ourselves. `None` where that cannot be, or is not a regular file, or is
    /// another one than the program has open: hints may come when the file has been renamed, deleted or
    /// replaced, or the process is in another directory. Then the MPI library does everything.
    fn open(&self, mpi: &Mpi) -> Option<Descriptor> {
        let mode = &mpi.constants().numbers.mode;
        if self.amode & mode.sequential != 0 {
            return None;
        }
        let (identity, path) = (self.identity?, self.path.as_deref()?);
        // Not even for a moment: closing the wrong file would give up the program's locks on it.
        if descriptor::identity_of(path) != Some(identity) {
            return None;
        }
        let descriptor = if self.amode & mode.rdonly != 0 {
            Descriptor::open(path, libc::O_RDONLY)?
        } else {
            // Windows are read before they are written, also where the program may only write.
            match Descriptor::open(path, libc::O_RDWR) {
                Some(descriptor) => descriptor,
                None if self.amode & mode.wronly != 0 => Descriptor::open(path, libc::O_WRONLY)?,
                None => return None,
            }
        };
        (descriptor.identity() == Some(identity)).then_some(descriptor)
    }

    /// Whether the program may read, and whether it may write.
    pub(crate) fn allows(&self, mpi: &Mpi) -> (bool, bool) {
        let mode = &mpi.constants().numbers.mode;
        (self.amode & mode.wronly == 0, self.amode & mode.rdonly == 0)
    }

    /// Whether this rank is one of a group that a host log knows.
    pub(crate) fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }

    pub(crate) fn note_write(&self) {
        self.wrote.store(true, Ordering::Release);
    }

    /// Makes what we wrote durable; false if that failed. The MPI library may think that there is
    /// nothing to do: ROMIO synchronises only ranks that have written. But what this process has cached of
    /// a redirected file must be forgotten, also where it has not written (MPI-4.1 §14.6.1).
    pub(crate) fn synchronise(&self, mpi: &Mpi) -> bool {
        let wrote = self.wrote.swap(false, Ordering::AcqRel);
        if !wrote && !self.is_far {
            return true;
        }
        let mut state = self.state();
        if state.descriptor.is_none() {
            state.descriptor = self.open(mpi).map(Arc::new);
        }
        let synchronised = state.descriptor.as_ref().map(|descriptor| descriptor.synchronise());
        !wrote || synchronised.is_none_or(|outcome| outcome.is_ok())
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
