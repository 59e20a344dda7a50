//! What the fallback adds. With plain interposition libc's own use of its functions is not seen: stdio
//! would open and read past us. There a redirected `FILE*` is one of fopencookie(3), and functions
//! that libc serves from within itself refuse a redirected path instead of taking it for a local one.

use std::ffi::{CStr, c_char, c_int, c_void};

use p9::Errno;

use super::{Named, hooks, original};
use crate::context::{Located, is_far, locate};
use crate::glance::may_be_far;
use crate::ops::{data, descriptor, open};
use crate::outcome::{CReturn, Outcome, guarded, set_errno};

type Path = *const c_char;
type File = *mut libc::FILE;

const CWD: c_int = libc::AT_FDCWD;

/// The flags that a mode of fopen(3) stands for.
fn mode_flags(mode: *const c_char) -> Result<c_int, Errno> {
    if mode.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: fopen(3): a NUL-terminated mode.
    let mode = unsafe { CStr::from_ptr(mode) }.to_bytes();
    let update = mode.contains(&b'+');
    let mut flags = match mode.first() {
        Some(b'r') => 0,
        Some(b'w') => libc::O_CREAT | libc::O_TRUNC,
        Some(b'a') => libc::O_CREAT | libc::O_APPEND,
        _ => return Err(Errno::EINVAL),
    };
    flags |= match (update, mode.first()) {
        (true, _) => libc::O_RDWR,
        (false, Some(b'r')) => libc::O_RDONLY,
        (false, _) => libc::O_WRONLY,
    };
    for letter in mode {
        match letter {
            b'x' => flags |= libc::O_EXCL,
            b'e' => flags |= libc::O_CLOEXEC,
            _ => {}
        }
    }
    Ok(flags)
}

/// `cookie_io_functions_t` of fopencookie(3).
#[repr(C)]
struct CookieFunctions {
    read: unsafe extern "C" fn(*mut c_void, *mut c_char, usize) -> isize,
    write: unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> isize,
    seek: unsafe extern "C" fn(*mut c_void, *mut i64, c_int) -> c_int,
    close: unsafe extern "C" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: CookieFunctions) -> File;
}

fn counted(outcome: Outcome<usize>, failed: isize) -> isize {
    match outcome {
        Outcome::Handled(count) => count as isize,
        Outcome::Fail(errno) => {
            set_errno(errno);
            failed
        }
        Outcome::PassThrough => failed,
    }
}

unsafe extern "C" fn cookie_read(cookie: *mut c_void, to: *mut c_char, count: usize) -> isize {
    let fd = cookie as usize as c_int;
    counted(
        guarded(|| super::data::buffer(to.cast(), count).and_then(|b| data::read(fd, b)).into()),
        -1,
    )
}

unsafe extern "C" fn cookie_write(cookie: *mut c_void, from: *const c_char, count: usize) -> isize {
    let fd = cookie as usize as c_int;
    // fopencookie(3): a write function returns 0, not −1, for an error.
    counted(
        guarded(|| super::data::data(from.cast(), count).and_then(|d| data::write(fd, d)).into()),
        0,
    )
}

unsafe extern "C" fn cookie_seek(cookie: *mut c_void, offset: *mut i64, whence: c_int) -> c_int {
    let fd = cookie as usize as c_int;
    // SAFETY: fopencookie(3): a pointer to the offset, in and out.
    let offset = unsafe { &mut *offset };
    match guarded(|| data::seek(fd, *offset, whence).into()) {
        Outcome::Handled(now) => {
            *offset = now;
            0
        }
        Outcome::Fail(errno) => c_int::failed(errno),
        Outcome::PassThrough => -1,
    }
}

unsafe extern "C" fn cookie_close(cookie: *mut c_void) -> c_int {
    let fd = cookie as usize as c_int;
    match guarded(|| descriptor::close(fd).into()) {
        Outcome::Handled(()) => 0,
        Outcome::Fail(errno) => c_int::failed(errno),
        Outcome::PassThrough => -1,
    }
}

/// fopen(3).
unsafe extern "C-unwind" fn open_stream<H: Named>(path: Path, mode: *const c_char) -> File {
    if may_be_far(CWD, path) {
        let opened = guarded(|| match locate(CWD, path) {
            Located::Far(place) => {
                mode_flags(mode).and_then(|flags| open::open(&place, flags, 0o666)).into()
            }
            Located::Nowhere(errno) => Outcome::Fail(errno),
            Located::Near(_) | Located::Here => Outcome::PassThrough,
        });
        match opened {
            Outcome::Handled(fd) => {
                let functions = CookieFunctions {
                    read: cookie_read,
                    write: cookie_write,
                    seek: cookie_seek,
                    close: cookie_close,
                };
                // SAFETY: functions of the documented types; the cookie is a number, not a pointer.
                return unsafe { fopencookie(fd as usize as *mut c_void, mode, functions) };
            }
            Outcome::Fail(errno) => return File::failed(errno),
            Outcome::PassThrough => {}
        }
    }
    // SAFETY: the program's own arguments.
    unsafe { original!(H: fn(Path, *const c_char) -> File)(path, mode) }
}

/// Functions with a path first that return a pointer or −1: refused for redirected paths.
macro_rules! refused {
    ($( $(#[$meta:meta])* [$($name:ident)+] fn $hook:ident($($arg:ident : $ty:ty),*) -> $ret:ty; )+) => {
        hooks! {
            $(
                $(#[$meta])*
                Interposing [$($name)+]
                fn $hook(path: Path $(, $arg: $ty)*) -> $ret
                where is_far(CWD, path) => {
                    let _ = ($($arg,)*);
                    Outcome::Fail(Errno::EOPNOTSUPP)
                };
            )+
            => also {
                Interposing open_stream [fopen64 fopen]
            }
        }
    };
}

refused! {
    /// opendir(3).
    [opendir] fn open_directory() -> *mut c_char;
    /// freopen(3).
    [freopen64 freopen] fn reopen_stream(mode: *const c_char, file: File) -> File;
    /// scandir(3).
    [scandir64 scandir]
    fn scan_directory(list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> c_int;
    /// ftw(3).
    [ftw64 ftw] fn file_tree_walk(function: *mut c_void, depth: c_int) -> c_int;
    /// nftw(3).
    [nftw64 nftw]
    fn new_file_tree_walk(function: *mut c_void, depth: c_int, flags: c_int) -> c_int;
    /// glob(3): a pattern below a mapped prefix.
    [glob64 glob]
    fn glob(flags: c_int, error: *mut c_void, result: *mut c_void) -> c_int;
}
