//! Taking over another definition while programs read and write.
//!
//! 1. The file of the definition is read, changed, and understood.
//! 2. What is new in it gets numbers behind those there are; what it lacks stays, unseen: files that
//!    are open, writes that wait and the log of intents go on to mean what they meant.
//! 3. Every view must be held by replicas that are up to date, and every replica that goes by others.
//! 4. The file of the definition is replaced. From here on the new one is in force, whatever happens.
//! 5. The new plan takes the place of the old one between two writes, and the state is written.
//!
//! A replica that was added is not up to date: the state does not know it until it was made, and if
//! the end comes before that, the next opening makes it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use drepl::Definition;
use drepl::definition::{Replica, Storage};
use rustix::fs::Mode;

use crate::dataset::{Dataset, Shared, Writing, now};
use crate::definition;
use crate::edit::{Edit, edited};
use crate::error::{Error, Result};
use crate::fingerprint;
use crate::member::Member;
use crate::opening::Meaning;
use crate::plan::{Model, Plan};
use crate::replica::Place;

/// What a change of the definition has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changed {
    /// Views that are there now.
    pub views_added: Vec<String>,
    /// Views that are not there any more. Those who have them open go on to use them.
    pub views_removed: Vec<String>,
    /// Replicas that are to be made now, by [`Dataset::rebuild`].
    pub replicas_added: Vec<String>,
    /// Replicas that are not used any more. Their files stay.
    pub replicas_removed: Vec<String>,
}

impl Dataset {
    /// Changes the definition, its file included, while programs read and write.
    ///
    /// # Errors
    /// When the definition would mean nothing, or something that cannot be without closing the
    /// dataset; when a replica is needed that is to be removed. Nothing has changed then.
    pub fn change(&self, edit: &Edit) -> Result<Changed> {
        let shared = &self.shared;
        let _one_at_a_time = shared.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = edited(&shared.path, &definition::text(&shared.path)?, edit)?;
        let wanted = definition::compiled(&shared.path, text.clone())?.definition;
        let mut writing = shared.writing();
        let next = Next::of(&shared.plan(), wanted, &shared.path)?;
        if next.concerns_replicas() {
            // What waits for those that go, and what the intents say, is done.
            shared.settle(&mut writing)?;
        }
        let plan = shared.planned(&next)?;
        shared.replace_definition(&text)?;
        shared.take_over(plan, &next, &mut writing);
        Ok(next.changed)
    }

    /// The text of the definition's file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn definition_text(&self) -> Result<String> {
        definition::text(&self.shared.path)
    }
}

/// A definition with the numbers of the one before.
struct Next {
    model: Model,
    /// Replicas that the model has and the one before had not: with the layout, and the replica whose
    /// files they take over.
    added: Vec<(u128, Option<usize>)>,
    /// Replicas that go.
    removed: Vec<usize>,
    changed: Changed,
}

impl Next {
    fn of(plan: &Plan, wanted: Definition, path: &std::path::Path) -> Result<Self> {
        let cannot = |why: String| Error::Change { path: path.to_path_buf(), why };
        let mut model = Model::clone(&plan.model);
        if model.definition.variables != wanted.variables {
            let why = "the dataset itself would be another: its variables cannot change while it \
                       is open; stop the service first";
            return Err(cannot(why.to_owned()));
        }
        let wanted = Model::new(wanted);
        let mut changed = Changed::default();

        // By view of the wanted definition: its number here.
        let mut numbers = vec![usize::MAX; wanted.definition.views.len()];
        let mut stays = vec![false; model.shown.len()];
        for (number, view) in wanted.views() {
            let same = model.views().find(|(known, its)| !stays[*known] && *its == view);
            if let Some((known, _)) = same {
                numbers[number] = known;
                stays[known] = true;
            }
        }
        for (known, stays) in stays.iter().enumerate() {
            if model.shown[known] && !stays {
                model.shown[known] = false;
                changed.views_removed.push(model.definition.views[known].name.clone());
            }
        }
        for (number, view) in wanted.views() {
            if numbers[number] == usize::MAX {
                numbers[number] = model.add_view(view.clone(), true);
                changed.views_added.push(view.name.clone());
            }
        }

        let mut removed: Vec<usize> = plan.members().map(|(index, _)| index).collect();
        let mut added = Vec::new();
        for replica in &wanted.definition.replicas {
            let layout = fingerprint::of(&wanted.definition, replica);
            let known = plan.member(&replica.name);
            if let Some(index) = known {
                let member = &plan.members[index];
                if member.layout != layout {
                    let why = format!(
                        "replica `{}` would have another layout; remove it, and add one of another name",
                        replica.name
                    );
                    return Err(cannot(why));
                }
                let flags = (member.update, member.closeness);
                if flags == (replica.update, replica.closeness) {
                    removed.retain(|one| *one != index);
                    continue;
                }
                if member.filling().is_some() {
                    return Err(Error::Busy { replica: replica.name.clone() });
                }
            } else {
                changed.replicas_added.push(replica.name.clone());
            }
            added.push((layout, known));
            let replica = renumbered(replica, &wanted.definition, &numbers, &mut model);
            model.definition.replicas.push(replica);
        }
        for index in &removed {
            let name = &plan.members[*index].place.name;
            if wanted.definition.replicas.iter().all(|replica| replica.name != *name) {
                changed.replicas_removed.push(name.clone());
            }
        }
        Ok(Self { model, added, removed, changed })
    }

