//! Arrays of variable size: when a length is written, everything has another place.
//!
//! A replica begins a new file behind every array of variable size, so that all that has to be done
//! to its files is to make them longer or shorter (§III-B.4). They become longer before the new
//! length is written, and shorter after it: a crash leaves files that are too long, never lost data.
//! It also leaves an intent with the old length, by which the next opening knows how far it came.
//!
//! An array of one dimension keeps the elements that it had. One of several dimensions begins anew,
//! all zeros, when one of its lengths changes: where its elements lie depends on it, and differently
//! so in replicas of different order.

use std::sync::{Arc, PoisonError};

use drepl::definition::{Length, Type};
use layout::Placed;

use crate::dataset::{Shared, Writing};
use crate::error::{Error, Result};
use crate::intents::Intent;
use crate::plan::{Model, Plan};
use crate::replica::Files;
use crate::upkeep::steps;

impl Shared {
    /// Places everything anew if a write changes lengths, and says which part of `data` lies in the
    /// view then.
    pub(crate) fn fitting<'d>(
        &self,
        view: usize,
        offset: u64,
        data: &'d [u8],
        writing: &mut Writing,
    ) -> Result<&'d [u8]> {
        let mut plan = self.plan();
        if plan.model.lengths_view().is_some() {
            let stored = plan.stored_after(view, offset, data)?;
            if stored != plan.stored {
                self.place_anew(&plan, stored, writing)?;
                plan = self.plan();
            }
        }
        let size = plan.size(view);
        if offset >= size && !data.is_empty() {
            let view = plan.model.definition.views[view].name.clone();
            return Err(Error::PastEnd { view, size, offset });
        }
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        Ok(&data[..data.len().min(left)])
    }

    fn place_anew(&self, old: &Plan, stored: Vec<u8>, writing: &mut Writing) -> Result<()> {
        let new = old.with_lengths(stored).map_err(|error| match error {
            Error::Layout { why, .. } => old.model.bad_length(why),
            error => error,
        })?;
        // What is due, and what the intents say, is said of the old places.
        self.settle(writing)?;
        writing.last = Some(std::time::Instant::now());
        writing.is_unstamped = true;
        let changed = changed_between(old, &new);
        let before = |variable: &usize| Intent::length(*variable, old.lengths.get(*variable));
        writing.intents.declare_everything(changed.iter().map(before))?;
        let mut place = self.plan.write().unwrap_or_else(PoisonError::into_inner);
        let done = self.change_lengths(old, &new, &changed);
        if done.is_ok() {
            *place = Arc::new(new);
            drop(place);
            // From now on arrays that have begun anew hold data again: the intent that says that
            // they begin anew must be gone, and their zeros durable, before any is written.
            return self.settle(writing);
        }
        // Some replicas may have the new lengths, and some not: the first one is right.
        let stored = stored_in(old, &old.primaries())?;
        let now = old.with_lengths(stored)?;
        self.finish_lengths(&now, &changed_between(old, &now))?;
        self.recover(&now, &[Intent::EVERYTHING])?;
        *place = Arc::new(now);
        done
    }

    fn change_lengths(&self, old: &Plan, new: &Plan, changed: &[usize]) -> Result<()> {
        for (index, member) in old.members.iter().enumerate() {
            let Some(files) = member.files() else { continue };
            let sizes = old.sizes(index).into_iter().zip(new.sizes(index));
            let sizes: Vec<u64> = sizes.map(|(old, new)| old.max(new)).collect();
            if let Err(error) = files.resize(&sizes)
                && !self.demote(old, index, &error)?
            {
                return Err(error);
            }
        }
        if let Some(view) = new.model.lengths_view() {
            self.give_to_all(new, view, 0, &new.stored)?;
        }
        self.finish_lengths(new, changed)
    }

    /// Gives all files the sizes and the zeros that new lengths ask for; may be done again.
    pub(crate) fn finish_lengths(&self, plan: &Plan, changed: &[usize]) -> Result<()> {
        for (index, member) in plan.members.iter().enumerate() {
            let Some(files) = member.files() else { continue };
            if let Err(error) = self.finish_lengths_of(plan, changed, (index, &files))
                && !self.demote(plan, index, &error)?
            {
                return Err(error);
            }
        }
        Ok(())
    }

    fn finish_lengths_of(
        &self,
        plan: &Plan,
        changed: &[usize],
        (index, files): (usize, &Files),
    ) -> Result<()> {
        let sizes = plan.sizes(index);
        for (number, size) in sizes.iter().enumerate() {
            let file = files.get(number);
            for placed in begin_anew(plan, changed, index, number) {
                if is_variable(&plan.model, placed) {
                    file.set_size(placed.offset)?;
                } else {
                    // A part of fixed size: one row.
                    let end = placed.offset + placed.size;
                    for step in steps(placed.offset..end) {
                        let zeros = vec![0; (step.end - step.start) as usize];
                        file.write_at(&zeros, step.start)?;
                    }
                }
            }
            if file.size()? != *size {
                file.set_size(*size)?;
            }
            // Markers where an array has become longer; zeros in padding where elements were, and
            // in single elements that are gone: they must be zeros when they come back.
            crate::copying::write_blanks(plan, index, files, number, 0..*size)?;
        }
        Ok(())
    }
}

