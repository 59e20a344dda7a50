//! Measuring what accesses cost at a place, and fitting the cost model to it.
//!
//! 1. A designed set of reads and writes: sizes from a byte to a megabyte, on one page and across
//!    two, so that the cost of a call, of a page and of a byte can be told apart.
//! 2. Copies out of windows of many sizes, vectored reads of many places, locks.
//! 3. Reads after the cache was dropped, alone and several at a time: what is behind the cache.
//! 4. Whole accesses, by each method: they correct what calls by themselves said.
//! 5. Each group is fitted by itself ([`crate::fit`]). Of every figure the lower quartile of several
//!    turns is taken, as other programs only ever make a turn longer.
//!
//! A service has no cache of ours in front of it: there, all reads are of the third kind.

use std::hint::black_box;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use serde::Serialize;
use sieve::model::{CopyCost, Device, RequestCost, Sample};
use sieve::{Access, Profile, Run, copy};
use transfer::{LocalFile, LockKind, ReadRequest, Target, read_full, write_full};

use crate::bench::local::Scratch;
use crate::bench::results::median;
use crate::error::{Error, Result};
use crate::fit::{self, Observation};
use crate::pattern::Random;

/// Turns of each figure.
const TURNS: usize = 25;

/// How long one turn should take at least, in nanoseconds: long beside the clock's resolution and
/// short beside a time slice.
const TURN_NS: f64 = 150_000.0;

/// The largest single access.
const ACCESS_BYTES_MAX: usize = 1 << 20;

/// The memory that accesses read into and write from, in bytes: more than the processor caches.
const MEMORY_BYTES: usize = 32 << 20;

/// How often whole accesses are measured, and how long that may take at most each time.
const GROUP_TURNS: usize = 5;
const GROUP_SECONDS_MAX: Duration = Duration::from_secs(3);

/// A fit that leaves more than this share unexplained is told of.
const ERROR_MAX: f64 = 0.25;

/// Turns that spread by more than this share between their quartiles are told of.
const SPREAD_MAX: f64 = 0.4;

/// A file to measure on.
pub trait Place {
    /// The file, at least [`FILE_BYTES_MIN`] long, all of it written.
    fn target(&self) -> &dyn Target;

    /// Its size.
    fn bytes(&self) -> u64;

    /// Takes it out of the page cache and answers whether it is out. None when there is no cache
    /// before it that could be dropped, as with a service.
    ///
    /// # Errors
    /// When the file refuses.
    fn drop_cache(&self) -> Result<Option<bool>>;
}

/// A local scratch file to measure on.
#[derive(Debug)]
pub struct LocalPlace<'a> {
    scratch: &'a Scratch,
    file: LocalFile<'a>,
}

impl<'a> LocalPlace<'a> {
    /// On this file.
    #[must_use]
    pub fn new(scratch: &'a Scratch) -> Self {
        Self { scratch, file: LocalFile::new(scratch.file().as_fd()) }
    }
}

impl Place for LocalPlace<'_> {
    fn target(&self) -> &dyn Target {
        &self.file
    }

    fn bytes(&self) -> u64 {
        self.scratch.bytes()
    }

    fn drop_cache(&self) -> Result<Option<bool>> {
        self.scratch.drop_cache().map(Some)
    }
}

/// The smallest file that can be measured on.
pub const FILE_BYTES_MIN: u64 = 16 << 20;

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The parameters.
    pub profile: Profile,
    /// What makes them doubtful, in sentences.
    pub warnings: Vec<String>,
    /// How well each group of them explains what was measured.
    pub fits: Vec<FitQuality>,
}

/// How well parameters explain what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitQuality {
    /// Which parameters.
    pub parameters: &'static str,
    /// By which share measured times differ from explained ones.
    pub error: f64,
    /// How many times there are.
    pub observations: usize,
}

