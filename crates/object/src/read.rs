//! Reading one version of an object: from the cache, from what is on its way, or by requests that are planned for all
//! who want something at the moment.
//!
//! 1. A read notes its place; where it is one of a sequence, parts ahead of it are asked for.
//! 2. What is in the cache or on its way is taken from there.
//! 3. What is not is put on a list. Who comes first waits a moment, if others read at the same time, and has requests made
//!    for all that is on the list then ([`plan`](crate::plan)).
//!
//! Every request is for the version that was opened. One that finds another is the end of this reader: reads fail from then
//! on, as what is read must never be of two versions.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use p9::Errno;
use store::Result;
use tokio::sync::Semaphore;

use crate::bucket::{Bucket, Meta};
use crate::cache::{Cache, Version};
use crate::error::{Trouble, refusal};
use crate::memory::Memory;
use crate::near::Near;
use crate::plan::{self, Cost};
use crate::runtime::spawn;
use crate::sequence::Sequences;

/// How long who asks waits for others, next to which a request takes ten times as long at least.
const GATHER: Duration = Duration::from_micros(500);

/// What is fetched at least where a file is read from its beginning: formats have their header there.
const HEAD_BYTES: u64 = 128 << 10;

/// What all readers of a store share.
pub(crate) struct Shared {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) cache: Cache,
    pub(crate) memory: Arc<Memory>,
    /// Requests under way together.
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) together: u32,
    pub(crate) request_bytes: u64,
    pub(crate) read_ahead_bytes: u64,
    pub(crate) cost: Cost,
}

/// A request that is under way.
struct Flight {
    range: Range<u64>,
    done: Mutex<Option<std::result::Result<Bytes, Errno>>>,
    arrived: Condvar,
}