/// The lengths that differ.
fn changed_between(old: &Plan, new: &Plan) -> Vec<usize> {
    let mut stored = old.model.stored.clone();
    stored.retain(|variable| old.lengths.get(*variable) != new.lengths.get(*variable));
    stored
}

/// What lies in a replica's file of arrays of several dimensions that have one of the lengths.
fn begin_anew<'p>(
    plan: &'p Plan,
    lengths: &'p [usize],
    replica: usize,
    file: usize,
) -> impl Iterator<Item = &'p Placed> {
    let definition = &plan.model.definition;
    let placed = plan.replica(replica).variables().iter();
    placed.filter(move |placed| placed.file == file).filter(move |placed| {
        let source = match placed.view {
            Some(view) => definition.views[view].variables[placed.variable].source,
            None => placed.variable,
        };
        let Type::Array(array) = &definition.variables[source].kind else { return false };
        let has = array.lengths.iter().any(|length| match length {
            Length::Stored(variable) => lengths.contains(variable),
            Length::Fixed(_) => false,
        });
        has && array.lengths.len() > 1
    })
}

/// Whether something lies at the end of its file because its size may change.
fn is_variable(model: &Model, placed: &Placed) -> bool {
    let Some(view) = placed.view else { return true };
    let variable = &model.definition.views[view].variables[placed.variable];
    crate::replica::is_variable_part(&model.definition, variable)
}

/// The lengths that replicas hold: of each variable, what the first one says that has it.
pub(crate) fn stored_in(plan: &Plan, primaries: &[(usize, Arc<Files>)]) -> Result<Vec<u8>> {
    let mut stored = plan.stored.clone();
    let Some(view) = plan.model.lengths_view() else { return Ok(stored) };
    let placed = plan.view(view).variables();
    let mut known = vec![false; placed.len()];
    for (index, files) in primaries {
        let conversion = plan.read(view, &[*index])?;
        let mut bytes = vec![0; stored.len()];
        let slabs = conversion.clip(0..stored.len() as u64);
        crate::flow::gather(slabs, |_, file| files.get(file), &mut bytes, 0)
            .map_err(|failed| failed.error)?;
        for served in conversion.served() {
            if served.missing == 0 && !known[served.variable] {
                let placed = &placed[served.variable];
                let range = placed.offset as usize..(placed.offset + placed.size) as usize;
                stored[range.clone()].copy_from_slice(&bytes[range]);
                known[served.variable] = true;
            }
        }
    }
    Ok(stored)
}
