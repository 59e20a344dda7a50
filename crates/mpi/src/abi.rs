//! The binary interfaces of MPI: what a header fixes when a program is compiled.
//!
//! Each table repeats one header; `tests/mpi` compiles a program against every installed header and
//! compares. Offset, Aint and Count have 8 bytes and int has 4 everywhere.

mod mpich;
mod open_mpi;
mod standard;

use std::ffi::c_int;

use crate::handle::{Comm, Datatype, ErrorHandler, File, Info};
use crate::{FindError, Library};

/// A binary interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Abi {
    /// Open MPI 4 and 5.
    OpenMpi,
    /// MPICH 3.1 and later, Intel MPI, Cray MPICH, MVAPICH.
    Mpich,
    /// The standard interface of MPI-5.0, chapter 20.
    Standard,
}

impl Abi {
    /// A short name: `open-mpi`, `mpich` or `standard`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Abi::OpenMpi => "open-mpi",
            Abi::Mpich => "mpich",
            Abi::Standard => "standard",
        }
    }
}

/// What the header of an interface defines, as far as Sluice needs it.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Bytes of a handle. MPI_File has 8 in every interface.
    pub handle_bytes: usize,
    /// MPI_COMM_WORLD.
    pub comm_world: Comm,
    /// MPI_COMM_SELF.
    pub comm_self: Comm,
    /// MPI_COMM_NULL.
    pub comm_null: Comm,
    /// MPI_INFO_NULL.
    pub info_null: Info,
    /// MPI_FILE_NULL.
    pub file_null: File,
    /// MPI_ERRORS_RETURN.
    pub errors_return: ErrorHandler,
    /// MPI_DATATYPE_NULL.
    pub datatype_null: Datatype,
    /// Predefined datatypes.
    pub types: Types,
    /// Plain numbers.
    pub numbers: &'static Numbers,
}

/// Predefined datatypes.
#[derive(Clone, Debug)]
pub struct Types {
    /// MPI_BYTE.
    pub byte: Datatype,
    /// MPI_INT.
    pub int: Datatype,
    /// MPI_DOUBLE.
    pub double: Datatype,
    /// MPI_SHORT_INT, the only predefined type with a gap between its members.
    pub short_int: Datatype,
    /// MPI_LONG_INT, which like the next two has a gap behind its members only.
    pub long_int: Datatype,
    /// MPI_DOUBLE_INT.
    pub double_int: Datatype,
    /// MPI_LONG_DOUBLE_INT.
    pub long_double_int: Datatype,
}

/// The constants that are numbers.
#[derive(Debug)]
pub struct Numbers {
    /// Where a status has its fields.
    pub status: Status,
    /// The address MPI_STATUS_IGNORE.
    pub status_ignore: usize,
    /// The address MPI_IN_PLACE.
    pub in_place: usize,
    /// MPI_ANY_SOURCE.
    pub any_source: c_int,
    /// MPI_ANY_TAG.
    pub any_tag: c_int,
    /// MPI_PROC_NULL.
    pub proc_null: c_int,
    /// MPI_UNDEFINED.
    pub undefined: c_int,
    /// How a file is opened.
    pub mode: Mode,
    /// MPI_SEEK_SET.
    pub seek_set: c_int,
    /// MPI_SEEK_CUR.
    pub seek_cur: c_int,
    /// MPI_SEEK_END.
    pub seek_end: c_int,
    /// MPI_DISPLACEMENT_CURRENT.
    pub displacement_current: i64,
    /// MPI_ORDER_C.
    pub order_c: c_int,
    /// MPI_ORDER_FORTRAN.
    pub order_fortran: c_int,
    /// MPI_DISTRIBUTE_BLOCK.
    pub distribute_block: c_int,
    /// MPI_DISTRIBUTE_CYCLIC.
    pub distribute_cyclic: c_int,
    /// MPI_DISTRIBUTE_NONE.
    pub distribute_none: c_int,
    /// MPI_DISTRIBUTE_DFLT_DARG.
    pub distribute_default: c_int,
    /// How datatypes are made: MPI_COMBINER_*.
    pub combiners: &'static [(c_int, Combiner)],
    /// Error classes.
    pub error: ErrorClasses,
    /// MPI_THREAD_FUNNELED.
    pub thread_funneled: c_int,
    /// MPI_THREAD_MULTIPLE.
    pub thread_multiple: c_int,
    /// MPI_MAX_INFO_KEY: bytes of the longest key, without NUL.
    pub info_key_bytes_max: usize,
    /// MPI_MAX_INFO_VAL: bytes of the longest value, without NUL.
    pub info_value_bytes_max: usize,
    /// MPI_MAX_ERROR_STRING, with NUL.
    pub error_string_bytes_max: usize,
    /// MPI_MAX_DATAREP_STRING, without NUL in some headers.
    pub datarep_bytes_max: usize,
}

/// The layout of MPI_Status, in bytes.
#[derive(Debug)]
pub struct Status {
    /// Of the whole structure.
    pub size: usize,
    /// Where MPI_SOURCE is.
    pub source: usize,
    /// Where MPI_TAG is.
    pub tag: usize,
    /// Where MPI_ERROR is.
    pub error: usize,
}

/// MPI_MODE_*.
#[derive(Debug)]
#[allow(missing_docs, reason = "each is the MPI_MODE_ of its name")]
pub struct Mode {
    pub create: c_int,
    pub rdonly: c_int,
    pub wronly: c_int,
    pub rdwr: c_int,
    pub delete_on_close: c_int,
    pub unique_open: c_int,
    pub excl: c_int,
    pub append: c_int,
    pub sequential: c_int,
}

/// MPI_ERR_*.
#[derive(Debug)]
#[allow(missing_docs, reason = "each is the MPI_ERR_ of its name")]
pub struct ErrorClasses {
    pub count: c_int,
    pub datatype: c_int,
    pub argument: c_int,
    pub other: c_int,
    pub unsupported_operation: c_int,
    pub no_space: c_int,
    pub file: c_int,
    pub io: c_int,
    pub no_such_file: c_int,
}

/// How a datatype was made (MPI-4.1 §5.1.13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each is the MPI_COMBINER_ of its name")]
pub enum Combiner {
    Named,
    Dup,
    Contiguous,
    Vector,
    Hvector,
    Indexed,
    Hindexed,
    IndexedBlock,
    HindexedBlock,
    Struct,
    Subarray,
    Darray,
    /// F90_REAL, F90_COMPLEX, F90_INTEGER: predefined, although they are no constants.
    Fortran,
    Resized,
    /// VALUE_INDEX: predefined, a pair.
    ValueIndex,
}

impl Numbers {
    /// The combiner that a number means, if it is one.
    #[must_use]
    pub fn combiner(&self, number: c_int) -> Option<Combiner> {
        self.combiners.iter().find(|(known, _)| *known == number).map(|(_, combiner)| *combiner)
    }
}

impl Constants {
    /// The table of an interface; Open MPI's handles are addresses in the library.
    pub(crate) fn of(abi: Abi, library: &Library) -> Result<Constants, FindError> {
        match abi {
            Abi::OpenMpi => open_mpi::constants(library),
            Abi::Mpich => Ok(mpich::constants()),
            Abi::Standard => Ok(standard::constants()),
        }
    }
}
