//! A log that is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use epochs::{Group, NOTICE, Notice};
use p9::Errno;
use store::Store;
use store::mem::MemStore;

mod house;

use house::{BOTH, Scene, content_at};

fn tiny() -> hostlog::Options {
    hostlog::Options { segment_bytes: 64 << 10, size_max_bytes: 512 << 10, ready_segments: 1 }
}

const PIECE: usize = 50_000;

/// Sixty pieces: six times what the log has room for.
fn write_all(scene: &Scene) {
    let root = scene.root();
    let (_, open) = root.create(b"file", BOTH, 0o644).unwrap();
    for n in 0..60_u8 {
        let data = vec![n + 1; PIECE];
        assert_eq!(open.write_at(&data, u64::from(n) * PIECE as u64).unwrap(), PIECE);
        if n % 7 == 0 {
            root.create(format!("other{n}").as_bytes(), BOTH, 0o644).unwrap();
        }
    }
}

#[test]
fn writers_wait_for_the_drain_and_lose_nothing() {
    let mut scene = Scene::with(Arc::new(MemStore::new()), tiny());
    assert!(scene.root().blocks() && scene.store.blocks());
    let is_done = AtomicBool::new(false);
    let mut drain = std::mem::take(&mut scene.drain);
    let mut waited = false;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            write_all(&scene);
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) && !writer.is_finished() {
            // Only when somebody waits: everybody must have been waiting for this.
            if scene.store.status().waiting > 0 {
                waited = true;
                drain.step(&scene.log, &scene.store, &*scene.target, usize::MAX, 0);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        writer.join().unwrap();
    });
    assert!(waited, "the log was never full");
    let whole: Vec<u8> = (0..60_u8).flat_map(|n| vec![n + 1; PIECE]).collect();
    assert!(content_at(&scene.root(), "file") == whole);
    scene.store.commit_all().unwrap();
    drain.step(&scene.log, &scene.store, &*scene.target, usize::MAX, 0);
    assert!(content_at(&scene.target.root().unwrap(), "file") == whole);
    assert!(scene.log.status().segment_files <= 9);
}

#[test]
fn for_space_no_file_is_committed_that_does_not_hold_back_the_oldest_of_it() {
    let mut scene = Scene::with(Arc::new(MemStore::new()), tiny());
    let root = scene.root();
    let (_, large) = root.create(b"large", BOTH, 0o644).unwrap();
    // It is in the log first of all, so that there is no space without it.
    let (_, early) = root.create(b"early", BOTH, 0o644).unwrap();
    early.write_at(b"early", 0).unwrap();
    let mut late = None;
    let mut drain = std::mem::take(&mut scene.drain);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..15_u64 {
                if n == 11 {
                    let (_, open) = root.create(b"late", BOTH, 0o644).unwrap();
                    open.write_at(b"late", 0).unwrap();
                    late = Some(open);
                }
                large.write_at(&[7; PIECE], n * PIECE as u64).unwrap();
                large.sync(false).unwrap();
            }
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) && !writer.is_finished() {
            if scene.store.status().waiting > 0 {
                drain.step(&scene.log, &scene.store, &*scene.target, usize::MAX, 0);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        writer.join().unwrap();
    });
    assert_eq!(scene.store.status().uncommitted_bytes, 4, "of `late` alone");
    drop((late, early));
}

#[test]
fn where_all_of_it_waits_for_ranks_a_full_log_is_said_to_be() {
    let mut scene = Scene::with(Arc::new(MemStore::new()), tiny());
    let root = scene.root();
    let (node, open) = root.create(b"file", BOTH, 0o644).unwrap();
    let join = Notice::Join { group: Group(1), rank: 0, ranks: 1 };
    node.set_xattr(NOTICE, join.to_string().as_bytes(), 0).unwrap();
    scene.drain_all();
    let mut drain = std::mem::take(&mut scene.drain);
    let is_done = AtomicBool::new(false);
    let mut written = 0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0_u64;
            let refused = loop {
                match open.write_at(&[7; PIECE], written) {
                    Ok(len) => written += len as u64,
                    Err(error) => break error.to_errno(),
                }
            };
            is_done.store(true, Ordering::Release);
            (written, refused)
        });
        while !is_done.load(Ordering::Acquire) && !writer.is_finished() {
            drain.step(&scene.log, &scene.store, &*scene.target, usize::MAX, 0);
            std::thread::sleep(Duration::from_millis(20));
        }
        let (bytes, refused) = writer.join().unwrap();
        assert_eq!(refused, Errno::ENOSPC);
        written = bytes;
    });
    assert!(written > 200_000);
    // A commit has its place all the same, and then there is space again.
    let prepare = Notice::Prepare { group: Group(1), rank: 0, epoch: epochs::Epoch(1) };
    node.set_xattr(NOTICE, prepare.to_string().as_bytes(), 0).unwrap();
    drain.step(&scene.log, &scene.store, &*scene.target, usize::MAX, 0);
    assert_eq!(open.write_at(b"more", written).unwrap(), 4);
    let found = content_at(&scene.target.root().unwrap(), "file");
    assert!(found.len() as u64 == written && found.iter().all(|byte| *byte == 7));
}
