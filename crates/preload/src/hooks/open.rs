//! open(2) in all its forms, and every other call that makes a descriptor: one that libc hands out
//! must not be taken for a redirected one that was closed behind our back.

use std::ffi::{c_char, c_int, c_uint};

use super::metadata::at;
use super::original;
use crate::context::{Located, locate};
use crate::description;
use crate::glance::may_be_far;
use crate::ops::open as ops;
use crate::outcome::Outcome;
use crate::table::{self, is_ours};

type Path = *const c_char;

const CWD: c_int = libc::AT_FDCWD;

fn open(dir: c_int, path: Path, flags: c_int, mode: c_uint) -> Outcome<c_int> {
    if let Located::Near(path) = locate(dir, path) {
        return crate::own::open(&path, flags, mode).into();
    }
    at(dir, path, |place| ops::open(place, flags, mode))
}

/// What the call returns, if it is ours.
fn open_far(dir: c_int, path: Path, flags: c_int, mode: c_uint) -> Option<c_int> {
    match crate::outcome::guarded(|| open(dir, path, flags, mode)) {
        Outcome::Handled(fd) => Some(fd),
        Outcome::Fail(errno) => Some(<c_int as crate::outcome::CReturn>::failed(errno)),
        Outcome::PassThrough => None,
    }
}

/// A descriptor that libc made. If the table still has its number, it was closed by a system call
/// that no hook saw.
#[inline(always)]
fn fresh(fd: c_int) -> c_int {
    if is_ours(fd) {
        forget_stale(fd);
    }
    fd
}

#[cold]
fn forget_stale(fd: c_int) {
    if crate::ops::process::owns_the_table() {
        let _ = description::forget(fd);
    }
}

/// libc's answer to a call that makes a descriptor, a [`fresh`] one. As long as the table has always been empty it is asked
/// by a jump and does not return here: after a system call the processor has forgotten where returns lead and guesses
/// wrong at each.
macro_rules! made {
    ($h:ident: ($($arg:ident : $ty:ty),*)) => {{
        /// Apart, so that the compiler does not make one call of the two.
        #[inline(never)]
        unsafe extern "C-unwind" fn looked_at<H: super::Named>($($arg: $ty),*) -> c_int {
            // SAFETY: the caller's.
            fresh(unsafe { original!(H: fn($($ty),*) -> c_int)($($arg),*) })
        }
        if table::any() {
            looked_at::<$h>($($arg),*)
        } else {
            original!($h: fn($($ty),*) -> c_int)($($arg),*)
        }
    }};
}

