//! Which MPI a process was started by, for one that is not linked with any.
//!
//! A process that joins the job of a launcher must use the library that belongs to that launcher. The
//! environment says which family it is, and the launcher's own program, an ancestor of this process,
//! where it is installed; its library lies in a directory beside.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mpi::Mpi;

use crate::{Error, Result};

/// Names the library to load, before all else.
pub const LIBRARY_VARIABLE: &str = "SLUICE_MPI_LIBRARY";

/// How many ancestors are looked at: a shell or two may stand between.
const ANCESTORS_MAX: usize = 8;

/// A family of launchers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Launcher {
    /// Open MPI's mpirun, prterun, or PMIx elsewhere.
    OpenMpi,
    /// Hydra, of MPICH, Intel MPI and MVAPICH, or PMI elsewhere.
    Mpich,
}

impl Launcher {
    /// What has started this process.
    #[must_use]
    pub fn of_process() -> Option<Self> {
        Self::of(|name| std::env::var_os(name).is_some())
    }

    fn of(is_set: impl Fn(&str) -> bool) -> Option<Self> {
        let any = |names: &[&str]| names.iter().any(|name| is_set(name));
        if any(&["OMPI_COMM_WORLD_SIZE", "PRTE_LAUNCHED"]) {
            Some(Self::OpenMpi)
        } else if any(&["PMI_FD", "PMI_PORT", "PMI_RANK"]) {
            Some(Self::Mpich)
        } else {
            any(&["PMIX_RANK"]).then_some(Self::OpenMpi)
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI's launcher",
            Self::Mpich => "MPICH's launcher",
        }
    }

    fn sonames(self) -> &'static [&'static str] {
        match self {
            Self::OpenMpi => &["libmpi.so.40"],
            Self::Mpich => &["libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1"],
        }
    }

    /// Loads the library of the launcher that has started this process.
    ///
    /// # Errors
    /// [`Error::NoJob`] where there is none, [`Error::NoLibrary`], [`Error::Library`].
    pub fn load() -> Result<&'static Mpi> {
        let launcher = Self::of_process().ok_or(Error::NoJob)?;
        if let Some(path) = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()) {
            return load(&path).map_err(|source| Error::Library { source });
        }
        let ancestors = ancestors();
        // The program that the user called knows best: its daemon may be another's, found in PATH.
        let programs = ancestors.iter().find(|program| is_one_of(program, &STARTERS)).into_iter();
        let programs =
            programs.chain(ancestors.iter().filter(|program| is_one_of(program, &DAEMONS)));
        let places: Vec<PathBuf> = programs.flat_map(|program| beside(program)).collect();
        let there =
            |name: &&str| places.iter().map(|place| place.join(name)).find(|path| path.exists());
        let mut candidates: Vec<PathBuf> = launcher.sonames().iter().filter_map(there).collect();
        candidates.extend(launcher.sonames().iter().map(PathBuf::from));
        let mut last = None;
        for candidate in &candidates {
            match load(candidate.as_os_str()) {
                Ok(mpi) => return Ok(mpi),
                Err(source) => last = Some(source),
            }
        }
        let tried: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
        let source = last.unwrap_or(mpi::FindError::NoLibrary);
        Err(Error::NoLibrary { launcher: launcher.name(), tried: tried.join(", "), source })
    }
}

fn load(name: &std::ffi::OsStr) -> std::result::Result<&'static Mpi, mpi::FindError> {
    let name = CString::new(name.as_bytes()).map_err(|_| mpi::FindError::NoLibrary)?;
    Mpi::load(&name)
}

/// Whether a variable of the environment leads to the launcher: a program that must not become a rank by
/// itself is started without.
#[must_use]
pub fn leads_to_launcher(name: &str) -> bool {
    const NAMES: [&str; 4] = ["PMI_FD", "PMI_PORT", "PMI_ID", "PRTE_LAUNCHED"];
    const PREFIXES: [&str; 6] = [
        "PMIX_",
        "OMPI_MCA_orte_",
        "OMPI_MCA_ess",
        "OMPI_MCA_pmix",
        "PRTE_MCA_",
        "OMPI_MCA_mpi_oversubscribe",
    ];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The programs of this process's ancestors, the nearest first.
fn ancestors() -> Vec<PathBuf> {
    let mut programs = Vec::new();
    let mut process = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    while let Some(pid) = process.filter(|pid| *pid > 1 && programs.len() < ANCESTORS_MAX) {
        // Somebody else's program cannot be looked at.
        programs.push(fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default());
        process = parent(&fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default());
    }
    programs
}

/// The fourth field of /proc/PID/stat (proc(5)); the second is a name in brackets, whatever is in it.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Programs that users call.
const STARTERS: [&str; 5] = ["mpirun", "mpiexec", "orterun", "prterun", "prun"];
/// Programs that these start on each machine.
const DAEMONS: [&str; 4] = ["hydra_pmi_proxy", "hydra_bstrap_proxy", "orted", "prted"];

/// Whether a program has one of these names, or one with an ending (`mpiexec.hydra`).
fn is_one_of(program: &Path, names: &[&str]) -> bool {
    let name = program.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    names.iter().any(|known| name == *known || name.starts_with(&format!("{known}.")))
}

/// Where the libraries of an installation are of which this is a program.
fn beside(program: &Path) -> Vec<PathBuf> {
    let Some(prefix) = program.parent().and_then(Path::parent) else { return Vec::new() };
    let lib = prefix.join("lib");
    let mut places = vec![lib.clone(), prefix.join("lib64")];
    // Debian's directories are named for the machine.
    let entries = fs::read_dir(&lib).into_iter().flatten().flatten();
    places.extend(entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("-linux-gnu"))
    }));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_what_they_set() {
        let of = |names: &[&str]| Launcher::of(|name| names.contains(&name));
        assert_eq!(of(&["PMI_RANK", "PMI_FD"]), Some(Launcher::Mpich));
        assert_eq!(of(&["OMPI_COMM_WORLD_SIZE", "PMIX_RANK"]), Some(Launcher::OpenMpi));
        assert_eq!(of(&["PMIX_RANK"]), Some(Launcher::OpenMpi));
        assert_eq!(of(&["HOME"]), None);
    }

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent("17 (a) b) S 12 17 17 0"), Some(12));
        assert_eq!(parent(""), None);
    }

    #[test]
    fn libraries_are_looked_for_beside_launchers() {
        let program = Path::new("/opt/x/bin/mpiexec.hydra");
        assert!(is_one_of(program, &STARTERS) && !is_one_of(program, &DAEMONS));
        assert!(beside(program).contains(&"/opt/x/lib".into()));
        assert!(!is_one_of(Path::new("/opt/x/bin/mpirunner"), &STARTERS));
        assert!(beside(Path::new("")).is_empty());
    }
}
