//! `drepl` refuses what has no room in a file before anything is placed; both must measure alike.

use drepl::definition::{
    Array, Length, Marker, Part, Placing, Record, Scalar, Type, Variable, View, ViewVariable,
};
use drepl::{Definition, MemoryLoader};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::definitions::{Choices, definition};
use crate::{Layout, Lengths};

fn compiled(definition: &Definition) -> Result<Definition, String> {
    let text = drepl::print(definition);
    let compiled = drepl::compile("x", &mut MemoryLoader::new("x", &text));
    compiled.map(|compiled| compiled.definition).map_err(|wrong| wrong.render(false))
}

/// The definition with one byte more at a place of a view.
fn with_byte_at(definition: &Definition, view: usize, at: u64) -> Definition {
    let mut changed = definition.clone();
    let source = changed.variables.len();
    let kind = Type::Scalar(Scalar::Int8);
    changed.variables.push(Variable { name: "extra".to_owned(), kind });
    changed.replicas.clear();
    changed.views[view].variables.push(ViewVariable {
        name: "extra".to_owned(),
        source,
        part: Part::Whole,
        placing: Placing { at: Some(at), ..Placing::default() },
        record: None,
    });
    changed
}

/// Where the next variable may lie is where the view ends: that byte is taken, the one before refused.
fn agree(definition: &Definition, view: usize, size: u64) -> Result<(), TestCaseError> {
    let free = compiled(&with_byte_at(definition, view, size));
    prop_assert!(free.is_ok(), "byte {size} of view {view} is free: {}", free.unwrap_err());
    if let Some(taken) = size.checked_sub(1) {
        let said = compiled(&with_byte_at(definition, view, taken)).expect_err("a taken byte");
        prop_assert!(said.contains(&format!("expected byte {size} or later")), "{said}");
    }
    Ok(())
}

#[test]
fn views_end_where_the_language_says_they_do() {
    let config = Config { cases: 1_500, failure_persistence: None, ..Config::default() };
    let views = std::sync::atomic::AtomicU64::new(0);
    let row = prop::collection::vec(any::<u16>(), 0..160);
    let outcome = TestRunner::new(config).run(&row, |row| {
        // What is made at random the language may refuse, or understand otherwise.
        let Ok(definition) = compiled(&definition(&mut Choices::new(&row)).definition) else {
            return Ok(());
        };
        let is_stored = |length: &Length| matches!(length, Length::Stored(_));
        let varies =
            |kind: &Type| matches!(kind, Type::Array(array) if array.lengths.iter().any(is_stored));
        let layout = Layout::new(&definition).expect("few fields");
        for (number, view) in definition.views.iter().enumerate() {
            if view.variables.iter().any(|one| varies(&definition.variables[one.source].kind)) {
                continue;
            }
            let placed = layout.view(number, &Lengths::new()).expect("the language took it");
            agree(&definition, number, placed.size())?;
            views.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(views.into_inner() > 300, "hardly a view was compared");
}

/// A view of one array of numbers.
fn array(element: Scalar, lengths: &[u64], change: impl FnOnce(&mut View)) -> Definition {
    let lengths = lengths.iter().map(|&length| Length::Fixed(length)).collect();
    let kind = Type::Array(std::sync::Arc::new(Array { lengths, element: Type::Scalar(element) }));
    let mut view = definition(&mut Choices::new(&[])).definition.views.remove(0);
    view.variables = vec![ViewVariable {
        name: "a".to_owned(),
        source: 0,
        part: Part::Whole,
        placing: Placing::default(),
        record: None,
    }];
    change(&mut view);
    let variables = vec![Variable { name: "a".to_owned(), kind }];
    Definition { variables, views: vec![view], replicas: Vec::new() }
}

#[test]
fn what_ends_behind_the_last_byte_of_a_file_both_refuse() {
    const END: u64 = i64::MAX as u64;
    let (mut taken, mut refused) = (0, 0);
    for pad in [0, 1, 7, 8, 100] {
        for header in [0, 1, 8, 64] {
            for bytes in [END - 108, END - 100, END - 72, END - 64, END - 8, END - 7, END - 1, END]
            {
                let definition = array(Scalar::Uint8, &[bytes], |view| {
                    view.header = header;
                    view.variables[0].placing.pad = pad;
                });
                let layout = Layout::new(&definition).expect("one field");
                let ours = layout.view(0, &Lengths::new()).map(|placed| placed.size());
                let theirs = compiled(&definition);
                assert_eq!(
                    ours.is_ok(),
                    theirs.is_ok(),
                    "{pad} {header} {bytes}: {ours:?} {theirs:?}"
                );
                if ours.is_ok() { taken += 1 } else { refused += 1 }
            }
        }
    }
    assert!(taken > 20 && refused > 20, "{taken} {refused}");
}

#[test]
fn records_of_several_subrecords_end_where_the_language_says() {
    const MOST: u64 = 2_147_483_639;
    for bytes in [1, MOST - 1, MOST, MOST + 1, 2 * MOST, 2 * MOST + 1, 5_000_000_000] {
        for (marker, markers) in [(Marker::Four, 8 * bytes.div_ceil(MOST)), (Marker::Eight, 16)] {
            let definition = array(Scalar::Uint8, &[bytes], |view| {
                view.variables[0].record = Some(Record { number: 0, marker });
            });
            let layout = Layout::new(&definition).expect("one field");
            let size = layout.view(0, &Lengths::new()).expect("a few gigabytes").size();
            assert_eq!(size, bytes + markers);
            agree(&definition, 0, size).unwrap();
        }
    }
}
