//! One step of a drain after the other.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use hostlog::media::Media;
use hostlog::{FileId, Log, Member, Sequence, What};
use store::Store;

use crate::error::Result;
use crate::journal::Journal;
use crate::owner::{Bound, Owner};
use crate::pace::{Bucket, Stop};
use crate::progress::Progress;
use crate::target::Target;
use crate::wholes::Wholes;
use crate::write::{Work, Writer};

mod changes;
mod marks;
mod memory;
mod records;

use memory::Memory;
use records::Dealt;

/// How to drain.
#[derive(Clone)]
pub struct Options {
    /// The most bytes per second that are written to the target; `None`: as many as it takes.
    pub bytes_per_second: Option<u64>,
    /// How many writes and syncs are in flight.
    pub threads: usize,
    /// After so many bytes a step ends, so that the log gets space back.
    pub step_bytes: u64,
    /// After so many records a step ends.
    pub step_records: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { bytes_per_second: None, threads: 4, step_bytes: 256 << 20, step_records: 65_536 }
    }
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Everything up to here is in the target.
    pub drained: Sequence,
    /// Records dealt with.
    pub records: usize,
    /// Whether there is more to do at once.
    pub more: bool,
    /// Whether there are records that may still come to count.
    pub pending: bool,
}

/// Brings what counts in a log to a target. See the [crate].
pub struct Drain {
    log: Arc<Log>,
    journal: Journal,
    target: Target,
    owner: Arc<dyn Owner>,
    options: Options,
    bucket: Bucket,
    stop: Arc<Stop>,
    progress: Arc<Progress>,
    memory: Option<Memory>,
    /// What is known although a step has failed: of whole files, those that are replaced need not be again.
    spared: Option<Memory>,
    /// Where files were at the mark in the log.
    at_mark: Vec<Bound>,
    /// The names that the journal has are those of this record.
    saved: Sequence,
    epochs: HashSet<Member>,
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").finish_non_exhaustive()
    }
}

impl Drain {
    /// Prepares to drain `log`, whose files are in `media`, to `target`.
    ///
    /// # Errors
    /// When `log.toml` cannot be read.
    pub fn new(
        log: Arc<Log>,
        media: Arc<dyn Media>,
        target: Arc<dyn Store>,
        owner: Arc<dyn Owner>,
        options: Options,
    ) -> Result<Self> {
        let journal = Journal::new(media)?;
        // What a crash left uncommitted is void for ever once something is appended behind it.
        log.commit(0, FileId::NONE)?;
        let at_mark = owner.bound();
        let bucket = Bucket::new(options.bytes_per_second);
        let progress = Arc::<Progress>::default();
        progress.update(|now| now.drained = log.status().drained);
        let stop = Arc::<Stop>::default();
        let woken = Arc::clone(&stop);
        log.watch(move || woken.wake());
        Ok(Self {
            log,
            journal,
            target: Target::new(target),
            owner,
            options,
            bucket,
            stop,
            progress,
            memory: None,
            spared: None,
            at_mark,
            saved: Sequence(0),
            epochs: HashSet::new(),
        })
    }

    /// Has the bytes of large files carried to the target by `store`, which is the same place on a connection of its own:
    /// who asks for something there meanwhile need not wait behind them.
    #[must_use]
    pub fn with_bulk(mut self, store: Arc<dyn Store>) -> Self {
        self.target.set_bulk(store);
        self
    }

