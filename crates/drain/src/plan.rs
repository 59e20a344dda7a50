//! What is to be done to the content of one file, gathered until it is written.

use std::sync::Arc;

use extent::{ByteRange, Cut, ExtentMap};
use hostlog::{Attributes, Position, Sequence};
use store::OpenNode;

/// Where bytes of a file are in the log, and by which record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) at: Position,
    pub(crate) sequence: Sequence,
}

impl Cut for Source {
    fn cut(self, by: u64) -> Self {
        Self { at: self.at.cut(by), ..self }
    }

    fn continued_by(&self, len: u64, next: &Self) -> bool {
        self.sequence == next.sequence && self.at.continued_by(len, &next.at)
    }
}

/// Something older than what was done already cannot be done behind it: all has to be done once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLate;

/// The content of one file: what the log says of it from its mark on.
#[derive(Default)]
pub(crate) struct Plan {
    /// The newest record so far.
    newest: Sequence,
    /// All bytes from the mark on, written or not: what is older and comes later must not hide them.
    known: ExtentMap<Source>,
    /// Sizes that the file was cut or extended to, from the mark on.
    sizes: Vec<(Sequence, u64)>,
    /// Bytes to be written.
    pub(crate) bytes: ExtentMap<Source>,
    /// The smallest and the last size to be set before them.
    pub(crate) resize: Option<(u64, u64)>,
    /// Attributes to be set behind them.
    pub(crate) set: Attributes,
    /// The record that set them last.
    set_by: Sequence,
    /// The file, if it is open.
    pub(crate) open: Option<Arc<dyn OpenNode>>,
    /// Whether the log has made the file and the target does not have it yet, where files are replaced as wholes.
    pub(crate) is_new: bool,
}

impl Plan {
    /// Takes bytes in.
    pub(crate) fn write(&mut self, sequence: Sequence, range: ByteRange, at: Position) {
        let source = Source { at, sequence };
        if sequence > self.newest {
            self.newest = sequence;
            self.known.insert(range, source, |_, _| ());
            self.bytes.insert(range, source, |_, _| ());
            return;
        }
        // It came to count late. What is newer stays, and what a newer size cut off is gone.
        let cut = self.sizes.iter().filter(|(by, _)| *by > sequence).map(|(_, size)| *size).min();
        let range = ByteRange::new(range.start(), range.end().min(cut.unwrap_or(u64::MAX)));
        let older = |value: Option<Source>| value.is_none_or(|known| known.sequence < sequence);
        let free: Vec<ByteRange> = self
            .known
            .overlay(range)
            .filter(|piece| older(piece.value))
            .map(|piece| piece.range)
            .collect();
        for piece in free {
            let source = source.cut(piece.start() - range.start());
            self.known.insert(piece, source, |_, _| ());
            self.bytes.insert(piece, source, |_, _| ());
        }
    }

    /// Gives the file a size.
    pub(crate) fn resize(&mut self, sequence: Sequence, size: u64) -> Result<(), TooLate> {
        if sequence < self.newest {
            return Err(TooLate);
        }
        self.newest = sequence;
        self.known.truncate(size, |_, _| ());
        self.bytes.truncate(size, |_, _| ());
        self.sizes.push((sequence, size));
        let smallest = self.resize.map_or(size, |(smallest, _)| smallest.min(size));
        self.resize = Some((smallest, size));
        Ok(())
    }

    /// Changes attributes.
    pub(crate) fn set(&mut self, sequence: Sequence, set: &Attributes) -> Result<(), TooLate> {
        if sequence < self.set_by {
            return Err(TooLate);
        }
        self.set_by = sequence;
        self.set = Attributes {
            mode: set.mode.or(self.set.mode),
            uid: set.uid.or(self.set.uid),
            gid: set.gid.or(self.set.gid),
            accessed: set.accessed.or(self.set.accessed),
            modified: set.modified.or(self.set.modified),
        };
        Ok(())
    }

