//! Random datasets against a model that knows every byte: whatever is written through any view,
//! every view reads as the model says, and so does every replica's file. Children that are killed
//! at a random system call leave replicas that can be made equal, with all that was acknowledged.

#[path = "../../layout/src/reference/definitions.rs"]
mod definitions;
#[path = "../../layout/src/reference/interpreter.rs"]
mod interpreter;
mod support;

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dataset::{Call, Condition, Dataset, Error, Faults, Kind, Options, Verdict};
use definitions::{Choices, Made};
use drepl::Definition;
use drepl::definition::{
    ByteOrder, Length, Order, Part, Placing, Replica, ReplicaView, Storage, Type, Update, View,
    ViewVariable,
};
use interpreter::{Cell, Id, Interpreter};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::{Random, Scratch};

/// The largest record with 4-byte markers, as in the crate `layout`.
const SUBRECORD_BYTES_MAX: usize = (1 << 31) - 9;

/// A random definition whose replicas are of all kinds, and which has all data in at least one that
/// is written at once.
fn definition(choices: &mut Choices<'_>) -> Made {
    let mut made = definitions::definition(choices);
    let views = made.definition.views.len();
    for replica in &mut made.definition.replicas {
        replica.update = [Update::Sync, Update::Async, Update::OnClose][choices.below(3) as usize];
        replica.closeness = choices.below(3) as u32;
        replica.storage = Storage::Raw;
    }
    let view = if choices.below(2) == 0 { made.all } else { choices.below(views as u64) as usize };
    let whole = ReplicaView { view, group: None, split: false, chunk: None, deflate: None };
    let whole = Replica {
        name: "whole".into(),
        complete: true,
        update: Update::Sync,
        closeness: choices.below(3) as u32,
        storage: Storage::Raw,
        views: vec![whole],
    };
    let at = choices.below(made.definition.replicas.len() as u64 + 1) as usize;
    made.definition.replicas.insert(at, whole);
    made
}

/// What the dataset holds, and what every byte of a view is.
#[derive(Clone)]
struct Model {
    definition: Definition,
    values: HashMap<Id, u8>,
    /// By variable that stores a length.
    lengths: HashMap<usize, u64>,
    /// For each byte of a length, its variable.
    length_bytes: HashMap<Id, usize>,
    views: Vec<Vec<Cell>>,
}

impl Model {
    /// All zeros; none if variables overlap, which is refused elsewhere.
    fn new(made: &Made) -> Option<Self> {
        let lengths: HashMap<usize, u64> =
            made.lengths.keys().map(|variable| (*variable, 0)).collect();
        let mut model = Self {
            definition: made.definition.clone(),
            values: HashMap::new(),
            lengths,
            length_bytes: HashMap::new(),
            views: Vec::new(),
        };
        for variable in made.lengths.keys() {
            for cell in model.variable(*variable)? {
                if let Cell::Data(id) = cell {
                    model.length_bytes.insert(id, *variable);
                }
            }
        }
        model.place()?;
        Some(model)
    }

