//! A file that this rank reads.

use std::sync::Arc;
use std::time::Instant;

use hyperslab::{Memory, Slab};
use matching::{Handle, Place, Request, RequestError, Variable, VariableSpec};
use nctypes::{Format, Type};

use crate::Fault;
use crate::hub::{Shared, State, Wish};
use crate::lane::{FILE, Lane};
use crate::meeting::Watch;
use crate::memory::{Target, fits};
use crate::wire::{Frame, LaneKey, Post};

/// A read that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// How many values did not fit in the type that was asked for (`NC_ERANGE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ranged(pub u64);

/// One opening of a file by one rank of its readers.
pub struct Wanted {
    shared: Arc<Shared>,
    key: LaneKey,
    name: String,
    me: Place,
    is_file: bool,
    post: Post,
    /// Who writes it.
    other: String,
    /// Cycles that were finished.
    cycles: u32,
    begun: bool,
    /// Reads of this cycle that nobody has waited for.
    open: Vec<Token>,
}

impl Wanted {
    pub(crate) fn new(
        shared: Arc<Shared>,
        key: LaneKey,
        name: &str,
        me: Place,
        is_file: bool,
        post: Post,
        other: String,
    ) -> Self {
        let (name, open) = (name.to_owned(), Vec::new());
        Self { shared, key, name, me, is_file, post, other, cycles: 0, begun: false, open }
    }

