//! Operations on names: listing, asking, making, removing, renaming.

use std::sync::{Mutex, PoisonError};

use address::Uri;
use client::At;
use p9::{Attributes, Errno, OpenFlags, Time};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use reach::Far;

use crate::error::{Error, Result};
use crate::places::{Name, find};
use crate::waiting::released;

/// How many files are asked for their attributes at a time: each is a round trip.
const LOOKS_AT_A_TIME: usize = 8;

/// How many are asked before signals are handled.
const LOOKS_BETWEEN_SIGNALS: usize = 256;

/// `st_mode`, identity, links, owner, group, size, and the times of last access, change of content and change of
/// attributes in nanoseconds.
pub(crate) type Stat = (u32, u64, u64, u32, u32, u64, i128, i128, i128);

pub(crate) fn stat_of(found: &Attributes) -> Stat {
    // Seconds before 1970 wrap on the wire.
    let ns =
        |time: Time| i128::from(time.seconds as i64) * 1_000_000_000 + i128::from(time.nanoseconds);
    (
        found.mode,
        found.qid.path,
        found.nlink,
        found.uid,
        found.gid,
        found.size,
        ns(found.atime),
        ns(found.mtime),
        ns(found.ctime),
    )
}

/// A failure of the service, with the file it is about.
pub(crate) fn failed(uri: &Uri) -> impl Fn(client::Error) -> Error + '_ {
    move |source| Error::Service { name: uri.to_string(), source }
}

/// Does something with what a name leads to. Writes that this process has gathered count.
fn on_name<T: Send>(
    py: Python<'_>,
    name: &Name,
    work: impl FnOnce(&Far, At<'_>) -> client::Result<T> + Send,
) -> PyResult<T> {
    let far = find(&name.0)?;
    let done = released(py, || {
        far.session.files().settle_all();
        work(&far, At::root(far.uri.path.as_bytes()))
    })?;
    Ok(done.map_err(failed(&far.uri))?)
}

/// What is known of a file; `follow`: of what a symbolic link there leads to.
#[pyfunction]
fn stat(py: Python<'_>, name: Name, follow: bool) -> PyResult<Stat> {
    on_name(py, &name, |far, at| Ok(stat_of(&far.session.stat(at, follow)?)))
}

fn names_in(far: &Far, at: At<'_>) -> client::Result<Vec<Vec<u8>>> {
    let handle = far.session.open(at, OpenFlags::DIRECTORY, 0)?.handle;
    let mut names = Vec::new();
    handle.into_entries(|entry| names.push(entry.name.to_vec()))?;
    names.sort_unstable();
    Ok(names)
}

/// The names in a directory, sorted, as bytes.
#[pyfunction]
fn list_names<'py>(py: Python<'py>, name: Name) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let names = on_name(py, &name, names_in)?;
    Ok(names.iter().map(|name| PyBytes::new(py, name)).collect())
}

/// The names in a directory, each with what is known of it, symbolic links not followed.
#[pyfunction]
fn list_with_stats<'py>(py: Python<'py>, name: Name) -> PyResult<Vec<(Bound<'py, PyBytes>, Stat)>> {
    let names = on_name(py, &name, names_in)?;
    let far = find(&name.0)?;
    let mut entries = Vec::with_capacity(names.len());
    for part in names.chunks(LOOKS_BETWEEN_SIGNALS) {
        let stats = released(py, || stat_all(&far, part))?;
        for (name, found) in part.iter().zip(stats) {
            match found {
                Ok(found) => entries.push((PyBytes::new(py, name), found)),
                // It was removed meanwhile.
                Err(client::Error::Refused(Errno::ENOENT)) => {}
                Err(error) => return Err(failed(&far.uri)(error).into()),
            }
        }
        py.check_signals()?;
    }
    Ok(entries)
}

/// Several round trips at a time, in the order of the names.
fn stat_all(far: &Far, names: &[Vec<u8>]) -> Vec<client::Result<Stat>> {
    let look = |name: &Vec<u8>| {
        let uri = far.uri.join(name);
        Ok(stat_of(&far.session.stat(At::root(uri.path.as_bytes()), false)?))
    };
    if names.len() < 2 * LOOKS_AT_A_TIME {
        return names.iter().map(look).collect();
    }
    let share = names.len().div_ceil(LOOKS_AT_A_TIME);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (number, part) in names.chunks(share).enumerate() {
            let found = &found;
            scope.spawn(move || {
                let stats: Vec<_> = part.iter().map(look).collect();
                found.lock().unwrap_or_else(PoisonError::into_inner).push((number, stats));
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable_by_key(|(number, _)| *number);
    found.into_iter().flat_map(|(_, stats)| stats).collect()
}

/// Makes a directory.
#[pyfunction]
fn mkdir(py: Python<'_>, name: Name, mode: u32) -> PyResult<()> {
    on_name(py, &name, |far, at| far.session.make_directory(at, mode & !umask()))
}

/// Removes a file.
#[pyfunction]
fn unlink(py: Python<'_>, name: Name) -> PyResult<()> {
    on_name(py, &name, |far, at| far.session.remove(at, false))
}

/// Removes an empty directory.
#[pyfunction]
fn rmdir(py: Python<'_>, name: Name) -> PyResult<()> {
    on_name(py, &name, |far, at| far.session.remove(at, true))
}

/// The target of a symbolic link.
#[pyfunction]
fn readlink<'py>(py: Python<'py>, name: Name) -> PyResult<Bound<'py, PyBytes>> {
    let target = on_name(py, &name, |far, at| far.session.read_link(at))?;
    Ok(PyBytes::new(py, &target))
}

/// Gives a file another name within its service, replacing what is there.
#[pyfunction]
fn rename(py: Python<'_>, from: Name, to: Name) -> PyResult<()> {
    let new = find(&to.0)?;
    on_name(py, &from, |old, at| match old.uri.endpoint == new.uri.endpoint {
        true => old.session.rename(at, At::root(new.uri.path.as_bytes()), false),
        false => Err(client::Error::Refused(Errno::EXDEV)),
    })
}

/// The process's umask: services take a mode as it is.
pub(crate) fn umask() -> u32 {
    // umask(2) only sets; /proc tells without a moment in which files of other threads get the wrong mode.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    field.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o022)
}

/// Opens a file; not a directory.
pub(crate) fn open_file(far: &Far, flags: OpenFlags) -> Result<client::Opened> {
    // What is written through other openings counts.
    let mode = if flags.contains(OpenFlags::CREATE) { 0o666 & !umask() } else { 0 };
    let at = At::root(far.uri.path.as_bytes());
    let opened = far.session.open(at, flags, mode).map_err(failed(&far.uri))?;
    if opened.attributes.is_directory() {
        opened.handle.close();
        return Err(failed(&far.uri)(client::Error::Refused(Errno::EISDIR)));
    }
    Ok(opened)
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(stat, module)?)?;
    module.add_function(wrap_pyfunction!(list_names, module)?)?;
    module.add_function(wrap_pyfunction!(list_with_stats, module)?)?;
    module.add_function(wrap_pyfunction!(mkdir, module)?)?;
    module.add_function(wrap_pyfunction!(unlink, module)?)?;
    module.add_function(wrap_pyfunction!(rmdir, module)?)?;
    module.add_function(wrap_pyfunction!(readlink, module)?)?;
    module.add_function(wrap_pyfunction!(rename, module)?)
}
