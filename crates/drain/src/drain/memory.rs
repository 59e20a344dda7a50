//! What a drain knows of the target from one step to the next.

use std::collections::{BTreeMap, HashMap};

use hostlog::{Attributes, FileId, Sequence};

use super::Drain;
use crate::error::{Error, Result};
use crate::journal::{Intents, State};
use crate::names::Names;
use crate::owner::Kept;
use crate::plan::Plan;
use crate::sequences::Sequences;

/// How a name changed.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Bind(FileId, Vec<u8>),
    Unbind(Vec<u8>),
    Link(Vec<u8>, Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
}

impl Change {
    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            Change::Bind(FileId::NONE, path) | Change::Unbind(path) => names.unbind(path),
            Change::Bind(file, path) => names.bind(*file, path),
            Change::Link(existing, path) => names.link(existing, path),
            Change::Rename(from, to) => names.rename(from, to),
        }
    }
}

/// What is known of the target's state; all of it can be had again from the journal and the log.
pub(super) struct Memory {
    /// Changes of names that were made, and what follows.
    pub(super) state: State,
    /// The same as of the mark in the log.
    pub(super) marked: Names,
    /// The changes between the two.
    pub(super) trail: Vec<(Sequence, Change)>,
    /// Changes that may have been made before the last end, or failure.
    pub(super) intents: Intents,
    /// Records behind the mark that were dealt with.
    pub(super) done: Sequences,
    pub(super) plans: BTreeMap<FileId, Plan>,
    /// Bytes in the plans.
    pub(super) planned_bytes: u64,
    /// How many files were kept open in this step.
    pub(super) opened: usize,
    /// Attributes to be set once the names are those of the target.
    pub(super) attributes: Vec<(Sequence, FileId, Attributes)>,
    /// Removals to be made: of what, and whether it is a directory.
    pub(super) removals: Vec<(Sequence, Vec<u8>, bool)>,
    /// Files that the owner did not hold, and the last record when that was found.
    pub(super) unheld: HashMap<FileId, Sequence>,
    /// Identities in the target.
    pub(super) identities: HashMap<FileId, u64>,
    /// Something was done since the mark was set.
    pub(super) is_marked: bool,
    /// The mark was set before the last record that was seen.
    pub(super) was_held_back: bool,
    /// The last record when the mark was set.
    pub(super) last_at_mark: Sequence,
}

impl Drain {
    /// What the journal and the log say.
    pub(super) fn load(&mut self) -> Result<Memory> {
        if let Some(wholes) = self.wholes() {
            wholes.clean_up()?;
        }
        let (state, intents) = self.journal.load()?;
        self.saved = state.through;
        let mut marked = Names::default();
        let mut identities = HashMap::new();
        for bound in &self.at_mark {
            marked.bind(bound.file, &bound.path);
            identities.insert(bound.file, bound.identity);
        }
        Ok(Memory {
            state,
            marked,
            trail: Vec::new(),
            intents,
            done: Sequences::default(),
            plans: BTreeMap::new(),
            planned_bytes: 0,
            opened: 0,
            attributes: Vec::new(),
            removals: Vec::new(),
            unheld: HashMap::new(),
            identities,
            is_marked: true,
            was_held_back: true,
            last_at_mark: Sequence(0),
        })
    }
}

impl Memory {
    /// Whether the target is further than the names: what is known to have been done comes first.
    pub(super) fn is_catching_up(&self) -> bool {
        self.intents.of.last().is_some_and(|(last, _)| *last > self.state.through)
    }

    /// A path of a record's file; `None` if it has lost its last.
    pub(super) fn path_of(&self, sequence: Sequence, file: FileId) -> Result<Option<&[u8]>> {
        match self.state.names.path_of(file) {
            Some(path) => Ok(Some(path)),
            None if self.state.names.knows(file) => Ok(None),
            None => Err(Error::UnknownFile { sequence, file }),
        }
    }

    /// Brings the names of the mark to a later one.
    pub(super) fn advance(&mut self, through: Sequence) {
        let behind = self.trail.partition_point(|(sequence, _)| *sequence <= through);
        for (_, change) in self.trail.drain(..behind) {
            change.apply(&mut self.marked);
        }
    }

    /// Lets go of files that nobody will ask for any more: their owner did not hold them some time ago, nor does it
    /// now, and everything that was in the log then is drained.
    pub(super) fn prune(&mut self, kept: &Kept, through: Sequence, last: Sequence) {
        let mut unheld = HashMap::new();
        for (file, _) in self.state.names.iter().filter(|(file, _)| !kept.files.contains(file)) {
            let since = self.unheld.get(&file).copied().unwrap_or(last);
            unheld.insert(file, since);
        }
        let gone = |file: FileId| unheld.get(&file).is_some_and(|since| *since <= through);
        self.state.names.retain(|file| !gone(file));
        self.marked.retain(|file| !gone(file));
        self.identities.retain(|file, _| !gone(*file));
        unheld.retain(|_, since| *since > through);
        self.unheld = unheld;
    }
}
