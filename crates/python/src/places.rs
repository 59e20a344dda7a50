//! From names to services: what is configured, and one session for each service.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use address::config::Config;
use address::{Endpoint, RemotePath, Resolved, Route, Routes, Settings, Uri, detect};
use client::{Options, Session, SocketDial};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sieve::Profile;

use crate::error::{Error, Result};
use crate::waiting::released;

/// Where a name leads.
pub(crate) struct Far {
    pub(crate) session: Arc<Session>,
    pub(crate) uri: Uri,
}

struct Places {
    settings: Settings,
    sessions: HashMap<Endpoint, Arc<Session>>,
}

/// Made at the first use. It is locked by threads that are attached to the interpreter alone, and never while something
/// is waited for: so nobody holds it when Python forks.
static PLACES: Mutex<Option<Places>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Places>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_places<T>(work: impl FnOnce(&mut Places) -> Result<T>) -> Result<T> {
    let mut places = lock();
    let places = match &mut *places {
        Some(places) => places,
        none => none.insert(Places { settings: settings()?, sessions: HashMap::new() }),
    };
    work(places)
}

/// What an enclosing `sluice run` says, over the configuration file, over the defaults.
fn settings() -> Result<Settings> {
    let outer = match std::env::var_os(Settings::VARIABLE) {
        Some(value) => Some(Settings::from_env(value.as_bytes())?),
        None => None,
    };
    let config = config()?;
    let client = match &outer {
        Some(outer) => outer.client,
        None => config.client.options(),
    };
    let outer = outer.unwrap_or_default();
    let mut routes: Vec<Route> = Vec::new();
    for route in outer.routes.iter().chain(config.routes.iter()) {
        if routes.iter().all(|stronger| stronger.prefix() != route.prefix()) {
            routes.push(route.clone());
        }
    }
    Ok(Settings { routes: Routes::new(routes)?, client, ..outer })
}

fn config() -> Result<Config> {
    let cwd = working_directory();
    let named = std::env::var_os("SLUICE_CONFIG").filter(|value| !value.is_empty());
    let path = match named {
        Some(path) => Some(cwd.join(path)),
        None => {
            let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let places = Config::search_order(&cwd, xdg.as_deref(), home.as_deref());
            places.into_iter().find(|path| path.symlink_metadata().is_ok())
        }
    };
    let Some(path) = path else { return Ok(Config::default()) };
    let text = std::fs::read_to_string(&path)
        .map_err(|source| Error::Unreadable { path: path.display().to_string(), source })?;
    Ok(Config::parse(&text, &path)?)
}

fn working_directory() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

impl Places {
    fn uri(&self, name: &[u8]) -> Result<Uri> {
        match detect(name) {
            Some(found) => Ok(found.uri(name)?),
            None => {
                let cwd = working_directory();
                match self.settings.routes.resolve(cwd.as_os_str().as_bytes(), name) {
                    Resolved::Remote(hit) => Ok(hit.uri()),
                    Resolved::Local | Resolved::LocalCleaned => {
                        Err(Error::NotFar { name: String::from_utf8_lossy(name).into_owned() })
                    }
                }
            }
        }
    }

    fn session(&mut self, uri: &Uri) -> Result<Arc<Session>> {
        if let Some(session) = self.sessions.get(&uri.endpoint) {
            return Ok(Arc::clone(session));
        }
        let place = client::Place::of(&uri.endpoint).ok_or_else(|| Error::Unreachable {
            uri: uri.to_string(),
            scheme: uri.endpoint.scheme(),
            instead: match uri.endpoint {
                Endpoint::Mpi { .. } => "this process is no rank of a job that was started with `sluice serve`",
                Endpoint::Direct => "serve the store by sluice.Service, and use its address",
                _ => "serve it with `sluice serve NAME=URI`, and name that service by scdc+uds:// or scdc+tcp://",
            },
        })?;
        let options = Options::from(&self.settings.client);
        let session = Session::new(Box::new(SocketDial::new(place)), options);
        self.sessions.insert(uri.endpoint.clone(), Arc::clone(&session));
        Ok(session)
    }
}

/// Where a URI, or a path below a mapped prefix, leads. Nothing is sent yet.
pub(crate) fn find(name: &[u8]) -> Result<Far> {
    with_places(|places| {
        let uri = places.settings.lead(places.uri(name)?);
        Ok(Far { session: places.session(&uri)?, uri })
    })
}

/// How this process is to talk to services.
pub(crate) fn client_options() -> Result<Options> {
    with_places(|places| Ok(Options::from(&places.settings.client)))
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
    let uri = with_places(|places| places.uri(&name.0))?;
    let path = String::from_utf8_lossy(uri.path.as_bytes()).into_owned();
    let service = Uri { endpoint: uri.endpoint, path: RemotePath::default() }.to_string();
    let path = path.trim_start_matches('/');
    Ok((service.trim_end_matches('/').to_owned(), format!("/{path}")))
}

fn sessions() -> Vec<Arc<Session>> {
    lock().iter().flat_map(|places| places.sessions.values().cloned()).collect()
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
