//! What is noted of calls that the MPI library carries out: files opened and closed, views, hints.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use mpi::Mpi;

use crate::epochs::{self, Agreement};
use crate::files::{self, OpenFile};
use crate::strided::guarded;

/// Agrees with the other ranks on what to tell a host log. The error is the code with which MPI_File_open fails.
///
/// # Safety
///
/// The first two arguments of MPI_File_open.
pub(crate) unsafe fn opening(comm: usize, name: *const c_char) -> Result<Option<Agreement>, c_int> {
    let agreed = guarded(|| {
        let mpi = Mpi::find().ok()?;
        if name.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        let (comm, name) = unsafe { (mpi.comm(comm), CStr::from_ptr(name)) };
        epochs::agree(mpi, comm, name)
    });
    match agreed {
        None => Ok(None),
        Some(Ok(agreement)) => Ok(Some(agreement)),
        Some(Err(epochs::Refusal::SeveralLogs | epochs::Refusal::NoAnswer)) => {
            let Ok(mpi) = Mpi::find() else { return Err(1) };
            let code = mpi.constants().numbers.error.io;
            // As every failure of MPI_File_open (MPI-4.1 §14.7).
            mpi.raise(mpi.constants().file_null, code);
            Err(code)
        }
    }
}

/// # Safety
///
/// The arguments of an MPI_File_open that has succeeded.
pub(crate) unsafe fn opened(
    comm: usize,
    name: *const c_char,
    amode: c_int,
    info: usize,
    file: *mut c_void,
    agreement: Option<Agreement>,
) {
    guarded(|| {
        let mpi = Mpi::find().ok()?;
        // SAFETY: the caller's promise: a string, hints, and a place that holds a file.
        let (name, info, file) = unsafe {
            (CStr::from_ptr(name), mpi.info(info), mpi.file(file.cast::<usize>().read_unaligned()))
        };
        // SAFETY: as above.
        let ranks = mpi.size(unsafe { mpi.comm(comm) }).unwrap_or(u32::MAX);
        files::opened(mpi, file, name, amode, info, ranks, agreement);
        Some(())
    });
}

/// # Safety
///
/// The argument of MPI_File_close.
pub(crate) unsafe fn closing(file: *mut c_void) -> Option<Arc<OpenFile>> {
    guarded(|| {
        let mpi = Mpi::find().ok()?;
        if file.is_null() {
            return None;
        }
        // SAFETY: the caller's promise: a place that holds a file.
        files::closing(unsafe { mpi.file(file.cast::<usize>().read_unaligned()) })
    })
}

/// Tells the host log of a file that the MPI library has closed; false if it could not be told.
pub(crate) fn closed(file: Option<Arc<OpenFile>>) -> bool {
    guarded(|| Some(file?.member()?.leave())).unwrap_or(true)
}

/// The code with which a call fails that has no file any more.
pub(crate) fn io_error() -> c_int {
    Mpi::find().map_or(1, |mpi| mpi.constants().numbers.error.io)
}

/// Tells the host log that the MPI library has synchronised a file; false if it could not be told.
///
/// # Safety
///
/// The argument of MPI_File_sync.
pub(crate) unsafe fn synchronised(file: usize) -> bool {
    let told = guarded(|| {
        let mpi = Mpi::find().ok()?;
        // SAFETY: the caller's promise.
        Some(files::find(unsafe { mpi.file(file) })?.member()?.prepare())
    });
    told.unwrap_or(true)
}

/// # Safety
///
/// The arguments of an MPI_File_set_view that has succeeded.
pub(crate) unsafe fn viewed(
    file: usize,
    displacement: i64,
    etype: usize,
    filetype: usize,
    datarep: *const c_char,
    info: usize,
) {
    guarded(|| {
        let mpi = Mpi::find().ok()?;
        // SAFETY: the caller's promise.
        let file = files::find(unsafe { mpi.file(file) })?;
        // SAFETY: as above.
        let (etype, filetype, datarep, info) = unsafe {
            let datarep = CStr::from_ptr(datarep);
            (mpi.datatype(etype), mpi.datatype(filetype), datarep, mpi.info(info))
        };
        file.viewed(mpi, displacement, etype, filetype, datarep, info);
        Some(())
    });
}

/// # Safety
///
/// The file of an MPI_File_set_view that has failed.
pub(crate) unsafe fn view_refused(file: usize) {
    guarded(|| {
        let mpi = Mpi::find().ok()?;
        // SAFETY: the caller's promise. A handle that is no file's is in no table.
        files::find(unsafe { mpi.file(file) })?.view_refused();
        Some(())
    });
}

/// # Safety
///
/// The arguments of an MPI_File_set_info that has succeeded.
pub(crate) unsafe fn hinted(file: usize, info: usize) {
    guarded(|| {
        let mpi = Mpi::find().ok()?;
        // SAFETY: the caller's promise.
        let (file, info) = unsafe { (mpi.file(file), mpi.info(info)) };
        files::find(file)?.hinted(mpi, info);
        Some(())
    });
}

/// Makes what the sieve wrote durable; false if that failed.
///
/// # Safety
///
/// The argument of MPI_File_sync.
pub(crate) unsafe fn synchronise(file: usize) -> bool {
    let is_durable = guarded(|| {
        let mpi = Mpi::find().ok()?;
        // SAFETY: the caller's promise.
        Some(files::find(unsafe { mpi.file(file) })?.synchronise(mpi))
    });
    is_durable.unwrap_or(true)
}

/// Fails a call on a file: the file's error handler is called, as for an error of the library's own.
///
/// # Safety
///
/// An open file.
pub(crate) unsafe fn failed(file: usize) -> c_int {
    let Ok(mpi) = Mpi::find() else { return 1 };
    let code = mpi.constants().numbers.error.io;
    // SAFETY: the caller's promise.
    mpi.raise(unsafe { mpi.file(file) }, code);
    code
}
