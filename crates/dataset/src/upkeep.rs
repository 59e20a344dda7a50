//! Bringing replicas up to date that were not written at once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use drepl::definition::Update;
use layout::{Origin, Slab};

use crate::dataset::{Dataset, IDLE, Shared, Writing};
use crate::error::{Error, Result};
use crate::flow;
use crate::intents::{Intent, REGION_BYTES};
use crate::plan::Plan;
use crate::queue::{Job, Next};
use crate::replica::Files;

/// Bytes of a view that are taken from one replica to others at a time.
pub(crate) const STEP_BYTES: u64 = 1 << 20;

/// The pieces of at most [`STEP_BYTES`] of a range, cut where they are multiples of it.
pub(crate) fn steps(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        let next = (at / STEP_BYTES + 1).saturating_mul(STEP_BYTES).min(range.end);
        let step = at..next;
        at = next;
        Some(step)
    })
}

/// Whether a slab brings data, and not what stands where no data is.
pub(crate) fn brings_data(slab: &Slab) -> bool {
    matches!(slab.origin(), Origin::Source { .. })
}

impl Shared {
    /// Brings every replica up to date, and makes everything durable.
    ///
    /// # Errors
    /// When something that was written may be lost.
    pub(crate) fn settle(&self, writing: &mut Writing) -> Result<()> {
        self.queue.drain();
        let plan = self.plan();
        for view in 0..plan.model.definition.views.len() {
            self.catch_up(view);
        }
        self.save_if_needed()?;
        for (index, member) in plan.members.iter().enumerate() {
            let Some(files) = member.files() else { continue };
            let Err(error) = files.sync() else { continue };
            if !self.demote(&plan, index, &error)? {
                // A second fdatasync(2) may say that all is well although pages were dropped.
                writing.lost = true;
                return Err(error);
            }
        }
        if writing.lost {
            let path = &self.path;
            return Err(Error::file(
                "fdatasync (it has failed before)",
                path,
                rustix::io::Errno::IO,
            ));
        }
        writing.intents.clear()?;
        writing.last = None;
        Ok(())
    }

    /// Brings what replicas of kind `on-close` lack of a view there. To be called by one thread at
    /// a time, while nobody writes.
    pub(crate) fn catch_up(&self, view: usize) {
        let plan = self.plan();
        for (index, member) in plan.members.iter().enumerate() {
            let ranges = match member.files() {
                Some(_) if member.update == Update::OnClose => member.lacking(view),
                _ => continue,
            };
            let Some(files) = member.files() else { continue };
            let size = plan.size(view);
            let done = ranges.into_iter().try_for_each(|range| {
                self.carry(&plan, view, range.start..range.end.min(size), (index, &files))
            });
            match done {
                Ok(()) => member.caught_up(view),
                Err(error) => self.give_up(&plan, index, &error),
            }
        }
    }

    /// Takes a replica out of use that nothing depends on.
    fn give_up(&self, plan: &Plan, index: usize, error: &Error) {
        // What cannot be written down now is written down before the next write is acknowledged;
        // until then the intents say that the replica may differ.
        let _ = self.demote(plan, index, error);
    }

    /// Takes bytes of a view from the primaries to a replica.
    pub(crate) fn carry(
        &self,
        plan: &Plan,
        view: usize,
        range: Range<u64>,
        to: (usize, &Files),
    ) -> Result<()> {
        let mut buffer = Vec::new();
        for step in steps(range) {
            buffer.resize((step.end - step.start) as usize, 0);
            let sources = plan.primaries();
            self.read_from(plan, view, step.start, &mut buffer, &sources)
                .map_err(|(_, error)| error)?;
            self.write_to(plan, view, step.start, &buffer, to)?;
        }
        Ok(())
    }

    /// A write has failed in the midst on a replica that cannot be done without: now the others
    /// get what it holds of the range.
    pub(crate) fn make_equal_to(
        &self,
        plan: &Plan,
        (from, files): (usize, &Files),
        view: usize,
        offset: u64,
        len: usize,
    ) {
        let held = held(plan, (from, files), view, offset, len);
        for (index, member) in plan.members.iter().enumerate() {
            if index == from || member.update == Update::OnClose {
                continue;
            }
            let Some(its_files) = member.files() else { continue };
            let equal = match (&held, member.update) {
                (Ok(pieces), Update::Sync) => pieces.iter().try_for_each(|(offset, data)| {
                    self.write_to(plan, view, *offset, data, (index, &its_files))
                }),
                (Ok(pieces), Update::Async | Update::OnClose) => {
                    for (offset, data) in pieces {
                        let (offset, data) = (*offset, data.clone().into());
                        self.queue.push(Job { view, offset, data });
                    }
                    Ok(())
                }
                (Err(error), _) => {
                    let path = self.path.clone();
                    let why = format!("a write failed halfway, and then: {error}");
                    Err(Error::Layout { path, why })
                }
            };
            if let Err(error) = equal {
                self.give_up(plan, index, &error);
            }
            if member.update == Update::Async {
                // One job reaches all of that kind.
                break;
            }
        }
    }

