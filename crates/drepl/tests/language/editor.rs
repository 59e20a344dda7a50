//! The grammar for editors knows the words that the compiler knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use drepl::words::{Role, WORDS};
use serde_json::Value;

fn scope(role: Role) -> &'static str {
    match role {
        Role::Declaration => "keyword.declaration.drepl",
        Role::Type => "storage.type.drepl",
        Role::ViewFlag => "storage.modifier.view.drepl",
        Role::Placing => "storage.modifier.placing.drepl",
        Role::ReplicaFlag => "storage.modifier.replica.drepl",
        Role::Storage => "storage.modifier.storage.drepl",
    }
}

#[test]
fn the_words_are_those_of_the_compiler() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/drepl.tmLanguage.json");
    let text = fs::read_to_string(path).expect("the grammar");
    let grammar: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut shown: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for pattern in grammar["repository"]["words"]["patterns"].as_array().expect("patterns") {
        let words = pattern["match"].as_str().expect("a pattern");
        let words =
            words.strip_prefix(r"(?<![\w-])").and_then(|rest| rest.strip_suffix(r"(?![\w-])"));
        let words = words.expect("it stands between borders of words");
        let list = words.strip_prefix("(?:").and_then(|rest| rest.strip_suffix(')'));
        let list = list
            .map_or_else(|| vec![words.trim_end_matches(r"\d*")], |list| list.split('|').collect());
        shown.entry(pattern["name"].as_str().expect("a scope")).or_default().extend(list);
    }
    let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (word, role) in WORDS {
        known.entry(scope(*role)).or_default().insert(word);
    }
    assert_eq!(shown, known);
}

/// The words of the table are those that the parser takes: each is used once where it belongs.
#[test]
fn the_parser_takes_every_word_of_the_table() {
    let text = "
dataset { const N = 1; type T struct { a int8 }; var a int16; var b int32; var c int64; var d uint8
    var e uint16; var f uint32; var g uint64; var h float32; var i float64; var j string1; var k T }
view one read-only rowmajor littleendian packed header N records { var a = a }
view two readonly rowminor bigendian { var a = a at 0 align 2 pad 4; record { var b = b } }
view three columnmajor { var a = a }
view four default { var a = a }
replica one complete sync near 1 { view one }
replica two complete async hdf5 { view one group \"g\" split chunk [1] deflate 1 }
replica three complete on-close { view one }";
    crate::support::right(text);
    for (word, _) in WORDS {
        assert!(text.contains(word), "{word}");
        // Misspelt, none is taken.
        let wrong = text.replacen(&format!(" {word}"), &format!(" {word}y"), 1);
        if wrong != text && *word != "string" {
            assert!(crate::support::compile(&wrong).is_err(), "{word}");
        }
    }
}
