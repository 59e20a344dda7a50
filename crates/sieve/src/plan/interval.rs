//! Patterns without a closed form: the cheapest way to cut a row of blocks into groups.
//!
//! Joining over every hole that is cheaper than a new request (as the simple performance model
//! does) is the best only while no window reaches the buffer's limit, and while a group of one is
//! as dear as its share of a larger one. It is not: a single block needs no copy, no
//! read-modify-write and no lock. So the cut is found by dynamic programming over the row: the
//! cheapest way to do the first *j* blocks ends in one group *i..j* behind the cheapest way to do
//! the first *i*.
//!
//! A group's cost is a sum of what depends on its end, what depends on its start, and what depends
//! on each block. So the best start for each end is the smallest of one number per start, among
//! those starts that the window still reaches: the minimum of a sliding window, which costs the same
//! for each block however many the window holds.

mod linear;

use std::ops::Range;

use linear::{Linear, Single};

use super::{Cost, Request, VECTOR_BLOCKS_MAX};
use crate::Result;
use crate::group::{Group, Method};
use crate::model::{Extents, Profile, Warmth};
use crate::view::{Block, FileView};

/// How many blocks are planned together. What is cut between two such rows may be cut badly, so
/// the last group of each is planned again with the next.
const ROW_BLOCKS: usize = 8192;

/// For how many rows a limit that was reached is taken for granted.
const LIMITED_ROWS: u64 = 16;

/// The starts from which a group may reach the block at hand: a queue that tells its cheapest.
///
/// It is two stacks. What comes is remembered in `back`, with the cheapest of all; when nothing is
/// left of `front`, `back` is turned over into it, which keeps those that are cheaper than all behind
/// them. Which of two that follow each other is cheaper is anybody's guess, so what is done for each
/// is a selection, where the usual queue that keeps the cheapest in order would branch.
#[derive(Debug)]
struct Starts {
    /// The earliest on top, and the dearest.
    front: Vec<Start>,
    back: Vec<Start>,
    back_best: Start,
}

impl Default for Starts {
    fn default() -> Self {
        Self { front: Vec::new(), back: Vec::new(), back_best: NOWHERE }
    }
}

/// A start: what a group from there costs, besides what depends on its end.
#[derive(Debug, Clone, Copy)]
struct Start {
    ns: f64,
    /// Offset in the file, from the row's first byte.
    file: u64,
    number: u32,
}

/// No start: dearer than all, and within reach of everything.
const NOWHERE: Start = Start { ns: f64::INFINITY, file: u64::MAX, number: u32::MAX };

impl Start {
    #[inline]
    fn is_reached(&self, reach: u64, number_min: u32) -> bool {
        self.file >= reach && self.number >= number_min
    }

    /// The cheaper of the two, and of equals the later.
    #[inline]
    fn or(self, later: Start) -> Start {
        let cheaper = later.ns <= self.ns;
        Start {
            ns: if cheaper { later.ns } else { self.ns },
            file: if cheaper { later.file } else { self.file },
            number: if cheaper { later.number } else { self.number },
        }
    }
}

impl Starts {
    fn clear(&mut self) {
        self.front.clear();
        self.back.clear();
        self.back_best = NOWHERE;
    }

    /// Adds a start, behind all others.
    #[inline]
    fn push(&mut self, start: Start) {
        self.back.push(start);
        self.back_best = self.back_best.or(start);
    }

    /// The cheapest start that lies at `reach` or behind it and is no earlier than `number_min`, or
    /// [`NOWHERE`]. Starts only ever fall out of reach.
    #[inline]
    fn best(&mut self, reach: u64, number_min: u32) -> Start {
        loop {
            match self.front.last() {
                Some(start) if start.is_reached(reach, number_min) => {
                    return start.or(self.back_best);
                }
                // Whatever is before it is out of reach, too.
                Some(_) => drop(self.front.pop()),
                None if self.back_best.is_reached(reach, number_min) => return self.back_best,
                None => self.turn_over(reach, number_min),
            }
        }
    }

    #[cold]
    fn turn_over(&mut self, reach: u64, number_min: u32) {
        let mut best = f64::INFINITY;
        for start in self.back.drain(..).rev() {
            if !start.is_reached(reach, number_min) {
                break;
            }
            if start.ns < best {
                best = start.ns;
                self.front.push(start);
            }
        }
        self.back_best = NOWHERE;
    }
}

