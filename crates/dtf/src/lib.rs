//! `libdtf.so`: the functions of the Data Transfer Framework, for programs that were written for it.
//!
//! It does nothing by itself: what a program calls goes on to `libsluice_nc.so`, which `sluice run` has loaded into it. A
//! program that was started otherwise is told so by `dtf_init`, and all else does nothing: its files are files.
//!
//! # Source
//! Names and signatures: maneka07/DTF, libdtf/dtf.h and doc/README.use. What differs is said in docs/COUPLE.md.

use std::ffi::{CStr, c_char, c_int, c_void};

/// A function of the preloaded library.
fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym(3) with a NUL-terminated name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Calls a function of a name and a number.
///
/// # Safety
/// NULL or a string.
unsafe fn transfer(function_name: &CStr, file: *const c_char, ncid: c_int) -> c_int {
    let Some(address) = function(function_name) else { return 0 };
    // SAFETY: libsluice_nc.so gives these functions this signature.
    let function = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(*const c_char, c_int) -> c_int>(
            address,
        )
    };
    // SAFETY: the caller's promise.
    unsafe { function(file, ncid) }
}

/// The number behind a Fortran argument.
///
/// # Safety
/// NULL or a number.
unsafe fn number(place: *const c_int) -> c_int {
    // SAFETY: the caller's promise.
    if place.is_null() { -1 } else { unsafe { place.read() } }
}

/// `int dtf_init(const char *filename, char *module_name)`
///
/// # Safety
/// Two strings.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dtf_init(file: *const c_char, component: *const c_char) -> c_int {
    let Some(address) = function(c"sluice_couple_init") else {
        let line = b"dtf_init: nothing is coupled: start the program by `sluice couple run` or `sluice run --couple`\n";
        // SAFETY: write(2) of a string; if it fails nobody listens.
        unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
        return 1;
    };
    // SAFETY: libsluice_nc.so gives this function this signature.
    let init = unsafe {
        std::mem::transmute::<
            *mut c_void,
            unsafe extern "C-unwind" fn(*const c_char, *const c_char) -> c_int,
        >(address)
    };
    // SAFETY: the caller's promise.
    c_int::from(unsafe { init(file, component) } != 0)
}

/// `int dtf_finalize(void)`
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dtf_finalize() -> c_int {
    // SAFETY: no name.
    unsafe { transfer(c"sluice_couple_leave", std::ptr::null(), -1) }
}

/// `int dtf_transfer(const char *filename, int ncid)`
///
/// # Safety
/// NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dtf_transfer(file: *const c_char, ncid: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { transfer(c"sluice_couple_transfer", file, ncid) }
}

/// `int dtf_transfer_all_files(void)`
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dtf_transfer_all_files() -> c_int {
    // SAFETY: no name.
    unsafe { transfer(c"sluice_couple_transfer", std::ptr::null(), -1) }
}

/// `void dtf_transfer_multiple(const char *filename, int ncid)`
///
/// # Safety
/// NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dtf_transfer_multiple(file: *const c_char, ncid: c_int) {
    // SAFETY: the caller's promise.
    unsafe { transfer(c"sluice_couple_transfer_multiple", file, ncid) };
}

/// `void dtf_complete_multiple(const char *filename, int ncid)`
///
/// # Safety
/// NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dtf_complete_multiple(file: *const c_char, ncid: c_int) {
    // SAFETY: the caller's promise.
    unsafe { transfer(c"sluice_couple_complete_multiple", file, ncid) };
}

/// Timers of DTF, which measure nothing here.
macro_rules! timers {
    ($($name:ident)+) => { $(
        #[doc = concat!("`void ", stringify!($name), "(void)`")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() {}
    )+ };
}

timers! { dtf_time_start dtf_time_end dtf_time_tend dtf_tstart dtf_tend dtf_time_start_ dtf_time_end_ }

/// Fortran's `dtf_init(filename, module_name, ierr)`
///
/// # Safety
/// Two strings, and room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dtf_init_(
    file: *const c_char,
    component: *const c_char,
    error: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe { error.write(dtf_init(file, component)) };
}

/// Fortran's `dtf_finalize(ierr)`
///
/// # Safety
/// Room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dtf_finalize_(error: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe { error.write(dtf_finalize()) };
}

/// Fortran's `dtf_transfer(filename, ncid, ierr)`
///
/// # Safety
/// A string, a number, and room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dtf_transfer_(
    file: *const c_char,
    ncid: *const c_int,
    error: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe { error.write(dtf_transfer(file, number(ncid))) };
}

/// Fortran's `dtf_transfer_all_files()`
#[unsafe(no_mangle)]
pub extern "C-unwind" fn dtf_transfer_all_files_() {
    dtf_transfer_all_files();
}

/// Fortran's `dtf_transfer_multiple(filename, ncid)`
///
/// # Safety
/// A string and a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dtf_transfer_multiple_(file: *const c_char, ncid: *const c_int) {
    // SAFETY: the caller's promise.
    unsafe { dtf_transfer_multiple(file, number(ncid)) };
}

/// Fortran's `dtf_complete_multiple(filename, ncid)`
///
/// # Safety
/// A string and a number.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dtf_complete_multiple_(file: *const c_char, ncid: *const c_int) {
    // SAFETY: the caller's promise.
    unsafe { dtf_complete_multiple(file, number(ncid)) };
}
