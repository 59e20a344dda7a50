//! ARCHITECTURE.md prints which crate stands on which floor and what it imports. Here that is held
//! against the manifests: a crate that is missing from the page, an import that the page does not
//! show, or one that does not point downwards, fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What the page, or the manifests, say of one crate.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Room {
    floor: u32,
    imports: BTreeSet<String>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines `FLOOR  CRATE  imports  CRATE…` between ```` ```floors ```` and the next fence.
fn printed(page: &str) -> BTreeMap<String, Room> {
    let lines = page.lines().skip_while(|line| *line != "```floors").skip(1);
    let mut rooms = BTreeMap::new();
    for line in lines.take_while(|line| *line != "```").filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let floor = words.next().and_then(|word| word.parse().ok());
        let name = words.next().map(str::to_owned);
        let (Some(floor), Some(name), Some("imports")) = (floor, name, words.next()) else {
            panic!(
                "ARCHITECTURE.md: a line of the floors must read `FLOOR CRATE imports …`: {line}"
            );
        };
        let imports = words.filter(|word| *word != "nothing").map(str::to_owned).collect();
        let before = rooms.insert(name, Room { floor, imports });
        assert!(before.is_none(), "ARCHITECTURE.md names a crate twice: {line}");
    }
    rooms
}

/// The crates of the workspace and which of each other they import. Not counted are
/// dev-dependencies: tests of a lower room may use a higher one, no program does.
fn built() -> BTreeMap<String, BTreeSet<String>> {
    let mut manifests = BTreeMap::new();
    for entry in fs::read_dir(repository().join("crates")).expect("crates/") {
        let manifest = entry.expect("an entry of crates/").path().join("Cargo.toml");
        if manifest.is_file() {
            let parsed: toml::Table = text(&manifest).parse().expect("a manifest is TOML");
            let name = parsed["package"]["name"].as_str().expect("package.name").to_owned();
            manifests.insert(name, parsed);
        }
    }
    let ours: BTreeSet<String> = manifests.keys().cloned().collect();
    let imports = |manifest: &toml::Table| -> BTreeSet<String> {
        let mut tables = vec![manifest];
        let targets = manifest.get("target").and_then(toml::Value::as_table);
        tables.extend(targets.into_iter().flatten().filter_map(|(_, target)| target.as_table()));
        let dependencies = tables.iter().flat_map(|table| {
            ["dependencies", "build-dependencies"]
                .into_iter()
                .filter_map(|kind| table.get(kind).and_then(toml::Value::as_table))
        });
        dependencies
            .flatten()
            .map(|(key, value)| {
                // `key = { package = "name" }` imports `name`.
                let renamed = value.get("package").and_then(toml::Value::as_str);
                renamed.unwrap_or(key).to_owned()
            })
            .filter(|name| ours.contains(name))
            .collect()
    };
    manifests.iter().map(|(name, manifest)| (name.clone(), imports(manifest))).collect()
}

/// Imports that do not point downwards, in words.
fn upward(rooms: &BTreeMap<String, Room>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, room) in rooms {
        for import in &room.imports {
            if rooms.get(import).is_none_or(|below| below.floor >= room.floor) {
                wrong.push(format!("{name} (floor {}) imports {import}", room.floor));
            }
        }
    }
    wrong
}

#[test]
fn the_printed_tree_is_the_one_that_is_built() {
    let page = printed(&text(&repository().join("ARCHITECTURE.md")));
    let shown: BTreeMap<_, _> = page.into_iter().map(|(name, room)| (name, room.imports)).collect();
    assert_eq!(shown, built(), "left: ARCHITECTURE.md; right: the manifests");
}

#[test]
fn imports_only_point_downwards() {
    let page = printed(&text(&repository().join("ARCHITECTURE.md")));
    assert_eq!(upward(&page), Vec::<String>::new());
}

#[test]
fn an_import_of_the_same_or_a_higher_floor_is_noticed() {
    let page = "```floors\n1 b imports a c d\n1 c imports nothing\n0 a imports b\n```\n";
    assert_eq!(
        upward(&printed(page)),
        [
            "a (floor 0) imports b",
            "b (floor 1) imports c",
            // Not on the page at all.
            "b (floor 1) imports d",
        ]
    );
}

#[test]
fn unsafe_code_lives_in_the_rooms_that_the_page_names() {
    let page = text(&repository().join("ARCHITECTURE.md"));
    let named = page
        .lines()
        .find_map(|line| line.strip_prefix("Rooms with `unsafe`: "))
        .expect("ARCHITECTURE.md names the rooms with `unsafe`");
    let named: BTreeSet<String> = named.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let mut allowing = BTreeSet::new();
    for name in built().into_keys() {
        let source = repository().join("crates").join(&name).join("src");
        let root = ["lib.rs", "main.rs"].map(|file| source.join(file));
        let root = root.iter().find(|file| file.is_file()).expect("lib.rs or main.rs");
        if !text(root).lines().any(|line| line.trim() == "#![forbid(unsafe_code)]") {
            allowing.insert(name);
        }
    }
    assert_eq!(named, allowing);
}
