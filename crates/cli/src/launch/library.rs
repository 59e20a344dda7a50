//! Finding the preload library.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::elf::{CLASS_64, Image, OWN_MACHINE};

/// Its file name.
const NAME: &str = "libsluice.so";

/// The library's path: `$SLUICE_PRELOAD`, or beside this program, or in `../lib` of its directory.
///
/// The dynamic loader only warns about a library that it cannot load, and then runs the program on local files; so
/// what could be wrong with it is checked here.
pub(crate) fn find() -> Result<PathBuf> {
    let path = match std::env::var_os("SLUICE_PRELOAD").filter(|value| !value.is_empty()) {
        Some(path) => {
            let path = std::path::absolute(&path)
                .with_context(|| format!("$SLUICE_PRELOAD is {}", path.display()))?;
            check(&path).context("$SLUICE_PRELOAD is set; correct or unset it")?;
            return Ok(path);
        }
        None => {
            let own = std::env::current_exe().context(
                "cannot tell where this program is; set $SLUICE_PRELOAD to libsluice.so",
            )?;
            let dir = own.parent().unwrap_or(Path::new("/"));
            let places = [dir.join(NAME), dir.parent().unwrap_or(dir).join("lib").join(NAME)];
            let Some(found) = places.iter().find(|path| path.exists()) else {
                bail!(
                    "the preload library {NAME} is not beside {} and not at {}; copy it there (in the sources, `cargo build --release -p preload` makes it) or set \
                     $SLUICE_PRELOAD to its path",
                    own.display(),
                    places[1].display()
                );
            };
            // Without `..`, as messages and /proc/PID/maps show it.
            found.canonicalize().with_context(|| found.display().to_string())?
        }
    };
    check(&path)?;
    Ok(path)
}

/// The library for MPI-IO, beside the preload library; without it MPI programs do all by themselves.
pub(crate) fn for_mpi(library: &Path) -> Option<PathBuf> {
    let path = library.with_file_name("libsluice_mpi.so");
    check(&path).is_ok().then_some(path)
}

/// The library that stands before PnetCDF, beside the preload library, or beside this program.
pub(crate) fn for_coupling() -> Result<PathBuf> {
    let beside = match std::env::var_os("SLUICE_PRELOAD").filter(|value| !value.is_empty()) {
        Some(path) => std::path::absolute(&path)?,
        None => std::env::current_exe()?.canonicalize()?,
    };
    let dir = beside.parent().unwrap_or(Path::new("/"));
    let name = "libsluice_nc.so";
    let places = [dir.join(name), dir.parent().unwrap_or(dir).join("lib").join(name)];
    let path = places.iter().find(|path| path.exists()).unwrap_or(&places[0]);
    check(path).context("programs that use PnetCDF cannot be coupled without it")?;
    Ok(path.clone())
}

/// The libraries that give an MPI program of a job with services a world of its own, beside the preload library;
/// `large_counts`: also that for the functions which only some MPI libraries have.
pub(crate) fn for_world(library: &Path, large_counts: bool) -> Result<Vec<PathBuf>> {
    let mut names = vec!["libsluice_world.so"];
    names.extend(large_counts.then_some("libsluice_world_large.so"));
    let beside = |name| {
        let path = library.with_file_name(name);
        check(&path).context("MPI programs need it in a job with services")?;
        Ok(path)
    };
    names.into_iter().map(beside).collect()
}

fn check(path: &Path) -> Result<()> {
    let file = File::open(path)
        .with_context(|| format!("cannot read the preload library {}", path.display()))?;
    let usable = match Image::read(&file).with_context(|| path.display().to_string())? {
        Image::Elf(elf) => {
            elf.class == CLASS_64 && elf.machine == OWN_MACHINE && elf.kind == 3 && elf.dynamic
        }
        Image::Script { .. } | Image::Other => false,
    };
    if !usable {
        bail!(
            "{} is not a shared library for this machine; build it, or set $SLUICE_PRELOAD to one that is",
            path.display()
        );
    }
    if path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        bail!(
            "the dynamic loader cannot preload {}: its path has a space or a colon; move it",
            path.display()
        );
    }
    Ok(())
}

/// `LD_PRELOAD` with `library` in front of what is there already.
pub(crate) fn preload(library: &Path, existing: Option<OsString>) -> OsString {
    let existing = existing.unwrap_or_default();
    let mut value = library.as_os_str().as_bytes().to_vec();
    let others = existing.as_bytes().split(|byte| matches!(byte, b' ' | b':'));
    for other in
        others.filter(|other| !other.is_empty() && *other != library.as_os_str().as_bytes())
    {
        value.push(b':');
        value.extend_from_slice(other);
    }
    OsString::from_vec(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first_and_once() {
        let value = |existing: Option<&str>| {
            preload(Path::new("/l/libsluice.so"), existing.map(OsString::from))
        };
        assert_eq!(value(None), "/l/libsluice.so");
        assert_eq!(value(Some("a.so b.so:/c.so")), "/l/libsluice.so:a.so:b.so:/c.so");
        assert_eq!(value(Some("/x.so:/l/libsluice.so")), "/l/libsluice.so:/x.so");
    }
}
