//! What is behind the cache, or at the other end of a route.

use std::time::Instant;

use sieve::model::{Device, RequestCost};
use sieve::{Access, Profile};
use transfer::ReadRequest;

use super::{ACCESS_BYTES_MAX, Tuner};
use crate::error::Result;
use crate::fit::{self, Observation};

impl Tuner<'_, '_> {
    /// A place in the file that no other access of this turn is near to.
    pub(super) fn somewhere(&mut self, len: usize) -> u64 {
        let room = (self.place.bytes() - len as u64) / 4096;
        self.random.below(room.max(1)) * 4096
    }

    /// What is behind the cache: latency, bandwidth, and what several at a time bring.
    pub(super) fn device(&mut self, profile: &mut Profile) -> Result<()> {
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
    pub(super) fn together(&mut self) -> Result<(f64, f64)> {
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
