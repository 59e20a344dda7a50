//! How far a drain is, for whoever wants to know it from another thread.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hostlog::Sequence;

/// What a drain is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing: all that counts is in the target.
    #[default]
    Idle,
    /// Writing to the target.
    Draining,
    /// The target refused or cannot be reached; it is tried again after so many seconds.
    Waiting {
        /// Why.
        error: String,
        /// How long a pause it makes.
        seconds: u64,
    },
    /// It will not go on.
    Failed {
        /// Why.
        error: String,
    },
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// What it is doing.
    pub phase: Phase,
    /// Everything up to here is in the target.
    pub drained: Sequence,
    /// Bytes written to the target since it began.
    pub bytes: u64,
    /// Bytes of files that had lost their last name, and were therefore not written.
    pub bytes_spared: u64,
    /// Files written; one that was written in several steps counts as often.
    pub files: u64,
    /// Changes of names made.
    pub names: u64,
    /// Epochs of groups of which something was drained.
    pub epochs: u64,
    /// Bytes that are left to be written, about.
    pub bytes_left: u64,
    /// Whether something does not count yet and stays in the log.
    pub pending: bool,
    /// How fast it has been of late.
    pub bytes_per_second: f64,
}

impl Snapshot {
    /// How long it will take, if it stays as fast.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        if self.bytes_left == 0 {
            return Some(Duration::ZERO);
        }
        let seconds = self.bytes_left as f64 / self.bytes_per_second;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// Counts that a drain keeps.
#[derive(Debug, Default)]
pub struct Progress {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    now: Snapshot,
    /// Counts of bytes at moments of the last seconds.
    marks: VecDeque<(Instant, u64)>,
}

/// How far back the speed is measured.
const SPAN: Duration = Duration::from_secs(10);

impl Progress {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let mut inner = self.inner();
        inner.look(Instant::now());
        inner.now.clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Snapshot)) {
        change(&mut self.inner().now);
    }

    /// So many bytes more are in the target.
    pub(crate) fn written(&self, bytes: u64) {
        let mut inner = self.inner();
        inner.now.bytes += bytes;
        inner.now.bytes_left = inner.now.bytes_left.saturating_sub(bytes);
        inner.look(Instant::now());
    }

    /// Begins to be busy: time before does not count for the speed.
    pub(crate) fn begin(&self) {
        let mut inner = self.inner();
        if inner.now.phase != Phase::Draining {
            inner.now.phase = Phase::Draining;
            let mark = (Instant::now(), inner.now.bytes);
            inner.marks = VecDeque::from([mark]);
        }
    }
}

impl Inner {
    /// Brings the speed up to date.
    fn look(&mut self, now: Instant) {
        if self.now.phase != Phase::Draining {
            return;
        }
        let is_old = |(at, _): &(Instant, u64)| now.saturating_duration_since(*at) > SPAN;
        while self.marks.get(1).is_some_and(is_old) {
            self.marks.pop_front();
        }
        if self.marks.back().is_none_or(|(at, _)| now.saturating_duration_since(*at) > SPAN / 50) {
            self.marks.push_back((now, self.now.bytes));
        }
        if let Some((at, bytes)) = self.marks.front() {
            let seconds = now.saturating_duration_since(*at).as_secs_f64();
            if seconds > 0.0 {
                self.now.bytes_per_second = (self.now.bytes - bytes) as f64 / seconds;
            }
        }
    }
}