/// How the first blocks of a row are done most cheaply.
#[derive(Debug, Clone, Copy)]
struct Best {
    ns: f64,
    /// Where the last group starts.
    start: u32,
    method: Method,
}

impl Best {
    /// The cheaper of the two.
    #[inline]
    fn or(self, other: Best) -> Best {
        let cheaper = other.ns < self.ns;
        Best {
            ns: if cheaper { other.ns } else { self.ns },
            start: if cheaper { other.start } else { self.start },
            method: if cheaper { other.method } else { self.method },
        }
    }
}

/// The first blocks of a request, planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Their groups.
    pub groups: Vec<Group>,
    /// What they are expected to cost.
    pub cost: Cost,
    /// What is done once for them, besides, in nanoseconds.
    pub first_ns: f64,
    /// As in [`Plan::credit_ns`](crate::Plan::credit_ns).
    pub credit_ns: f64,
}

/// Plans rows of blocks; keeps its tables from one row to the next.
#[derive(Debug, Default)]
pub struct IntervalPlanner {
    blocks: Vec<Block>,
    best: Vec<Best>,
    windows: Starts,
    vectors: Starts,
    /// How many rows were planned, and up to which one windows are expected to reach their limit.
    rows: u64,
    limited_until: u64,
}

impl IntervalPlanner {
    /// The cheapest groups for the first blocks of a request: at most a few thousand blocks, so that
    /// a plan takes little memory however many tuples the view has. `weigh` corrects the prediction
    /// for each method, 1 for not at all.
    ///
    /// # Errors
    /// As [`FileView::runs`].
    pub fn plan(
        &mut self,
        view: &FileView,
        profile: &Profile,
        request: &Request,
        in_flight: u32,
        weigh: impl Fn(Method) -> f64,
    ) -> Result<Row> {
        let mut blocks = view.blocks(request.data.start, request.data.end - request.data.start)?;
        self.blocks.clear();
        self.blocks.extend(blocks.by_ref().take(ROW_BLOCKS));
        let more = blocks.next().is_some();
        let now = request.circumstances(in_flight);
        let each = Single::each(profile, &now, weigh(Method::Each));
        let mapped = request.mapped.filter(|_| request.warmth == Warmth::Warm);
        let Some((mapped, extents)) = mapped.zip(self.extents()) else {
            self.search(profile, request, in_flight, each, &weigh);
            return Ok(self.collect(more));
        };
        // Each row is planned without the mapping until what that loses has paid for touching it.
        let through = Single::mapped(profile, &extents, weigh(Method::Mapped));
        let first = mapped.first_touched(extents.blocks, extents.data / extents.blocks);
        let first_ns = first * profile.map.fault_ns;
        let credit_ns = mapped.credit_ns as f64;
        let mut lost_ns = 0.0;
        if first_ns > credit_ns {
            self.search(profile, request, in_flight, each, &weigh);
            let all_ns = self.best.last().map_or(0.0, |best| best.ns);
            let through_ns: f64 = self.blocks.iter().map(|block| through.ns(block.len, 0)).sum();
            lost_ns = (all_ns - through_ns).max(0.0);
            if lost_ns < first_ns - credit_ns {
                return Ok(Row { credit_ns: lost_ns, ..self.collect(more) });
            }
        }
        let average = (extents.data / extents.blocks) as u64;
        let is_cheaper = through.ns(average.max(1), 0) < each.ns(average.max(1), 0);
        let single = if is_cheaper { through } else { each };
        self.search(profile, request, in_flight, single, &weigh);
        let row = self.collect(more);
        // A row that goes through windows touches nothing.
        let is_touched = row.cost.mapped_ns > 0.0;
        let (first_ns, credit_ns) =
            if is_touched { (first_ns, -credit_ns.min(first_ns)) } else { (0.0, lost_ns) };
        Ok(Row { first_ns, credit_ns, ..row })
    }

    /// What the row spans; none when it has no blocks.
    fn extents(&self) -> Option<Extents> {
        let (first, last) = (self.blocks.first()?, self.blocks.last()?);
        Some(Extents {
            file: (last.file + last.len - first.file) as f64,
            data: (last.data + last.len - first.data) as f64,
            blocks: self.blocks.len() as f64,
        })
    }

