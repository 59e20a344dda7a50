//! The drain against a model, while it is interrupted at any call to its target and begins again.
//!
//! A run writes random records to a log, drains some of it, ends at a random call of the target, opens the log again,
//! and goes on. In the end the target must hold exactly what counts. `DRAIN_SEED=N` repeats the run that failed.

mod disk;
mod faulty;
mod model;

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use disk::Disk;
use drain::{Bound, Drain, Kept, Options, Owner};
use faulty::{Effect, Fault, FaultyStore};
use hostlog::media::Media;
use hostlog::{
    Attributes, Change, Description, FileId, Group, Log, Member, Operation, Prepare, Sequence,
    Write,
};
use model::{Model, Name, Record, Said, tree};
use p9::OpenFlags;
use store::mem::MemStore;
use store::{Node, Store};

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.below(from.len() as u64) as usize].clone())
    }
}

/// Whoever has the log: as the real one, it knows from the log what it had said.
struct Holder {
    bound: Vec<Bound>,
    held: Arc<Mutex<HashSet<FileId>>>,
}

impl Owner for Holder {
    fn bound(&self) -> Vec<Bound> {
        self.bound.clone()
    }

    fn drainable(&self) -> Option<Sequence> {
        None
    }

    fn drained(
        &self,
        _through: Sequence,
        _node: &dyn Fn(FileId) -> Option<Arc<dyn Node>>,
    ) -> drain::Result<Kept> {
        Ok(Kept { next_file: 0, files: self.held.lock().unwrap().clone() })
    }

    fn state(&self, _kept: &Kept, bound: &[Bound]) -> Vec<u8> {
        let mut out = Vec::new();
        for one in bound {
            out.extend_from_slice(&one.file.0.to_le_bytes());
            out.extend_from_slice(&one.identity.to_le_bytes());
            out.extend_from_slice(&(one.path.len() as u64).to_le_bytes());
            out.extend_from_slice(&one.path);
        }
        out
    }
}

fn decode(mut from: &[u8]) -> Vec<Bound> {
    let mut bound = Vec::new();
    while !from.is_empty() {
        let number = |at: usize| u64::from_le_bytes(from[at..at + 8].try_into().unwrap());
        let end = 24 + number(16) as usize;
        let path = from[24..end].to_vec();
        bound.push(Bound { file: FileId(number(0)), identity: number(8), path });
        from = &from[end..];
    }
    bound
}

const LOG: hostlog::Options =
    hostlog::Options { segment_bytes: 16 << 10, size_max_bytes: 64 << 20, ready_segments: 1 };

/// A log that is written at random, and what should come of it.
struct World {
    random: Random,
    disk: Arc<Disk>,
    log: Option<Arc<Log>>,
    target: Arc<MemStore>,
    bound: Vec<Bound>,
    held: Arc<Mutex<HashSet<FileId>>>,
    /// The view of whoever writes.
    live: Model,
    /// The target before anything was drained.
    base: Model,
    records: Vec<Record>,
    next_file: u64,
    next_name: u64,
    next_group: u32,
    /// Files in a group, with the epoch that is being written.
    members: Vec<(FileId, Member)>,
    /// Files of the target that no record has named yet.
    unbound: HashSet<FileId>,
}

impl World {
    fn new(seed: u64) -> Self {
        let disk = Arc::new(Disk::default());
        let log = Log::create(disk.clone(), &Description::default(), LOG).unwrap();
        let mut world = Self {
            random: Random(seed),
            disk,
            log: Some(Arc::new(log)),
            target: Arc::new(MemStore::new()),
            bound: Vec::new(),
            held: Arc::default(),
            live: Model::default(),
            base: Model::default(),
            records: Vec::new(),
            next_file: 1,
            next_name: 0,
            next_group: 1,
            members: Vec::new(),
            unbound: HashSet::new(),
        };
        let root = world.target.root().unwrap();
        root.make_directory(b"base", 0o755).unwrap();
        let dir = root.walk(&[b"base"]).unwrap().end.unwrap();
        world.base.names.insert("base".into(), Name::Directory);
        for name in ["one", "two"] {
            let content = vec![name.as_bytes()[0]; 300];
            let (_, open) = dir.create(name.as_bytes(), OpenFlags::WRITE_ONLY, 0o644).unwrap();
            open.write_at(&content, 0).unwrap();
            let file = world.file();
            world.unbound.insert(file);
            world.base.names.insert(format!("base/{name}"), Name::File(file));
            world.base.contents.insert(file, content);
        }
        world.live = world.base.clone();
        world
    }

    fn log(&self) -> Arc<Log> {
        Arc::clone(self.log.as_ref().expect("the log is open"))
    }

    fn file(&mut self) -> FileId {
        self.next_file += 1;
        let file = FileId(self.next_file - 1);
        self.held.lock().unwrap().insert(file);
        file
    }