    /// Whether the rule says that the file itself is handed over: it is complete now, and only [`close`](Self::close) has
    /// to be called.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// The header as the writers had it when they finished the cycle.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.post.header
    }

    /// The format of the header.
    #[must_use]
    pub fn format(&self) -> Format {
        self.post.format
    }

    /// The variables that it defines.
    #[must_use]
    pub fn variables(&self) -> &[VariableSpec] {
        &self.post.variables
    }

    /// How many records were written.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.post.records
    }

    /// Waits for the cycle that is read next, after [`finish`](Self::finish): header, variables and records are its own from then on.
    ///
    /// # Errors
    /// The writers are too late or gone.
    pub fn await_cycle(&mut self) -> Result<(), Fault> {
        self.begin()
    }

    /// Begins a cycle, if that was not done. The first one's header is there; later ones' is waited for.
    fn begin(&mut self) -> Result<(), Fault> {
        if self.begun {
            return Ok(());
        }
        if self.is_file {
            return Err(self.order("it is handed over as a file"));
        }
        if self.cycles > 0 {
            self.post = self.next_post()?;
        }
        let mut state = self.shared.lock();
        let node = state.lanes.get_mut(&self.key).and_then(|lane| lane.node.as_mut());
        let Some(node) = node else { return Err(Fault::Broken { what: "no node".to_owned() }) };
        let defined = node
            .begin_reading(FILE)
            .and_then(|()| node.define_read(FILE, self.post.variables.clone()));
        drop(state);
        defined.map_err(|error| self.request(error))?;
        self.begun = true;
        Ok(())
    }

    fn next_post(&self) -> Result<Post, Fault> {
        let (meeting, patience) = {
            let state = self.shared.lock();
            (state.meeting.clone(), state.plan.patience())
        };
        let begun = Instant::now();
        let watch = Watch::new().map_err(|error| Fault::Broken { what: error.to_string() })?;
        watch.add(&meeting.stream(self.key.stream));
        loop {
            match meeting.post(self.key, self.cycles) {
                Some(Ok(post)) => return Ok(post),
                Some(Err(why)) => return Err(self.gone(&format!("its writer: {why}"))),
                None => {}
            }
            let lost = self.shared.lock().lanes.get(&self.key).and_then(lost);
            if let Some(who) = lost {
                return Err(self.gone(&who));
            }
            if !watch.wait(begun + patience) {
                return Err(self.late(format!("{} to finish a cycle of it", self.other), begun));
            }
        }
    }

    /// A part of a variable is wanted in memory, of which `bytes` may be written. After [`finish`](Self::finish) it is of the next
    /// cycle, whose header is then waited for.
    ///
    /// # Errors
    /// What netCDF would refuse; a part that has no place in the memory; writers that have closed the file.
    ///
    /// # Safety
    /// `address` leads to `bytes` bytes that can be written and that nobody looks at until [`wait`](Self::wait) for the token, or
    /// [`cancel`](Self::cancel), returns, or `self` is closed or dropped.
    pub unsafe fn read(
        &mut self,
        variable: Variable,
        slab: Slab,
        memory: Memory,
        type_: Type,
        address: *mut u8,
        bytes: usize,
    ) -> Result<Token, Fault> {
        self.begin()?;
        let mut request = Request { variable, slab, memory, type_, handle: Handle(0) };
        let variables = &self.post.variables;
        request.check(&self.name, variables).map_err(|error| self.request(error))?;
        if !fits(&request, bytes) {
            return Err(Fault::Memory {
                component: self.component(),
                rank: self.me.rank,
                file: self.name.clone(),
                variable: variables[variable.0 as usize].name.clone(),
                slab: request.slab.to_string(),
                bytes,
            });
        }
        let mut state = self.shared.lock();
        let token = Token(state.number());
        request.handle = Handle(token.0);
        // SAFETY: the caller's promise, and `fits`; it is used until the wish is removed (`take`, `cancel`, `drop`).
        let target = unsafe { Target::new(&request, address) };
        state.wishes.insert(request.handle, Wish { target, ranged: 0, done: None });
        let handle = request.handle;
        let node = state.lanes.get_mut(&self.key).and_then(|lane| lane.node.as_mut());
        let asked = node.map(|node| node.read(FILE, request));
        if let Some(Err(error)) = asked {
            state.wishes.remove(&handle);
            drop(state);
            return Err(self.request(error));
        }
        state.pump(self.key);
        self.open.push(token);
        Ok(token)
    }

    /// Waits for some reads. The writers have finished the cycle already, hence this waits for no program to call anything.
    /// An answer for each token, in their order.
    pub fn wait(&mut self, tokens: &[Token]) -> Vec<Result<Ranged, Fault>> {
        if tokens.is_empty() {
            return Vec::new();
        }
        let mut state = self.shared.lock();
        if self.begun
            && let Some(node) = state.lanes.get_mut(&self.key).and_then(|lane| lane.node.as_mut())
        {
            let _ = node.flush_read(FILE);
            state.pump(self.key);
        }
        drop(state);
        self.shared.wake();
        self.take(tokens)
    }

    /// Takes the answers, when they are all there.
    fn take(&mut self, tokens: &[Token]) -> Vec<Result<Ranged, Fault>> {
        let begun = Instant::now();
        let until = begun + self.shared.lock().plan.patience();
        let done = self.shared.wait(until, |state: &mut State| {
            let open = |token: &Token| {
                state.wishes.get(&Handle(token.0)).is_some_and(|wish| wish.done.is_none())
            };
            (!tokens.iter().any(open)).then_some(())
        });
        let broken = match done {
            Err(Fault::Broken { what }) => Some(what),
            _ => None,
        };
        let waited = begun.elapsed();
        self.open.retain(|one| !tokens.contains(one));
        let mut state = self.shared.lock();
        state.tallies.of(&self.name, false, &self.other).waited += waited;
        let answers: Vec<Option<Wish>> =
            tokens.iter().map(|token| state.wishes.remove(&Handle(token.0))).collect();
        drop(state);
        let answer = |wish: Option<Wish>| match (wish, &broken) {
            (Some(Wish { done: Some(Ok(())), ranged, .. }), _) => Ok(Ranged(ranged)),
            (Some(Wish { done: Some(Err(refusal)), .. }), _) => Err(Fault::Refused(refusal)),
            (Some(_), Some(what)) => Err(Fault::Broken { what: what.clone() }),
            (Some(_), None) => Err(self.late(format!("data from {}", self.other), begun)),
            (None, _) => Err(self.order("a read is waited for that was waited for before")),
        };
        answers.into_iter().map(answer).collect()
    }

    /// Nobody wants this any more; its memory is not touched from now on.
    pub fn cancel(&mut self, token: Token) {
        self.open.retain(|one| *one != token);
        self.shared.lock().wishes.remove(&Handle(token.0));
    }

    /// Ends a cycle: reads that were not waited for are, and what is read next is of the writers' next cycle.
    ///
    /// # Errors
    /// The first of what could not be read.
    pub fn finish(&mut self) -> Result<(), Fault> {
        self.begin()?;
        self.begun = false;
        self.cycles += 1;
        let mut state = self.shared.lock();
        if let Some(node) = state.lanes.get_mut(&self.key).and_then(|lane| lane.node.as_mut()) {
            let _ = node.finish_reading(FILE);
            state.pump(self.key);
        }
        state.tallies.of(&self.name, false, &self.other).cycles += 1;
        drop(state);
        self.shared.wake();
        let open = std::mem::take(&mut self.open);
        if open.is_empty() {
            return Ok(());
        }
        self.take(&open).into_iter().find_map(Result::err).map_or(Ok(()), Err)
    }

    /// The file is closed: [finishes](Self::finish) the cycle; the writers' memory for this rank is free.
    ///
    /// # Errors
    /// The first of what could not be read and was not waited for.
    pub fn close(mut self) -> Result<(), Fault> {
        if self.is_file {
            return Ok(());
        }
        if self.begun || self.cycles == 0 { self.finish() } else { Ok(()) }
    }

    fn component(&self) -> String {
        self.shared.lock().plan.component().to_owned()
    }

    fn order(&self, what: &'static str) -> Fault {
        let (component, rank) = (self.component(), self.me.rank);
        Fault::Order { component, rank, file: self.name.clone(), what }
    }

    fn gone(&self, who: &str) -> Fault {
        let (component, rank, file) = (self.component(), self.me.rank, self.name.clone());
        Fault::Gone { component, rank, file, who: who.to_owned(), why: String::new() }
    }

    fn late(&self, what: String, begun: Instant) -> Fault {
        let (component, rank, file) = (self.component(), self.me.rank, self.name.clone());
        Fault::Late { component, rank, file, what, waited: begun.elapsed() }
    }

    fn request(&self, source: RequestError) -> Fault {
        Fault::Request { component: self.component(), rank: self.me.rank, source }
    }
}

/// A writer that is gone, in words.
fn lost(lane: &Lane) -> Option<String> {
    lane.lost.map(|place| lane.describe(place))
}

impl Drop for Wanted {
    fn drop(&mut self) {
        if self.is_file {
            return;
        }
        let mut state = self.shared.lock();
        for token in &self.open {
            state.wishes.remove(&Handle(token.0));
        }
        let matching = state.lanes.get(&self.key).map(|lane| lane.matching.clone());
        for place in matching.unwrap_or_default() {
            state.send(self.key, place, &Frame::Left(self.key, self.me));
        }
        state.lanes.remove(&self.key);
        state.past.insert(self.key);
        drop(state);
        self.shared.wake();
    }
}
