//! Sets of sequences, as runs.

use std::collections::BTreeMap;

use hostlog::Sequence;

/// Sequences that were dealt with.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    /// First and last of each run.
    runs: BTreeMap<u64, u64>,
}

impl Sequences {
    pub(crate) fn contains(&self, sequence: Sequence) -> bool {
        let run = self.runs.range(..=sequence.0).next_back();
        run.is_some_and(|(_, last)| *last >= sequence.0)
    }

    /// Adds one, which is not in it yet.
    pub(crate) fn insert(&mut self, Sequence(sequence): Sequence) {
        let last = self.runs.remove(&(sequence + 1)).unwrap_or(sequence);
        match self.runs.range_mut(..sequence).next_back() {
            Some((_, before)) if *before + 1 == sequence => *before = last,
            _ => {
                self.runs.insert(sequence, last);
            }
        }
    }

    /// Lets go of all up to `through`.
    pub(crate) fn forget(&mut self, Sequence(through): Sequence) {
        self.runs.retain(|_, last| *last > through);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hostlog::Sequence;
    use proptest::prelude::*;

    use super::Sequences;

    proptest! {
        #[test]
        fn it_is_a_set_in_as_few_runs_as_possible(numbers in prop::collection::vec(1..60_u64, 0..60)) {
            let (mut set, mut model) = (Sequences::default(), BTreeSet::new());
            for number in numbers {
                if model.insert(number) {
                    set.insert(Sequence(number));
                }
            }
            for number in 0..61 {
                prop_assert_eq!(set.contains(Sequence(number)), model.contains(&number));
            }
            let runs = model.iter().filter(|number| !model.contains(&(**number - 1))).count();
            prop_assert_eq!(set.runs.len(), runs);
        }
    }
}
