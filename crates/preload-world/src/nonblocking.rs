//! Nonblocking reads and writes of MPI-IO under Open MPI: carried out before they return.
//!
//! Open MPI 4.1.4 and 5.0.11 crash in them while a second thread calls MPI, in any program (`MPI_Iprobe`
//! in one thread, `MPI_File_iwrite_at` and `MPI_Wait` in another). MPI lets such a call do its work
//! whenever it likes. Collective ones are left alone: they must not wait for other ranks.

use std::ffi::{c_int, c_void};

use mpi::{Abi, Mpi};

use mpi::Next;

use crate::missing::missing;
use crate::part;

/// Whether the library must not be left to do it.
fn is_unsafe() -> bool {
    part::level().is_some() && Mpi::find().is_ok_and(|mpi| mpi.abi() == Abi::OpenMpi)
}

/// Room for an MPI_Status of every interface.
#[repr(align(8))]
struct Status([u8; 64]);

macro_rules! name {
    ($name:expr) => {
        match std::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a symbol name has no NUL"),
        }
    };
}

/// Defines a nonblocking function by the blocking one, whose last argument is a status and not a request.
macro_rules! symbols {
    ($( $prefix:literal $name:literal ($($argument:ident),*); )+) => { $(
        const _: () = {
            static NEXT: Next = Next::new(name!(concat!($prefix, "MPI_File_i", $name)));
            static BLOCKING: Next = Next::new(name!(concat!($prefix, "MPI_File_", $name)));

            #[unsafe(export_name = concat!($prefix, "MPI_File_i", $name))]
            unsafe extern "C-unwind" fn function(
                $($argument: usize,)* request: *mut c_void
            ) -> c_int {
                type Call = unsafe extern "C-unwind" fn($(symbols!(@word $argument),)* *mut c_void) -> c_int;
                let at_once = is_unsafe();
                let address = if at_once { BLOCKING.address() } else { NEXT.address() };
                if address.is_null() {
                    return missing();
                }
                // SAFETY: both functions have these arguments, each at most a word, and a place
                // (MPI-4.1, annex A.3).
                let next = unsafe { std::mem::transmute::<*const c_void, Call>(address) };
                if !at_once {
                    // SAFETY: the program's own arguments.
                    return unsafe { next($($argument,)* request) };
                }
                let mut status = Status([0; 64]);
                let place = status.0.as_mut_ptr().cast();
                // SAFETY: the program's own arguments, and a status to fill.
                let code = unsafe { next($($argument,)* place) };
                let Ok(mpi) = Mpi::find() else { return missing() };
                if code != 0 {
                    return code;
                }
                // SAFETY: the status that was just filled, and the place that the program gave.
                match unsafe { mpi.completed(place, request) } {
                    Ok(()) => 0,
                    Err(_) => mpi.constants().numbers.error.other,
                }
            }
        };
    )+ };
    (@word $argument:ident) => { usize };
}

symbols! {
    "" "read"(file, buffer, count, datatype);
    "P" "read"(file, buffer, count, datatype);
    "" "write"(file, buffer, count, datatype);
    "P" "write"(file, buffer, count, datatype);
    "" "read_shared"(file, buffer, count, datatype);
    "P" "read_shared"(file, buffer, count, datatype);
    "" "write_shared"(file, buffer, count, datatype);
    "P" "write_shared"(file, buffer, count, datatype);
    "" "read_at"(file, offset, buffer, count, datatype);
    "P" "read_at"(file, offset, buffer, count, datatype);
    "" "write_at"(file, offset, buffer, count, datatype);
    "P" "write_at"(file, offset, buffer, count, datatype);
}
