//! Reads and writes through slabs are those of the interpreter.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::definitions::{Choices, Made, definition};
use super::interpreter::{Cell, Id, Interpreter};
use crate::{Conversion, Error, Layout, Lengths, Origin, Placement, Slab};

/// How many definitions; more with `SLUICE_LAYOUT_CASES`.
const CASES: u32 = 3_000;

type Files = Vec<Vec<u8>>;

#[test]
fn reads_and_writes_are_those_of_the_reference_interpreter() {
    let cases = std::env::var("SLUICE_LAYOUT_CASES").ok().and_then(|n| n.parse().ok());
    let mut runner = TestRunner::new(Config {
        cases: cases.unwrap_or(CASES),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    });
    let row = prop::collection::vec(any::<u16>(), 0..160);
    let (tried, refused, moved) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let outcome = runner.run(&(row, any::<u64>()), |(row, seed)| {
        tried.fetch_add(1, Ordering::Relaxed);
        match case(&row, seed)? {
            Some(bytes) => moved.fetch_add(bytes, Ordering::Relaxed),
            None => refused.fetch_add(1, Ordering::Relaxed),
        };
        Ok(())
    });
    if let Err(error) = outcome {
        if let proptest::test_runner::TestError::Fail(_, (row, seed)) = &error {
            panic!("{error}\n{:#?}\nseed {seed}", definition(&mut Choices::new(row)));
        }
        panic!("{error}");
    }
    let (tried, refused) = (tried.into_inner(), refused.into_inner());
    assert!(refused * 5 < tried, "{refused} of {tried} definitions were refused");
    assert!(moved.into_inner() > 50 * tried, "hardly a byte was compared");
}

/// What the dataset holds.
struct State {
    values: HashMap<Id, u8>,
    /// What some replica stores.
    stored: Option<HashSet<Id>>,
}

impl State {
    fn byte(&self, cell: &Cell) -> u8 {
        match cell {
            Cell::Fill(byte) => *byte,
            Cell::Data(id) if self.stored.as_ref().is_none_or(|stored| stored.contains(id)) => {
                self.values[id]
            }
            Cell::Data(_) => 0,
        }
    }
}

