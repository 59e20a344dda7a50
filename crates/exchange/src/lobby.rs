//! The meeting directory as a launcher sees it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use crate::meeting::Meeting;
use crate::{Fault, Flowing, Tally};

/// Where the ranks of a workflow meet.
#[derive(Debug)]
pub struct Lobby(Meeting);

/// What all ranks of a component had to do with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// The component, by its number in the configuration.
    pub component: u16,
    /// Sums of bytes; openings, cycles and waiting are those of the rank with most of them.
    pub flowing: Flowing,
}

impl Lobby {
    /// Makes what is missing of it; only this user may look into it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(directory: &Path) -> Result<Self, Fault> {
        Meeting::new(directory).map(Self)
    }

    /// Forgets whatever happened here before. Only where no component is running.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn clear(directory: &Path) -> io::Result<()> {
        for part in Meeting::PARTS {
            match fs::remove_dir_all(directory.join(part)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// A component is started, perhaps again.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn begins(&self, component: u16) -> io::Result<()> {
        match fs::remove_file(self.0.ended_directory().join(component.to_string())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// All processes of a component have ended: nobody need wait for it.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn ended(&self, component: u16, how: &str) -> io::Result<()> {
        self.0.end(component, how)
    }

    /// What was carried until now.
    #[must_use]
    pub fn traffic(&self) -> Vec<Traffic> {
        let mut sums: BTreeMap<(u16, String, bool, String), Tally> = BTreeMap::new();
        for entry in fs::read_dir(self.0.flow("")).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let component = name.to_str().filter(|name| !name.ends_with(".new"));
            let component = component.and_then(|name| name.split('.').next()?.parse().ok());
            let (Some(component), Ok(text)) = (component, fs::read_to_string(entry.path())) else {
                continue;
            };
            for Flowing { file, other, writes, tally } in Flowing::parse(&text) {
                let sum = sums.entry((component, file, writes, other)).or_default();
                sum.bytes += tally.bytes;
                sum.kept += tally.kept;
                sum.openings = sum.openings.max(tally.openings);
                sum.cycles = sum.cycles.max(tally.cycles);
                sum.waited = sum.waited.max(tally.waited);
            }
        }
        let traffic = |((component, file, writes, other), tally)| Traffic {
            component,
            flowing: Flowing { file, other, writes, tally },
        };
        sums.into_iter().map(traffic).collect()
    }

    /// How long the ranks of a component have waited for others, at most.
    #[must_use]
    pub fn waited(traffic: &[Traffic], component: u16) -> Duration {
        let own = traffic.iter().filter(|one| one.component == component);
        own.map(|one| one.flowing.tally.waited).sum()
    }
}
