//! Making a replica while programs read and write.
//!
//! 1. From the moment it begins, every write notes what it has changed ([`Filling::miss`]).
//! 2. All of the replica is read from others that are up to date, step by step, while they change.
//! 3. What was changed meanwhile is copied again, until little is left.
//! 4. While writers wait, the rest is copied, and the replica is made durable, gets its name and is
//!    noted as up to date.
//!
//! When an array gets another length, everything lies elsewhere, and all begins anew; when that
//! happens too often, writers wait for all of it.
//!
//! The end may come at any time: what was begun has another name, and the state does not know the
//! replica, or knows it as stale.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::copying::Copy;
use crate::dataset::{Dataset, Shared, Writing};
use crate::error::{Error, Result};
use crate::member::{Filling, Member};
use crate::notice::Notice;
use crate::plan::Plan;
use crate::replica::Files;
use crate::state::{Condition, Known};
use crate::upkeep::steps;

/// Beginnings while writers go on.
const BEGINNINGS_MAX: usize = 3;

/// How often what was missed is copied while writers go on.
const ROUNDS_MAX: usize = 8;

/// Bytes of views that writers may wait for.
const REST_BYTES: u64 = 4 << 20;

/// Told the bytes done and the bytes in all; says whether to go on.
pub(crate) type Progress<'p> = &'p mut dyn FnMut(u64, u64) -> bool;

/// A replica that is being made.
struct Begun {
    member: Arc<Member>,
    index: usize,
    filling: Arc<Filling>,
}

/// What became of an attempt.
enum Outcome {
    /// The replica is up to date; its data is from these.
    Done(BTreeSet<usize>),
    /// An array has another length.
    PlacedAnew,
}

impl Dataset {
    /// Makes a stale replica anew from the others, while programs read and write. `progress` is told
    /// the bytes done and the bytes in all, and says whether to go on. False: it is not stale.
    ///
    /// # Errors
    /// [`Error::NoSuchReplica`]; [`Error::Interrupted`] when `progress` said so; [`Error::Busy`] when
    /// it is being made already; what reading the others or writing the new one meets. The replica
    /// stays as it was.
    pub fn rebuild(
        &self,
        replica: &str,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<bool> {
        let Some(begun) = self.begin(replica)? else { return Ok(false) };
        self.shared.fill(&begun, progress)?;
        Ok(true)
    }

    /// As [`Dataset::rebuild`], in the background; how far it is stands in [`Dataset::report`]. What
    /// goes wrong is told as a notice.
    ///
    /// # Errors
    /// [`Error::NoSuchReplica`]; [`Error::Busy`]; when no thread can be started.
    pub fn start_rebuild(&self, replica: &str) -> Result<bool> {
        let Some(begun) = self.begin(replica)? else { return Ok(false) };
        let shared = Arc::clone(&self.shared);
        let member = Arc::clone(&begun.member);
        let thread = std::thread::Builder::new().name("replica".into()).spawn(move || {
            // An error is told, and kept with the replica.
            let _ = shared.fill(&begun, &mut |_, _| true);
        });
        let thread = thread.map_err(|source| {
            member.end_filling();
            Error::Thread { source }
        })?;
        let mut fillers = self.fillers.lock().unwrap_or_else(PoisonError::into_inner);
        fillers.retain(|filler| !filler.is_finished());
        fillers.push(thread);
        Ok(true)
    }

    /// Ends the making of replicas in the background.
    pub(crate) fn stop_fillers(&self) {
        let mut fillers = self.fillers.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.is_ending.store(true, Ordering::SeqCst);
        for filler in fillers.drain(..) {
            // One that has panicked has said so, and left its replica as it was.
            let _ = filler.join();
        }
        self.shared.is_ending.store(false, Ordering::SeqCst);
    }

    fn begin(&self, replica: &str) -> Result<Option<Begun>> {
        // One that was lost a moment ago is stale.
        self.shared.look_for_lost();
        let plan = self.shared.plan();
        let Some(index) = plan.member(replica) else {
            let names = plan.members().map(|(_, member)| member.place.name.as_str());
            let (name, has) = (replica.to_owned(), names.collect::<Vec<_>>().join(", "));
            return Err(Error::NoSuchReplica { name, has });
        };
        let member = &plan.members[index];
        if member.files().is_some() && member.orphaned().is_none() {
            return Ok(None);
        }
        match member.begin_filling() {
            Some(filling) => Ok(Some(Begun { member: Arc::clone(member), index, filling })),
            None => Err(Error::Busy { replica: replica.to_owned() }),
        }
    }
}

impl Shared {
    fn fill(&self, begun: &Begun, progress: Progress<'_>) -> Result<()> {
        let Begun { member, filling, .. } = begun;
        let mut go_on = |done, all| {
            filling.set_progress(done, all);
            self.is_wanted(member) && progress(done, all)
        };
        let mut beginning = 0;
        let filled = loop {
            beginning += 1;
            let is_patient = beginning <= BEGINNINGS_MAX;
            match self.attempt(begun, is_patient, &mut go_on) {
                Ok(Outcome::PlacedAnew) => {}
                Ok(Outcome::Done(from)) => break Ok(from),
                Err(error) => break Err(error),
            }
        };
        let name = |source: &usize| self.plan().members[*source].place.name.clone();
        match filled {
            Ok(from) => {
                let (replica, from) = (member.place.name.clone(), from.iter().map(name).collect());
                member.end_filling();
                self.notice(&Notice::Made { replica, from });
                Ok(())
            }
            Err(error) => {
                // What is left does no harm: it is removed before the next one is begun.
                let _ = member.place.discard(&self.around);
                member.end_filling();
                if !matches!(error, Error::Interrupted) {
                    self.note_failure(member, &error);
                }
                Err(error)
            }
        }
    }

