//! What came of a scenario.

use matching::{Load, Recording};

/// Figures of all cycles together.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Messages between nodes, without data.
    pub control: Tally,
    /// Messages with data; what one matcher tells an owner to send to a reader is one of them.
    pub data: Tally,
    /// Requests of each matcher.
    pub loads: Vec<Load>,
    /// How long each matcher has matched on this machine, in time of the processor.
    pub matched_s: Vec<f64>,
    /// How long each has matched on the simulated one.
    pub matched_virtual_s: Vec<f64>,
    /// Virtual time until the last reader had everything.
    pub read_s: f64,
    /// Virtual time until the last writer knew it.
    pub written_s: f64,
    /// The same for each cycle by itself, until everybody was done.
    pub cycles_s: Vec<f64>,
    /// Who sent what to whom in the last cycle.
    pub recording: Recording,
}

/// How many, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Outcome {
    /// Requests that a matcher had on average.
    #[must_use]
    pub fn requests_mean(&self) -> f64 {
        let sum: u64 = self.loads.iter().map(Load::requests).sum();
        sum as f64 / self.loads.len().max(1) as f64
    }

    /// Requests of the one that had the most.
    #[must_use]
    pub fn requests_max(&self) -> u64 {
        self.loads.iter().map(Load::requests).max().unwrap_or(0)
    }

    /// How many times the average the greatest load is; 1 is perfect.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        self.requests_max() as f64 / self.requests_mean().max(f64::MIN_POSITIVE)
    }

    /// The longest time of a matcher, on this machine.
    #[must_use]
    pub fn matched_max_s(&self) -> f64 {
        self.matched_s.iter().copied().fold(0.0, f64::max)
    }

    /// The longest time of a matcher, on the simulated machine.
    #[must_use]
    pub fn matched_virtual_max_s(&self) -> f64 {
        self.matched_virtual_s.iter().copied().fold(0.0, f64::max)
    }
}
