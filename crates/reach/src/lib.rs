//! From names to services, for programs that use Sluice as a library: what is configured, and one session for each service.
//!
//! One name that a program gives:
//!
//! 1. [`Reach::configured`] has read what an enclosing `sluice run` says, and the configuration file.
//! 2. [`Reach::uri`] takes the name for a URI, or for a path below a mapped prefix.
//! 3. [`Reach::find`] follows detours and gives the session of the service, made at the first use. Nothing is sent yet.
//!
//! What happens at a fork is for the library to say: it has [`Reach::sessions`].
#![forbid(unsafe_code)]

mod configuration;
mod error;

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use address::{Endpoint, Resolved, Settings, Uri, detect};
use client::{Options, Session, SocketDial};

pub use error::{Error, Result};

/// Where a name leads.
#[derive(Clone)]
pub struct Far {
    /// The service.
    pub session: Arc<Session>,
    /// The file there.
    pub uri: Uri,
}

/// What is configured, and the sessions that are in use.
pub struct Reach {
    settings: Settings,
    sessions: HashMap<Endpoint, Arc<Session>>,
}

impl Reach {
    /// What an enclosing `sluice run` says, over the configuration file, over the defaults.
    ///
    /// # Errors
    /// A configuration that cannot be read, or has mistakes.
    pub fn configured() -> Result<Self> {
        Ok(Self { settings: configuration::settings()?, sessions: HashMap::new() })
    }

    /// How this process is to talk to services.
    #[must_use]
    pub fn client_options(&self) -> Options {
        Options::from(&self.settings.client)
    }

    /// A URI, or a path below a mapped prefix, as a URI.
    ///
    /// # Errors
    /// What is neither.
    pub fn uri(&self, name: &[u8]) -> Result<Uri> {
        if let Some(found) = detect(name) {
            return Ok(found.uri(name)?);
        }
        let cwd = working_directory();
        match self.settings.routes.resolve(cwd.as_os_str().as_bytes(), name) {
            Resolved::Remote(hit) => Ok(hit.uri()),
            Resolved::Local | Resolved::LocalCleaned => {
                Err(Error::NotFar { name: String::from_utf8_lossy(name).into_owned() })
            }
        }
    }

    /// Where a name leads. Nothing is sent yet.
    ///
    /// # Errors
    /// What is no address, or one that cannot be reached from within a program.
    pub fn find(&mut self, name: &[u8]) -> Result<Far> {
        let uri = self.settings.lead(self.uri(name)?);
        Ok(Far { session: self.session(&uri)?, uri })
    }

    /// Those that are in use.
    pub fn sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.values()
    }

    fn session(&mut self, uri: &Uri) -> Result<Arc<Session>> {
        if let Some(session) = self.sessions.get(&uri.endpoint) {
            return Ok(Arc::clone(session));
        }
        let place = client::Place::of(&uri.endpoint).ok_or_else(|| Error::unreachable(uri))?;
        let session = Session::new(Box::new(SocketDial::new(place)), self.client_options());
        self.sessions.insert(uri.endpoint.clone(), Arc::clone(&session));
        Ok(session)
    }
}

/// The root where there is none any more.
fn working_directory() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}
