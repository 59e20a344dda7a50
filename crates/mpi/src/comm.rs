//! Communicators, groups and the state of the library.

use std::ffi::c_int;

use crate::calls::check;
use crate::handle::Room;
use crate::{Comm, Group, Mpi, MpiError};

impl Mpi {
    /// Whether communication is possible: after MPI_Init and before MPI_Finalize.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let (mut initialized, mut finalized) = (0, 0);
        // SAFETY: two integers to fill; both may be called at any time (MPI-4.1 §11.4.1).
        unsafe {
            (self.calls.initialized)(&mut initialized) == 0
                && (self.calls.finalized)(&mut finalized) == 0
                && initialized != 0
                && finalized == 0
        }
    }

    /// The calling process's rank in a communicator.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`], if the communicator's error handler returns.
    pub fn rank(&self, comm: Comm) -> Result<u32, MpiError> {
        let mut rank = 0;
        // SAFETY: a handle of this library and an integer to fill.
        check!("MPI_Comm_rank", unsafe { (self.calls.comm_rank)(comm.word(), &mut rank) })?;
        Ok(rank.try_into().unwrap_or(0))
    }

    /// The number of processes in a communicator.
    ///
    /// # Errors
    ///
    /// As of [`Mpi::rank`].
    pub fn size(&self, comm: Comm) -> Result<u32, MpiError> {
        let mut size = 0;
        // SAFETY: as above.
        check!("MPI_Comm_size", unsafe { (self.calls.comm_size)(comm.word(), &mut size) })?;
        Ok(size.try_into().unwrap_or(0))
    }

    /// The number of processes in a group.
    ///
    /// # Errors
    ///
    /// As of [`Mpi::rank`].
    pub fn group_size(&self, group: Group) -> Result<u32, MpiError> {
        let mut size = 0;
        // SAFETY: as above.
        check!("MPI_Group_size", unsafe { (self.calls.group_size)(group.word(), &mut size) })?;
        Ok(size.try_into().unwrap_or(0))
    }

    /// Gives a group back.
    pub fn free_group(&self, group: Group) {
        let mut room = Room::holding(group.word());
        // SAFETY: a handle of this library; the library writes GROUP_NULL into the room. Nothing can
        // be done about a failure.
        unsafe { (self.calls.group_free)(room.address()) };
    }

    /// The class of an error code.
    #[must_use]
    pub fn error_class(&self, code: c_int) -> c_int {
        let mut class = code;
        // SAFETY: an integer to fill.
        unsafe { (self.calls.error_class)(code, &mut class) };
        class
    }

    /// What the library says of an error code.
    #[must_use]
    pub fn error_text(&self, code: c_int) -> String {
        let mut text = vec![0u8; self.constants.numbers.error_string_bytes_max + 1];
        let mut length = 0;
        // SAFETY: room for MPI_MAX_ERROR_STRING bytes.
        let failed =
            unsafe { (self.calls.error_string)(code, text.as_mut_ptr().cast(), &mut length) != 0 };
        if failed {
            return format!("error {code}");
        }
        text.truncate(usize::try_from(length).unwrap_or(0).min(text.len()));
        String::from_utf8_lossy(&text).into_owned()
    }
}
