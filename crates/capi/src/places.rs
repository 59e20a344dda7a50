//! From names to services: what is configured, and one session for each service.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use address::config::Config;
use address::{Endpoint, Resolved, Route, Routes, Settings, Uri, detect};
use client::{Options, Session, SocketDial};

use crate::error::{Error, Result};

/// Where a name leads.
pub(crate) struct Far {
    pub(crate) session: Arc<Session>,
    pub(crate) uri: Uri,
}

struct Places {
    settings: Settings,
    sessions: HashMap<Endpoint, Arc<Session>>,
}

/// Made at the first call.
static PLACES: Mutex<Option<Places>> = Mutex::new(None);

/// This process was forked since sessions were last used: it must not speak on its parent's connections.
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Runs `work` with what is configured, read at the first call.
fn with_places<T>(work: impl FnOnce(&mut Places) -> Result<T>) -> Result<T> {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler does nothing but store to an atomic. It fails for want of memory alone
        // (pthread_atfork(3)), and then only children would notice.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    if FORKED.swap(false, Ordering::Relaxed)
        && let Some(places) = &*places
    {
        places.sessions.values().for_each(|session| session.abandon());
    }
    if places.is_none() {
        *places = Some(Places { settings: settings()?, sessions: HashMap::new() });
    }
    let places = places.as_mut().ok_or(Error::Panicked)?;
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
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
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
    let shown = |path: &Path| path.display().to_string();
    let text = std::fs::read_to_string(&path)
        .map_err(|source| Error::Unreadable { path: shown(&path), source })?;
    Ok(Config::parse(&text, &path)?)
}

/// Where a URI, or a path below a mapped prefix, leads. Nothing is sent yet.
pub(crate) fn find(name: &[u8]) -> Result<Far> {
    with_places(|places| {
        let uri = match detect(name) {
            Some(found) => found.uri(name)?,
            None => {
                let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
                match places.settings.routes.resolve(cwd.as_os_str().as_bytes(), name) {
                    Resolved::Remote(hit) => hit.uri(),
                    Resolved::Local | Resolved::LocalCleaned => {
                        let name = name.escape_ascii().to_string();
                        return Err(Error::NotFar { name });
                    }
                }
            }
        };
        let uri = places.settings.lead(uri);
        let session = places.session(&uri)?;
        Ok(Far { session, uri })
    })
}

impl Places {
    fn session(&mut self, uri: &Uri) -> Result<Arc<Session>> {
        if let Some(session) = self.sessions.get(&uri.endpoint) {
            return Ok(Arc::clone(session));
        }
        let place = client::Place::of(&uri.endpoint).ok_or_else(|| Error::Unreachable {
            uri: uri.to_string(),
            scheme: uri.endpoint.scheme(),
            instead: match uri.endpoint {
                Endpoint::Mpi { .. } => "this process is no rank of a job that was started with `sluice serve`",
                Endpoint::Direct => "this process has no stores of its own; name a service by scdc+uds:// or scdc+tcp://",
                _ => "serve it with `sluice serve NAME=URI`, and name that service by scdc+uds:// or scdc+tcp://",
            },
        })?;
        let options = Options::from(&self.settings.client);
        let session = Session::new(Box::new(SocketDial::new(place)), options);
        self.sessions.insert(uri.endpoint.clone(), Arc::clone(&session));
        Ok(session)
    }
}
