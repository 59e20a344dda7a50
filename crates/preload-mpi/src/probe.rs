//! Telling `sluice doctor` which MPI library is in the process, when the library has just been loaded.
//!
//! With `SLUICE_MPI_PROBE=FILE` a process whose program need not use MPI at all, into which an MPI library
//! was preloaded behind this one, writes one line of JSON to FILE: the interface that was found, what the
//! library says of itself, and its path; or `{"error": …}`.

use std::ffi::OsStr;

use mpi::Mpi;

use crate::strided::guarded;
use crate::trace::string;

const VARIABLE: &str = "SLUICE_MPI_PROBE";

/// Runs when all preloaded libraries are in memory; those behind this one have been initialised.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    if let Some(file) = std::env::var_os(VARIABLE) {
        guarded(|| tell(&file));
    }
}

fn tell(file: &OsStr) -> Option<()> {
    let mut line = String::from("{");
    let mut field = |name: &str, value: &str| {
        if line.len() > 1 {
            line.push(',');
        }
        string(&mut line, name);
        line.push(':');
        string(&mut line, value);
    };
    match Mpi::find() {
        Ok(mpi) => {
            field("abi", mpi.abi().name());
            field("version", mpi.version());
            field("library", mpi.library().path());
        }
        Err(error) => field("error", &error.to_string()),
    }
    line.push_str("}\n");
    std::fs::write(file, line).ok()
}
