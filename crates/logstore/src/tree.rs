//! What all nodes of a store share, and finding files by their names.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use std::time::{Duration, Instant};

use hostlog::{Change, FileId, Log, Operation, Sequence};
use p9::{Errno, Qid, QidType, Time, mode};
use rustix::time::ClockId;
use store::{Node, Store};

use crate::Options;
use crate::content::Content;
use crate::error::{Tried, logged, refusal};
use crate::groups::Group;
use crate::inode::{Base, Body, FILE_ID_STEP, Inode, is_made_here, marks};
use crate::names::{Entry, Place, Slot};
use crate::state::IDENTITY_TAG;

/// How often something is tried again that a concurrent drain spoils.
pub(crate) const RACES_MAX: usize = 16;

/// For how long a file is known by the number that the log gave it after nobody has it open any more: a process
/// that becomes another program opens what it passes on to that a moment later.
const PASSED_ON: Duration = Duration::from_secs(10);

/// How many such files are remembered at most: each is named in every mark of the drain.
const PASSED_ON_MAX: usize = 256;

/// The overlay. Locks are taken in the order `changes`, a content, names, `table`; what is in an inode
/// besides, last.
pub(crate) struct Tree {
    pub(crate) log: Arc<Log>,
    pub(crate) options: Options,
    pub(crate) root: Arc<Entry>,
    pub(crate) user: User,
    pub(crate) name_bytes_max: usize,
    /// The target, where its files are only replaced as wholes.
    of_wholes: Option<Arc<dyn Store>>,
    next_file: AtomicU64,
    next_stream: AtomicU32,
    pub(crate) next_group: AtomicU32,
    /// Held while names change.
    pub(crate) changes: Mutex<()>,
    table: Mutex<Table>,
    /// Names that the target does not have as the log has them, by the record that changed them.
    undrained: Mutex<BTreeMap<Sequence, Vec<Place>>>,
    /// Records of the namespace that no commit stands behind.
    pending_names: Mutex<VecDeque<Sequence>>,
    pub(crate) groups: Mutex<HashMap<epochs::Group, Arc<Group>>>,
    /// What clients had before the store was opened: they may come back.
    pub(crate) returning: Mutex<Option<Returning>>,
    /// What was closed a moment ago.
    passed_on: Mutex<VecDeque<(Instant, Arc<Inode>)>>,
    /// Writers that wait for space.
    pub(crate) waiting: AtomicUsize,
    /// What lies up to here nobody reads from the log any more.
    pub(crate) forgotten: AtomicU64,
    /// Clients that are lost from here on are lost because nobody serves them any more.
    pub(crate) is_ending: AtomicBool,
}

/// Since when, and what.
pub(crate) type Returning = (Instant, HashMap<FileId, Arc<Inode>>);

/// Inodes by what they are known by.
#[derive(Default)]
struct Table {
    /// By the target's `qid.path`.
    of_target: HashMap<u64, Weak<Inode>>,
    by_file: HashMap<FileId, Weak<Inode>>,
    /// Those of which the target has not all.
    held: HashMap<usize, Arc<Inode>>,
    sweep_at: usize,
}

/// Whose rights apply to what the target does not have yet.
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    groups: Vec<u32>,
}

/// The kinds of access that permission bits are for.
#[derive(Clone, Copy)]
pub(crate) struct Access(u32);

impl Access {
    pub(crate) const READ: Access = Access(4);
    pub(crate) const WRITE: Access = Access(2);
    pub(crate) const SEARCH: Access = Access(1);
}

impl User {
    fn own() -> Self {
        let groups = rustix::process::getgroups().unwrap_or_default();
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: groups.into_iter().map(|group| group.as_raw()).collect(),
        }
    }

    /// Whether it may have that access to something that was made here. What the target has it guards
    /// itself, by rights that are not ours to guess.
    ///
    /// # Errors
    /// `EACCES`.
    pub(crate) fn check(
        &self,
        operation: &'static str,
        inode: &Inode,
        access: Access,
    ) -> store::Result<()> {
        let Some(meta) = *guard(&inode.meta) else { return Ok(()) };
        let class = match () {
            () if self.uid == 0 || inode.created.is_none() => return Ok(()),
            () if meta.uid == self.uid => meta.mode >> 6,
            () if meta.gid == self.gid || self.groups.contains(&meta.gid) => meta.mode >> 3,
            () => meta.mode,
        };
        if class & access.0 == 0 { Err(refusal(operation, Errno::EACCES)) } else { Ok(()) }
    }
}

