//! Many programs and the drain at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hostlog::media::simulated::Dice;
use p9::{OpenFlags, SetAttributes, SetattrMask};
use store::mem::MemStore;

mod house;

use house::{BOTH, READ, Scene, at, content, content_at, small};

const WRITERS: u64 = 4;

/// Works in a directory of its own, and reads back what it wrote; returns what should be there.
fn work(scene: &Scene, writer: u64) -> BTreeMap<String, Vec<u8>> {
    let mut dice = Dice::new(writer);
    let root = scene.root();
    let dir = format!("dir{writer}");
    root.make_directory(dir.as_bytes(), 0o755).unwrap();
    let dir = at(&root, dir.as_bytes()).unwrap();
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for round in 0..150 {
        let name = format!("f{}", dice.below(5));
        let (node, open) = dir.create(name.as_bytes(), BOTH, 0o644).unwrap();
        let bytes = files.entry(name.clone()).or_default();
        for _ in 0..4 {
            let (offset, len) = (dice.below(20_000) as usize, dice.below(5000) as usize + 1);
            let data = vec![(round % 250 + 1) as u8; len];
            open.write_at(&data, offset as u64).unwrap();
            bytes.resize(bytes.len().max(offset + len), 0);
            bytes[offset..offset + len].copy_from_slice(&data);
        }
        assert!(content(&node) == *bytes, "writer {writer}, round {round}: {name} is another");
        match dice.below(6) {
            0 => {
                let size = dice.below(30_000);
                let valid = SetattrMask::SIZE;
                let set = SetAttributes { valid, size, ..SetAttributes::default() };
                open.set_attributes(&set).unwrap();
                bytes.resize(size as usize, 0);
            }
            1 => {
                let new = format!("f{}", dice.below(5));
                dir.rename(name.as_bytes(), &*dir, new.as_bytes()).unwrap();
                let moved = files.remove(&name).unwrap();
                files.insert(new, moved);
            }
            2 => {
                // Open and without a name it is read on.
                dir.remove(name.as_bytes(), false).unwrap();
                let gone = files.remove(&name).unwrap();
                std::thread::yield_now();
                let mut found = vec![0; gone.len()];
                assert_eq!(open.read_at(&mut found, 0).unwrap(), gone.len());
                assert!(found == gone, "writer {writer}, round {round}: removed {name} is another");
            }
            3 => open.sync(false).unwrap(),
            _ => {}
        }
        drop(open);
        let mut listed = Vec::new();
        dir.open(OpenFlags::DIRECTORY)
            .unwrap()
            .read_directory(0, &mut |entry| {
                listed.push(String::from_utf8(entry.name.to_vec()).unwrap());
                true
            })
            .unwrap();
        listed.sort();
        let expected = [".".to_owned(), "..".to_owned()].into_iter().chain(files.keys().cloned());
        assert_eq!(listed, expected.collect::<Vec<_>>(), "writer {writer}, round {round}");
    }
    files
}

