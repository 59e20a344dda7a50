//! The planner that the thesis designed and never built: the model decides, and what is observed
//! corrects the model.
//!
//! # Source
//! Zickler 2015, §3.3.3 "Advanced Data Sieving Model", §4.5 "Advance data sieving", §5.3.6.

mod learn;

pub use learn::{Corrections, Factors, Shape};

use crate::error::Result;
use crate::group::Method;
use crate::model::{Profile, Warmth};
use crate::plan::{
    Candidate, Cost, IntervalPlanner, PlannedGroups, Request, Row, Strategy, candidates,
};
use crate::view::FileView;

/// How long the part of a request is that one plan covers, in predicted nanoseconds: short enough
/// that a wrong plan is soon found out, long enough that planning and timing cost nothing.
const SLICE_NS: f64 = 2e6;

/// How long a trial of a method takes that has not been seen on such a pattern (for long), in
/// predicted nanoseconds. Much less drowns in noise.
const TRIAL_NS: f64 = 1.5e5;

/// How much longer slices and trials are for data that is not at hand: what was asked ahead must
/// not run dry at the end of every slice.
const COLD_FACTOR: f64 = 10.0;

/// A method is tried if it is predicted to take no longer than this times the best. Predictions
/// that are farther apart than that have not been found wrong.
const TRIAL_FACTOR: f64 = 1.8;

/// A trial must leave enough to be won: the rest of the request is at least so many trials long. Or
/// else what was done on such patterns since the last trial is: it will go on so.
const TRIALS_MIN: f64 = 12.0;

impl Shape {
    /// By what to multiply the length of slices and trials.
    fn pace(&self) -> f64 {
        if self.warmth() == Warmth::Cold { COLD_FACTOR } else { 1.0 }
    }
}

/// What a plan was expected to cost, to be compared with what it did.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// What the pattern looks like.
    pub shape: Shape,
    /// By the model alone.
    pub model: Cost,
    /// What of it is done once, besides: parts of a mapping that are touched for the first time.
    pub first_ns: f64,
    /// With the corrections that are known so far, in nanoseconds.
    pub corrected_ns: f64,
    /// Whether the plan is a trial of a method that is not expected to be the best.
    pub is_trial: bool,
    /// How many requests were to be under way together.
    pub in_flight: u32,
}

/// Groups for the first part of a request, or for all of it.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// Bytes of data of the request that the plan covers, from its start; what is behind has to be
    /// planned anew.
    pub data_len: u64,
    /// The groups.
    pub groups: PlannedGroups<'a>,
    /// How many requests may be under way together; 1 for one after the other.
    pub in_flight: u32,
    /// What it is expected to cost.
    pub prediction: Prediction,
    /// By how much the credit of the file's mapping changes when it is carried out: it grows by what
    /// is lost for parts not having been touched before, and is spent on touching them. So no more
    /// is ever spent on that than was lost, and no more is lost than it would have cost.
    pub credit_ns: f64,
}

/// A candidate and what is expected of it.
#[derive(Debug, Clone, Copy)]
struct Choice<'c> {
    candidate: &'c Candidate,
    /// What it takes, but for what is done once.
    again_ns: f64,
    /// By what it is compared with others.
    price_ns: f64,
    is_trial: bool,
    /// As in [`Plan::credit_ns`].
    credit_ns: f64,
}

impl Choice<'_> {
    fn method(&self) -> Method {
        self.candidate.strategy.method
    }
}

/// Plans accesses by a cost model, and corrects the model.
#[derive(Debug, Default)]
pub struct Adaptive {
    profile: Profile,
    corrections: Corrections,
    rows: IntervalPlanner,
    /// Whether methods are tried that are not expected to be the best.
    steady: bool,
}

impl Adaptive {
    /// A planner for files of which `profile` is true, more or less.
    ///
    /// # Errors
    /// [`crate::Error::Profile`] when some parameter is no cost.
    pub fn new(profile: Profile) -> Result<Self> {
        profile.check()?;
        Ok(Self { profile, ..Self::default() })
    }

    /// The same planner without trials: what it decides follows from the profile and what it was
    /// told, and from nothing else.
    #[must_use]
    pub fn steady(mut self) -> Self {
        self.steady = true;
        self
    }

    /// The parameters.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What has been learned.
    #[must_use]
    pub fn corrections(&self) -> &Corrections {
        &self.corrections
    }

