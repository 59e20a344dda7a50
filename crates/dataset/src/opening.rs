//! Opening a dataset: what is there, what is missing, what has to be made equal first.
//!
//! 1. The state directory is made and locked.
//! 2. Each replica is looked for ([`look`]). One that is known and up to date must be there with its
//!    layout and size, or it is lost; one that is not known is *adopted* if it is there and *made* if
//!    not. Nothing is changed yet.
//! 3. Every byte of every view must be in some replica that is written at once.
//! 4. After a crash, what the intents name is made equal in all replicas.
//! 5. Adopted replicas must be equal to those before them.
//! 6. Missing ones are made, from the others where they have the data.
//! 7. The state is written. From now on the dataset exists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use drepl::Definition;
use drepl::definition::Update;

use crate::copying;
use crate::dataset::{Dataset, Shared, Writing};
use crate::error::{Error, Result};
use crate::faults::Faults;
use crate::file::{File, Identity, Surroundings};
use crate::fingerprint;
use crate::hash::file_number;
use crate::intents::{Intent, Intents};
use crate::member::{Member, Use};
use crate::notice::{Notice, Tell};
use crate::plan::{Model, Plan};
use crate::queue::{BYTES_MAX, Queue};
use crate::replica::{Files, Found, Place};
use crate::state::{Condition, Known, State};
use crate::upkeep;
use crate::views::CONTROL;

/// What may be chosen about an open dataset.
#[derive(Clone, Default)]
pub struct Options {
    /// Who is told what happens to it.
    pub tell: Option<Tell>,
    /// Who may break it.
    pub faults: Option<Arc<dyn Faults>>,
    /// Elements that lie within at least so many bytes of a replica's file may be taken from a
    /// mapping of it, which is faster than to have all of them copied. Only for a process that is Sluice's own, since it then
    /// catches `SIGBUS`. [`MAPPED_READ_BYTES`](crate::MAPPED_READ_BYTES) is a good choice.
    pub mapped_read_min_bytes: Option<u64>,
}

/// What was found of a replica.
enum Look {
    /// It is up to date, as far as anybody knows.
    Known(Files),
    /// It was not known, and is there.
    Adopted(Files),
    /// It was not known, and is not there.
    Missing,
    /// It is of no use.
    Stale(String),
}

impl Dataset {
    /// Opens the dataset that the file at `path` defines, or begins it.
    ///
    /// # Errors
    /// See [`Error`]: the definition, the replicas or the system may be in the way.
    pub fn open(path: &Path, options: &Options) -> Result<Self> {
        let definition = crate::definition::load(path)?;
        Self::with_definition(path, definition, options)
    }

    /// As [`Dataset::open`], for a definition that was read already. Replicas are beside `path`,
    /// which need not exist.
    ///
    /// # Errors
    /// As there.
    pub fn with_definition(path: &Path, definition: Definition, options: &Options) -> Result<Self> {
        let model = Arc::new(Model::new(definition));
        let directory = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let around = Surroundings {
            faults: options.faults.clone(),
            mapped_read_min_bytes: options.mapped_read_min_bytes,
        };
        let state_directory = state_directory(directory, path)?;
        let lock = take(&state_directory, &around)?;
        let opening = Opening { model, path, directory, state_directory, around, options };
        opening.open(lock)
    }
}

/// Where state and intents are kept.
pub(crate) fn state_directory(directory: &Path, path: &Path) -> Result<PathBuf> {
    let wrong = || Error::file("open", path, rustix::io::Errno::INVAL);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or_else(wrong)?);
    name.push(".sluice");
    Ok(directory.join(name))
}

/// Makes the state directory if need be, and locks it.
fn take(state_directory: &Path, around: &Surroundings) -> Result<File> {
    let mode = rustix::fs::Mode::from_raw_mode(0o777);
    let made = around.change("mkdir", state_directory, || rustix::fs::mkdir(state_directory, mode));
    match made {
        Err(error) if error.to_errno() == p9::Errno::EEXIST => {}
        other => other?,
    }
    let path = state_directory.join("lock");
    let lock = match File::open(&path, around)? {
        Some(lock) => lock,
        None => match File::create(&path, around) {
            // Somebody was faster.
            Err(error) if error.to_errno() == p9::Errno::EEXIST => {
                File::open(&path, around)?.ok_or(error)?
            }
            other => other?,
        },
    };
    lock.lock()?;
    crate::status::forget_service(state_directory);
    Ok(lock)
}

