//! The files that the kernel knows, by the numbers it names them by.
//!
//! A number is a qid's path, so it stays the same for as long as the file lives, on every mount of
//! the same store. Only the root has the number that FUSE demands.
//!
//! The kernel may know very many files at a time, and each node may hold a descriptor or a fid. So
//! only so many nodes are held; one that is wanted again is found by its names, and must be the
//! same file then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use p9::{Attributes, Errno};
use store::Node;

/// The number of the root (`FUSE_ROOT_ID` in `fuse.h`).
pub(super) const ROOT: u64 = 1;

/// Files by number.
pub(super) struct Nodes {
    root: Arc<dyn Node>,
    root_path: u64,
    held_max: usize,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    files: HashMap<u64, File>,
    /// Which file was last found at a name of a directory.
    names: HashMap<Place, u64>,
    held: usize,
    /// Counts uses.
    clock: u64,
}

/// A directory's number and a name there.
type Place = (u64, Vec<u8>);

struct File {
    /// The qid's path.
    path: u64,
    /// How often the kernel was told the number and has not taken it back.
    lookups: u64,
    /// Known files whose place is in this directory.
    children: u64,
    /// How often it is open.
    openings: u64,
    /// None once the name is gone: then the node is all that leads to the file.
    place: Option<Place>,
    node: Option<Arc<dyn Node>>,
    used: u64,
    told: Option<Told>,
}

/// What the kernel was last told of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) mode: u32,
    pub(super) size: u64,
}

fn refuse<T>(errno: Errno) -> Result<T, Errno> {
    Err(errno)
}

impl Nodes {
    /// A table that knows the root only, and holds at most so many nodes that are not open.
    pub(super) fn new(root: Arc<dyn Node>, held_max: usize) -> Self {
        let root_path = root.qid().path;
        let nodes = Self { root, root_path, held_max, known: Mutex::default() };
        let root = File::new(root_path, None, Some(Arc::clone(&nodes.root)));
        nodes.lock().files.insert(ROOT, root);
        nodes
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the file with a qid's path.
    pub(super) fn number(&self, path: u64) -> u64 {
        match path {
            path if path == self.root_path => ROOT,
            // FUSE has other uses for these; no store counts as far as what stands for them.
            0 | ROOT => path ^ (1 << 63),
            path => path,
        }
    }

    /// The node of a number.
    ///
    /// # Errors
    /// `ESTALE` when the file is not where it was, or another one is.
    pub(super) fn get(&self, number: u64) -> Result<Arc<dyn Node>, Errno> {
        let (way, path) = {
            let mut known = self.lock();
            known.clock += 1;
            let clock = known.clock;
            let Some(file) = known.files.get_mut(&number) else { return refuse(Errno::ESTALE) };
            file.used = clock;
            if let Some(node) = &file.node {
                return Ok(Arc::clone(node));
            }
            let path = file.path;
            (known.way(number).ok_or(Errno::ESTALE)?, path)
        };
        let names: Vec<&[u8]> = way.iter().map(Vec::as_slice).collect();
        let stale = |errno| if errno == Errno::ENOENT { Errno::ESTALE } else { errno };
        let walk = self.root.walk(&names).map_err(|error| stale(error.to_errno()))?;
        let is_same = walk.qids.last().is_some_and(|qid| qid.path == path);
        let node = walk.end.filter(|_| is_same).ok_or(Errno::ESTALE)?;
        let dropped = {
            let mut known = self.lock();
            known.hold(number, &node);
            known.let_go(self.held_max)
        };
        drop(dropped);
        Ok(node)
    }

    /// Takes in that the kernel is told of a file, found at a name; gives its number.
    pub(super) fn enter(
        &self,
        parent: u64,
        name: &[u8],
        node: &Arc<dyn Node>,
        found: &Attributes,
    ) -> u64 {
        let number = self.number(found.qid.path);
        let mut dropped = Vec::new();
        let let_go = {
            let mut known = self.lock();
            let path = found.qid.path;
            known.files.entry(number).or_insert_with(|| File::new(path, None, None));
            known.hold(number, node);
            let clock = known.clock + 1;
            known.clock = clock;
            if let Some(file) = known.files.get_mut(&number) {
                file.lookups += 1;
                file.used = clock;
                file.told = Some(Told::of(found));
            }
            if number != ROOT {
                known.put(number, (parent, name.to_vec()), &mut dropped);
            }
            known.let_go(self.held_max)
        };
        drop((dropped, let_go));
        number
    }

    /// Takes in that the kernel is told attributes anew.
    pub(super) fn tell(&self, number: u64, found: &Attributes) {
        if let Some(file) = self.lock().files.get_mut(&number) {
            file.told = Some(Told::of(found));
        }
    }

    /// What the kernel was last told.
    pub(super) fn told(&self, number: u64) -> Option<Told> {
        self.lock().files.get(&number)?.told
    }

    /// Takes in that the kernel gives back a number so many times.
    pub(super) fn forget(&self, number: u64, count: u64) {
        let mut dropped = Vec::new();
        let mut known = self.lock();
        if let Some(file) = known.files.get_mut(&number) {
            file.lookups = file.lookups.saturating_sub(count);
        }
        known.drop_unused(number, &mut dropped);
        drop(known);
        // Behind the lock: a node may have something to say to another machine.
        drop(dropped);
    }

    /// Takes in that a file is opened: its node stays.
    pub(super) fn opened(&self, number: u64) {
        if let Some(file) = self.lock().files.get_mut(&number) {
            file.openings += 1;
        }
    }

    /// Takes in that an opening has ended.
    pub(super) fn closed(&self, number: u64) {
        let mut dropped = Vec::new();
        let mut known = self.lock();
        if let Some(file) = known.files.get_mut(&number) {
            file.openings = file.openings.saturating_sub(1);
        }
        known.drop_unused(number, &mut dropped);
        drop(known);
        drop(dropped);
    }

    /// Takes in that a name is gone.
    pub(super) fn removed(&self, parent: u64, name: &[u8]) {
        let mut dropped = Vec::new();
        let mut known = self.lock();
        known.lose(&(parent, name.to_vec()), &mut dropped);
        drop(known);
        drop(dropped);
    }

    /// Takes in that what was called `from` is called `to` now.
    pub(super) fn renamed(&self, from: (u64, &[u8]), to: (u64, &[u8])) {
        let from = (from.0, from.1.to_vec());
        let to = (to.0, to.1.to_vec());
        let mut dropped = Vec::new();
        let mut known = self.lock();
        let moved = known.names.get(&from).copied();
        // Two names of one file stay as they are (rename(2)).
        if from != to && (moved.is_none() || moved != known.names.get(&to).copied()) {
            known.lose(&to, &mut dropped);
            if let Some(number) = moved {
                known.put(number, to, &mut dropped);
            }
        }
        drop(known);
        drop(dropped);
    }

    /// How many files are known, and how many nodes are held.
    #[cfg(test)]
    fn counts(&self) -> (usize, usize) {
        let known = self.lock();
        (known.files.len(), known.held)
    }
}

impl File {
    fn new(path: u64, place: Option<Place>, node: Option<Arc<dyn Node>>) -> Self {
        Self { path, lookups: 0, children: 0, openings: 0, place, node, used: 0, told: None }
    }
}

impl Told {
    fn of(found: &Attributes) -> Self {
        Self { mode: found.mode, size: found.size }
    }
}

impl Known {
    /// The names from the root to a file.
    fn way(&self, number: u64) -> Option<Vec<Vec<u8>>> {
        let mut way = Vec::new();
        let mut here = number;
        while here != ROOT {
            let (parent, name) = self.files.get(&here)?.place.as_ref()?;
            way.push(name.clone());
            here = *parent;
        }
        way.reverse();
        Some(way)
    }

