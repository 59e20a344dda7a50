//! What observed times say about a prediction.

use std::collections::HashMap;

use super::Prediction;
use crate::group::{Access, Method};
use crate::model::Warmth;
use crate::plan::Request;

/// Weight of an observation that says "cheaper than thought". Nothing but the access itself makes it
/// fast.
const CHEAPER: f64 = 0.6;

/// Weight of an observation that says "dearer than thought": other programs, write-back and the
/// scheduler make anything slow now and then.
const DEARER: f64 = 0.25;

/// How much less all this weighs for what a method does on patterns of any shape.
const ELSEWHERE: f64 = 0.4;

/// How much of what makes the methods slow that were seen is expected to make another one slow.
const COMMON: f64 = 0.5;

/// No observation moves a factor beyond this or its inverse: a plan that took a thousand times as
/// long met something that is not about the plan.
const FACTOR_MAX: f64 = 30.0;

/// Of an access more of which than this is done once and not again, the time is not noted.
const FIRST_SHARE: f64 = 0.2;

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

impl Shape {
    pub(super) fn warmth(&self) -> Warmth {
        self.warmth
    }
}

/// One way to carry out an access, as far as its errors are told apart: a method, with one request
/// or with several under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arm(usize);

impl Arm {
    const COUNT: usize = 8;

    fn new(method: Method, in_flight: u32) -> Self {
        let method = match method {
            Method::Each => 0,
            Method::Window => 1,
            Method::Vector => 2,
            Method::Mapped => 3,
        };
        Self(2 * method + usize::from(in_flight > 1))
    }
}

/// A running mean of measured over predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    log: f64,
    count: u32,
    /// When the last was added, in observations.
    at: u64,
}

impl Ratio {
    fn add(&mut self, log: f64, now: u64, share: f64) {
        self.at = now;
        self.count = self.count.saturating_add(1);
        let weight = match log < self.log {
            true => CHEAPER,
            // What nothing is known of yet, the first observation may well change.
            false if self.count == 1 => 2.0 * DEARER,
            false => DEARER,
        };
        self.log += share * weight * (log - self.log);
    }
}

type Ratios = [Option<Ratio>; Arm::COUNT];

/// Factors by which predictions for one shape are multiplied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factors([f64; Arm::COUNT]);

impl Factors {
    /// The one for a method with so many requests under way.
    #[must_use]
    pub fn of(&self, method: Method, in_flight: u32) -> f64 {
        self.0[Arm::new(method, in_flight).0]
    }
}

/// What was observed on patterns of one shape.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Seen {
    ratios: Ratios,
    /// How long they have taken since something was tried on them, in nanoseconds.
    untried_ns: f64,
}

/// What was observed, by shape and method where such a one has been seen, by method else.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Corrections {
    shapes: HashMap<Shape, Seen>,
    /// By access and warmth.
    elsewhere: [[Ratios; 2]; 2],
    /// How many observations there were.
    now: u64,
}

impl Corrections {
    fn known(&self, shape: &Shape, method: Method, in_flight: u32) -> Option<&Ratio> {
        self.shapes.get(shape)?.ratios[Arm::new(method, in_flight).0].as_ref()
    }

    fn group(shape: &Shape) -> (usize, usize) {
        (usize::from(shape.access == Access::Write), usize::from(shape.warmth == Warmth::Cold))
    }

    /// Whether it is time to try the method on such patterns: it never was, or was long ago
    /// compared with how often. What was slow once because the machine was busy is not slow for
    /// ever.
    #[must_use]
    pub fn is_due(&self, shape: &Shape, method: Method, in_flight: u32) -> bool {
        let known = self.known(shape, method, in_flight);
        known.is_none_or(|ratio| self.now - ratio.at > TRY_AGAIN << ratio.count.min(4))
    }

    /// Whether the method has been seen on such patterns.
    #[must_use]
    pub fn has_seen(&self, shape: &Shape, method: Method, in_flight: u32) -> bool {
        self.known(shape, method, in_flight).is_some()
    }

    /// How long accesses to such patterns have taken since something was tried on them, in
    /// nanoseconds.
    #[must_use]
    pub fn untried_ns(&self, shape: &Shape) -> f64 {
        self.shapes.get(shape).map_or(0.0, |seen| seen.untried_ns)
    }

    /// By what to multiply the model's predictions for patterns of a shape; 1 where nothing is
    /// known.
    #[must_use]
    pub fn factors(&self, shape: &Shape) -> Factors {
        let (access, warmth) = Self::group(shape);
        let mut logs =
            self.elsewhere[access][warmth].map(|ratio| ratio.map_or(0.0, |ratio| ratio.log));
        if let Some(seen) = self.shapes.get(shape) {
            // What makes all of the seen methods slow, makes the others so: a busy machine, most often.
            let common =
                seen.ratios.iter().flatten().map(|ratio| ratio.log).fold(f64::INFINITY, f64::min);
            let common = if common.is_finite() { COMMON * common.max(0.0) } else { 0.0 };
            for (log, seen) in logs.iter_mut().zip(seen.ratios) {
                *log = seen.map_or(log.max(common), |ratio| ratio.log);
            }
        }
        Factors(logs.map(f64::exp))
    }

