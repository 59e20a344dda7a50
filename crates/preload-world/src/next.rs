//! The next definition of a name: that of another preloaded tool, or the MPI library's.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use mpi::{Library, Mpi};

/// The next definition of one name, found when it is first needed: a program may load MPI late.
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null if nobody behind us defines the name.
    #[inline]
    pub(crate) fn address(&self) -> *const c_void {
        let known = self.address.load(Ordering::Acquire);
        if known.is_null() { self.search() } else { known }
    }

    #[cold]
    fn search(&self) -> *const c_void {
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
    // An MPI library that was loaded with RTLD_LOCAL is not in that order.
    Library::find()
        .and_then(|library| library.symbol(name))
        .map_or(std::ptr::null_mut(), |at| at.as_ptr())
}

/// The answer to a call that nobody implements: only a program that looked the name up by itself can
/// make one.
#[cold]
pub(crate) fn missing() -> c_int {
    /// MPI_ERR_OTHER of Open MPI and the standard interface.
    const OTHER: c_int = 16;
    Mpi::find().map_or(OTHER, |mpi| mpi.constants().numbers.error.other)
}
