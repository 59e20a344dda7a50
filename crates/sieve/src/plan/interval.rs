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

use std::collections::VecDeque;
use std::ops::Range;

use super::{Cost, Request, VECTOR_BLOCKS_MAX};
use crate::Result;
use crate::group::{Group, Method};
use crate::model::{Extents, Profile, Warmth};
use crate::view::{Block, FileView};

/// How many blocks are planned together. What is cut between two such rows may be cut badly, so
/// the last group of each is planned again with the next.
const ROW_BLOCKS: usize = 4096;

/// The starts from which a group may reach the block at hand, cheapest first.
#[derive(Debug, Default)]
struct Starts {
    queue: VecDeque<(f64, u32)>,
}

impl Starts {
    /// A start that costs `ns`, besides what depends on the end.
    fn push(&mut self, ns: f64, start: u32) {
        while self.queue.back().is_some_and(|(other, _)| *other >= ns) {
            self.queue.pop_back();
        }
        self.queue.push_back((ns, start));
    }

    /// The cheapest start of those for which `reaches` holds. Starts only ever fall out of reach.
    fn best(&mut self, reaches: impl Fn(u32) -> bool) -> Option<(f64, u32)> {
        while let Some((_, start)) = self.queue.front() {
            if reaches(*start) {
                return self.queue.front().copied();
            }
            self.queue.pop_front();
        }
        None
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

/// What a group through one buffer costs, taken apart: `fixed` once, `slope` for each byte that it
/// spans, and for each block and byte of data.
#[derive(Debug, Clone, Copy)]
struct Linear {
    fixed: f64,
    slope: f64,
    block: f64,
    byte: f64,
    /// For each stripe that it touches, and the size of one.
    stripe: f64,
    stripe_bytes: u64,
}

impl Linear {
    /// Takes a cost apart that is linear in each of the three, by asking for four groups.
    fn of(cost: impl Fn(&Extents) -> f64, stripe_bytes: u64, stripe: f64) -> Self {
        // Far from 0, where the model's lower limits bend it.
        let base = Extents { file: 65536.0, data: 1024.0, blocks: 16.0 };
        let at = cost(&base);
        let slope = (cost(&Extents { file: base.file * 2.0, ..base }) - at) / base.file;
        let byte = (cost(&Extents { data: base.data * 2.0, ..base }) - at) / base.data;
        let block = (cost(&Extents { blocks: base.blocks * 2.0, ..base }) - at) / base.blocks;
        let fixed = at - slope * base.file - byte * base.data - block * base.blocks;
        Self { fixed, slope, block, byte, stripe, stripe_bytes }
    }

    /// What depends on where a group ends.
    fn end(&self, file: u64) -> f64 {
        let stripes = if self.stripe_bytes > 0 { file.div_ceil(self.stripe_bytes) } else { 0 };
        self.slope * file as f64 + self.stripe * stripes as f64
    }

    /// What depends on where it starts, to be taken off.
    fn start(&self, file: u64) -> f64 {
        let stripes = file.checked_div(self.stripe_bytes).unwrap_or(0);
        self.slope * file as f64 + self.stripe * stripes as f64
    }

    fn each(&self, block: &Block) -> f64 {
        self.block + self.byte * block.len as f64
    }
}

/// Plans rows of blocks; keeps its tables from one row to the next.
#[derive(Debug, Default)]
pub struct IntervalPlanner {
    blocks: Vec<Block>,
    best: Vec<Best>,
    windows: Starts,
    vectors: Starts,
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
        let window_bytes = request.buffer_bytes / u64::from(in_flight.max(1)).min(8);
        let origin = self.blocks.first().map_or(0, |block| block.file);
        let device = &profile.device;
        // A request to a further server costs about what one to the first does, though they wait
        // for each other's answers together.
        let (stripe_bytes, stripe) = match request.warmth {
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
            Linear::of(|size| profile.window_ns(size, window_bytes, &now), stripe_bytes, stripe);
        let window = scaled(window, weigh(Method::Window));
        let vector = Linear::of(|size| profile.vector_ns(size, &now), stripe_bytes, stripe);
        let vector = scaled(vector, weigh(Method::Vector));
        let each_by = weigh(Method::Each);
        let each_fixed = profile.each_ns(1.0, &now);
        let each_slope = (profile.each_ns(4097.0, &now) - each_fixed) / 4096.0;
        let sieves = request.can_sieve();
        let vectors = sieves && request.vectored && in_flight == 1;

        let Self { blocks, best, windows, vectors: vector_starts } = self;
        best.clear();
        best.push(Best { ns: 0.0, start: 0, method: Method::Each });
        windows.queue.clear();
        vector_starts.queue.clear();
        let (mut window_sum, mut vector_sum) = (0.0, 0.0);
        for (number, block) in blocks.iter().enumerate() {
            let (file, end) = (block.file - origin, block.file + block.len - origin);
            let before = best[number].ns;
            let linear = each_fixed + each_slope * (block.len - 1) as f64;
            let mut choice =
                Best { ns: before + linear * each_by, start: number as u32, method: Method::Each };
            if sieves {
                // A group of one is what `choice` is already: a block is no start for itself.
                let before_window = before - window.start(file) - window_sum;
                window_sum += window.each(block);
                let reach = end.saturating_sub(window_bytes);
                let reaches = |start: u32| blocks[start as usize].file - origin >= reach;
                if let Some((ns, start)) = windows.best(reaches) {
                    let ns = ns + window.fixed + window.end(end) + window_sum;
                    if ns < choice.ns {
                        choice = Best { ns, start, method: Method::Window };
                    }
                }
                windows.push(before_window, number as u32);
                if vectors {
                    let before_vector = before - vector.start(file) - vector_sum;
                    vector_sum += vector.each(block);
                    let few = |start: u32| number as u64 - u64::from(start) < VECTOR_BLOCKS_MAX;
                    let best = vector_starts.best(|start| few(start) && reaches(start));
                    if let Some((ns, start)) = best {
                        let ns = ns + vector.fixed + vector.end(end) + vector_sum;
                        if ns < choice.ns {
                            choice = Best { ns, start, method: Method::Vector };
                        }
                    }
                    vector_starts.push(before_vector, number as u32);
                }
            }
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

/// The cost of given groups under the model that [`IntervalPlanner`] minimises, to compare plans
/// that were made in another way. `groups` are index ranges of `blocks`.
#[cfg(test)]
pub(crate) fn cost_of(
    profile: &Profile,
    request: &Request,
    blocks: &[Block],
    method: Method,
) -> Option<f64> {
    let now = request.circumstances(1);
    let (first, last) = (blocks.first()?, blocks.last()?);
    let file = last.file + last.len - first.file;
    let data: u64 = blocks.iter().map(|block| block.len).sum();
    let size = Extents { file: file as f64, data: data as f64, blocks: blocks.len() as f64 };
    match method {
        Method::Each => (blocks.len() == 1).then(|| profile.each_ns(data as f64, &now)),
        _ if !request.can_sieve() || file > request.buffer_bytes || blocks.len() < 2 => None,
        Method::Window => Some(profile.window_ns(&size, request.buffer_bytes, &now)),
        Method::Vector if !request.vectored => None,
        Method::Vector => Some(profile.vector_ns(&size, &now)),
    }
}

#[cfg(test)]
mod tests;
