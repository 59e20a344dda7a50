//! Independent reads and writes through a view, carried out by the sieve.
//!
//! Everything that is not surely right here is left to the MPI library, wrong arguments and failing
//! disks included: its own answer is then what the program gets. Repeating a call that was carried out
//! in part does no harm, because the same bytes go to the same places.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mpi::{File, Mpi};
use sieve::Access;

use crate::files::{self, OpenFile, Sieve, State};
use crate::memory::Memory;
use crate::view::View;
use mpi::Next;

/// What scattered memory is gathered in, at a time.
const PIECE_BYTES: usize = 16 << 20;

/// A call of the program's, as it came.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) file: usize,
    /// In etypes; `None` means at the individual file pointer, which moves.
    pub(crate) at: Option<i64>,
    pub(crate) buffer: *const c_void,
    pub(crate) count: i64,
    pub(crate) datatype: usize,
    pub(crate) status: *mut c_void,
}

/// How much the sieve carried.
pub(crate) struct Carried {
    pub(crate) calls: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// How many of the calls were of redirected files.
    pub(crate) far: AtomicU64,
}

impl Carried {
    const fn nothing() -> Self {
        Carried { calls: AtomicU64::new(0), bytes: AtomicU64::new(0), far: AtomicU64::new(0) }
    }

