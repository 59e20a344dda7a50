//! The log while it is open: state that all threads share.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::checkpoint::CheckpointFile;
use crate::elsewhere::{ELSEWHERE, Others};
use crate::error::{Error, Result};
use crate::format::{Header, RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, Use};
use crate::ids::{Position, Sequence};
use crate::manifest::{Description, Manifest};
use crate::media::{Media, MediaFile};
use crate::rules::{InDoubt, Rules};

mod append;
mod commit;
mod open;
mod segments;

pub use append::{Change, Placed, Placements, Write};
pub(crate) use append::{Draft, Value};
pub use commit::Prepare;
pub use open::{Options, Recovery};

/// A segment file and which use of it this is; 0 while it is in none.
pub(crate) struct Segment {
    pub(crate) name: String,
    pub(crate) file: Arc<dyn MediaFile>,
    pub(crate) number: AtomicU32,
}

/// A segment that holds records.
pub(crate) struct Live {
    pub(crate) segment: Arc<Segment>,
    pub(crate) used: Use,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Whether something in it may not be durable.
    pub(crate) dirty: bool,
}

/// Where the next record goes.
pub(crate) struct Tail {
    pub(crate) segment: Arc<Segment>,
    pub(crate) used: Use,
    pub(crate) offset: u64,
}

pub(crate) struct State {
    pub(crate) failed: Option<Arc<Error>>,
    /// The sequence of the next record.
    pub(crate) next: u64,
    /// All records up to here are written, though not durable.
    pub(crate) written: u64,
    /// Whether those after `written` are, in order.
    pub(crate) writing: VecDeque<bool>,
    /// All records up to here are durable.
    pub(crate) durable: u64,
    /// Whether somebody is syncing.
    pub(crate) syncing: bool,
    /// Bytes written since the last sync began.
    pub(crate) unsynced: u64,
    /// Bytes written since the drain was told that there is much to do.
    pub(crate) untold: u64,
    /// So many of the unsynced somebody waits for, to sync them.
    pub(crate) sync_ahead_at: Option<u64>,
    pub(crate) drained: u64,
    /// The last record before the log was opened, while nothing has been written since.
    pub(crate) restart: Option<u64>,
    pub(crate) tail: Option<Tail>,
    pub(crate) live: VecDeque<Live>,
    /// Segments that records can go to at once, in the order of their numbers.
    pub(crate) ready: VecDeque<(Arc<Segment>, Use)>,
    /// Segments whose content nobody needs.
    pub(crate) free: Vec<Arc<Segment>>,
    /// How many segment files there are.
    pub(crate) files: u64,
    /// Records that decide, waiting to be durable.
    pub(crate) decisions: VecDeque<(Header, Vec<u8>)>,
    pub(crate) rules: Rules,
    /// When the disk had no place for a further segment, if it had none the last time.
    pub(crate) disk_full: Option<Instant>,
    /// How many threads wait for a change.
    pub(crate) waiting: usize,
}

/// Who wants to know when there is something to drain.
pub(crate) type Watcher = Arc<dyn Fn() + Send + Sync>;

/// After so many bytes that count now the drain is told; until there are so many it looks by itself, now and then.
const MUCH_BYTES: u64 = 1 << 20;

/// An open log. All methods may be called from any thread.
pub struct Log {
    pub(crate) media: Arc<dyn Media>,
    pub(crate) place: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) options: Options,
    pub(crate) state: Mutex<State>,
    /// Something in the state has changed that somebody may wait for.
    pub(crate) changed: Condvar,
    /// There is as much to sync as somebody waits for.
    pub(crate) grown: Condvar,
    /// Is told when much counts that did not count before.
    pub(crate) watcher: Mutex<Option<Watcher>>,
    pub(crate) checkpoint: Mutex<CheckpointFile>,
    /// Held while a segment is made ready; the number of the next file.
    pub(crate) preparing: Mutex<u32>,
    /// Segments that can be read, by use.
    pub(crate) readable: RwLock<BTreeMap<u32, Arc<Segment>>>,
    /// Logs of other nodes that records speak of.
    pub(crate) others: Others,
    pub(crate) _lock: Box<dyn Send + Sync>,
}

/// How a log stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What its owner said of it.
    pub description: Description,
    /// The last record.
    pub last: Sequence,
    /// All up to here are durable.
    pub durable: Sequence,
    /// All up to here are in the target.
    pub drained: Sequence,
    /// Segments that hold records.
    pub live_segments: u64,
    /// Segments that records can go to at once.
    pub ready_segments: u64,
    /// Segment files, whatever they hold.
    pub segment_files: u64,
    /// The size of a segment.
    pub segment_bytes: u64,
    /// The size that all segments together may have.
    pub size_max_bytes: u64,
    /// Whether its disk had no place for a further segment the last time.
    pub disk_full: bool,
    /// Whether the log takes nothing more.
    pub failed: bool,
}