    fn is_wanted(&self, member: &Member) -> bool {
        !member.is_removed() && !self.is_ending.load(Ordering::SeqCst)
    }

    fn attempt(&self, begun: &Begun, is_patient: bool, progress: Progress<'_>) -> Result<Outcome> {
        let Begun { member, index, filling } = begun;
        let index = *index;
        let mut held = Some(self.writing());
        // From here on, whoever writes finds that it is being made.
        filling.take_missed();
        let start = self.plan();
        let sizes = start.sizes(index);
        let files = member.place.begin(&sizes, &self.around)?;
        if is_patient {
            held = None;
        }
        let Some(from) = self.copy(&start, index, &files, progress)? else {
            return Ok(Outcome::PlacedAnew);
        };
        let all = sizes.iter().sum();
        for _ in 0..ROUNDS_MAX {
            if held.is_some() || !progress(all, all) {
                break;
            }
            let missed = filling.take_missed();
            let bytes: u64 = missed.iter().map(|(_, range)| range.end - range.start).sum();
            for (view, range) in missed {
                // Held, so that lengths do not change meanwhile.
                let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
                if plan.stored != start.stored {
                    return Ok(Outcome::PlacedAnew);
                }
                self.carry(&plan, view, range, (index, &files))?;
            }
            if bytes <= REST_BYTES {
                break;
            }
        }
        let mut writing = held.unwrap_or_else(|| self.writing());
        if !self.is_wanted(member) {
            return Err(Error::Interrupted);
        }
        let plan = self.plan();
        if plan.stored != start.stored {
            return Ok(Outcome::PlacedAnew);
        }
        self.settle(&mut writing)?;
        for (view, range) in filling.take_missed() {
            self.carry(&plan, view, range, (index, &files))?;
        }
        self.adopt(member, &mut writing, files)?;
        Ok(Outcome::Done(from))
    }

    /// Reads all of a replica from others, which programs change meanwhile. None: everything was
    /// placed anew.
    fn copy(
        &self,
        start: &Plan,
        index: usize,
        files: &Files,
        progress: Progress<'_>,
    ) -> Result<Option<BTreeSet<usize>>> {
        let sizes = start.sizes(index);
        let (mut done, all) = (0, sizes.iter().sum());
        let mut copy = Copy::new(index);
        for (number, size) in sizes.iter().enumerate() {
            for step in steps(0..*size) {
                if !progress(done, all) {
                    return Err(Error::Interrupted);
                }
                loop {
                    // Held, so that lengths do not change meanwhile.
                    let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
                    if plan.stored != start.stored {
                        return Ok(None);
                    }
                    match copy.read(&plan, number, step.clone()) {
                        // It is zeros already, and so takes no room where it stays so.
                        Ok(data) if data.iter().all(|byte| *byte == 0) => break,
                        Ok(data) => break files.get(number).write_at(data, step.start)?,
                        Err((source, error)) => {
                            if !self.demote(&plan, source, &error)? {
                                return Err(error);
                            }
                        }
                    }
                }
                done += step.end - step.start;
            }
        }
        Ok(Some(copy.used))
    }

    /// Gives a replica that is complete its name, and uses it from now on. Nobody writes.
    fn adopt(&self, member: &Member, writing: &mut Writing, files: Files) -> Result<()> {
        let files = member.place.finish(files, &self.around)?;
        let known = Known {
            layout: member.layout,
            condition: Condition::Fresh,
            written: Some(files.modified()?),
        };
        let mut state = self.state();
        let before = state.replicas.insert(member.place.name.clone(), known);
        if let Err(error) = state.save(&self.state_directory, &self.around) {
            // The file of the state says what it said, and so it is.
            match before {
                Some(before) => state.replicas.insert(member.place.name.clone(), before),
                None => state.replicas.remove(&member.place.name),
            };
            return Err(error);
        }
        drop(state);
        member.set_files(Some(Arc::new(files)));
        member.set_orphaned(None);
        writing.is_unstamped = true;
        Ok(())
    }

    /// A replica could not be made: says so, and keeps it as stale.
    fn note_failure(&self, member: &Member, error: &Error) {
        if member.is_removed() || member.files().is_some() {
            return;
        }
        let reason = format!("it could not be made: {}", error.in_full());
        let known = Known {
            layout: member.layout,
            condition: Condition::Stale { reason: reason.clone() },
            written: None,
        };
        self.state().replicas.insert(member.place.name.clone(), known);
        // What cannot be saved now is saved before the next write is acknowledged.
        self.unsaved.store(true, Ordering::SeqCst);
        let _ = self.save_if_needed();
        self.notice(&Notice::Stale { replica: member.place.name.clone(), reason });
    }

    /// Looks whether the files of replicas are still under their names, and takes those out of use
    /// that are not.
    pub(crate) fn look_for_lost(&self) {
        let plan = self.plan();
        for (index, member) in plan.members() {
            let Some(files) = member.files().filter(|_| member.filling().is_none()) else {
                continue;
            };
            let Some(error) = files.lost() else {
                member.set_orphaned(None);
                continue;
            };
            let reason = error.in_full();
            match self.demote(&plan, index, &error) {
                // What cannot be saved now is saved before the next write is acknowledged.
                Ok(true) | Err(_) => {}
                Ok(false) => {
                    if member.set_orphaned(Some(reason.clone())) {
                        let replica = member.place.name.clone();
                        self.notice(&Notice::Orphaned { replica, reason });
                    }
                }
            }
        }
    }
}
