//! Which MPI libraries are here, and whether the library for MPI-IO knows them.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::launch::{library, program};

/// Names under which the dynamic linker finds MPI libraries: Open MPI; MPICH as Debian calls it; MPICH,
/// Intel MPI and MVAPICH; the standard interface (MPI-5.0 §20).
const LIBRARIES: [&str; 5] =
    ["libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0"];

/// What was found.
#[derive(Serialize)]
pub(super) struct MpiFindings {
    /// The library for MPI-IO; none where it is missing.
    pub(super) library: Option<String>,
    /// Those that the dynamic linker finds.
    pub(super) found: Vec<Found>,
}

/// An MPI library.
#[derive(Serialize)]
pub(super) struct Found {
    pub(super) name: &'static str,
    pub(super) ok: bool,
    /// What it says of itself and its interface, or why MPI-IO of its programs is not carried.
    pub(super) detail: String,
}

/// What libsluice_mpi.so tells of the process that it is in.
#[derive(Deserialize)]
struct Told {
    abi: Option<String>,
    #[serde(default)]
    version: String,
    #[serde(default)]
    library: String,
    #[serde(default)]
    error: String,
}

/// Loads each of the libraries behind ours into a small program, and asks ours what it sees.
pub(super) fn look(preload: &Path, scratch: &Path) -> MpiFindings {
    let Some(ours) = library::for_mpi(preload) else {
        return MpiFindings { library: None, found: Vec::new() };
    };
    let look_at = |name| Some(Found::new(name, ask(&ours, name, scratch).transpose()?));
    MpiFindings {
        library: Some(ours.display().to_string()),
        found: LIBRARIES.into_iter().filter_map(look_at).collect(),
    }
}

impl MpiFindings {
    /// One line for each finding. An MPI library that is not known leaves its programs as they are, so it
    /// is no failure.
    pub(super) fn lines(&self) -> Vec<String> {
        if self.library.is_none() {
            let text = "      MPI-IO: libsluice_mpi.so is not beside the preload library; MPI programs are carried without it";
            return vec![text.into()];
        }
        if self.found.is_empty() {
            let text = "      MPI-IO: no MPI library where the dynamic linker looks; one that a program brings along is found when it runs";
            return vec![text.into()];
        }
        let line = |found: &Found| match found.ok {
            true => format!("ok    MPI-IO with {}: {}", found.name, found.detail),
            false => format!("      MPI-IO with {}: is left alone: {}", found.name, found.detail),
        };
        self.found.iter().map(line).collect()
    }
}

impl Found {
    fn new(name: &'static str, asked: Result<String>) -> Self {
        let ok = asked.is_ok();
        Self { name, ok, detail: asked.unwrap_or_else(|error| format!("{error:#}")) }
    }
}

/// What ours sees where a library of that name is loaded. `None` if the dynamic linker finds none.
fn ask(ours: &Path, name: &str, scratch: &Path) -> Result<Option<String>> {
    let path = match program::check(OsStr::new("true")) {
        Ok(path) => path,
        Err(refusal) => bail!("cannot be tried: {refusal}"),
    };
    let answer = scratch.join("mpi");
    let mut preloaded = ours.as_os_str().to_owned();
    preloaded.push(":");
    preloaded.push(name);
    let out = Command::new(path)
        .env("LD_PRELOAD", preloaded)
        .env("SLUICE_MPI_PROBE", &answer)
        .stdin(Stdio::null())
        .output()
        .context("cannot start true")?;
    let text = std::fs::read_to_string(&answer);
    // The next one must not find it.
    let _ = std::fs::remove_file(&answer);
    // ld.so(8) says what it cannot preload, and goes on.
    if String::from_utf8_lossy(&out.stderr).contains("cannot be preloaded") {
        return Ok(None);
    }
    let text = text.map_err(|_| anyhow!("its process ended before it could be asked"))?;
    let told: Told = serde_json::from_str(&text).context("cannot be understood")?;
    let Some(abi) = told.abi else { bail!("{}", told.error) };
    let version = told.version.lines().next().unwrap_or_default().replace('\t', " ");
    Ok(Some(format!("{version}, interface {abi}, {}", told.library)))
}
