//! What the interface refuses by itself, and how C learns of it.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

/// The result of what stands behind a function of the interface.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A pointer that has to lead somewhere does not.
    #[error("`{argument}` is NULL")]
    Null {
        /// Name of the argument.
        argument: &'static str,
    },
    /// The caller's memory for data is nowhere.
    #[error("`buff` is NULL, for {byte_count} bytes")]
    NoMemory {
        /// How many bytes were to be carried.
        byte_count: usize,
    },
    /// Less than no tuples.
    #[error("a list of {count} tuples")]
    TupleCount {
        /// How many.
        count: c_int,
    },
    /// More bytes than memory can have.
    #[error("`{argument}` is {bytes} bytes, more than memory has")]
    TooLarge {
        /// Name of the argument.
        argument: &'static str,
        /// How many.
        bytes: usize,
    },
    /// The sieving buffer and the caller's memory are, in part, the same.
    #[error("`buff` and the sieving buffer overlap")]
    Overlap,
    /// A method that does not exist.
    #[error("dsMethod {method} is none")]
    Method {
        /// The number.
        method: c_int,
    },
    /// A way to lock that does not exist.
    #[error("locking {locking} is none")]
    Locking {
        /// The number.
        locking: c_int,
    },
    /// A value of the info that cannot be.
    #[error("info: `{field}` is {value}, which cannot be")]
    Info {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A number that is no descriptor.
    #[error("{fd} is no file descriptor")]
    Descriptor {
        /// The number.
        fd: c_int,
    },
    /// The engine's reason.
    #[error("{}", with_causes(.0))]
    Transfer(transfer::Error),
    /// A mistake of ours.
    #[error("an error within the library")]
    Panicked,
}

/// An error with its causes, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl From<sieve::Error> for Error {
    fn from(error: sieve::Error) -> Self {
        Error::Transfer(error.into())
    }
}

impl From<transfer::Error> for Error {
    fn from(error: transfer::Error) -> Self {
        Error::Transfer(error)
    }
}

impl Error {
    /// The number for `errno`.
    #[must_use]
    pub fn to_errno(&self) -> c_int {
        match self {
            Error::Null { .. }
            | Error::TupleCount { .. }
            | Error::TooLarge { .. }
            | Error::Overlap
            | Error::Method { .. }
            | Error::Locking { .. }
            | Error::Info { .. } => libc::EINVAL,
            Error::NoMemory { .. } => libc::EFAULT,
            Error::Descriptor { .. } => libc::EBADF,
            Error::Transfer(error) => error.to_errno().raw_os_error(),
            Error::Panicked => libc::EIO,
        }
    }
}

thread_local! {
    /// The last error of this thread, in words.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Carries out `work`; its error goes to `errno` and to [`last`], and `failed` to the caller.
pub(crate) fn report<T>(failed: T, work: impl FnOnce() -> Result<T>) -> T {
    // A panic must not cross into C. What it may leave behind in a view is only what was learned.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let error = match done.unwrap_or(Err(Error::Panicked)) {
        Ok(value) => return value,
        Err(error) => error,
    };
    let text = CString::new(error.to_string()).unwrap_or_default();
    // While the thread is ending there is nobody left to ask for words.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
    // SAFETY: __errno_location(3) never fails and its place is this thread's own.
    unsafe { *libc::__errno_location() = error.to_errno() };
    failed
}

/// The last error of this thread, in words; valid until the next.
pub(crate) fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(<&CStr>::default().as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_the_errno_that_fits() {
        assert_eq!(Error::Null { argument: "view" }.to_errno(), libc::EINVAL);
        assert_eq!(Error::NoMemory { byte_count: 3 }.to_errno(), libc::EFAULT);
        assert_eq!(Error::Descriptor { fd: -1 }.to_errno(), libc::EBADF);
        assert_eq!(Error::Panicked.to_errno(), libc::EIO);
        let overflow = Error::from(sieve::Error::Overflow { tuple: 4 });
        assert_eq!(overflow.to_errno(), libc::EOVERFLOW);
        assert!(overflow.to_string().contains("tuple 4"));
    }

    #[test]
    fn a_panic_is_eio_and_the_thread_goes_on() {
        std::panic::set_hook(Box::new(|_| {}));
        assert_eq!(report(-1, || panic!("on purpose")), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EIO));
        assert_eq!(report(-1, || Ok(7)), 7);
        let _ = std::panic::take_hook();
    }
}
