//! What is said of definitions that are wrong: every file of `wrong/` beside the text that belongs to it.
//!
//! With `BLESS=1` in the environment, what is said now is kept.

use std::fs;
use std::path::Path;

use crate::support::compile;

#[test]
fn every_wrong_definition_is_told_as_it_is_written_down() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/wrong");
    let mut names: Vec<_> = fs::read_dir(&directory)
        .expect("the directory of wrong definitions")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "drepl"))
        .collect();
    names.sort();
    assert!(names.len() >= 14, "{names:?}");
    let mut differing = Vec::new();
    for path in names {
        let text = fs::read_to_string(&path).expect("a definition");
        let said = match compile(&text) {
            Ok(compiled) => panic!("{}: understood: {compiled:#?}", path.display()),
            Err(wrong) => wrong.render(false),
        };
        let expected = path.with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &said).expect("written");
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(&*said) {
            differing.push(format!("{}:\n{said}", path.display()));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
