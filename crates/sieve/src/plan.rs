//! Plans: an access cut into groups, with what it is expected to cost.

mod interval;
mod regular;
mod strategy;

use std::ops::Range;

pub use interval::{IntervalPlanner, Row};
pub use regular::{Candidate, candidates};
pub use strategy::{Strategy, StrategyGroups};

use crate::group::{Access, Group, Method};
use crate::model::{Circumstances, MAP_PART_BYTES, Warmth};

/// How many blocks one vectored call may have: with the holes between them one entry less than
/// twice as many, of which Linux takes 1024 (`UIO_MAXIOV`, readv(2)).
pub const VECTOR_BLOCKS_MAX: u64 = 512;

/// What a planner has to know of a mapping of the file that the access is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    /// How many parts ([`MAP_PART_BYTES`](crate::model::MAP_PART_BYTES)) what is wanted spans.
    pub parts: u64,
    /// How many of them have not been touched yet.
    pub fresh: u64,
    /// How much may be spent on touching them, in nanoseconds: what was lost so far by not having
    /// done so ([`Plan::credit_ns`](crate::Plan::credit_ns)).
    pub credit_ns: u64,
}

impl Mapped {
    /// How many parts are touched for the first time by `blocks` of `block` bytes.
    #[must_use]
    pub fn first_touched(&self, blocks: f64, block: f64) -> f64 {
        let touched = blocks * (1.0 + block / MAP_PART_BYTES as f64);
        touched.min(self.parts as f64) * self.fresh as f64 / self.parts.max(1) as f64
    }
}

/// What a planner has to know of an access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Reading or writing.
    pub access: Access,
    /// What is wanted, as a range of the view's data.
    pub data: Range<u64>,
    /// Size of the sieving buffer in bytes.
    pub buffer_bytes: u64,
    /// Whether the data is at hand.
    pub warmth: Warmth,
    /// Whether parts of the file that are read in order to be written have to be locked.
    pub locked: bool,
    /// Whether the file can be read. If not, there is no writing with holes.
    pub readable: bool,
    /// Whether vectored calls are to be had.
    pub vectored: bool,
    /// Whether what will be wanted can be announced, and is then fetched while something else is
    /// carried. Requests that are under way together otherwise need memory each.
    pub announced: bool,
    /// The mapping through which blocks can be copied, where there is one.
    pub mapped: Option<Mapped>,
}

impl Request {
    /// A request for which everything is possible and at hand.
    #[must_use]
    pub fn new(access: Access, data: Range<u64>, buffer_bytes: u64) -> Self {
        Self {
            access,
            data,
            buffer_bytes,
            warmth: Warmth::Warm,
            locked: access == Access::Write,
            readable: true,
            vectored: true,
            announced: false,
            mapped: None,
        }
    }

    /// Whether holes can be carried along at all.
    #[must_use]
    pub fn can_sieve(&self) -> bool {
        self.buffer_bytes > 0 && (self.access == Access::Read || self.readable)
    }

    /// The circumstances under which its groups are carried out.
    #[must_use]
    pub fn circumstances(&self, in_flight: u32) -> Circumstances {
        let Request { access, warmth, locked, .. } = *self;
        Circumstances { access, warmth, in_flight, locked }
    }
}

/// Predicted nanoseconds, by method.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// In groups of [`Method::Each`].
    pub each_ns: f64,
    /// In groups of [`Method::Window`].
    pub window_ns: f64,
    /// In groups of [`Method::Vector`].
    pub vector_ns: f64,
    /// In groups of [`Method::Mapped`].
    pub mapped_ns: f64,
}

impl Cost {
    /// All of it in groups of one method.
    #[must_use]
    pub fn of(method: Method, ns: f64) -> Self {
        let mut cost = Self::default();
        *cost.of_mut(method) = ns;
        cost
    }

    pub(crate) fn of_mut(&mut self, method: Method) -> &mut f64 {
        match method {
            Method::Each => &mut self.each_ns,
            Method::Window => &mut self.window_ns,
            Method::Vector => &mut self.vector_ns,
            Method::Mapped => &mut self.mapped_ns,
        }
    }

    /// The sum.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.each_ns + self.window_ns + self.vector_ns + self.mapped_ns
    }

    /// The method with the largest share, and that share, 0 to 1.
    #[must_use]
    pub fn dominant(&self) -> (Method, f64) {
        let shares = [
            (Method::Each, self.each_ns),
            (Method::Window, self.window_ns),
            (Method::Vector, self.vector_ns),
            (Method::Mapped, self.mapped_ns),
        ];
        let (method, ns) =
            shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("four methods");
        (method, if ns > 0.0 { ns / self.total_ns() } else { 1.0 })
    }
}

/// The groups of a plan: by a strategy for regular patterns, listed for others.
#[derive(Debug, Clone)]
pub enum PlannedGroups<'a> {
    /// Made while they are asked for.
    Strategy(StrategyGroups<'a>),
    /// Made beforehand.
    Listed(std::vec::IntoIter<Group>),
}

impl Iterator for PlannedGroups<'_> {
    type Item = Group;

    fn next(&mut self) -> Option<Group> {
        match self {
            PlannedGroups::Strategy(groups) => groups.next(),
            PlannedGroups::Listed(groups) => groups.next(),
        }
    }
}
