//! Requests for what has been done already.

use std::ffi::{c_int, c_void};

use crate::calls::check;
use crate::{Mpi, MpiError};

impl Mpi {
    /// Gives a program the request of a nonblocking call that was carried out before it returned: whoever
    /// waits for it gets the count of bytes that `status` has (MPI_Grequest_start).
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    ///
    /// # Safety
    ///
    /// `status` must be an MPI_Status that this library has filled, and `request` the place of an
    /// MPI_Request.
    pub unsafe fn completed(
        &self,
        status: *mut c_void,
        request: *mut c_void,
    ) -> Result<(), MpiError> {
        let mut bytes = 0i64;
        let byte = self.constants.types.byte.word();
        // SAFETY: the caller's promise, and a number to fill.
        check!("MPI_Get_elements_x", unsafe {
            (self.messages.get_elements)(status, byte, &mut bytes)
        })?;
        let bytes = Box::into_raw(Box::new(u64::try_from(bytes).unwrap_or(0)));
        // SAFETY: three functions that know what `bytes` is; MPI calls `release` once, at the end.
        check!("MPI_Grequest_start", unsafe {
            (self.messages.grequest_start)(answer, release, cancel, bytes.cast(), request)
        })?;
        let wide = self.constants.handle_bytes == 8;
        // SAFETY: the request that was just put there, of as many bytes as handles have.
        let word = unsafe {
            if wide {
                request.cast::<usize>().read_unaligned()
            } else {
                request.cast::<u32>().read_unaligned() as usize
            }
        };
        // SAFETY: a generalized request that is active.
        check!("MPI_Grequest_complete", unsafe { (self.messages.grequest_complete)(word) })
    }
}

unsafe extern "C-unwind" fn answer(bytes: *mut c_void, status: *mut c_void) -> c_int {
    let Ok(mpi) = Mpi::find() else { return 1 };
    // SAFETY: the number that `completed` has left, and the status that MPI gives.
    match unsafe { mpi.set_status_bytes(status, bytes.cast::<u64>().read()) } {
        Ok(()) => 0,
        Err(_) => mpi.constants().numbers.error.other,
    }
}

unsafe extern "C-unwind" fn release(bytes: *mut c_void) -> c_int {
    // SAFETY: the number that `completed` has left; MPI calls this once.
    drop(unsafe { Box::from_raw(bytes.cast::<u64>()) });
    0
}

unsafe extern "C-unwind" fn cancel(_bytes: *mut c_void, _is_complete: c_int) -> c_int {
    // What is done is done.
    0
}
