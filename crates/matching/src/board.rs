//! What a matcher knows of one cycle of one file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hyperslab::{Slab, SlabTree, gaps};

use crate::coupling::fingerprint;
use crate::{
    Announce, Batch, Cycle, Deliver, File, FileSpec, Gap, Message, Place, Said, Variable,
    VariableSpec, Why, Wish,
};

/// Requests of one cycle, until every reader has what it wished for.
#[derive(Debug)]
pub struct Board {
    file: File,
    cycle: Cycle,
    writers_missing: BTreeSet<Place>,
    readers_missing: BTreeSet<Place>,
    /// By the writers' definitions: the first place that had each.
    definitions: BTreeMap<u64, Place>,
    records: u64,
    variables: Vec<Writes>,
    /// Wishes that came before all writes were known.
    early: Vec<(Place, u64, Wish)>,
    lost: Option<Place>,
    load: Load,
}

/// The work of a matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Parts of writes that it was told of.
    pub announces: u64,
    /// Parts of wishes.
    pub wishes: u64,
    /// Pairs of both that have elements in common.
    pub pairs: u64,
    /// Boxes that were compared to find them.
    pub compared: u64,
}

impl Load {
    /// Requests to match.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.announces + self.wishes
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            announces: self.announces + other.announces,
            wishes: self.wishes + other.wishes,
            pairs: self.pairs + other.pairs,
            compared: self.compared + other.compared,
        }
    }
}

/// What was written of one variable.
#[derive(Debug)]
struct Writes {
    spec: VariableSpec,
    list: Vec<Write>,
    /// Of the list, by number; made when all are known.
    tree: SlabTree<u32>,
    /// For each of the list, those that overlap it and are newer; empty if no two overlap.
    newer: Vec<Vec<u32>>,
}

#[derive(Debug, Clone)]
struct Write {
    owner: Place,
    request: u32,
    epoch: u32,
    slab: Slab,
}

impl Write {
    /// The greater, the newer. Between ranks that write the same elements without synchronising, netCDF leaves the order open;
    /// here it is that of their requests and then of the ranks, so that it is the same each time.
    fn age(&self) -> (u32, u32, Place) {
        (self.epoch, self.request, self.owner)
    }
}

/// What a matcher says about some wishes.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    deliver: BTreeMap<Place, Vec<Deliver>>,
    gaps: BTreeMap<Place, Vec<Gap>>,
    refuse: BTreeMap<Place, Vec<(u32, Why)>>,
}

impl Answers {
    /// As messages, each to whom it is for.
    pub(crate) fn messages(self, file: File, cycle: Cycle) -> Vec<(Place, Message)> {
        let message = |(place, said)| (place, Message { file, cycle, said });
        let deliver = self.deliver.into_iter().map(|(place, list)| (place, Said::Deliver(list)));
        let gaps = self.gaps.into_iter().map(|(place, list)| (place, Said::Gaps(list)));
        let refuse = self.refuse.into_iter().map(|(place, list)| (place, Said::Refuse(list)));
        deliver.chain(gaps).chain(refuse).map(message).collect()
    }
}

impl Board {
    /// A cycle of which nothing was heard yet.
    #[must_use]
    pub fn new(file: File, cycle: Cycle, spec: &FileSpec, variables: &[VariableSpec]) -> Self {
        let writes = |spec: &VariableSpec| Writes {
            spec: spec.clone(),
            list: Vec::new(),
            tree: SlabTree::new(spec.shape.len()),
            newer: Vec::new(),
        };
        let mut definitions = BTreeMap::new();
        // What the matcher itself, who is a writer, has defined.
        let own = spec.matching_places().first().copied();
        definitions.extend(own.map(|place| (fingerprint(variables), place)));
        Self {
            file,
            cycle,
            writers_missing: spec.writers.iter().copied().collect(),
            readers_missing: spec.readers.iter().copied().collect(),
            definitions,
            records: 0,
            variables: variables.iter().map(writes).collect(),
            early: Vec::new(),
            lost: None,
            load: Load::default(),
        }
    }

    /// The work so far.
    #[must_use]
    pub fn load(&self) -> Load {
        self.load
    }

