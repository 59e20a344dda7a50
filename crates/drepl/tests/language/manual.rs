//! The examples of docs/LAYOUT.md.

use std::fs;
use std::path::Path;

use crate::support::right;

fn manual() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/LAYOUT.md");
    fs::read_to_string(path).expect("the manual")
}

#[test]
fn the_first_example_is_right_and_formatted() {
    let manual = manual();
    let example = manual.split("```").nth(1).expect("an example").trim_start();
    assert_eq!(right(example).views.len(), 3);
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&drepl::format(example).expect("it is right")), squeezed(example));
}

#[test]
fn every_part_in_the_table_is_right() {
    let manual = manual();
    let dataset = "dataset {
        const N = 10
        type Point struct { a, b float32 }
        type Row [8]int8
        var p Point; var data [N]Point; var a [4, 5]float64; var n, m int32; var rows [3]Row
        var atoms [N]struct { id int32; x [3]float32 }
        var row Row
    }\n";
    let rows = manual.lines().filter_map(|line| line.strip_prefix("| `var ")?.split('`').next());
    let mut count = 0;
    for row in rows.filter(|row| row.contains('=')) {
        right(&format!("{dataset}view v {{ var {row} }}"));
        count += 1;
    }
    assert_eq!(count, 10);
    let types = "type PointB { b } Point; var d [i] PointB = data[i*3]; type Odd [i] Row[2*i + 1]; var o Odd = row";
    assert!(manual.contains("`type Odd [i] Row[2*i + 1]`"));
    right(&format!("{dataset}view v {{ {types} }}"));
    let record = manual.split("```").find(|part| part.contains("legacy.dat")).expect("the records");
    right(&format!("{dataset}{record}"));
}

#[test]
fn the_words_of_the_language_are_in_it() {
    let manual = manual();
    for (word, _) in drepl::words::WORDS {
        assert!(
            manual.contains(&format!("`{word}")) || manual.contains(&format!("\"{word}\"")),
            "{word}"
        );
    }
}