    fn names(&self, which: impl Fn(&Name) -> bool) -> Vec<String> {
        self.live
            .names
            .iter()
            .filter(|(_, name)| which(name))
            .map(|(path, _)| path.clone())
            .collect()
    }

    fn new_path(&mut self) -> String {
        let mut dirs = self.names(|name| *name == Name::Directory);
        dirs.push(String::new());
        let dir = self.random.pick(&dirs).unwrap();
        self.next_name += 1;
        // Names come again, so that what is behind them changes.
        let name = self.random.below(self.next_name.min(12) + self.names(|_| true).len() as u64);
        let path = if dir.is_empty() { format!("n{name}") } else { format!("{dir}/n{name}") };
        if self.live.names.contains_key(&path) { self.new_path() } else { path }
    }

    fn change(
        &mut self,
        file: FileId,
        member: Option<Member>,
        namespace: bool,
        operation: Operation,
    ) {
        let change = Change { stream: 1, file, member, namespace };
        let sequence = self.log().change(&change, &operation).unwrap();
        self.record(sequence, file, member, Said::Operation(operation), namespace);
    }

    fn record(
        &mut self,
        sequence: Sequence,
        file: FileId,
        member: Option<Member>,
        what: Said,
        namespace: bool,
    ) {
        self.live.apply(file, &what);
        let counts = namespace.then_some(true);
        self.records.push(Record { sequence, file, member, what, counts });
    }

    /// The file at a path, which a record has named.
    fn named(&mut self, path: &str) -> FileId {
        let Name::File(file) = self.live.names[path] else { return FileId::NONE };
        if self.unbound.remove(&file) {
            self.change(file, None, true, Operation::Bind { path: path.into() });
        }
        file
    }

    fn act(&mut self) {
        let files = self.names(|name| matches!(name, Name::File(_)));
        match self.random.below(24) {
            0..=2 => {
                let path = self.new_path();
                let file = self.file();
                self.change(file, None, true, Operation::Create { path: path.into(), mode: 0o644 });
            }
            3 => {
                let path = self.new_path().into();
                let file = self.file();
                self.change(file, None, true, Operation::Mkdir { path, mode: 0o755 });
            }
            4 => {
                let path = self.new_path().into();
                let target = self.next_name.to_string().into();
                let file = self.file();
                self.change(file, None, true, Operation::Symlink { path, target });
            }
            5..=6 => {
                let from = self.names(|_| true);
                if let Some(from) = self.random.pick(&from) {
                    self.rename(&from);
                }
            }
            7 => {
                if let Some(existing) = self.random.pick(&files) {
                    self.named(&existing);
                    let path = self.new_path().into();
                    self.change(
                        FileId::NONE,
                        None,
                        true,
                        Operation::Link { existing: existing.into(), path },
                    );
                }
            }
            8..=9 => {
                if let Some(path) = self.random.pick(&files) {
                    let file = self.named(&path);
                    self.change(file, None, true, Operation::Unlink { path: path.into() });
                    if self.random.one_in(2) {
                        self.let_go(file);
                    }
                }
            }
            10 => {
                let empty = |path: &String, names: &[String]| {
                    !names.iter().any(|other| other.starts_with(&format!("{path}/")))
                };
                let (dirs, all) =
                    (self.names(|name| *name == Name::Directory), self.names(|_| true));
                let dirs: Vec<String> = dirs.into_iter().filter(|path| empty(path, &all)).collect();
                if let Some(path) = self.random.pick(&dirs) {
                    self.change(FileId::NONE, None, true, Operation::Rmdir { path: path.into() });
                }
            }
            11 => {
                if let Some(path) = self.random.pick(&files) {
                    let file = self.named(&path);
                    let mode = Some(0o600 + self.random.below(0o100) as u32);
                    let set = Attributes { mode, ..Attributes::default() };
                    self.change(file, None, true, Operation::Attributes { path: Vec::new(), set });
                }
            }
            12 => {
                if let Some(path) = self.random.pick(&files) {
                    let file = self.named(&path);
                    if !self.members.iter().any(|(other, _)| *other == file) {
                        let group = Group(self.next_group);
                        self.next_group += 1;
                        // What it has written so far counts by itself, or never.
                        self.commit(file);
                        self.members.push((file, Member { group, epoch: 1 }));
                    }
                }
            }
            13 => self.end_epoch(),
            14 => {
                if let Some(path) = self.random.pick(&files) {
                    let file = self.named(&path);
                    let size = self.random.below(700);
                    let member = self.member(file);
                    self.change(file, member, false, Operation::Truncate { size });
                }
            }
            15..=16 => {
                if let Some(path) = self.random.pick(&files) {
                    let file = self.named(&path);
                    self.commit(file);
                }
            }
            _ => {
                if let Some(path) = self.random.pick(&files) {
                    let file = self.named(&path);
                    self.write(file);
                }
            }
        }
    }

