//! docs/SEMANTICS.md names the tests that hold each promise. Here each name is looked for: a promise
//! without a test, or with one that was renamed, fails.

use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The texts of all files with an extension below a directory.
fn texts(directory: &Path, extension: &str) -> String {
    let mut all = String::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        let entries = fs::read_dir(&directory).unwrap_or_else(|e| panic!("{directory:?}: {e}"));
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                all.push_str(&fs::read_to_string(&path).expect("a text"));
                all.push('\n');
            }
        }
    }
    all
}

/// What a paragraph relies on: `(where, name)`.
fn named(paragraph: &str) -> Vec<(String, String)> {
    let Some((_, tests)) = paragraph.split_once("\nTests: ") else { return Vec::new() };
    let between_ticks = tests.split('`').skip(1).step_by(2);
    between_ticks
        .map(|test| {
            let (place, name) = test.split_once(": ").unwrap_or_else(|| panic!("`{test}`"));
            (place.to_owned(), name.to_owned())
        })
        .collect()
}

/// Whether `text` has `before` `name` and then something that ends a name.
fn defines(text: &str, before: &str, name: &str) -> bool {
    let start = format!("{before}{name}");
    text.match_indices(&start).any(|(at, _)| {
        let next = text[at + start.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric() && next != '_' && next != '-')
    })
}

/// Whether the matrix has a case: named itself, a table of the probe, a part of a program, or one
/// of a family made by a loop.
fn has_case(cases: &str, name: &str) -> bool {
    let whole = ["case(\"", "script(\""].iter().any(|call| defines(cases, call, name));
    let table = name.strip_prefix("probe-").is_some_and(|name| defines(cases, "table(\"", name));
    // `parts("PROGRAM", "PART PART…")`: the part is a word of a string.
    let part = name.match_indices('-').any(|(at, _)| {
        let (program, part) = (&name[..at], &name[at + 1..]);
        defines(cases, "parts(\"", program)
            && ["\"", " "].iter().any(|before| defines(cases, before, part))
    });
    whole || table || part
}

#[test]
fn every_promise_names_tests_that_exist() {
    let page = fs::read_to_string(repository().join("docs/SEMANTICS.md")).expect("the page");
    let cases = texts(&repository().join("tests/matrix/cases"), "py");
    let scenarios = texts(&repository().join("tests/faults/scenarios"), "py");
    let interop = texts(&repository().join("tests/interop"), "py");
    let log = texts(&repository().join("tests/log"), "py");
    let mut wrong = Vec::new();
    let mut count = 0;
    let promises = page.split_once("\n## ").expect("sections").1;
    for paragraph in promises.split("\n\n").skip(1).filter(|text| !text.starts_with("## ")) {
        let tests = named(paragraph);
        let first_line = paragraph.lines().next().unwrap_or_default();
        if tests.is_empty() {
            wrong.push(format!("no test: {first_line}"));
        }
        for (place, name) in tests {
            count += 1;
            let exists = match place.as_str() {
                "matrix" => has_case(&cases, &name),
                "faults" => defines(&scenarios, "def ", &name),
                // A part of a program.
                "log" => log.contains(&format!("\"{name}\"")),
                "interop" => defines(&interop, "def ", &name),
                room => {
                    let room = repository().join("crates").join(room);
                    room.is_dir() && defines(&texts(&room, "rs"), "fn ", &name)
                }
            };
            if !exists {
                wrong.push(format!("`{place}: {name}` does not exist: {first_line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "the page was not understood: only {count} tests are named");
}

#[test]
fn a_name_that_only_begins_like_a_test_is_none() {
    assert!(defines("fn short_name() {}", "fn ", "short_name"));
    assert!(!defines("fn short_name_2() {}", "fn ", "short_name"));
    let cases = "case(\"whole\", r''')\nparts(\"files\", \"one two-halves\")\ntable(\"open\", x)";
    for name in ["whole", "files-one", "files-two-halves", "probe-open"] {
        assert!(has_case(cases, name), "{name}");
    }
    for name in ["who", "files-three", "files-two", "probe-close", "one"] {
        assert!(!has_case(cases, name), "{name}");
    }
}