    fn interpreter(&self) -> Interpreter<'_> {
        let (definition, lengths) = (&self.definition, &self.lengths);
        Interpreter { definition, lengths, subrecord_max: SUBRECORD_BYTES_MAX }
    }

    fn place(&mut self) -> Option<()> {
        let interpreter = self.interpreter();
        let views = (0..self.definition.views.len()).map(|view| interpreter.view(view));
        self.views = views.collect::<Option<Vec<_>>>()?;
        Some(())
    }

    /// What bytes one variable has at present.
    fn variable(&self, source: usize) -> Option<Vec<Cell>> {
        let variable = ViewVariable {
            name: "v".into(),
            source,
            part: Part::Whole,
            placing: Placing::default(),
            record: None,
        };
        let mut definition = self.definition.clone();
        definition.views = vec![View {
            name: "one".into(),
            read_only: true,
            order: Order::RowMajor,
            byte_order: ByteOrder::Little,
            packed: true,
            header: 0,
            variables: vec![variable],
        }];
        let lengths = &self.lengths;
        let definition = &definition;
        Interpreter { definition, lengths, subrecord_max: SUBRECORD_BYTES_MAX }.view(0)
    }

    fn byte(&self, cell: &Cell) -> u8 {
        match cell {
            Cell::Fill(byte) => *byte,
            Cell::Data(id) => self.values.get(id).copied().unwrap_or(0),
        }
    }

    fn bytes(&self, view: usize) -> Vec<u8> {
        self.views[view].iter().map(|cell| self.byte(cell)).collect()
    }

    /// Writes; none when the dataset should refuse it. Says how many bytes were in the view.
    fn write(&mut self, view: usize, offset: usize, data: &[u8]) -> Option<usize> {
        let mut lengths = self.clone();
        let mut has_changed = false;
        let mut taken: Vec<(usize, Id)> = Vec::new();
        let mut at = offset;
        while at < lengths.views[view].len().min(offset + data.len()) {
            let Some((variable, ids)) = lengths.length_at(view, at, offset + data.len()) else {
                at += 1;
                continue;
            };
            let mut bytes = Vec::new();
            for id in ids {
                lengths.values.insert(id.clone(), data[at - offset]);
                bytes.push((at, id));
                at += 1;
            }
            let before = lengths.lengths[&variable];
            lengths.set_length(variable)?;
            if lengths.lengths[&variable] != before {
                has_changed = true;
                taken.extend(bytes);
            }
        }
        // Twice in one view, it is not to be changed through it.
        let mut seen: HashSet<&Id> = HashSet::new();
        for cell in lengths.views[view].iter().filter(|_| has_changed) {
            if let Cell::Data(id) = cell
                && lengths.length_bytes.contains_key(id)
                && !seen.insert(id)
            {
                return None;
            }
        }
        // It must not lie elsewhere because of what it is.
        for (at, id) in taken {
            if lengths.views[view].get(at) != Some(&Cell::Data(id)) {
                return None;
            }
        }
        // The same bytes must mean the same lengths now that they are known.
        let Some(rest) = lengths.views[view].get(offset..) else { return Some(0) };
        let mut again: HashMap<&Id, u8> = HashMap::new();
        for (cell, byte) in rest.iter().zip(data) {
            if let Cell::Data(id) = cell {
                again.insert(id, *byte);
            }
        }
        let is_length = |(id, _): &(&&Id, &u8)| lengths.length_bytes.contains_key(**id);
        if again.iter().filter(is_length).any(|(id, byte)| lengths.values.get(*id) != Some(byte)) {
            return None;
        }
        let cells = lengths.views[view].clone();
        for (cell, byte) in cells.iter().skip(offset).zip(data) {
            if let Cell::Data(id) = cell {
                lengths.values.insert(id.clone(), *byte);
            }
        }
        *self = lengths;
        Some(data.len().min(cells.len() - offset))
    }

    /// The length whose bytes begin at a place of a view, and those that lie before `end`.
    fn length_at(&self, view: usize, at: usize, end: usize) -> Option<(usize, Vec<Id>)> {
        let length = |cell: &Cell| match cell {
            Cell::Data(id) => self.length_bytes.get(id).map(|variable| (*variable, id.clone())),
            Cell::Fill(_) => None,
        };
        let cells = &self.views[view];
        let (variable, _) = length(&cells[at])?;
        let bytes = cells[at..cells.len().min(end)].iter().map_while(length);
        let bytes = bytes.take_while(|(its, _)| *its == variable).map(|(_, id)| id);
        // A view may have it twice in a row.
        let mut ids: Vec<Id> = Vec::new();
        for id in bytes {
            if ids.contains(&id) {
                break;
            }
            ids.push(id);
        }
        Some((variable, ids))
    }

    /// Takes over what was stored in a length.
    fn set_length(&mut self, variable: usize) -> Option<()> {
        let bytes: Vec<u8> = self.variable(variable)?.iter().map(|cell| self.byte(cell)).collect();
        let value = i32::from_le_bytes(bytes.try_into().unwrap());
        let value = u64::try_from(value).ok()?;
        if self.lengths[&variable] == value {
            return Some(());
        }
        let arrays: Vec<usize> = (0..self.definition.variables.len())
            .filter(|array| match &self.definition.variables[*array].kind {
                Type::Array(array) => array.lengths.contains(&Length::Stored(variable)),
                _ => false,
            })
            .collect();
        let before: Vec<Cell> =
            arrays.iter().filter_map(|array| self.variable(*array)).flatten().collect();
        self.lengths.insert(variable, value);
        let mut kept: HashSet<Id> = HashSet::new();
        for array in arrays {
            let Type::Array(kind) = &self.definition.variables[array].kind else { continue };
            if kind.lengths.len() == 1 {
                let now = self.variable(array)?;
                kept.extend(now.into_iter().filter_map(|cell| match cell {
                    Cell::Data(id) => Some(id),
                    Cell::Fill(_) => None,
                }));
            }
        }
        for cell in before {
            if let Cell::Data(id) = cell
                && !kept.contains(&id)
            {
                self.values.remove(&id);
            }
        }
        self.place()
    }

    /// Takes over the lengths that a dataset has, by the view that has everything.
    fn take_lengths(&mut self, dataset: &Dataset, all: usize) {
        // Each may move the next one.
        for _ in 0..=self.lengths.len() {
            let mut found = vec![0; self.views[all].len()];
            dataset.read(all, 0, &mut found).unwrap();
            let of = self.length_bytes.clone();
            for (at, cell) in self.views[all].clone().iter().enumerate() {
                let Cell::Data(id) = cell else { continue };
                let Some(variable) = of.get(id) else { continue };
                self.values.insert(id.clone(), found[at]);
                let before = self.lengths.clone();
                // A byte of a number that is not complete yet is no length.
                if self.set_length(*variable).is_some() && self.lengths != before {
                    break;
                }
            }
        }
    }

    /// Compares the files of all replicas with what they should hold.
    fn check_files(&self, dataset_directory: &Path) -> Result<(), TestCaseError> {
        let interpreter = self.interpreter();
        for (number, replica) in self.definition.replicas.iter().enumerate() {
            let files = interpreter.replica(number).expect("views were placed");
            let path = dataset_directory.join(&replica.name);
            for (file, cells) in files.iter().enumerate() {
                let name = file.to_string();
                let path = if path.is_dir() { path.join(name) } else { path.clone() };
                let stored = std::fs::read(&path).unwrap();
                for (at, cell) in cells.iter().enumerate() {
                    // What belongs to no variable is nobody's matter in a file.
                    if let Cell::Data(_) = cell {
                        let name = path.display();
                        prop_assert_eq!(stored[at], self.byte(cell), "{} at {}", name, at);
                    }
                }
            }
        }
        Ok(())
    }
}

