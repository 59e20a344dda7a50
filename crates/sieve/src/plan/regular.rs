//! Patterns in closed form: one decision for all their blocks.

use super::{Cost, Request, Strategy, VECTOR_BLOCKS_MAX};
use crate::group::Method;
use crate::model::{Extents, Profile, Warmth};
use crate::view::Level;

/// The smallest window that is thought about, in bytes, where the buffer allows it.
const WINDOW_BYTES_MIN: u64 = 32 << 10;

/// A strategy and what it is expected to cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The strategy.
    pub strategy: Strategy,
    /// Predicted time for the whole request.
    pub cost: Cost,
}

/// A pattern in closed form: `block` bytes, levels from the inside out, and the hole behind all.
struct Pattern<'a> {
    block: u64,
    levels: &'a [Level],
    tail: u64,
}

/// Blocks that no hole larger than some limit separates.
#[derive(Debug, Clone, Copy)]
struct Cluster {
    blocks: f64,
    /// From the first to behind the last, in bytes of the file.
    extent: f64,
    /// From start to start of its blocks, if they are all alike.
    stride: Option<f64>,
}

impl Pattern<'_> {
    /// How the blocks of a request for `blocks_max` of them hang together over holes of at most
    /// `span_max`.
    fn cluster(&self, span_max: u64, blocks_max: f64) -> Cluster {
        let (mut blocks, mut extent) = (1.0, self.block as f64);
        let mut stride = None;
        let endless = Level { count: u64::MAX, hole: self.tail };
        for (depth, level) in self.levels.iter().chain([&endless]).enumerate() {
            if level.hole > span_max || blocks >= blocks_max {
                break;
            }
            let count = (level.count as f64).min((blocks_max / blocks).ceil());
            let step = extent + level.hole as f64;
            stride = (depth == 0).then_some(step);
            extent += (count - 1.0) * step;
            blocks *= count;
        }
        Cluster { blocks, extent, stride }
    }
}

/// What carrying one group of a cluster in windows of at most `window_bytes` looks like: its size,
/// and how many such groups a cluster has. None when no window would hold two blocks.
fn windows(
    cluster: &Cluster,
    block: f64,
    window_bytes: u64,
    blocks_max: u64,
) -> Option<(Extents, f64)> {
    let window = window_bytes as f64;
    let blocks = match cluster.stride {
        Some(stride) => ((window + stride - block) / stride).floor(),
        None => (cluster.blocks * window / cluster.extent).floor(),
    };
    let blocks = blocks.min(cluster.blocks).min(blocks_max as f64);
    if blocks < 2.0 {
        return None;
    }
    let between = (cluster.extent - block) / (cluster.blocks - 1.0);
    let file = block + (blocks - 1.0) * cluster.stride.unwrap_or(between);
    let size = Extents { file, data: blocks * block, blocks };
    Some((size, cluster.blocks / blocks))
}

/// All strategies that may be the best for a request on a pattern in closed form (`block`, levels
/// and tail as [`crate::FileView::closed_form`] gives them), with their predicted costs. The first is
/// always the one that needs no buffer.
#[must_use]
pub fn candidates(
    profile: &Profile,
    request: &Request,
    block: u64,
    levels: &[Level],
    tail: u64,
) -> Vec<Candidate> {
    let pattern = Pattern { block, levels, tail };
    let wanted = (request.data.end - request.data.start) as f64;
    let block = (block as f64).min(wanted);
    let blocks = (wanted / block).max(1.0);
    let together = if request.warmth == Warmth::Cold { profile.device.in_flight_max } else { 1 };
    let depths = if together > 1 { &[1, together][..] } else { &[1][..] };
    let mut found = Vec::with_capacity(16);
    for in_flight in depths {
        let ns = blocks * profile.each_ns(block, &request.circumstances(*in_flight));
        let strategy = Strategy::each(*in_flight);
        found.push(Candidate { strategy, cost: Cost::of(Method::Each, ns) });
    }
    if !request.can_sieve() || blocks < 2.0 {
        return found;
    }
    let mut holes: Vec<u64> = levels.iter().map(|level| level.hole).chain([tail]).collect();
    holes.sort_unstable();
    holes.dedup();
    for span_max in holes {
        let cluster = pattern.cluster(span_max, blocks);
        if cluster.blocks < 2.0 {
            continue;
        }
        let clusters = (blocks / cluster.blocks).max(1.0);
        let mut window_bytes = WINDOW_BYTES_MIN.min(request.buffer_bytes);
        loop {
            for method in [Method::Window, Method::Vector] {
                if method == Method::Vector && !request.vectored {
                    continue;
                }
                let blocks_max =
                    if method == Method::Vector { VECTOR_BLOCKS_MAX } else { u64::MAX };
                let Some((size, number)) = windows(&cluster, block, window_bytes, blocks_max)
                else {
                    continue;
                };
                for in_flight in depths {
                    // Windows share the buffer, so that there are only so many at a time.
                    let room = request.buffer_bytes / window_bytes;
                    if *in_flight > 1 && (room < 2 || method == Method::Vector) {
                        continue;
                    }
                    let in_flight = (*in_flight).min(u32::try_from(room).unwrap_or(u32::MAX));
                    let now = request.circumstances(in_flight);
                    let one = match method {
                        Method::Vector => profile.vector_ns(&size, &now),
                        _ => profile.window_ns(&size, window_bytes, &now),
                    };
                    let stripe = profile.device.stripe_bytes;
                    let align = if stripe > 0 && window_bytes >= stripe { stripe } else { 0 };
                    let strategy = Strategy { method, span_max, window_bytes, align, in_flight };
                    let cost = Cost::of(method, one * number * clusters);
                    found.push(Candidate { strategy, cost });
                }
            }
            // A window larger than what there is to span is the same window.
            if window_bytes >= request.buffer_bytes || window_bytes as f64 >= cluster.extent {
                break;
            }
            window_bytes = window_bytes.saturating_mul(2).min(request.buffer_bytes);
        }
    }
    found
}
