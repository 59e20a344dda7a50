//! How a dataset is, without opening it.

use std::path::Path;

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::file::{File, Surroundings};
use crate::intents::Intents;
use crate::opening::state_directory;
use crate::state::{Condition, State};

/// How a dataset is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Somebody has it open.
    pub in_use: bool,
    /// Who, where the system tells.
    pub process: Option<u32>,
    /// Something may differ between replicas: it is in use, or was not closed.
    pub unfinished: bool,
    /// The replicas of the definition, in order. One that is not there, or never was, is stale.
    pub replicas: Vec<(String, Condition)>,
}

/// Where whoever has a dataset open serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The address of the dataset there.
    pub uri: String,
    /// It ends with one program, and is for that.
    pub is_private: bool,
}

const SERVICE: &str = "service";

impl Service {
    /// What was announced of the dataset that the file at `path` defines, by [`Dataset::announce`].
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let directory = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let directory = state_directory(directory.unwrap_or(Path::new(".")), path).ok()?;
        let text = std::fs::read_to_string(directory.join(SERVICE)).ok()?;
        let (uri, note) = text.trim_end().split_once('\n').unwrap_or((text.trim_end(), ""));
        Some(Self { uri: uri.to_owned(), is_private: note == "private" })
    }
}

impl Dataset {
    /// Tells other processes of this machine where the dataset is served, as long as it is open.
    ///
    /// # Errors
    /// When that cannot be written down.
    pub fn announce(&self, service: &Service) -> Result<()> {
        let note = if service.is_private { "\nprivate" } else { "" };
        let text = format!("{}{note}\n", service.uri);
        let path = self.shared.state_directory.join(SERVICE);
        crate::file::replace(&path, "service.new", text.as_bytes(), None, &self.shared.around)
    }
}

/// Forgets what somebody has announced who has the dataset open no more.
pub(crate) fn forget_service(state_directory: &Path) {
    // There mostly is nothing; what cannot be removed leads nowhere.
    let _ = rustix::fs::unlink(state_directory.join(SERVICE));
}

impl Status {
    /// Looks at the dataset that the file at `path` defines, and changes nothing.
    ///
    /// # Errors
    /// When the definition or the state cannot be read.
    pub fn of(path: &Path) -> Result<Self> {
        let definition = crate::definition::load(path)?;
        let directory = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let state_directory = state_directory(directory, path)?;
        let around = Surroundings::default();
        let (mut in_use, mut process) = (false, None);
        if let Some(lock) = File::open(&state_directory.join("lock"), &around)? {
            match lock.lock() {
                Ok(()) => {}
                Err(Error::InUse { pid, .. }) => (in_use, process) = (true, pid),
                Err(error) => return Err(error),
            }
        }
        let state = State::load(&state_directory, &around)?.unwrap_or_default();
        let intents = state_directory.join("intents");
        let unfinished = Intents::peek(&intents, &around)?;
        let replicas = definition.replicas.iter().map(|replica| {
            let stale = |reason: &str| Condition::Stale { reason: reason.to_owned() };
            let condition = match state.replicas.get(&replica.name) {
                None => stale("it was not made yet"),
                Some(known) if known.condition == Condition::Fresh => {
                    let is_there = directory.join(&replica.name).exists();
                    if is_there { Condition::Fresh } else { stale("it is missing") }
                }
                Some(known) => known.condition.clone(),
            };
            (replica.name.clone(), condition)
        });
        Ok(Self { in_use, process, unfinished, replicas: replicas.collect() })
    }
}
