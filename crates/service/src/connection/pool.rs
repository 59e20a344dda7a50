//! A connection's requests that wait, and the threads that do them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use p9::Tag;

use crate::order::Claims;
use crate::session::Verdict;

/// A worker that has had nothing to do for so long ends.
const WORKER_IDLE: Duration = Duration::from_secs(5);

/// Bodies from this size on are kept for the next ones.
const SPARE_BYTES_MIN: usize = 64 << 10;

/// How many of them.
const SPARE_MAX: usize = 4;

/// One request, taken out of the receive buffer.
pub(crate) struct Job {
    pub(crate) kind: u8,
    pub(crate) tag: Tag,
    pub(crate) body: Vec<u8>,
    pub(crate) claims: Claims,
}

/// What does jobs.
pub(crate) trait Work: Send + Sync + 'static {
    /// Does one job and appends its answer to `frame`.
    fn work(&self, job: &Job, frame: &mut Vec<u8>) -> Verdict;
    /// Sends the answer.
    fn send(&self, frame: &[u8], verdict: Verdict);
    /// Answers a flush whose request is done.
    fn flushed(&self, flush: Tag);
}

/// What becomes of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// The request is answered already, or will never be: answer the flush now.
    Now,
    /// The request is being done; the pool answers the flush after it.
    Later,
}

struct Pending {
    tag: Tag,
    claims: Claims,
    bytes: usize,
    stage: Stage,
    /// Earlier requests that must be done first.
    blockers: usize,
    /// Later requests that wait for this one.
    dependents: Vec<u64>,
    /// Flushes to answer after this one.
    flushes: Vec<Tag>,
}

impl Pending {
    fn take(&mut self) -> Option<Job> {
        match std::mem::replace(&mut self.stage, Stage::Working) {
            Stage::Waiting(job) => Some(job),
            stage @ (Stage::Working | Stage::Answering) => {
                self.stage = stage;
                None
            }
        }
    }

    /// Whether a later request with these claims must wait for this one.
    fn holds_up(&self, claims: &Claims) -> bool {
        !matches!(self.stage, Stage::Answering) && claims.must_follow(&self.claims)
    }
}

/// How far a request is.
enum Stage {
    /// No worker has taken it.
    Waiting(Job),
    /// It is being done.
    Working,
    /// It is done and its answer is on the way: the client may use its tag again any moment, and
    /// nothing waits for it any more but flushes.
    Answering,
}

#[derive(Default)]
struct State {
    /// In order of arrival.
    pending: BTreeMap<u64, Pending>,
    ready: VecDeque<u64>,
    next: u64,
    bytes: usize,
    workers: usize,
    idle: usize,
    closed: bool,
    /// Memory of large bodies, for the next ones.
    spare: Vec<Vec<u8>>,
}

impl State {
    fn keep_spare(&mut self, body: Vec<u8>) {
        if body.capacity() >= SPARE_BYTES_MIN && self.spare.len() < SPARE_MAX {
            self.spare.push(body);
        }
    }
}

/// Bounds of a pool, from [`crate::Limits`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) waiting: usize,
    pub(crate) bytes: usize,
    pub(crate) workers: usize,
}

/// The pool of one connection.
pub(crate) struct Pool<W> {
    work: W,
    bounds: Bounds,
    state: Mutex<State>,
    /// Something is ready, or the pool is closed.
    ready: Condvar,
    /// A job is done.
    done: Condvar,
    /// Jobs waiting or worked on, readable without the lock: nearly always 0.
    count: AtomicUsize,
}

