//! What a rank writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hyperslab::Copies;
use nctypes::Conversion;

use super::{
    Action, Asked, Context, Copy, Definition, Handle, Recorded, Request, RequestError, Role,
};
use crate::pattern::Flow;
use crate::{Announce, Batch, Cycle, Deliver, File, Pattern, Place, Said};

/// One file of which a rank is a writer.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Cycles that were begun, dropped ones as well.
    turns: u32,
    now: Now,
    /// Cycles of which somebody may still want something.
    open: BTreeMap<Cycle, Written>,
    recorded: Option<Recorded<Deliver>>,
}

/// Where the program is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Now {
    #[default]
    Between,
    Asking,
    Writing(Cycle),
    Dropped,
}

#[derive(Debug, Default)]
struct Written {
    definition: Option<Arc<Definition>>,
    requests: Vec<Request>,
    asked: Asked,
    epoch: u32,
    records: u64,
    /// How many of the requests matchers know.
    sent: usize,
    /// Something was sent.
    opened: bool,
    finished: bool,
    /// It was said whether it is the recorded one.
    voted: bool,
    /// Matchers that may still ask for something.
    matchers: BTreeSet<Place>,
    delivered: Vec<Deliver>,
}

impl Writer {
    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn begin(&mut self, context: &mut Context<'_>) -> Result<(), RequestError> {
        if self.now != Now::Between {
            return Err(context.order("it is begun while it is being written"));
        }
        let turn = Cycle(self.turns);
        self.turns += 1;
        if context.spec.queue.is_some() {
            self.now = Now::Asking;
            let first = context.spec.matching_places()[0];
            context.send(first, turn, Said::MayBegin);
        } else {
            self.now = Now::Asking;
            self.begun(context, Some(turn));
        }
        Ok(())
    }

    pub(super) fn begun(&mut self, context: &mut Context<'_>, cycle: Option<Cycle>) {
        if self.now != Now::Asking {
            return;
        }
        self.now = cycle.map_or(Now::Dropped, Now::Writing);
        if let Some(cycle) = cycle {
            let matchers = context.spec.matching_places().into_iter().collect();
            self.open.insert(cycle, Written { matchers, ..Written::default() });
        }
        context.actions.push_back(Action::Begun { file: context.file, cycle });
    }

    /// The cycle that is being written; none if it is dropped.
    fn current(
        &mut self,
        context: &Context<'_>,
    ) -> Result<Option<(Cycle, &mut Written)>, RequestError> {
        match self.now {
            Now::Between | Now::Asking => Err(context.order("it is written before it was begun")),
            Now::Dropped => Ok(None),
            Now::Writing(cycle) => Ok(self.open.get_mut(&cycle).map(|written| (cycle, written))),
        }
    }

    pub(super) fn define(
        &mut self,
        context: &Context<'_>,
        definition: Arc<Definition>,
    ) -> Result<(), RequestError> {
        let Some((_, written)) = self.current(context)? else { return Ok(()) };
        if written.opened {
            return Err(context.order("it is defined anew after some of it was sent"));
        }
        written.definition = Some(definition);
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        context: &mut Context<'_>,
        request: Request,
    ) -> Result<(), RequestError> {
        let Some((_, written)) = self.current(context)? else {
            let (file, handles) = (context.file, vec![request.handle]);
            context.actions.push_back(Action::Released { file, handles });
            return Ok(());
        };
        let definition = written.definition.as_ref();
        let definition =
            definition.ok_or_else(|| context.order("it is written before it was defined"))?;
        context.check(definition, &request)?;
        let spec = &definition.variables[request.variable.0 as usize];
        if spec.has_records() && !request.slab.is_empty() {
            let end = request.slab.dimensions()[0].span().end;
            written.records = written.records.max(end);
        }
        written.asked.push((request.variable, request.slab.clone(), written.epoch));
        written.requests.push(request);
        Ok(())
    }

