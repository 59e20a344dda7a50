//! A file that this rank writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperslab::{Memory, Slab};
use matching::{Handle, Place, Request, RequestError, Variable, VariableSpec};
use nctypes::{Conversion, Format, Type};

use crate::hub::Shared;
use crate::lane::{Call, Defined};
use crate::memory::{Piece, fits};
use crate::wire::LaneKey;
use crate::{Fault, Ranged};

/// One opening of a file by one rank of its writers.
pub struct Written {
    shared: Arc<Shared>,
    /// One for each component that reads; none where the cycle is dropped.
    lanes: Vec<LaneKey>,
    name: String,
    me: Place,
    is_file: bool,
    /// The rule says that everything is copied when it is written.
    buffer: bool,
    /// How many cycles this rank may be ahead, if it then waits.
    limit: Option<u32>,
    defined: Option<Arc<Defined>>,
    /// What belongs to the cycle that is being written.
    calls: Vec<Ask>,
    /// What was handed over and may still lie in the program's memory.
    handed: Vec<Handle>,
    cycles: u32,
    begun: bool,
    closed: bool,
}

/// Something that the program has asked for.
enum Ask {
    Write(Piece),
    Synchronise,
}

/// As fast as memory is copied, about: waiting for a fetch as long as a copy would take is never twice as bad as the better of both.
const COPIED_BYTES_PER_SECOND: f64 = 4e9;
/// So soon a reader can begin to fetch at all.
const FETCH_BEGINS: Duration = Duration::from_millis(1);

impl Written {
    pub(crate) fn new(
        shared: Arc<Shared>,
        lanes: Vec<LaneKey>,
        name: &str,
        me: Place,
        is_file: bool,
        buffer: bool,
        limit: Option<u32>,
    ) -> Self {
        Self {
            shared,
            lanes,
            name: name.to_owned(),
            me,
            is_file,
            buffer,
            limit,
            defined: None,
            calls: Vec::new(),
            handed: Vec::new(),
            cycles: 0,
            begun: false,
            closed: false,
        }
    }

    /// Whether the rule says that the file itself is handed over: then only [`close`](Self::close) has to be called.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// The header as PnetCDF has it, and the variables that it defines. After `enddef`; again after `redef`.
    ///
    /// # Errors
    /// The file is handed over by itself.
    pub fn define(
        &mut self,
        header: &[u8],
        format: Format,
        variables: Vec<VariableSpec>,
    ) -> Result<(), Fault> {
        if self.is_file {
            return Err(self.order("it is handed over as a file"));
        }
        self.defined = Some(Arc::new(Defined { header: header.to_vec(), format, variables }));
        Ok(())
    }

    /// A part of a variable lies in memory, of which `bytes` may be looked at. It must stay as it is until
    /// [`settle`](Self::settle). The answer is how many values do not fit in the variable's type (`NC_ERANGE`): the others are
    /// written all the same.
    ///
    /// # Errors
    /// What netCDF would refuse; a part that does not lie in the memory; a file that is not defined; readers that are too far behind.
    ///
    /// # Safety
    /// `address` leads to `bytes` bytes that can be read and that nobody changes until [`settle`](Self::settle) returns, or
    /// `self` is closed or dropped.
    pub unsafe fn write(
        &mut self,
        variable: Variable,
        slab: Slab,
        memory: Memory,
        type_: Type,
        address: *const u8,
        bytes: usize,
    ) -> Result<Ranged, Fault> {
        let request = Request { variable, slab, memory, type_, handle: Handle(0) };
        let defined = self.defined.clone();
        let defined = defined.ok_or_else(|| self.order("it is written before it is defined"))?;
        request.check(&self.name, &defined.variables).map_err(|error| self.request(error))?;
        let spec = &defined.variables[variable.0 as usize];
        if !fits(&request, bytes) {
            return Err(Fault::Memory {
                component: self.component(),
                rank: self.me.rank,
                file: self.name.clone(),
                variable: spec.name.clone(),
                slab: request.slab.to_string(),
                bytes,
            });
        }
        self.begin()?;
        // SAFETY: the caller's promise, and `fits`.
        let mut piece = unsafe { Piece::of_program(&request, address) };
        let conversion = Conversion::new(type_, spec.type_, spec.type_, defined.format)
            .map_err(|_| self.order("text and numbers"))?;
        let mut ranged = 0;
        if !conversion.is_plain() {
            let size = spec.type_.size_bytes();
            let buffer = self.shared.lock().buffer(piece.slab.elements() as usize * size);
            ranged = piece.convert(spec.type_, &conversion, buffer);
        } else {
            piece.type_ = spec.type_;
            if self.buffer {
                self.copy(&mut piece);
            }
        }
        if !self.lanes.is_empty() {
            self.calls.push(Ask::Write(piece));
        }
        Ok(Ranged(ranged))
    }

