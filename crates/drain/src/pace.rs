//! Stopping, waiting, and not being faster than allowed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Ends a drain from another thread, and wakes one that waits.
#[derive(Debug, Default)]
pub struct Stop {
    stopped: AtomicBool,
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Asks for the end: what is being written is finished, no more is begun.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    /// There may be something to do.
    pub fn wake(&self) {
        *self.woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Waits so long, or until woken.
    pub(crate) fn wait(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !*woken && !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            woken =
                self.changed.wait_timeout(woken, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        *woken = false;
    }

    /// Waits so long whatever there is to do, unless the end is asked for.
    pub(crate) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.wait(left);
        }
    }
}

/// A token bucket: so many bytes a second, with what one second allows as the most at once.
#[derive(Debug)]
pub(crate) struct Bucket {
    bytes_per_second: Option<u64>,
    /// When it was looked at, and how many bytes were left then; less than nothing where a write was larger.
    level: Mutex<(Instant, f64)>,
}

impl Bucket {
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Self {
        let bytes_per_second = bytes_per_second.filter(|rate| *rate > 0);
        Self { bytes_per_second, level: Mutex::new((Instant::now(), 0.0)) }
    }

    /// Takes `bytes` out, and says how long to wait before they are used.
    fn take(&self, bytes: u64, now: Instant) -> Duration {
        let Some(rate) = self.bytes_per_second else { return Duration::ZERO };
        let rate = rate as f64;
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let gained = now.saturating_duration_since(level.0).as_secs_f64() * rate;
        let left = (level.1 + gained).min(rate) - bytes as f64;
        *level = (now, left);
        if left >= 0.0 { Duration::ZERO } else { Duration::from_secs_f64(-left / rate) }
    }

    /// Waits until `bytes` may be written.
    pub(crate) fn wait(&self, bytes: u64, stop: &Stop) -> Result<()> {
        let time = self.take(bytes, Instant::now());
        if !time.is_zero() {
            stop.pause(time);
        }
        stop.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_lets_through_as_much_as_its_rate_says() {
        let bucket = Bucket::new(Some(1000));
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(bucket.take(0, at(100)), Duration::ZERO);
        assert_eq!(bucket.take(1000, at(100)), Duration::ZERO);
        // The next thousand has to be waited for, and the thousand after that twice as long.
        assert_eq!(bucket.take(1000, at(100)), Duration::from_secs(1));
        assert_eq!(bucket.take(1000, at(100)), Duration::from_secs(2));
        // A long rest does not count for more than one second.
        assert_eq!(bucket.take(2000, at(200)), Duration::from_secs(1));
        assert_eq!(Bucket::new(None).take(u64::MAX, start), Duration::ZERO);
    }

    #[test]
    fn who_is_stopped_does_not_wait() {
        let stop = Stop::default();
        stop.stop();
        stop.pause(Duration::from_secs(3600));
        assert!(matches!(Bucket::new(Some(1)).wait(3600, &stop), Err(Error::Stopped)));
    }
}