    fn member(&self, file: FileId) -> Option<Member> {
        self.members.iter().find(|(other, _)| *other == file).map(|(_, member)| *member)
    }

    fn write(&mut self, file: FileId) {
        let offset = self.random.below(800);
        let len = 1 + self.random.below(400);
        let bytes: Vec<u8> = (0..len).map(|_| self.random.next() as u8).collect();
        let member = self.member(file);
        let placed =
            self.log().write(&Write { stream: 1, file, member, offset, bytes: &bytes }).unwrap();
        let mut rest = &bytes[..];
        for piece in placed.iter() {
            let (here, behind) = rest.split_at(piece.len as usize);
            self.record(
                piece.sequence,
                file,
                member,
                Said::Data(piece.offset, here.to_vec()),
                false,
            );
            rest = behind;
        }
        assert!(rest.is_empty());
    }

    fn rename(&mut self, from: &str) {
        self.named(from);
        let is_directory = self.live.names[from] == Name::Directory;
        let others = self.names(|name| !is_directory && *name != Name::Directory);
        let to = match self.random.pick(&others).filter(|_| self.random.one_in(2)) {
            Some(to) => to,
            None => self.new_path(),
        };
        if to == from || to.starts_with(&format!("{from}/")) {
            return;
        }
        let file = if self.live.names.contains_key(&to) { self.named(&to) } else { FileId::NONE };
        let operation = Operation::Rename { from: from.into(), to: to.into(), flags: 0 };
        self.change(FileId::NONE, None, true, operation);
        if self.random.one_in(2) {
            self.let_go(file);
        }
    }

    /// A file that has no name any more is not used again.
    fn let_go(&mut self, file: FileId) {
        if !self.live.names.values().any(|name| *name == Name::File(file)) {
            self.held.lock().unwrap().remove(&file);
        }
    }

    fn commit(&mut self, file: FileId) {
        self.log().commit(1, file).unwrap();
        for record in &mut self.records {
            if record.file == file && record.member.is_none() {
                record.counts.get_or_insert(true);
            }
        }
    }

    fn end_epoch(&mut self) {
        if self.members.is_empty() {
            return;
        }
        let index = self.random.below(self.members.len() as u64) as usize;
        let (file, member) = self.members[index];
        let prepare = Prepare { stream: 1, file, member, rank: 0, ranks: 1, name: b"" };
        self.log().prepare(&prepare).unwrap();
        let commits = !self.random.one_in(4);
        match commits {
            true => self.log().commit_group(member).unwrap(),
            false => self.log().abort_group(member).unwrap(),
        };
        for record in &mut self.records {
            if record.member.is_some_and(|other| other.group == member.group) {
                record.counts.get_or_insert(commits);
            }
        }
        self.members[index].1.epoch += 1;
        if self.random.one_in(2) {
            self.members.remove(index);
        }
    }

    fn drain(&self, fault: &Arc<Fault>) -> Drain {
        let target: Arc<dyn Store> = self.target.clone();
        let target = Arc::new(FaultyStore { inner: target, fault: Arc::clone(fault) });
        let owner = Arc::new(Holder { bound: self.bound.clone(), held: Arc::clone(&self.held) });
        // One thread, so that the same seed makes the same calls.
        let options =
            Options { threads: 1, step_bytes: 3000, step_records: 40, ..Options::default() };
        let media: Arc<dyn Media> = self.disk.clone();
        Drain::new(self.log(), media, target, owner, options).unwrap()
    }

    /// The process ends and another one begins: what does not count by now never will.
    fn restart(&mut self) {
        self.log().commit(1, FileId::NONE).unwrap();
        let log = Arc::into_inner(self.log.take().unwrap()).expect("nobody else has the log");
        drop(log);
        let (log, recovery) = Log::open(self.disk.clone(), LOG).unwrap();
        self.bound = decode(&recovery.drained_state);
        self.log = Some(Arc::new(log));
        self.members.clear();
        for record in &mut self.records {
            record.counts.get_or_insert(false);
        }
        // What is shown is what counts, and whatever has no name is gone.
        self.live = self.expected();
        let named: HashSet<FileId> = self
            .live
            .names
            .values()
            .filter_map(|name| match name {
                Name::File(file) => Some(*file),
                _ => None,
            })
            .collect();
        self.held.lock().unwrap().retain(|file| named.contains(file));
    }

    fn expected(&self) -> Model {
        let mut model = self.base.clone();
        let mut records: Vec<&Record> = self.records.iter().collect();
        records.sort_by_key(|record| record.sequence);
        for record in records.into_iter().filter(|record| record.counts == Some(true)) {
            model.apply(record.file, &record.what);
        }
        model
    }
}

