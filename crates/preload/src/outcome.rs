//! What a hook decides, and how that reaches the program.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use p9::Errno;

/// What an operation says of a call.
pub(crate) enum Outcome<T> {
    /// Done; this is the call's result.
    Handled(T),
    /// Not ours after all: libc does it.
    PassThrough,
    /// It failed: the call's error value, and this in `errno`.
    Fail(Errno),
}

impl<T> From<Result<T, Errno>> for Outcome<T> {
    fn from(result: Result<T, Errno>) -> Self {
        match result {
            Ok(value) => Outcome::Handled(value),
            Err(errno) => Outcome::Fail(errno),
        }
    }
}

/// What a C function returns when it fails.
pub(crate) trait CReturn: Copy {
    fn failed(errno: Errno) -> Self;
}

macro_rules! minus_one {
    ($($t:ty),*) => {$(
        impl CReturn for $t {
            fn failed(errno: Errno) -> Self {
                set_errno(errno);
                -1
            }
        }
    )*};
}
minus_one!(i32, i64, isize);

impl CReturn for *mut libc::c_void {
    /// `MAP_FAILED`: mmap(2) and mremap(2) are the only hooks that return such a pointer.
    fn failed(errno: Errno) -> Self {
        set_errno(errno);
        libc::MAP_FAILED
    }
}

impl CReturn for *mut libc::c_char {
    fn failed(errno: Errno) -> Self {
        set_errno(errno);
        std::ptr::null_mut()
    }
}

impl CReturn for *mut libc::FILE {
    fn failed(errno: Errno) -> Self {
        set_errno(errno);
        std::ptr::null_mut()
    }
}

/// The result of functions that return the error number itself and leave `errno` alone
/// (posix_fallocate(3), posix_fadvise(2), posix_spawn(3)).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct ErrorNumber(
    #[allow(dead_code, reason = "read by the caller in C")] pub(crate) i32,
);

impl CReturn for ErrorNumber {
    fn failed(errno: Errno) -> Self {
        ErrorNumber(errno.raw())
    }
}

/// Sets `errno`.
pub(crate) fn set_errno(errno: Errno) {
    // SAFETY: __errno_location(3) returns a valid pointer to the calling thread's errno.
    unsafe { *libc::__errno_location() = errno.raw() }
}

fn errno() -> i32 {
    // SAFETY: as in `set_errno`.
    unsafe { *libc::__errno_location() }
}

/// Set after a caught panic: no new file is claimed and files already claimed fail with EIO,
/// because what is known about them may be wrong.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Whether a panic has been caught in this process.
pub(crate) fn is_broken() -> bool {
    BROKEN.load(Ordering::Relaxed)
}

thread_local! {
    /// How often this thread is inside Sluice. A hook that is entered while it is was called from a
    /// signal handler, or by libc on our own behalf (looking up a host name reads files).
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether the calling thread is inside Sluice already.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

/// The same, asked from within an operation: whether the hook that runs it was entered from inside Sluice.
pub(crate) fn is_nested() -> bool {
    DEPTH.get() > 1
}

/// Whether only calls that are not ours can be served: waiting for a lock would be waiting for
/// ourselves, or what is known may be wrong. What is ours fails with EIO then.
#[inline]
pub(crate) fn is_restricted() -> bool {
    is_nested() || is_broken()
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE` (pthread.h).
const CANCEL_DISABLE: c_int = 1;

/// A stay inside Sluice, during which the thread cannot be cancelled: what libc does for us has cancellation
/// points (a file that is dropped is closed), and unwinding from there through our frames would end the
/// process.
struct Inside {
    cancel_state: c_int,
}

impl Inside {
    fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        let mut cancel_state = 0;
        // SAFETY: pthread_setcancelstate(3), with room for the state before.
        unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut cancel_state) };
        Self { cancel_state }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // SAFETY: the state that was before; POSIX allows NULL for the other on Linux (NOTES there).
        unsafe { pthread_setcancelstate(self.cancel_state, std::ptr::null_mut()) };
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Runs an operation on behalf of a hook: no panic leaves it, and `errno` stays as it was unless the
/// call fails. In a call from a signal handler that interrupted Sluice itself the operation runs
/// restricted (see [`is_restricted`]).
pub(crate) fn guarded<T>(operation: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let inside = Inside::enter();
    let before = errno();
    let outcome = catch_unwind(AssertUnwindSafe(operation)).unwrap_or_else(|_| {
        BROKEN.store(true, Ordering::Relaxed);
        Outcome::Fail(Errno::EIO)
    });
    drop(inside);
    // SAFETY: as in `set_errno`.
    unsafe { *libc::__errno_location() = before };
    outcome
}
