//! What accesses cost while the data is at hand: calls, pages, bytes, copies, places in memory, locks;
//! and whole accesses.

use std::hint::black_box;
use std::io::IoSliceMut;

use sieve::model::{CopyCost, MAP_PART_BYTES, RequestCost, Sample};
use sieve::{Access, Profile, Run, copy};
use transfer::{LockKind, Piece};

use super::{
    ACCESS_BYTES_MAX, FitQuality, GROUP_SECONDS_MAX, GROUP_TURNS, MEMORY_BYTES, TURN_NS, TURNS,
    Tuner,
};
use crate::bench::Clock;
use crate::bench::results::median;
use crate::error::{Error, Result};
use crate::fit::{self, Observation};

impl Tuner<'_, '_> {
    /// What calls, pages and bytes cost while the data is at hand.
    pub(super) fn requests(
        &mut self,
        access: Access,
        name: &'static str,
    ) -> Result<Option<RequestCost>> {
        const PAGE: u64 = 4096;
        // Where in its page an access begins, and its length: each page count with two lengths.
        let shapes: [(u64, usize); 14] = [
            (64, 1),
            (64, 64),
            (4095, 2),
            (3072, 1024),
            (0, 4096),
            (2048, 4096),
            (0, 8192),
            (1, 8192),
            (0, 16_384),
            (2048, 16_384),
            (0, 65_536),
            (100, 100_000),
            (0, 262_144),
            (0, ACCESS_BYTES_MAX),
        ];
        let pages_of = |(within, len): (u64, usize)| (within + len as u64).div_ceil(PAGE);
        let bytes = self.place.bytes();
        let call = |shape: (u64, usize)| {
            move |tuner: &mut Self, number: u64| {
                let (within, len) = shape;
                // Two pages of hole: each access meets pages that the last one did not.
                let stride = (pages_of(shape) + 2) * PAGE;
                let room = (bytes - 2 * ACCESS_BYTES_MAX as u64) / stride;
                tuner.access(access, number % room * stride + within, len)
            }
        };
        let mut counts = Vec::with_capacity(shapes.len());
        for shape in shapes {
            counts.push(self.calls_for(call(shape))?);
        }
        // All shapes in turn, so that a busy moment of the machine meets all of them.
        let mut numbers = vec![0; shapes.len()];
        let mut times = vec![Vec::with_capacity(TURNS); shapes.len()];
        for _ in 0..TURNS {
            for (index, shape) in shapes.into_iter().enumerate() {
                let time = self.turn(counts[index], &mut numbers[index], &mut call(shape))?;
                times[index].push(time);
            }
        }
        let mut observations = Vec::with_capacity(shapes.len());
        for (shape, times) in shapes.into_iter().zip(times) {
            let amounts = [1.0, pages_of(shape) as f64, shape.1 as f64];
            observations.push(Observation { amounts, time: self.quartile(times) });
        }
        let Some(found) = fit::fit(&observations) else { return Ok(None) };
        self.note(name, found.error, observations.len());
        let [call_ns, page_ns, byte_ns] = found.costs;
        Ok(Some(RequestCost { call_ns, page_ns, byte_ns }))
    }

    /// What copying out of a window costs.
    pub(super) fn copies(&mut self, known: CopyCost) -> CopyCost {
        let mut window = vec![1_u8; 16 << 20];
        let mut out = vec![1_u8; MEMORY_BYTES];
        let mut copy_ns = |tuner: &mut Self, window_bytes: usize, len: u64, stride: u64| {
            let run = Run { file: 0, len, stride, count: (window_bytes as u64 / stride).max(1) };
            let turns = (TURN_NS / (window_bytes as f64 * 0.2)).ceil() as usize;
            let time = tuner.time(turns, |_, number| {
                // As a read does: another content each time.
                window[0] = number as u8;
                // The data goes to a program's memory, which is another each time.
                let data = run.data() as usize;
                let start = number as usize % (MEMORY_BYTES / data) * data;
                copy::scatter(&run, &window[..window_bytes], 0, &mut out[start..start + data]);
                black_box(&mut out);
                Ok(())
            });
            (time.unwrap_or(f64::NAN), run)
        };
        let mut small = Vec::new();
        for (len, stride) in [(8, 64), (8, 16), (64, 128), (64, 96), (512, 1024), (4096, 8192)] {
            let (time, run) = copy_ns(self, 128 << 10, len, stride);
            small.push(Observation { amounts: [run.count as f64, run.data() as f64], time });
        }
        let Some(found) = fit::fit(&small) else { return known };
        let [block_ns, byte_ns] = found.costs;
        let sizes: Vec<usize> = (16..=24).map(|log| 1 << log).collect();
        // Again and again from the smallest to the largest, so that a busy moment makes no step.
        let mut levels = vec![f64::INFINITY; sizes.len()];
        for _ in 0..3 {
            for (level, bytes) in levels.iter_mut().zip(&sizes) {
                let (time, run) = copy_ns(self, *bytes, 4096, 4160);
                *level = level.min(time / run.data() as f64);
            }
        }
        self.fits.push(FitQuality {
            parameters: "copy",
            error: found.error,
            observations: small.len(),
        });
        let near = fit::step(&levels);
        let far = &levels[near..];
        let far_byte_ns =
            if far.is_empty() { byte_ns } else { far.iter().sum::<f64>() / far.len() as f64 };
        // A window shares the cache with the pages of the file that it is copied from or to.
        let found = sizes.get(near.saturating_sub(1)).map(|size| *size as u64 / 2);
        let cache_bytes = found.unwrap_or(known.cache_bytes);
        CopyCost { block_ns, byte_ns, far_byte_ns: far_byte_ns.max(byte_ns), cache_bytes }
    }