/// A step of the tuning, for whoever tells people. Answers whether to go on.
pub type Tell<'a> = &'a mut dyn FnMut(&'static str, f64) -> bool;

struct Tuner<'a, 'b> {
    place: &'a dyn Place,
    tell: Tell<'b>,
    /// Memory that accesses go through from end to end, as a program's own does: what is measured
    /// is not to be at hand in the processor's cache.
    buffer: Vec<u8>,
    at: usize,
    random: Random,
    warnings: Vec<String>,
    fits: Vec<FitQuality>,
    spread_worst: f64,
}

/// Measures a place. `tell` is called with each step's name and how much of all is done.
///
/// # Errors
/// [`Error::Lane`] when an access fails, [`Error::Interrupted`] when `tell` says so.
pub fn tune(place: &dyn Place, tell: Tell<'_>) -> Result<Tuned> {
    let mut tuner = Tuner {
        place,
        tell,
        buffer: vec![0x5a; MEMORY_BYTES],
        at: 0,
        random: Random::new(place.bytes()),
        warnings: Vec::new(),
        fits: Vec::new(),
        spread_worst: 0.0,
    };
    tuner.all()
}

impl Tuner<'_, '_> {
    fn all(&mut self) -> Result<Tuned> {
        let mut profile = Profile::default();
        self.step("copies", 0.0)?;
        profile.copy = self.copies(profile.copy);
        self.step("whether there is a cache", 0.1)?;
        match self.place.drop_cache()? {
            None => self.service(&mut profile)?,
            Some(drops) => self.local(&mut profile, drops)?,
        }
        if self.spread_worst > SPREAD_MAX {
            self.warnings.push(format!(
                "the machine was busy: the same access took times that differ by {:.0} % between \
                 quartiles; measure again when it is idle",
                self.spread_worst * 100.0
            ));
        }
        profile.check()?;
        let (warnings, fits) = (std::mem::take(&mut self.warnings), std::mem::take(&mut self.fits));
        Ok(Tuned { profile, warnings, fits })
    }

    fn step(&mut self, what: &'static str, share: f64) -> Result<()> {
        if (self.tell)(what, share) { Ok(()) } else { Err(Error::Interrupted) }
    }

    fn local(&mut self, profile: &mut Profile, drops: bool) -> Result<()> {
        self.step("reads", 0.15)?;
        self.warm_up()?;
        if let Some(read) = self.requests(Access::Read, "read")? {
            profile.read = read;
        }
        self.step("writes", 0.4)?;
        if let Some(write) = self.requests(Access::Write, "write")? {
            profile.write = write;
        }
        self.step("vectored reads", 0.65)?;
        if let Some(entry_ns) = self.vectors(profile)? {
            profile.vector_entry_ns = entry_ns;
        }
        self.step("locks", 0.7)?;
        if let Some(lock_ns) = self.locks()? {
            profile.lock_ns = lock_ns;
        }
        if drops {
            self.step("reads behind the cache", 0.75)?;
            self.device(profile)?;
        } else {
            self.warnings.push(
                "this file system keeps its files in memory: what is behind the cache was not \
                 measured"
                    .to_owned(),
            );
        }
        *profile = self.groups(profile, drops)?;
        Ok(())
    }

    fn service(&mut self, profile: &mut Profile) -> Result<()> {
        // Whatever it costs is told apart only into what each request and what each byte costs.
        let request = RequestCost { call_ns: 0.0, page_ns: 0.0, byte_ns: 0.0 };
        (profile.read, profile.write) = (request, request);
        profile.device.write_behind = false;
        // A service that reads ahead does so behind the route, which is what is measured here.
        (profile.device.unit_bytes, profile.device.read_ahead_bytes) = (1, 0);
        self.step("requests", 0.3)?;
        self.device(profile)?;
        self.step("locks", 0.95)?;
        if let Some(lock_ns) = self.locks()? {
            profile.lock_ns = lock_ns;
        }
        Ok(())
    }

    /// The part of the memory whose turn it is.
    fn memory(&mut self, len: usize) -> Range<usize> {
        let start = if self.at + len > self.buffer.len() { 0 } else { self.at };
        self.at = start + len;
        start..self.at
    }

    /// Brings all of the file into the cache.
    fn warm_up(&mut self) -> Result<()> {
        for offset in (0..self.place.bytes()).step_by(ACCESS_BYTES_MAX) {
            self.access(Access::Read, offset, ACCESS_BYTES_MAX)?;
        }
        Ok(())
    }

    /// One access of `len` bytes.
    fn access(&mut self, access: Access, offset: u64, len: usize) -> Result<()> {
        let len = len.min(self.place.bytes().saturating_sub(offset) as usize);
        let target = self.place.target();
        let memory = self.memory(len);
        let memory = &mut self.buffer[memory];
        let (done, errno) = match access {
            Access::Read => read_full(target, offset, memory),
            Access::Write => write_full(target, offset, memory),
        };
        if done == len {
            return Ok(());
        }
        let why = errno.map_or("it ends".to_owned(), |errno| errno.to_string());
        let what =
            format!("{} of {len} bytes at {offset}: {why}", crate::explain::access_word(access));
        Err(Error::Lane { lane: "tune".into(), what })
    }

    /// One turn of `count` calls, in nanoseconds a call; `number` counts calls over all turns.
    fn turn(
        &mut self,
        count: usize,
        number: &mut u64,
        call: &mut dyn FnMut(&mut Self, u64) -> Result<()>,
    ) -> Result<f64> {
        let start = Instant::now();
        for _ in 0..count {
            call(self, *number)?;
            *number += 1;
        }
        Ok(start.elapsed().as_nanos() as f64 / count as f64)
    }

    /// The lower quartile of several turns.
    fn quartile(&mut self, mut times: Vec<f64>) -> f64 {
        times.sort_by(f64::total_cmp);
        let (low, high) = (times[times.len() / 4], times[3 * times.len() / 4]);
        self.spread_worst = self.spread_worst.max((high - low) / low.max(1.0));
        low
    }

    /// The lower quartile of several turns of `count` calls each, in nanoseconds a call.
    fn time(
        &mut self,
        count: usize,
        mut call: impl FnMut(&mut Self, u64) -> Result<()>,
    ) -> Result<f64> {
        let mut number = 0;
        let mut times = Vec::with_capacity(TURNS);
        for _ in 0..TURNS {
            times.push(self.turn(count, &mut number, &mut call)?);
        }
        Ok(self.quartile(times))
    }

    /// How many calls make a turn, from what one takes.
    fn calls_for(&mut self, mut call: impl FnMut(&mut Self, u64) -> Result<()>) -> Result<usize> {
        call(self, 0)?;
        let start = Instant::now();
        for number in 1..4 {
            call(self, number)?;
        }
        let one_ns = start.elapsed().as_nanos() as f64 / 3.0;
        Ok((TURN_NS / one_ns.max(50.0)).ceil() as usize)
    }

    fn note(&mut self, parameters: &'static str, error: f64, observations: usize) {
        self.fits.push(FitQuality { parameters, error, observations });
        if error > ERROR_MAX {
            self.warnings.push(format!(
                "the cost of {parameters} is uncertain: times differ from the fit by {:.0} %",
                error * 100.0
            ));
        }
    }

    /// What calls, pages and bytes cost while the data is at hand.
    fn requests(&mut self, access: Access, name: &'static str) -> Result<Option<RequestCost>> {
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
    fn copies(&mut self, known: CopyCost) -> CopyCost {
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
    fn groups(&mut self, profile: &Profile, drops: bool) -> Result<Profile> {
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
    fn vectors(&mut self, profile: &Profile) -> Result<Option<f64>> {
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

    /// What a lock and its release cost; none where there are no locks.
    fn locks(&mut self) -> Result<Option<f64>> {
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

    /// A place in the file that no other access of this turn is near to.
    fn somewhere(&mut self, len: usize) -> u64 {
        let room = (self.place.bytes() - len as u64) / 4096;
        self.random.below(room.max(1)) * 4096
    }

    /// What is behind the cache: latency, bandwidth, and what several at a time bring.
    fn device(&mut self, profile: &mut Profile) -> Result<()> {
        let page = 4096.0;
        let warm_ns = |bytes: f64, profile: &Profile| {
            let RequestCost { call_ns, page_ns, byte_ns } = profile.read;
            call_ns + page_ns * (bytes / page).ceil() + byte_ns * bytes
        };
        let mut observations = Vec::new();
        for (number, len) in
            [4096_usize, 16_384, 65_536, 262_144, ACCESS_BYTES_MAX].into_iter().enumerate()
        {
            self.step("reads behind the cache", 0.75 + 0.03 * number as f64)?;
            self.place.drop_cache()?;
            let mut times = Vec::new();
            for _ in 0..16 {
                let offset = self.somewhere(len);
                let start = Instant::now();
                self.access(Access::Read, offset, len)?;
                times.push(start.elapsed().as_nanos() as f64);
            }
            times.sort_by(f64::total_cmp);
            // Some may have been read ahead by chance; the middle tells.
            let time = times[times.len() / 2] - warm_ns(len as f64, profile);
            observations.push(Observation { amounts: [1.0, len as f64], time });
        }
        let Some(found) = fit::fit(&observations) else {
            self.warnings.push(
                "reads behind the cache were as fast as others: kept as they were".to_owned(),
            );
            return Ok(());
        };
        self.note("device", found.error, observations.len());
        let [latency_ns, byte_ns] = found.costs;
        profile.device = Device { latency_ns, byte_ns, ..profile.device };
        self.step("several reads at a time", 0.92)?;
        let (alone_ns, many_ns) = self.together()?;
        if profile.device.write_behind {
            // The model divides the latency by it: what is found is what it brings.
            profile.device.in_flight_max = ((alone_ns / many_ns).round() as u32).clamp(1, 64);
        } else {
            // Requests to a service share the way, but each of them is work at both ends.
            let in_flight_max = 64;
            let shared_ns = profile.device.latency_ns / f64::from(in_flight_max);
            let call_ns = (many_ns - shared_ns).max(1.0);
            profile.device.in_flight_max = in_flight_max;
            profile.device.latency_ns = (profile.device.latency_ns - call_ns).max(1.0);
            (profile.read.call_ns, profile.write.call_ns) = (call_ns, call_ns);
        }
        Ok(())
    }

    /// What a small read takes alone, and what it takes at least with others under way.
    fn together(&mut self) -> Result<(f64, f64)> {
        let mut alone_ns = f64::INFINITY;
        let mut many_ns = f64::INFINITY;
        for count in [1_usize, 4, 16, 32] {
            self.place.drop_cache()?;
            let mut times = Vec::new();
            for _ in 0..6 {
                let mut memory = std::mem::take(&mut self.buffer);
                let offsets: Vec<u64> = (0..count).map(|_| self.somewhere(4096)).collect();
                let mut reads: Vec<ReadRequest<'_>> = memory
                    .chunks_mut(4096)
                    .zip(offsets)
                    .map(|(buf, offset)| ReadRequest { offset, buf, done: 0, errno: None })
                    .collect();
                let target = self.place.target();
                let start = Instant::now();
                for read in reads.iter().filter(|_| target.announces()) {
                    target.announce(read.offset..read.offset + read.buf.len() as u64);
                }
                target.read_batch(&mut reads);
                times.push(start.elapsed().as_nanos() as f64 / count as f64);
                drop(reads);
                self.buffer = memory;
            }
            times.sort_by(f64::total_cmp);
            let one_ns = times[times.len() / 2];
            if count == 1 {
                alone_ns = one_ns;
            }
            many_ns = many_ns.min(one_ns);
        }
        Ok((alone_ns, many_ns.max(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::cell::Cell as Counter;

    /// Takes no time that could be relied on, but answers.
    struct Memory {
        bytes: u64,
        calls: Counter<u64>,
        fails: bool,
        has_cache: bool,
    }

    impl Target for Memory {
        fn read_at(&self, _: u64, buf: &mut [u8]) -> std::result::Result<usize, Errno> {
            self.calls.set(self.calls.get() + 1);
            if self.fails { Err(Errno::IO) } else { Ok(buf.len()) }
        }

        fn write_at(&self, _: u64, data: &[u8]) -> std::result::Result<usize, Errno> {
            Ok(data.len())
        }

        fn lock(&self, _: Range<u64>, _: LockKind) -> std::result::Result<(), Errno> {
            Ok(())
        }
    }

    impl Place for Memory {
        fn target(&self) -> &dyn Target {
            self
        }

        fn bytes(&self) -> u64 {
            self.bytes
        }

        fn drop_cache(&self) -> Result<Option<bool>> {
            Ok(self.has_cache.then_some(true))
        }
    }

    fn memory() -> Memory {
        Memory { bytes: FILE_BYTES_MIN, calls: Counter::new(0), fails: false, has_cache: true }
    }

    #[test]
    fn every_kind_of_place_gives_a_profile() {
        for has_cache in [true, false] {
            let place = Memory { has_cache, ..memory() };
            let mut last = -1.0;
            let tuned = tune(&place, &mut |_, share| {
                assert!(share >= last);
                last = share;
                true
            })
            .unwrap();
            tuned.profile.check().unwrap();
            assert_eq!(tuned.profile.device.write_behind, has_cache);
            assert!(tuned.fits.iter().any(|fit| fit.parameters == "copy"));
        }
    }

    #[test]
    fn it_ends_when_it_shall_or_when_the_place_fails() {
        assert!(matches!(tune(&memory(), &mut |_, _| false), Err(Error::Interrupted)));
        let broken = Memory { fails: true, ..memory() };
        let error = tune(&broken, &mut |_, _| true).unwrap_err();
        assert!(error.to_string().contains("read of"), "{error}");
    }
}