    /// Whether anything is to be done.
    pub(crate) fn is_due(&self) -> bool {
        self.has_content() || self.set != Attributes::default()
    }

    /// Whether that is more than attributes.
    pub(crate) fn has_content(&self) -> bool {
        self.is_new || !self.bytes.is_empty() || self.resize.is_some()
    }

    /// All that was to be done is done, or is not wanted any more.
    pub(crate) fn done(&mut self) {
        self.bytes = ExtentMap::new();
        self.resize = None;
        self.set = Attributes::default();
        self.open = None;
        self.is_new = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(sequence: u64) -> Position {
        Position { segment: sequence as u32, offset: 0 }
    }

    /// The file's bytes by the records that wrote them, after the plan.
    fn result(plan: &Plan, before: &[Option<u64>]) -> Vec<Option<u64>> {
        let mut file = before.to_vec();
        if let Some((smallest, last)) = plan.resize {
            file.truncate(smallest as usize);
            file.resize(last as usize, None);
        }
        for (range, source) in plan.bytes.iter() {
            let end = range.end() as usize;
            file.resize(file.len().max(end), None);
            file[range.start() as usize..end].fill(Some(source.sequence.0));
        }
        file
    }

    #[derive(Debug, Clone, Copy)]
    enum Action {
        Write(u64, u64),
        Resize(u64),
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            3 => (0..40_u64, 1..20_u64).prop_map(|(start, len)| Action::Write(start, len)),
            1 => (0..50_u64).prop_map(Action::Resize),
        ]
    }

    fn apply(plan: &mut Plan, sequence: usize, action: Action) -> Result<(), TooLate> {
        let sequence = sequence as u64 + 1;
        match action {
            Action::Write(start, len) => {
                plan.write(Sequence(sequence), ByteRange::at(start, len), source(sequence));
                Ok(())
            }
            Action::Resize(size) => plan.resize(Sequence(sequence), size),
        }
    }

    proptest! {
        /// Some writes come late, after some of the rest was written: the result is that of the right order, but for
        /// zeros that a late write behind the end of the file leaves.
        #[test]
        fn the_newest_sequence_wins_whenever_it_comes(
            actions in prop::collection::vec((action(), any::<bool>()), 1..12),
            cut in 0..12_usize,
        ) {
            let mut right = Plan::default();
            for (index, (action, _)) in actions.iter().enumerate() {
                prop_assert_eq!(apply(&mut right, index, *action), Ok(()));
            }
            let right = result(&right, &[]);
            let (mut plan, mut file) = (Plan::default(), Vec::new());
            let is_late = |action: &Action, late: bool| late && matches!(action, Action::Write(..));
            for (index, (action, late)) in actions.iter().enumerate() {
                if index == cut {
                    file = result(&plan, &file);
                    plan.done();
                }
                if !is_late(action, *late) {
                    prop_assert_eq!(apply(&mut plan, index, *action), Ok(()));
                }
            }
            file = result(&plan, &file);
            plan.done();
            for (index, (action, late)) in actions.iter().enumerate() {
                if is_late(action, *late) {
                    prop_assert_eq!(apply(&mut plan, index, *action), Ok(()));
                }
            }
            prop_assert_eq!(result(&plan, &file), right);
        }
    }

    #[test]
    fn a_size_or_attributes_that_come_late_are_refused() {
        let mut plan = Plan::default();
        plan.write(Sequence(5), ByteRange::new(0, 10), source(5));
        assert_eq!(plan.resize(Sequence(4), 3), Err(TooLate));
        let set = |mode| Attributes { mode: Some(mode), ..Attributes::default() };
        assert_eq!(plan.set(Sequence(7), &set(1)), Ok(()));
        assert_eq!(plan.set(Sequence(6), &set(2)), Err(TooLate));
        assert_eq!(plan.set.mode, Some(1));
    }
}