/// One thing that a program does.
#[derive(Debug, Clone)]
enum Step {
    Write { view: usize, offset: usize, data: Vec<u8> },
    Read { view: usize, offset: usize, len: usize },
    Sync,
    Reopen,
}

/// The same data with lengths in it that are small.
fn data(model: &Model, view: usize, offset: usize, mut data: Vec<u8>) -> Vec<u8> {
    // Each length may move the next one.
    for _ in 0..=model.lengths.len() {
        let mut after = model.clone();
        let mut seen: HashSet<usize> = HashSet::new();
        let mut at = offset;
        while at < after.views[view].len().min(offset + data.len()) {
            let Some((variable, ids)) = after.length_at(view, at, offset + data.len()) else {
                at += 1;
                continue;
            };
            let cells = after.variable(variable).expect("it was placed");
            for id in ids {
                let is_least = cells[0] == Cell::Data(id.clone());
                let byte = &mut data[at - offset];
                *byte = if is_least { *byte % 7 } else { 0 };
                after.values.insert(id, *byte);
                at += 1;
            }
            seen.insert(variable);
            if after.set_length(variable).is_none() {
                break;
            }
        }
        if seen.is_empty() {
            break;
        }
    }
    data
}

fn steps(model: &Model, random: &mut Random, count: usize) -> Vec<Step> {
    let mut model = model.clone();
    let mut steps = Vec::new();
    for _ in 0..count {
        let view = random.below(model.views.len());
        let size = model.views[view].len();
        let offset = random.below(size + 1);
        let len = match random.below(3) {
            0 => size - offset,
            1 => random.below(size - offset + 1),
            _ => random.below(20).min(size - offset),
        };
        steps.push(match random.below(12) {
            0 => Step::Sync,
            1 => Step::Reopen,
            2..5 => Step::Read { view, offset, len: len + random.below(3) },
            _ if model.definition.views[view].read_only => Step::Read { view, offset, len },
            _ => {
                // More than there is room for now, where what is written makes more room.
                let len = len + if model.lengths.is_empty() { 0 } else { random.below(40) };
                let data = data(&model, view, offset, random.bytes(len));
                model.write(view, offset, &data);
                Step::Write { view, offset, data }
            }
        });
    }
    steps
}

