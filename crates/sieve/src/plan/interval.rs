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

use linear::{Each, Linear};

use super::{Cost, Request, VECTOR_BLOCKS_MAX};
use crate::Result;
use crate::group::{Group, Method};
use crate::model::{Profile, Warmth};
use crate::view::{Block, FileView};

/// How many blocks are planned together. What is cut between two such rows may be cut badly, so
/// the last group of each is planned again with the next.
const ROW_BLOCKS: usize = 4096;

/// For how many rows a limit that was reached is taken for granted.
const LIMITED_ROWS: u64 = 16;

/// The starts from which a group may reach the block at hand, cheapest first: a queue that only
/// ever loses its first while it grows at its end, in one piece of memory.
#[derive(Debug, Default)]
struct Starts {
    queue: Vec<Start>,
    first: usize,
}

/// A start: what a group from there costs, besides what depends on its end.
#[derive(Debug, Clone, Copy)]
struct Start {
    ns: f64,
    /// Offset in the file, from the row's first byte.
    file: u64,
    number: u32,
}

impl Start {
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
        self.queue.clear();
        self.first = 0;
    }

    /// Adds a start; those that are dearer and fall out of reach earlier are of no use any more.
    #[inline]
    fn push(&mut self, start: Start) {
        let mut len = self.queue.len();
        while len > self.first && self.queue[len - 1].ns >= start.ns {
            len -= 1;
        }
        self.queue.truncate(len);
        self.queue.push(start);
    }

    /// The cheapest start that lies at `reach` or behind it and is no earlier than `number_min`.
    /// Starts only ever fall out of reach.
    #[inline]
    fn best(&mut self, reach: u64, number_min: u32) -> Option<Start> {
        loop {
            let start = *self.queue.get(self.first)?;
            if start.file >= reach && start.number >= number_min {
                return Some(start);
            }
            self.first += 1;
        }
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
    /// a plan takes little memory however many tuples the view has. Returns the groups and their
    /// predicted cost. `weigh` corrects the prediction for each method, 1 for not at all.
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
    ) -> Result<(Vec<Group>, Cost)> {
        let mut blocks = view.blocks(request.data.start, request.data.end - request.data.start)?;
        self.blocks.clear();
        self.blocks.extend(blocks.by_ref().take(ROW_BLOCKS));
        let more = blocks.next().is_some();
        self.search(profile, request, in_flight, &weigh);
        Ok(self.collect(more))
    }

    /// Fills `best`: `best[j]` is about the first `j` blocks.
    fn search(
        &mut self,
        profile: &Profile,
        request: &Request,
        in_flight: u32,
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
        let each = Each::of(profile, &now, weigh(Method::Each));
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
        each: Each<'_>,
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
        each: Each<'_>,
        window: Linear,
        vector: Linear,
        window_bytes: u64,
    ) -> bool {
        let Self { blocks, best, .. } = self;
        let origin = blocks.first().map_or(0, |block| block.file);
        best.clear();
        best.push(Best { ns: 0.0, start: 0, method: Method::Each });
        let (mut before, mut window_sum, mut vector_sum) = (0.0, 0.0, 0.0);
        let nowhere = Start { ns: f64::INFINITY, file: u64::MAX, number: u32::MAX };
        let (mut windows, mut vectors) = (nowhere, nowhere);
        let mut last = 0;
        for (number, block) in (0u32..).zip(blocks.iter()) {
            let file = block.file - origin;
            let end = file + block.len;
            let reach = end.saturating_sub(window_bytes);
            let number_min = (number + 1).saturating_sub(VECTOR_BLOCKS_MAX as u32);
            if windows.file < reach
                || VECTORS && (vectors.file < reach || vectors.number < number_min)
            {
                return false;
            }
            // Selections rather than branches: which way they go is anybody's guess.
            let ns = before + each.ns(block.len, file - last);
            last = file;
            let mut choice = Best { ns, start: number, method: Method::Each };
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
        each: Each<'_>,
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
        best.push(Best { ns: before, start: 0, method: Method::Each });
        let (mut window_sum, mut vector_sum) = (0.0, 0.0);
        let mut last = 0;
        for (number, block) in (0u32..).zip(blocks.iter()) {
            let file = block.file - origin;
            let end = file + block.len;
            let reach = end.saturating_sub(window_bytes);
            let ns = before + each.ns(block.len, file - last);
            last = file;
            let mut choice = Best { ns, start: number, method: Method::Each };
            // A group of one is what `choice` is already: a block is no start for itself.
            if WINDOWS {
                let ns = before - (window.start(file) + window_sum);
                window_sum += window.each(block.len);
                if let Some(start) = windows.best(reach, 0) {
                    let ns = start.ns + (window.fixed + window.end(end) + window_sum);
                    if ns < choice.ns {
                        choice = Best { ns, start: start.number, method: Method::Window };
                    }
                }
                windows.push(Start { ns, file, number });
            }
            if VECTORS {
                let ns = before - (vector.start(file) + vector_sum);
                vector_sum += vector.each(block.len);
                let number_min = (number + 1).saturating_sub(VECTOR_BLOCKS_MAX as u32);
                if let Some(start) = vectors.best(reach, number_min) {
                    let ns = start.ns + (vector.fixed + vector.end(end) + vector_sum);
                    if ns < choice.ns {
                        choice = Best { ns, start: start.number, method: Method::Vector };
                    }
                }
                vectors.push(Start { ns, file, number });
            }
            before = choice.ns;
            best.push(choice);
        }
    }

    /// Follows the choices back from the end. With `more` blocks to come, the last group is left
    /// for the next row unless it is the only one.
    fn collect(&self, more: bool) -> (Vec<Group>, Cost) {
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
                Some(next) if method == Method::Each && next.method == Method::Each => {
                    next.data.start = data.start;
                    next.file.start = file.start;
                }
                _ => groups.push(Group { data, file, method }),
            }
            end = start;
        }
        groups.reverse();
        (groups, cost)
    }
}

#[cfg(test)]
mod tests;
