//! Measuring the way to a file that is reached by messages.

use std::time::Instant;

use sieve::Profile;
use sieve::model::{Device, RequestCost};

use crate::target::ReadRequest;

/// Small requests, the fastest of which counts: everything else is noise on top.
const TURNS: usize = 5;

/// How much is read to learn the bandwidth, in bytes.
const SAMPLE_BYTES: u64 = 4 << 20;

/// Files shorter than this say nothing of it.
const SAMPLE_BYTES_MIN: u64 = 256 << 10;

/// A sample that took longer is not read a second time, in nanoseconds.
const SAMPLE_NS_MAX: f64 = 100e6;

/// Requests sent together to learn what each of them costs beside the turn.
const BATCH: usize = 64;

/// Nanoseconds a byte where there was too little to read: 1 GB/s.
const BYTE_NS: f64 = 1.0;

/// What an access costs on the way to a file, measured now: `turn` is one small request and its answer,
/// and tells the length of the file in bytes; `read` carries out reads that are under way together, and
/// is not called for a file that is not readable.
///
/// A route has no page cache of ours: every request goes out, and every one costs both ends work.
///
/// # Errors
/// Those of `turn` and `read`.
pub fn measure_route<E>(
    is_readable: bool,
    mut turn: impl FnMut() -> Result<u64, E>,
    mut read: impl FnMut(&mut [ReadRequest<'_>]) -> Result<(), E>,
) -> Result<Profile, E> {
    let mut latency_ns = f64::INFINITY;
    let mut size = 0;
    for _ in 0..TURNS {
        let (len, ns) = timed(&mut turn)?;
        size = len;
        latency_ns = latency_ns.min(ns);
    }
    let mut call_ns = latency_ns / BATCH as f64;
    let mut byte_ns = BYTE_NS;
    if size > 0 && is_readable {
        let mut single = [[0_u8; 1]; BATCH];
        let mut requests: Vec<_> = single.iter_mut().map(|buf| request(buf)).collect();
        let ((), ns) = timed(|| read(&mut requests))?;
        call_ns = (ns - latency_ns).max(1.0) / BATCH as f64;
        let len = size.min(SAMPLE_BYTES);
        if len >= SAMPLE_BYTES_MIN {
            let mut buffer = vec![0; len as usize];
            // The first time fetches it into the service's own cache.
            for _ in 0..2 {
                let ((), ns) = timed(|| read(&mut [request(&mut buffer)]))?;
                byte_ns = (ns - latency_ns).max(1.0) / len as f64;
                if ns > SAMPLE_NS_MAX {
                    break;
                }
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

fn request(buf: &mut [u8]) -> ReadRequest<'_> {
    ReadRequest { offset: 0, buf, done: 0, errno: None }
}

fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let start = Instant::now();
    let value = work()?;
    Ok((value, start.elapsed().as_nanos() as f64))
}