    /// Writes down that a known file is at a place.
    fn put(&mut self, number: u64, place: Place, dropped: &mut Vec<Arc<dyn Node>>) {
        if self.names.get(&place).is_some_and(|other| *other != number) {
            // Somebody else has renamed or removed it.
            self.lose(&place, dropped);
        }
        self.names.insert(place.clone(), number);
        let Some(file) = self.files.get_mut(&number) else { return };
        if file.place.as_ref() == Some(&place) {
            return;
        }
        let before = file.place.replace(place.clone());
        if let Some(directory) = self.files.get_mut(&place.0) {
            directory.children += 1;
        }
        if let Some(before) = before {
            self.leave(number, &before);
            self.drop_unused(before.0, dropped);
        }
    }

    /// After a file's place was taken from it: the directory has a child less.
    fn leave(&mut self, number: u64, place: &Place) {
        if self.names.get(place) == Some(&number) {
            self.names.remove(place);
        }
        if let Some(directory) = self.files.get_mut(&place.0) {
            directory.children = directory.children.saturating_sub(1);
        }
    }

    /// Takes its place from whatever file is there.
    fn lose(&mut self, place: &Place, dropped: &mut Vec<Arc<dyn Node>>) {
        let Some(number) = self.names.get(place).copied() else { return };
        if let Some(file) = self.files.get_mut(&number) {
            file.place = None;
        }
        self.leave(number, place);
        self.drop_unused(number, dropped);
        self.drop_unused(place.0, dropped);
    }

    fn hold(&mut self, number: u64, node: &Arc<dyn Node>) {
        let Some(file) = self.files.get_mut(&number) else { return };
        if number != ROOT && file.node.replace(Arc::clone(node)).is_none() {
            self.held += 1;
        }
    }

    /// Forgets a file that neither the kernel nor an opening nor a file below needs, and then
    /// perhaps the directories above.
    fn drop_unused(&mut self, number: u64, dropped: &mut Vec<Arc<dyn Node>>) {
        let mut here = number;
        loop {
            let is_used = |file: &File| file.lookups + file.children + file.openings > 0;
            if here == ROOT || self.files.get(&here).is_none_or(is_used) {
                return;
            }
            let Some(file) = self.files.remove(&here) else { return };
            if let Some(node) = file.node {
                self.held -= 1;
                dropped.push(node);
            }
            let Some(place) = file.place else { return };
            self.leave(here, &place);
            here = place.0;
        }
    }

    /// Lets go of the nodes that were not used for longest, when there are too many. They are found
    /// again by their names.
    fn let_go(&mut self, held_max: usize) -> Vec<Arc<dyn Node>> {
        if self.held <= held_max {
            return Vec::new();
        }
        let can_go =
            |file: &File| file.node.is_some() && file.openings == 0 && file.place.is_some();
        let mut oldest: Vec<(u64, u64)> = self
            .files
            .iter()
            .filter(|(number, file)| **number != ROOT && can_go(file))
            .map(|(number, file)| (file.used, *number))
            .collect();
        // A quarter at a time, so that the search is paid for by many uses.
        let count = (held_max / 4).max(1).min(oldest.len());
        if count == 0 {
            return Vec::new();
        }
        oldest.select_nth_unstable(count - 1);
        self.held -= count;
        let files = &mut self.files;
        let take = |(_, number): &(u64, u64)| files.get_mut(number)?.node.take();
        oldest[..count].iter().filter_map(take).collect()
    }
}

#[cfg(test)]
mod tests;