    /// The first write of a cycle waits if the readers are too far behind.
    fn begin(&mut self) -> Result<(), Fault> {
        if std::mem::replace(&mut self.begun, true) || self.cycles == 0 {
            return Ok(());
        }
        let Some(limit) = self.limit else { return Ok(()) };
        let what = format!("one of {limit} cycles to be read");
        self.wait(what, |lane| lane.ahead() < limit)
    }

    /// Waits for something of every lane.
    fn wait(&self, what: String, ready: impl Fn(&crate::lane::Lane) -> bool) -> Result<(), Fault> {
        let begun = Instant::now();
        let until = begun + self.shared.lock().plan.patience();
        let all = |state: &mut crate::hub::State| {
            let mut lanes = self.lanes.iter().filter_map(|key| state.lanes.get(key));
            lanes.all(&ready).then_some(())
        };
        let done = self.shared.wait(until, all)?;
        self.waited(begun.elapsed());
        done.ok_or_else(|| Fault::Late {
            component: self.component(),
            rank: self.me.rank,
            file: self.name.clone(),
            what,
            waited: begun.elapsed(),
        })
    }

    fn waited(&self, time: Duration) {
        let mut state = self.shared.lock();
        for key in &self.lanes {
            let other = state.plan.name(key.reader).to_owned();
            state.tallies.of(&self.name, true, &other).waited += time;
        }
    }

    fn copy(&self, piece: &mut Piece) {
        let buffer = self.shared.lock().buffer(piece.bytes());
        piece.copy(buffer);
    }

    /// From now on the program may change its memory: what was not fetched is copied, unless it is fetched meanwhile.
    ///
    /// # Errors
    /// A reader has begun to fetch and does not come to an end.
    pub fn settle(&mut self) -> Result<(), Fault> {
        let mut calls = std::mem::take(&mut self.calls);
        for call in &mut calls {
            if let Ask::Write(piece) = call
                && piece.is_program()
            {
                self.copy(piece);
            }
        }
        self.calls = calls;
        let handed = std::mem::take(&mut self.handed);
        if handed.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let of_program = |state: &crate::hub::State| -> Vec<Handle> {
            let is = |one: &&Handle| state.pieces.get(one).is_some_and(Piece::is_program);
            handed.iter().filter(is).copied().collect()
        };
        let bytes: usize = {
            let state = self.shared.lock();
            of_program(&state)
                .iter()
                .filter_map(|one| state.pieces.get(one))
                .map(Piece::bytes)
                .sum()
        };
        let worth = FETCH_BEGINS + Duration::from_secs_f64(bytes as f64 / COPIED_BYTES_PER_SECOND);
        let busy = |state: &crate::hub::State| {
            let mut pulls = state.pulls.values();
            pulls.any(|pull| pull.of_program && handed.contains(&pull.handle))
        };
        self.shared.wait(begun + worth, |state| of_program(state).is_empty().then_some(()))?;
        let patience = self.shared.lock().plan.patience();
        // What is being fetched comes to its end without us, and then perhaps nothing is left to copy.
        self.shared.wait(begun + patience, |state| (!busy(state)).then_some(()))?;
        let left = of_program(&self.shared.lock());
        for handle in left {
            let mut state = self.shared.lock();
            let size = state.pieces.get(&handle).map(Piece::bytes);
            let Some(buffer) = size.map(|bytes| state.buffer(bytes)) else { continue };
            if let Some(piece) = state.pieces.get_mut(&handle) {
                piece.copy(buffer);
            }
        }
        // Whoever is in the middle of it has been told where the program has it.
        let quiet = self.shared.wait(begun + patience, |state| (!busy(state)).then_some(()))?;
        self.waited(begun.elapsed());
        quiet.ok_or_else(|| Fault::Late {
            component: self.component(),
            rank: self.me.rank,
            file: self.name.clone(),
            what: "a reader that is fetching data to come to an end".to_owned(),
            waited: begun.elapsed(),
        })
    }

    /// What this rank writes from now on is newer than what any rank wrote before: for collective calls after which a file
    /// is consistent.
    ///
    /// # Errors
    /// The file is not defined.
    pub fn synchronise(&mut self) -> Result<(), Fault> {
        if self.defined.is_none() {
            return Err(self.order("it is synchronised before it is defined"));
        }
        self.calls.push(Ask::Synchronise);
        Ok(())
    }

