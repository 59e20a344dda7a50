//! What stands for MPI_COMM_WORLD.

use std::sync::atomic::{AtomicUsize, Ordering};

use mpi::{Comm, Mpi};

/// Two words for all who translate, the library for large counts included: MPI_COMM_WORLD of the MPI
/// library, 0 as long as it means itself, and what stands for it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "a symbol of C")]
static sluice_world_words: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// The communicator that is meant by a word that a program passed for one.
#[inline]
pub(crate) fn own(word: usize) -> usize {
    let [world, own] = &sluice_world_words;
    let world = world.load(Ordering::Acquire);
    // MPICH's handles have 32 bits; what stands above them is left over.
    let meant = if world <= u32::MAX as usize { word & u32::MAX as usize } else { word };
    if world != 0 && meant == world { own.load(Ordering::Relaxed) } else { word }
}

/// Whether a word that a program passed means MPI_COMM_WORLD, and that is not the whole job's.
pub(crate) fn is_replaced(word: usize) -> bool {
    own(word) != word
}

/// From now on programs mean this one by MPI_COMM_WORLD.
pub(crate) fn replace(mpi: &Mpi, by: Comm) {
    let [world, own] = &sluice_world_words;
    own.store(by.word(), Ordering::Relaxed);
    world.store(mpi.constants().comm_world.word(), Ordering::Release);
}

/// MPI_COMM_WORLD means itself again.
pub(crate) fn restore() {
    sluice_world_words[0].store(0, Ordering::Release);
}
