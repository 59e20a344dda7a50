//! Segments: made ready ahead of need, filled, given away when drained.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::{Log, Segment, State};
use crate::elsewhere::ELSEWHERE;
use crate::error::{Error, Result, is_no_space};
use crate::format::{Checkpoint, SegmentHeader, Use};
use crate::ids::Sequence;
use crate::names;

/// A disk that was full may have space after so long: another program had filled it.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(200);

impl Log {
    fn segments_max(&self) -> u64 {
        self.options.size_max_bytes / self.manifest.segment_bytes
    }

    /// How many segments the log can still begin without exceeding its size.
    pub(crate) fn spare(&self, state: &State) -> u64 {
        let unmade = match state.disk_full {
            Some(_) => 0,
            None => self.segments_max().saturating_sub(state.files),
        };
        state.ready.len() as u64 + state.free.len() as u64 + unmade
    }

    /// Whether the log may become larger, and the disk may have a place for that.
    pub(crate) fn may_grow(&self, state: &State) -> bool {
        let is_full = state.disk_full.is_some_and(|tried| tried.elapsed() < TRY_AGAIN_AFTER);
        state.files < self.segments_max() && !is_full
    }

    /// Makes one segment ready if fewer than [`Options::ready_segments`](super::Options) are: writes a new
    /// one full of zeros, or gives one that was drained its new number. Returns whether there was anything
    /// to do. It is meant to be called by a thread of its own, so that no write waits for it.
    ///
    /// # Errors
    /// `Failed`, `System`. A full disk is none: writes will be told.
    pub fn prepare_ahead(&self) -> Result<bool> {
        {
            let state = self.state();
            if let Some(failure) = self.failure(&state) {
                return Err(failure);
            }
            let possible = !state.free.is_empty() || self.may_grow(&state);
            if !possible || state.ready.len() >= self.options.ready_segments {
                return Ok(false);
            }
        }
        match self.make_ready(self.options.ready_segments, true) {
            Ok(()) => Ok(true),
            // There is nothing to do until something is drained.
            Err(Error::System { .. }) if self.state().disk_full.is_some() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sees to it that at least one segment is ready, and makes one more while there are fewer than `want`. What is
    /// limited makes no file beyond the log's size: others may have made the last one since it was decided to.
    pub(crate) fn make_ready(&self, want: usize, limited: bool) -> Result<()> {
        let mut next_slot = self.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        let found = {
            let mut state = self.state();
            if let Some(failure) = self.failure(&state) {
                return Err(failure);
            }
            let is_full = limited && !self.may_grow(&state);
            if state.ready.len() >= want.max(1) || (is_full && state.free.is_empty()) {
                return Ok(());
            }
            state.free.pop()
        };
        let (segment, made) = match found {
            Some(segment) => (segment, false),
            None => {
                let segment = self.make_segment(*next_slot)?;
                *next_slot += 1;
                (segment, true)
            }
        };
        let used = self.number(&segment).map_err(|error| self.fail(error))?;
        let mut state = self.state();
        if made {
            state.files += 1;
            state.disk_full = None;
        }
        state.ready.push_back((segment, used));
        self.announce(state);
        Ok(())
    }

    /// A new file, full of zeros: later writes change no length and need no space.
    fn make_segment(&self, slot: u32) -> Result<Arc<Segment>> {
        let name = names::segment(slot);
        let system = |source| Error::system("making", &self.place, &name, source);
        let file = match self.media.create(&name) {
            Ok(file) => file,
            Err(error) => {
                if is_no_space(&error) {
                    self.state().disk_full = Some(Instant::now());
                }
                return Err(system(error));
            }
        };
        match file.fill(self.manifest.segment_bytes).and_then(|()| file.sync()) {
            Ok(()) => {
                let file = Arc::from(file);
                Ok(Arc::new(Segment { name, file, number: AtomicU32::new(0) }))
            }
            // Nobody relies on the file yet; a full disk is no failure of the log.
            Err(error) => {
                let full = is_no_space(&error);
                let removed = self.media.remove(&name);
                let error = system(error);
                if !full || removed.is_err() {
                    return Err(self.fail(error));
                }
                self.state().disk_full = Some(Instant::now());
                Err(error)
            }
        }
    }

    /// Gives a segment its number, durably: before any record is written with it, and so that it follows
    /// the one that got its number before.
    fn number(&self, segment: &Segment) -> Result<Use> {
        let mut checkpoint = self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
        let Checkpoint { highest, last, first, .. } = checkpoint.value;
        let error = |source| Error::system("writing", &self.place, &segment.name, source);
        // Higher ones are places in other logs.
        let number =
            highest.checked_add(1).filter(|number| *number < ELSEWHERE).ok_or_else(|| {
                error(io::Error::other("the log has used all numbers that segments can have"))
            })?;
        let used = Use { number, salt: random().map_err(error)? };
        let header = SegmentHeader {
            log: self.manifest.log,
            used,
            previous: last,
            segment_bytes: self.manifest.segment_bytes,
        };
        segment.file.write_at(&[IoSlice::new(&header.encode())], 0).map_err(error)?;
        segment.file.sync().map_err(error)?;
        let first = if first == 0 { number } else { first };
        let value = Checkpoint { highest: number, last: number, first, ..checkpoint.value };
        checkpoint
            .write_synced(value)
            .map_err(|e| Error::system("writing", &self.place, names::CHECKPOINT, e))?;
        Ok(used)
    }

    /// Changes the checkpoint, durably.
    pub(crate) fn update_checkpoint(&self, change: impl FnOnce(&mut Checkpoint)) -> Result<()> {
        let mut checkpoint = self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
        let mut value = checkpoint.value;
        change(&mut value);
        let written = checkpoint.write_synced(value);
        drop(checkpoint);
        written.map_err(|source| {
            self.fail(Error::system("writing", &self.place, names::CHECKPOINT, source))
        })
    }

    /// Takes a ready segment for the tail. The caller knows that there is one.
    pub(crate) fn begin_segment(&self, state: &mut State) -> bool {
        let Some((segment, used)) = state.ready.pop_front() else {
            return false;
        };
        segment.number.store(used.number, Ordering::Release);
        self.readable
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(used.number, segment.clone());
        state.live.push_back(super::Live {
            segment: segment.clone(),
            used,
            first: state.next,
            last: state.next,
            dirty: true,
        });
        let offset = crate::format::SEGMENT_HEADER_BYTES;
        state.tail = Some(super::Tail { segment, used, offset });
        true
    }

    /// Gives away the segments of which all records are drained.
    pub(crate) fn recycle(&self) -> Result<()> {
        // While a segment gets its number the checkpoint's chain must not be shortened beneath it.
        let _preparing = self.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, drained, given) = {
            let mut state = self.state();
            let drained = state.drained;
            let tail = state.tail.as_ref().map(|tail| tail.used.number);
            let mut given = Vec::new();
            while let Some(front) = state.live.front() {
                // The last one stays, so that the log's order has a beginning.
                if state.live.len() < 2 || front.last > drained || Some(front.used.number) == tail {
                    break;
                }
                given.extend(state.live.pop_front());
            }
            (state.live.front().map(|live| live.used.number), drained, given)
        };
        self.update_checkpoint(|checkpoint| {
            checkpoint.drained = drained;
            checkpoint.first = first.unwrap_or(checkpoint.first);
        })?;
        let mut readable = self.readable.write().unwrap_or_else(PoisonError::into_inner);
        for live in &given {
            // Who reads it at this moment looks at the number afterwards.
            live.segment.number.store(0, Ordering::Release);
            readable.remove(&live.used.number);
        }
        drop(readable);
        let mut state = self.state();
        if !given.is_empty() {
            state.disk_full = None;
        }
        state.free.extend(given.into_iter().map(|live| live.segment));
        state.rules.forget(Sequence(drained));
        self.announce(state);
        Ok(())
    }
}

/// What nobody can have foreseen.
fn random() -> io::Result<u32> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u32::from_le_bytes(bytes))
}