/// `None`: refused by both.
fn case(row: &[u16], seed: u64) -> Result<Option<u64>, TestCaseError> {
    let mut choices = Choices::new(row);
    let made = definition(&mut choices);
    let mut random = Random(seed | 1);
    let subrecord_max = 1 + random.below(200);
    let interpreter = Interpreter {
        definition: &made.definition,
        lengths: &made.lengths,
        subrecord_max: subrecord_max as usize,
    };
    let layout = Layout::new(&made.definition).expect("few fields");
    let layout = layout.with_subrecord_max(subrecord_max);
    let mut lengths = Lengths::new();
    for (&variable, &value) in &made.lengths {
        lengths.set(variable, value);
    }
    let Some(placed) = place(&made, &layout, &interpreter, &lengths)? else {
        return Ok(None);
    };
    let Placed { views, view_cells, replicas, replica_cells } = placed;

    // Every byte of the dataset gets a value, and goes to the replicas by way of the view that has
    // everything.
    let mut state = State { values: HashMap::new(), stored: None };
    let mut image = Vec::new();
    for cell in &view_cells[made.all] {
        let byte = random.below(256) as u8;
        image.push(byte);
        if let Cell::Data(id) = cell {
            state.values.insert(id.clone(), byte);
        }
    }
    if !made.definition.replicas.iter().any(|replica| replica.complete) {
        let cells = replica_cells.iter().flatten().flatten();
        let ids = cells.filter_map(|cell| match cell {
            Cell::Data(id) => Some(id.clone()),
            Cell::Fill(_) => None,
        });
        state.stored = Some(ids.collect());
    }
    let mut stored: Vec<Files> = Vec::new();
    for replica in &replicas {
        let mut files: Files = replica.sizes().map(|size| vec![0xAA; size as usize]).collect();
        let blanks = Conversion::blanks(replica);
        for (number, file) in files.iter_mut().enumerate() {
            for slab in blanks.clip_file(number, 0..file.len() as u64) {
                slab.read(&[], 0, file, 0);
            }
        }
        let conversion = Conversion::write(&views[made.all], replica);
        write(&conversion, 0..image.len() as u64, &image, &mut files, &mut random);
        stored.push(files);
    }
    check_stored(&stored, &replica_cells, &state)?;

    let sources: Vec<&Placement> = replicas.iter().collect();
    let reads: Vec<Conversion> = (views.iter())
        .map(|view| Conversion::read(view, &sources).expect("small arrays have few pieces"))
        .collect();
    let mut moved = image.len() as u64;
    for _ in 0..3 {
        for (number, cells) in view_cells.iter().enumerate() {
            moved += check_reads(&reads[number], cells, &stored, &state, &mut random)?;
        }
        // A write through one of the views.
        let number = random.below(views.len() as u64) as usize;
        let cells = &view_cells[number];
        let range = random.range(cells.len() as u64 + 5);
        let bytes: Vec<u8> = range.clone().map(|_| random.below(256) as u8).collect();
        for (cell, &byte) in cells[(range.start as usize).min(cells.len())..].iter().zip(&bytes) {
            if let Cell::Data(id) = cell {
                state.values.insert(id.clone(), byte);
            }
        }
        for (replica, files) in replicas.iter().zip(&mut stored) {
            let conversion = Conversion::write(&views[number], replica);
            write(&conversion, range.clone(), &bytes, files, &mut random);
        }
        check_stored(&stored, &replica_cells, &state)?;
        moved += bytes.len() as u64;
    }

    // A replica that was lost comes back from the others, itself counted among them for what nobody
    // else has.
    for (number, replica) in replicas.iter().enumerate() {
        let rebuild = Conversion::read(replica, &sources).expect("small arrays have few pieces");
        for (file, content) in stored[number].iter().enumerate() {
            let mut fresh = vec![0x55; content.len()];
            for slab in rebuild.clip_file(file, 0..content.len() as u64) {
                slab.read(far(&slab, &stored), 0, &mut fresh, 0);
            }
            prop_assert_eq!(&fresh, content);
        }
    }
    Ok(Some(moved))
}

struct Placed {
    views: Vec<Placement>,
    view_cells: Vec<Vec<Cell>>,
    replicas: Vec<Placement>,
    replica_cells: Vec<Vec<Vec<Cell>>>,
}

/// Places everything by both means.
fn place(
    made: &Made,
    layout: &Layout<'_>,
    interpreter: &Interpreter<'_>,
    lengths: &Lengths,
) -> Result<Option<Placed>, TestCaseError> {
    let mut placed = Placed {
        views: Vec::new(),
        view_cells: Vec::new(),
        replicas: Vec::new(),
        replica_cells: Vec::new(),
    };
    for number in 0..made.definition.views.len() {
        match (layout.view(number, lengths), interpreter.view(number)) {
            (Ok(placement), Some(cells)) => {
                prop_assert_eq!(placement.size(), cells.len() as u64, "size of view {}", number);
                placed.views.push(placement);
                placed.view_cells.push(cells);
            }
            (Err(Error::NestedSubrecords { .. }), _) => return Ok(None),
            (Err(Error::Overlap { .. } | Error::Backwards { .. }), None) => return Ok(None),
            (ours, theirs) => prop_assert!(false, "view {}: {:?} {:?}", number, ours, theirs),
        }
    }
    for number in 0..made.definition.replicas.len() {
        match (layout.replica(number, lengths), interpreter.replica(number)) {
            (Ok(placement), Some(files)) => {
                let sizes: Vec<u64> = placement.sizes().collect();
                let theirs: Vec<u64> = files.iter().map(|file| file.len() as u64).collect();
                if made.definition.replicas[number].complete {
                    prop_assert!(sizes.len() >= theirs.len());
                    for (ours, theirs) in sizes.iter().zip(&theirs) {
                        prop_assert!(ours >= theirs);
                    }
                } else {
                    prop_assert_eq!(sizes, theirs, "sizes of replica {}", number);
                }
                placed.replicas.push(placement);
                placed.replica_cells.push(files);
            }
            (Err(Error::NestedSubrecords { .. }), _) => return Ok(None),
            (Err(Error::Overlap { .. } | Error::Backwards { .. }), None) => return Ok(None),
            (ours, theirs) => prop_assert!(false, "replica {}: {:?} {:?}", number, ours, theirs),
        }
    }
    Ok(Some(placed))
}

