//! Measuring what the cost model's parameters are found from.

use std::time::{Duration, Instant};

use sieve::model::{Circumstances, Extents, Sample};
use sieve::{Access, FileView, Group, Method, Strategy, Warmth};

use crate::engine::{Clock, Locking};
use crate::error::Result;
use crate::read::Reader;
use crate::target::Target;
use crate::write::Writer;

/// Blocks and holes that tell the parameters apart, in bytes: calls, pages, bytes, entries and
/// copies weigh differently in each.
const SHAPES: [(u64, u64); 9] = [
    (8, 56),
    (8, 8184),
    (512, 512),
    (512, 20_000),
    (4096, 64),
    (4096, 12_288),
    (32_768, 32_768),
    (65_536, 512),
    (262_144, 100_000),
];

/// The largest part of the file that one measurement spans, in bytes.
const SPAN_MAX: u64 = 4 << 20;

/// Every measurement is made so often, and the fastest counts: nothing makes an access faster than
/// it is. Cold ones are made once, as the next would not be cold.
const TURNS: u32 = 3;

/// A file to measure on.
///
/// It has to exist and to be filled; what it holds is overwritten if writes are measured.
pub struct Bench<'a, T: ?Sized> {
    target: &'a T,
    file_bytes: u64,
    deadline: Instant,
    forget: Option<&'a mut dyn FnMut()>,
    writes: bool,
    depth: u32,
}

impl<'a, T: Target + ?Sized> Bench<'a, T> {
    /// Measures reads of what is at hand, on a file of `file_bytes`, for at most `budget`.
    #[must_use]
    pub fn new(target: &'a T, file_bytes: u64, budget: Duration) -> Self {
        let deadline = Instant::now() + budget;
        Self { target, file_bytes, deadline, forget: None, writes: false, depth: 1 }
    }

    /// Also writes. They change the file.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Also what is not at hand, with one request and with `depth` under way; `forget` empties the
    /// cache.
    #[must_use]
    pub fn cold(mut self, depth: u32, forget: &'a mut dyn FnMut()) -> Self {
        self.forget = Some(forget);
        self.depth = depth.max(1);
        self
    }

    /// The samples, for [`sieve::Profile::fitted`]. As many as the budget allows: the most telling
    /// first.
    ///
    /// # Errors
    /// As reading and writing through a view.
    pub fn samples(mut self) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        let mut buffer = vec![0; SPAN_MAX as usize];
        let accesses: &[Access] =
            if self.writes { &[Access::Read, Access::Write] } else { &[Access::Read] };
        let has_cache = self.target.warmth(0..self.file_bytes.min(1)) == Warmth::Warm;
        let mut series = Vec::new();
        for access in accesses {
            if has_cache {
                series.push((*access, Warmth::Warm, 1));
            }
            if self.forget.is_some() || !has_cache {
                series.push((*access, Warmth::Cold, 1));
                if self.depth > 1 && *access == Access::Read {
                    series.push((*access, Warmth::Cold, self.depth));
                }
            }
        }
        for (access, warmth, in_flight) in series {
            for (block, hole) in SHAPES {
                let mut all = strategies(hole, in_flight, self.target.is_vectored());
                let is_mapped = || self.target.mapped(0..self.file_bytes, access).is_some();
                if warmth == Warmth::Warm && is_mapped() {
                    all.push(Strategy { method: Method::Mapped, ..Strategy::each(1) });
                }
                for strategy in all {
                    if Instant::now() > self.deadline {
                        return Ok(samples);
                    }
                    let locked = access == Access::Write && block % 4096 == 0;
                    let now = Circumstances { access, warmth, in_flight, locked };
                    let sample = self.measure((block, hole), strategy, now, &mut buffer)?;
                    samples.extend(sample);
                }
            }
        }
        Ok(samples)
    }

    /// One strategy on one pattern; none when the file is too small for it.
    fn measure(
        &mut self,
        (block, hole): (u64, u64),
        strategy: Strategy,
        now: Circumstances,
        buffer: &mut [u8],
    ) -> Result<Option<Sample>> {
        let blocks = (self.file_bytes.min(SPAN_MAX) / (block + hole)).min(1000);
        if blocks < 2 {
            return Ok(None);
        }
        // Each pattern somewhere else, so that one does not warm another's pages.
        let room = self.file_bytes - blocks * (block + hole);
        let displacement = (block * 7919 + hole * 104_729) % (room + 1);
        let view = FileView::strided(displacement, block, hole)?;
        let data_len = blocks * block;
        let groups: Vec<Group> = strategy.groups(&view, 0..data_len)?.collect();
        let mut data = vec![1; data_len as usize];
        let turns = if now.warmth == Warmth::Cold { 1 } else { TURNS };
        let mut best = f64::INFINITY;
        for _ in 0..turns {
            if now.warmth == Warmth::Cold
                && let Some(forget) = &mut self.forget
            {
                forget();
            }
            let clock = match now.warmth {
                Warmth::Warm => Clock::Processor,
                Warmth::Cold => Clock::Wall,
            };
            let start_ns = clock.now_ns();
            match now.access {
                Access::Read => {
                    let mut reader = Reader::new(self.target, &view, 0, buffer, &mut data)?;
                    if now.in_flight > 1 {
                        reader.batch(&mut groups.iter().cloned(), now.in_flight)?;
                    } else {
                        groups.iter().try_for_each(|group| reader.group(group).map(|_| ()))?;
                    }
                }
                Access::Write => {
                    let locking = if now.locked { Locking::Windows } else { Locking::SingleWriter };
                    let mut writer = Writer::new(self.target, &view, 0, buffer, &data, locking)?;
                    groups.iter().try_for_each(|group| writer.group(group, now.in_flight))?;
                }
            }
            best = best.min(clock.now_ns() - start_ns);
        }
        let number = groups.len() as f64;
        let size = Extents {
            file: groups.iter().map(|group| group.file_len() as f64).sum::<f64>() / number,
            data: data_len as f64 / number,
            blocks: blocks as f64 / number,
        };
        let method = strategy.method;
        // A window that turned out to hold one block is not one.
        if groups.iter().any(|group| group.method != method) {
            return Ok(None);
        }
        let ns = best / number;
        let window_bytes = strategy.window_bytes;
        Ok(Some(Sample { method, size, window_bytes, now, ns }))
    }
}

/// What is measured on each pattern.
fn strategies(hole: u64, in_flight: u32, vectored: bool) -> Vec<Strategy> {
    let mut all = vec![Strategy::each(in_flight)];
    let methods: &[Method] =
        if vectored { &[Method::Window, Method::Vector] } else { &[Method::Window] };
    for method in methods {
        for window_bytes in [128 << 10, SPAN_MAX] {
            // Windows under way together share the buffer.
            if in_flight == 1 {
                let (method, span_max) = (*method, hole);
                all.push(Strategy { method, span_max, window_bytes, align: 0, in_flight });
            }
        }
    }
    all
}