impl Log {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds this lock leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Lets go of the state and wakes those who wait for it to change: a system call, if there are any.
    pub(crate) fn announce(&self, state: MutexGuard<'_, State>) {
        let waiting = state.waiting > 0;
        drop(state);
        if waiting {
            self.changed.notify_all();
        }
    }

    /// Has `watcher` called, by whoever commits, when a mebibyte or more was committed: it must not take long. Who was to
    /// be called before is not any more.
    pub fn watch(&self, watcher: impl Fn() + Send + Sync + 'static) {
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(watcher));
    }

    pub(crate) fn call_watcher(&self) {
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(watcher) = watcher {
            watcher();
        }
    }

    /// What its owner said of it when it was made.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.manifest.description
    }

    /// The largest payload that fits into one record.
    #[must_use]
    pub fn payload_bytes_max(&self) -> u64 {
        // The first record of a segment may be a restart.
        self.manifest.segment_bytes - SEGMENT_HEADER_BYTES - 2 * RECORD_HEADER_BYTES
    }

    /// How the log stands.
    #[must_use]
    pub fn status(&self) -> Status {
        let state = self.state();
        Status {
            description: self.manifest.description.clone(),
            last: Sequence(state.restart.unwrap_or(state.next - 1)),
            durable: Sequence(state.durable),
            drained: Sequence(state.drained),
            live_segments: state.live.len() as u64,
            ready_segments: state.ready.len() as u64,
            segment_files: state.files,
            segment_bytes: self.manifest.segment_bytes,
            size_max_bytes: self.options.size_max_bytes,
            disk_full: state.disk_full.is_some(),
            failed: state.failed.is_some(),
        }
    }

    /// The last record of the segment whose space comes back first, once all in it is drained; `None` where there is none but the
    /// one that is written to.
    #[must_use]
    pub fn oldest_segment(&self) -> Option<Sequence> {
        let state = self.state();
        state.live.front().filter(|_| state.live.len() > 1).map(|live| Sequence(live.last))
    }

    /// The epochs of groups that ranks have prepared and nobody has decided on. Those found when the log
    /// was opened must be decided from what other nodes' logs say.
    #[must_use]
    pub fn in_doubt(&self) -> Vec<InDoubt> {
        self.state().rules.in_doubt()
    }

    /// Reads bytes of a payload, of which `buffer.len()` must follow `at`.
    ///
    /// # Errors
    /// `Recycled` where the segment has been given away, `System`; `Elsewhere` for bytes of another node's log.
    pub fn read(&self, at: Position, buffer: &mut [u8]) -> Result<()> {
        if at.segment >= ELSEWHERE {
            return self.read_elsewhere(at, buffer);
        }
        let recycled = || Error::Recycled { place: self.place.clone(), at };
        let segment = self
            .readable
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&at.segment)
            .cloned()
            .ok_or_else(recycled)?;
        segment
            .file
            .read_at(buffer, u64::from(at.offset))
            .map_err(|source| Error::system("reading", &self.place, &segment.name, source))?;
        // The number is taken away before anything else is written to the segment.
        if segment.number.load(Ordering::Acquire) == at.segment { Ok(()) } else { Err(recycled()) }
    }

    /// Remembers that the log has failed, the first time, and says so.
    pub(crate) fn fail(&self, cause: Error) -> Error {
        let mut state = self.state();
        if state.failed.is_none() {
            state.failed = Some(Arc::new(cause));
        }
        state.syncing = false;
        self.changed.notify_all();
        self.failure(&state).unwrap_or(Error::Missing { place: self.place.clone() })
    }

    pub(crate) fn failure(&self, state: &State) -> Option<Error> {
        let source = state.failed.clone()?;
        Some(Error::Failed { place: self.place.clone(), source })
    }

    /// Waits until something was drained or the log has failed, but no longer than `timeout`. Returns
    /// whether there may be space now.
    pub fn wait_for_space(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut state = self.state();
        loop {
            if state.failed.is_some() || self.spare(&state) >= 2 {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state.waiting += 1;
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
            state.waiting -= 1;
        }
    }

    /// Makes everything durable and says in the checkpoint that the log ends here.
    ///
    /// # Errors
    /// `Failed`.
    pub fn close(self) -> Result<()> {
        self.sync()?;
        let (durable, used) = {
            let state = self.state();
            (state.durable, state.next - 1)
        };
        self.update_checkpoint(|checkpoint| {
            checkpoint.durable = durable;
            checkpoint.used = checkpoint.used.max(used);
            checkpoint.closed = true;
        })
    }
}