/// Hooks that open by path: ours, or libc's with the result checked. C passes `mode` only with
/// O_CREAT and O_TMPFILE; in the calling conventions of x86-64 and AArch64 an argument that was not
/// passed is a register with some value, which is then not looked at.
macro_rules! openers {
    ($(
        $(#[$meta:meta])*
        [$($name:ident)+]
        fn $hook:ident($($arg:ident : $ty:ty),*) -> far($dir:expr, $path:expr) =>
            $flags:expr, $mode:expr;
    )+) => {
        $(
            $(#[$meta])*
            pub(crate) unsafe extern "C-unwind" fn $hook<H: super::Named>($($arg: $ty),*) -> c_int {
                if !may_be_far($dir, $path) {
                    // SAFETY: the program's own arguments.
                    return unsafe { made!(H: ($($arg: $ty),*)) };
                }
                /// Apart, so that a call that is not ours need not keep its arguments.
                #[inline(never)]
                unsafe extern "C-unwind" fn second_look<H: super::Named>($($arg: $ty),*) -> c_int {
                    match open_far($dir, $path, $flags, $mode) {
                        Some(fd) => fd,
                        // SAFETY: the program's own arguments.
                        None => unsafe { made!(H: ($($arg: $ty),*)) },
                    }
                }
                // SAFETY: the program's own arguments.
                unsafe { second_look::<H>($($arg),*) }
            }
        )+
    };
}

openers! {
    /// open(2).
    [open64 open __open64_nocancel __open_nocancel]
    fn open_path(path: Path, flags: c_int, mode: c_uint) -> far(CWD, path) => flags, mode;

    /// openat(2).
    [openat64 openat __openat64_nocancel __openat_nocancel]
    fn open_at(dir: c_int, path: Path, flags: c_int, mode: c_uint) -> far(dir, path) => flags, mode;

    /// `_FORTIFY_SOURCE` form without a mode.
    [__open64_2 __open_2]
    fn open_checked(path: Path, flags: c_int) -> far(CWD, path) => flags, 0;

    /// `_FORTIFY_SOURCE` form without a mode.
    [__openat64_2 __openat_2]
    fn open_at_checked(dir: c_int, path: Path, flags: c_int) -> far(dir, path) => flags, 0;

    /// creat(2).
    [creat64 creat]
    fn create(path: Path, mode: c_uint) -> far(CWD, path)
        => libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, mode;
}

/// Hooks of calls that make a descriptor in other ways.
macro_rules! makers {
    ($( $(#[$meta:meta])* fn $hook:ident($($arg:ident : $ty:ty),*); )+) => {
        $(
            $(#[$meta])*
            pub(crate) unsafe extern "C-unwind" fn $hook<H: super::Named>($($arg: $ty),*) -> c_int {
                // SAFETY: the program's own arguments.
                unsafe { made!(H: ($($arg: $ty),*)) }
            }
        )+
    };
}

makers! {
    /// socket(2).
    fn socket(domain: c_int, kind: c_int, protocol: c_int);
    /// accept(2).
    fn accept(fd: c_int, address: *mut libc::sockaddr, len: *mut libc::socklen_t);
    /// accept4(2).
    fn accept4(fd: c_int, address: *mut libc::sockaddr, len: *mut libc::socklen_t, flags: c_int);
    /// eventfd(2).
    fn eventfd(value: c_uint, flags: c_int);
    /// epoll_create1(2).
    fn epoll_create1(flags: c_int);
    /// memfd_create(2).
    fn memfd_create(name: Path, flags: c_uint);
    /// inotify_init1(2).
    fn inotify_init1(flags: c_int);
    /// timerfd_create(2).
    fn timerfd_create(clock: c_int, flags: c_int);
}

unsafe fn pair<const N: usize>(result: c_int, fds: *mut c_int) -> c_int {
    if result == 0 && !fds.is_null() {
        for index in 0..N {
            // SAFETY: the call succeeded, so that it has written both.
            fresh(unsafe { *fds.add(index) });
        }
    }
    result
}

/// pipe(2).
pub(crate) unsafe extern "C-unwind" fn pipe<H: super::Named>(fds: *mut c_int) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe { pair::<2>(original!(H: fn(*mut c_int) -> c_int)(fds), fds) }
}

/// pipe2(2).
pub(crate) unsafe extern "C-unwind" fn pipe2<H: super::Named>(
    fds: *mut c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe { pair::<2>(original!(H: fn(*mut c_int, c_int) -> c_int)(fds, flags), fds) }
}

/// socketpair(2).
pub(crate) unsafe extern "C-unwind" fn socketpair<H: super::Named>(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    fds: *mut c_int,
) -> c_int {
    // SAFETY: the program's own arguments.
    unsafe {
        let call = original!(H: fn(c_int, c_int, c_int, *mut c_int) -> c_int);
        pair::<2>(call(domain, kind, protocol, fds), fds)
    }
}

/// recvmsg(2): descriptors may arrive, redirected ones among them.
pub(crate) unsafe extern "C-unwind" fn receive<H: super::Named>(
    fd: c_int,
    message: *mut libc::msghdr,
    flags: c_int,
) -> isize {
    // SAFETY: the program's own arguments.
    let result =
        unsafe { original!(H: fn(c_int, *mut libc::msghdr, c_int) -> isize)(fd, message, flags) };
    // SAFETY: the call succeeded, so that the header is the program's and filled in.
    if result >= 0 && unsafe { (*message).msg_controllen } > 0 {
        let _ = crate::outcome::guarded(|| {
            // SAFETY: as above.
            unsafe { adopt_received(message) };
            Outcome::Handled(())
        });
    }
    result
}

/// # Safety
/// `message` has been filled in by recvmsg(2).
unsafe fn adopt_received(message: *const libc::msghdr) {
    // SAFETY: cmsg(3): the headers lie within the control buffer of a valid message, and the data of
    // SCM_RIGHTS is an array of descriptors.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            let is_rights =
                (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS;
            if is_rights {
                let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
                let descriptors = libc::CMSG_DATA(header).cast::<c_int>();
                for index in 0..bytes / size_of::<c_int>() {
                    let fd = descriptors.add(index).read_unaligned();
                    fresh(fd);
                    description::adopt(fd);
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

super::table! {
    Always receive [recvmsg]
    Always open_path [open64 open __open64_nocancel __open_nocancel]
    Always open_at [openat64 openat __openat64_nocancel __openat_nocancel]
    Always open_checked [__open64_2 __open_2]
    Always open_at_checked [__openat64_2 __openat_2]
    Always create [creat64 creat]
    Always socket [socket]
    Always accept [accept]
    Always accept4 [accept4]
    Always eventfd [eventfd]
    Always epoll_create1 [epoll_create1]
    Always memfd_create [memfd_create]
    Always inotify_init1 [inotify_init1]
    Always timerfd_create [timerfd_create]
    Always pipe [pipe]
    Always pipe2 [pipe2]
    Always socketpair [socketpair]
}
