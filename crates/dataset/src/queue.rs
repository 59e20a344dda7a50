//! Writes that are still to reach the replicas of kind `async`, in order, and not too many.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that may wait.
pub(crate) const BYTES_MAX: usize = 64 << 20;

/// A write through a view.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) view: usize,
    pub(crate) offset: u64,
    pub(crate) data: Box<[u8]>,
}

/// What a worker does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This.
    Job(Job),
    /// There was nothing for a while.
    Idle,
    /// There will be nothing more.
    End,
}

/// A bounded queue with one worker.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    bytes_max: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    /// The worker has a job in hand.
    working: bool,
    closed: bool,
}

impl Queue {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { waiting: Mutex::default(), changed: Condvar::new(), bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job, when there is room for it; one that is larger than all room goes alone.
    pub(crate) fn push(&self, job: Job) {
        let full = |waiting: &mut Waiting| {
            !waiting.jobs.is_empty() && waiting.bytes + job.data.len() > self.bytes_max
        };
        let mut waiting =
            self.changed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        waiting.bytes += job.data.len();
        waiting.jobs.push_back(job);
        drop(waiting);
        self.changed.notify_all();
    }

    /// For the worker: the job before is done; what is next? Waits at most so long.
    pub(crate) fn next(&self, at_most: Duration) -> Next {
        let mut waiting = self.lock();
        waiting.working = false;
        self.changed.notify_all();
        let nothing = |waiting: &mut Waiting| waiting.jobs.is_empty() && !waiting.closed;
        let mut waiting = self
            .changed
            .wait_timeout_while(waiting, at_most, nothing)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        match waiting.jobs.pop_front() {
            Some(job) => {
                waiting.bytes -= job.data.len();
                waiting.working = true;
                drop(waiting);
                self.changed.notify_all();
                Next::Job(job)
            }
            None if waiting.closed => Next::End,
            None => Next::Idle,
        }
    }

    /// Whether every job is done.
    pub(crate) fn is_idle(&self) -> bool {
        let waiting = self.lock();
        waiting.jobs.is_empty() && !waiting.working
    }

    /// Waits until every job is done.
    pub(crate) fn drain(&self) {
        let busy = |waiting: &mut Waiting| waiting.working || !waiting.jobs.is_empty();
        drop(self.changed.wait_while(self.lock(), busy).unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets the worker end when it has done what there is.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn job(offset: u64, len: usize) -> Job {
        Job { view: 0, offset, data: vec![0; len].into() }
    }

    #[test]
    fn jobs_come_in_order_and_never_too_many_wait() {
        let queue = Queue::new(100);
        let (sent, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| {
                for offset in 0..50 {
                    queue.push(job(offset, 30));
                    sent.fetch_add(1, Ordering::SeqCst);
                }
                queue.drain();
                assert!(queue.is_idle());
                queue.close();
            });
            let mut seen = Vec::new();
            loop {
                match queue.next(Duration::from_secs(10)) {
                    Next::Job(job) => {
                        std::thread::sleep(Duration::from_millis(1));
                        // Three wait, one is in hand, and one may just have been taken.
                        let ahead = sent.load(Ordering::SeqCst) - seen.len();
                        most.fetch_max(ahead, Ordering::SeqCst);
                        seen.push(job.offset);
                    }
                    Next::Idle => panic!("nothing for ten seconds"),
                    Next::End => break,
                }
            }
            seen
        });
        assert_eq!(seen, (0..50).collect::<Vec<u64>>());
        assert!(most.load(Ordering::SeqCst) <= 5, "{most:?} were ahead");
    }

    #[test]
    fn a_job_larger_than_the_queue_goes_alone() {
        let queue = Queue::new(10);
        queue.push(job(0, 1000));
        assert!(!queue.is_idle());
        assert_eq!(queue.next(Duration::ZERO), Next::Job(job(0, 1000)));
        assert!(!queue.is_idle());
        assert_eq!(queue.next(Duration::ZERO), Next::Idle);
        assert!(queue.is_idle());
        queue.close();
        assert_eq!(queue.next(Duration::ZERO), Next::End);
    }
}
