//! Measuring the way to a service.

use std::time::Instant;

use client::ReadPart;
use sieve::Profile;
use sieve::model::{Device, RequestCost};

use crate::ServedFile;

/// Small requests, the fastest of which counts: everything else is noise on top.
const TURNS: usize = 5;

/// How much is read to learn the bandwidth, in bytes.
const SAMPLE_BYTES: u64 = 4 << 20;

/// Files shorter than this say nothing of it.
const SAMPLE_BYTES_MIN: u64 = 256 << 10;

/// Requests sent together to learn what each of them costs beside the turn.
const BATCH: usize = 64;

/// Nanoseconds a byte where there was too little to read: 1 GB/s.
const BYTE_NS: f64 = 1.0;

/// A route has no page cache of ours: every request goes out, and every one costs both ends work.
pub(crate) fn measure(file: &ServedFile) -> client::Result<Profile> {
    let mut latency_ns = f64::INFINITY;
    let mut size = 0;
    for _ in 0..TURNS {
        let (attributes, ns) = timed(|| file.handle().attributes())?;
        size = attributes.size;
        latency_ns = latency_ns.min(ns);
    }
    let mut call_ns = latency_ns / BATCH as f64;
    let mut byte_ns = BYTE_NS;
    if size > 0 && transfer::Target::is_readable(file) {
        let mut single = [[0_u8; 1]; BATCH];
        let mut parts: Vec<_> = single.iter_mut().map(|buffer| ReadPart::new(0, buffer)).collect();
        let ((), ns) = timed(|| file.handle().read_batch(&mut parts))?;
        call_ns = (ns - latency_ns).max(1.0) / BATCH as f64;
        let len = size.min(SAMPLE_BYTES);
        if len >= SAMPLE_BYTES_MIN {
            let mut buffer = vec![0; len as usize];
            // The first time fetches it into the service's own cache.
            for _ in 0..2 {
                let mut parts = [ReadPart::new(0, &mut buffer)];
                let ((), ns) = timed(|| file.handle().read_batch(&mut parts))?;
                byte_ns = (ns - latency_ns).max(1.0) / len as f64;
            }
        }
    }
    let cost = RequestCost { call_ns, page_ns: 0.0, byte_ns: 0.0 };
    let profile = Profile {
        read: cost,
        write: cost,
        device: Device {
            latency_ns,
            byte_ns,
            in_flight_max: 128,
            unit_bytes: 1,
            read_ahead_bytes: 0,
            servers: 1,
            stripe_bytes: 0,
            write_behind: false,
        },
        // A lock and its release are a turn each.
        lock_ns: 2.0 * latency_ns,
        ..Profile::default()
    };
    Ok(profile)
}

fn timed<T>(work: impl FnOnce() -> client::Result<T>) -> client::Result<(T, f64)> {
    let start = Instant::now();
    let value = work()?;
    Ok((value, start.elapsed().as_nanos() as f64))
}