impl Tree {
    pub(crate) fn new(
        log: Arc<Log>,
        target: &Arc<dyn Store>,
        root: Arc<dyn Node>,
        options: Options,
        next_file: u64,
        next_group: u32,
    ) -> Self {
        let name_max = root.statfs().map_or(0, |found| found.name_max as usize);
        let longest = store::NAME_BYTES_MAX;
        Self {
            log,
            options,
            root: Entry::unplaced(Arc::new(Inode::of_target(root))),
            user: User::own(),
            of_wholes: target.wholes().is_some().then(|| Arc::clone(target)),
            name_bytes_max: if name_max == 0 { longest } else { name_max.min(longest) },
            next_file: AtomicU64::new(next_file.next_multiple_of(FILE_ID_STEP)),
            next_stream: AtomicU32::new(1),
            next_group: AtomicU32::new(next_group),
            changes: Mutex::default(),
            table: Mutex::default(),
            undrained: Mutex::default(),
            pending_names: Mutex::default(),
            groups: Mutex::default(),
            returning: Mutex::default(),
            passed_on: Mutex::default(),
            waiting: AtomicUsize::new(0),
            forgotten: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
        }
    }

    /// A number for something that the log makes, or for something that the target has.
    pub(crate) fn new_file(&self, kind: QidType, made_here: bool) -> FileId {
        let number = self.next_file.fetch_add(FILE_ID_STEP, Ordering::Relaxed);
        FileId(number | marks(kind, made_here))
    }

    pub(crate) fn next_file(&self) -> u64 {
        self.next_file.load(Ordering::Relaxed)
    }

    pub(crate) fn new_stream(&self) -> u32 {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }

    // Numbers of inodes.

