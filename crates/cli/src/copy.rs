//! `sluice cp`: copying between any two places.
//!
//! 1. Each source becomes a [`Task`] in a queue that a few threads work off; a directory's task makes the directory and
//!    adds a task for each name in it, so that listing and copying overlap.
//! 2. [`transfer::file`] copies one file into a part file beside its destination, makes it durable and renames it.
//! 3. When all is done, directories get their modes and times, and are made durable.

mod part;
mod progress;
mod stream;
mod transfer;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Result, bail};

use crate::args::Cp;
use crate::place::{Meta, Place, Places};
use part::Leftovers;
use progress::Progress;
use transfer::CopyError;

/// Something to copy, and where to.
pub(crate) struct Task {
    from: Place,
    to: Place,
    /// Named on the command line: symbolic links are followed unless `-r` is given.
    named: bool,
    /// What earlier copies left in the destination's directory.
    leftovers: Arc<Leftovers>,
}

/// Copies everything that was asked for.
pub(crate) fn cp(args: &Cp, places: &Places) -> Result<ExitCode> {
    let started = Instant::now();
    let Some((destination, sources)) = args.places.split_last() else {
        bail!("no destination is given")
    };
    let progress = Progress::new(args);
    if destination == "-" && args.json {
        bail!("--json writes to standard output, and so does the copy: name a file to copy to");
    }
    if destination == "-" || sources.iter().any(|source| source == "-") {
        stream::standard(places, sources, destination, &progress)?;
    } else {
        let tasks = tasks(args, places, sources, destination)?;
        let queue = Queue::new(tasks);
        let copier = Copier { args, queue, progress: &progress, directories: Mutex::default() };
        std::thread::scope(|scope| {
            for _ in 1..args.jobs {
                scope.spawn(|| copier.work());
            }
            copier.work();
        });
        copier.finish_directories();
    }
    progress.finish(started)
}

/// Pairs each source with its destination.
fn tasks(
    args: &Cp,
    places: &Places,
    sources: &[OsString],
    destination: &OsString,
) -> Result<Vec<Task>> {
    let to = places.find(destination)?;
    let found = to.stat(true);
    let into_directory = found.as_ref().is_ok_and(Meta::is_directory);
    if !into_directory {
        let wants_directory = destination.as_encoded_bytes().ends_with(b"/");
        if sources.len() > 1 || (wants_directory && !args.recursive) {
            match found {
                Ok(_) => bail!(
                    "{to} is not a directory, so it cannot take several files; name a directory"
                ),
                Err(trouble) if trouble.is_missing() => {
                    bail!("the directory {to} does not exist; make it with `sluice mkdir -p`")
                }
                Err(trouble) => bail!("cannot look at {to}: {trouble}"),
            }
        }
    }
    let directory = if into_directory { Some(to.clone()) } else { to.parent() };
    let leftovers = Arc::new(directory.as_ref().map_or_else(Leftovers::none, Leftovers::of));
    let mut tasks = Vec::new();
    for text in sources {
        let from = places.find(text)?;
        // `dir/.` means what is in dir.
        let whole = matches!(text.as_encoded_bytes(), b"." | [.., b'/', b'.']);
        let to = match from.file_name().filter(|_| into_directory && !whole) {
            Some(name) => to.child(&name),
            None => to.clone(),
        };
        tasks.push(Task { from, to, named: true, leftovers: Arc::clone(&leftovers) });
    }
    Ok(tasks)
}

/// What the threads share.
struct Copier<'a> {
    args: &'a Cp,
    queue: Queue,
    progress: &'a Progress,
    /// Destination directories, and what they shall look like if they were made here.
    directories: Mutex<Vec<(Place, Option<Meta>)>>,
}