impl<W: Work> Pool<W> {
    pub(crate) fn new(work: W, bounds: Bounds) -> Self {
        Self {
            work,
            bounds,
            state: Mutex::default(),
            ready: Condvar::new(),
            done: Condvar::new(),
            count: AtomicUsize::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn worker(&self) -> &W {
        &self.work
    }

    /// Whether nothing is pending, so that no order needs to be kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Whether a request with these claims must wait for a pending one.
    pub(crate) fn must_wait(&self, claims: &Claims) -> bool {
        self.state().pending.values().any(|earlier| earlier.holds_up(claims))
    }

    /// Whether a pending request has this tag.
    pub(crate) fn has_tag(&self, tag: Tag) -> bool {
        self.state()
            .pending
            .values()
            .any(|pending| pending.tag == tag && !matches!(pending.stage, Stage::Answering))
    }

    /// Memory that a large body may be received into.
    pub(crate) fn spare(&self) -> Vec<u8> {
        self.state().spare.pop().unwrap_or_default()
    }

    /// Waits until everything is answered.
    pub(crate) fn drain(&self) {
        let mut state = self.state();
        while !state.pending.is_empty() {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes a job; waits while the pool is full. Gives the job back if no thread can be had.
    pub(crate) fn submit(self: &Arc<Self>, job: Job) -> Result<(), Job> {
        let bytes = job.body.len();
        let mut state = self.state();
        while !state.closed
            && !state.pending.is_empty()
            && (state.pending.len() >= self.bounds.waiting
                || state.bytes + bytes > self.bounds.bytes)
        {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.workers == 0 && !self.start_worker(&mut state) {
            return Err(job);
        }
        let id = state.next;
        state.next += 1;
        let claims = job.claims;
        let mut blockers = 0;
        for earlier in state.pending.values_mut() {
            if earlier.holds_up(&claims) {
                earlier.dependents.push(id);
                blockers += 1;
            }
        }
        let tag = job.tag;
        let pending = Pending {
            tag,
            claims,
            bytes,
            stage: Stage::Waiting(job),
            blockers,
            dependents: Vec::new(),
            flushes: Vec::new(),
        };
        state.pending.insert(id, pending);
        state.bytes += bytes;
        self.count.fetch_add(1, Ordering::AcqRel);
        if blockers == 0 {
            state.ready.push_back(id);
            self.call_worker(&mut state);
        }
        Ok(())
    }

    /// Sees that somebody takes what has just become ready.
    fn call_worker(self: &Arc<Self>, state: &mut State) {
        if state.idle < state.ready.len() && state.workers < self.bounds.workers {
            // With at least one worker there already, a failure only means less overlap.
            let _ = self.start_worker(state);
        }
        self.ready.notify_one();
    }

    fn start_worker(self: &Arc<Self>, state: &mut State) -> bool {
        let pool = Arc::clone(self);
        let started =
            thread::Builder::new().name("9p-worker".into()).spawn(move || pool.run()).is_ok();
        state.workers += usize::from(started);
        started
    }

    /// Cancels the pending request `old`, which then was never done, or has the flush answered
    /// after it. One that is being done cannot be stopped, and its effects must not be hidden
    /// from the client (flush(5)).
    pub(crate) fn flush(self: &Arc<Self>, old: Tag, flush: Tag) -> Flushed {
        let mut state = self.state();
        // The latest: an answered request's tag may be in use again.
        let found = state
            .pending
            .iter_mut()
            .rev()
            .find(|(_, pending)| pending.tag == old || pending.flushes.contains(&old));
        match found {
            None => Flushed::Now,
            Some((id, Pending { stage: Stage::Waiting(_), .. })) => {
                let id = *id;
                state.ready.retain(|ready| *ready != id);
                self.release(&mut state, id);
                state.pending.remove(&id);
                Flushed::Now
            }
            Some((_, pending)) => {
                pending.flushes.push(flush);
                Flushed::Later
            }
        }
    }

    /// Lets go those that waited for a request.
    fn release(self: &Arc<Self>, state: &mut State, id: u64) {
        let Some(done) = state.pending.get_mut(&id) else { return };
        done.stage = Stage::Answering;
        let dependents = std::mem::take(&mut done.dependents);
        state.bytes -= done.bytes;
        self.count.fetch_sub(1, Ordering::AcqRel);
        for dependent in dependents {
            if let Some(pending) = state.pending.get_mut(&dependent) {
                pending.blockers -= 1;
                if pending.blockers == 0 {
                    state.ready.push_back(dependent);
                    self.call_worker(state);
                }
            }
        }
        self.done.notify_all();
    }

    fn run(self: Arc<Self>) {
        // Kept from job to job: large answers would otherwise cost a page fault every 4 KiB.
        let mut frame = Vec::new();
        let mut state = self.state();
        loop {
            if let Some(id) = state.ready.pop_front() {
                let Some(job) = state.pending.get_mut(&id).and_then(Pending::take) else {
                    continue;
                };
                drop(state);
                frame.clear();
                let verdict = self.work.work(&job, &mut frame);
                {
                    let mut state = self.state();
                    self.release(&mut state, id);
                    state.keep_spare(job.body);
                }
                self.work.send(&frame, verdict);
                state = self.state();
                // Another flush may arrive for as long as the request is in the table.
                while let Some(flush) =
                    state.pending.get_mut(&id).and_then(|pending| first(&mut pending.flushes))
                {
                    drop(state);
                    self.work.flushed(flush);
                    state = self.state();
                }
                state.pending.remove(&id);
                self.done.notify_all();
            } else if state.closed {
                break;
            } else {
                state.idle += 1;
                let (woken, timeout) = self
                    .ready
                    .wait_timeout(state, WORKER_IDLE)
                    .unwrap_or_else(PoisonError::into_inner);
                state = woken;
                state.idle -= 1;
                if timeout.timed_out() && state.ready.is_empty() {
                    break;
                }
            }
        }
        state.workers -= 1;
        drop(state);
        self.done.notify_all();
    }

    /// Drops what no worker has begun, and waits for the rest and for the workers to end.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut state = self.state();
        state.closed = true;
        state.ready.clear();
        state.pending.retain(|_, pending| !matches!(pending.stage, Stage::Waiting(_)));
        self.ready.notify_all();
        while state.workers > 0 {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.pending.clear();
        state.bytes = 0;
        self.count.store(0, Ordering::Release);
    }
}

fn first(tags: &mut Vec<Tag>) -> Option<Tag> {
    if tags.is_empty() { None } else { Some(tags.remove(0)) }
}
