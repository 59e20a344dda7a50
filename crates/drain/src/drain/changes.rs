//! Changes of names: in order, and those that must not be made twice written down before.

use hostlog::{FileId, Operation, Sequence};

use super::Drain;
use super::memory::{Change, Memory};
use crate::error::{Error, Result, shown};
use crate::journal::Intents;

/// Removals that are made behind one note of them at most.
const REMOVALS_MAX: usize = 256;

/// New files that are kept open in one step at most.
const OPENED_MAX: usize = 128;

impl Drain {
    pub(super) fn change_names(
        &mut self,
        memory: &mut Memory,
        sequence: Sequence,
        file: FileId,
        operation: Operation,
    ) -> Result<()> {
        let is_done = sequence <= memory.state.through || memory.intents.are_behind(sequence);
        let change = match operation {
            Operation::Bind { path } => Change::Bind(file, path),
            Operation::Create { path, .. } if self.target.wholes().is_some() => {
                // It is made when it is written, from what the log has: also once more, after a crash.
                if !is_done {
                    self.remove(memory)?;
                }
                memory.plans.entry(file).or_default().is_new = true;
                Change::Bind(file, path)
            }
            Operation::Create { path, mode } => {
                if !is_done {
                    self.remove(memory)?;
                    let open = self.target.create(&path, mode)?;
                    // Some are kept open until they are written.
                    if memory.opened < OPENED_MAX {
                        memory.opened += 1;
                        memory.plans.entry(file).or_default().open = Some(open);
                    }
                }
                Change::Bind(file, path)
            }
            Operation::Mkdir { path, mode } => {
                if !is_done {
                    self.remove(memory)?;
                    self.target.make_directory(&path, mode, sequence)?;
                }
                Change::Bind(file, path)
            }
            Operation::Symlink { path, target } => {
                if !is_done {
                    self.remove(memory)?;
                    self.target.make_symlink(&path, &target, sequence)?;
                }
                Change::Bind(file, path)
            }
            Operation::Link { existing, path } => {
                if !is_done {
                    self.remove(memory)?;
                    self.write(memory, |at| at == existing)?;
                    self.target.link(&existing, &path, sequence)?;
                }
                Change::Link(existing, path)
            }
            Operation::Unlink { path } => {
                if !is_done {
                    self.remove_later(memory, sequence, &path, false)?;
                }
                Change::Unbind(path)
            }
            Operation::Rmdir { path } => {
                if !is_done {
                    self.remove_later(memory, sequence, &path, true)?;
                }
                Change::Unbind(path)
            }
            Operation::Rename { from, to, flags: _ } => {
                if !is_done {
                    self.rename(memory, sequence, &from, &to)?;
                }
                Change::Rename(from, to)
            }
            Operation::Truncate { .. } | Operation::Attributes { .. } | Operation::Note { .. } => {
                return Ok(());
            }
        };
        if sequence > memory.state.through {
            let replaced = match &change {
                Change::Unbind(path) | Change::Rename(_, path) => memory.state.names.at(path),
                Change::Bind(..) | Change::Link(..) => None,
            };
            change.apply(&mut memory.state.names);
            memory.state.through = sequence;
            if !is_done {
                self.progress.update(|now| now.names += 1);
                if matches!(change, Change::Rename(..)) {
                    self.save_names_of_wholes(memory)?;
                }
            }
            if let Some(file) = replaced.filter(|file| memory.state.names.path_of(*file).is_none())
            {
                self.spare(memory, file);
            }
        }
        memory.trail.push((sequence, change));
        Ok(())
    }

    /// A file that has lost its last name need not be written.
    pub(super) fn spare(&self, memory: &mut Memory, file: FileId) {
        if let Some(plan) = memory.plans.remove(&file) {
            let bytes = plan.bytes.bytes();
            memory.planned_bytes = memory.planned_bytes.saturating_sub(bytes);
            self.progress.update(|now| now.bytes_spared += bytes);
        }
    }

    /// Writes down which changes of names are done, where what has a name does not tell whether it is what had it before.
    /// The caller has removed what waits to be.
    fn save_names_of_wholes(&self, memory: &Memory) -> Result<()> {
        if self.target.wholes().is_some() { self.journal.save(&memory.state) } else { Ok(()) }
    }

    pub(super) fn rename(
        &self,
        memory: &mut Memory,
        sequence: Sequence,
        from: &[u8],
        to: &[u8],
    ) -> Result<()> {
        self.remove(memory)?;
        let file = memory.state.names.at(from).unwrap_or(FileId::NONE);
        let is_new = memory.plans.get(&file).is_some_and(|plan| plan.is_new);
        let identity = self.target.identity(from)?;
        let intended = memory.intents.get(sequence);
        // Nothing, or something else: it was renamed before. Its data goes to where it is now.
        if intended.is_some_and(|intended| intended.is_none() || intended != identity) {
            return Ok(());
        }
        if identity.is_none() && is_new {
            // It is made under its new name, and takes the place of what has that when it is whole.
            return Ok(());
        }
        if identity.is_none() {
            return Err(Error::Missing { operation: "rename", path: shown(from), sequence });
        }
        let below = [from, b"/"].concat();
        self.write(memory, |path| path == from || path.starts_with(&below))?;
        // Of a version, not of a file.
        let identity =
            if self.target.wholes().is_some() { self.target.identity(from)? } else { identity };
        self.intend(memory, vec![(sequence, identity)])?;
        self.target.rename(from, to)
    }

    /// Writes down what is about to be changed. What was done before is durable first.
    pub(super) fn intend(
        &self,
        memory: &mut Memory,
        intents: Vec<(Sequence, Option<u64>)>,
    ) -> Result<()> {
        self.target.sync()?;
        let intents = Intents { of: intents };
        self.journal.intend(&intents)?;
        memory.intents = intents;
        Ok(())
    }

    pub(super) fn remove_later(
        &self,
        memory: &mut Memory,
        sequence: Sequence,
        path: &[u8],
        directory: bool,
    ) -> Result<()> {
        if memory.removals.len() >= REMOVALS_MAX {
            self.remove(memory)?;
        }
        memory.removals.push((sequence, path.to_vec(), directory));
        Ok(())
    }

    /// Makes the removals that wait.
    pub(super) fn remove(&self, memory: &mut Memory) -> Result<()> {
        if memory.removals.is_empty() {
            return Ok(());
        }
        let removals = std::mem::take(&mut memory.removals);
        let mut intents = Vec::new();
        for (sequence, path, _) in &removals {
            let identity = match memory.intents.get(*sequence) {
                Some(identity) => identity,
                None => self.target.identity(path)?,
            };
            intents.push((*sequence, identity));
        }
        self.intend(memory, intents.clone())?;
        for ((_, path, directory), (_, identity)) in removals.iter().zip(intents) {
            // Something else, or nothing: it was removed before.
            if identity.is_some() && self.target.identity(path)? == identity {
                self.target.remove(path, *directory)?;
            }
        }
        self.save_names_of_wholes(memory)
    }
}
