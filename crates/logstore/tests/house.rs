//! What the tests share: logs on simulated disks, and a drain as simple as can be.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use hostlog::media::simulated::SimulatedDisk;
use hostlog::{Description, FileId, Log, Operation, Sequence, What};
use logstore::{Bound, IDENTITY_TAG, LogStore, Options, State};
use p9::{OpenFlags, SetAttributes, SetattrMask, Time};
use store::{Node, Store};

pub(crate) const READ: OpenFlags = OpenFlags::empty();
pub(crate) const BOTH: OpenFlags = OpenFlags::READ_WRITE;

/// A store by handle.
pub(crate) struct Attach(pub(crate) Arc<LogStore>);

impl Store for Attach {
    fn root(&self) -> store::Result<Arc<dyn Node>> {
        self.0.root()
    }

    fn blocks(&self) -> bool {
        self.0.blocks()
    }
}

pub(crate) fn small() -> hostlog::Options {
    let segment_bytes = 64 << 10;
    hostlog::Options { segment_bytes, size_max_bytes: 256 << 20, ready_segments: 1 }
}

/// A log on a disk over a target, with what drains it.
pub(crate) struct Scene {
    pub(crate) disk: Arc<SimulatedDisk>,
    pub(crate) log: Arc<Log>,
    pub(crate) store: Arc<LogStore>,
    pub(crate) target: Arc<dyn Store>,
    pub(crate) drain: Drain,
    pub(crate) options: hostlog::Options,
}

pub(crate) fn store_options() -> Options {
    Options { identity: b"this log".to_vec(), ..Options::default() }
}

impl Scene {
    pub(crate) fn new(target: Arc<dyn Store>) -> Self {
        Self::with(target, small())
    }

    pub(crate) fn with(target: Arc<dyn Store>, options: hostlog::Options) -> Self {
        let disk = Arc::new(SimulatedDisk::new(1));
        let media = Arc::clone(&disk);
        let log = Arc::new(Log::create(media, &Description::default(), options).unwrap());
        let store = LogStore::open(Arc::clone(&log), None, &target, store_options()).unwrap();
        Self { disk, log, store, target, drain: Drain::default(), options }
    }

    pub(crate) fn root(&self) -> Arc<dyn Node> {
        self.store.root().unwrap()
    }

    /// Ends the agent, as `end` says, and starts it again. Nobody may have anything open.
    pub(crate) fn restart(self, end: impl FnOnce(&SimulatedDisk)) -> Self {
        let Self { disk, log, store, target, mut drain, options } = self;
        drop(store);
        assert_eq!(Arc::strong_count(&log), 1, "somebody has the store still");
        drop(log);
        end(&disk);
        let media = Arc::clone(&disk);
        let (log, recovery) = Log::open(media, options).unwrap();
        let log = Arc::new(log);
        let store =
            LogStore::open(Arc::clone(&log), Some(&recovery), &target, store_options()).unwrap();
        drain.restart(State::decode(&recovery.drained_state).unwrap());
        Self { disk, log, store, target, drain, options }
    }

    /// Drains up to so many records, and then does some more that the log is not told of.
    pub(crate) fn drain(&mut self, records: usize, ahead: usize) {
        self.drain.step(&self.log, &self.store, &*self.target, records, ahead);
    }

    pub(crate) fn drain_all(&mut self) {
        self.drain(usize::MAX, 0);
    }
}

/// Brings records to a target one by one. What it has done it remembers over a restart, as a drain does
/// that keeps a journal.
#[derive(Default)]
pub(crate) struct Drain {
    /// All records up to here are in the target.
    applied: Sequence,
    names: Paths,
    /// Those as of the watermark.
    at_mark: Paths,
    next_file: u64,
    /// Identities of files of the target, as the log's notes say.
    pub(crate) told: BTreeMap<FileId, u64>,
}

type Paths = BTreeMap<FileId, Vec<Vec<u8>>>;