/// What tells a dataset from others.
pub(crate) fn identity(lock: &File) -> u64 {
    let found = lock.identity();
    found.map_or(0, |found| found.inode ^ found.device.rotate_left(32))
}

struct Opening<'o> {
    model: Arc<Model>,
    path: &'o Path,
    directory: &'o Path,
    state_directory: PathBuf,
    around: Surroundings,
    options: &'o Options,
}

impl Opening<'_> {
    fn open(self, lock: File) -> Result<Dataset> {
        let known = State::load(&self.state_directory, &self.around)?;
        let is_new = known.is_none();
        let known = known.unwrap_or_default();
        let intents = Intents::open(&self.state_directory.join("intents"), &self.around)?;
        let plan = Plan::new(&self.model, None, self.path)?;

        let meaning = Meaning::of(&self.model.definition);
        let live = meaning.translated(intents.live(), &known);
        // What the intents are for, until they are done.
        let (views, variables) = (known.views.clone(), known.variables);
        let mut state = State { views, variables, ..State::default() };
        let (mut members, mut adopted, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        let mut was_changed = false;
        let mut owners: BTreeMap<Identity, String> = BTreeMap::new();
        for (index, replica) in self.model.definition.replicas.iter().enumerate() {
            let place = plan.replica(index);
            let place = Place::of(&self.model.definition, replica, self.directory, place)?;
            let layout = fingerprint::of(&self.model.definition, replica);
            let look = self.look(&place, index, layout, &known, &plan)?;
            let mut condition = Condition::Fresh;
            let files = match look {
                Look::Known(files) => Some(files),
                Look::Adopted(files) => {
                    adopted.push(index);
                    Some(files)
                }
                Look::Missing => {
                    missing.push(index);
                    None
                }
                Look::Stale(reason) => {
                    let was_fresh = known.replicas.get(&place.name);
                    if was_fresh.is_some_and(|known| known.condition == Condition::Fresh) {
                        let replica = place.name.clone();
                        self.tell(&Notice::Stale { replica, reason: reason.clone() });
                    }
                    condition = Condition::Stale { reason };
                    None
                }
            };
            for identity in files.iter().map(Files::identities).collect::<Result<Vec<_>>>()? {
                for identity in identity {
                    if let Some(first) = owners.insert(identity, place.name.clone()) {
                        let second = place.name.clone();
                        return Err(Error::SameFile { first, second, path: place.path });
                    }
                }
            }
            let written = known.replicas.get(&place.name).and_then(|known| known.written);
            let is_as_left = match (&files, written) {
                (Some(files), Some(written)) => files.modified()? == written,
                _ => true,
            };
            was_changed |= !is_as_left;
            state.replicas.insert(place.name.clone(), Known { layout, condition, written });
            let files = files.map(Arc::new);
            let flags = (replica.update, replica.closeness);
            members.push(Arc::new(Member::new(place, flags, layout, files)));
        }
        let mut plan = plan;
        plan.members = members;
        plan.needs_intents = plan.may_differ()?;
        let mut plan = self.placed(plan, &live)?;
        plan.check_held(&missing, &state)?;
        plan.add_uses(identity(&lock));

        let shared = Arc::new(Shared {
            path: self.path.to_path_buf(),
            directory: self.directory.to_path_buf(),
            state_directory: self.state_directory.clone(),
            around: self.around.clone(),
            tell: self.options.tell.clone(),
            plan: RwLock::new(Arc::new(plan)),
            changing: Mutex::default(),
            writing: Mutex::new(Writing { intents, last: None, lost: false, is_unstamped: false }),
            queue: Queue::new(BYTES_MAX),
            in_progress: AtomicUsize::new(0),
            state: Mutex::new(state),
            unsaved: AtomicBool::new(false),
            version: AtomicU32::new(0),
            modified: Mutex::default(),
            since: Mutex::default(),
            is_ending: AtomicBool::new(false),
            lock,
        });
        if was_changed && shared.writing().intents.live().next().is_none() {
            // Somebody else has written to a replica, or nobody said that all was done: the end
            // came without a close. They must agree.
            adopted = (0..shared.plan().members.len()).collect();
        }
        finish(&shared, is_new, (meaning, live), &adopted, &missing)?;
        let worker = Some(upkeep::start(&shared)?);
        Ok(Dataset { shared, worker, fillers: Mutex::default() })
    }

    fn tell(&self, notice: &Notice) {
        if let Some(tell) = &self.options.tell {
            tell(notice);
        }
    }

    fn look(
        &self,
        place: &Place,
        index: usize,
        layout: u128,
        known: &State,
        plan: &Plan,
    ) -> Result<Look> {
        let sizes = plan.sizes(index);
        match known.replicas.get(&place.name) {
            Some(Known { condition: Condition::Stale { reason }, .. }) => {
                Ok(Look::Stale(reason.clone()))
            }
            Some(Known { layout: was, condition: Condition::Fresh, .. }) => {
                let found = match place.open(sizes.len(), &self.around) {
                    // The end came while its structure was being changed.
                    Err(Error::Hdf5(error)) => return Ok(Look::Stale(error.to_string())),
                    found => found?,
                };
                match found {
                    Found::Missing => {
                        Ok(Look::Stale(format!("{} is missing", place.path.display())))
                    }
                    Found::Files(_) if *was != layout => Err(Error::Changed {
                        replica: place.name.clone(),
                        path: place.path.clone(),
                    }),
                    Found::Files(files) => Ok(Look::Known(files)),
                }
            }
            None => match place.open(sizes.len(), &self.around)? {
                Found::Missing => Ok(Look::Missing),
                Found::Files(files) => Ok(Look::Adopted(files)),
            },
        }
    }

    /// Places everything for the lengths that the replicas hold, and checks their sizes.
    fn placed(&self, plan: Plan, live: &[Intent]) -> Result<Plan> {
        let mut plan = plan;
        if self.model.lengths_view().is_some() {
            let stored = crate::lengths::stored_in(&plan, &plan.primaries())?;
            plan = plan.with_lengths(stored)?;
        }
        let views = self.model.definition.views.len();
        let was_placed_anew = live.iter().any(|intent| intent.view >= views);
        for (index, member) in plan.members.iter().enumerate() {
            let Some(files) = member.files() else { continue };
            if was_placed_anew && member.place.is_directory {
                // In the midst of it: see `crate::lengths`.
                files.resize(&plan.sizes(index))?;
            }
            files.check(&member.place.name, &plan.sizes(index))?;
        }
        Ok(plan)
    }
}