#[test]
fn every_view_and_every_replica_is_what_was_written() {
    let mut runner = TestRunner::new(Config {
        cases: support::cases(150),
        failure_persistence: None,
        max_shrink_iters: 3000,
        ..Config::default()
    });
    let row = prop::collection::vec(any::<u16>(), 0..120);
    let (tried, skipped, written) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let outcome = runner.run(&(row, any::<u64>()), |(row, seed)| {
        tried.fetch_add(1, Ordering::Relaxed);
        match case(&row, seed)? {
            Some(bytes) => written.fetch_add(bytes, Ordering::Relaxed),
            None => skipped.fetch_add(1, Ordering::Relaxed),
        };
        Ok(())
    });
    if let Err(error) = outcome {
        if let proptest::test_runner::TestError::Fail(_, (row, seed)) = &error {
            panic!("{error}\n{:#?}\nseed {seed}", definition(&mut Choices::new(row)));
        }
        panic!("{error}");
    }
    let (tried, skipped) = (tried.into_inner(), skipped.into_inner());
    assert!(skipped * 3 < tried * 2, "{skipped} of {tried} definitions were of no use");
    assert!(written.into_inner() > 20 * tried, "hardly a byte was written");
}

fn case(row: &[u16], seed: u64) -> Result<Option<u64>, TestCaseError> {
    let made = definition(&mut Choices::new(row));
    let mut random = Random::new(seed);
    let Some(mut model) = Model::new(&made) else { return Ok(None) };
    let scratch = Scratch::new();
    let path = scratch.path().join("x.drepl");
    // One half of the cases reads from mappings, however little.
    let mapped_read_min_bytes = [None, Some(1)][random.below(2)];
    let options = Options { mapped_read_min_bytes, ..Options::default() };
    let open = || Dataset::with_definition(&path, made.definition.clone(), &options);
    let mut dataset = match open() {
        Ok(dataset) => Some(dataset),
        Err(Error::Layout { .. }) => return Ok(None),
        Err(error) => panic!("{error}"),
    };
    let mut bytes = 0;
    for step in steps(&model, &mut random, 25) {
        let open_dataset = dataset.as_ref().unwrap();
        match step {
            Step::Write { view, offset, data } => {
                let written = open_dataset.write(view, offset as u64, &data);
                match model.write(view, offset, &data) {
                    Some(0) if !data.is_empty() => {
                        let is_behind = matches!(written, Err(Error::PastEnd { .. }));
                        prop_assert!(is_behind, "{:?} behind the end", written);
                    }
                    Some(len) => {
                        prop_assert_eq!(written.unwrap(), len);
                        bytes += len as u64;
                    }
                    None => {
                        let is_refused = matches!(written, Err(Error::Length { .. }));
                        prop_assert!(is_refused, "{:?} of ambiguous lengths", written);
                    }
                }
            }
            Step::Read { view, offset, len } => {
                let mut found = vec![0xee; len];
                let count = open_dataset.read(view, offset as u64, &mut found).unwrap();
                let all = model.bytes(view);
                let expected = &all[offset.min(all.len())..all.len().min(offset + len)];
                prop_assert_eq!(&found[..count], expected, "view {} at {}", view, offset);
            }
            Step::Sync => open_dataset.sync().unwrap(),
            Step::Reopen => {
                drop(dataset.take());
                dataset = Some(open().unwrap());
            }
        }
    }
    drop(dataset);
    model.check_files(scratch.path())?;
    Ok(Some(bytes))
}