    fn concerns_replicas(&self) -> bool {
        !self.added.is_empty() || !self.removed.is_empty()
    }
}

/// A replica with the views' numbers of the model, which gets the views that only replicas have.
fn renumbered(
    replica: &Replica,
    wanted: &Definition,
    numbers: &[usize],
    model: &mut Model,
) -> Replica {
    let mut replica = replica.clone();
    for stored in &mut replica.views {
        stored.view = match replica.storage {
            Storage::Raw => numbers[stored.view],
            Storage::Hdf5 => model.add_view(wanted.views[stored.view].clone(), false),
        };
    }
    replica
}

impl Shared {
    /// The plan for what comes next. Nothing is changed.
    fn planned(&self, next: &Next) -> Result<Plan> {
        let now = self.plan();
        let model = Arc::new(next.model.clone());
        let mut plan = Plan::new(&model, Some(now.stored.clone()), &self.path)?;
        plan.uses.clone_from(&now.uses);
        plan.gone = &now.gone | &next.removed.iter().copied().collect();
        plan.add_uses(self.identity());
        let mut members = now.members.clone();
        for (layout, known) in &next.added {
            let index = members.len();
            let replica = &model.definition.replicas[index];
            let place = plan.replica(index);
            let place = Place::of(&model.definition, replica, &self.directory, place)?;
            let files = match known {
                Some(known) => now.members[*known].files(),
                None => {
                    self.check_free(&now, &place)?;
                    None
                }
            };
            let flags = (replica.update, replica.closeness);
            members.push(Arc::new(Member::new(place, flags, *layout, files)));
        }
        plan.members = members;
        plan.needs_intents = now.needs_intents || plan.may_differ()?;
        for index in &next.removed {
            let member = &plan.members[*index];
            if member.files().is_some() && !plan.can_do_without(*index)? {
                return Err(Error::Needed { replica: member.place.name.clone() });
            }
        }
        plan.check_held(&[], &self.state())?;
        Ok(plan)
    }

    /// Whether a new replica has its place for itself.
    fn check_free(&self, now: &Plan, place: &Place) -> Result<()> {
        let is_ending =
            |member: &&Arc<Member>| member.place.path == place.path && member.filling().is_some();
        if now.members.iter().any(|member| is_ending(&member)) {
            return Err(Error::Busy { replica: place.name.clone() });
        }
        match rustix::fs::lstat(&place.path) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(errno) => Err(Error::file("lstat", &place.path, errno)),
            Ok(_) => Err(Error::Exists { replica: place.name.clone(), path: place.path.clone() }),
        }
    }

    fn replace_definition(&self, text: &str) -> Result<()> {
        // What a symbolic link leads to is replaced, not the link.
        let error = |source| Error::File { operation: "realpath", path: self.path.clone(), source };
        let path = self.path.canonicalize().map_err(error)?;
        let file = |operation| move |errno| Error::file(operation, &self.path, errno);
        rustix::fs::access(&path, rustix::fs::Access::WRITE_OK).map_err(file("access"))?;
        let found = rustix::fs::stat(&path).map_err(file("stat"))?;
        let mode = Mode::from_raw_mode(found.st_mode & 0o7777);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let beside = format!(".{name}.sluice-new");
        crate::file::replace(&path, &beside, text.as_bytes(), Some(mode), &self.around)
    }

    /// From here on, this is what there is.
    fn take_over(&self, plan: Plan, next: &Next, writing: &mut Writing) {
        let meaning = Meaning::of(&plan.model.definition);
        let names: Vec<String> =
            plan.members().map(|(_, member)| member.place.name.clone()).collect();
        let old = self.plan();
        let first_new = old.members.len();
        let mut place = self.plan.write().unwrap_or_else(PoisonError::into_inner);
        for (place, (_, known)) in next.added.iter().enumerate() {
            // One that could not be read a moment ago.
            if known.is_some_and(|known| old.members[known].files().is_none()) {
                plan.members[first_new + place].set_files(None);
            }
        }
        *place = Arc::new(plan);
        drop(place);
        for index in &next.removed {
            old.members[*index].remove();
        }
        let mut state = self.state();
        (state.views, state.variables) = (meaning.views, meaning.variables);
        state.replicas.retain(|name, _| names.contains(name));
        drop(state);
        // Saved before the next write is acknowledged, if that fails now: until then, what is on the
        // disk says the same of all that was written.
        self.unsaved.store(true, Ordering::SeqCst);
        let _ = self.save_if_needed();
        writing.is_unstamped = true;
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = now();
    }
}
