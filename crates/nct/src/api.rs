//! The functions of `nct.h`. What they promise stands there.

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sieve::{FileView, Tuple};
use transfer::{Engine, LocalFile, Locking};

use crate::callback::{Callback, NctAggregate};
use crate::error::{self, Error, Result, report};
use crate::view::{Buffer, NctInfo, NctTuple, NctTuple64, View};

/// What size_t functions return on failure, as pread(2) returns -1.
const FAILED: usize = usize::MAX;

/// The view behind the pointer that C has.
///
/// # Safety
/// It is NULL, or came from `nct_create_view` and has not been destroyed.
unsafe fn locked<'a>(view: *mut c_void) -> Result<MutexGuard<'a, View>> {
    // SAFETY: the caller's promise; `create` made it of a Box<Mutex<View>>.
    let view = unsafe { view.cast::<Mutex<View>>().as_ref() };
    let view = view.ok_or(Error::Null { argument: "view" })?;
    // A panic under the lock was reported then; a view is sound whatever it has learned.
    Ok(view.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The file behind a descriptor of the caller's.
///
/// # Safety
/// The caller keeps it open during the call. A number that is no open file is EBADF from the kernel.
unsafe fn file<'a>(fd: c_int) -> Result<LocalFile<'a>> {
    if fd < 0 {
        return Err(Error::Descriptor { fd });
    }
    // SAFETY: not -1; nothing but system calls is done with it, which check it themselves.
    Ok(LocalFile::new(unsafe { BorrowedFd::borrow_raw(fd) }))
}

/// # Safety
/// `list` leads to `count` tuples, `info` is NULL or leads to one, and `ds_buf` is NULL or leads to
/// `ds_bufsize` bytes that stay.
unsafe fn create<T: Copy>(
    initial_offset: u64,
    ds_bufsize: usize,
    ds_buf: *mut c_void,
    count: usize,
    list: *const T,
    info: *const NctInfo,
    tuple: impl Fn(T) -> Tuple,
) -> Result<*mut c_void> {
    if list.is_null() {
        return Err(Error::Null { argument: "list" });
    }
    if count.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Error::TooLarge {
            argument: "list",
            bytes: count.saturating_mul(size_of::<T>()),
        });
    }
    // SAFETY: the caller's promise, and no longer than a slice may be.
    let tuples = unsafe { std::slice::from_raw_parts(list, count) };
    let file_view = FileView::from_tuples(initial_offset, tuples.iter().map(|t| tuple(*t)))?;
    // SAFETY: the caller's promise.
    let engine = NctInfo::engine(unsafe { info.as_ref() })?;
    let buffer = Buffer::new(ds_buf, ds_bufsize)?;
    Ok(Box::into_raw(Box::new(Mutex::new(View { file_view, engine, buffer }))).cast())
}

/// `nct_create_view`.
///
/// # Safety
/// As `nct.h` says: `list` leads to `tuple_count` tuples, `info` is NULL or leads to an `nct_info`,
/// and `ds_buf` is NULL or leads to `ds_bufsize` bytes that nobody else uses while the view is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nct_create_view(
    initial_offset: u32,
    ds_bufsize: usize,
    ds_buf: *mut c_void,
    tuple_count: c_int,
    list: *mut NctTuple,
    info: *mut NctInfo,
) -> *mut c_void {
    report(std::ptr::null_mut(), || {
        let count = usize::try_from(tuple_count);
        let count = count.map_err(|_| Error::TupleCount { count: tuple_count })?;
        let tuple = |t: NctTuple| Tuple { size: t.size.into(), hole: t.delta_offset.into() };
        // SAFETY: the caller's promise.
        unsafe { create(initial_offset.into(), ds_bufsize, ds_buf, count, list, info, tuple) }
    })
}

/// `nct_create_view64`.
///
/// # Safety
/// As [`nct_create_view`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nct_create_view64(
    initial_offset: u64,
    ds_bufsize: usize,
    ds_buf: *mut c_void,
    tuple_count: u64,
    list: *const NctTuple64,
    info: *const NctInfo,
) -> *mut c_void {
    report(std::ptr::null_mut(), || {
        let count = usize::try_from(tuple_count).unwrap_or(usize::MAX);
        let tuple = |t: NctTuple64| Tuple { size: t.size, hole: t.delta_offset };
        // SAFETY: the caller's promise.
        unsafe { create(initial_offset, ds_bufsize, ds_buf, count, list, info, tuple) }
    })
}

