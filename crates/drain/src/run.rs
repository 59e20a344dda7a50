//! Draining until there is nothing left, or until it is stopped, whatever the target does meanwhile.

use std::time::{Duration, Instant};

use crate::drain::Drain;
use crate::error::{Error, Result};
use crate::progress::Phase;

/// How often is looked whether something new counts, unless somebody [wakes](crate::Stop::wake) it.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The same, where there is much to look through.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(5);

/// Pauses that double, from a second to half a minute.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    last: Option<Duration>,
}

impl Pauses {
    pub(crate) fn next(&mut self) -> Duration {
        let next = self.last.map_or(Duration::from_secs(1), |last| last * 2);
        let next = next.min(Duration::from_secs(30));
        self.last = Some(next);
        next
    }

    fn reset(&mut self) {
        self.last = None;
    }
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When all that counts is in the target.
    Drained,
    /// When it is stopped.
    Stopped,
}

impl Drain {
    /// Takes steps, and makes pauses where the target does not want. An error that may pass is told to `trouble` when
    /// it comes and when it changes.
    ///
    /// # Errors
    /// What will not pass: the log's own errors. `Stopped`, unless it runs until it is stopped.
    pub fn run(&mut self, until: Until, mut trouble: impl FnMut(&Error)) -> Result<()> {
        let (progress, stop) = (self.progress(), self.stopper());
        let mut pauses = Pauses::default();
        let mut told = String::new();
        loop {
            let begun = Instant::now();
            // Before the step: what becomes durable while it is taken may not be in it.
            let last = self.log().status().durable;
            match self.step() {
                Ok(step) => {
                    pauses.reset();
                    told.clear();
                    if step.more || step.records > 0 {
                        continue;
                    }
                    progress.update(|now| {
                        now.phase = Phase::Idle;
                        now.bytes_left = 0;
                    });
                    if until == Until::Drained {
                        return Ok(());
                    }
                    if step.pending {
                        // To look through many records that do not count yet takes its time.
                        stop.wait((begun.elapsed() * 5).clamp(LOOK_EVERY, LOOK_EVERY_MAX));
                    }
                    // Without new records there is nothing new to count.
                    while !stop.is_stopped() && self.log().status().durable == last && !step.pending
                    {
                        stop.wait(LOOK_EVERY);
                    }
                }
                Err(Error::Stopped) => {
                    progress.update(|now| now.phase = Phase::Idle);
                    return if until == Until::Stopped { Ok(()) } else { Err(Error::Stopped) };
                }
                Err(error) if error.is_retryable() => {
                    let pause = pauses.next();
                    let text = text(&error);
                    if text != told {
                        trouble(&error);
                        told.clone_from(&text);
                    }
                    let seconds = pause.as_secs();
                    progress.update(|now| now.phase = Phase::Waiting { error: text, seconds });
                    stop.pause(pause);
                }
                Err(error) => {
                    progress.update(|now| now.phase = Phase::Failed { error: text(&error) });
                    return Err(error);
                }
            }
        }
    }
}

/// An error with its causes.
fn text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Pauses;

    #[test]
    fn pauses_grow_to_half_a_minute() {
        let mut pauses = Pauses::default();
        let seconds: Vec<u64> = (0..7).map(|_| pauses.next().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
        pauses.reset();
        assert_eq!(pauses.next().as_secs(), 1);
    }
}