    /// Makes equal in all replicas, and in all places of each, what intents name. Says how many
    /// bytes of views that were.
    pub(crate) fn recover(&self, plan: &Plan, intents: &[Intent]) -> Result<u64> {
        let views = plan.model.definition.views.len();
        let mut bytes = 0;
        if intents.iter().all(|intent| intent.view < views) {
            for intent in intents {
                let start = intent.region.saturating_mul(REGION_BYTES);
                let end = start.saturating_add(REGION_BYTES).min(plan.size(intent.view));
                bytes += self.make_equal(plan, intent.view, start..end)?;
            }
            return Ok(bytes);
        }
        // Everything, and first the lengths that all else was placed for.
        if let Some(view) = plan.model.lengths_view() {
            self.give_to_all(plan, view, 0, &plan.stored)?;
        }
        for view in 0..views {
            bytes += self.make_equal(plan, view, 0..plan.size(view))?;
        }
        Ok(bytes)
    }

    /// Takes bytes of a view from replicas that are written at once to all of them.
    fn make_equal(&self, plan: &Plan, view: usize, range: Range<u64>) -> Result<u64> {
        let mut buffer = Vec::new();
        let mut bytes = 0;
        for step in steps(range) {
            buffer.resize((step.end - step.start) as usize, 0);
            self.read_from(plan, view, step.start, &mut buffer, &plan.primaries())
                .map_err(|(_, error)| error)?;
            self.give_to_all(plan, view, step.start, &buffer)?;
            bytes += step.end - step.start;
        }
        Ok(bytes)
    }

    /// Writes bytes of a view to every replica that is up to date, of whatever kind.
    pub(crate) fn give_to_all(
        &self,
        plan: &Plan,
        view: usize,
        offset: u64,
        data: &[u8],
    ) -> Result<()> {
        for (index, member) in plan.members.iter().enumerate() {
            let Some(files) = member.files() else { continue };
            if let Err(error) = self.write_to(plan, view, offset, data, (index, &files))
                && !self.demote(plan, index, &error)?
            {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// What one replica holds of bytes of a view: each piece with where it begins.
fn held(
    plan: &Plan,
    (from, files): (usize, &Files),
    view: usize,
    offset: u64,
    len: usize,
) -> Result<Vec<(u64, Vec<u8>)>> {
    let conversion = plan.read(view, &[from])?;
    // What does not depend on what was there before is held.
    let fill = |byte: u8| {
        let mut bytes = vec![byte; len];
        let slabs = conversion.clip(offset..offset + len as u64).filter(brings_data);
        flow::gather(slabs, |_, file| files.get(file), &mut bytes, offset)
            .map(|()| bytes)
            .map_err(|failed| failed.error)
    };
    let (zeros, ones) = (fill(0)?, fill(0xff)?);
    let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
    for (at, (byte, other)) in (offset..).zip(zeros.iter().zip(&ones)) {
        if byte != other {
            continue;
        }
        match pieces.last_mut() {
            Some((start, piece)) if *start + piece.len() as u64 == at => piece.push(*byte),
            _ => pieces.push((at, vec![*byte])),
        }
    }
    Ok(pieces)
}

/// Starts the thread that applies what waits in the queue and makes things durable when nobody
/// writes.
pub(crate) fn start(shared: &Arc<Shared>) -> Result<std::thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name("dataset".into())
        .spawn(move || work(&shared))
        .map_err(|source| Error::Thread { source })
}

fn work(shared: &Shared) {
    let mut looked = Instant::now();
    loop {
        if looked.elapsed() >= IDLE {
            shared.look_for_lost();
            looked = Instant::now();
        }
        match shared.queue.next(IDLE) {
            Next::Job(job) => shared.apply(&job),
            Next::Idle => shared.settle_if_idle(),
            Next::End => return,
        }
    }
}

impl Shared {
    /// Writes what waited to the replicas that it is for.
    fn apply(&self, job: &Job) {
        let plan = self.plan();
        for (index, member) in plan.members.iter().enumerate() {
            let Some(files) = member.files().filter(|_| member.update == Update::Async) else {
                continue;
            };
            let Job { view, offset, data } = job;
            if let Err(error) = self.write_to(&plan, *view, *offset, data, (index, &files)) {
                self.give_up(&plan, index, &error);
            }
        }
    }

    fn settle_if_idle(&self) {
        // Whoever writes now is not idle.
        let Ok(mut writing) = self.writing.try_lock() else { return };
        if writing.last.is_some_and(|last| last.elapsed() >= IDLE) {
            // The next fsync(2) tells what is wrong; until then the intents stay.
            let _ = self.settle(&mut writing);
        }
    }
}

impl Dataset {
    /// Brings every replica up to date, makes all of it durable, and notes that all was done: what
    /// dropping it does, too, for those who wish to hear of errors. Replicas that are being made are
    /// not waited for, but given up: they are made when the dataset is opened next, or rebuilt.
    ///
    /// # Errors
    /// When something that was written may be lost, or cannot be noted.
    pub fn close(&self) -> Result<()> {
        self.stop_fillers();
        crate::status::forget_service(&self.shared.state_directory);
        let mut writing = self.shared.writing();
        if writing.last.is_some() {
            self.shared.settle(&mut writing)?;
        }
        if std::mem::take(&mut writing.is_unstamped) {
            self.shared.stamp()?;
        }
        Ok(())
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        // Where it fails, the intents stay, and the next opening does it.
        let _ = self.close();
        self.shared.queue.close();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
        debug_assert_eq!(self.shared.in_progress.load(Ordering::SeqCst), 0);
    }
}