    fn count(&self, bytes: u64, is_far: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.far.fetch_add(u64::from(is_far), Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Reads that the sieve carried out.
pub(crate) static READS: Carried = Carried::nothing();
/// Writes that the sieve carried out.
pub(crate) static WRITES: Carried = Carried::nothing();

/// Set after a panic: nothing of ours is trusted any more.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Runs what is ours, without a panic or its message leaving it.
pub(crate) fn guarded<T>(ours: impl FnOnce() -> Option<T>) -> Option<T> {
    static QUIET: std::sync::Once = std::sync::Once::new();
    if BROKEN.load(Ordering::Relaxed) {
        return None;
    }
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    catch_unwind(AssertUnwindSafe(ours)).unwrap_or_else(|_| {
        BROKEN.store(true, Ordering::Relaxed);
        None
    })
}

/// The library's functions that take the arguments of a call.
static NEXT_READ: Next = Next::new(c"MPI_File_read");
static NEXT_WRITE: Next = Next::new(c"MPI_File_write");
static NEXT_READ_AT: Next = Next::new(c"MPI_File_read_at");
static NEXT_WRITE_AT: Next = Next::new(c"MPI_File_write_at");

/// Has the MPI library judge a call's arguments, by the same call for nothing: only it knows whether a
/// datatype has been committed. Its code; `None` if it cannot be asked.
///
/// # Safety
///
/// As for [`carry_out`].
unsafe fn judged(access: Access, call: &Call) -> Option<c_int> {
    /// MPI_File_read and MPI_File_write.
    type AtPointer =
        unsafe extern "C-unwind" fn(usize, *const c_void, c_int, usize, *mut c_void) -> c_int;
    /// MPI_File_read_at and MPI_File_write_at.
    type AtOffset =
        unsafe extern "C-unwind" fn(usize, i64, *const c_void, c_int, usize, *mut c_void) -> c_int;
    let Call { file, buffer, datatype, status, .. } = *call;
    let next = match (access, call.at) {
        (Access::Read, None) => &NEXT_READ,
        (Access::Write, None) => &NEXT_WRITE,
        (Access::Read, Some(_)) => &NEXT_READ_AT,
        (Access::Write, Some(_)) => &NEXT_WRITE_AT,
    };
    let address = Some(next.address()).filter(|address| !address.is_null())?;
    Some(match call.at {
        None => {
            // SAFETY: functions of these names have this signature (MPI-4.1, annex A.3).
            let next = unsafe { std::mem::transmute::<*const c_void, AtPointer>(address) };
            // SAFETY: the program's own arguments, but for the count.
            unsafe { next(file, buffer, 0, datatype, status) }
        }
        Some(at) => {
            // SAFETY: as above.
            let next = unsafe { std::mem::transmute::<*const c_void, AtOffset>(address) };
            // SAFETY: as above.
            unsafe { next(file, at, buffer, 0, datatype, status) }
        }
    })
}

/// Carries out a call. `None` if it is the MPI library's.
///
/// # Safety
///
/// The arguments must be those of MPI_File_read, MPI_File_write or their kin.
pub(crate) unsafe fn carry_out(access: Access, call: &Call) -> Option<c_int> {
    guarded(|| {
        let mpi = Mpi::find().ok()?;
        // SAFETY: the program's own file handle.
        let file = unsafe { mpi.file(call.file) };
        let record = files::find(file)?;
        let mut state = record.state();
        if !is_ours(mpi, access, call, file, &record, &state)? {
            return None;
        }
        // SAFETY: the program's own arguments.
        match unsafe { judged(access, call) }? {
            0 => {}
            // The library has told its error handler.
            refused => return Some(refused),
        }
        // SAFETY: the program's own arguments, which the library has nothing against.
        let bytes = unsafe { transfer(mpi, access, call, file, &record, &mut state) }?;
        // SAFETY: the program's own status. An error here can only be that of a wrong status.
        let _ = unsafe { mpi.set_status_bytes(call.status, bytes) };
        let is_far = state.sieve.as_ref().is_some_and(|sieve| sieve.descriptor.is_far());
        match access {
            Access::Read => READS.count(bytes, is_far),
            Access::Write => WRITES.count(bytes, is_far),
        }
        Some(0)
    })
}

/// Whether a call is one for the sieve, as far as can be seen without its datatype.
fn is_ours(
    mpi: &Mpi,
    access: Access,
    call: &Call,
    file: File,
    record: &OpenFile,
    state: &State,
) -> Option<bool> {
    let view = state.sieve.as_ref().and(state.view.as_ref())?;
    let (may_read, may_write) = record.allows(mpi);
    let is_ours = match access {
        // Nothing to gain.
        Access::Read => may_read && !view.is_dense,
        // Also without holes: another rank's sieve may be about to write these bytes back, and only
        // who takes part in locking is safe from that.
        Access::Write => may_write,
    };
    Some(is_ours && call.count > 0 && !mpi.atomicity(file).ok()?)
}

/// How many bytes were read or written; fewer than wanted only where the file ends.
unsafe fn transfer(
    mpi: &Mpi,
    access: Access,
    call: &Call,
    file: File,
    record: &OpenFile,
    state: &mut State,
) -> Option<u64> {
    let (sieve, view) = (state.sieve.as_mut()?, state.view.as_ref()?);
    let count = u64::try_from(call.count).ok()?;
    // SAFETY: the program's own datatype.
    let memory = Memory::of(mpi, call.buffer, count, unsafe { mpi.datatype(call.datatype) })?;
    if memory.bytes() == 0 || memory.bytes() % view.etype_bytes != 0 {
        return None;
    }
    let position = match call.at {
        Some(at) => at,
        None => mpi.position(file).ok()?,
    };
    let start = u64::try_from(position).ok()?.checked_mul(view.etype_bytes)?;
    let etypes = i64::try_from(memory.bytes() / view.etype_bytes).ok()?;
    let next = position.checked_add(etypes)?;
    sieve.make_buffer();
    // SAFETY: the program's own buffer.
    let bytes = unsafe {
        match access {
            Access::Read => read(sieve, view, start, &memory)?,
            Access::Write => {
                record.note_write();
                write(sieve, view, start, &memory)?
            }
        }
    };
    if call.at.is_none() {
        // Also where the file ended before: by what was asked for (MPI-4.1 §14.4.3).
        mpi.set_position(file, next).ok()?;
    }
    Some(bytes)
}

unsafe fn read(sieve: &mut Sieve, view: &View, start: u64, memory: &Memory) -> Option<u64> {
    if let Some((address, length)) = memory.single() {
        // SAFETY: the program's buffer holds `length` bytes, and nobody else uses it during the call
        // (MPI-4.1 §14.4.1).
        let out = unsafe { std::slice::from_raw_parts_mut(address, length) };
        return read_into(sieve, view, start, out);
    }
    let mut walk = memory.walk();
    let mut piece = piece(memory)?;
    let mut done = 0;
    while done < memory.bytes() {
        let length = piece.len().min((memory.bytes() - done) as usize);
        let came = read_into(sieve, view, start.checked_add(done)?, &mut piece[..length])?;
        // SAFETY: the caller's promise.
        unsafe { walk.scatter(&piece[..came as usize]) };
        done += came;
        if came < length as u64 {
            break;
        }
    }
    Some(done)
}

fn read_into(sieve: &mut Sieve, view: &View, start: u64, out: &mut [u8]) -> Option<u64> {
    let Sieve { descriptor, engine, buffer, map } = sieve;
    let mut done = 0;
    while done < out.len() {
        let at = start.checked_add(done as u64)?;
        // A short answer is followed by nothing at the end of the file, and by an error otherwise.
        match descriptor.read(engine, &view.bytes, map, buffer, at, &mut out[done..]).ok()? {
            0 => break,
            came => done += came as usize,
        }
    }
    Some(done as u64)
}

unsafe fn write(sieve: &mut Sieve, view: &View, start: u64, memory: &Memory) -> Option<u64> {
    if let Some((address, length)) = memory.single() {
        // SAFETY: the program's buffer holds `length` bytes, and nobody changes it during the call.
        let data = unsafe { std::slice::from_raw_parts(address, length) };
        return write_from(sieve, view, start, data);
    }
    let mut walk = memory.walk();
    let mut piece = piece(memory)?;
    let mut done = 0;
    while done < memory.bytes() {
        let length = piece.len().min((memory.bytes() - done) as usize);
        // SAFETY: the caller's promise.
        unsafe { walk.gather(&mut piece[..length]) };
        done += write_from(sieve, view, start.checked_add(done)?, &piece[..length])?;
    }
    Some(done)
}

/// Writes all, or nothing that counts.
fn write_from(sieve: &mut Sieve, view: &View, start: u64, data: &[u8]) -> Option<u64> {
    let Sieve { descriptor, engine, buffer, map } = sieve;
    let mut done = 0;
    while done < data.len() {
        let at = start.checked_add(done as u64)?;
        match descriptor.write(engine, &view.bytes, map, buffer, at, &data[done..]).ok()? {
            0 => return None,
            went => done += went as usize,
        }
    }
    Some(done as u64)
}

/// Room to gather scattered memory in. `None` where there is none: the MPI library may do without.
fn piece(memory: &Memory) -> Option<Vec<u8>> {
    let length = usize::try_from(memory.bytes()).ok()?.min(PIECE_BYTES);
    let mut piece = Vec::new();
    piece.try_reserve_exact(length).ok()?;
    piece.resize(length, 0);
    Some(piece)
}
