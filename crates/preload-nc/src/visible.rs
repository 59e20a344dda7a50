//! Whether a coupled file exists: it does for the program that reads it, before it was written, as opening it waits for it.
//!
//! Programs ask before they open (Fortran's `inquire` calls `access`), and some skip reading without a word if the answer is no.
//! Calls through the PLT come here; only for a name that does not exist the configuration is asked.

use std::ffi::{c_char, c_int, c_uint, c_void};

use mpi::Next;

use crate::process;
use crate::symbol::c_name;

/// Who may do what with it: everybody may read.
const MODE: u32 = libc::S_IFREG | 0o444;

/// Whether a call has failed because there is no such file, and there will be.
///
/// # Safety
/// NULL or a string.
unsafe fn is_expected(result: c_int, path: *const c_char) -> bool {
    // SAFETY: the caller's promise; errno is this thread's.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let expected = result == -1
            && (before == libc::ENOENT || before == libc::ENOTDIR)
            && process::is_expected(path);
        *errno = before;
        expected
    }
}

/// A file of which only that much is known.
///
/// # Safety
/// Room for a `struct stat`.
unsafe fn fill_stat(stat: *mut libc::stat) -> c_int {
    // SAFETY: the caller's promise; all fields may be zero.
    unsafe {
        stat.write_bytes(0, 1);
        (*stat).st_mode = MODE;
        (*stat).st_nlink = 1;
        (*stat).st_uid = libc::getuid();
        (*stat).st_gid = libc::getgid();
        (*stat).st_blksize = 4096;
    }
    0
}

/// # Safety
/// Room for a `struct statx`.
unsafe fn fill_statx(statx: *mut libc::statx) -> c_int {
    // SAFETY: the caller's promise; all fields may be zero.
    unsafe {
        statx.write_bytes(0, 1);
        (*statx).stx_mask = libc::STATX_BASIC_STATS;
        (*statx).stx_mode = MODE as u16;
        (*statx).stx_nlink = 1;
        (*statx).stx_uid = libc::getuid();
        (*statx).stx_gid = libc::getgid();
        (*statx).stx_blksize = 4096;
    }
    0
}

/// A question about a path: the next definition is asked first.
macro_rules! questions {
    ($($name:ident($($arg:ident: $ty:ty),*) of $path:ident => $answer:expr;)+) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
            static NEXT: Next = Next::of_any(c_name!(stringify!($name)));
            let address = NEXT.address();
            if address.is_null() {
                // SAFETY: errno is this thread's.
                unsafe { *libc::__errno_location() = libc::ENOSYS };
                return -1;
            }
            // SAFETY: the next definition of this name has libc's signature, which the declaration repeats.
            let next = unsafe {
                std::mem::transmute::<*const c_void, unsafe extern "C" fn($($ty),*) -> c_int>(address)
            };
            // SAFETY: the program's own arguments.
            unsafe {
                let result = next($($arg),*);
                if is_expected(result, $path) { $answer } else { result }
            }
        }
    )+ };
}

/// Nobody may write to it or run it.
fn grant(mode: c_int) -> c_int {
    if mode & (libc::W_OK | libc::X_OK) == 0 {
        return 0;
    }
    // SAFETY: errno is this thread's.
    unsafe { *libc::__errno_location() = libc::EACCES };
    -1
}

questions! {
    access(path: *const c_char, mode: c_int) of path => grant(mode);
    faccessat(at: c_int, path: *const c_char, mode: c_int, flags: c_int) of path => grant(mode);
    eaccess(path: *const c_char, mode: c_int) of path => grant(mode);
    euidaccess(path: *const c_char, mode: c_int) of path => grant(mode);
    stat(path: *const c_char, stat: *mut libc::stat) of path => fill_stat(stat);
    stat64(path: *const c_char, stat: *mut libc::stat) of path => fill_stat(stat);
    lstat(path: *const c_char, stat: *mut libc::stat) of path => fill_stat(stat);
    lstat64(path: *const c_char, stat: *mut libc::stat) of path => fill_stat(stat);
    fstatat(at: c_int, path: *const c_char, stat: *mut libc::stat, flags: c_int) of path
        => fill_stat(stat);
    fstatat64(at: c_int, path: *const c_char, stat: *mut libc::stat, flags: c_int) of path
        => fill_stat(stat);
    __xstat(version: c_int, path: *const c_char, stat: *mut libc::stat) of path => fill_stat(stat);
    __xstat64(version: c_int, path: *const c_char, stat: *mut libc::stat) of path
        => fill_stat(stat);
    __lxstat(version: c_int, path: *const c_char, stat: *mut libc::stat) of path => fill_stat(stat);
    __lxstat64(version: c_int, path: *const c_char, stat: *mut libc::stat) of path
        => fill_stat(stat);
    __fxstatat(
        version: c_int, at: c_int, path: *const c_char, stat: *mut libc::stat, flags: c_int
    ) of path => fill_stat(stat);
    __fxstatat64(
        version: c_int, at: c_int, path: *const c_char, stat: *mut libc::stat, flags: c_int
    ) of path => fill_stat(stat);
    statx(at: c_int, path: *const c_char, flags: c_int, mask: c_uint, statx: *mut libc::statx) of path
        => fill_statx(statx);
}