/// `nct_destroy_view`. NULL is no view and is left alone, as by free(3).
///
/// # Safety
/// `view` is NULL, or came from `nct_create_view`; nobody uses it now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nct_destroy_view(view: *mut c_void) {
    if !view.is_null() {
        // SAFETY: the caller's promise; `create` made it of such a Box.
        let view = unsafe { Box::from_raw(view.cast::<Mutex<View>>()) };
        report((), move || {
            drop(view);
            Ok(())
        });
    }
}

/// Checks the caller's memory for data.
fn check_memory(buff: *const c_void, byte_count: usize, buffer: &Buffer) -> Result<()> {
    if byte_count > isize::MAX as usize {
        return Err(Error::TooLarge { argument: "byte_count", bytes: byte_count });
    }
    if buff.is_null() && byte_count > 0 {
        return Err(Error::NoMemory { byte_count });
    }
    if buffer.overlaps(buff.cast(), byte_count) {
        return Err(Error::Overlap);
    }
    Ok(())
}

/// `nct_read`.
///
/// # Safety
/// `buff` leads to `byte_count` bytes that nobody else uses meanwhile; `view` as for
/// [`nct_destroy_view`], but it may be used by others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nct_read(
    fd: c_int,
    buff: *mut c_void,
    offset: u64,
    byte_count: usize,
    view: *mut c_void,
) -> usize {
    report(FAILED, || {
        // SAFETY: the caller's promise.
        let mut view = unsafe { locked(view) }?;
        // SAFETY: the caller's promise.
        let file = unsafe { file(fd) }?;
        check_memory(buff, byte_count, &view.buffer)?;
        let View { file_view, engine, buffer } = &mut *view;
        let mut nothing = [];
        let out = if byte_count == 0 {
            &mut nothing[..]
        } else {
            // SAFETY: not NULL, no longer than a slice may be, and apart from the sieving buffer
            // (`check_memory`); the rest is the caller's promise. It is only written to.
            unsafe { std::slice::from_raw_parts_mut(buff.cast::<u8>(), byte_count) }
        };
        Ok(engine.read(&file, file_view, buffer.bytes(), offset, out)? as usize)
    })
}

/// `nct_write`.
///
/// # Safety
/// `buff` leads to `byte_count` bytes that nobody changes meanwhile; `view` as for [`nct_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nct_write(
    fd: c_int,
    buff: *const c_void,
    offset: u64,
    byte_count: usize,
    view: *mut c_void,
) -> usize {
    report(FAILED, || {
        // SAFETY: the caller's promise.
        let mut view = unsafe { locked(view) }?;
        // SAFETY: the caller's promise.
        let file = unsafe { file(fd) }?;
        check_memory(buff, byte_count, &view.buffer)?;
        let View { file_view, engine, buffer } = &mut *view;
        let data = if byte_count == 0 {
            &[]
        } else {
            // SAFETY: as in `nct_read`.
            unsafe { std::slice::from_raw_parts(buff.cast::<u8>(), byte_count) }
        };
        Ok(engine.write(&file, file_view, buffer.bytes(), offset, data)? as usize)
    })
}

/// `nct_set_aggregate`.
///
/// # Safety
/// `view` as for [`nct_read`]; `function` is one of the declared type for as long as the view is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nct_set_aggregate(
    view: *mut c_void,
    function: Option<NctAggregate>,
    context: *mut c_void,
) -> c_int {
    report(-1, || {
        let function = function.ok_or(Error::Null { argument: "function" })?;
        // SAFETY: the caller's promise.
        let mut view = unsafe { locked(view) }?;
        let locking = view.engine.locks();
        let engine = Engine::with_function(Callback::new(function, context));
        view.engine = engine.locking(locking);
        Ok(0)
    })
}

/// `nct_set_locking`.
///
/// # Safety
/// `view` as for [`nct_read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nct_set_locking(view: *mut c_void, locking: c_int) -> c_int {
    report(-1, || {
        // The values of `enum nct_locking`.
        let locking = match locking {
            0 => Locking::Windows,
            1 => Locking::All,
            2 => Locking::SingleWriter,
            _ => return Err(Error::Locking { locking }),
        };
        // SAFETY: the caller's promise.
        unsafe { locked(view) }?.engine.set_locking(locking);
        Ok(0)
    })
}

/// `nct_last_error`.
#[unsafe(no_mangle)]
pub extern "C" fn nct_last_error() -> *const c_char {
    error::last()
}