    /// Groups for the first part of `request`, which must not be empty.
    ///
    /// # Errors
    /// As [`FileView::runs`].
    pub fn plan<'a>(&mut self, view: &'a FileView, request: &Request) -> Result<Plan<'a>> {
        let wanted = request.data.end - request.data.start;
        let piece = view.runs(request.data.start, wanted)?.peek(wanted);
        if piece.is_some_and(|piece| piece.len == wanted) {
            // Whatever the pattern, this is one block of it, or a part.
            let all = candidates(&self.profile, request, wanted, &[], 0);
            return self.regular(view, request, Shape::new(request, wanted, 0), &all, u64::MAX);
        }
        match view.closed_form() {
            Some((block, levels, tail)) => {
                let all = candidates(&self.profile, request, block, &levels, tail);
                let hole = levels.first().map_or(tail, |level| level.hole);
                let shape = Shape::new(request, block, hole);
                let block = if block == view.extent() { u64::MAX } else { block };
                self.regular(view, request, shape, &all, block)
            }
            None => self.irregular(view, request),
        }
    }

    /// How a plan went: it took `measured_ns` for all of its groups.
    pub fn observe(&mut self, prediction: &Prediction, measured_ns: f64) {
        self.corrections.observe(prediction, measured_ns);
    }

    /// The best candidate, unless another deserves a trial.
    fn choose<'c>(&self, shape: &Shape, request: &Request, all: &'c [Candidate]) -> Choice<'c> {
        let factors = self.corrections.factors(shape);
        let credit_ns = request.mapped.map_or(0.0, |mapped| mapped.credit_ns as f64);
        let priced = all.iter().map(|candidate| {
            let Strategy { method, in_flight, .. } = candidate.strategy;
            let again_ns = candidate.cost.total_ns() * factors.of(method, in_flight);
            // What was lost already is not lost again.
            let price_ns = again_ns + (candidate.first_ns - credit_ns).max(0.0);
            Choice { candidate, again_ns, price_ns, is_trial: false, credit_ns: 0.0 }
        });
        let by_price = |a: &Choice<'_>, b: &Choice<'_>| a.price_ns.total_cmp(&b.price_ns);
        let best = priced.clone().min_by(by_price).expect("there is always one");
        let mapped = priced.clone().find(|choice| choice.method() == Method::Mapped);
        let mut chosen = best;
        if !self.steady {
            let untried_ns = self.corrections.untried_ns(shape);
            let trial_ns = shape.pace() * TRIAL_NS;
            let due = priced.filter(|choice| {
                let is_short = trial_ns * TRIALS_MIN <= best.price_ns
                    || choice.price_ns.min(trial_ns) * TRIALS_MIN <= untried_ns;
                let (method, in_flight) = (choice.method(), choice.candidate.strategy.in_flight);
                let hope = if self.corrections.has_seen(shape, method, in_flight) {
                    choice.price_ns
                } else {
                    // What is known of the method on other patterns may not hold for this one.
                    choice.price_ns.min(choice.candidate.total_ns())
                };
                (method, in_flight > 1) != (best.method(), best.candidate.strategy.in_flight > 1)
                    && is_short
                    && hope < best.price_ns * TRIAL_FACTOR
                    && self.corrections.is_due(shape, method, in_flight)
            });
            if let Some(other) = due.min_by(by_price) {
                chosen = Choice { is_trial: true, ..other };
            }
        }
        chosen.credit_ns = match mapped {
            _ if chosen.method() == Method::Mapped => -credit_ns.min(chosen.candidate.first_ns),
            Some(mapped) => (chosen.again_ns - mapped.again_ns).max(0.0),
            None => 0.0,
        };
        chosen
    }

    fn regular<'a>(
        &self,
        view: &'a FileView,
        request: &Request,
        shape: Shape,
        all: &[Candidate],
        block: u64,
    ) -> Result<Plan<'a>> {
        let chosen = self.choose(&shape, request, all);
        let (is_trial, first_ns) = (chosen.is_trial, chosen.candidate.first_ns);
        let ns = chosen.again_ns + first_ns;
        let wanted = request.data.end - request.data.start;
        let slice_ns = shape.pace() * if is_trial { TRIAL_NS } else { SLICE_NS };
        let share = slice_ns / ns.max(1.0);
        let mut data_len = wanted;
        // A rest that is not worth a plan of its own belongs to this one.
        if share < 0.75 {
            let whole = ((wanted as f64 * share) as u64).max(1);
            // Slices end where blocks do, so that no block is split for being timed.
            let behind = (request.data.start % block + whole).checked_next_multiple_of(block);
            let end = behind.map_or(wanted, |end| end - request.data.start % block);
            data_len = end.clamp(1, wanted);
        }
        let data = request.data.start..request.data.start + data_len;
        let part = data_len as f64 / wanted as f64;
        let strategy = chosen.candidate.strategy;
        let model = Cost::of(strategy.method, chosen.candidate.cost.total_ns() * part);
        let in_flight = strategy.in_flight;
        let (corrected_ns, first_ns) = (ns * part, first_ns * part);
        Ok(Plan {
            data_len,
            groups: PlannedGroups::Strategy(strategy.groups(view, data)?),
            in_flight,
            prediction: Prediction { shape, model, first_ns, corrected_ns, is_trial, in_flight },
            credit_ns: chosen.credit_ns * part,
        })
    }

    fn irregular<'a>(&mut self, view: &'a FileView, request: &Request) -> Result<Plan<'a>> {
        let cold = request.warmth == Warmth::Cold;
        let in_flight = if cold { self.profile.device.in_flight_max } else { 1 };
        let tuples = view.tuple_count().max(1);
        let block = view.size() / tuples;
        let shape = Shape::new(request, block, view.extent() / tuples - block);
        let factors = self.corrections.factors(&shape);
        let weigh = |method: Method| factors.of(method, in_flight);
        let row = self.rows.plan(view, &self.profile, request, in_flight, weigh)?;
        let Row { groups, cost: corrected, first_ns, credit_ns } = row;
        // What the model alone says of the same groups.
        let model = Cost {
            each_ns: corrected.each_ns / weigh(Method::Each),
            window_ns: corrected.window_ns / weigh(Method::Window),
            vector_ns: corrected.vector_ns / weigh(Method::Vector),
            mapped_ns: corrected.mapped_ns / weigh(Method::Mapped),
        };
        let end = groups.last().map_or(request.data.end, |group| group.data.end);
        let corrected_ns = corrected.total_ns() + first_ns;
        let is_trial = false;
        Ok(Plan {
            data_len: end - request.data.start,
            groups: PlannedGroups::Listed(groups.into_iter()),
            in_flight,
            prediction: Prediction { shape, model, first_ns, corrected_ns, is_trial, in_flight },
            credit_ns,
        })
    }
}
