//! Binding, at run time, to whichever MPI library is in the process.
//!
//! Nothing here is linked with MPI: one binary works under Open MPI, under MPICH and what shares its
//! binary interface (Intel MPI, Cray MPICH, MVAPICH), and under the standard interface of MPI-5.
//!
//! The way of one derived datatype:
//!
//! 1. [`Mpi::find`] looks through the objects that the dynamic linker has loaded for one that defines
//!    `PMPI_Initialized` ([`library`]), asks it who it is, and picks the table of that interface: how wide a
//!    handle is, where a status has its fields, what the named constants are ([`abi`]).
//! 2. The functions that Sluice uses are bound by name under their profiling names, `PMPI_*`, so that
//!    neither a tool nor Sluice itself sees these calls (`calls`).
//! 3. A word that a program passed as a datatype becomes a [`Datatype`] by [`Mpi::datatype`], and
//!    [`Mpi::layout`] asks the library how the type was made, level by level ([`datatype`]).
//! 4. From the answer [`Flat`] computes, without MPI, which bytes an instance of the type consists of, in
//!    closed form: a vector of a million blocks is one node.
//!
//! The same binding lets a process that is ours be a rank of an MPI job: [`Mpi::load`] loads a library,
//! [`Mpi::start`] initializes it, and messages ([`Mpi::send`], [`Mpi::probe`], [`Mpi::receive`]) own their
//! buffers until MPI is done with them.
//!
//! Handles are opaque words. What makes the binding unsafe is gathered in one place: a word that is
//! claimed to be a handle must be one.

pub mod abi;
mod calls;
mod comm;
pub mod datatype;
mod error;
mod file;
pub mod flat;
mod handle;
mod info;
pub mod library;
mod message;
mod next;
mod process;
mod request;
mod status;

use std::ffi::CStr;
use std::sync::{Mutex, OnceLock, PoisonError};

pub use abi::{Abi, Constants};
pub use error::{FindError, MpiError};
pub use file::View;
pub use flat::Flat;
pub use handle::{Comm, Datatype, ErrorHandler, File, Group, Info};
pub use library::Library;
pub use message::{Receiving, Sending, Waiting};
pub use next::{Next, next_of_mpi};

use calls::{Calls, LargeCountCalls, MessageCalls};

/// The MPI library of this process.
#[derive(Debug)]
pub struct Mpi {
    library: Library,
    abi: Abi,
    version: String,
    constants: Constants,
    calls: Calls,
    messages: MessageCalls,
    large: Option<LargeCountCalls>,
}

static FOUND: OnceLock<Mpi> = OnceLock::new();
static SEARCH: Mutex<()> = Mutex::new(());

impl Mpi {
    /// The MPI library of this process. Once found it stays; until then every call searches again,
    /// because a program may load MPI while it runs.
    ///
    /// # Errors
    ///
    /// [`FindError`] where there is no MPI library, or none whose interface is known.
    pub fn find() -> Result<&'static Mpi, FindError> {
        if let Some(mpi) = FOUND.get() {
            return Ok(mpi);
        }
        let _one_at_a_time = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mpi) = FOUND.get() {
            return Ok(mpi);
        }
        let mpi = Self::bind(Library::find().ok_or(FindError::NoLibrary)?)?;
        Ok(FOUND.get_or_init(|| mpi))
    }

    /// Loads an MPI library into a process that is not linked with one, and binds to it.
    ///
    /// # Errors
    ///
    /// [`FindError`] where it cannot be loaded, or its interface is not known.
    pub fn load(name: &CStr) -> Result<&'static Mpi, FindError> {
        let _one_at_a_time = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mpi) = FOUND.get() {
            return Ok(mpi);
        }
        let mpi = Self::bind(Library::load(name)?)?;
        Ok(FOUND.get_or_init(|| mpi))
    }

    fn bind(library: Library) -> Result<Mpi, FindError> {
        let version = library.version()?;
        let abi = library.abi(&version)?;
        let constants = Constants::of(abi, &library)?;
        let calls = Calls::bind(&library)?;
        let messages = MessageCalls::bind(&library)?;
        let large = LargeCountCalls::bind(&library).ok();
        Ok(Mpi { library, abi, version, constants, calls, messages, large })
    }

    /// The binary interface that the library has.
    #[must_use]
    pub fn abi(&self) -> Abi {
        self.abi
    }

    /// What the library says of itself (MPI-4.1 §9.1.1), the first line.
    #[must_use]
    pub fn version(&self) -> &str {
        self.version.lines().next().unwrap_or_default()
    }

    /// The values that this library's header gives to MPI's constants.
    #[must_use]
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// Where the library was found.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.library
    }
}
