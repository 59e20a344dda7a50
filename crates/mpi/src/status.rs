//! What a call tells its caller about the data it moved.

use std::ffi::c_void;

use crate::calls::check;
use crate::{Mpi, MpiError};

impl Mpi {
    /// Sets in a program's status how many bytes were moved, unless it is MPI_STATUS_IGNORE. The layout
    /// of the count differs between releases of one library, so only the library itself writes it.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    ///
    /// # Safety
    ///
    /// `status` must be a pointer to an MPI_Status of this library, or its MPI_STATUS_IGNORE.
    pub unsafe fn set_status_bytes(&self, status: *mut c_void, bytes: u64) -> Result<(), MpiError> {
        if status as usize == self.constants.numbers.status_ignore {
            return Ok(());
        }
        let byte = self.constants.types.byte.word();
        let count = i64::try_from(bytes).unwrap_or(i64::MAX);
        // SAFETY: the caller's promise; MPI_BYTE is a datatype of this library.
        check!("MPI_Status_set_elements_x", unsafe {
            (self.calls.status_set_elements)(status, byte, count)
        })?;
        // SAFETY: as above.
        check!("MPI_Status_set_cancelled", unsafe { (self.calls.status_set_cancelled)(status, 0) })
    }
}
