//! One record after the other: what it means for the target.

use extent::ByteRange;
use hostlog::{Attributes, FileId, Operation, Replayed, Sequence, What};

use super::Drain;
use super::memory::Memory;
use crate::error::Result;
use crate::plan::TooLate;

/// What became of a record.
pub(super) enum Dealt {
    Done,
    /// All has to be done once more from the mark on.
    TooLate,
}

impl From<std::result::Result<(), TooLate>> for Dealt {
    fn from(result: std::result::Result<(), TooLate>) -> Self {
        match result {
            Ok(()) => Dealt::Done,
            Err(TooLate) => Dealt::TooLate,
        }
    }
}

impl Drain {
    pub(super) fn deal_with(&mut self, memory: &mut Memory, item: Replayed) -> Result<Dealt> {
        let Replayed { sequence, file, member, what, .. } = item;
        match what {
            What::Data { offset, len, at } => {
                self.epochs.extend(member);
                let Some(_) = memory.path_of(sequence, file)? else {
                    self.progress.update(|now| now.bytes_spared += len);
                    return Ok(Dealt::Done);
                };
                memory.planned_bytes += len;
                let plan = memory.plans.entry(file).or_default();
                plan.write(sequence, ByteRange::at(offset, len), at);
                Ok(Dealt::Done)
            }
            What::Operation(Operation::Truncate { size }) => {
                let Some(_) = memory.path_of(sequence, file)? else { return Ok(Dealt::Done) };
                Ok(memory.plans.entry(file).or_default().resize(sequence, size).into())
            }
            What::Operation(Operation::Attributes { path, set }) => {
                if !path.is_empty() {
                    // It was done, and what has this path now may be something else.
                    if sequence <= memory.state.through || memory.is_catching_up() {
                        return Ok(Dealt::Done);
                    }
                    return self.set_attributes(memory, sequence, &path, &set);
                }
                let catching_up = memory.is_catching_up();
                let Some(path) = memory.path_of(sequence, file)? else { return Ok(Dealt::Done) };
                if catching_up {
                    memory.attributes.push((sequence, file, set));
                    return Ok(Dealt::Done);
                }
                let path = path.to_vec();
                self.set_attributes(memory, sequence, &path, &set)
            }
            What::Operation(Operation::Note { .. }) => Ok(Dealt::Done),
            What::Operation(operation) => {
                self.change_names(memory, sequence, file, operation)?;
                Ok(Dealt::Done)
            }
        }
    }

    pub(super) fn set_attributes(
        &self,
        memory: &mut Memory,
        sequence: Sequence,
        path: &[u8],
        set: &Attributes,
    ) -> Result<Dealt> {
        let file = memory.state.names.at(path).unwrap_or(FileId::NONE);
        if let Some(plan) = memory.plans.get_mut(&file).filter(|plan| plan.is_due()) {
            // Behind its data, which would change the times.
            return Ok(plan.set(sequence, set).into());
        }
        self.remove(memory)?;
        self.target.set_attributes(path, set, sequence)?;
        Ok(Dealt::Done)
    }
}
