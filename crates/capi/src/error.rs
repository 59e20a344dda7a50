//! What can go wrong, and how C learns of it.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A pointer that must lead somewhere is NULL.
    #[error("`{argument}` is NULL")]
    Null {
        /// The parameter.
        argument: &'static str,
    },
    /// A handle that is not open.
    #[error("this is no open {kind}: it was closed already, or never was one")]
    Stale {
        /// What it should be a handle of.
        kind: &'static str,
    },
    /// More bytes than there can be.
    #[error("`{argument}` is {value}, which is out of range")]
    Range {
        /// The parameter.
        argument: &'static str,
        /// What was given.
        value: i128,
    },
    /// A name that leads nowhere.
    #[error(transparent)]
    Reach(#[from] reach::Error),
    /// The service refused, or cannot be reached.
    #[error("{operation} {name}")]
    Service {
        /// What was tried, as the man page calls it.
        operation: &'static str,
        /// The file.
        name: String,
        /// Why.
        #[source]
        source: client::Error,
    },
    /// A bug of ours, caught.
    #[error("a bug in Sluice was caught; the file's state is unknown")]
    Panicked,
}

impl Error {
    /// The number for `errno`.
    #[must_use]
    pub fn to_errno(&self) -> c_int {
        match self {
            Self::Null { .. } | Self::Range { .. } => libc::EINVAL,
            Self::Stale { .. } => libc::EBADF,
            Self::Reach(error) => error.to_errno(),
            Self::Service { source, .. } => source.to_errno().raw(),
            Self::Panicked => libc::EIO,
        }
    }
}

/// An error with all that caused it.
pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

thread_local! {
    /// The last error of this thread, in words.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Carries out `work`; its error goes to `errno` and to [`sluice_error`], and `failed` to the caller.
pub(crate) fn report<T>(failed: T, work: impl FnOnce() -> Result<T>) -> T {
    // A panic must not cross into C. What is behind our handles is only changed in steps that leave it whole.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let error = match done.unwrap_or(Err(Error::Panicked)) {
        Ok(value) => return value,
        Err(error) => error,
    };
    let text = CString::new(in_words(&error)).unwrap_or_default();
    // While the thread is ending there is nobody left to ask for words.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
    // SAFETY: __errno_location(3) never fails and its place is this thread's own.
    unsafe { *libc::__errno_location() = error.to_errno() };
    failed
}

/// `sluice_error`: the last error of this thread in words; valid until the thread's next call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(<&CStr>::default().as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_has_the_errno_that_fits_and_says_its_causes_once() {
        assert_eq!(Error::Null { argument: "name" }.to_errno(), libc::EINVAL);
        assert_eq!(Error::Stale { kind: "file" }.to_errno(), libc::EBADF);
        assert_eq!(Error::Panicked.to_errno(), libc::EIO);
        let source = client::Error::Refused(p9::Errno::ENOENT);
        let error = Error::Service { operation: "open", name: "scdc:///a/b".into(), source };
        assert_eq!(error.to_errno(), libc::ENOENT);
        assert_eq!(in_words(&error), format!("open scdc:///a/b: {}", p9::Errno::ENOENT.message()));
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