/// Kills the process at a system call.
struct Killer {
    calls: AtomicU64,
    at: u64,
    random: u64,
}

impl Faults for Killer {
    fn judge(&self, call: &Call<'_>) -> Verdict {
        let now = self.calls.fetch_add(1, Ordering::SeqCst);
        if now == self.at {
            // After a part of a write, the next call comes to its end.
            if call.kind == Kind::Write && call.len > 1 && self.random.is_multiple_of(2) {
                self.calls.store(self.at, Ordering::SeqCst);
                return Verdict::Short(1 + (self.random as usize / 2) % (call.len - 1));
            }
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        }
        Verdict::Go
    }
}

const CHILD: &str = "SLUICE_DATASET_CHILD";

/// The definition and the work of a seed; with at least two replicas.
fn work(seed: u64) -> Option<(Made, Model, Vec<Step>)> {
    let mut random = Random::new(seed);
    let row: Vec<u16> = (0..100).map(|_| random.below(1 << 16) as u16).collect();
    let made = definition(&mut Choices::new(&row));
    if made.definition.replicas.len() < 2 {
        return None;
    }
    let model = Model::new(&made)?;
    let mut steps = steps(&model, &mut random, 30);
    steps.retain(|step| !matches!(step, Step::Reopen | Step::Read { .. }));
    Some((made, model, steps))
}

/// Not a test of its own: what a child does until it is killed.
#[test]
fn child() {
    let Ok(order) = std::env::var(CHILD) else { return };
    let mut words = order.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (seed, at) = (number(), number());
    let path = Path::new(words.next().unwrap());
    let (made, _, steps) = work(seed).unwrap();
    let killer = Arc::new(Killer { calls: AtomicU64::new(0), at, random: seed ^ at });
    let options = Options { faults: Some(killer.clone()), ..Options::default() };
    let dataset = match Dataset::with_definition(path, made.definition, &options) {
        Ok(dataset) => dataset,
        Err(Error::Layout { .. }) => return println!("\nREFUSED"),
        Err(error) => panic!("{error}"),
    };
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Write { view, offset, data } => {
                match dataset.write(*view, *offset as u64, data) {
                    Ok(_) | Err(Error::PastEnd { .. } | Error::Length { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Sync => dataset.sync().unwrap(),
            Step::Read { .. } | Step::Reopen => {}
        }
        println!("\nDONE {index}");
    }
    drop(dataset);
    println!("\nCALLS {}", killer.calls.load(Ordering::SeqCst));
}

/// Runs a child; says how many steps it had acknowledged and how many calls it made if it came to
/// its end.
fn run_child(seed: u64, at: u64, path: &Path) -> Option<(usize, Option<u64>)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{seed} {at} {}", path.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut done, mut calls, mut refused) = (0, None, false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(index) = line.strip_prefix("DONE ") {
            done = index.parse::<usize>().unwrap() + 1;
        } else if let Some(count) = line.strip_prefix("CALLS ") {
            calls = Some(count.parse().unwrap());
        }
        refused |= line == "REFUSED";
    }
    let status = child.wait().unwrap();
    let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    assert!(killed || status.success(), "seed {seed} at {at}: {status}");
    (!refused).then_some((done, calls))
}

