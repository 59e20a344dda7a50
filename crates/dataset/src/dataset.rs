//! A dataset that is open: reading and writing through views.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use drepl::definition::Update;
use p9::Time;
use rustix::fs::StatVfs;

use crate::error::{Error, Result};
use crate::file::{File, Surroundings};
use crate::flow;
use crate::intents::Intents;
use crate::notice::{Notice, Tell};
use crate::plan::Plan;
use crate::queue::{Job, Queue};
use crate::replica::Files;
use crate::state::{Condition, State};

/// How long nothing must have been written before replicas are made durable unasked.
pub(crate) const IDLE: Duration = Duration::from_secs(5);

/// What all parts of an open dataset share.
pub(crate) struct Shared {
    /// The definition.
    pub(crate) path: PathBuf,
    /// Where replicas are.
    pub(crate) directory: PathBuf,
    /// Where state and intents are kept.
    pub(crate) state_directory: PathBuf,
    pub(crate) around: Surroundings,
    pub(crate) tell: Option<Tell>,
    pub(crate) plan: RwLock<Arc<Plan>>,
    /// Held by whoever changes the definition.
    pub(crate) changing: Mutex<()>,
    pub(crate) writing: Mutex<Writing>,
    pub(crate) queue: Queue,
    /// A write is in progress: replicas that are written later are behind already.
    pub(crate) in_progress: AtomicUsize,
    pub(crate) state: Mutex<State>,
    /// The state in memory could not be written to its file yet.
    pub(crate) unsaved: AtomicBool,
    pub(crate) version: AtomicU32,
    pub(crate) modified: Mutex<Time>,
    /// When the views became what they are.
    pub(crate) since: Mutex<Time>,
    /// Replicas that are being made shall stop.
    pub(crate) is_ending: AtomicBool,
    /// Held as long as the dataset is open.
    pub(crate) lock: File,
}

/// What whoever writes has for itself.
pub(crate) struct Writing {
    pub(crate) intents: Intents,
    /// When something was written last; none: everything is durable.
    pub(crate) last: Option<Instant>,
    /// Data was lost by the system: fdatasync(2) has failed, which a second one would not tell.
    pub(crate) lost: bool,
    /// Replicas were written since it was noted when they were.
    pub(crate) is_unstamped: bool,
}

impl Shared {
    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The replicas that hold what was last written, the closest first.
    pub(crate) fn current(&self, plan: &Plan) -> Vec<(usize, Arc<Files>)> {
        let late = self.in_progress.load(Ordering::SeqCst) > 0;
        let mut idle = None;
        let mut current: Vec<(usize, Arc<Files>)> = plan
            .members()
            .filter(|(_, member)| match member.update {
                Update::Sync => true,
                Update::Async => !late && *idle.get_or_insert_with(|| self.queue.is_idle()),
                Update::OnClose => !late && !member.is_behind(),
            })
            .filter_map(|(index, member)| Some((index, member.files()?)))
            .collect();
        current.sort_by_key(|(index, _)| (plan.members[*index].closeness, *index));
        current
    }

