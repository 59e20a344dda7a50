//! Handles, as opaque words.
//!
//! A handle is a pointer in Open MPI and in the standard interface, and a 4-byte integer in MPICH
//! (MPI_File excepted, which is a pointer there, too). Here it is always the 8-byte word in which it
//! travels through a register. Of an MPICH handle only the lower half means anything: whoever passes
//! one leaves in the upper half what was there before (System V ABI §3.2.3), so it is masked.

use std::ffi::c_void;

use crate::Mpi;

/// What all kinds of handles have in common.
pub(crate) trait Handle: Copy {
    fn from_word(word: usize) -> Self;
}

macro_rules! handles {
    ($($(#[$meta:meta])* $name:ident)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name(usize);

        impl $name {
            /// The word to pass to the MPI library.
            #[must_use]
            pub fn word(self) -> usize {
                self.0
            }
        }

        impl Handle for $name {
            fn from_word(word: usize) -> Self {
                $name(word)
            }
        }
    )+};
}

handles! {
    /// MPI_Comm: a communicator.
    Comm
    /// MPI_Datatype: a datatype.
    Datatype
    /// MPI_Errhandler: what is done about errors.
    ErrorHandler
    /// MPI_File: an open file.
    File
    /// MPI_Group: a group of processes.
    Group
    /// MPI_Info: hints.
    Info
}

/// Room in which the library puts a handle. It is a whole zeroed word, so that the upper half is
/// zero where the library writes four bytes only.
#[derive(Debug, Default)]
pub(crate) struct Room(usize);

impl Room {
    pub(crate) fn new() -> Self {
        Self(0)
    }

    pub(crate) fn holding(word: usize) -> Self {
        Self(word)
    }

    pub(crate) fn address(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    pub(crate) fn handle<H: Handle>(&self) -> H {
        H::from_word(self.0)
    }
}

impl Mpi {
    /// A word as a handle that is no MPI_File.
    fn masked(&self, word: usize) -> usize {
        if self.constants.handle_bytes == 4 { word & 0xffff_ffff } else { word }
    }

    /// A word that a program passed as MPI_Comm.
    ///
    /// # Safety
    ///
    /// It must be a communicator of this library that has not been freed. The library is not asked,
    /// because it may take the word for an address.
    #[must_use]
    pub unsafe fn comm(&self, word: usize) -> Comm {
        Comm(self.masked(word))
    }

    /// A word that a program passed as MPI_Datatype.
    ///
    /// # Safety
    ///
    /// As of [`Mpi::comm`].
    #[must_use]
    pub unsafe fn datatype(&self, word: usize) -> Datatype {
        Datatype(self.masked(word))
    }

    /// A word that a program passed as MPI_Info.
    ///
    /// # Safety
    ///
    /// As of [`Mpi::comm`].
    #[must_use]
    pub unsafe fn info(&self, word: usize) -> Info {
        Info(self.masked(word))
    }

    /// A word that a program passed as MPI_File.
    ///
    /// # Safety
    ///
    /// As of [`Mpi::comm`].
    #[must_use]
    pub unsafe fn file(&self, word: usize) -> File {
        // A pointer everywhere, also in MPICH.
        File(word)
    }

    /// The handles in an array that the library filled: they stand `handle_bytes` apart.
    pub(crate) fn handles<H: Handle>(&self, array: &[u64], count: usize) -> Vec<H> {
        let wide = self.constants.handle_bytes == 8;
        let word = |index: usize| {
            if wide {
                return array[index] as usize;
            }
            // Two 4-byte handles share a word, the first in its lower half (little-endian).
            (array[index / 2] >> (32 * (index % 2)) & 0xffff_ffff) as usize
        };
        (0..count).map(|index| H::from_word(word(index))).collect()
    }
}