    fn table(&self) -> MutexGuard<'_, Table> {
        guard(&self.table)
    }

    /// The inode of a node of the target: the same as long as anybody has it.
    pub(crate) fn inode_of(&self, node: Arc<dyn Node>) -> Arc<Inode> {
        let qid = node.qid();
        if qid.path == self.root.inode.number() {
            return Arc::clone(&self.root.inode);
        }
        let mut table = self.table();
        let known = table.of_target.get(&qid.path).and_then(Weak::upgrade);
        if let Some(inode) = known.filter(|inode| inode.kind() == kind_of(qid)) {
            return inode;
        }
        let inode = Arc::new(Inode::of_target(node));
        table.of_target.insert(qid.path, Arc::downgrade(&inode));
        table.sweep();
        inode
    }

    /// The number that clients know a file of the target by.
    pub(crate) fn number_of(&self, path: u64) -> u64 {
        let known = self.table().of_target.get(&path).and_then(Weak::upgrade);
        known.map_or(path, |inode| inode.number())
    }

    /// Takes notice which file of the target an inode is.
    pub(crate) fn found(&self, inode: &Arc<Inode>, node: Arc<dyn Node>) {
        let path = node.qid().path;
        inode.set_number(path);
        inode.set_base(Base::Node(node));
        self.table().of_target.insert(path, Arc::downgrade(inode));
    }

    /// Makes an inode known by its file id, and keeps it until the target has all of it.
    pub(crate) fn hold(&self, inode: &Arc<Inode>) {
        let mut table = self.table();
        if !inode.is_held.swap(true, Ordering::AcqRel) {
            table.know(inode);
            table.held.insert(address(inode), Arc::clone(inode));
        }
    }

    /// The same, for who holds the content's lock.
    pub(crate) fn hold_written(&self, inode: &Arc<Inode>) {
        if !inode.is_held.load(Ordering::Acquire) {
            self.hold(inode);
        }
    }

    /// Keeps an inode no more, unless there is a record about it behind `through`: who writes one notes it
    /// in the inode first and then holds that.
    pub(crate) fn release(&self, inode: &Arc<Inode>, through: Sequence) {
        let mut table = self.table();
        if inode.last() > through {
            return;
        }
        inode.is_held.store(false, Ordering::Release);
        let released = table.held.remove(&address(inode));
        drop(table);
        drop(released);
    }

    /// Keeps an inode for a moment that nobody has open any more.
    pub(crate) fn pass_on(&self, inode: &Arc<Inode>) {
        if inode.file_id().is_some_and(is_made_here) && inode.nlink() != Some(0) {
            let mut all = guard(&self.passed_on);
            let gone = if all.len() < PASSED_ON_MAX { None } else { all.pop_front() };
            all.push_back((Instant::now(), Arc::clone(inode)));
            drop(all);
            drop(gone);
        }
    }

    /// Lets go of what was kept for a moment.
    pub(crate) fn forget_passed_on(&self) {
        let is_over = |(since, inode): &(Instant, Arc<Inode>)| {
            since.elapsed() > PASSED_ON || inode.nlink() == Some(0)
        };
        let mut all = guard(&self.passed_on);
        let (gone, kept) = all.drain(..).partition(is_over);
        *all = kept;
        drop(all);
        let gone: VecDeque<_> = gone;
        drop(gone);
    }

    pub(crate) fn held(&self) -> Vec<Arc<Inode>> {
        self.table().held.values().cloned().collect()
    }

    /// The file ids that somebody still has something of.
    pub(crate) fn known_files(&self) -> Vec<FileId> {
        let mut table = self.table();
        table.by_file.retain(|_, inode| inode.strong_count() > 0);
        let alive = table
            .by_file
            .iter()
            .filter(|(_, inode)| inode.upgrade().is_some_and(|inode| inode.nlink() != Some(0)));
        alive.map(|(file, _)| *file).collect()
    }

    /// Makes a file known by its id, without keeping it.
    pub(crate) fn know(&self, inode: &Arc<Inode>) {
        self.table().know(inode);
    }

    // Finding.

    /// Checks a name that is to be in a directory.
    pub(crate) fn check_name(
        &self,
        operation: &'static str,
        name: &[u8],
        for_dots: Errno,
    ) -> store::Result<()> {
        store::check_name(operation, name, for_dots)?;
        if name.len() > self.name_bytes_max {
            return Err(refusal(operation, Errno::ENAMETOOLONG));
        }
        Ok(())
    }

    /// Refuses what a target of whole files can never have: links, and directories that move.
    pub(crate) fn check_possible(
        &self,
        operation: &'static str,
        errno: Errno,
    ) -> store::Result<()> {
        if self.of_wholes.is_some() { Err(refusal(operation, errno)) } else { Ok(()) }
    }

    /// Checks a path that something is to have.
    pub(crate) fn check_path(&self, operation: &'static str, path: &[u8]) -> store::Result<()> {
        match self.of_wholes.as_ref().and_then(|target| target.wholes()) {
            Some(wholes) => wholes.check(operation, path),
            None => Ok(()),
        }
    }

    /// The entry of that name.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`, `ENOENT`, and what the target says.
    pub(crate) fn look_up(
        &self,
        operation: &'static str,
        dir: &Arc<Inode>,
        name: &[u8],
    ) -> store::Result<Arc<Entry>> {
        let names = dir.names(operation)?;
        self.user.check(operation, dir, Access::SEARCH)?;
        let none = || refusal(operation, Errno::ENOENT);
        for _ in 0..RACES_MAX {
            let before = {
                let names = guard(names);
                match names.get(name) {
                    Some(Slot::Present { entry, .. }) => return Ok(Arc::clone(entry)),
                    Some(Slot::Removed { .. }) => return Err(none()),
                    Some(Slot::Seen(_)) | None => names.given_back,
                }
            };
            let base = dir.base_node(operation)?.ok_or_else(none)?;
            let node = base.walk(&[name])?.end.ok_or_else(none)?;
            let inode = self.inode_of(node);
            let mut names = guard(names);
            match names.get(name) {
                Some(Slot::Present { entry, .. }) => return Ok(Arc::clone(entry)),
                Some(Slot::Removed { .. }) => return Err(none()),
                Some(Slot::Seen(_)) | None if names.given_back != before => continue,
                Some(Slot::Seen(entry)) => {
                    let known = entry.upgrade();
                    if let Some(entry) = known.filter(|entry| Arc::ptr_eq(&entry.inode, &inode)) {
                        return Ok(entry);
                    }
                }
                None => {}
            }
            let entry = Entry::placed(inode, dir, name);
            names.set(name, Slot::Seen(Arc::downgrade(&entry)));
            return Ok(entry);
        }
        Err(refusal(operation, Errno::EAGAIN))
    }

    /// The path of a name from the target's root, if it still has one.
    pub(crate) fn path_of(&self, place: &Place) -> Option<Vec<u8>> {
        let mut elements = vec![place.name.clone()];
        let mut dir = Arc::clone(&place.dir);
        while !Arc::ptr_eq(&dir, &self.root.inode) {
            let home = guard(&dir.home).clone()?;
            elements.push(home.name);
            dir = home.dir;
        }
        elements.reverse();
        Some(elements.join(&b'/'))
    }

    /// A path by which an inode can be found.
    pub(crate) fn path_of_inode(&self, inode: &Arc<Inode>) -> Option<Vec<u8>> {
        if Arc::ptr_eq(inode, &self.root.inode) {
            return Some(Vec::new());
        }
        self.places_of(inode).iter().find_map(|place| self.path_of(place))
    }

    /// Whether `dir` is `above` or lies somewhere below it.
    pub(crate) fn is_within(&self, dir: &Arc<Inode>, above: &Arc<Inode>) -> bool {
        let mut here = Some(Arc::clone(dir));
        while let Some(inode) = here {
            if Arc::ptr_eq(&inode, above) {
                return true;
            }
            here = guard(&inode.home).as_ref().map(|home| Arc::clone(&home.dir));
        }
        false
    }

    // Records.

    /// Appends a record of the namespace. The caller holds `changes`, so that the order of the records is
    /// that of the changes.
    pub(crate) fn record(
        &self,
        operation: &'static str,
        stream: u32,
        file: Option<FileId>,
        what: &Operation,
    ) -> Tried<Sequence> {
        let file = file.unwrap_or(FileId::NONE);
        let change = Change { stream, file, member: None, namespace: true };
        let sequence = self.log.change(&change, what).map_err(logged(operation))?;
        guard(&self.pending_names).push_back(sequence);
        Ok(sequence)
    }

    /// Takes notice that a commit stands behind the namespace's records up to `through`, durably.
    pub(crate) fn settle_names(&self, through: Sequence) {
        let mut pending = guard(&self.pending_names);
        while pending.front().is_some_and(|sequence| *sequence <= through) {
            pending.pop_front();
        }
    }

    /// The oldest record of the namespace that may not count yet, and how many there are.
    pub(crate) fn pending_names(&self) -> (Option<Sequence>, usize) {
        let pending = guard(&self.pending_names);
        (pending.front().copied(), pending.len())
    }

    /// Gives a file of the target a number in the log, and says there which it is.
    pub(crate) fn bind(
        &self,
        operation: &'static str,
        stream: u32,
        inode: &Arc<Inode>,
    ) -> Tried<FileId> {
        if let Some(file) = inode.file_id() {
            load(operation, inode)?;
            self.find_again(operation, stream, inode)?;
            return Ok(file);
        }
        let _turn = guard(&self.changes);
        self.bind_in_turn(operation, stream, inode)
    }

    /// The same; the caller holds `changes`.
    pub(crate) fn bind_in_turn(
        &self,
        operation: &'static str,
        stream: u32,
        inode: &Arc<Inode>,
    ) -> Tried<FileId> {
        load(operation, inode)?;
        if let Some(file) = inode.file_id() {
            return Ok(file);
        }
        let file = self.new_file(inode.kind(), false);
        // What has lost its last name goes to the log only to be read again.
        match self.places_of(inode).first() {
            Some(place) => self.bind_name(operation, stream, file, inode, place)?,
            None if Arc::ptr_eq(inode, &self.root.inode) => {
                self.bind_path(operation, stream, file, inode, Vec::new())?;
            }
            None => {}
        }
        inode.set_file_id(file);
        self.know(inode);
        self.hold(inode);
        Ok(file)
    }

    /// Where an inode can be found, first where the log says so.
    fn places_of(&self, inode: &Arc<Inode>) -> Vec<Place> {
        if inode.is_directory() {
            return guard(&inode.home).iter().cloned().collect();
        }
        let mut places = inode.bound();
        let known: Vec<Arc<Entry>> =
            guard(&inode.entries).iter().filter_map(Weak::upgrade).collect();
        for place in known.iter().filter_map(|entry| entry.place()) {
            if !places.iter().any(|other| other.is(&place.dir, &place.name)) {
                places.push(place);
            }
        }
        places
    }

    /// Says in the log that this is a name of a file, unless it does: the drain must not lose a file of
    /// which one name is removed and the other was never spoken of. The caller holds `changes`.
    pub(crate) fn bind_name(
        &self,
        operation: &'static str,
        stream: u32,
        file: FileId,
        inode: &Inode,
        place: &Place,
    ) -> Tried<()> {
        if inode.bound().iter().any(|other| other.is(&place.dir, &place.name)) {
            return Ok(());
        }
        if let Some(path) = self.path_of(place) {
            self.bind_path(operation, stream, file, inode, path)?;
            inode.add_bound(&place.dir, &place.name);
        }
        Ok(())
    }

    fn bind_path(
        &self,
        operation: &'static str,
        stream: u32,
        file: FileId,
        inode: &Inode,
        path: Vec<u8>,
    ) -> Tried<()> {
        let base = inode.base_node(operation)?.ok_or(refusal(operation, Errno::ESTALE))?;
        self.record(operation, stream, Some(file), &Operation::Bind { path })?;
        let bytes = base.qid().path.to_le_bytes().to_vec();
        let note = Operation::Note { tag: IDENTITY_TAG, bytes };
        inode.touched_by(self.record(operation, stream, Some(file), &note)?);
        Ok(())
    }

    /// Before a name of a file is taken away that has others: sees to it that the log knows one of those.
    pub(crate) fn bind_another(
        &self,
        operation: &'static str,
        stream: u32,
        entry: &Entry,
    ) -> Tried<()> {
        let inode = &entry.inode;
        let file = self.bind_in_turn(operation, stream, inode)?;
        let Some(here) = entry.place() else { return Ok(()) };
        // Those that the log knows come first.
        let places = self.places_of(inode);
        match places.iter().find(|place| !place.is(&here.dir, &here.name)) {
            Some(place) => self.bind_name(operation, stream, file, inode, place)?,
            None => inode.is_astray.store(true, Ordering::Release),
        }
        Ok(())
    }

    /// Whether a file that has lost its known names has been seen by another since.
    ///
    /// # Errors
    /// `EIO` as long as it has not: what is written could be brought to no name.
    fn find_again(&self, operation: &'static str, stream: u32, inode: &Arc<Inode>) -> Tried<()> {
        if !inode.is_astray.load(Ordering::Acquire) {
            return Ok(());
        }
        let _turn = guard(&self.changes);
        let (places, file) = (self.places_of(inode), inode.file_id());
        let (Some(place), Some(file)) = (places.first(), file) else {
            return Err(refusal(operation, Errno::EIO).into());
        };
        self.bind_name(operation, stream, file, inode, place)?;
        inode.is_astray.store(false, Ordering::Release);
        Ok(())
    }

    // Changing names, in memory: the record is written.

    /// Sees to it that names in a directory may be changed.
    pub(crate) fn check_change(
        &self,
        operation: &'static str,
        dir: &Arc<Inode>,
    ) -> store::Result<()> {
        let names = dir.names(operation)?;
        self.user.check(operation, dir, Access::SEARCH)?;
        self.user.check(operation, dir, Access::WRITE)?;
        let is_writable = {
            let names = guard(names);
            if names.is_removed {
                return Err(refusal(operation, Errno::ENOENT));
            }
            names.is_writable
        };
        if !is_writable {
            self.check_writable(operation, dir)?;
            guard(names).is_writable = true;
        }
        dir.load_meta(operation)
    }

    /// Asks the target to change nothing, which what is read-only refuses all the same.
    pub(crate) fn check_writable(
        &self,
        operation: &'static str,
        inode: &Inode,
    ) -> store::Result<()> {
        match inode.base_node(operation)? {
            Some(base) => base.set_attributes(&p9::SetAttributes::default()),
            None => Ok(()),
        }
    }

    pub(crate) fn put(&self, dir: &Arc<Inode>, name: &[u8], entry: &Arc<Entry>, since: Sequence) {
        entry.inode.add_bound(dir, name);
        entry.move_to(Some(Place { dir: Arc::clone(dir), name: name.to_vec() }));
        {
            let mut known = guard(&entry.inode.entries);
            known.retain(|other| other.strong_count() > 0);
            if !known.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(entry))) {
                known.push(Arc::downgrade(entry));
            }
        }
        entry.inode.touched_by(since);
        self.hold(&entry.inode);
        self.set(dir, name, Slot::Present { entry: Arc::clone(entry), since }, since);
    }

    pub(crate) fn cut(&self, dir: &Arc<Inode>, name: &[u8], since: Sequence) {
        self.set(dir, name, Slot::Removed { since }, since);
    }

    fn set(&self, dir: &Arc<Inode>, name: &[u8], slot: Slot, since: Sequence) {
        if let Body::Directory(names) = &dir.body {
            guard(names).set(name, slot);
        }
        self.hold(dir);
        dir.touched_by(since);
        dir.touch_content(self.user.uid);
        let place = Place { dir: Arc::clone(dir), name: name.to_vec() };
        guard(&self.undrained).entry(since).or_default().push(place);
    }

    /// Takes out the names that were changed up to `through`.
    pub(crate) fn take_undrained(&self, through: Sequence) -> Vec<Place> {
        let mut all = guard(&self.undrained);
        let later = all.split_off(&Sequence(through.0 + 1));
        let drained = std::mem::replace(&mut *all, later);
        drained.into_values().flatten().collect()
    }
}