    /// What was measured call by call, corrected by accesses as they are made: groups of blocks,
    /// by each method. There, calls follow each other and share what the processor caches.
    pub(super) fn groups(&mut self, profile: &Profile, drops: bool) -> Result<Profile> {
        let (place, bytes) = (self.place, self.place.bytes());
        let mut samples = Vec::new();
        let failed =
            |error: transfer::Error| Error::Lane { lane: "tune".into(), what: error.to_string() };
        for turn in 0..GROUP_TURNS {
            self.step("whole accesses", 0.93 + 0.01 * turn as f64)?;
            self.warm_up()?;
            let bench = transfer::tune::Bench::new(place.target(), bytes, GROUP_SECONDS_MAX);
            // Dropping the cache takes its time: that is done once.
            let mut forget = || drop(place.drop_cache());
            let measured = if drops && turn == 0 {
                bench.writes().cold(profile.device.in_flight_max, &mut forget).samples()
            } else {
                bench.writes().samples()
            };
            samples.extend(measured.map_err(failed)?);
        }
        let fitted = profile.fitted(&samples);
        let share = |sample: &Sample| (sample.predicted_ns(&fitted) / sample.ns - 1.0).abs();
        let error = median(samples.iter().map(share)).unwrap_or(0.0);
        self.note("whole accesses", error, samples.len());
        Ok(fitted)
    }

    /// What each place in memory costs that a vectored read names.
    pub(super) fn vectors(&mut self, profile: &Profile) -> Result<Option<f64>> {
        if !self.place.target().is_vectored() {
            return Ok(None);
        }
        let mut observations = Vec::new();
        for (entries, len) in [(16_usize, 64_usize), (64, 64), (256, 16), (512, 64), (1024, 32)] {
            let bytes = entries * len;
            let stride = (bytes as u64).next_multiple_of(4096) + 8192;
            let room = (self.place.bytes() - 2 * ACCESS_BYTES_MAX as u64) / stride;
            let call = |tuner: &mut Self, number: u64| {
                let part = tuner.memory(bytes);
                let mut memory = std::mem::take(&mut tuner.buffer);
                let mut places: Vec<IoSliceMut<'_>> =
                    memory[part.clone()].chunks_mut(len).map(IoSliceMut::new).collect();
                let read =
                    tuner.place.target().read_vectored_at(number % room * stride, &mut places);
                tuner.buffer = memory;
                match read {
                    Ok(count) if count == bytes => Ok(()),
                    Ok(_) => {
                        Err(Error::Lane { lane: "tune".into(), what: "short vectored read".into() })
                    }
                    Err(errno) => Err(Error::Lane { lane: "tune".into(), what: errno.to_string() }),
                }
            };
            let count = self.calls_for(call)?;
            let time = self.time(count, call)?;
            let plain = profile.read.call_ns
                + profile.read.page_ns * bytes.div_ceil(4096) as f64
                + profile.read.byte_ns * bytes as f64;
            if time > plain {
                observations.push(Observation { amounts: [entries as f64], time: time - plain });
            }
        }
        let Some(found) = fit::fit(&observations) else { return Ok(None) };
        self.note("vectored reads", found.error, observations.len());
        Ok(Some(found.costs[0]))
    }

    /// What touching a part of a mapping for the first time costs; none where there is no mapping.
    pub(super) fn faults(&mut self) -> Result<Option<f64>> {
        const PARTS: u64 = 32;
        let target = self.place.target();
        let mut times = Vec::new();
        let mut out = vec![0; PARTS as usize];
        for turn in 0..TURNS as u64 {
            let (start, len) = (turn * PARTS * MAP_PART_BYTES, PARTS * MAP_PART_BYTES);
            let known = target.mapped(start..start + len, Access::Read);
            if known.is_none_or(|mapped| mapped.fresh < PARTS) {
                break;
            }
            let offsets = (0..PARTS).map(|part| start + part * MAP_PART_BYTES);
            let pieces: Vec<_> = offsets.map(|offset| Piece { offset, len: 1 }).collect();
            let mut pass = || {
                let began_s = Clock::Processor.now_s();
                let done = target.read_mapped(&pieces, &mut out);
                (done == Ok(pieces.len())).then(|| (Clock::Processor.now_s() - began_s) * 1e9)
            };
            let Some((first, again)) = pass().zip(pass()) else { return Ok(None) };
            times.push((first - again).max(0.0) / PARTS as f64);
        }
        Ok((!times.is_empty()).then(|| self.quartile(times)))
    }

    /// What a lock and its release cost; none where there are no locks.
    pub(super) fn locks(&mut self) -> Result<Option<f64>> {
        let range = |number: u64| number % 64 * 65_536..number % 64 * 65_536 + 65_536;
        if self.place.target().lock(range(0), LockKind::Exclusive).is_err() {
            self.warnings.push("this place has no locks".to_owned());
            return Ok(None);
        }
        self.place.target().unlock(range(0));
        let call = |tuner: &mut Self, number: u64| {
            let target = tuner.place.target();
            let locked = target.lock(range(number), LockKind::Exclusive);
            locked.map_err(|errno| Error::Lane { lane: "tune".into(), what: errno.to_string() })?;
            target.unlock(range(number));
            Ok(())
        };
        let count = self.calls_for(call)?;
        self.time(count, call).map(Some)
    }
}
