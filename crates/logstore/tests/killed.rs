//! Programs that are killed: what they have not closed or synced is no part of the file.

use std::sync::Arc;

use hostlog::media::simulated::Syncs;
use p9::{Errno, GetattrMask, OpenFlags};
use store::mem::MemStore;
use store::{Node, OpenNode, Store};

mod house;

use house::{BOTH, READ, Scene, at, content_at};

/// A file of eight dots in the target, behind a log.
fn scene() -> Scene {
    let target = MemStore::new();
    let (_, open) = target.root().unwrap().create(b"file", BOTH, 0o644).unwrap();
    open.write_at(b"........", 0).unwrap();
    Scene::new(Arc::new(target))
}

/// A process that has the file open.
fn process(scene: &Scene) -> Arc<dyn OpenNode> {
    at(&scene.root(), b"file").unwrap().open(BOTH).unwrap()
}

fn write(open: &Arc<dyn OpenNode>, offset: u64, text: &str) {
    assert_eq!(open.write_at(text.as_bytes(), offset).unwrap(), text.len());
}

fn kill(open: Arc<dyn OpenNode>) {
    open.lost();
    drop(open);
}

fn now(scene: &Scene) -> String {
    String::from_utf8(content_at(&scene.root(), "file")).unwrap()
}

/// What the file is after the agent was killed too.
fn after_a_restart(scene: Scene) -> String {
    now(&scene.restart(|disk| disk.kill()))
}

#[test]
fn what_was_synced_stays_and_what_came_later_does_not() {
    let scene = scene();
    let open = process(&scene);
    write(&open, 0, "AA");
    open.sync(true).unwrap();
    write(&open, 2, "BB");
    kill(open);
    // Others have seen it, and see it as long as one of them may come to a consistency point.
    assert_eq!(now(&scene), "AABB....");
    assert_eq!(after_a_restart(scene), "AA......");
}

#[test]
fn what_is_dropped_is_gone_from_sight_and_holds_up_no_drain() {
    let mut scene = scene();
    let open = process(&scene);
    write(&open, 0, "AA");
    open.sync(true).unwrap();
    write(&open, 2, "BBBBBBBBB");
    kill(open);
    let (_, other) = scene.root().create(b"other", BOTH, 0o644).unwrap();
    write(&other, 0, "whole");
    other.close().unwrap();
    drop(other);
    scene.drain_all();
    assert!(scene.store.status().uncommitted_records > 0);
    let dropped = scene.store.drop_unfinished().unwrap();
    assert_eq!(dropped.len(), 1);
    assert_eq!((dropped[0].path.as_deref(), dropped[0].bytes), (Some(&b"file"[..]), 9));
    assert_eq!(now(&scene), "AA......");
    // What is written from here on is a new beginning.
    let open = process(&scene);
    write(&open, 4, "CC");
    open.close().unwrap();
    drop(open);
    assert!(scene.store.drop_unfinished().unwrap().is_empty());
    scene.drain_all();
    let status = scene.store.status();
    assert_eq!((status.logged_bytes, status.uncommitted_records), (0, 0));
    assert_eq!(content_at(&scene.target.root().unwrap(), "file"), b"AA..CC..");
    assert_eq!(after_a_restart(scene), "AA..CC..");
}

#[test]
fn a_file_that_was_emptied_first_is_what_it_was() {
    for drops in [false, true] {
        let scene = scene();
        let node = at(&scene.root(), b"file").unwrap();
        let open = node.open(BOTH | OpenFlags::TRUNCATE).unwrap();
        write(&open, 0, "half");
        kill(open);
        assert_eq!(now(&scene), "half");
        drop(node);
        if drops {
            scene.store.drop_unfinished().unwrap();
            assert_eq!(now(&scene), "........");
        }
        assert_eq!(after_a_restart(scene), "........");
    }
}

#[test]
fn nothing_is_dropped_while_somebody_has_the_file_open_to_write() {
    let scene = scene();
    let (killed, other) = (process(&scene), process(&scene));
    write(&killed, 0, "AA");
    kill(killed);
    assert!(scene.store.drop_unfinished().unwrap().is_empty());
    // His close is one of the file, whoever wrote it.
    other.close().unwrap();
    drop(other);
    assert_eq!(after_a_restart(scene), "AA......");
}

#[test]
fn a_close_counts_for_who_has_written_or_is_the_last() {
    let scene = scene();
    let (writer, other) = (process(&scene), process(&scene));
    write(&writer, 0, "AA");
    // One that a child has inherited, or a program that sets the times.
    other.close().unwrap();
    drop(other);
    assert!(scene.store.status().uncommitted_records > 0);
    let child = process(&scene);
    write(&child, 2, "CC");
    child.close().unwrap();
    drop(child);
    assert_eq!(scene.store.status().uncommitted_records, 0);
    write(&writer, 4, "BB");
    kill(writer);
    assert_eq!(after_a_restart(scene), "AACC....");
}

#[test]
fn two_openings_of_a_process_end_with_the_last() {
    let scene = scene();
    let node = at(&scene.root(), b"file").unwrap();
    let (one, two) = (node.open(BOTH).unwrap(), node.open(BOTH).unwrap());
    write(&one, 0, "AA");
    one.close().unwrap();
    drop(one);
    assert!(scene.store.status().uncommitted_records > 0);
    two.close().unwrap();
    assert_eq!(scene.store.status().uncommitted_records, 0);
    drop((node, two));
    assert_eq!(after_a_restart(scene), "AA......");
}

#[test]
fn a_rename_brings_over_what_was_there() {
    let scene = scene();
    let open = process(&scene);
    write(&open, 0, "AA");
    kill(open);
    let root = scene.root();
    root.rename(b"file", &*root, b"moved").unwrap();
    scene.store.commit_names().unwrap();
    drop(root);
    let scene = scene.restart(|disk| disk.kill());
    assert_eq!(content_at(&scene.root(), "moved"), b"AA......");
}

#[test]
fn who_loses_the_service_has_not_been_killed() {
    let scene = scene();
    let open = process(&scene);
    write(&open, 0, "AA");
    scene.store.end();
    kill(open);
    assert_eq!(after_a_restart(scene), "AA......");
}

#[test]
fn a_close_that_cannot_be_made_safe_is_an_error() {
    let scene = scene();
    let (open, reader) = (process(&scene), at(&scene.root(), b"file").unwrap().open(READ).unwrap());
    write(&open, 0, "AA");
    scene.disk.set_syncs(Syncs::FailOnce);
    assert_eq!(open.close().unwrap_err().to_errno(), Errno::EIO);
    reader.close().unwrap();
    drop((open, reader));
    let scene = scene.restart(|disk| disk.crash());
    assert_eq!(now(&scene), "........");
}

#[test]
fn clients_are_told_that_closes_count_for_files() {
    let scene = scene();
    let root = scene.root();
    let counts =
        |node: &dyn Node| node.attributes().unwrap().valid.contains(GetattrMask::CLOSE_COUNTS);
    let node = at(&root, b"file").unwrap();
    assert!(counts(&*node) && !counts(&*root));
    let open = node.open(BOTH).unwrap();
    write(&open, 0, "AA");
    assert!(open.attributes().unwrap().valid.contains(GetattrMask::CLOSE_COUNTS));
    let (new, _) = root.create(b"new", BOTH, 0o644).unwrap();
    assert!(counts(&*new));
}