    /// Fills `best`: `best[j]` is about the first `j` blocks.
    fn search(
        &mut self,
        profile: &Profile,
        request: &Request,
        in_flight: u32,
        each: Single<'_>,
        weigh: &impl Fn(Method) -> f64,
    ) {
        let now = request.circumstances(in_flight);
        // Windows under way together share the buffer.
        let sharers = if request.announced { 1 } else { u64::from(in_flight.clamp(1, 8)) };
        let window_bytes = request.buffer_bytes / sharers;
        let origin = self.blocks.first().map_or(0, |block| block.file);
        let device = &profile.device;
        // A request to a further server costs about what one to the first does, though they wait
        // for each other's answers together.
        let stripes = match request.warmth {
            Warmth::Cold if device.servers > 1 => {
                let share = f64::from(device.servers.min(in_flight.max(1)));
                (device.stripe_bytes, device.latency_ns / f64::from(device.servers) / share)
            }
            _ => (0, 0.0),
        };
        let scaled = |linear: Linear, by: f64| Linear {
            fixed: linear.fixed * by,
            slope: linear.slope * by,
            block: linear.block * by,
            byte: linear.byte * by,
            ..linear
        };
        let window =
            Linear::of(|size| profile.window_ns(size, window_bytes, &now), stripes, origin);
        let window = scaled(window, weigh(Method::Window));
        let vector = Linear::of(|size| profile.vector_ns(size, &now), stripes, origin);
        let vector = scaled(vector, weigh(Method::Vector));
        let sieves = request.can_sieve();
        let vectors = sieves && request.vectored && (in_flight == 1 || request.announced);

        let vectors = vectors && {
            // A vectored call may only win where naming two places in memory is cheaper than a
            // copy, which it is for large blocks if at all.
            let len_max = self.blocks.iter().map(|block| block.len).max().unwrap_or(0);
            let gain = window.each(len_max) - vector.each(len_max);
            gain > 0.0 || 2.0 * gain > vector.fixed - window.fixed
        };
        // A row of a pattern that once reached the buffer's limit will do so again.
        self.rows += 1;
        if self.rows < self.limited_until {
            self.fill_any(sieves, vectors, each, window, vector, window_bytes);
            return;
        }
        let done = match (sieves, vectors) {
            (false, _) => false,
            (true, false) => self.fill_unlimited::<false>(each, window, vector, window_bytes),
            (true, true) => self.fill_unlimited::<true>(each, window, vector, window_bytes),
        };
        if !done {
            self.limited_until = self.rows + LIMITED_ROWS;
            self.fill_any(sieves, vectors, each, window, vector, window_bytes);
        }
    }

    /// The dynamic program with a queue.
    fn fill_any(
        &mut self,
        sieves: bool,
        vectors: bool,
        each: Single<'_>,
        window: Linear,
        vector: Linear,
        window_bytes: u64,
    ) {
        match (sieves, vectors) {
            (false, _) => self.fill::<false, false>(each, window, vector, window_bytes),
            (true, false) => self.fill::<true, false>(each, window, vector, window_bytes),
            (true, true) => self.fill::<true, true>(each, window, vector, window_bytes),
        }
    }

