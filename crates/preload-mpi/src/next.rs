//! The next definition of a name: that of another preloaded tool, or the MPI library's.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use mpi::Library;

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

pub(crate) fn find(name: &CStr) -> *mut c_void {
    // SAFETY: dlsym(3) with a NUL-terminated name. RTLD_NEXT means: behind this library.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() {
        return next;
    }
    // An MPI library that was loaded with RTLD_LOCAL is not in that order. Its Fortran bindings may be a
    // library of their own, which then cannot be found; nobody loads those so.
    Library::find()
        .and_then(|library| library.symbol(name))
        .map_or(std::ptr::null_mut(), |at| at.as_ptr())
}