    /// Ends a cycle, which readers can read from now on; what is written next belongs to the next cycle. All ranks of the group do
    /// so equally often. `records` is how many records the file has for all that this rank knows, written by others or filled.
    ///
    /// # Errors
    /// The file is not defined, or readers are too far behind.
    pub fn finish(&mut self, records: u64) -> Result<(), Fault> {
        let defined = self.defined.clone();
        let defined = defined.ok_or_else(|| self.order("it is finished before it is defined"))?;
        self.begin()?;
        self.begun = false;
        self.cycles += 1;
        let mut state = self.shared.lock();
        let mut list = Vec::with_capacity(self.calls.len());
        for ask in self.calls.drain(..) {
            list.push(match ask {
                Ask::Write(piece) => {
                    let handle = Handle(state.number());
                    if piece.is_program() {
                        self.handed.push(handle);
                    }
                    state.pieces.insert(handle, piece);
                    Some(handle)
                }
                Ask::Synchronise => None,
            });
        }
        for key in &self.lanes {
            let Some(lane) = state.lanes.get_mut(key) else { continue };
            lane.submitted += 1;
            if let Some(why) = lane.abandoned.clone() {
                lane.released += 1;
                let (file, opening) = (self.name.clone(), key.opening);
                state.unread.push(crate::Unread { file, opening, why });
                continue;
            }
            lane.calls.push_back(Call::Define(defined.clone()));
            for handle in &list {
                lane.calls.push_back(handle.map_or(Call::Synchronise, Call::Write));
            }
            lane.calls.push_back(Call::Finish { records });
            for piece in list.iter().flatten() {
                if let Some(piece) = state.pieces.get_mut(piece) {
                    piece.lanes += 1;
                }
            }
            let other = state.plan.name(key.reader).to_owned();
            let kept = state.kept() as u64;
            let tally = state.tallies.of(&self.name, true, &other);
            tally.cycles += 1;
            tally.kept = kept;
        }
        for handle in list.into_iter().flatten() {
            state.release(handle);
        }
        for key in &self.lanes {
            state.feed(*key);
        }
        drop(state);
        self.shared.wake();
        Ok(())
    }

    /// Waits until all cycles that are finished were read, as `dtf_transfer` does.
    ///
    /// # Errors
    /// The readers are too late.
    pub fn delivered(&mut self) -> Result<(), Fault> {
        self.wait("it to be read".to_owned(), crate::lane::Lane::is_delivered)
    }

    /// The file is closed: [finishes](Self::finish) the cycle if something was written since the last one or there was none, and
    /// [settles](Self::settle).
    ///
    /// # Errors
    /// As these.
    pub fn close(mut self, records: u64) -> Result<(), Fault> {
        let result = self.last(records);
        self.closed = result.is_ok();
        let mut state = self.shared.lock();
        for key in &self.lanes {
            if let Some(lane) = state.lanes.get_mut(key) {
                lane.closed |= self.closed;
            }
            state.post(*key);
        }
        drop(state);
        self.shared.wake();
        result
    }

    fn last(&mut self, records: u64) -> Result<(), Fault> {
        if self.is_file {
            let mut state = self.shared.lock();
            for key in &self.lanes {
                if let Some(lane) = state.lanes.get_mut(key) {
                    lane.submitted += 1;
                    lane.released += u32::from(lane.me.rank != 0);
                }
                state.finished(*key, self.me, matching::Cycle(0), records);
            }
            return Ok(());
        }
        if self.cycles == 0 || !self.calls.is_empty() {
            self.finish(records)?;
        }
        self.settle()
    }

    /// The file is given up (`ncmpi_abort`): readers of a cycle that is not finished get an error.
    pub fn abort(self) {}

    fn component(&self) -> String {
        self.shared.lock().plan.component().to_owned()
    }

    fn order(&self, what: &'static str) -> Fault {
        let (component, rank) = (self.component(), self.me.rank);
        Fault::Order { component, rank, file: self.name.clone(), what }
    }

    fn request(&self, source: RequestError) -> Fault {
        Fault::Request { component: self.component(), rank: self.me.rank, source }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        // The program's memory is not looked at any more.
        let _ = self.settle();
        let mut state = self.shared.lock();
        for key in &self.lanes {
            let Some(lane) = state.lanes.get_mut(key) else { continue };
            lane.closed = true;
            let (posts, said) = (lane.posts() || lane.is_file && lane.leads(), lane.said_closed);
            let (cycle, who) = (lane.submitted, lane.describe(self.me));
            lane.said_closed = true;
            if lane.is_file {
                lane.abandoned = Some(String::new());
            } else if posts && !said {
                let why = format!("{who} has given up `{}`", self.name);
                state.put(*key, &format!("x{cycle}"), why.as_bytes());
            }
        }
        drop(state);
        self.shared.wake();
    }
}