fn fault(at: u64, effect: Effect) -> Arc<Fault> {
    Arc::new(Fault {
        calls: AtomicU64::new(0),
        at: AtomicU64::new(at),
        effect,
        unsynced: Mutex::default(),
    })
}

fn effect(random: &mut Random) -> Effect {
    random.pick(&[Effect::None, Effect::Half, Effect::Whole]).unwrap()
}

/// Drains until nothing is left, and all that the target got is durable there.
fn finish(world: &World, seed: u64) -> (Drain, Arc<Fault>) {
    let healthy = fault(u64::MAX, Effect::None);
    let mut drain = world.drain(&healthy);
    for _ in 0..10_000 {
        let step = drain.step().unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
        if !step.more && step.records == 0 {
            assert_eq!(*healthy.unsynced.lock().unwrap(), BTreeSet::new(), "DRAIN_SEED={seed}");
            return (drain, healthy);
        }
    }
    panic!("seed {seed}: the drain does not end");
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..1 + world.random.below(6) {
        let (at, how) = (world.random.below(120), effect(&mut world.random));
        let fault = fault(at, how);
        let mut drain = world.drain(&fault);
        for _ in 0..1 + world.random.below(4) {
            for _ in 0..world.random.below(40) {
                world.act();
            }
            if world.random.one_in(2) {
                world.commit(FileId::NONE);
            }
            while let Ok(step) = drain.step() {
                if !step.more || world.random.one_in(3) {
                    break;
                }
            }
        }
        drop(drain);
        world.restart();
    }
    let (mut drain, healthy) = finish(&world, seed);
    assert_eq!(tree(&*world.target), world.expected().tree(), "DRAIN_SEED={seed}");
    // All of it is drained, and the log could be given away.
    assert!(world.log().replay().next().is_none(), "DRAIN_SEED={seed}");
    // It stays so, and costs nothing.
    let calls = healthy.calls.load(Ordering::SeqCst);
    let last = world.log().status().last;
    assert_eq!(drain.step().unwrap().records, 0);
    assert_eq!(
        world.log().status().last,
        last,
        "a step without work writes to the log; DRAIN_SEED={seed}"
    );
    assert_eq!(healthy.calls.load(Ordering::SeqCst), calls);
}

#[test]
fn whenever_the_drain_ends_the_target_comes_to_hold_what_counts() {
    if let Ok(seed) = std::env::var("DRAIN_SEED") {
        return run(seed.parse().expect("DRAIN_SEED is a number"));
    }
    let start = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let start = start.as_nanos() as u64;
    for seed in (0..400).chain(start..start + 400) {
        let result = std::panic::catch_unwind(|| run(seed));
        if let Err(panic) = result {
            eprintln!("DRAIN_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// The same records, and an end at each call in turn, each in three ways.
#[test]
fn the_drain_may_end_at_every_call() {
    let seed = 7;
    let written = || {
        let mut world = World::new(seed);
        for _ in 0..150 {
            world.act();
        }
        world.commit(FileId::NONE);
        world
    };
    let (_, whole) = finish(&written(), seed);
    let calls = whole.calls.load(Ordering::SeqCst);
    assert!(calls > 100, "{calls} calls are too few to test anything");
    for at in 0..calls {
        for how in [Effect::None, Effect::Half, Effect::Whole] {
            let mut world = written();
            let mut drain = world.drain(&fault(at, how));
            while drain.step().is_ok_and(|step| step.more || step.records > 0) {}
            drop(drain);
            world.restart();
            finish(&world, seed);
            assert_eq!(tree(&*world.target), world.expected().tree(), "call {at}, {how:?}");
        }
    }
}

/// Without an end of the process in between, the drain itself begins again.
#[test]
fn a_target_that_fails_and_comes_back_gets_everything() {
    for seed in 0..200 {
        let mut world = World::new(seed);
        for _ in 0..120 {
            world.act();
        }
        world.commit(FileId::NONE);
        let (at, how) = (world.random.below(150), effect(&mut world.random));
        let fault = fault(at, how);
        let mut drain = world.drain(&fault);
        for count in 0.. {
            assert!(count < 10_000, "seed {seed}: the drain does not end");
            match drain.step() {
                Ok(step) if !step.more && step.records == 0 => break,
                Ok(_) => {}
                Err(error) => {
                    let is_first = fault.at.load(Ordering::SeqCst) == at;
                    assert!(error.is_retryable() && is_first, "seed {seed}: {error:?}");
                    fault.at.store(u64::MAX, Ordering::SeqCst);
                }
            }
        }
        let counting = world.expected().tree();
        assert_eq!(tree(&*world.target), counting, "seed {seed}");
        drop(drain);
        world.restart();
        finish(&world, seed);
        assert_eq!(tree(&*world.target), world.expected().tree(), "seed {seed}");
    }
}