fn within(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Follows a change of names.
fn follow(names: &mut Paths, file: FileId, operation: &Operation) {
    let mut remove = |gone: &[u8]| {
        for paths in names.values_mut() {
            paths.retain(|path| !within(path, gone));
        }
        names.retain(|_, paths| !paths.is_empty());
    };
    match operation {
        Operation::Bind { path }
        | Operation::Create { path, .. }
        | Operation::Mkdir { path, .. }
        | Operation::Symlink { path, .. }
        | Operation::Link { path, .. } => names.entry(file).or_default().push(path.clone()),
        Operation::Unlink { path } | Operation::Rmdir { path } => remove(path),
        Operation::Rename { from, to, .. } => {
            remove(to);
            for path in names.values_mut().flatten() {
                if within(path, from) {
                    *path = [to, &path[from.len()..]].concat();
                }
            }
        }
        Operation::Truncate { .. } | Operation::Attributes { .. } | Operation::Note { .. } => {}
    }
}

pub(crate) fn at(root: &Arc<dyn Node>, path: &[u8]) -> Option<Arc<dyn Node>> {
    let elements = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    let names: Vec<&[u8]> = elements.collect();
    root.walk(&names).ok()?.end
}

fn above<'p>(root: &Arc<dyn Node>, path: &'p [u8]) -> (Arc<dyn Node>, &'p [u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (at(root, &path[..slash]).expect("a directory"), &path[slash + 1..]),
        None => (Arc::clone(root), path),
    }
}

impl Drain {
    fn restart(&mut self, state: State) {
        self.next_file = state.next_file;
        self.at_mark = Paths::new();
        for Bound { file, path, .. } in state.files {
            self.at_mark.entry(file).or_default().push(path);
        }
    }

    pub(crate) fn step(
        &mut self,
        log: &Log,
        store: &LogStore,
        target: &dyn Store,
        records: usize,
        ahead: usize,
    ) {
        let root = target.root().unwrap();
        let limit = store.drainable().min(log.status().durable);
        let mut mark = log.status().drained;
        let mut rest = log.replay();
        let mut is_all = true;
        for (count, record) in rest.by_ref().enumerate() {
            let record = record.unwrap();
            if record.sequence > limit {
                break;
            }
            if count == records {
                is_all = false;
                break;
            }
            self.apply(log, &root, &record.what, record.file, record.sequence);
            if let What::Operation(operation) = &record.what {
                follow(&mut self.at_mark, record.file, operation);
            }
            mark = record.sequence;
        }
        if is_all {
            mark = limit;
        }
        if mark > log.status().drained {
            let names = &self.names;
            let find = |file| {
                let paths: &Vec<Vec<u8>> = names.get(&file)?;
                at(&root, paths.first()?)
            };
            let kept = store.drained(mark, &find).unwrap();
            self.next_file = kept.next_file;
            let identity = |file: FileId| {
                let path = self.names.get(&file).and_then(|paths| paths.first());
                path.and_then(|path| at(&root, path)).map_or(0, |node| node.qid().path)
            };
            // What nobody has any more is known by the target's number from here on.
            let kept_paths = self.at_mark.iter().filter(|(file, _)| kept.files.contains(file));
            let bound = kept_paths.flat_map(|(file, paths)| {
                let identity = identity(*file);
                let bound =
                    move |path: &Vec<u8>| Bound { file: *file, identity, path: path.clone() };
                paths.iter().map(bound)
            });
            let state = State { next_file: self.next_file, files: bound.collect() };
            log.drained(mark, &state.encode()).unwrap();
        }
        for record in log.replay().take(ahead) {
            let record = record.unwrap();
            if record.sequence > limit {
                break;
            }
            self.apply(log, &root, &record.what, record.file, record.sequence);
        }
    }

