//! What can go wrong.

use std::ffi::c_int;

use crate::flat::FlatError;

/// Why no MPI library could be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No object of the process defines `PMPI_Initialized`.
    #[error("no MPI library is loaded in this process")]
    NoLibrary,
    /// A library cannot be loaded.
    #[error("the MPI library {path} cannot be loaded: {reason}")]
    NotLoaded {
        /// The name that it was to be loaded by.
        path: String,
        /// What the dynamic linker said.
        reason: String,
    },
    /// The library has neither of the three known binary interfaces.
    #[error(
        "the MPI library {path} has a binary interface that is not known: it calls itself `{version}`"
    )]
    UnknownInterface {
        /// The file that it was loaded from.
        path: String,
        /// What MPI_Get_library_version says, the first line.
        version: String,
    },
    /// A function or a handle that is needed is missing.
    #[error("the MPI library {path} does not define {symbol}")]
    MissingSymbol {
        /// The file that it was loaded from.
        path: String,
        /// The name that was looked for.
        symbol: String,
    },
}

/// Why something that was asked of the MPI library was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// The library returned an error.
    #[error("{call} failed with error {code}")]
    Failed {
        /// The MPI function.
        call: &'static str,
        /// The error code, as the library means it.
        code: c_int,
    },
    /// A message is longer than one may be.
    #[error("a message of {bytes} bytes does not fit the buffer of {limit} bytes")]
    TooLong {
        /// Bytes of the message.
        bytes: usize,
        /// Bytes that one may have.
        limit: usize,
    },
    /// A datatype was made in a way that is not known here.
    #[error("the datatype was made by a combiner that is not known ({combiner})")]
    UnknownCombiner {
        /// MPI_Type_get_envelope's answer.
        combiner: c_int,
    },
    /// A predefined datatype has gaps, and where they are is not known.
    #[error(
        "a predefined datatype of {size} bytes spans {extent} bytes in a way that is not known"
    )]
    UnknownGaps {
        /// Bytes of data.
        size: u64,
        /// Bytes from one instance to the next.
        extent: i64,
    },
    /// Datatypes are nested too deep to be followed.
    #[error("the datatype is nested deeper than {limit} levels")]
    TooDeep {
        /// How many levels are followed.
        limit: usize,
    },
    /// The library does this otherwise than the standard says.
    #[error("this MPI library does this otherwise than the standard says")]
    Contradicted,
    /// MPI's description of a datatype does not fit its combiner.
    #[error("the description of a datatype is too short or holds a negative count")]
    Malformed,
    /// A datatype has no layout that can be computed.
    #[error("the datatype cannot be flattened")]
    Flat(#[from] FlatError),
}
