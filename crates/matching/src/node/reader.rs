//! What a rank reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperslab::{Copies, Slab};
use nctypes::Conversion;

use super::{
    Action, Arrival, Asked, Context, Definition, Fill, Recorded, Request, RequestError, Role,
};
use crate::{Batch, Cycle, Gap, Place, Refusal, Said, Why, Wish};

/// One file of which a rank is a reader.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    turns: u32,
    now: Option<Cycle>,
    /// Cycles of which something is still missing.
    open: BTreeMap<Cycle, Wanted>,
    recorded: Option<Recorded<Gap>>,
    /// A writer that is gone.
    lost: Option<Place>,
}

#[derive(Debug, Default)]
struct Wanted {
    definition: Option<Arc<Definition>>,
    requests: Vec<Request>,
    /// Elements that each still lacks; none once it is complete or has failed.
    missing: Vec<Option<u128>>,
    /// How many of them are not settled.
    unsettled: usize,
    asked: Asked,
    sent: usize,
    opened: bool,
    finished: bool,
    /// Wishes were sent before the cycle was finished: it cannot be replayed.
    flushed: bool,
    failed: bool,
    /// With replay: whether it was said if the cycle is the recorded one.
    voted: bool,
    /// And whether it is known for all.
    decided: bool,
    replayed: bool,
    gaps: Vec<Gap>,
}

impl Reader {
    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn begin(&mut self, context: &Context<'_>) -> Result<(), RequestError> {
        if self.now.is_some() {
            return Err(context.order("it is begun while it is being read"));
        }
        let cycle = Cycle(self.turns);
        self.turns += 1;
        self.now = Some(cycle);
        self.open.insert(cycle, Wanted::default());
        Ok(())
    }

    fn current(&mut self, context: &Context<'_>) -> Result<(Cycle, &mut Wanted), RequestError> {
        let found = self.now.and_then(|cycle| Some((cycle, self.open.get_mut(&cycle)?)));
        found.ok_or_else(|| context.order("it is read before it was begun"))
    }

    pub(super) fn define(
        &mut self,
        context: &Context<'_>,
        definition: Arc<Definition>,
    ) -> Result<(), RequestError> {
        let (_, wanted) = self.current(context)?;
        if wanted.opened || !wanted.requests.is_empty() {
            return Err(context.order("it is defined anew after some of it was asked for"));
        }
        wanted.definition = Some(definition);
        Ok(())
    }

    pub(super) fn read(
        &mut self,
        context: &mut Context<'_>,
        request: Request,
    ) -> Result<(), RequestError> {
        let lost = self.lost;
        let (_, wanted) = self.current(context)?;
        let definition = wanted.definition.as_ref();
        let definition =
            definition.ok_or_else(|| context.order("it is read before it was defined"))?;
        context.check(definition, &request)?;
        let elements = request.slab.elements();
        wanted.asked.push((request.variable, request.slab.clone(), 0));
        let number = wanted.requests.len() as u32;
        wanted.missing.push(Some(elements));
        wanted.unsettled += 1;
        wanted.requests.push(request);
        if elements == 0 {
            wanted.got(context, number, 0);
        } else if let Some(place) = lost {
            wanted.fail(context, number, &Why::Lost { place });
        }
        Ok(())
    }

    pub(super) fn flush(&mut self, context: &mut Context<'_>) -> Result<(), RequestError> {
        let (cycle, wanted) = self.current(context)?;
        wanted.flushed = true;
        wanted.send(context, cycle)?;
        // Who waits for some of a cycle cannot know yet whether it is the recorded one.
        self.vote(context);
        Ok(())
    }

    pub(super) fn finish(&mut self, context: &mut Context<'_>) -> Result<(), RequestError> {
        let (cycle, wanted) = self.current(context)?;
        if wanted.definition.is_none() {
            return Err(context.order("it is finished before it was defined"));
        }
        wanted.finished = true;
        if context.spec.replay && !wanted.flushed {
            wanted.opened = true;
        } else {
            wanted.send(context, cycle)?;
        }
        self.now = None;
        self.vote(context);
        self.settle(context, cycle);
        Ok(())
    }