impl Flight {
    fn wait(&self) -> std::result::Result<Bytes, Errno> {
        let mut done = guard(&self.done);
        loop {
            if let Some(done) = &*done {
                return done.clone();
            }
            done = self.arrived.wait(done).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[derive(Default)]
struct State {
    flights: Vec<Arc<Flight>>,
    wanted: Vec<Range<u64>>,
    near: Near,
    /// Somebody is about to ask for what is wanted.
    is_gathering: bool,
}

pub(crate) struct Reader {
    shared: Arc<Shared>,
    key: String,
    meta: Meta,
    version: Version,
    sequences: Mutex<Sequences>,
    state: Mutex<State>,
    asked: Condvar,
    readers: AtomicUsize,
    is_stale: AtomicBool,
}

/// Counts who reads.
struct Present<'a>(&'a AtomicUsize);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Reader {
    pub(crate) fn new(shared: &Arc<Shared>, key: &str, meta: Meta) -> Self {
        let etag = meta.etag.clone().unwrap_or_else(|| {
            format!("{}.{}-{}", meta.mtime.seconds, meta.mtime.nanoseconds, meta.size)
        });
        Self {
            shared: Arc::clone(shared),
            key: key.to_owned(),
            meta,
            version: Arc::new((key.to_owned(), etag)),
            sequences: Mutex::new(Sequences::new(shared.read_ahead_bytes)),
            state: Mutex::default(),
            asked: Condvar::new(),
            readers: AtomicUsize::new(0),
            is_stale: AtomicBool::new(false),
        }
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Fills `buffer` from `offset`; short at the end of the object only.
    pub(crate) fn read_at(self: &Arc<Self>, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let end = offset.saturating_add(buffer.len() as u64).min(self.meta.size);
        if offset >= end {
            return Ok(0);
        }
        let others = self.readers.fetch_add(1, Ordering::Relaxed);
        let _present = Present(&self.readers);
        let ahead = guard(&self.sequences).note(&(offset..end));
        let is_sequential = ahead.is_some();
        if let Some(ahead) = ahead {
            self.fetch_ahead(ahead);
        }
        let mut at = offset;
        while at < end {
            if self.is_stale.load(Ordering::Relaxed) {
                return Err(refusal("read", Errno::ESTALE));
            }
            let bytes = match self.shared.cache.find(&self.version, at) {
                Some(bytes) => bytes,
                None => {
                    let flight = self
                        .flight_of(at)
                        .or_else(|| self.want(at..end, is_sequential, others > 0));
                    // Without one it has arrived, or was asked for with those of others and has arrived.
                    let Some(flight) = flight else { continue };
                    let whole = flight.wait().map_err(|errno| refusal("read", errno))?;
                    whole.slice((at - flight.range.start) as usize..)
                }
            };
            let len = bytes.len().min((end - at) as usize);
            let to = (at - offset) as usize;
            buffer[to..to + len].copy_from_slice(&bytes[..len]);
            at += len as u64;
        }
        Ok((end - offset) as usize)
    }

    /// What [`Self::read_at`] would give for so many bytes, if all of it is in memory by now.
    pub(crate) fn at_hand(self: &Arc<Self>, offset: u64, len: usize) -> Option<Vec<Bytes>> {
        let end = offset.saturating_add(len as u64).min(self.meta.size);
        if offset >= end || self.is_stale.load(Ordering::Relaxed) {
            return None;
        }
        let mut pieces = Vec::new();
        let mut at = offset;
        while at < end {
            let bytes = self.shared.cache.find(&self.version, at)?;
            let piece = bytes.slice(..bytes.len().min((end - at) as usize));
            at += piece.len() as u64;
            pieces.push(piece);
        }
        let ahead = guard(&self.sequences).note(&(offset..end));
        if let Some(ahead) = ahead {
            self.fetch_ahead(ahead);
        }
        Some(pieces)
    }

    fn flight_of(&self, at: u64) -> Option<Arc<Flight>> {
        flight_of(&guard(&self.state), at)
    }

    /// Has `range` asked for, and says what its beginning is under way with.
    fn want(
        self: &Arc<Self>,
        mut range: Range<u64>,
        is_sequential: bool,
        has_others: bool,
    ) -> Option<Arc<Flight>> {
        let at = range.start;
        if range.start == 0 {
            range.end = range.end.max(HEAD_BYTES.min(self.meta.size));
        }
        let mut state = guard(&self.state);
        let missing = self.missing(&state, range);
        state.wanted.extend(missing);
        if state.is_gathering {
            // Whoever gathers asks for this, too.
            while state.is_gathering {
                state = self.asked.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            return flight_of(&state, at);
        }
        if has_others && !is_sequential {
            state.is_gathering = true;
            drop(state);
            std::thread::sleep(GATHER);
            state = guard(&self.state);
            state.is_gathering = false;
        }
        let Shared { cost, request_bytes, together, .. } = *self.shared;
        let mut wanted = std::mem::take(&mut state.wanted);
        if !is_sequential {
            let reach = cost.reach_bytes();
            let wide: Vec<_> =
                wanted.into_iter().map(|range| state.near.widen(range, reach)).collect();
            wanted = wide.into_iter().flat_map(|range| self.missing(&state, range)).collect();
        }
        for request in plan::requests(wanted, cost, request_bytes, together) {
            self.send(&mut state, request);
        }
        let flight = flight_of(&state, at);
        drop(state);
        self.asked.notify_all();
        flight
    }

    /// Parts of `range` that are neither here nor on their way.
    fn missing(&self, state: &State, range: Range<u64>) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut at = range.start;
        while at < range.end {
            if let Some(bytes) = self.shared.cache.find(&self.version, at) {
                at += bytes.len() as u64;
            } else if let Some(flight) = state.flights.iter().find(|f| f.range.contains(&at)) {
                at = flight.range.end;
            } else {
                let flights = state.flights.iter().map(|flight| flight.range.start);
                let next = flights.chain(self.shared.cache.next(&self.version, at));
                let end = next.filter(|start| *start > at).min().unwrap_or(u64::MAX).min(range.end);
                missing.push(at..end);
                at = end;
            }
        }
        missing
    }

    fn fetch_ahead(self: &Arc<Self>, ahead: Range<u64>) {
        let ahead = ahead.start..ahead.end.min(self.meta.size);
        if ahead.start >= ahead.end {
            return;
        }
        let parts_bytes = ((ahead.end - ahead.start) / 4).clamp(1 << 20, self.shared.request_bytes);
        let mut state = guard(&self.state);
        for part in self.missing(&state, ahead) {
            for request in plan::cut(part, parts_bytes) {
                self.send(&mut state, request);
            }
        }
    }

    /// Has a range fetched.
    fn send(self: &Arc<Self>, state: &mut MutexGuard<'_, State>, range: Range<u64>) {
        let done = Mutex::default();
        let flight = Arc::new(Flight { range: range.clone(), done, arrived: Condvar::new() });
        state.flights.push(Arc::clone(&flight));
        let reader = Arc::clone(self);
        spawn(async move {
            let slot = Arc::clone(&reader.shared.slots).acquire_owned().await;
            let Shared { bucket, memory, .. } = &*reader.shared;
            let got = bucket.get(&reader.key, range, &reader.meta, memory).await;
            drop(slot);
            reader.arrived(&flight, got);
        });
    }

    fn arrived(&self, flight: &Arc<Flight>, got: std::result::Result<Bytes, object_store::Error>) {
        let outcome = match got {
            Ok(bytes) => {
                self.shared.cache.keep(&self.version, flight.range.start, bytes.clone());
                Ok(bytes)
            }
            Err(error) => {
                let trouble = Trouble::of(&error);
                // Removed is changed, for who has it open.
                let is_gone = matches!(trouble, Trouble::Changed | Trouble::Missing);
                if is_gone {
                    self.is_stale.store(true, Ordering::Relaxed);
                }
                let errno = self.shared.bucket.fail("read", &self.key, &error).to_errno();
                Err(if is_gone { Errno::ESTALE } else { errno })
            }
        };
        // In this order, so that who finds it no longer on its way finds it in the cache.
        *guard(&flight.done) = Some(outcome);
        flight.arrived.notify_all();
        guard(&self.state).flights.retain(|other| !Arc::ptr_eq(other, flight));
    }
}

fn flight_of(state: &State, at: u64) -> Option<Arc<Flight>> {
    state.flights.iter().find(|flight| flight.range.contains(&at)).cloned()
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
