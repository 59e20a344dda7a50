//! One opening of a file, between the ranks that write it and those of one component that read it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use coupling::Rule;
use matching::{
    Component, Coupling, Cycle, Distribution, File, FileSpec, FullQueue, Handle, Node, Place,
    VariableSpec,
};
use nctypes::Format;

use crate::wire::{Contact, Frame, LaneKey, ProcessId};

/// The only file of its node.
pub(crate) const FILE: File = File(0);

/// What the program has defined.
#[derive(Debug)]
pub(crate) struct Defined {
    pub(crate) header: Vec<u8>,
    pub(crate) format: Format,
    pub(crate) variables: Vec<VariableSpec>,
}

/// A call of the program that waits until the node can be told of it.
#[derive(Debug)]
pub(crate) enum Call {
    Define(Arc<Defined>),
    Write(Handle),
    Synchronise,
    Finish { records: u64 },
}

/// How far a writer's cycle is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Now {
    Between,
    Asking,
    Writing(Cycle),
    Dropped,
}

/// A cycle that not all writers have finished.
#[derive(Debug, Default)]
pub(crate) struct Finishing {
    pub(crate) places: BTreeSet<Place>,
    pub(crate) records: u64,
    pub(crate) defined: Option<Arc<Defined>>,
}

/// The parts of a rule that nodes need.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    matchers: Option<u32>,
    distribution: Distribution,
    replay: bool,
    queue: Option<u32>,
}

impl Manner {
    pub(crate) fn of(rule: &Rule) -> Self {
        // Who waits does so before the cycle begins; what is dropped is agreed on by the node.
        let queue = rule.queue.filter(|(_, full)| *full == FullQueue::Discard);
        Self {
            matchers: rule.matchers,
            distribution: rule.distribution,
            replay: rule.replay,
            queue: queue.map(|(limit, _)| limit),
        }
    }
}

pub(crate) struct Lane {
    pub(crate) key: LaneKey,
    /// As this component calls it.
    pub(crate) name: String,
    pub(crate) manner: Manner,
    pub(crate) components: Vec<String>,
    pub(crate) me: Place,
    pub(crate) writes: bool,
    pub(crate) is_file: bool,
    /// The ranks of each component that writes, in the order of the rule.
    pub(crate) writers: Vec<(u16, Option<Vec<Contact>>)>,
    /// Those of the component that reads.
    pub(crate) readers: Option<Vec<Contact>>,
    pub(crate) node: Option<Node>,
    /// The writers that match.
    pub(crate) matching: Vec<Place>,
    /// What came before the node.
    pub(crate) held: Vec<Frame>,
    pub(crate) calls: VecDeque<Call>,
    pub(crate) now: Now,
    /// Cycles that the program has finished, and those that nobody needs any more.
    pub(crate) submitted: u32,
    pub(crate) released: u32,
    /// Cycles that the node was told are finished, without those that were dropped.
    pub(crate) submitted_to_node: u32,
    /// What is being fetched from this rank.
    pub(crate) pulls: u32,
    pub(crate) finishing: BTreeMap<u32, Finishing>,
    /// The next cycle whose header is left for the readers.
    pub(crate) posted: u32,
    /// The program has closed the file; and readers were told that there is no more.
    pub(crate) closed: bool,
    pub(crate) said_closed: bool,
    /// Nobody will read this: why.
    pub(crate) abandoned: Option<String>,
    /// For the reader: a writer that is gone.
    pub(crate) lost: Option<Place>,
}

impl Lane {
    /// Whether it is this rank that looks into the directory for its group.
    pub(crate) fn leads(&self) -> bool {
        self.me.rank == 0
    }

    /// Whether it is this rank that tells the readers of finished cycles.
    pub(crate) fn posts(&self) -> bool {
        self.writes && self.leads() && self.first() == self.me.component.0
    }

    fn first(&self) -> u16 {
        self.writers.first().map_or(u16::MAX, |(component, _)| *component)
    }

    /// Who is told that this rank has finished a cycle.
    pub(crate) fn poster(&self) -> Place {
        let component = if self.is_file { self.me.component.0 } else { self.first() };
        Place { component: Component(component), rank: 0 }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.readers.is_some() && self.writers.iter().all(|(_, list)| list.is_some())
    }

    pub(crate) fn roster(&self, component: u16) -> Option<&Vec<Contact>> {
        if component == self.key.reader {
            return self.readers.as_ref();
        }
        self.writers.iter().find(|(one, _)| *one == component)?.1.as_ref()
    }

    pub(crate) fn set_roster(&mut self, component: u16, contacts: Vec<Contact>) {
        if component == self.key.reader {
            self.readers.get_or_insert(contacts);
        } else if let Some((_, list)) = self.writers.iter_mut().find(|(one, _)| *one == component) {
            list.get_or_insert(contacts);
        }
    }

    pub(crate) fn contact(&self, place: Place) -> Option<&Contact> {
        self.roster(place.component.0)?.get(place.rank as usize)
    }

    fn places_of(component: u16, contacts: &[Contact]) -> impl Iterator<Item = Place> {
        let component = Component(component);
        (0..contacts.len() as u32).map(move |rank| Place { component, rank })
    }

    pub(crate) fn writing_places(&self) -> Vec<Place> {
        let lists = self.writers.iter().filter_map(|(one, list)| Some((*one, list.as_ref()?)));
        lists.flat_map(|(one, list)| Self::places_of(one, list)).collect()
    }

    pub(crate) fn reading_places(&self) -> Vec<Place> {
        let list = self.readers.as_deref().unwrap_or_default();
        Self::places_of(self.key.reader, list).collect()
    }

    /// Where a process takes part.
    pub(crate) fn place_of(&self, process: &ProcessId) -> Option<Place> {
        let mut places = self.writing_places();
        places.extend(self.reading_places());
        let is = |place: &Place| self.contact(*place).is_some_and(|one| one.process == *process);
        places.into_iter().find(is)
    }

    pub(crate) fn is_writer(&self, place: Place) -> bool {
        self.writers.iter().any(|(one, _)| *one == place.component.0)
    }

    /// `rank 3 of ocean`.
    pub(crate) fn describe(&self, place: Place) -> String {
        let name = self.components.get(usize::from(place.component.0));
        format!("rank {} of {}", place.rank, name.map_or("?", String::as_str))
    }

    /// Makes the node, as all ranks are known.
    pub(crate) fn start(&mut self, format: Format) {
        let manner = &self.manner;
        let spec = FileSpec {
            format,
            matchers: manner.matchers,
            distribution: manner.distribution,
            replay: manner.replay,
            queue: manner.queue.map(|limit| (limit, FullQueue::Discard)),
            ..FileSpec::new(&self.name, self.writing_places(), self.reading_places())
        };
        self.matching = spec.matching_places();
        let coupling = Coupling { components: self.components.clone(), files: vec![spec] };
        self.node = Some(Node::new(self.me, Arc::new(coupling)));
    }

    /// Whether everything that was finished was read.
    pub(crate) fn is_delivered(&self) -> bool {
        self.abandoned.is_some() || (self.submitted == self.released && self.pulls == 0)
    }

    /// Whether nobody needs this rank for it any more.
    pub(crate) fn is_done(&self) -> bool {
        let idle = self.node.as_ref().is_none_or(Node::is_idle);
        self.abandoned.is_some() || (self.is_delivered() && self.calls.is_empty() && idle)
    }

    /// Cycles that the writer is ahead.
    pub(crate) fn ahead(&self) -> u32 {
        if self.abandoned.is_some() { 0 } else { self.submitted - self.released }
    }
}
