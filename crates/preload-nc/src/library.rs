//! The functions of PnetCDF that are called for private header files.

use std::ffi::{c_char, c_int, c_void};

use crate::codes::NC_ENOTSUPPORT;
use crate::inside::Inside;
use mpi::Next;

use crate::symbol::c_name;

/// A handle passed by value.
pub(crate) type Word = usize;

macro_rules! library {
    ($($name:ident($($arg:ident: $ty:ty),*);)+) => { $(
        /// # Safety
        /// As pnetcdf.h says.
        pub(crate) unsafe fn $name($($arg: $ty),*) -> c_int {
            static NEXT: Next = Next::of_any(c_name!("ncmpi_", stringify!($name)));
            let address = NEXT.address();
            if address.is_null() {
                return NC_ENOTSUPPORT;
            }
            // SAFETY: the function of this name has the signature of pnetcdf.h, which the declaration repeats, with handles as
            // words.
            let next = unsafe {
                std::mem::transmute::<*const c_void, unsafe extern "C-unwind" fn($($ty),*) -> c_int>(
                    address,
                )
            };
            let _inside = Inside::enter();
            // SAFETY: the caller's promise.
            unsafe { next($($arg),*) }
        }
    )+ };
}

library! {
    create(comm: Word, path: *const c_char, mode: c_int, info: Word, ncid: *mut c_int);
    open(comm: Word, path: *const c_char, mode: c_int, info: Word, ncid: *mut c_int);
    close(ncid: c_int);
    enddef(ncid: c_int);
    inq(ncid: c_int, ndims: *mut c_int, nvars: *mut c_int, natts: *mut c_int, unlimited: *mut c_int);
    inq_format(ncid: c_int, format: *mut c_int);
    inq_header_size(ncid: c_int, size: *mut i64);
    inq_var(
        ncid: c_int, varid: c_int, name: *mut c_char, xtype: *mut c_int, ndims: *mut c_int, dimids: *mut c_int,
        natts: *mut c_int
    );
    inq_dimlen(ncid: c_int, dimid: c_int, length: *mut i64);
    inq_att(ncid: c_int, varid: c_int, name: *const c_char, xtype: *mut c_int, length: *mut i64);
    get_att(ncid: c_int, varid: c_int, name: *const c_char, value: *mut c_void);
    put_att(
        ncid: c_int, varid: c_int, name: *const c_char, xtype: c_int, length: i64, value: *const c_void
    );
}