    /// Reads bytes of a view; short only at its end.
    pub(crate) fn read(&self, view: usize, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        // Held so that lengths do not change meanwhile.
        let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
        let left = plan.size(view).saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..len];
        loop {
            let sources = self.current(&plan);
            match self.read_from(&plan, view, offset, buffer, &sources) {
                Ok(()) => return Ok(len),
                Err((index, error)) => {
                    if !self.demote(&plan, index, &error)? {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Reads bytes of a view from these replicas; else tells which one cannot be read.
    pub(crate) fn read_from(
        &self,
        plan: &Plan,
        view: usize,
        offset: u64,
        buffer: &mut [u8],
        sources: &[(usize, Arc<Files>)],
    ) -> Result<(), (usize, Error)> {
        let numbers: Vec<usize> = sources.iter().map(|(index, _)| *index).collect();
        let conversion = plan.read(view, &numbers).map_err(|error| (usize::MAX, error))?;
        let slabs = conversion.clip(offset..offset + buffer.len() as u64);
        flow::gather(slabs, |source, file| sources[source].1.get(file), buffer, offset)
            .map_err(|failed| (numbers[failed.source], failed.error))
    }

    /// Writes bytes of a view to all replicas that are due at once, and tells the others.
    pub(crate) fn write(&self, view: usize, offset: u64, data: &[u8]) -> Result<usize> {
        let plan = self.plan();
        let shown = &plan.model.definition.views[view];
        if shown.read_only {
            return Err(Error::ReadOnly { view: shown.name.clone() });
        }
        let mut writing = self.writing();
        self.save_if_needed()?;
        let data = self.fitting(view, offset, data, &mut writing)?;
        if data.is_empty() {
            return Ok(0);
        }
        let (len, end) = (data.len() as u64, offset + data.len() as u64);
        let plan = self.plan();
        self.declare(&plan, &mut writing, view, offset, len)?;
        self.in_progress.fetch_add(1, Ordering::SeqCst);
        let written = self.write_all(&plan, view, offset, data);
        if written.is_ok() && has(&plan, Update::Async) {
            self.queue.push(Job { view, offset, data: data.into() });
        }
        self.wrote(&plan, view, offset..end);
        written.map(|()| data.len())
    }

    /// Notes a write for replicas that are not written at once, and that it is over.
    pub(crate) fn wrote(&self, plan: &Plan, view: usize, range: Range<u64>) {
        for (_, member) in plan.members() {
            // Also if the write has failed: something of it may be there.
            if member.update == Update::OnClose && member.files().is_some() {
                member.lack(view, range.clone());
            }
            if let Some(filling) = member.filling() {
                filling.miss(view, range.clone());
            }
        }
        self.touch();
        self.in_progress.fetch_sub(1, Ordering::SeqCst);
    }

    /// Notes durably that bytes of a view may differ between replicas from now on.
    pub(crate) fn declare(
        &self,
        plan: &Plan,
        writing: &mut Writing,
        view: usize,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        writing.last = Some(Instant::now());
        writing.is_unstamped = true;
        if !plan.needs_intents {
            return Ok(());
        }
        let regions = usize::try_from(len / crate::intents::REGION_BYTES + 2).unwrap_or(usize::MAX);
        if !writing.intents.has_room(regions) {
            self.settle(writing)?;
            writing.last = Some(Instant::now());
        }
        writing.intents.declare(view, offset, len)
    }

    fn write_all(&self, plan: &Plan, view: usize, offset: u64, data: &[u8]) -> Result<()> {
        for (index, files) in plan.primaries() {
            let Err(error) = self.write_to(plan, view, offset, data, (index, &files)) else {
                continue;
            };
            if self.demote(plan, index, &error)? {
                continue;
            }
            self.make_equal_to(plan, (index, &files), view, offset, data.len());
            return Err(error);
        }
        Ok(())
    }

    /// Writes bytes of a view to one replica.
    pub(crate) fn write_to(
        &self,
        plan: &Plan,
        view: usize,
        offset: u64,
        data: &[u8],
        (index, files): (usize, &Files),
    ) -> Result<()> {
        let slabs = plan.write(view, index).clip(offset..offset + data.len() as u64);
        flow::scatter(slabs, |file| files.get(file), data, offset)
    }

    fn touch(&self) {
        *self.modified.lock().unwrap_or_else(PoisonError::into_inner) = now();
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes a replica out of use, durably. False, and nothing is done, if it alone holds something.
    ///
    /// # Errors
    /// When that cannot be written down: then nothing may be acknowledged that it lacks.
    pub(crate) fn demote(&self, plan: &Plan, index: usize, error: &Error) -> Result<bool> {
        let Some(member) = plan.members.get(index) else { return Ok(false) };
        let mut state = self.state();
        if member.files().is_none() {
            // Another thread was faster.
            return Ok(true);
        }
        if !plan.can_do_without(index)? {
            return Ok(false);
        }
        member.set_files(None);
        let reason = error.in_full();
        if let Some(known) = state.replicas.get_mut(&member.place.name) {
            known.condition = Condition::Stale { reason: reason.clone() };
        }
        self.unsaved.store(true, Ordering::SeqCst);
        self.notice(&Notice::Stale { replica: member.place.name.clone(), reason });
        state.save(&self.state_directory, &self.around)?;
        self.unsaved.store(false, Ordering::SeqCst);
        Ok(true)
    }

    /// Writes down what could not be written down before.
    pub(crate) fn save_if_needed(&self) -> Result<()> {
        if self.unsaved.load(Ordering::SeqCst) {
            self.state().save(&self.state_directory, &self.around)?;
            self.unsaved.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    /// What tells this dataset from others, and stays the same when it is closed and opened.
    pub(crate) fn identity(&self) -> u64 {
        crate::opening::identity(&self.lock)
    }

    pub(crate) fn notice(&self, notice: &Notice) {
        if let Some(tell) = &self.tell {
            tell(notice);
        }
    }
}

pub(crate) fn has(plan: &Plan, update: Update) -> bool {
    plan.members().any(|(_, member)| member.update == update && member.files().is_some())
}

pub(crate) fn now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Time { seconds: now.tv_sec as u64, nanoseconds: now.tv_nsec as u64 }
}

/// A dataset that is open. Dropping it brings all replicas up to date.
pub struct Dataset {
    pub(crate) shared: Arc<Shared>,
    pub(crate) worker: Option<std::thread::JoinHandle<()>>,
    /// Those who make replicas.
    pub(crate) fillers: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

impl Dataset {
    /// Its definition's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The names of the views, in the order in which they came.
    #[must_use]
    pub fn views(&self) -> Vec<String> {
        self.shared.plan().model.views().map(|(_, view)| view.name.clone()).collect()
    }

    /// The number of the view of a name. It is the view's as long as the dataset is open, also when
    /// it is removed.
    #[must_use]
    pub fn view(&self, name: &str) -> Option<usize> {
        self.shared.plan().model.view(name)
    }

    /// The bytes that a view has now.
    #[must_use]
    pub fn size(&self, view: usize) -> u64 {
        self.shared.plan().size(view)
    }

    /// Reads bytes of a view; short only at its end.
    ///
    /// # Errors
    /// When no replica that is up to date can be read.
    pub fn read(&self, view: usize, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.shared.read(view, offset, buffer)
    }

    /// Writes bytes of a view; short at its end. When it returns, every replica of kind `sync` has
    /// them.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::PastEnd`], when not a byte lies in the view; when a replica
    /// that alone holds something cannot be written.
    pub fn write(&self, view: usize, offset: u64, data: &[u8]) -> Result<usize> {
        self.shared.write(view, offset, data)
    }

    /// Brings every replica up to date, and makes all of it durable.
    ///
    /// # Errors
    /// When something that was written may be lost.
    pub fn sync(&self) -> Result<()> {
        let mut writing = self.shared.writing();
        self.shared.settle(&mut writing)
    }

    /// A number that changes with the content.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.shared.version.load(Ordering::SeqCst)
    }

    /// When the content changed last.
    #[must_use]
    pub fn modified(&self) -> Time {
        *self.shared.modified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The replicas and how they are.
    #[must_use]
    pub fn replicas(&self) -> Vec<(String, Condition)> {
        let plan = self.shared.plan();
        let state = self.shared.state();
        let all = plan.members().map(|(_, member)| {
            let known = state.replicas.get(&member.place.name);
            let condition = known.map(|known| known.condition.clone());
            let condition = condition.unwrap_or_else(Condition::not_made);
            (member.place.name.clone(), condition)
        });
        all.collect()
    }

    /// When views came or went last.
    pub(crate) fn since(&self) -> Time {
        *self.shared.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody opens a view.
    pub(crate) fn opens(&self, view: usize, is_writer: bool) {
        let plan = self.shared.plan();
        plan.uses[view].openings.fetch_add(1, Ordering::SeqCst);
        if is_writer {
            plan.uses[view].writers.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Somebody closes a view: the last one of those who write brings the replicas up to date that
    /// wait for it.
    pub(crate) fn closes(&self, view: usize, is_writer: bool) {
        let plan = self.shared.plan();
        plan.uses[view].openings.fetch_sub(1, Ordering::SeqCst);
        if is_writer && plan.uses[view].writers.fetch_sub(1, Ordering::SeqCst) == 1 {
            let _one_at_a_time = self.shared.writing();
            self.shared.catch_up(view);
        }
    }

    /// The room where its definition is.
    pub(crate) fn room(&self) -> Result<StatVfs> {
        let path = &self.shared.state_directory;
        rustix::fs::statvfs(path).map_err(|errno| Error::file("statvfs", path, errno))
    }
}
