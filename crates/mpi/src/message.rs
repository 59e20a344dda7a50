//! Messages of bytes between two ranks. Who sends or receives gives its buffer away until MPI is done
//! with it, so that nothing is read or overwritten too early.

use std::ffi::c_int;
use std::mem;

use crate::calls::check;
use crate::handle::Room;
use crate::process::count;
use crate::{Comm, Mpi, MpiError};

/// Room for an MPI_Status of every interface: the longest has 32 bytes.
#[repr(align(8))]
struct StatusRoom([u8; 64]);

impl StatusRoom {
    fn new() -> Self {
        Self([0; 64])
    }

    fn number_at(&self, offset: usize) -> c_int {
        let bytes = self.0[offset..offset + mem::size_of::<c_int>()].try_into();
        bytes.map_or(0, c_int::from_ne_bytes)
    }
}

/// A buffer that MPI is using.
#[derive(Debug)]
struct Lent {
    request: Room,
    buffer: Vec<u8>,
    is_done: bool,
}

impl Lent {
    /// Asks whether MPI is done.
    fn test(&mut self, mpi: &Mpi) -> Result<bool, MpiError> {
        if self.is_done {
            return Ok(true);
        }
        let mut status = StatusRoom::new();
        let mut flag = 0;
        // SAFETY: a request of this library in its room, an integer and a status to fill.
        let code = unsafe {
            (mpi.messages.test)(self.request.address(), &mut flag, status.0.as_mut_ptr().cast())
        };
        // A request that failed is done with, too (MPI-4.1 §3.7.3).
        self.is_done = flag != 0 || code != 0;
        check!("MPI_Test", code)?;
        Ok(self.is_done)
    }

    fn take(mut self) -> Vec<u8> {
        mem::take(&mut self.buffer)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if !self.is_done {
            // MPI may still read or write it.
            mem::forget(mem::take(&mut self.buffer));
        }
    }
}

/// A message on its way.
#[derive(Debug)]
pub struct Sending(Lent);

impl Sending {
    /// Whether the buffer may be used again. Asking drives MPI's progress.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`]: the message did not arrive.
    pub fn is_done(&mut self, mpi: &Mpi) -> Result<bool, MpiError> {
        self.0.test(mpi)
    }

    /// The buffer; an empty one if MPI is not done with it.
    #[must_use]
    pub fn into_buffer(self) -> Vec<u8> {
        if self.0.is_done { self.0.take() } else { Vec::new() }
    }
}

/// A message that is arriving.
#[derive(Debug)]
pub struct Receiving {
    lent: Lent,
    from: u32,
    bytes: usize,
}

impl Receiving {
    /// Whether it has arrived. Asking drives MPI's progress.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn is_done(&mut self, mpi: &Mpi) -> Result<bool, MpiError> {
        self.lent.test(mpi)
    }

    /// Its sender.
    #[must_use]
    pub fn from(&self) -> u32 {
        self.from
    }

    /// The buffer and the length of the message in it; empty if it has not arrived.
    #[must_use]
    pub fn into_message(self) -> (Vec<u8>, usize) {
        if self.lent.is_done { (self.lent.take(), self.bytes) } else { (Vec::new(), 0) }
    }
}

/// A message that can be received.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its sender.
    pub from: u32,
    /// Its length.
    pub bytes: usize,
}

impl Mpi {
    /// Sends the first `length` bytes of a buffer (MPI_Isend).
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`], [`MpiError::TooLong`].
    pub fn send(
        &self,
        comm: Comm,
        to: u32,
        tag: c_int,
        buffer: Vec<u8>,
        length: usize,
    ) -> Result<Sending, MpiError> {
        if length > buffer.len() {
            return Err(MpiError::TooLong { bytes: length, limit: buffer.len() });
        }
        let mut lent = Lent { request: Room::new(), buffer, is_done: true };
        let (byte, to) = (self.constants.types.byte.word(), rank(to));
        // SAFETY: `length` bytes that live until the request is done (`Lent`), and room for a request.
        check!("MPI_Isend", unsafe {
            (self.messages.isend)(
                lent.buffer.as_ptr().cast(),
                count(length)?,
                byte,
                to,
                tag,
                comm.word(),
                lent.request.address(),
            )
        })?;
        lent.is_done = false;
        Ok(Sending(lent))
    }

    /// The next message that can be received, from anyone (MPI_Iprobe). Drives MPI's progress.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn probe(&self, comm: Comm, tag: c_int) -> Result<Option<Waiting>, MpiError> {
        let numbers = self.constants.numbers;
        let mut status = StatusRoom::new();
        let (mut flag, mut bytes) = (0, 0);
        let place = status.0.as_mut_ptr().cast();
        // SAFETY: an integer and a status to fill.
        check!("MPI_Iprobe", unsafe {
            (self.messages.iprobe)(numbers.any_source, tag, comm.word(), &mut flag, place)
        })?;
        if flag == 0 {
            return Ok(None);
        }
        // SAFETY: the status that was just filled, and an integer to fill.
        check!("MPI_Get_count", unsafe {
            (self.messages.get_count)(place, self.constants.types.byte.word(), &mut bytes)
        })?;
        let from = status.number_at(numbers.status.source);
        Ok(Some(Waiting {
            from: u32::try_from(from).unwrap_or(0),
            bytes: usize::try_from(bytes).unwrap_or(0),
        }))
    }

    /// Begins to receive the message that [`Mpi::probe`] found (MPI_Irecv). If several threads receive on
    /// one communicator they must agree among themselves who takes which.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`]; [`MpiError::TooLong`] if the buffer is shorter than the message.
    pub fn receive(
        &self,
        comm: Comm,
        tag: c_int,
        waiting: Waiting,
        buffer: Vec<u8>,
    ) -> Result<Receiving, MpiError> {
        let Waiting { from, bytes } = waiting;
        if bytes > buffer.len() {
            return Err(MpiError::TooLong { bytes, limit: buffer.len() });
        }
        let mut lent = Lent { request: Room::new(), buffer, is_done: true };
        let byte = self.constants.types.byte.word();
        // SAFETY: room for `bytes` bytes that lives until the request is done (`Lent`), and for a request.
        check!("MPI_Irecv", unsafe {
            (self.messages.irecv)(
                lent.buffer.as_mut_ptr().cast(),
                count(bytes)?,
                byte,
                rank(from),
                tag,
                comm.word(),
                lent.request.address(),
            )
        })?;
        lent.is_done = false;
        Ok(Receiving { lent, from, bytes })
    }
}

fn rank(rank: u32) -> c_int {
    c_int::try_from(rank).unwrap_or(c_int::MAX)
}