    /// Says whether the next cycle is the recorded one, as soon as nothing is under way that will be recorded.
    fn vote(&mut self, context: &mut Context<'_>) {
        let Some(mut first) = self.open.first_entry().filter(|_| context.spec.replay) else {
            return;
        };
        let (cycle, wanted) = (*first.key(), first.get_mut());
        if !(wanted.finished || wanted.flushed) || std::mem::replace(&mut wanted.voted, true) {
            return;
        }
        let definition = wanted.definition.as_ref().map(|one| one.fingerprint);
        let same = self.recorded.as_ref().filter(|recorded| {
            !wanted.flushed
                && Some(recorded.definition) == definition
                && recorded.asked == wanted.asked
        });
        let same = same.map(|recorded| recorded.cycle);
        let coordinator = context.spec.matching_places()[0];
        context.send(coordinator, cycle, Said::SameAs(Role::Reader, same));
    }

    pub(super) fn decided(&mut self, context: &mut Context<'_>, cycle: Cycle, replayed: bool) {
        let gaps = match &self.recorded {
            Some(recorded) if replayed => recorded.answers.clone(),
            _ => Vec::new(),
        };
        if !replayed {
            self.recorded = None;
        }
        let Some(wanted) = self.open.get_mut(&cycle) else {
            // All of it has failed meanwhile: matchers need not wait for more.
            if !replayed {
                let batch = Batch { wished: true, ..Batch::default() };
                for matcher in context.spec.matching_places() {
                    context.send(matcher, cycle, Said::Batch(batch.clone()));
                }
            }
            return;
        };
        wanted.decided = true;
        if replayed {
            wanted.replayed = true;
            wanted.sent = wanted.asked.len();
            self.gaps(context, cycle, gaps);
        } else if !wanted.flushed {
            // It was defined, or it could not have been finished.
            let _ = wanted.send(context, cycle);
        }
        self.settle(context, cycle);
    }

    pub(super) fn gaps(&mut self, context: &mut Context<'_>, cycle: Cycle, list: Vec<Gap>) {
        let Some(wanted) = self.open.get_mut(&cycle) else { return };
        if context.spec.replay {
            wanted.gaps.extend(list.iter().cloned());
        }
        for gap in list {
            wanted.fill(context, &gap);
        }
        self.settle(context, cycle);
    }

    pub(super) fn refuse(
        &mut self,
        context: &mut Context<'_>,
        cycle: Cycle,
        list: Vec<(u32, Why)>,
    ) {
        let Some(wanted) = self.open.get_mut(&cycle) else { return };
        for (wish, why) in list {
            wanted.fail(context, wish, &why);
        }
        self.settle(context, cycle);
    }

    pub(super) fn arrived(
        &mut self,
        context: &mut Context<'_>,
        cycle: Cycle,
        wish: u32,
        part: &Slab,
    ) -> Option<Arrival> {
        let wanted = self.open.get_mut(&cycle)?;
        // Nobody waits for what has failed.
        (*wanted.missing.get(wish as usize)?)?;
        let (copies, conversion, handle) = wanted.place(context, wish, part)?;
        wanted.got(context, wish, part.elements());
        self.settle(context, cycle);
        Some(Arrival { handle, copies, conversion })
    }

    /// Where values belong that are on their way.
    pub(super) fn destination(
        &self,
        context: &Context<'_>,
        cycle: Cycle,
        wish: u32,
        part: &Slab,
    ) -> Option<Arrival> {
        let wanted = self.open.get(&cycle)?;
        (*wanted.missing.get(wish as usize)?)?;
        let (copies, conversion, handle) = wanted.place(context, wish, part)?;
        Some(Arrival { handle, copies, conversion })
    }

    pub(super) fn lost(&mut self, context: &mut Context<'_>, place: Place) {
        if !context.spec.writers.contains(&place) {
            return;
        }
        self.recorded = None;
        self.lost = Some(place);
        for cycle in self.open.keys().copied().collect::<Vec<_>>() {
            if let Some(wanted) = self.open.get_mut(&cycle) {
                for wish in 0..wanted.requests.len() as u32 {
                    wanted.fail(context, wish, &Why::Lost { place });
                }
            }
            self.settle(context, cycle);
        }
    }