impl Copier<'_> {
    fn work(&self) {
        while let Some(task) = self.queue.take() {
            if let Err(error) = self.one(&task) {
                let said = error.explain(&task.from, &task.to);
                self.progress.failed(&task.from, &task.to, said);
            }
            self.queue.done();
        }
    }

    fn one(&self, task: &Task) -> std::result::Result<(), CopyError> {
        let follow = task.named && !self.args.recursive;
        let meta = task.from.stat(follow).map_err(CopyError::source("look at"))?;
        if task.from.same_name(&task.to) {
            return Err(CopyError::SameFile);
        }
        if meta.is_directory() {
            return self.directory(task, &meta);
        }
        if meta.is_symlink() {
            return self.link(task);
        }
        if !meta.is_regular() {
            return Err(CopyError::Special(crate::format::kind_text(meta.mode)));
        }
        transfer::file(&task.from, &task.to, &meta, self.args.resume, self.progress)?;
        task.leftovers.sweep(&task.to);
        if let Some(directory) = task.to.parent().filter(|_| task.named) {
            self.directories().push((directory, None));
        }
        Ok(())
    }

    fn directory(&self, task: &Task, meta: &Meta) -> std::result::Result<(), CopyError> {
        if !self.args.recursive {
            return Err(CopyError::Directory);
        }
        if task.named && task.to.is_within(&task.from) {
            return Err(CopyError::IntoItself);
        }
        // Listed before the destination is made, which may lie in it under another name.
        let names = task.from.list().map_err(CopyError::source("list"))?;
        let made = match task.to.make_directory(0o700) {
            Ok(()) => true,
            Err(trouble) => match task.to.stat(true) {
                Ok(found) if found.is_directory() => false,
                Ok(_) => return Err(CopyError::NotADirectory),
                Err(_) => return Err(CopyError::destination("make the directory")(trouble)),
            },
        };
        self.directories().push((task.to.clone(), made.then_some(*meta)));
        let leftovers = if made { Leftovers::none() } else { Leftovers::of(&task.to) };
        let leftovers = Arc::new(leftovers);
        let children = names.iter().filter(|name| !part::is_part_name(name));
        self.queue.add(children.map(|name| Task {
            from: task.from.child(name),
            to: task.to.child(name),
            named: false,
            leftovers: Arc::clone(&leftovers),
        }));
        Ok(())
    }

    fn link(&self, task: &Task) -> std::result::Result<(), CopyError> {
        let target = task.from.read_link().map_err(CopyError::source("read the link"))?;
        match task.to.make_symlink(&target) {
            Err(trouble) if trouble.is_there_already() => {
                let same = task.to.read_link().is_ok_and(|there| there == target);
                if !same {
                    return Err(CopyError::destination("make the link")(trouble));
                }
                self.progress.skipped();
            }
            other => {
                other.map_err(CopyError::destination("make the link"))?;
                self.progress.file_done(&task.from, &task.to, 0);
            }
        }
        Ok(())
    }

    fn directories(&self) -> MutexGuard<'_, Vec<(Place, Option<Meta>)>> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives directories their modes and times, deepest first: what is made in one changes its time.
    fn finish_directories(&self) {
        let mut directories = std::mem::take(&mut *self.directories());
        directories.sort_by_cached_key(|(place, _)| std::cmp::Reverse(place.to_bytes()));
        directories.dedup_by(|a, b| a.1.is_none() && a.0.to_bytes() == b.0.to_bytes());
        for (place, meta) in &directories {
            let finished = place.sync_directory().or_else(|trouble| {
                // Some services cannot; then nothing better can be done.
                if trouble.is_unsupported() { Ok(()) } else { Err(trouble) }
            });
            let finished = finished.and_then(|()| match meta {
                Some(meta) if !place.is_object() => {
                    place.set_times(meta.atime, meta.mtime)?;
                    place.set_mode(meta.mode & transfer::MODE_KEPT)
                }
                Some(_) | None => Ok(()),
            });
            if let Err(trouble) = finished {
                let error = CopyError::destination("finish the directory")(trouble);
                self.progress.failed(place, place, error.explain(place, place));
            }
        }
    }
}

/// Tasks, and how many of them are still to be done.
struct Queue {
    state: Mutex<Pending>,
    changed: Condvar,
}

struct Pending {
    tasks: Vec<Task>,
    /// Taken, but not done: they may still add some.
    active: usize,
}

impl Queue {
    fn new(mut tasks: Vec<Task>) -> Self {
        tasks.reverse();
        Self { state: Mutex::new(Pending { tasks, active: 0 }), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, Pending> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next task; none when all are done. The last one added comes first, so that the queue stays short.
    fn take(&self) -> Option<Task> {
        let mut state = self.state();
        loop {
            if let Some(task) = state.tasks.pop() {
                state.active += 1;
                return Some(task);
            }
            if state.active == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, tasks: impl DoubleEndedIterator<Item = Task>) {
        self.state().tasks.extend(tasks.rev());
        self.changed.notify_all();
    }

    fn done(&self) {
        self.state().active -= 1;
        self.changed.notify_all();
    }
}
