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

mod at_hand;
mod device;

use std::ops::Range;
use std::time::{Duration, Instant};

use serde::Serialize;
use sieve::model::RequestCost;
use sieve::{Access, Profile};
use transfer::{LocalFile, Target, read_full, write_full};

use crate::bench::Clock;
use crate::bench::local::Scratch;
use crate::error::{Error, Result};
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
        Self { scratch, file: scratch.target() }
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
    /// What is at hand waits for nothing: there, the time in which other programs have the
    /// processor does not count.
    clock: Clock,
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
        clock: Clock::Processor,
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
        self.step("mappings", 0.73)?;
        if let Some(fault_ns) = self.faults()? {
            profile.map.fault_ns = fault_ns;
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
        self.clock = Clock::Wall;
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
        let start_s = self.clock.now_s();
        for _ in 0..count {
            call(self, *number)?;
            *number += 1;
        }
        Ok((self.clock.now_s() - start_s) * 1e9 / count as f64)
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::cell::Cell as Counter;
    use transfer::LockKind;

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