impl Table {
    fn know(&mut self, inode: &Arc<Inode>) {
        if let Some(file) = inode.file_id() {
            self.by_file.insert(file, Arc::downgrade(inode));
        }
    }

    fn sweep(&mut self) {
        if self.of_target.len() > self.sweep_at {
            self.of_target.retain(|_, inode| inode.strong_count() > 0);
            self.sweep_at = (2 * self.of_target.len()).max(1024);
        }
    }
}

impl Drop for Tree {
    /// Names and the directories that they are in know each other: here the rings are opened.
    fn drop(&mut self) {
        guard(&self.undrained).clear();
        let held = self.held();
        for inode in held.iter().chain([&self.root.inode]) {
            if let Body::Directory(names) = &inode.body {
                let slots = guard(names).clear();
                drop(slots);
            }
        }
        for inode in &held {
            guard(&inode.home).take();
        }
    }
}

/// Has attributes and size of a file in memory from here on.
fn load(operation: &'static str, inode: &Inode) -> store::Result<()> {
    if inode.is_loaded.load(Ordering::Acquire) {
        return Ok(());
    }
    inode.load_meta(operation)?;
    if let Body::File(content) = &inode.body {
        let mut content = writing(content);
        if content.is_none() {
            let base = inode.base_node(operation)?.ok_or(refusal(operation, Errno::ESTALE))?;
            *content = Some(Content::of_size(base.attributes()?.size));
        }
    }
    inode.is_loaded.store(true, Ordering::Release);
    Ok(())
}

fn address(inode: &Arc<Inode>) -> usize {
    Arc::as_ptr(inode).addr()
}

fn kind_of(qid: Qid) -> QidType {
    qid.kind & (QidType::DIR | QidType::SYMLINK)
}

/// The mode of a new file of a kind.
pub(crate) fn regular(mode: u32) -> u32 {
    mode::REGULAR | mode & mode::PERMISSIONS
}

pub(crate) fn now() -> Time {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    Time { seconds: now.tv_sec as u64, nanoseconds: now.tv_nsec as u64 }
}

// A thread that panicked while it held one of these locks left nothing half done that another
// could not live with.

pub(crate) fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn reading<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn writing<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
