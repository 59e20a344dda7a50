//! How often a rank looks for messages.
//!
//! MPI offers no descriptor to wait for, so ranks have to look. The pause grows with the time that
//! nothing has happened, by a fixed share: whoever waits for something waits at most so much longer
//! than it took, and a rank at which nothing happens sleeps.

use std::time::{Duration, Instant};

use rustix::event::Timespec;

/// For so long after something has happened there is no pause at all, only a step back behind others.
const BUSY: Duration = Duration::from_micros(60);
/// The share of the quiet time that a pause may add to it: 1/8.
const SHARE: u32 = 8;
/// The longest pause while something may come soon, and after [`ASLEEP`].
const PAUSE_MAX: Duration = Duration::from_millis(1);
const PAUSE_MAX_ASLEEP: Duration = Duration::from_millis(5);
const ASLEEP: Duration = Duration::from_secs(10);

/// The pace of one rank.
#[derive(Debug)]
pub(crate) struct Pace {
    last: Instant,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { last: Instant::now() }
    }

    /// Something has happened.
    pub(crate) fn hurry(&mut self) {
        self.last = Instant::now();
    }

    /// How long to wait for descriptors before looking for messages again.
    pub(crate) fn pause(&self) -> Timespec {
        let pause = pause_after(self.last.elapsed());
        if pause.is_zero() {
            rustix::thread::sched_yield();
        }
        Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() }
    }
}

fn pause_after(quiet: Duration) -> Duration {
    if quiet < BUSY {
        return Duration::ZERO;
    }
    (quiet / SHARE).min(if quiet < ASLEEP { PAUSE_MAX } else { PAUSE_MAX_ASLEEP })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_silence_and_have_an_end() {
        assert_eq!(pause_after(Duration::from_micros(10)), Duration::ZERO);
        assert_eq!(pause_after(Duration::from_micros(800)), Duration::from_micros(100));
        assert_eq!(pause_after(Duration::from_secs(1)), PAUSE_MAX);
        assert_eq!(pause_after(Duration::from_secs(3600)), PAUSE_MAX_ASLEEP);
    }
}