    /// The dynamic program as if the buffer had no end: then the best start is the cheapest of all
    /// so far, and no queue is needed. False, with nothing done, when that is ever out of reach.
    fn fill_unlimited<const VECTORS: bool>(
        &mut self,
        each: Single<'_>,
        window: Linear,
        vector: Linear,
        window_bytes: u64,
    ) -> bool {
        let Self { blocks, best, .. } = self;
        let origin = blocks.first().map_or(0, |block| block.file);
        best.clear();
        best.push(Best { ns: 0.0, start: 0, method: each.method });
        let (mut before, mut window_sum, mut vector_sum) = (0.0, 0.0, 0.0);
        let (mut windows, mut vectors) = (NOWHERE, NOWHERE);
        let mut last = 0;
        for (number, block) in (0u32..).zip(blocks.iter()) {
            let file = block.file - origin;
            let end = file + block.len;
            let reach = end.saturating_sub(window_bytes);
            let number_min = (number + 1).saturating_sub(VECTOR_BLOCKS_MAX as u32);
            if !windows.is_reached(reach, 0) || VECTORS && !vectors.is_reached(reach, number_min) {
                return false;
            }
            // Selections rather than branches: which way they go is anybody's guess.
            let ns = before + each.ns(block.len, file - last);
            last = file;
            let mut choice = Best { ns, start: number, method: each.method };
            let start = Start { ns: before - (window.start(file) + window_sum), file, number };
            window_sum += window.each(block.len);
            let ns = windows.ns + (window.fixed + window.end(end) + window_sum);
            choice = choice.or(Best { ns, start: windows.number, method: Method::Window });
            windows = windows.or(start);
            if VECTORS {
                let start = Start { ns: before - (vector.start(file) + vector_sum), file, number };
                vector_sum += vector.each(block.len);
                let ns = vectors.ns + (vector.fixed + vector.end(end) + vector_sum);
                choice = choice.or(Best { ns, start: vectors.number, method: Method::Vector });
                vectors = vectors.or(start);
            }
            before = choice.ns;
            best.push(choice);
        }
        true
    }

    /// The dynamic program itself, with or without groups of either kind.
    fn fill<const WINDOWS: bool, const VECTORS: bool>(
        &mut self,
        each: Single<'_>,
        window: Linear,
        vector: Linear,
        window_bytes: u64,
    ) {
        let Self { blocks, best, windows, vectors, .. } = self;
        let origin = blocks.first().map_or(0, |block| block.file);
        windows.clear();
        vectors.clear();
        best.clear();
        let mut before = 0.0;
        best.push(Best { ns: before, start: 0, method: each.method });
        let (mut window_sum, mut vector_sum) = (0.0, 0.0);
        let mut last = 0;
        for (number, block) in (0u32..).zip(blocks.iter()) {
            let file = block.file - origin;
            let end = file + block.len;
            let reach = end.saturating_sub(window_bytes);
            let ns = before + each.ns(block.len, file - last);
            last = file;
            let mut choice = Best { ns, start: number, method: each.method };
            // A group of one is what `choice` is already: a block is no start for itself.
            if WINDOWS {
                let ns = before - (window.start(file) + window_sum);
                window_sum += window.each(block.len);
                let start = windows.best(reach, 0);
                let group_ns = start.ns + (window.fixed + window.end(end) + window_sum);
                windows.push(Start { ns, file, number });
                let method = Method::Window;
                choice = choice.or(Best { ns: group_ns, start: start.number, method });
            }
            if VECTORS {
                let ns = before - (vector.start(file) + vector_sum);
                vector_sum += vector.each(block.len);
                let number_min = (number + 1).saturating_sub(VECTOR_BLOCKS_MAX as u32);
                let start = vectors.best(reach, number_min);
                let group_ns = start.ns + (vector.fixed + vector.end(end) + vector_sum);
                vectors.push(Start { ns, file, number });
                let method = Method::Vector;
                choice = choice.or(Best { ns: group_ns, start: start.number, method });
            }
            before = choice.ns;
            best.push(choice);
        }
    }

    /// Follows the choices back from the end. With `more` blocks to come, the last group is left
    /// for the next row unless it is the only one.
    fn collect(&self, more: bool) -> Row {
        let mut groups: Vec<Group> = Vec::new();
        let mut cost = Cost::default();
        let mut end = self.blocks.len();
        if more {
            let start = self.best[end].start as usize;
            if start > 0 {
                end = start;
            }
        }
        while end > 0 {
            let Best { ns, start, method } = self.best[end];
            let start = start as usize;
            *cost.of_mut(method) += ns - self.best[start].ns;
            let (first, last) = (&self.blocks[start], &self.blocks[end - 1]);
            let data: Range<u64> = first.data..last.data + last.len;
            let file = first.file..last.file + last.len;
            match groups.last_mut() {
                // Single blocks in a row are one group.
                Some(next)
                    if method == next.method && matches!(method, Method::Each | Method::Mapped) =>
                {
                    next.data.start = data.start;
                    next.file.start = file.start;
                }
                _ => groups.push(Group { data, file, method }),
            }
            end = start;
        }
        groups.reverse();
        Row { groups, cost, first_ns: 0.0, credit_ns: 0.0 }
    }
}

#[cfg(test)]
mod tests;