    /// Whether every reader has said all and was answered.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.readers_missing.is_empty() && self.writers_missing.is_empty()
    }

    /// Takes what `from` has asked, and answers what can be answered.
    pub fn take(&mut self, from: Place, batch: Batch) -> Vec<(Place, Message)> {
        let Batch { definition, announces, wishes, written, wished, records } = batch;
        let mut answers = Answers::default();
        if written || !announces.is_empty() {
            self.definitions.entry(definition).or_insert(from);
        }
        self.records = self.records.max(records);
        for announce in announces {
            self.announce(from, announce);
        }
        self.load.wishes += wishes.len() as u64;
        self.early.extend(wishes.into_iter().map(|wish| (from, definition, wish)));
        if written {
            self.has_written(from);
        }
        if wished {
            self.readers_missing.remove(&from);
        }
        if self.writers_missing.is_empty() {
            self.match_early(&mut answers);
        }
        answers.messages(self.file, self.cycle)
    }

    /// Somebody will say nothing any more.
    pub fn lost(&mut self, place: Place) -> Vec<(Place, Message)> {
        let mut answers = Answers::default();
        self.readers_missing.remove(&place);
        self.early.retain(|(reader, _, _)| *reader != place);
        if self.writers_missing.contains(&place) {
            self.lost = Some(place);
            self.has_written(place);
        }
        if self.writers_missing.is_empty() {
            self.match_early(&mut answers);
        }
        answers.messages(self.file, self.cycle)
    }

    fn announce(&mut self, owner: Place, announce: Announce) {
        let Announce { variable, request, epoch, slab } = announce;
        self.load.announces += 1;
        let Some(writes) = self.variables.get_mut(variable.0 as usize) else { return };
        if slab.rank() == writes.spec.shape.len() && !slab.is_empty() {
            writes.list.push(Write { owner, request, epoch, slab });
        }
    }

    fn has_written(&mut self, place: Place) {
        if self.writers_missing.remove(&place) && self.writers_missing.is_empty() {
            for writes in &mut self.variables {
                self.load.compared += writes.arrange();
            }
        }
    }

    fn match_early(&mut self, answers: &mut Answers) {
        let mut of_variable: BTreeMap<Variable, Vec<(Place, Wish)>> = BTreeMap::new();
        for (reader, definition, wish) in std::mem::take(&mut self.early) {
            let other = self.definitions.iter().find(|(known, _)| **known != definition);
            let why = match (self.lost, other) {
                (Some(place), _) => Some(Why::Lost { place }),
                (None, Some((_, &place))) => Some(Why::Definition { place }),
                (None, None) => self.beyond(&wish),
            };
            match why {
                Some(why) => answers.refuse.entry(reader).or_default().push((wish.wish, why)),
                None => of_variable.entry(wish.variable).or_default().push((reader, wish)),
            }
        }
        for (variable, wishes) in of_variable {
            // Beyond is every variable that there is not.
            if let Some(writes) = self.variables.get(variable.0 as usize) {
                let (pairs, compared) = writes.fulfil(&wishes, answers);
                self.load.pairs += pairs;
                self.load.compared += compared;
            }
        }
    }

    fn beyond(&self, wish: &Wish) -> Option<Why> {
        let records = self.records;
        let Some(writes) = self.variables.get(wish.variable.0 as usize) else {
            return Some(Why::Unwritten { part: wish.slab.clone() });
        };
        let last = wish.slab.dimensions().first().map_or(0, |steps| steps.span().end);
        let beyond = writes.spec.has_records() && last > records;
        beyond.then_some(Why::Records { records })
    }
}

impl Writes {
    /// Makes the tree; answers how many boxes were compared.
    fn arrange(&mut self) -> u64 {
        // Of writes of the very same part only the newest is ever read.
        let mut newest: HashMap<&Slab, &Write> = HashMap::new();
        for write in &self.list {
            let known = newest.entry(&write.slab).or_insert(write);
            if known.age() < write.age() {
                *known = write;
            }
        }
        if newest.len() < self.list.len() {
            let mut kept: Vec<Write> = newest.into_values().cloned().collect();
            kept.sort_by_key(Write::age);
            self.list = kept;
        }
        let slabs: Vec<&Slab> = self.list.iter().map(|write| &write.slab).collect();
        let mut tree = SlabTree::new(self.spec.shape.len());
        tree.extend(slabs.iter().copied().zip(0u32..));
        let mut newer: Vec<Vec<u32>> = Vec::new();
        let compared = tree.overlapping_each(&slabs, |older, _, &number| {
            let (one, other) = (&self.list[older], &self.list[number as usize]);
            if one.age() < other.age() && one.slab.intersection(&other.slab).is_some() {
                newer.resize(self.list.len(), Vec::new());
                newer[older].push(number);
            }
        });
        (self.tree, self.newer) = (tree, newer);
        compared
    }

    /// Finds who has what of each wish; answers how many pairs there are, and how many boxes were compared.
    fn fulfil(&self, wishes: &[(Place, Wish)], answers: &mut Answers) -> (u64, u64) {
        let slabs: Vec<&Slab> = wishes.iter().map(|(_, wish)| &wish.slab).collect();
        let mut hits: Vec<Vec<u32>> = vec![Vec::new(); wishes.len()];
        let compared =
            self.tree.overlapping_each(&slabs, |wish, _, &number| hits[wish].push(number));
        let mut pairs = 0;
        for ((reader, wish), mut hits) in wishes.iter().zip(hits) {
            // The order of the tree is nobody's business.
            hits.sort_unstable();
            let mut found = 0;
            for &number in &hits {
                let write = &self.list[number as usize];
                let Some(shared) = wish.slab.intersection(&write.slab) else { continue };
                pairs += 1;
                let mut visible = vec![shared];
                for &newer in self.newer.get(number as usize).into_iter().flatten() {
                    visible = self.list[newer as usize].slab.cut_from(visible);
                }
                for part in visible {
                    found += part.elements();
                    let (request, reader, wish) = (write.request, *reader, wish.wish);
                    let deliver = Deliver { request, reader, wish, part };
                    answers.deliver.entry(write.owner).or_default().push(deliver);
                }
            }
            if found < wish.slab.elements() {
                let written: Vec<&Slab> =
                    hits.iter().map(|&number| &self.list[number as usize].slab).collect();
                self.missing(*reader, wish, &written, answers);
            }
        }
        (pairs, compared)
    }

    fn missing(&self, reader: Place, wish: &Wish, written: &[&Slab], answers: &mut Answers) {
        let missing = gaps(&wish.slab, written);
        let number = wish.wish;
        if self.spec.fill.is_some() {
            let gaps = missing.into_iter().map(|part| Gap { wish: number, part });
            answers.gaps.entry(reader).or_default().extend(gaps);
        } else if let Some(part) = missing.into_iter().next() {
            answers.refuse.entry(reader).or_default().push((number, Why::Unwritten { part }));
        }
    }
}
