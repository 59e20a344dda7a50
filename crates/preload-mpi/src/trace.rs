//! Counting what was intercepted, for people and tests who want proof.
//!
//! With `SLUICE_MPI_TRACE=FILE` every process appends one line to FILE when it calls MPI_Finalize: a
//! JSON object that says which interface was found, which rank it was, how often each intercepted
//! function was called by the program, and what the sieve carried out. Functions that were not called
//! are left out.

use std::ffi::{CStr, OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use mpi::Mpi;

use crate::strided::{self, Carried};
use crate::{fortran, hooks};

/// Names the file.
const VARIABLE: &str = "SLUICE_MPI_TRACE";

/// How often a function was called.
pub(crate) struct Counter {
    name: &'static CStr,
    calls: AtomicU64,
}

impl Counter {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self { name, calls: AtomicU64::new(0) }
    }

    #[cfg(test)]
    pub(crate) fn name(&self) -> &'static CStr {
        self.name
    }

    pub(crate) fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

/// The environment may change; what counts is how the program was started.
fn file() -> Option<&'static OsStr> {
    static FILE: OnceLock<Option<OsString>> = OnceLock::new();
    FILE.get_or_init(|| std::env::var_os(VARIABLE)).as_deref()
}

/// Writes the line, before MPI is finalized: afterwards there is no rank.
pub(crate) fn write() {
    let Some(path) = file() else { return };
    let Ok(mpi) = Mpi::find() else { return };
    let world = mpi.constants().comm_world;
    // Within the session model there may be no world to ask.
    let place = mpi.is_running().then(|| (mpi.rank(world).ok(), mpi.size(world).ok()));
    let line =
        line(mpi.abi().name(), mpi.version(), mpi.library().path(), place.unwrap_or_default());
    // One write(2) in append mode, so that the lines of ranks do not mix.
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    // A trace that cannot be written is not the program's business.
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

fn line(abi: &str, version: &str, library: &str, place: (Option<u32>, Option<u32>)) -> String {
    let number = |value: Option<u32>| value.map_or("null".to_owned(), |value| value.to_string());
    let mut line = String::from("{\"abi\":");
    string(&mut line, abi);
    line.push_str(",\"version\":");
    string(&mut line, version);
    line.push_str(",\"library\":");
    string(&mut line, library);
    let _ = write!(line, ",\"rank\":{},\"size\":{}", number(place.0), number(place.1));
    line.push_str(",\"calls\":");
    counts(&mut line, hooks::COUNTERS.iter().copied());
    line.push_str(",\"fortran\":");
    counts(&mut line, fortran::COUNTERS.iter().copied());
    line.push_str(",\"sieved\":{");
    carried(&mut line, "reads", "read_bytes", "far_reads", &strided::READS);
    line.push(',');
    carried(&mut line, "writes", "written_bytes", "far_writes", &strided::WRITES);
    line.push_str("}}\n");
    line
}

fn carried(line: &mut String, calls: &str, bytes: &str, far: &str, carried: &Carried) {
    let names = [calls, bytes, far];
    let numbers = [&carried.calls, &carried.bytes, &carried.far];
    for (index, (name, number)) in names.into_iter().zip(numbers).enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(line, "{comma}\"{name}\":{}", number.load(Ordering::Relaxed));
    }
}

fn counts(line: &mut String, counters: impl Iterator<Item = &'static Counter>) {
    line.push('{');
    let mut is_first = true;
    for counter in counters {
        let calls = counter.calls.load(Ordering::Relaxed);
        if calls > 0 {
            if !std::mem::take(&mut is_first) {
                line.push(',');
            }
            string(line, &counter.name.to_string_lossy());
            let _ = write!(line, ":{calls}");
        }
    }
    line.push('}');
}

/// A JSON string.
pub(crate) fn string(line: &mut String, text: &str) {
    line.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => line.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(line, "\\u{:04x}", u32::from(control));
            }
            other => line.push(other),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::{Counter, counts, string};

    #[test]
    fn strings_are_escaped_as_json_demands() {
        let mut line = String::new();
        string(&mut line, "a\"b\\c\td\u{e9}");
        assert_eq!(line, "\"a\\\"b\\\\c\\u0009d\u{e9}\"");
    }

    #[test]
    fn only_functions_that_were_called_are_listed() {
        static CALLED: Counter = Counter::new(c"MPI_File_open");
        static SILENT: Counter = Counter::new(c"MPI_File_close");
        static AGAIN: Counter = Counter::new(c"MPI_File_read");
        CALLED.count();
        CALLED.count();
        AGAIN.count();
        let mut line = String::new();
        counts(&mut line, [&CALLED, &SILENT, &AGAIN].into_iter());
        assert_eq!(line, r#"{"MPI_File_open":2,"MPI_File_read":1}"#);
    }
}