    /// Takes note that a plan took `measured_ns`. What is no time at all is not noted.
    pub fn observe(&mut self, prediction: &Prediction, measured_ns: f64) {
        let predicted_ns = prediction.model.total_ns() + prediction.first_ns;
        if !(measured_ns.is_finite() && measured_ns > 0.0 && predicted_ns > 0.0) {
            return;
        }
        // What is done once says little of what is done again and again.
        if prediction.first_ns > FIRST_SHARE * predicted_ns {
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
        let arm = Arm::new(method, *in_flight).0;
        let seen = self.shapes.entry(*shape).or_default();
        seen.ratios[arm].get_or_insert(fresh).add(log, now, 1.0);
        seen.untried_ns = if prediction.is_trial { 0.0 } else { seen.untried_ns + measured_ns };
        let (access, warmth) = Self::group(shape);
        let elsewhere = &mut self.elsewhere[access][warmth][arm];
        elsewhere.get_or_insert(fresh).add(log, now, ELSEWHERE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Cost;

    fn prediction(block: u64, method: Method, ns: f64) -> Prediction {
        let request = Request::new(Access::Read, 0..1, 1);
        let shape = Shape::new(&request, block, 100);
        let model = Cost::of(method, ns);
        Prediction { shape, model, first_ns: 0.0, corrected_ns: ns, is_trial: false, in_flight: 1 }
    }

    #[test]
    fn what_takes_twice_as_long_is_found_out_and_what_was_slow_once_is_forgiven() {
        let mut corrections = Corrections::default();
        let each = prediction(8, Method::Each, 1000.0);
        for _ in 0..20 {
            corrections.observe(&each, 2000.0);
        }
        let factor =
            |corrections: &Corrections| corrections.factors(&each.shape).of(Method::Each, 1);
        assert!((factor(&corrections) - 2.0).abs() < 0.05, "{}", factor(&corrections));
        corrections.observe(&each, 20_000.0);
        assert!(factor(&corrections) < 4.0);
        corrections.observe(&each, 2000.0);
        corrections.observe(&each, 2000.0);
        assert!((factor(&corrections) - 2.0).abs() < 0.4, "{}", factor(&corrections));
        // Faster again: at once.
        corrections.observe(&each, 1000.0);
        assert!(factor(&corrections) < 1.5);
    }

    #[test]
    fn one_shape_says_little_of_another_and_nothing_of_another_method() {
        let mut corrections = Corrections::default();
        let small = prediction(8, Method::Window, 1000.0);
        let large = prediction(100_000, Method::Window, 1000.0);
        corrections.observe(&small, 500.0);
        assert!(corrections.factors(&small.shape).of(Method::Window, 1) < 0.7);
        let elsewhere = corrections.factors(&large.shape).of(Method::Window, 1);
        assert!(elsewhere > 0.7 && elsewhere < 1.0, "{elsewhere}");
        assert_eq!(corrections.factors(&small.shape).of(Method::Each, 1), 1.0);
        assert_eq!(corrections.factors(&small.shape).of(Method::Window, 8), 1.0);
        assert!(corrections.has_seen(&small.shape, Method::Window, 1));
        assert!(!corrections.has_seen(&large.shape, Method::Window, 1));
    }

    #[test]
    fn a_busy_machine_does_not_make_the_unknown_look_better() {
        let mut corrections = Corrections::default();
        let each = prediction(8, Method::Each, 1000.0);
        for _ in 0..20 {
            corrections.observe(&each, 4000.0);
        }
        let factors = corrections.factors(&each.shape);
        assert!(factors.of(Method::Window, 1) > 1.7, "{factors:?}");
        assert!(factors.of(Method::Window, 1) < factors.of(Method::Each, 1));
    }

    #[test]
    fn what_was_not_tried_for_long_is_due_again_the_rarer_the_better_it_is_known() {
        let mut corrections = Corrections::default();
        let (each, window) = (prediction(8, Method::Each, 1e3), prediction(8, Method::Window, 1e3));
        let is_due = |corrections: &Corrections| corrections.is_due(&each.shape, Method::Window, 1);
        assert!(is_due(&corrections));
        let mut waits = Vec::new();
        for _ in 0..3 {
            corrections.observe(&window, 1e3);
            let mut others = 0;
            while !is_due(&corrections) {
                corrections.observe(&each, 1e3);
                others += 1;
            }
            waits.push(others);
        }
        assert!(waits[0] >= 8 && waits.is_sorted() && waits[0] < waits[2], "{waits:?}");
    }

    #[test]
    fn what_is_no_time_and_what_is_a_mixture_is_not_noted() {
        let mut corrections = Corrections::default();
        let each = prediction(8, Method::Each, 1000.0);
        for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            corrections.observe(&each, nonsense);
        }
        corrections.observe(&prediction(8, Method::Each, 0.0), 5.0);
        let model = Cost { each_ns: 500.0, window_ns: 500.0, ..Cost::default() };
        corrections.observe(&Prediction { model, ..each.clone() }, 9000.0);
        assert_eq!(corrections, Corrections::default());
        corrections.observe(&each, 1e12);
        assert!(corrections.factors(&each.shape).of(Method::Each, 1) <= FACTOR_MAX);
    }
}
