//! What a rank matches, and, if it is the first matcher, what it keeps for all.

use std::collections::{BTreeMap, BTreeSet};

use super::{Role, writer::Writer};
use crate::admission::{Admission, Decision};
use crate::{Batch, Board, Cycle, FileSpec, Load, Message, Place, Said};

/// One file of which a rank is a matcher.
#[derive(Debug)]
pub(crate) struct Matcher {
    boards: BTreeMap<Cycle, Board>,
    /// Requests of cycles that this rank has not opened as a writer: it does not know their definition.
    held: BTreeMap<Cycle, Vec<(Place, Batch)>>,
    gone: BTreeSet<Place>,
    /// What finished boards had to do.
    load: Load,
    admission: Option<Admission>,
    votes: BTreeMap<Cycle, Votes>,
    /// Readers that have not read a replayed cycle.
    unread: BTreeMap<Cycle, BTreeSet<Place>>,
}

/// Who has said whether a cycle is that of a record.
#[derive(Debug)]
struct Votes {
    missing: BTreeSet<(Place, Role)>,
    /// The record that each has named.
    named: BTreeSet<Option<Cycle>>,
}

/// What the parts of a node have in common, and what its own writer knows.
pub(super) struct Context<'a, 'b> {
    pub(super) node: &'a mut super::Context<'b>,
    pub(super) writer: &'a Writer,
}

impl Matcher {
    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.boards.is_empty() && self.held.is_empty() && self.votes.is_empty()
    }

    pub(super) fn new(spec: &FileSpec, first: bool) -> Self {
        let queue = spec.queue.filter(|_| first);
        Self {
            boards: BTreeMap::new(),
            held: BTreeMap::new(),
            gone: BTreeSet::new(),
            load: Load::default(),
            admission: queue.map(|(limit, full)| Admission::new(limit, full)),
            votes: BTreeMap::new(),
            unread: BTreeMap::new(),
        }
    }

    pub(super) fn load(&self) -> Load {
        self.boards.values().map(Board::load).fold(self.load, Load::plus)
    }

    pub(super) fn take(
        &mut self,
        context: &mut Context<'_, '_>,
        from: Place,
        cycle: Cycle,
        batch: Batch,
    ) {
        if !self.boards.contains_key(&cycle) {
            let Some(definition) = context.writer.opened(cycle) else {
                self.held.entry(cycle).or_default().push((from, batch));
                return;
            };
            let (file, spec) = (context.node.file, context.node.spec);
            self.boards.insert(cycle, Board::new(file, cycle, spec, &definition.variables));
            for place in self.gone.clone() {
                self.lost_to(context, cycle, place);
            }
        }
        let Some(board) = self.boards.get_mut(&cycle) else { return };
        let answers = board.take(from, batch);
        send(context, answers);
        self.close(context, cycle);
    }

    /// This rank has opened a cycle as a writer.
    pub(super) fn opened(&mut self, context: &mut Context<'_, '_>) {
        let ready = |cycle: &Cycle| context.writer.opened(*cycle).is_some();
        let cycles: Vec<Cycle> = self.held.keys().copied().filter(ready).collect();
        for cycle in cycles {
            for (from, batch) in self.held.remove(&cycle).unwrap_or_default() {
                self.take(context, from, cycle, batch);
            }
        }
    }

    fn close(&mut self, context: &mut Context<'_, '_>, cycle: Cycle) {
        if !self.boards.get(&cycle).is_some_and(Board::is_done) {
            return;
        }
        if let Some(board) = self.boards.remove(&cycle) {
            self.load = self.load.plus(board.load());
        }
        for writer in &context.node.spec.writers {
            if !self.gone.contains(writer) {
                context.node.send(*writer, cycle, Said::Closed);
            }
        }
        let told = self.admission.as_mut().map(|queue| queue.read(cycle)).unwrap_or_default();
        tell(context, told);
    }

    pub(super) fn may_begin(&mut self, context: &mut Context<'_, '_>, writer: Place, turn: Cycle) {
        let told =
            self.admission.as_mut().map(|queue| queue.ask(writer, turn.0)).unwrap_or_default();
        tell(context, told);
    }

    pub(super) fn vote(
        &mut self,
        context: &mut Context<'_, '_>,
        cycle: Cycle,
        voter: (Place, Role),
        recorded: Option<Cycle>,
    ) {
        let spec = context.node.spec;
        let votes = self.votes.entry(cycle).or_insert_with(|| {
            let writers = spec.writers.iter().map(|place| (*place, Role::Writer));
            let readers = spec.readers.iter().map(|place| (*place, Role::Reader));
            let all = writers.chain(readers).filter(|(place, _)| !self.gone.contains(place));
            Votes { missing: all.collect(), named: BTreeSet::new() }
        });
        votes.missing.remove(&voter);
        votes.named.insert(recorded);
        self.count(context, cycle);
    }

    fn count(&mut self, context: &mut Context<'_, '_>, cycle: Cycle) {
        if self.votes.get(&cycle).is_none_or(|votes| !votes.missing.is_empty()) {
            return;
        }
        let Some(votes) = self.votes.remove(&cycle) else { return };
        // One name, and not none.
        let one = votes.named.len() == 1 && !votes.named.contains(&None);
        let replayed = one && self.gone.is_empty();
        let spec = context.node.spec;
        for (role, places) in [(Role::Writer, &spec.writers), (Role::Reader, &spec.readers)] {
            for place in places.iter().filter(|place| !self.gone.contains(place)) {
                context.node.send(*place, cycle, Said::Replay(role, replayed));
            }
        }
        if replayed && self.admission.is_some() {
            self.unread.insert(cycle, spec.readers.iter().copied().collect());
        }
    }

    /// A reader has read a replayed cycle.
    pub(super) fn done(&mut self, context: &mut Context<'_, '_>, cycle: Cycle, reader: Place) {
        let Some(missing) = self.unread.get_mut(&cycle) else { return };
        missing.remove(&reader);
        if missing.is_empty() {
            self.unread.remove(&cycle);
            let told = self.admission.as_mut().map(|queue| queue.read(cycle)).unwrap_or_default();
            tell(context, told);
        }
    }

    pub(super) fn lost(&mut self, context: &mut Context<'_, '_>, place: Place) {
        if !self.gone.insert(place) {
            return;
        }
        for cycle in self.boards.keys().copied().collect::<Vec<_>>() {
            self.lost_to(context, cycle, place);
            self.close(context, cycle);
        }
        for cycle in self.votes.keys().copied().collect::<Vec<_>>() {
            if let Some(votes) = self.votes.get_mut(&cycle) {
                votes.missing.retain(|(voter, _)| *voter != place);
            }
            self.count(context, cycle);
        }
        for cycle in self.unread.keys().copied().collect::<Vec<_>>() {
            self.done(context, cycle, place);
        }
    }

    fn lost_to(&mut self, context: &mut Context<'_, '_>, cycle: Cycle, place: Place) {
        if let Some(board) = self.boards.get_mut(&cycle) {
            let answers = board.lost(place);
            send(context, answers);
        }
    }
}

fn send(context: &mut Context<'_, '_>, answers: Vec<(Place, Message)>) {
    for (to, message) in answers {
        context.node.send(to, message.cycle, message.said);
    }
}

fn tell(context: &mut Context<'_, '_>, decisions: Vec<Decision>) {
    for (writer, turn, decided) in decisions {
        context.node.send(writer, Cycle(turn), Said::Begin(decided));
    }
}