impl Plan {
    /// Whether something that a view shows is in several places, which a crash may make differ.
    pub(crate) fn may_differ(&self) -> Result<bool> {
        let replicas: Vec<usize> = self.members().map(|(index, _)| index).collect();
        let &[one] = &replicas[..] else { return Ok(true) };
        if self.model.lengths_view().is_some() {
            return Ok(true);
        }
        for view in 0..self.model.definition.views.len() {
            let shown: u64 = self.read(view, &[one])?.served().iter().map(|one| one.moved).sum();
            let stored: u64 =
                self.write(view, one).clip(0..self.size(view)).map(|one| one.bytes()).sum();
            if stored != shown {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks that every view can be read from replicas that are written at once and up to date, or
    /// about to be `made`.
    pub(crate) fn check_held(&self, made: &[usize], state: &State) -> Result<()> {
        if self.model.view(CONTROL).is_some() {
            let why = format!("a view cannot be called `{CONTROL}`: this name is Sluice's own");
            return Err(Error::Layout { path: self.path.clone(), why });
        }
        let at_once = self.members().filter(|(_, member)| member.update == Update::Sync);
        let declared: Vec<usize> = at_once.map(|(index, _)| index).collect();
        let fresh: Vec<usize> = declared
            .iter()
            .copied()
            .filter(|index| self.members[*index].files().is_some() || made.contains(index))
            .collect();
        // An array of no elements lacks none, and would lack them when it grows.
        let grown = match self.model.lengths_view() {
            Some(_) => Some(Plan::new(&self.model, Some(self.model.lengths_of_one()), &self.path)?),
            None => None,
        };
        let plan = grown.as_ref().unwrap_or(self);
        for (number, view) in self.model.definition.views.iter().enumerate() {
            let lacking = |sources: &[usize]| -> Result<Option<String>> {
                let conversion = plan.read(number, sources)?;
                let lacking = conversion.served().iter().find(|served| served.missing > 0);
                Ok(lacking.map(|served| {
                    let placed = &plan.view(number).variables()[served.variable];
                    view.variables[placed.variable].name.clone()
                }))
            };
            if let Some(part) = lacking(&declared)? {
                return Err(Error::Unheld { view: view.name.clone(), part });
            }
            if fresh.len() < declared.len()
                && let Some(part) = lacking(&fresh)?
            {
                let reasons =
                    state.replicas.iter().filter_map(|(name, known)| match &known.condition {
                        Condition::Stale { reason } => Some(format!("`{name}`: {reason}")),
                        Condition::Fresh => None,
                    });
                let reasons = reasons.collect::<Vec<_>>().join("; ");
                return Err(Error::Lost { view: view.name.clone(), part, reasons });
            }
        }
        Ok(())
    }

    /// Gives the views that have none yet a number of their file: one that is the same whenever this
    /// dataset is served, and another for another one, since a client that comes back after a
    /// restart must know its files again.
    pub(crate) fn add_uses(&mut self, identity: u64) {
        for view in &self.model.definition.views[self.uses.len()..] {
            let mut path = file_number(identity, view.name.as_bytes());
            while self.uses.iter().any(|one| one.path == path) {
                path += 1;
            }
            self.uses.push(Arc::new(Use::new(path)));
        }
    }
}

/// What the numbers in intents mean.
#[derive(Clone)]
pub(crate) struct Meaning {
    pub(crate) views: Vec<u128>,
    pub(crate) variables: u128,
}

impl Meaning {
    pub(crate) fn of(definition: &Definition) -> Self {
        let views = fingerprint::of_views(definition);
        Self { views, variables: fingerprint::of_variables(definition) }
    }

    /// Intents as they are called here. Of what is not here any more, everything may differ.
    fn translated(&self, intents: impl Iterator<Item = Intent>, known: &State) -> Vec<Intent> {
        let one = |intent: Intent| {
            if intent.as_length().is_some() {
                return (known.variables == self.variables).then_some(intent);
            }
            let meant = known.views.get(intent.view)?;
            if self.views.get(intent.view) == Some(meant) {
                return Some(intent);
            }
            let view = self.views.iter().position(|view| view == meant)?;
            Some(Intent { view, ..intent })
        };
        let mut all: Vec<Intent> =
            intents.map(|intent| one(intent).unwrap_or(Intent::EVERYTHING)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Makes all replicas equal, and those that are missing.
fn finish(
    shared: &Shared,
    is_new: bool,
    (meaning, intents): (Meaning, Vec<Intent>),
    adopted: &[usize],
    missing: &[usize],
) -> Result<()> {
    let plan = shared.plan();
    let mut writing = shared.writing();
    if !intents.is_empty() {
        let lengths = intents.iter().filter_map(|intent| intent.as_length());
        let changed = lengths.filter(|(variable, before)| plan.lengths.get(*variable) != *before);
        let changed: Vec<usize> = changed.map(|(variable, _)| variable).collect();
        shared.finish_lengths(&plan, &changed)?;
        let bytes = shared.recover(&plan, &intents)?;
        shared.notice(&Notice::Recovered { bytes });
    }
    for index in adopted {
        copying::verify(&plan, *index)?;
    }
    for index in missing {
        // If that fails, its place is not known to the state yet, so that it is made by the next
        // opening.
        let from = copying::make(shared, &plan, *index)?;
        let name = |source: &usize| plan.members[*source].place.name.clone();
        let from =
            if is_new && adopted.is_empty() { Vec::new() } else { from.iter().map(name).collect() };
        let replica = name(index);
        shared.notice(&Notice::Made { replica, from });
    }
    if !intents.is_empty() {
        shared.settle(&mut writing)?;
    }
    {
        // Only now: until there are no intents, they must be understood.
        let mut state = shared.state();
        (state.views, state.variables) = (meaning.views, meaning.variables);
        state.save(&shared.state_directory, &shared.around)?;
    }
    shared.stamp()?;
    drop(writing);
    shared.date()
}

impl Shared {
    /// Notes when the replicas were written last: if that is another time when they are opened
    /// again, somebody else did it.
    pub(crate) fn stamp(&self) -> Result<()> {
        // Before the state: whoever has the plan may want that.
        let plan = self.plan();
        let mut state = self.state();
        let before = state.clone();
        for (_, member) in plan.members() {
            let Some(files) = member.files() else { continue };
            if let Some(known) = state.replicas.get_mut(&member.place.name) {
                known.written = Some(files.modified()?);
            }
        }
        if *state == before { Ok(()) } else { state.save(&self.state_directory, &self.around) }
    }

    /// Takes time and version of the content from the replicas' files.
    fn date(&self) -> Result<()> {
        let mut newest = p9::Time::default();
        for (_, files) in self.plan().primaries() {
            newest = newest.max(files.modified()?);
        }
        *self.modified.lock().unwrap_or_else(PoisonError::into_inner) = newest;
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = newest;
        let mixed = newest.seconds.rotate_left(30) ^ newest.nanoseconds;
        let version = (mixed ^ (mixed >> 32)) as u32;
        self.version.store(version, std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }
}