#[test]
fn a_drain_that_runs_all_the_while_changes_nothing_that_programs_see() {
    let mut scene = Scene::with(Arc::new(MemStore::new()), small());
    // One file is everybody's: each has its own places in it.
    scene.root().create(b"shared", BOTH, 0o644).unwrap();
    let mut drain = std::mem::take(&mut scene.drain);
    let is_done = AtomicBool::new(false);
    let mut expected = BTreeMap::new();
    let mut steps = 0;
    std::thread::scope(|scope| {
        let scene = &scene;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let shared = at(&scene.root(), b"shared").unwrap().open(BOTH).unwrap();
                    let files = work(scene, writer);
                    for n in 0..200 {
                        let offset = (n * WRITERS + writer) * 1000;
                        shared.write_at(&[writer as u8 + 1; 1000], offset).unwrap();
                        let mut back = [0; 1000];
                        assert_eq!(shared.read_at(&mut back, offset).unwrap(), 1000);
                        assert_eq!(back, [writer as u8 + 1; 1000]);
                    }
                    files
                })
            })
            .collect();
        let is_done = &is_done;
        let drainer = scope.spawn(move || {
            let mut steps = 0;
            while !is_done.load(Ordering::Acquire) {
                drain.step(&scene.log, &scene.store, &*scene.target, 100, 3);
                steps += 1;
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            (drain, steps)
        });
        for (writer, thread) in writers.into_iter().enumerate() {
            let files = thread.join();
            is_done.store(files.is_err() || is_done.load(Ordering::Acquire), Ordering::Release);
            expected.insert(format!("dir{writer}"), files.unwrap());
        }
        is_done.store(true, Ordering::Release);
        (drain, steps) = drainer.join().unwrap();
        scene.store.commit_all().unwrap();
        drain.step(&scene.log, &scene.store, &*scene.target, usize::MAX, 0);
    });
    assert!(steps > 10, "the drain had no time");
    let shared: Vec<u8> =
        (0..200 * WRITERS).flat_map(|n| [(n % WRITERS) as u8 + 1; 1000]).collect();
    for root in [scene.root(), scene.target.root().unwrap()] {
        assert!(content_at(&root, "shared") == shared);
        for (dir, files) in &expected {
            for (name, bytes) in files {
                assert!(content_at(&root, &format!("{dir}/{name}")) == *bytes, "{dir}/{name}");
            }
        }
    }
    let status = scene.store.status();
    assert_eq!((status.logged_bytes, status.uncommitted_records), (0, 0));
}

#[test]
fn a_file_without_a_name_is_read_from_the_log_as_long_as_it_is_open() {
    let mut scene = Scene::with(Arc::new(MemStore::new()), small());
    let root = scene.root();
    let (_, open) = root.create(b"file", BOTH, 0o644).unwrap();
    open.write_at(&[7; 100_000], 0).unwrap();
    open.sync(false).unwrap();
    root.remove(b"file", false).unwrap();
    for n in 0..8 {
        let (_, other) = root.create(format!("other{n}").as_bytes(), BOTH, 0o644).unwrap();
        other.write_at(&[n; 60_000], 0).unwrap();
        drop(other);
        scene.drain_all();
        let mut found = vec![0; 100_000];
        assert_eq!(open.read_at(&mut found, 0).unwrap(), 100_000);
        assert!(found.iter().all(|byte| *byte == 7));
    }
    drop(open);
    scene.drain_all();
    // All but the record that says so.
    assert_eq!(scene.log.status().drained.0 + 1, scene.store.drainable().0);
    assert_eq!(scene.store.status().logged_bytes, 0);
}

#[test]
fn sizes_and_times_grow_while_a_file_is_written_and_drained() {
    let mut scene = Scene::with(Arc::new(MemStore::new()), small());
    let root = scene.root();
    let (node, open) = root.create(b"file", BOTH, 0o644).unwrap();
    let mut before = node.attributes().unwrap();
    let mut grown = |what: &str, size: u64| {
        let now = at(&root, b"file").unwrap().attributes().unwrap();
        assert_eq!(now.size, size, "{what}");
        assert!(now.mtime >= before.mtime, "{what}");
        assert_eq!(now.qid.path, before.qid.path, "{what}");
        before = now;
    };
    for n in 1..20 {
        open.write_at(&[n as u8; 100], (n - 1) * 100).unwrap();
        grown("written", n * 100);
        if n % 3 == 0 {
            open.sync(false).unwrap();
            grown("synced", n * 100);
        }
        if n % 5 == 0 {
            scene.store.commit_all().unwrap();
            scene.drain.step(&scene.log, &scene.store, &*scene.target, usize::MAX, 0);
            grown("drained", n * 100);
        }
    }
    drop(open);
    let reading = node.open(READ).unwrap();
    let mut all = vec![0; 1900];
    assert_eq!(reading.read_at(&mut all, 0).unwrap(), 1900);
    assert!(all.chunks(100).zip(1..).all(|(piece, n)| piece == [n; 100]));
}