    /// Forgets a cycle that is finished and complete.
    fn settle(&mut self, context: &mut Context<'_>, cycle: Cycle) {
        let Some(wanted) = self.open.get(&cycle) else { return };
        let undecided = context.spec.replay && !wanted.decided;
        let undecided = undecided && (self.lost.is_none() || !wanted.voted);
        if !wanted.finished || wanted.unsettled > 0 || undecided {
            return;
        }
        let Some(wanted) = self.open.remove(&cycle) else { return };
        if let (true, false, false, Some(definition)) =
            (context.spec.replay, wanted.replayed, wanted.failed, &wanted.definition)
        {
            self.recorded = Some(Recorded {
                cycle,
                definition: definition.fingerprint,
                asked: wanted.asked,
                answers: wanted.gaps,
            });
        }
        if wanted.replayed && context.spec.queue.is_some() {
            let first = context.spec.matching_places()[0];
            context.send(first, cycle, Said::Done);
        }
        context.actions.push_back(Action::Read { file: context.file, cycle });
        self.vote(context);
    }
}

impl Wanted {
    fn send(&mut self, context: &mut Context<'_>, cycle: Cycle) -> Result<(), RequestError> {
        let definition = self.definition.clone();
        let definition =
            definition.ok_or_else(|| context.order("it is sent before it was defined"))?;
        self.opened = true;
        let fingerprint = definition.fingerprint;
        let batch = Batch { definition: fingerprint, wished: self.finished, ..Batch::default() };
        let (missing, fresh) = (&self.missing, self.asked.iter().enumerate().skip(self.sent));
        context.batches(cycle, &definition, &batch, |share, batches| {
            for (number, (variable, slab, _)) in fresh {
                if missing[number].is_none() {
                    continue;
                }
                share.split(*variable, slab, |matcher, slab| {
                    let wish = Wish { variable: *variable, wish: number as u32, slab };
                    batches[matcher].wishes.push(wish);
                });
            }
        });
        self.sent = self.asked.len();
        Ok(())
    }

    /// Where a part of a wish belongs.
    fn place(
        &self,
        context: &Context<'_>,
        wish: u32,
        part: &Slab,
    ) -> Option<(Copies, Conversion, super::Handle)> {
        let request = self.requests.get(wish as usize)?;
        let stored = self.definition.as_ref()?.variables.get(request.variable.0 as usize)?.type_;
        let conversion = Conversion::new(stored, stored, request.type_, context.spec.format);
        let copies = Copies::scatter(part, (&request.slab, &request.memory))?;
        Some((copies, conversion.ok()?, request.handle))
    }

    fn fill(&mut self, context: &mut Context<'_>, gap: &Gap) {
        let unsettled = self.missing.get(gap.wish as usize).is_some_and(Option::is_some);
        let Some((copies, conversion, handle)) = self.place(context, gap.wish, &gap.part) else {
            return;
        };
        let request = &self.requests[gap.wish as usize];
        let spec = self.definition.as_ref().map(|one| &one.variables[request.variable.0 as usize]);
        let value = spec.and_then(|spec| spec.fill);
        if let (true, Some(value)) = (unsettled, value) {
            context.actions.push_back(Action::Fill(Fill { handle, copies, value, conversion }));
            self.got(context, gap.wish, gap.part.elements());
        }
    }

    fn got(&mut self, context: &mut Context<'_>, wish: u32, elements: u128) {
        let Some(Some(missing)) = self.missing.get_mut(wish as usize) else { return };
        *missing = missing.saturating_sub(elements);
        if *missing == 0 {
            self.missing[wish as usize] = None;
            self.unsettled -= 1;
            let handle = self.requests[wish as usize].handle;
            context.actions.push_back(Action::Complete { handle });
        }
    }

    fn fail(&mut self, context: &mut Context<'_>, wish: u32, why: &Why) {
        let Some(missing @ Some(_)) = self.missing.get_mut(wish as usize) else { return };
        *missing = None;
        self.unsettled -= 1;
        self.failed = true;
        let request = &self.requests[wish as usize];
        if let Some(definition) = &self.definition {
            let spec = &definition.variables[request.variable.0 as usize];
            let refusal = Refusal::new(context.coupling, context.file, spec, context.place, why);
            context.actions.push_back(Action::Failed { handle: request.handle, refusal });
        }
    }
}
