//! What nobody implements.

use std::ffi::c_int;

use mpi::Mpi;

/// The answer to a call that nobody implements: only a program that looked the name up by itself can
/// make one.
#[cold]
pub(crate) fn missing() -> c_int {
    /// MPI_ERR_OTHER of Open MPI and the standard interface.
    const OTHER: c_int = 16;
    Mpi::find().map_or(OTHER, |mpi| mpi.constants().numbers.error.other)
}