    fn apply(
        &mut self,
        log: &Log,
        root: &Arc<dyn Node>,
        what: &What,
        file: FileId,
        sequence: Sequence,
    ) {
        if sequence <= self.applied {
            return;
        }
        self.applied = sequence;
        let node = self.names.get(&file).and_then(|paths| at(root, paths.first()?));
        match what {
            What::Data { offset, len, at } => {
                let mut bytes = vec![0; *len as usize];
                log.read(*at, &mut bytes).unwrap();
                if let Some(node) = node {
                    let open = node.open(OpenFlags::WRITE_ONLY).unwrap();
                    assert_eq!(open.write_at(&bytes, *offset).unwrap(), bytes.len());
                }
            }
            What::Operation(operation) => {
                self.change(root, operation, file, node);
                follow(&mut self.names, file, operation);
            }
        }
    }

    fn change(
        &mut self,
        root: &Arc<dyn Node>,
        operation: &Operation,
        file: FileId,
        node: Option<Arc<dyn Node>>,
    ) {
        match operation {
            Operation::Bind { path } => {
                assert!(at(root, path).is_some(), "{} is not there", path.escape_ascii());
            }
            Operation::Note { tag, bytes } => {
                assert_eq!(*tag, IDENTITY_TAG);
                let told = u64::from_le_bytes(bytes[..].try_into().unwrap());
                assert_eq!(node.unwrap().qid().path, told);
                self.told.insert(file, told);
            }
            Operation::Create { path, mode } => {
                let (dir, name) = above(root, path);
                dir.create(name, BOTH | OpenFlags::EXCLUSIVE, *mode).unwrap();
            }
            Operation::Mkdir { path, mode } => {
                let (dir, name) = above(root, path);
                dir.make_directory(name, *mode).unwrap();
            }
            Operation::Symlink { path, target } => {
                let (dir, name) = above(root, path);
                dir.make_symlink(name, target).unwrap();
            }
            Operation::Link { existing, path } => {
                let (dir, name) = above(root, path);
                dir.link(&*at(root, existing).unwrap(), name).unwrap();
            }
            Operation::Unlink { path } => {
                let (dir, name) = above(root, path);
                dir.remove(name, false).unwrap();
            }
            Operation::Rmdir { path } => {
                let (dir, name) = above(root, path);
                dir.remove(name, true).unwrap();
            }
            Operation::Rename { from, to, .. } => {
                let ((old_dir, old), (new_dir, new)) = (above(root, from), above(root, to));
                old_dir.rename(old, &*new_dir, new).unwrap();
            }
            Operation::Truncate { size } => {
                if let Some(node) = node {
                    let valid = SetattrMask::SIZE;
                    let set = SetAttributes { valid, size: *size, ..SetAttributes::default() };
                    node.set_attributes(&set).unwrap();
                }
            }
            Operation::Attributes { path, set } => {
                assert!(path.is_empty());
                let Some(node) = node else { return };
                let time = |time: hostlog::Time| Time {
                    seconds: time.seconds as u64,
                    nanoseconds: time.nanoseconds.into(),
                };
                let mut wanted = SetAttributes::default();
                if let Some(mode) = set.mode {
                    wanted.valid |= SetattrMask::MODE;
                    wanted.mode = mode;
                }
                if let Some(modified) = set.modified {
                    wanted.valid |= SetattrMask::MTIME | SetattrMask::MTIME_SET;
                    wanted.mtime = time(modified);
                }
                node.set_attributes(&wanted).unwrap();
            }
        }
    }
}

/// All bytes of a file.
pub(crate) fn content(node: &Arc<dyn Node>) -> Vec<u8> {
    let size = node.attributes().unwrap().size as usize;
    let mut bytes = vec![0xee; size + 10];
    let len = node.open(READ).unwrap().read_at(&mut bytes, 0).unwrap();
    assert_eq!(len, size, "the size is that of what is read");
    bytes.truncate(len);
    bytes
}

pub(crate) fn content_at(root: &Arc<dyn Node>, path: &str) -> Vec<u8> {
    content(&at(root, path.as_bytes()).unwrap_or_else(|| panic!("no {path}")))
}
