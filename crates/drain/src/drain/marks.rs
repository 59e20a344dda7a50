//! Marks: the log is told how far the target is, and gives the space back.

use std::sync::Arc;

use hostlog::{FileId, Sequence};
use store::Node;

use super::Drain;
use super::memory::Memory;
use crate::error::Result;
use crate::owner::Bound;

impl Drain {
    /// Says in the log how far the target is, if there is something to say.
    pub(super) fn mark(
        &mut self,
        memory: &mut Memory,
        through: Sequence,
        held_back: bool,
    ) -> Result<()> {
        let drained = self.log.status().drained;
        let is_news = !memory.is_marked || memory.was_held_back || through > memory.last_at_mark;
        if !is_news {
            return Ok(());
        }
        self.target.sync()?;
        let kept = if through > drained {
            memory.advance(through);
            let kept = self.owner.drained(through, &|file| self.node(memory, file))?;
            // Somebody who was stopped may have answered that a file is not there.
            self.stop.check()?;
            Some(kept)
        } else {
            None
        };
        if self.saved != memory.state.through {
            self.journal.save(&memory.state)?;
            self.saved = memory.state.through;
        }
        let Some(kept) = kept else { return Ok(()) };
        let bound = self.bound(memory)?;
        self.log.drained(through, &self.owner.state(&kept, &bound))?;
        self.at_mark = bound;
        memory.done.forget(through);
        if !held_back {
            // Nothing older than what was done can come any more.
            memory.plans.clear();
            memory.prune(&kept, through, self.log.status().last);
        }
        memory.is_marked = true;
        memory.was_held_back = held_back;
        memory.last_at_mark = self.log.status().last;
        Ok(())
    }

    /// The target's node of a file, as it is now. It is asked until there is an answer: "none" means that there is none.
    pub(super) fn node(&self, memory: &Memory, file: FileId) -> Option<Arc<dyn Node>> {
        let path = memory.state.names.path_of(file)?;
        let mut pauses = crate::run::Pauses::default();
        while !self.stop.is_stopped() {
            match self.target.find(path) {
                Ok(node) => return node,
                Err(_) => {
                    self.target.reset();
                    self.stop.pause(pauses.next());
                }
            }
        }
        None
    }

    /// Where the files are that were known at the mark.
    pub(super) fn bound(&self, memory: &mut Memory) -> Result<Vec<Bound>> {
        let Memory { state, marked, identities, .. } = memory;
        let mut bound = Vec::new();
        for (file, paths) in marked.iter() {
            if paths.is_empty() {
                continue;
            }
            // Where files are replaced as wholes, it is their name's.
            if (self.target.wholes().is_some() || !identities.contains_key(&file))
                && let Some(now) = state.names.path_of(file)
                && let Some(identity) = self.target.lasting_identity(now)?
            {
                identities.insert(file, identity);
            }
            let Some(identity) = identities.get(&file) else { continue };
            let one = |path: &Vec<u8>| Bound { file, identity: *identity, path: path.clone() };
            bound.extend(paths.iter().map(one));
        }
        Ok(bound)
    }
}
