//! What ROMIO does in a way of its own: the implementation of MPI-IO in MPICH and its kin.

use mpi::{Abi, Datatype, Flat, Mpi};

/// Whether it is ROMIO that opens files. Open MPI has it as a second choice, which does not show.
pub(crate) fn is_in(mpi: &Mpi) -> bool {
    mpi.abi() != Abi::OpenMpi && !mpi.version().starts_with("Open MPI")
}

/// The bytes of a datatype. `None` where it cannot be flattened, or ROMIO sees other bytes in it: it takes
/// predefined pairs with a gap behind them (MPI_DOUBLE_INT) for blocks without. A file is shared with
/// ROMIO's collective calls, which must find what independent ones have written.
pub(crate) fn flatten(mpi: &Mpi, datatype: Datatype) -> Option<Flat> {
    let made = mpi.layout(datatype).ok()?;
    if made.has_gapped_pairs() && is_in(mpi) {
        return None;
    }
    Flat::of(&made).ok()
}