    pub(super) fn synchronise(&mut self, context: &Context<'_>) -> Result<(), RequestError> {
        if let Some((_, written)) = self.current(context)? {
            written.epoch += 1;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self, context: &mut Context<'_>) -> Result<(), RequestError> {
        match self.current(context)? {
            Some((cycle, written)) if !context.spec.replay => written.send(context, cycle),
            _ => Ok(()),
        }
    }

    pub(super) fn finish(&mut self, context: &mut Context<'_>) -> Result<(), RequestError> {
        if let Some((cycle, written)) = self.current(context)? {
            if written.definition.is_none() {
                return Err(context.order("it is finished before it was defined"));
            }
            written.finished = true;
            if context.spec.replay {
                written.opened = true;
            } else {
                written.send(context, cycle)?;
            }
        }
        self.now = Now::Between;
        self.vote(context);
        Ok(())
    }

    /// Says whether the next cycle is the recorded one, as soon as nothing is under way that will be recorded.
    fn vote(&mut self, context: &mut Context<'_>) {
        let Some(mut first) = self.open.first_entry().filter(|_| context.spec.replay) else {
            return;
        };
        let (cycle, written) = (*first.key(), first.get_mut());
        if !written.finished || std::mem::replace(&mut written.voted, true) {
            return;
        }
        let definition = written.definition.as_ref().map(|one| one.fingerprint);
        let same = self.recorded.as_ref().filter(|recorded| {
            Some(recorded.definition) == definition && recorded.asked == written.asked
        });
        let same = same.map(|recorded| recorded.cycle);
        let coordinator = context.spec.matching_places()[0];
        context.send(coordinator, cycle, Said::SameAs(Role::Writer, same));
    }

    /// What all have said about replaying a cycle.
    pub(super) fn decided(&mut self, context: &mut Context<'_>, cycle: Cycle, replayed: bool) {
        if !replayed {
            self.recorded = None;
            if let Some(written) = self.open.get_mut(&cycle) {
                // It was defined, or it could not have been finished.
                let _ = written.send(context, cycle);
            }
            return;
        }
        let orders = self.recorded.as_ref().map(|one| one.answers.clone()).unwrap_or_default();
        if let Some(written) = self.open.remove(&cycle) {
            written.copy(context, cycle, orders);
            written.release(context);
        }
        self.vote(context);
    }

    pub(super) fn deliver(&mut self, context: &mut Context<'_>, cycle: Cycle, list: Vec<Deliver>) {
        if let Some(written) = self.open.get_mut(&cycle) {
            if context.spec.replay {
                written.delivered.extend(list.iter().cloned());
            }
            written.copy(context, cycle, list);
        }
    }

    pub(super) fn closed(&mut self, context: &mut Context<'_>, cycle: Cycle, matcher: Place) {
        let Some(written) = self.open.get_mut(&cycle) else { return };
        written.matchers.remove(&matcher);
        if !written.finished || !written.matchers.is_empty() {
            return;
        }
        let Some(written) = self.open.remove(&cycle) else { return };
        written.release(context);
        if let (true, Some(definition)) = (context.spec.replay, &written.definition) {
            self.recorded = Some(Recorded {
                cycle,
                definition: definition.fingerprint,
                asked: written.asked,
                answers: written.delivered,
            });
        }
        self.vote(context);
    }

    /// Whoever is gone asks for nothing.
    pub(super) fn lost(&mut self, context: &mut Context<'_>, place: Place) {
        self.recorded = None;
        for cycle in self.open.keys().copied().collect::<Vec<_>>() {
            self.closed(context, cycle, place);
        }
    }

    /// What this rank has defined for a cycle, once it has sent something of it.
    pub(super) fn opened(&self, cycle: Cycle) -> Option<&Definition> {
        let written = self.open.get(&cycle).filter(|written| written.opened)?;
        written.definition.as_deref()
    }

    pub(super) fn pattern(&self, place: Place, file: File) -> Option<Pattern> {
        let recorded = self.recorded.as_ref()?;
        let flow = |deliver: &Deliver| Flow {
            from: place,
            to: deliver.reader,
            variable: recorded.asked[deliver.request as usize].0,
            part: deliver.part.clone(),
        };
        let flows = recorded.answers.iter().map(flow).collect();
        Some(Pattern { file, cycle: recorded.cycle, flows })
    }
}

impl Written {
    /// Sends what matchers do not know.
    fn send(&mut self, context: &mut Context<'_>, cycle: Cycle) -> Result<(), RequestError> {
        let definition = self.definition.clone();
        let definition =
            definition.ok_or_else(|| context.order("it is sent before it was defined"))?;
        self.opened = true;
        let batch = Batch {
            definition: definition.fingerprint,
            written: self.finished,
            records: self.records,
            ..Batch::default()
        };
        let fresh = self.asked.iter().enumerate().skip(self.sent);
        context.batches(cycle, &definition, &batch, |share, batches| {
            for (request, (variable, slab, epoch)) in fresh {
                share.split(*variable, slab, |matcher, slab| {
                    let (request, epoch) = (request as u32, *epoch);
                    let announce = Announce { variable: *variable, request, epoch, slab };
                    batches[matcher].announces.push(announce);
                });
            }
        });
        self.sent = self.asked.len();
        Ok(())
    }

    fn copy(&self, context: &mut Context<'_>, cycle: Cycle, list: Vec<Deliver>) {
        let Some(definition) = &self.definition else { return };
        for deliver in list {
            let Some(request) = self.requests.get(deliver.request as usize) else { continue };
            let stored = definition.variables[request.variable.0 as usize].type_;
            let format = context.spec.format;
            let conversion = Conversion::new(request.type_, stored, stored, format);
            let copies = Copies::gather(&deliver.part, (&request.slab, &request.memory));
            // Both were made sure of when the request came, and a matcher names only parts of it.
            if let (Ok(conversion), Some(copies)) = (conversion, copies) {
                context.actions.push_back(Action::Copy(Copy {
                    to: deliver.reader,
                    file: context.file,
                    cycle,
                    wish: deliver.wish,
                    part: deliver.part,
                    handle: request.handle,
                    copies,
                    conversion,
                }));
            }
        }
    }

    fn release(&self, context: &mut Context<'_>) {
        let handles: Vec<Handle> = self.requests.iter().map(|request| request.handle).collect();
        context.actions.push_back(Action::Released { file: context.file, handles });
    }
}
