//! The next definition of a name, for libraries that stand before others: that of another preloaded tool, or the library's.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::Library;

/// The next definition of one name, found when it is first needed: a program may load its libraries late.
#[derive(Debug)]
pub struct Next {
    name: &'static CStr,
    find: fn(&CStr) -> *mut c_void,
    address: AtomicPtr<c_void>,
}

impl Next {
    /// Of a function of MPI.
    #[must_use]
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, find: next_of_mpi, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Of a function of any library.
    #[must_use]
    pub const fn of_any(name: &'static CStr) -> Self {
        Self { name, find: next_of_any, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address; null if nobody behind us defines the name.
    #[inline]
    pub fn address(&self) -> *const c_void {
        let known = self.address.load(Ordering::Acquire);
        if known.is_null() { self.search() } else { known }
    }

    #[cold]
    fn search(&self) -> *const c_void {
        let found = (self.find)(self.name);
        self.address.store(found, Ordering::Release);
        found
    }
}

/// The next definition of a name of MPI's; null if there is none.
#[must_use]
pub fn next_of_mpi(name: &CStr) -> *mut c_void {
    // An MPI library that was loaded with RTLD_LOCAL is not in that order. Its Fortran bindings may be a
    // library of their own, which then cannot be found; nobody loads those so.
    behind(name).unwrap_or_else(|| {
        let found = Library::find().and_then(|library| library.symbol(name));
        found.map_or(std::ptr::null_mut(), |at| at.as_ptr())
    })
}

fn next_of_any(name: &CStr) -> *mut c_void {
    // A library that was loaded with RTLD_LOCAL, as Python's modules load theirs, is not in that order.
    behind(name).unwrap_or_else(|| {
        let own: fn(&CStr) -> *mut c_void = next_of_any;
        Library::hidden(name, own as *const c_void).map_or(std::ptr::null_mut(), |at| at.as_ptr())
    })
}

/// What comes behind the library that this is linked into, in the order in which the dynamic linker looks.
fn behind(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym(3) with a NUL-terminated name. RTLD_NEXT means: behind this library.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!next.is_null()).then_some(next)
}
