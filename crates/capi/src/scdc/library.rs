//! What the library has between `scdc_init` and `scdc_release`.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use address::Endpoint;
use client::{Options, Session, SocketDial};
use service::Direct;
use store::Exports;

use super::hooks::Hooks;
use super::report::{FAILURE, SUCCESS, ScdcInt, report};
use super::variadic::{Arguments, text};
use super::{datasets, outputs, ports, providers, tapes};

/// What the library was built with; read by programs.
macro_rules! not_built_with {
    ($($name:ident)*) => {$(
        /// Whether the library was built with it.
        #[unsafe(no_mangle)]
        pub static $name: ScdcInt = 0;
    )*};
}

not_built_with!(SCDC_USE_ZLIB SCDC_USE_MYSQL SCDC_USE_MPI SCDC_USE_WEBDAV SCDC_USE_NFS);

/// The providers of this process, and connections to others.
pub(crate) struct Library {
    /// Every provider as a store, as node ports show them.
    pub(crate) exports: Arc<Exports>,
    /// Files of this process.
    pub(crate) direct: Arc<Session>,
    /// Hooks of this process, which are called directly.
    pub(crate) hooks: Mutex<HashMap<String, Arc<Hooks>>>,
    /// Connections that no dataset uses.
    idle: Mutex<HashMap<Endpoint, Vec<Arc<Session>>>>,
}

static LIBRARY: Mutex<Option<Arc<Library>>> = Mutex::new(None);

/// Most connections that are kept for a service while nobody uses them.
const IDLE_MAX: usize = 4;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The library.
///
/// # Errors
/// In words, outside of `scdc_init` and `scdc_release`.
pub(crate) fn library() -> Result<Arc<Library>, String> {
    lock(&LIBRARY)
        .clone()
        .ok_or_else(|| "the library is not initialised: call scdc_init".to_owned())
}

/// `scdc_init`.
///
/// # Safety
/// As [`super::variadic`] says.
pub(crate) unsafe extern "C" fn init(conf: *const c_char, _arguments: *mut Arguments) -> ScdcInt {
    report(FAILURE, || {
        if !conf.is_null() {
            // SAFETY: the caller's promise.
            let conf = unsafe { text(conf, "conf") }?;
            // Direct access cannot be taken away from a process by itself; the word is understood.
            if let Some(other) = conf.split(':').find(|word| !matches!(*word, "" | "no_direct")) {
                return Err(format!("`{other}` is not understood: no_direct is known").into());
            }
        }
        let mut library = lock(&LIBRARY);
        if library.is_some() {
            return Err(b"the library is initialised already".to_vec());
        }
        let exports = Exports::new([]).map_err(|error| error.to_string())?;
        let exports = Arc::new(exports);
        let served: Arc<Exports> = Arc::clone(&exports);
        let direct = client::direct(Arc::new(Direct::new(served)));
        *library = Some(Arc::new(Library {
            exports,
            direct: Session::new(Box::new(direct), Options::default()),
            hooks: Mutex::default(),
            idle: Mutex::default(),
        }));
        Ok((SUCCESS, Vec::new()))
    })
}

/// `scdc_release`: ends whatever is left.
#[unsafe(no_mangle)]
pub extern "C" fn scdc_release() {
    report((), || {
        outputs::end_all();
        datasets::end_all();
        ports::end_all();
        providers::end_all();
        tapes::end_all();
        *lock(&LIBRARY) = None;
        Ok(((), Vec::new()))
    });
}

impl Library {
    /// A connection to a service for one user; it goes back by [`Library::done_with`].
    pub(crate) fn connection(&self, endpoint: &Endpoint) -> Result<Arc<Session>, String> {
        if *endpoint == Endpoint::Direct {
            return Ok(Arc::clone(&self.direct));
        }
        if let Some(session) = lock(&self.idle).get_mut(endpoint).and_then(Vec::pop) {
            return Ok(session);
        }
        let place = client::Place::of(endpoint).ok_or_else(|| {
            let scheme = endpoint.scheme();
            format!("{scheme} cannot be used here: a rank of a job with services could, or a service elsewhere")
        })?;
        Ok(Session::new(Box::new(SocketDial::new(place)), Options::default()))
    }

    /// Gives a connection back.
    pub(crate) fn done_with(&self, endpoint: &Endpoint, session: Arc<Session>) {
        if *endpoint != Endpoint::Direct {
            let mut idle = lock(&self.idle);
            let idle = idle.entry(endpoint.clone()).or_default();
            if idle.len() < IDLE_MAX {
                idle.push(session);
            }
        }
    }
}