#[test]
fn killed_at_any_call_replicas_become_equal_and_keep_what_was_acknowledged() {
    let mut random = Random::new(support::seed());
    let (mut killed, mut in_the_midst) = (0, 0);
    for _ in 0..support::cases(12) {
        let seed = random.next();
        let Some((made, _, steps)) = work(seed) else { continue };
        let scratch = Scratch::new();
        let Some((_, Some(calls))) = run_child(seed, u64::MAX, &scratch.path().join("x.drepl"))
        else {
            continue;
        };
        for _ in 0..6 {
            let at = random.next() % calls;
            let scratch = Scratch::new();
            let path = scratch.path().join("x.drepl");
            let (done, _) = run_child(seed, at, &path).expect("it was not refused before");
            killed += 1;
            in_the_midst += u64::from(done > 0);
            let context = format!("seed {seed} killed at call {at} of {calls} after {done} steps");
            let dataset =
                Dataset::with_definition(&path, made.definition.clone(), &Options::default())
                    .unwrap_or_else(|error| panic!("{context}: {error}"));
            for (replica, condition) in dataset.replicas() {
                assert_eq!(condition, Condition::Fresh, "{context}: {replica}");
            }
            let mut before = Model::new(&made).unwrap();
            for step in &steps[..done] {
                if let Step::Write { view, offset, data } = step {
                    before.write(*view, *offset, data);
                }
            }
            // What a view has twice is written twice.
            let mut written: HashMap<Id, Vec<u8>> = HashMap::new();
            if let Some(Step::Write { view, offset, data }) = steps.get(done) {
                let mut after = before.clone();
                after.write(*view, *offset, data);
                for (cell, byte) in after.views[*view].iter().skip(*offset).zip(data) {
                    if let Cell::Data(id) = cell {
                        written.entry(id.clone()).or_default().push(*byte);
                    }
                }
            }
            // Every byte is as before or after the write that was not acknowledged, and the same
            // in all views.
            let mut now = Model::new(&made).unwrap();
            now.take_lengths(&dataset, made.all);
            let moved = now.lengths != before.lengths;
            now.values.clear();
            for view in 0..now.views.len() {
                assert_eq!(dataset.size(view), now.views[view].len() as u64, "{context}");
                let mut found = vec![0; now.views[view].len()];
                dataset.read(view, 0, &mut found).unwrap();
                for (cell, byte) in now.views[view].clone().iter().zip(&found) {
                    let Cell::Data(id) = cell else { continue };
                    let is_new = written.get(id).is_some_and(|bytes| bytes.contains(byte));
                    // Elements that have come, or begun anew, are zeros at first.
                    let is_old = before.byte(cell) == *byte || moved && *byte == 0;
                    let old = before.byte(cell);
                    assert!(
                        is_old || is_new,
                        "{context}: view {view}, {id:?}: {byte} instead of {old} or {:?}; lengths \
                         {:?}, before {:?}; then {:?}",
                        written.get(id),
                        now.lengths,
                        before.lengths,
                        steps.get(done),
                    );
                    let first = *now.values.entry(id.clone()).or_insert(*byte);
                    assert_eq!(first, *byte, "{context}: views differ at {id:?}");
                }
            }
            drop(dataset);
            now.check_files(scratch.path()).unwrap_or_else(|error| {
                let (next, definition) = (steps.get(done), &made.definition);
                panic!("{context}: {error}; then {next:?}; of {definition:?}")
            });
        }
    }
    assert!(killed > 10, "only {killed} children were killed");
    assert!(in_the_midst > killed / 4, "only {in_the_midst} of {killed} had done anything");
}
