//! Being a rank: beginning, end, and communicators of our own.

use std::ffi::{CStr, c_int, c_void};

use crate::calls::check;
use crate::handle::Room;
use crate::{Comm, Mpi, MpiError};

impl Mpi {
    /// MPI_Init_thread. Returns the thread level that the library grants.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn start(&self, thread_level: c_int) -> Result<c_int, MpiError> {
        let mut granted = 0;
        // SAFETY: both arguments of main may be null (MPI-4.1 §11.2.1); an integer to fill.
        check!("MPI_Init_thread", unsafe {
            (self.messages.init_thread)(
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                thread_level,
                &mut granted,
            )
        })?;
        Ok(granted)
    }

    /// The thread level that was granted when MPI was initialized.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn thread_level(&self) -> Result<c_int, MpiError> {
        let mut level = 0;
        // SAFETY: an integer to fill.
        check!("MPI_Query_thread", unsafe { (self.messages.query_thread)(&mut level) })?;
        Ok(level)
    }

    /// MPI_Finalize: waits for all ranks.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn end(&self) -> Result<(), MpiError> {
        // SAFETY: no arguments.
        check!("MPI_Finalize", unsafe { (self.messages.finalize)() })
    }

    /// A communicator of the same processes in which other messages travel. Collective.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn duplicate(&self, comm: Comm) -> Result<Comm, MpiError> {
        let mut room = Room::new();
        // SAFETY: a handle of this library and room for one.
        check!("MPI_Comm_dup", unsafe { (self.messages.comm_dup)(comm.word(), room.address()) })?;
        Ok(room.handle())
    }

    /// The communicator of those that gave the same color, in the order of their ranks; `None` for those
    /// that gave none. Collective.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn split(&self, comm: Comm, color: Option<u32>) -> Result<Option<Comm>, MpiError> {
        let undefined = self.constants.numbers.undefined;
        let color = color.map_or(undefined, |color| (color & 0x7fff_ffff) as c_int);
        let mut room = Room::new();
        // SAFETY: as above. Equal keys order by rank (MPI-4.1 §7.4.2).
        check!("MPI_Comm_split", unsafe {
            (self.messages.comm_split)(comm.word(), color, 0, room.address())
        })?;
        let part: Comm = room.handle();
        Ok((part != self.constants.comm_null).then_some(part))
    }

    /// Gives a communicator back. Collective.
    pub fn free_comm(&self, comm: Comm) {
        let mut room = Room::holding(comm.word());
        // SAFETY: a handle of this library; the library writes COMM_NULL into the room. Nothing can be
        // done about a failure.
        unsafe { (self.messages.comm_free)(room.address()) };
    }

    /// Gives a communicator a name, for debuggers.
    pub fn name_comm(&self, comm: Comm, name: &CStr) {
        // SAFETY: a handle of this library and a NUL-terminated name, which is copied.
        unsafe { (self.messages.comm_set_name)(comm.word(), name.as_ptr()) };
    }

    /// Lets errors on a communicator be returned and not end the job.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn return_errors(&self, comm: Comm) -> Result<(), MpiError> {
        let handler = self.constants.errors_return.word();
        // SAFETY: two handles of this library.
        check!("MPI_Comm_set_errhandler", unsafe {
            (self.messages.comm_set_errhandler)(comm.word(), handler)
        })
    }

    /// The records of all ranks, in their order. Every rank gives one of the same length. Collective.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`], [`MpiError::TooLong`].
    pub fn gather_all(&self, comm: Comm, record: &[u8]) -> Result<Vec<u8>, MpiError> {
        let size = self.size(comm)? as usize;
        let length = count(record.len())?;
        let mut all = vec![0; record.len() * size];
        let byte = self.constants.types.byte.word();
        // SAFETY: `record` and room for one of every rank, as bytes.
        check!("MPI_Allgather", unsafe {
            (self.messages.allgather)(
                record.as_ptr().cast::<c_void>(),
                length,
                byte,
                all.as_mut_ptr().cast(),
                length,
                byte,
                comm.word(),
            )
        })?;
        Ok(all)
    }
}

/// A number of bytes as MPI counts.
pub(crate) fn count(bytes: usize) -> Result<c_int, MpiError> {
    c_int::try_from(bytes).map_err(|_| MpiError::TooLong { bytes, limit: c_int::MAX as usize })
}