    /// How far it is, to look at from elsewhere.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// The means to stop it from elsewhere.
    #[must_use]
    pub fn stopper(&self) -> Arc<Stop> {
        Arc::clone(&self.stop)
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Brings to the target what counts now, or the first part of it where that is much.
    ///
    /// # Errors
    /// Any of [`Error`]; then the next step begins at the mark again, as after a crash.
    pub fn step(&mut self) -> Result<Step> {
        let step = self.try_step();
        if step.is_err() {
            self.memory = self.spared.take();
            self.target.reset();
        }
        step
    }

    fn try_step(&mut self) -> Result<Step> {
        self.stop.check()?;
        // Before the records: what becomes settled while they are looked at is for the next step.
        let drainable = self.owner.drainable();
        let durable = self.log.status().durable;
        let mut memory = match self.memory.take() {
            Some(memory) => memory,
            None => self.load()?,
        };
        let log = Arc::clone(&self.log);
        // A version is one consistency point: all that counts now, and nothing that comes to count meanwhile.
        let is_of_wholes = self.target.wholes().is_some();
        let mut replay = if is_of_wholes { log.replay_of_now() } else { log.replay() };
        let (mut seen, mut records, mut complete) = (Sequence(0), 0, true);
        // The first and the last that data were found in.
        let mut segments = (u32::MAX, 0);
        loop {
            let item = replay.next();
            if replay.names_pending() {
                // Nothing behind a change of names that does not count yet; a commit may just have been made.
                break;
            }
            let Some(item) = item.transpose()? else { break };
            let sequence = item.sequence;
            if let What::Data { at, .. } = item.what {
                segments = (segments.0.min(at.segment), at.segment);
            }
            if !memory.done.contains(sequence) {
                self.progress.begin();
                if let Dealt::TooLate = self.deal_with(&mut memory, item)? {
                    return Ok(Step {
                        drained: log.status().drained,
                        records,
                        more: true,
                        pending: true,
                    });
                }
                memory.done.insert(sequence);
                memory.is_marked = false;
                records += 1;
            }
            seen = sequence;
            let is_enough = memory.planned_bytes >= self.options.step_bytes
                || records >= self.options.step_records;
            if is_enough && !is_of_wholes && !memory.is_catching_up() {
                complete = false;
                break;
            }
        }
        let first_pending = replay.first_pending();
        let is_cut = !complete || replay.names_pending();
        drop(replay);
        self.tell_what_is_left(&memory, complete, segments);
        self.remove(&mut memory)?;
        if let Err(error) = self.write(&mut memory, |_| true) {
            self.spared = is_of_wholes.then_some(memory);
            return Err(error);
        }
        // What is written over before it is written was counted twice.
        memory.planned_bytes = 0;
        memory.opened = 0;
        for (sequence, file, set) in std::mem::take(&mut memory.attributes) {
            if let Some(path) = memory.path_of(sequence, file)? {
                self.target.set_attributes(path, &set, sequence)?;
            }
        }
        let mut through = if is_cut { seen } else { durable };
        if let Some(Sequence(pending)) = first_pending {
            through = through.min(Sequence(pending - 1));
        }
        let held_back = drainable.is_some_and(|limit| limit < through) || first_pending.is_some();
        through = drainable.map_or(through, |limit| through.min(limit));
        self.mark(&mut memory, through, held_back)?;
        self.memory = Some(memory);
        let drained = log.status().drained;
        self.progress.update(|now| {
            now.drained = drained;
            now.pending = held_back;
            now.epochs = self.epochs.len() as u64;
        });
        Ok(Step { drained, records, more: !complete, pending: held_back })
    }

    /// An estimate: exact for what was looked at, and whole segments for the rest.
    fn tell_what_is_left(&self, memory: &Memory, complete: bool, (first, segment): (u32, u32)) {
        let mut left = memory.planned_bytes;
        if !complete {
            let status = self.log.status();
            let behind =
                status.live_segments.saturating_sub(u64::from(segment.saturating_sub(first)) + 1);
            left += behind * status.segment_bytes;
        }
        self.progress.update(|now| now.bytes_left = left);
    }

    fn wholes(&self) -> Option<Wholes<'_>> {
        Some(Wholes {
            log: &self.log,
            target: self.target.wholes()?,
            journal: &self.journal,
            bucket: &self.bucket,
            stop: &self.stop,
            progress: &self.progress,
            threads: self.options.threads,
        })
    }

    /// Writes the plans of some files, and makes them durable.
    fn write(&self, memory: &mut Memory, which: impl Fn(&[u8]) -> bool) -> Result<()> {
        let Memory { state, plans, planned_bytes, .. } = memory;
        let mut works = Vec::new();
        for (file, plan) in plans.iter_mut() {
            let Some(path) = state.names.path_of(*file).filter(|path| which(path)) else {
                continue;
            };
            if plan.is_due() {
                *planned_bytes = planned_bytes.saturating_sub(plan.bytes.bytes());
                works.push(Work { path, plan });
            } else {
                plan.open = None;
            }
        }
        if let Some(wholes) = self.wholes() {
            return wholes.write(works);
        }
        let writer = Writer {
            log: &self.log,
            target: &self.target,
            bucket: &self.bucket,
            stop: &self.stop,
            progress: &self.progress,
            threads: self.options.threads,
        };
        writer.write(works)
    }
}
