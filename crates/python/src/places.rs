//! What names lead to, for the whole process.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use address::{Endpoint, RemotePath, Uri};
use client::{Options, Session};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use reach::{Far, Reach};
use sieve::Profile;

use crate::error::Result;
use crate::waiting::released;

/// Made at the first use. It is locked by threads that are attached to the interpreter alone, and never while something
/// is waited for: so nobody holds it when Python forks.
static REACH: Mutex<Option<Reach>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Reach>> {
    REACH.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_reach<T>(work: impl FnOnce(&mut Reach) -> reach::Result<T>) -> Result<T> {
    let mut reach = lock();
    let reach = match &mut *reach {
        Some(reach) => reach,
        none => none.insert(Reach::configured()?),
    };
    Ok(work(reach)?)
}

/// Where a URI, or a path below a mapped prefix, leads. Nothing is sent yet.
pub(crate) fn find(name: &[u8]) -> Result<Far> {
    with_reach(|reach| reach.find(name))
}

/// How this process is to talk to services.
pub(crate) fn client_options() -> Result<Options> {
    with_reach(|reach| Ok(reach.client_options()))
}

/// What an access costs on the way to a service, once it was measured. Never waited for, as a fork may find it locked.
static PROFILES: Mutex<Vec<(Endpoint, Profile)>> = Mutex::new(Vec::new());

/// What was measured of the way to a service.
pub(crate) fn profile(endpoint: &Endpoint) -> Option<Profile> {
    let profiles = PROFILES.try_lock().ok()?;
    profiles.iter().find(|(known, _)| known == endpoint).map(|(_, profile)| *profile)
}

/// Remembers what was measured.
pub(crate) fn set_profile(endpoint: &Endpoint, profile: Profile) {
    if let Ok(mut profiles) = PROFILES.try_lock() {
        profiles.push((endpoint.clone(), profile));
    }
}

/// A name of a file, as bytes: text as the file system has it.
pub(crate) struct Name(pub(crate) Vec<u8>);

impl<'py> FromPyObject<'_, 'py> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name = match object.extract::<Vec<u8>>() {
            Ok(bytes) => bytes,
            Err(_) => object.extract::<PathBuf>()?.as_os_str().as_bytes().to_vec(),
        };
        match name.contains(&0) {
            true => Err(PyValueError::new_err("embedded null byte")),
            false => Ok(Self(name)),
        }
    }
}

/// The service of an address, as a URI without a path, and the path there, which begins with a slash.
#[pyfunction]
fn split(name: Name) -> PyResult<(String, String)> {
    let uri = with_reach(|reach| reach.uri(&name.0))?;
    let path = String::from_utf8_lossy(uri.path.as_bytes()).into_owned();
    let service = Uri { endpoint: uri.endpoint, path: RemotePath::default() }.to_string();
    let path = path.trim_start_matches('/');
    Ok((service.trim_end_matches('/').to_owned(), format!("/{path}")))
}

fn sessions() -> Vec<Arc<Session>> {
    lock().iter().flat_map(|reach| reach.sessions().cloned()).collect()
}

/// Before a fork: what was written is with the service, so that no child sends it once more.
#[pyfunction]
fn before_fork(py: Python<'_>) -> PyResult<()> {
    let sessions = sessions();
    released(py, || sessions.iter().for_each(|session| _ = session.files().settle_all()))
}

/// In a fork's child: connections are left to the parent.
#[pyfunction]
fn after_fork_in_child() {
    sessions().iter().for_each(|session| session.abandon());
}

/// Before the interpreter ends.
#[pyfunction]
fn finish(py: Python<'_>) -> PyResult<()> {
    let sessions = sessions();
    released(py, || {
        for session in &sessions {
            session.files().settle_all();
            session.part();
        }
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(split, module)?)?;
    module.add_function(wrap_pyfunction!(before_fork, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork_in_child, module)?)?;
    module.add_function(wrap_pyfunction!(finish, module)?)
}
