//! The aggregate functions of the thesis.

use super::{Aggregate, Decision, Step};

/// What the simple performance model knows of a file system.
///
/// # Source
/// `nct_info`, Listing 4.1: `bandwidth`, `latencyNetwork` and `latencyFS`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileSystem {
    /// Bytes per second.
    pub bandwidth: f64,
    /// Seconds from asking to being answered, by the network alone.
    pub latency_network: f64,
    /// Seconds that the file system adds to each request.
    pub latency_fs: f64,
}

impl FileSystem {
    /// Whether going over a hole costs less than a new access: `hole / bandwidth < latencyNetwork +
    /// latencyFS` (Listing 4.5, lines 24 to 27).
    #[must_use]
    pub fn hole_is_cheaper(&self, hole: u64) -> bool {
        (hole as f64) / self.bandwidth < self.latency_network + self.latency_fs
    }
}

/// Every tuple by itself: "access each data block on its own" (§3.3.3).
#[derive(Debug, Clone, Copy, Default)]
pub struct Naive;

impl Aggregate for Naive {
    fn name(&self) -> &str {
        "naive"
    }

    fn decide(&mut self, step: &Step) -> Decision {
        Decision::stop(step)
    }

    fn gathers(&self) -> bool {
        false
    }
}

/// Always fills the buffer, from the next wanted byte on, "no matter if it hits another tuple or
/// not" (§4.5, Listing 4.4).
#[derive(Debug, Clone, Copy, Default)]
pub struct Romio;

/// The hole bytes that fill up the buffer, as lines 16 to 19 of Listing 4.4 have it.
fn filled(step: &Step, decision: Decision) -> Decision {
    if step.completes_tuple && step.hole >= step.room() {
        Decision { hole_after: step.room().min(step.hole), ..decision }
    } else {
        decision
    }
}

impl Aggregate for Romio {
    fn name(&self) -> &str {
        "romio"
    }

    fn decide(&mut self, step: &Step) -> Decision {
        filled(step, Decision::join(step))
    }
}

/// Joins where going over the hole costs less than a new access, and then fills the buffer as
/// [`Romio`] does: "in cases where data sieving is turned on, the ROMIO like version is used"
/// (§3.3.3; §4.5, Listing 4.5; after Chen et al. 2014).
#[derive(Debug, Clone, Copy)]
pub struct SimplePm(
    /// What the decision is made from.
    pub FileSystem,
);

impl Aggregate for SimplePm {
    fn name(&self) -> &str {
        "simple_pm"
    }

    fn decide(&mut self, step: &Step) -> Decision {
        if self.0.hole_is_cheaper(step.hole) {
            filled(step, Decision::join(step))
        } else {
            Decision::stop(step)
        }
    }
}

/// Decides as [`SimplePm`], but never takes hole bytes at the end: "only accesses the extent from
/// the first to the last tuple" (§3.3.3).
#[derive(Debug, Clone, Copy)]
pub struct Extent(
    /// What the decision is made from.
    pub FileSystem,
);

impl Aggregate for Extent {
    fn name(&self) -> &str {
        "extent"
    }

    fn decide(&mut self, step: &Step) -> Decision {
        if self.0.hole_is_cheaper(step.hole) { Decision::join(step) } else { Decision::stop(step) }
    }
}

/// Reaches all of the file from the first wanted block on, in accesses that end at multiples of the
/// stripe size: "accesses the entire file starting at the first data block. Additionally, it aligns
/// the data accesses to the given stripe size" (§3.3.3).
///
/// A stretch without any data is passed over, as there is nothing to hand over of it.
#[derive(Debug, Clone, Copy)]
pub struct ScanFile {
    /// The file system's stripe size in bytes; 0 or 1 for none.
    pub stripe_bytes: u64,
}

impl ScanFile {
    /// Where an access that starts at `start` has to end: the last multiple of the stripe size that
    /// the buffer reaches, or its end where it reaches none.
    fn end(&self, start: u64, buffer_bytes: u64) -> u64 {
        let full = start.saturating_add(buffer_bytes);
        match full.checked_rem(self.stripe_bytes) {
            Some(beyond) if full - beyond > start => full - beyond,
            _ => full,
        }
    }
}

impl Aggregate for ScanFile {
    fn name(&self) -> &str {
        "scanfile"
    }

    fn decide(&mut self, step: &Step) -> Decision {
        let here = step.file + step.bytes_max;
        let start = here - step.span;
        let end = match self.end(start, step.buffer_bytes) {
            // A boundary between the hole that the access begins with and its first byte of data.
            end if end <= step.file && step.data_gathered == 0 => start + step.buffer_bytes,
            end => end,
        };
        if here >= end {
            // It is the end, or lies in the tuple.
            return Decision { bytes: end.saturating_sub(step.file), ..Decision::stop(step) };
        }
        let next = here.saturating_add(step.hole);
        if !step.completes_tuple || next < end {
            return Decision::join(step);
        }
        // The hole reaches over the end: this access takes it up to there. The next begins at the
        // stripe in which its tuple lies, if that still leaves room for data.
        let beyond = next.checked_rem(self.stripe_bytes).unwrap_or(0);
        let room = step.buffer_bytes.saturating_sub(1);
        let hole_before_next = beyond.min(next - end).min(room);
        Decision { hole_after: end - here, hole_before_next, ..Decision::stop(step) }
    }
}
