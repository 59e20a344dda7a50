//! docs/COVERAGE.md lists every libc function that Sluice stands before. The list and the table of
//! hooks must agree both ways.

use std::collections::BTreeMap;
use std::path::Path;

use sluice::hooks::{self, When};

/// The symbols of the page's blocks, and in which mode each is hooked.
fn listed() -> BTreeMap<String, When> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/COVERAGE.md");
    let page = std::fs::read_to_string(page).expect("docs/COVERAGE.md");
    let mut symbols = BTreeMap::new();
    let mut mode = None;
    for line in page.lines() {
        mode = match (line, mode) {
            ("```symbols", _) => Some(When::Always),
            ("```symbols interposed", _) => Some(When::Interposing),
            ("```", _) => None,
            (_, Some(mode)) => {
                for symbol in line.split_whitespace() {
                    let before = symbols.insert(symbol.to_owned(), mode);
                    assert!(before.is_none(), "COVERAGE.md lists {symbol} twice");
                }
                Some(mode)
            }
            (_, None) => None,
        };
    }
    symbols
}

#[test]
fn the_page_lists_the_symbols_that_are_hooked() {
    let page = listed();
    let hooked: BTreeMap<String, When> = hooks::all()
        .map(|hook| (hook.name.to_str().expect("C names are ASCII").to_owned(), hook.when))
        .collect();
    let only_here = |a: &BTreeMap<String, When>, b: &BTreeMap<String, When>| -> Vec<String> {
        a.iter()
            .filter(|(name, when)| b.get(*name) != Some(when))
            .map(|(name, when)| format!("{name} ({when:?})"))
            .collect()
    };
    assert_eq!(only_here(&hooked, &page), Vec::<String>::new(), "hooked, not in COVERAGE.md");
    assert_eq!(only_here(&page, &hooked), Vec::<String>::new(), "in COVERAGE.md, not hooked");
}
