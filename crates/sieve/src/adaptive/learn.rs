//! What observed times say about a prediction.

use std::collections::HashMap;

use super::Prediction;
use crate::group::{Access, Method};
use crate::model::Warmth;
use crate::plan::Request;

/// Weight of the newest observation. Times on a shared machine are noisy, and files get warm.
const NEWEST: f64 = 0.3;

/// No observation moves a factor beyond this or its inverse: a plan that took a thousand times as
/// long met something that is not about the plan.
const FACTOR_MAX: f64 = 30.0;

/// After how many observations of others a method is tried again, for the first time.
const TRY_AGAIN: u64 = 8;

/// Patterns that are expected to err alike: block and hole within a factor of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    access: Access,
    warmth: Warmth,
    block_log2: u32,
    hole_log2: u32,
}

impl Shape {
    /// Blocks of `block` bytes (on average) with holes of `hole` bytes between them.
    #[must_use]
    pub fn new(request: &Request, block: u64, hole: u64) -> Self {
        let log2 = |bytes: u64| bytes.checked_ilog2().map_or(0, |log2| log2 + 1);
        let (access, warmth) = (request.access, request.warmth);
        Self { access, warmth, block_log2: log2(block), hole_log2: log2(hole) }
    }
}

type Key = (Shape, Method, bool);
type Arm = (Access, Warmth, Method, bool);

/// A running mean of measured over predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    log: f64,
    count: u32,
    /// When the last was added, in observations.
    at: u64,
}

impl Ratio {
    fn add(&mut self, log: f64, now: u64) {
        self.at = now;
        self.count = self.count.saturating_add(1);
        // The first ones weigh alike; later ones let the oldest fade.
        let weight = NEWEST.max(1.0 / f64::from(self.count));
        self.log += weight * (log - self.log);
    }
}

/// Factors by which predictions are multiplied, by shape and method where such a one has been
/// seen, by method else.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Corrections {
    shapes: HashMap<Key, Ratio>,
    arms: HashMap<Arm, Ratio>,
    /// How many observations there were.
    now: u64,
}

impl Corrections {
    fn key(shape: &Shape, method: Method, in_flight: u32) -> Key {
        (*shape, method, in_flight > 1)
    }

    /// Whether it is time to try the method on such patterns: it never was, or was long ago
    /// compared with how often. What was slow once because the machine was busy is not slow for
    /// ever.
    #[must_use]
    pub fn is_due(&self, shape: &Shape, method: Method, in_flight: u32) -> bool {
        let known = self.shapes.get(&Self::key(shape, method, in_flight));
        known.is_none_or(|ratio| self.now - ratio.at > TRY_AGAIN << ratio.count.min(4))
    }

    /// Whether the method has been seen on such patterns.
    #[must_use]
    pub fn has_seen(&self, shape: &Shape, method: Method, in_flight: u32) -> bool {
        self.shapes.contains_key(&Self::key(shape, method, in_flight))
    }

    /// By what to multiply the model's prediction; 1 when nothing is known.
    #[must_use]
    pub fn factor(&self, shape: &Shape, method: Method, in_flight: u32) -> f64 {
        let arm = (shape.access, shape.warmth, method, in_flight > 1);
        let known =
            self.shapes.get(&Self::key(shape, method, in_flight)).or_else(|| self.arms.get(&arm));
        known.map_or(1.0, |ratio| ratio.log.exp())
    }

    /// Takes note that a plan took `measured_ns`. What is no time at all is not noted.
    pub fn observe(&mut self, prediction: &Prediction, measured_ns: f64) {
        let predicted_ns = prediction.model.total_ns();
        if !(measured_ns.is_finite() && measured_ns > 0.0 && predicted_ns > 0.0) {
            return;
        }
        let log = (measured_ns / predicted_ns).clamp(1.0 / FACTOR_MAX, FACTOR_MAX).ln();
        let (method, share) = prediction.model.dominant();
        // Of a mixture nobody knows which part took the time.
        if share < 0.8 {
            return;
        }
        let Prediction { shape, in_flight, .. } = prediction;
        self.now += 1;
        let now = self.now;
        let fresh = Ratio { log: 0.0, count: 0, at: now };
        self.shapes.entry(Self::key(shape, method, *in_flight)).or_insert(fresh).add(log, now);
        let arm = (shape.access, shape.warmth, method, *in_flight > 1);
        self.arms.entry(arm).or_insert(fresh).add(log, now);
    }
}
