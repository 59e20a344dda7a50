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
    /// What has to be done once for it, besides, in nanoseconds: touching parts of a mapping for
    /// the first time.
    pub first_ns: f64,
}

impl Candidate {
    fn new(strategy: Strategy, ns: f64) -> Self {
        Self { strategy, cost: Cost::of(strategy.method, ns), first_ns: 0.0 }
    }

    /// What it is expected to take, with what is done once.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.cost.total_ns() + self.first_ns
    }
}

/// A pattern in closed form: `block` bytes, levels from the inside out, and the hole behind all.
struct Pattern<'a> {
    block: u64,
    levels: &'a [Level],
    tail: u64,
}

/// One level of the blocks that no hole larger than some limit separates: `count` members, each of
/// `blocks` blocks that span `extent` bytes, `step` bytes from start to start.
#[derive(Debug, Clone, Copy)]
struct Joined {
    count: f64,
    blocks: f64,
    extent: f64,
    step: f64,
}

impl Pattern<'_> {
    /// From the start of a block to that of the next, in bytes: which share of the blocks has which
    /// distance.
    fn strides(&self) -> impl Iterator<Item = (f64, f64)> {
        let endless = Level { count: u64::MAX, hole: self.tail };
        let mut rest = 1.0;
        self.levels.iter().copied().chain([endless]).map(move |level| {
            let here = rest * (1.0 - 1.0 / level.count as f64);
            rest /= level.count as f64;
            (here, (self.block + level.hole) as f64)
        })
    }

    /// The levels, from the inside out, of what hangs together over holes of at most `span_max` in
    /// a request for `blocks_max` blocks.
    fn joined(&self, span_max: u64, blocks_max: f64) -> Vec<Joined> {
        let (mut blocks, mut extent) = (1.0, self.block as f64);
        let mut joined = Vec::with_capacity(self.levels.len() + 1);
        let endless = Level { count: u64::MAX, hole: self.tail };
        for level in self.levels.iter().chain([&endless]) {
            if level.hole > span_max || blocks >= blocks_max {
                break;
            }
            let count = (level.count as f64).min((blocks_max / blocks).ceil());
            let step = extent + level.hole as f64;
            joined.push(Joined { count, blocks, extent, step });
            extent += (count - 1.0) * step;
            blocks *= count;
        }
        joined
    }
}

/// What one window of at most `window_bytes` holds on average. None when that is less than two
/// blocks.
fn window(joined: &[Joined], window_bytes: u64, blocks_max: u64) -> Option<Extents> {
    // As many members of each level as fit, from the outside in, as in a window that starts where
    // they do.
    let (mut held, mut file, mut at) = (0.0, 0.0, 0.0);
    let mut outermost = true;
    for level in joined.iter().rev() {
        let room = window_bytes as f64 - at;
        if level.extent > room {
            outermost = false;
            continue;
        }
        let fits = ((room + level.step - level.extent) / level.step).floor();
        if fits >= level.count && outermost {
            // All there is.
            held = level.count * level.blocks;
            file = (level.count - 1.0) * level.step + level.extent;
            break;
        }
        let fits = fits.min(level.count);
        held += fits * level.blocks;
        file = at + (fits - 1.0) * level.step + level.extent;
        at += fits * level.step;
        outermost = false;
    }
    let mut share = (blocks_max as f64 / held).min(1.0);
    if let Some(outer) = joined.last() {
        // Nothing joins beyond: the last window of a row holds what is left.
        let all = outer.count * outer.blocks;
        share = all / (all / (held * share)).ceil() / held;
    }
    held *= share;
    (held >= 2.0).then_some(Extents { file: file * share, data: 0.0, blocks: held })
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
        let now = request.circumstances(*in_flight);
        let mut one = 0.0;
        for (share, stride) in pattern.strides() {
            one += share * profile.each_ns(block, stride, &now);
        }
        let ns = blocks * one;
        found.push(Candidate::new(Strategy::each(*in_flight), ns));
    }
    if let (Some(mapped), Warmth::Warm) = (&request.mapped, request.warmth) {
        let stride: f64 = pattern.strides().map(|(share, stride)| share * stride).sum();
        let size = Extents { file: (blocks - 1.0) * stride + block, data: wanted, blocks };
        let first_ns = mapped.first_touched(blocks, block) * profile.map.fault_ns;
        let strategy = Strategy { method: Method::Mapped, ..Strategy::each(1) };
        let candidate = Candidate::new(strategy, profile.mapped_ns(&size));
        found.push(Candidate { first_ns, ..candidate });
    }
    if !request.can_sieve() || blocks < 2.0 {
        return found;
    }
    let mut holes: Vec<u64> = levels.iter().map(|level| level.hole).chain([tail]).collect();
    holes.sort_unstable();
    holes.dedup();
    for span_max in holes {
        let joined = pattern.joined(span_max, blocks);
        let Some(outer) = joined.last() else { continue };
        let reach = outer.extent + (outer.count - 1.0) * outer.step;
        let mut window_bytes = WINDOW_BYTES_MIN.min(request.buffer_bytes);
        loop {
            for method in [Method::Window, Method::Vector] {
                if method == Method::Vector && !request.vectored {
                    continue;
                }
                let blocks_max =
                    if method == Method::Vector { VECTOR_BLOCKS_MAX } else { u64::MAX };
                let Some(size) = window(&joined, window_bytes, blocks_max) else { continue };
                let size = Extents { data: size.blocks * block, ..size };
                let number = blocks / size.blocks;
                for in_flight in depths {
                    // Windows under way together share the buffer, so that there are only so many.
                    let room = match request.announced {
                        true => u64::from(u32::MAX),
                        false => request.buffer_bytes / window_bytes,
                    };
                    let shared = *in_flight > 1 && !request.announced;
                    if shared && (room < 2 || method == Method::Vector) {
                        continue;
                    }
                    let in_flight = (*in_flight).min(u32::try_from(room).unwrap_or(u32::MAX));
                    let memory = if shared { u64::from(in_flight) } else { 1 } * window_bytes;
                    let now = request.circumstances(in_flight);
                    let one = match method {
                        Method::Vector => profile.vector_ns(&size, &now),
                        _ => profile.window_ns(&size, memory, &now),
                    };
                    let stripe = profile.device.stripe_bytes;
                    let align = if stripe > 0 && window_bytes >= stripe { stripe } else { 0 };
                    let strategy = Strategy { method, span_max, window_bytes, align, in_flight };
                    found.push(Candidate::new(strategy, one * number));
                }
            }
            // A window larger than what there is to span is the same window.
            if window_bytes >= request.buffer_bytes || window_bytes as f64 >= reach {
                break;
            }
            window_bytes = window_bytes.saturating_mul(2).min(request.buffer_bytes);
        }
    }
    found
}
