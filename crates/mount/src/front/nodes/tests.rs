//! The table over a store in memory.

use p9::OpenFlags;
use store::Store;
use store::mem::MemStore;

use super::*;

/// A table over a store with the files `names` in directory `d`; gives the directory's number.
fn table(names: &[&str], held_max: usize) -> (Nodes, u64) {
    let store = MemStore::new();
    let root = store.root().expect("a root");
    root.make_directory(b"d", 0o755).expect("a directory");
    let nodes = Nodes::new(Arc::clone(&root), held_max);
    let d = look_up(&nodes, ROOT, "d");
    for name in names {
        let dir = nodes.get(d).expect("the directory");
        dir.create(name.as_bytes(), OpenFlags::WRITE_ONLY, 0o644).expect("a file");
    }
    (nodes, d)
}

fn look_up(nodes: &Nodes, parent: u64, name: &str) -> u64 {
    let dir = nodes.get(parent).expect("the directory");
    let node = dir.walk(&[name.as_bytes()]).expect("a walk").end.expect("its end");
    let found = node.attributes().expect("attributes");
    nodes.enter(parent, name.as_bytes(), &node, &found)
}

#[test]
fn what_was_forgotten_is_gone_and_what_is_below_keeps_its_directory() {
    let (nodes, d) = table(&["a"], 100);
    let a = look_up(&nodes, d, "a");
    assert_eq!(look_up(&nodes, d, "a"), a);
    nodes.forget(d, 1);
    assert_eq!(nodes.counts(), (3, 2));
    nodes.forget(a, 1);
    assert!(nodes.get(a).is_ok());
    nodes.forget(a, 1);
    assert_eq!(nodes.counts(), (1, 0));
    assert_eq!(nodes.get(a).err(), Some(Errno::ESTALE));
}

#[test]
fn nodes_that_were_let_go_are_found_by_their_names_after_renames_too() {
    let names: Vec<String> = (0..40).map(|i| format!("f{i}")).collect();
    let (nodes, d) = table(&names.iter().map(String::as_str).collect::<Vec<_>>(), 8);
    let numbers: Vec<u64> = names.iter().map(|name| look_up(&nodes, d, name)).collect();
    assert!(nodes.counts().1 <= 8, "{:?}", nodes.counts());
    let root = nodes.get(ROOT).expect("the root");
    root.rename(b"d", &*root, b"e").expect("renamed");
    nodes.renamed((ROOT, b"d"), (ROOT, b"e"));
    for number in &numbers {
        let node = nodes.get(*number).expect("found again");
        assert_eq!(nodes.number(node.qid().path), *number);
    }
    assert!(nodes.counts().1 <= 8, "{:?}", nodes.counts());
}

#[test]
fn another_file_under_the_name_is_stale_and_an_open_one_stays() {
    let (nodes, d) = table(&["a", "b", "c", "x", "y", "z"], 4);
    let a = look_up(&nodes, d, "a");
    let b = look_up(&nodes, d, "b");
    nodes.opened(b);
    for _ in 0..3 {
        for name in ["x", "y", "z"] {
            look_up(&nodes, d, name);
        }
    }
    let dir = nodes.get(d).expect("the directory");
    for name in [b"a", b"b"] {
        dir.remove(name, false).expect("removed");
        dir.create(name, OpenFlags::WRITE_ONLY, 0o644).expect("another file");
    }
    assert_eq!(nodes.get(a).err(), Some(Errno::ESTALE));
    assert_eq!(nodes.number(nodes.get(b).expect("it is open").qid().path), b);
}

#[test]
fn a_name_that_is_gone_leads_nowhere_and_the_replaced_file_is_kept_by_its_node() {
    let (nodes, d) = table(&["a", "b"], 100);
    let [a, b] = ["a", "b"].map(|name| look_up(&nodes, d, name));
    let dir = nodes.get(d).expect("the directory");
    dir.rename(b"a", &*dir, b"b").expect("renamed");
    nodes.renamed((d, b"a"), (d, b"b"));
    assert_eq!(nodes.number(nodes.get(b).expect("replaced").qid().path), b);
    assert_eq!(look_up(&nodes, d, "b"), a);
    dir.remove(b"b", false).expect("removed");
    nodes.removed(d, b"b");
    assert!(nodes.get(a).is_ok());
    nodes.forget(a, 2);
    assert_eq!(nodes.get(a).err(), Some(Errno::ESTALE));
}

#[test]
fn no_number_is_the_roots_but_the_root() {
    let (nodes, _) = table(&[], 100);
    let root = nodes.get(ROOT).expect("the root").qid().path;
    assert_eq!(nodes.number(root), ROOT);
    for path in [0, 1, 2, u64::MAX].into_iter().filter(|path| *path != root) {
        assert!(nodes.number(path) > ROOT);
    }
}

#[test]
fn a_directory_that_only_a_moved_file_kept_is_gone() {
    let (nodes, d) = table(&["a"], 100);
    let a = look_up(&nodes, d, "a");
    nodes.forget(d, 1);
    let (root, dir) = (nodes.get(ROOT).expect("the root"), nodes.get(d).expect("it has a child"));
    dir.rename(b"a", &*root, b"a").expect("renamed");
    nodes.renamed((d, b"a"), (ROOT, b"a"));
    assert_eq!(nodes.counts(), (2, 1));
    assert_eq!(nodes.get(d).err(), Some(Errno::ESTALE));
    assert!(nodes.get(a).is_ok());
    // Somebody else moves it back: the kernel finds it there.
    root.rename(b"a", &*dir, b"a").expect("renamed");
    let d = look_up(&nodes, ROOT, "d");
    assert_eq!(look_up(&nodes, d, "a"), a);
    nodes.forget(a, 2);
    nodes.forget(d, 1);
    assert_eq!(nodes.counts(), (1, 0));
}
