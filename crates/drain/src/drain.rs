//! One step of a drain after the other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use extent::ByteRange;
use hostlog::media::Media;
use hostlog::{Attributes, FileId, Log, Member, Operation, Replayed, Sequence, What};
use store::{Node, Store};

use crate::error::{Error, Result, shown};
use crate::journal::{Intents, Journal, State};
use crate::names::Names;
use crate::owner::{Bound, Kept, Owner};
use crate::pace::{Bucket, Stop};
use crate::plan::{Plan, TooLate};
use crate::progress::Progress;
use crate::sequences::Sequences;
use crate::target::Target;
use crate::wholes::Wholes;
use crate::write::{Work, Writer};

/// Removals that are made behind one note of them at most.
const REMOVALS_MAX: usize = 256;

/// New files that are kept open in one step at most.
const OPENED_MAX: usize = 128;

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

/// How a name changed.
#[derive(Debug, Clone)]
enum Change {
    Bind(FileId, Vec<u8>),
    Unbind(Vec<u8>),
    Link(Vec<u8>, Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
}

impl Change {
    fn apply(&self, names: &mut Names) {
        match self {
            Change::Bind(FileId::NONE, path) | Change::Unbind(path) => names.unbind(path),
            Change::Bind(file, path) => names.bind(*file, path),
            Change::Link(existing, path) => names.link(existing, path),
            Change::Rename(from, to) => names.rename(from, to),
        }
    }
}

/// What is known of the target's state; all of it can be had again from the journal and the log.
struct Memory {
    /// Changes of names that were made, and what follows.
    state: State,
    /// The same as of the mark in the log.
    marked: Names,
    /// The changes between the two.
    trail: Vec<(Sequence, Change)>,
    /// Changes that may have been made before the last end, or failure.
    intents: Intents,
    /// Records behind the mark that were dealt with.
    done: Sequences,
    plans: BTreeMap<FileId, Plan>,
    /// Bytes in the plans.
    planned_bytes: u64,
    /// How many files were kept open in this step.
    opened: usize,
    /// Attributes to be set once the names are those of the target.
    attributes: Vec<(Sequence, FileId, Attributes)>,
    /// Removals to be made: of what, and whether it is a directory.
    removals: Vec<(Sequence, Vec<u8>, bool)>,
    /// Files that the owner did not hold, and the last record when that was found.
    unheld: HashMap<FileId, Sequence>,
    /// Identities in the target.
    identities: HashMap<FileId, u64>,
    /// Something was done since the mark was set.
    is_marked: bool,
    /// The mark was set before the last record that was seen.
    was_held_back: bool,
    /// The last record when the mark was set.
    last_at_mark: Sequence,
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

/// What became of a record.
enum Dealt {
    Done,
    /// All has to be done once more from the mark on.
    TooLate,
}

impl From<std::result::Result<(), TooLate>> for Dealt {
    fn from(result: std::result::Result<(), TooLate>) -> Self {
        match result {
            Ok(()) => Dealt::Done,
            Err(TooLate) => Dealt::TooLate,
        }
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
        Ok(Self {
            log,
            journal,
            target: Target::new(target),
            owner,
            options,
            bucket,
            stop: Arc::default(),
            progress,
            memory: None,
            spared: None,
            at_mark,
            saved: Sequence(0),
            epochs: HashSet::new(),
        })
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

    fn load(&mut self) -> Result<Memory> {
        if let Some(wholes) = self.wholes() {
            wholes.clean_up()?;
        }
        let (state, intents) = self.journal.load()?;
        self.saved = state.through;
        let mut marked = Names::default();
        let mut identities = HashMap::new();
        for bound in &self.at_mark {
            marked.bind(bound.file, &bound.path);
            identities.insert(bound.file, bound.identity);
        }
        Ok(Memory {
            state,
            marked,
            trail: Vec::new(),
            intents,
            done: Sequences::default(),
            plans: BTreeMap::new(),
            planned_bytes: 0,
            opened: 0,
            attributes: Vec::new(),
            removals: Vec::new(),
            unheld: HashMap::new(),
            identities,
            is_marked: true,
            was_held_back: true,
            last_at_mark: Sequence(0),
        })
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

    fn deal_with(&mut self, memory: &mut Memory, item: Replayed) -> Result<Dealt> {
        let Replayed { sequence, file, member, what, .. } = item;
        match what {
            What::Data { offset, len, at } => {
                self.epochs.extend(member);
                let Some(_) = memory.path_of(sequence, file)? else {
                    self.progress.update(|now| now.bytes_spared += len);
                    return Ok(Dealt::Done);
                };
                memory.planned_bytes += len;
                let plan = memory.plans.entry(file).or_default();
                plan.write(sequence, ByteRange::at(offset, len), at);
                Ok(Dealt::Done)
            }
            What::Operation(Operation::Truncate { size }) => {
                let Some(_) = memory.path_of(sequence, file)? else { return Ok(Dealt::Done) };
                Ok(memory.plans.entry(file).or_default().resize(sequence, size).into())
            }
            What::Operation(Operation::Attributes { path, set }) => {
                if !path.is_empty() {
                    // It was done, and what has this path now may be something else.
                    if sequence <= memory.state.through || memory.is_catching_up() {
                        return Ok(Dealt::Done);
                    }
                    return self.set_attributes(memory, sequence, &path, &set);
                }
                let catching_up = memory.is_catching_up();
                let Some(path) = memory.path_of(sequence, file)? else { return Ok(Dealt::Done) };
                if catching_up {
                    memory.attributes.push((sequence, file, set));
                    return Ok(Dealt::Done);
                }
                let path = path.to_vec();
                self.set_attributes(memory, sequence, &path, &set)
            }
            What::Operation(Operation::Note { .. }) => Ok(Dealt::Done),
            What::Operation(operation) => {
                self.change_names(memory, sequence, file, operation)?;
                Ok(Dealt::Done)
            }
        }
    }

    fn set_attributes(
        &self,
        memory: &mut Memory,
        sequence: Sequence,
        path: &[u8],
        set: &Attributes,
    ) -> Result<Dealt> {
        let file = memory.state.names.at(path).unwrap_or(FileId::NONE);
        if let Some(plan) = memory.plans.get_mut(&file).filter(|plan| plan.is_due()) {
            // Behind its data, which would change the times.
            return Ok(plan.set(sequence, set).into());
        }
        self.remove(memory)?;
        self.target.set_attributes(path, set, sequence)?;
        Ok(Dealt::Done)
    }

    fn change_names(
        &mut self,
        memory: &mut Memory,
        sequence: Sequence,
        file: FileId,
        operation: Operation,
    ) -> Result<()> {
        let is_done = sequence <= memory.state.through || memory.intents.are_behind(sequence);
        let change = match operation {
            Operation::Bind { path } => Change::Bind(file, path),
            Operation::Create { path, .. } if self.target.wholes().is_some() => {
                // It is made when it is written, from what the log has: also once more, after a crash.
                if !is_done {
                    self.remove(memory)?;
                }
                memory.plans.entry(file).or_default().is_new = true;
                Change::Bind(file, path)
            }
            Operation::Create { path, mode } => {
                if !is_done {
                    self.remove(memory)?;
                    let open = self.target.create(&path, mode)?;
                    // Some are kept open until they are written.
                    if memory.opened < OPENED_MAX {
                        memory.opened += 1;
                        memory.plans.entry(file).or_default().open = Some(open);
                    }
                }
                Change::Bind(file, path)
            }
            Operation::Mkdir { path, mode } => {
                if !is_done {
                    self.remove(memory)?;
                    self.target.make_directory(&path, mode, sequence)?;
                }
                Change::Bind(file, path)
            }
            Operation::Symlink { path, target } => {
                if !is_done {
                    self.remove(memory)?;
                    self.target.make_symlink(&path, &target, sequence)?;
                }
                Change::Bind(file, path)
            }
            Operation::Link { existing, path } => {
                if !is_done {
                    self.remove(memory)?;
                    self.write(memory, |at| at == existing)?;
                    self.target.link(&existing, &path, sequence)?;
                }
                Change::Link(existing, path)
            }
            Operation::Unlink { path } => {
                if !is_done {
                    self.remove_later(memory, sequence, &path, false)?;
                }
                Change::Unbind(path)
            }
            Operation::Rmdir { path } => {
                if !is_done {
                    self.remove_later(memory, sequence, &path, true)?;
                }
                Change::Unbind(path)
            }
            Operation::Rename { from, to, flags: _ } => {
                if !is_done {
                    self.rename(memory, sequence, &from, &to)?;
                }
                Change::Rename(from, to)
            }
            Operation::Truncate { .. } | Operation::Attributes { .. } | Operation::Note { .. } => {
                return Ok(());
            }
        };
        if sequence > memory.state.through {
            let replaced = match &change {
                Change::Unbind(path) | Change::Rename(_, path) => memory.state.names.at(path),
                Change::Bind(..) | Change::Link(..) => None,
            };
            change.apply(&mut memory.state.names);
            memory.state.through = sequence;
            if !is_done {
                self.progress.update(|now| now.names += 1);
                if matches!(change, Change::Rename(..)) {
                    self.save_names_of_wholes(memory)?;
                }
            }
            if let Some(file) = replaced.filter(|file| memory.state.names.path_of(*file).is_none())
            {
                self.spare(memory, file);
            }
        }
        memory.trail.push((sequence, change));
        Ok(())
    }

    /// A file that has lost its last name need not be written.
    fn spare(&self, memory: &mut Memory, file: FileId) {
        if let Some(plan) = memory.plans.remove(&file) {
            let bytes = plan.bytes.bytes();
            memory.planned_bytes = memory.planned_bytes.saturating_sub(bytes);
            self.progress.update(|now| now.bytes_spared += bytes);
        }
    }

    /// Writes down which changes of names are done, where what has a name does not tell whether it is what had it before.
    /// The caller has removed what waits to be.
    fn save_names_of_wholes(&self, memory: &Memory) -> Result<()> {
        if self.target.wholes().is_some() { self.journal.save(&memory.state) } else { Ok(()) }
    }

    fn rename(
        &self,
        memory: &mut Memory,
        sequence: Sequence,
        from: &[u8],
        to: &[u8],
    ) -> Result<()> {
        self.remove(memory)?;
        let file = memory.state.names.at(from).unwrap_or(FileId::NONE);
        let is_new = memory.plans.get(&file).is_some_and(|plan| plan.is_new);
        let identity = self.target.identity(from)?;
        let intended = memory.intents.get(sequence);
        // Nothing, or something else: it was renamed before. Its data goes to where it is now.
        if intended.is_some_and(|intended| intended.is_none() || intended != identity) {
            return Ok(());
        }
        if identity.is_none() && is_new {
            // It is made under its new name, and takes the place of what has that when it is whole.
            return Ok(());
        }
        if identity.is_none() {
            return Err(Error::Missing { operation: "rename", path: shown(from), sequence });
        }
        let below = [from, b"/"].concat();
        self.write(memory, |path| path == from || path.starts_with(&below))?;
        // Of a version, not of a file.
        let identity =
            if self.target.wholes().is_some() { self.target.identity(from)? } else { identity };
        self.intend(memory, vec![(sequence, identity)])?;
        self.target.rename(from, to)
    }

    /// Writes down what is about to be changed. What was done before is durable first.
    fn intend(&self, memory: &mut Memory, intents: Vec<(Sequence, Option<u64>)>) -> Result<()> {
        self.target.sync()?;
        let intents = Intents { of: intents };
        self.journal.intend(&intents)?;
        memory.intents = intents;
        Ok(())
    }

    fn remove_later(
        &self,
        memory: &mut Memory,
        sequence: Sequence,
        path: &[u8],
        directory: bool,
    ) -> Result<()> {
        if memory.removals.len() >= REMOVALS_MAX {
            self.remove(memory)?;
        }
        memory.removals.push((sequence, path.to_vec(), directory));
        Ok(())
    }

    /// Makes the removals that wait.
    fn remove(&self, memory: &mut Memory) -> Result<()> {
        if memory.removals.is_empty() {
            return Ok(());
        }
        let removals = std::mem::take(&mut memory.removals);
        let mut intents = Vec::new();
        for (sequence, path, _) in &removals {
            let identity = match memory.intents.get(*sequence) {
                Some(identity) => identity,
                None => self.target.identity(path)?,
            };
            intents.push((*sequence, identity));
        }
        self.intend(memory, intents.clone())?;
        for ((_, path, directory), (_, identity)) in removals.iter().zip(intents) {
            // Something else, or nothing: it was removed before.
            if identity.is_some() && self.target.identity(path)? == identity {
                self.target.remove(path, *directory)?;
            }
        }
        self.save_names_of_wholes(memory)
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

    /// Says in the log how far the target is, if there is something to say.
    fn mark(&mut self, memory: &mut Memory, through: Sequence, held_back: bool) -> Result<()> {
        let drained = self.log.status().drained;
        let is_news = !memory.is_marked || memory.was_held_back || through > memory.last_at_mark;
        if !is_news {
            return Ok(());
        }
        self.target.sync()?;
        let kept = if through > drained {
            memory.advance(through);
            let kept = self.owner.drained(through, &|file| self.node(memory, file))?;
            // Somebody who was stopped may have answered that a file is not there.
            self.stop.check()?;
            Some(kept)
        } else {
            None
        };
        if self.saved != memory.state.through {
            self.journal.save(&memory.state)?;
            self.saved = memory.state.through;
        }
        let Some(kept) = kept else { return Ok(()) };
        let bound = self.bound(memory)?;
        self.log.drained(through, &self.owner.state(&kept, &bound))?;
        self.at_mark = bound;
        memory.done.forget(through);
        if !held_back {
            // Nothing older than what was done can come any more.
            memory.plans.clear();
            memory.prune(&kept, through, self.log.status().last);
        }
        memory.is_marked = true;
        memory.was_held_back = held_back;
        memory.last_at_mark = self.log.status().last;
        Ok(())
    }

    /// The target's node of a file, as it is now. It is asked until there is an answer: "none" means that there is none.
    fn node(&self, memory: &Memory, file: FileId) -> Option<Arc<dyn Node>> {
        let path = memory.state.names.path_of(file)?;
        let mut pauses = crate::run::Pauses::default();
        while !self.stop.is_stopped() {
            match self.target.find(path) {
                Ok(node) => return node,
                Err(_) => {
                    self.target.reset();
                    self.stop.pause(pauses.next());
                }
            }
        }
        None
    }

    /// Where the files are that were known at the mark.
    fn bound(&self, memory: &mut Memory) -> Result<Vec<Bound>> {
        let Memory { state, marked, identities, .. } = memory;
        let mut bound = Vec::new();
        for (file, paths) in marked.iter() {
            if paths.is_empty() {
                continue;
            }
            // Where files are replaced as wholes, it is their name's.
            if (self.target.wholes().is_some() || !identities.contains_key(&file))
                && let Some(now) = state.names.path_of(file)
                && let Some(identity) = self.target.lasting_identity(now)?
            {
                identities.insert(file, identity);
            }
            let Some(identity) = identities.get(&file) else { continue };
            let one = |path: &Vec<u8>| Bound { file, identity: *identity, path: path.clone() };
            bound.extend(paths.iter().map(one));
        }
        Ok(bound)
    }
}

impl Memory {
    /// Whether the target is further than the names: what is known to have been done comes first.
    fn is_catching_up(&self) -> bool {
        self.intents.of.last().is_some_and(|(last, _)| *last > self.state.through)
    }

    /// A path of a record's file; `None` if it has lost its last.
    fn path_of(&self, sequence: Sequence, file: FileId) -> Result<Option<&[u8]>> {
        match self.state.names.path_of(file) {
            Some(path) => Ok(Some(path)),
            None if self.state.names.knows(file) => Ok(None),
            None => Err(Error::UnknownFile { sequence, file }),
        }
    }

    /// Brings the names of the mark to a later one.
    fn advance(&mut self, through: Sequence) {
        let behind = self.trail.partition_point(|(sequence, _)| *sequence <= through);
        for (_, change) in self.trail.drain(..behind) {
            change.apply(&mut self.marked);
        }
    }

    /// Lets go of files that nobody will ask for any more: their owner did not hold them some time ago, nor does it
    /// now, and everything that was in the log then is drained.
    fn prune(&mut self, kept: &Kept, through: Sequence, last: Sequence) {
        let mut unheld = HashMap::new();
        for (file, _) in self.state.names.iter().filter(|(file, _)| !kept.files.contains(file)) {
            let since = self.unheld.get(&file).copied().unwrap_or(last);
            unheld.insert(file, since);
        }
        let gone = |file: FileId| unheld.get(&file).is_some_and(|since| *since <= through);
        self.state.names.retain(|file| !gone(file));
        self.marked.retain(|file| !gone(file));
        self.identities.retain(|file, _| !gone(*file));
        unheld.retain(|_, since| *since > through);
        self.unheld = unheld;
    }
}
