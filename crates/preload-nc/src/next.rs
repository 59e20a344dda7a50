//! The next definition of a name: that of another preloaded tool, or the library's.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use mpi::Library;

/// The next definition of one name, found when it is first needed: a program may load PnetCDF late.
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null if nobody behind us defines the name.
    pub(crate) fn address(&self) -> *const c_void {
        let known = self.address.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        let found = find(self.name);
        self.address.store(found, Ordering::Release);
        found
    }
}

fn find(name: &CStr) -> *mut c_void {
    // SAFETY: dlsym(3) with a NUL-terminated name. RTLD_NEXT means: behind this library.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() {
        return next;
    }
    // A library that was loaded with RTLD_LOCAL, as Python's modules load theirs, is not in that order.
    let own: fn(&CStr) -> *mut c_void = find;
    Library::hidden(name, own as *const c_void).map_or(std::ptr::null_mut(), |at| at.as_ptr())
}

/// The name of a symbol, of pieces.
macro_rules! c_name {
    ($($piece:expr),+) => {{
        const NAME: &std::ffi::CStr =
            match std::ffi::CStr::from_bytes_with_nul(concat!($($piece),+, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a symbol name has no NUL"),
            };
        NAME
    }};
}
pub(crate) use c_name;