fn far<'a>(slab: &Slab, stored: &'a [Files]) -> &'a [u8] {
    match slab.origin() {
        Origin::Source { source, file } => &stored[source][file],
        Origin::Zeros | Origin::Marker(_) => &[],
    }
}

fn write(
    conversion: &Conversion,
    range: std::ops::Range<u64>,
    bytes: &[u8],
    files: &mut Files,
    random: &mut Random,
) {
    for slab in conversion.clip(range.clone()) {
        let Origin::Source { source: 0, file } = slab.origin() else {
            panic!("a write goes to {:?}", slab.origin());
        };
        if random.below(2) == 0 {
            slab.write(bytes, range.start, &mut files[file], 0);
        } else {
            let span = slab.far_span();
            let window = &mut files[file][span.start as usize..span.end as usize];
            slab.write(bytes, range.start, window, span.start);
        }
    }
}

fn check_stored(
    stored: &[Files],
    cells: &[Vec<Vec<Cell>>],
    state: &State,
) -> Result<(), TestCaseError> {
    for (number, (files, cells)) in stored.iter().zip(cells).enumerate() {
        for (file, (bytes, cells)) in files.iter().zip(cells).enumerate() {
            for (at, (&byte, cell)) in bytes.iter().zip(cells).enumerate() {
                prop_assert_eq!(
                    byte,
                    state.byte(cell),
                    "replica {} file {} byte {} {:?}",
                    number,
                    file,
                    at,
                    cell
                );
            }
        }
    }
    Ok(())
}

fn check_reads(
    conversion: &Conversion,
    cells: &[Cell],
    stored: &[Files],
    state: &State,
    random: &mut Random,
) -> Result<u64, TestCaseError> {
    let size = cells.len() as u64;
    let mut moved = 0;
    let ranges = [0..size, random.range(size), random.range(size), random.range(size + 3)];
    for range in ranges {
        let inside = range.start.min(size)..range.end.min(size);
        let mut bytes = vec![0x33; (inside.end - inside.start) as usize];
        let mut covered = 0;
        for slab in conversion.clip(range) {
            covered += slab.bytes();
            let far = far(&slab, stored);
            if !matches!(slab.origin(), Origin::Source { .. }) {
                slab.read(far, 0, &mut bytes, inside.start);
                continue;
            }
            let window = [16, 40, 200, u64::MAX][random.below(4) as usize];
            slab.split(window, &mut |piece| -> Result<(), TestCaseError> {
                let span = piece.far_span();
                prop_assert!(span.end - span.start <= window);
                let far = &far[span.start as usize..span.end as usize];
                piece.read(far, span.start, &mut bytes, inside.start);
                Ok(())
            })?;
        }
        prop_assert_eq!(covered, bytes.len() as u64, "bytes covered in {:?}", inside);
        let mut at_once = vec![0x44; bytes.len()];
        let file = |source: usize, file: usize| &stored[source][file][..];
        conversion.read_from(inside.clone(), file, &mut at_once);
        prop_assert!(at_once == bytes, "{:?} in one pass", inside);
        for (at, &byte) in inside.clone().zip(&bytes) {
            let cell = &cells[at as usize];
            prop_assert_eq!(byte, state.byte(cell), "byte {} of {:?}: {:?}", at, inside, cell);
        }
        moved += bytes.len() as u64;
    }
    Ok(moved)
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n.max(1)
    }

    fn range(&mut self, size: u64) -> std::ops::Range<u64> {
        let a = self.below(size + 1);
        let length = if self.below(2) == 0 { 9 } else { size };
        a..(a + self.below(length + 1)).min(size)
    }
}
