//! How far writers may be ahead of readers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{Cycle, FullQueue, Place};

/// The queue of one file, kept by its first matcher.
#[derive(Debug)]
pub(crate) struct Admission {
    limit: usize,
    full: FullQueue,
    /// Written or being written, and not read.
    open: BTreeSet<Cycle>,
    next: u32,
    /// By the writers' own count: what was decided.
    decided: BTreeMap<u32, Option<Cycle>>,
    /// Not decided yet, in their order, with who waits.
    waiting: VecDeque<(u32, Vec<Place>)>,
}

/// An answer for a writer: its own count, and the cycle that it is, if any.
pub(crate) type Decision = (Place, u32, Option<Cycle>);

impl Admission {
    pub(crate) fn new(limit: u32, full: FullQueue) -> Self {
        Self {
            limit: limit as usize,
            full,
            open: BTreeSet::new(),
            next: 0,
            decided: BTreeMap::new(),
            waiting: VecDeque::new(),
        }
    }

    /// A writer wants to begin the cycle that it counts as `turn`. All writers are told the same.
    pub(crate) fn ask(&mut self, writer: Place, turn: u32) -> Vec<Decision> {
        if let Some(&decided) = self.decided.get(&turn) {
            return vec![(writer, turn, decided)];
        }
        if let Some((_, places)) = self.waiting.iter_mut().find(|(waiting, _)| *waiting == turn) {
            places.push(writer);
            return Vec::new();
        }
        self.waiting.push_back((turn, vec![writer]));
        self.decide()
    }

    /// All readers have read a cycle.
    pub(crate) fn read(&mut self, cycle: Cycle) -> Vec<Decision> {
        self.open.remove(&cycle);
        self.decide()
    }

    fn decide(&mut self) -> Vec<Decision> {
        let mut told = Vec::new();
        while !self.waiting.is_empty() {
            let decision = match self.full {
                _ if self.open.len() < self.limit => {
                    let cycle = Cycle(self.next);
                    self.next += 1;
                    self.open.insert(cycle);
                    Some(cycle)
                }
                FullQueue::Discard => None,
                FullQueue::Block => break,
            };
            if let Some((turn, places)) = self.waiting.pop_front() {
                self.decided.insert(turn, decision);
                told.extend(places.into_iter().map(|place| (place, turn, decision)));
            }
        }
        // Nobody is so far behind that it asks for these again.
        while self.decided.len() > KEPT_MAX {
            self.decided.pop_first();
        }
        told
    }
}

/// Decisions that are remembered for writers that ask later than others. A writer can only be behind by cycles that are not
/// finished, as all must have finished one before it is read; discarded ones in between are what makes this a number.
const KEPT_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Component;

    fn place(rank: u32) -> Place {
        Place { component: Component(0), rank }
    }

    #[test]
    fn who_is_too_far_ahead_waits() {
        let mut queue = Admission::new(2, FullQueue::Block);
        assert_eq!(queue.ask(place(0), 0), [(place(0), 0, Some(Cycle(0)))]);
        assert_eq!(queue.ask(place(0), 1), [(place(0), 1, Some(Cycle(1)))]);
        assert_eq!(queue.ask(place(0), 2), []);
        assert_eq!(queue.ask(place(1), 0), [(place(1), 0, Some(Cycle(0)))]);
        assert_eq!(queue.ask(place(1), 2), []);
        let both = [(place(0), 2, Some(Cycle(2))), (place(1), 2, Some(Cycle(2)))];
        assert_eq!(queue.read(Cycle(0)), both);
    }

    #[test]
    fn what_is_discarded_is_discarded_by_all_and_has_no_number() {
        let mut queue = Admission::new(1, FullQueue::Discard);
        assert_eq!(queue.ask(place(0), 0), [(place(0), 0, Some(Cycle(0)))]);
        assert_eq!(queue.ask(place(0), 1), [(place(0), 1, None)]);
        assert_eq!(queue.read(Cycle(0)), []);
        assert_eq!(queue.ask(place(1), 1), [(place(1), 1, None)]);
        assert_eq!(queue.ask(place(1), 2), [(place(1), 2, Some(Cycle(1)))]);
    }
}
