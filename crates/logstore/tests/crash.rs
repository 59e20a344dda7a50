//! Crashes and disks that fail: after them each file is as it was at one of its consistency points, and not
//! before the last one that a program was told of.

use std::collections::BTreeMap;
use std::sync::Arc;

use hostlog::media::simulated::{Dice, Syncs};
use p9::Errno;
use store::Store;
use store::mem::MemStore;

mod house;

use house::{BOTH, Scene, at, content_at, small};

const FILES: u64 = 4;

/// What a file was at each of its consistency points, the newest last, and at which was told to be one.
#[derive(Clone, Default)]
struct History {
    points: Vec<Vec<u8>>,
    /// The index of the last point that a program was told of.
    told: usize,
    now: Vec<u8>,
}

fn put(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    bytes.resize(bytes.len().max(offset + data.len()), 0);
    bytes[offset..offset + data.len()].copy_from_slice(data);
}

fn play(seed: u64) {
    let mut dice = Dice::new(seed);
    let target = MemStore::new();
    let mut histories: BTreeMap<String, History> = BTreeMap::new();
    let top = target.root().unwrap();
    for n in 0..FILES {
        let name = format!("file{n}");
        let mut history = History { points: vec![Vec::new()], ..History::default() };
        // Half of them are the target's.
        if n % 2 == 0 {
            let (_, open) = top.create(name.as_bytes(), BOTH, 0o644).unwrap();
            open.write_at(&[0x11; 3000], 0).unwrap();
            history.now = vec![0x11; 3000];
            history.points = vec![history.now.clone()];
        }
        histories.insert(name, history);
    }
    let mut scene = Scene::new(Arc::new(target));
    for _ in 0..3 {
        life(&scene, &mut dice, &mut histories);
        if dice.one_in(2) {
            let (records, ahead) = (dice.below(40) as usize, dice.below(5) as usize);
            if !scene.disk.is_dead() && !scene.log.status().failed {
                scene.drain(records, ahead);
            }
        }
        scene = scene.restart(|disk| {
            disk.set_syncs(Syncs::Work);
            disk.crash();
        });
        let root = scene.root();
        for (name, history) in &mut histories {
            let found = match at(&root, name.as_bytes()) {
                Some(node) => house::content(&node),
                None => Vec::new(),
            };
            let candidates = &history.points[history.told..];
            let is_one = candidates.iter().rposition(|point| *point == found);
            let Some(index) = is_one else {
                panic!(
                    "seed {seed}: {name} has {} bytes and is at none of its {} consistency points \
                     from the last told on",
                    found.len(),
                    candidates.len()
                );
            };
            history.now = candidates[index].clone();
            history.points = vec![history.now.clone()];
            history.told = 0;
        }
    }
}

/// Some programs write and sync until the power fails.
fn life(scene: &Scene, dice: &mut Dice, histories: &mut BTreeMap<String, History>) {
    scene.disk.fail_power_after(dice.below(120));
    for _ in 0..60 {
        let name = format!("file{}", dice.below(FILES));
        let root = scene.root();
        let Ok((_, open)) = root.create(name.as_bytes(), BOTH, 0o644) else { return };
        let history = histories.get_mut(&name).unwrap();
        for _ in 0..dice.below(6) {
            let (offset, len) = (dice.below(5000) as usize, 1 + dice.below(9000) as usize);
            let data = vec![dice.below(255) as u8 + 1; len];
            // What a failed write has left may count with a commit that fails as well.
            if open.write_at(&data, offset as u64).is_err() {
                return;
            }
            put(&mut history.now, offset, &data);
            if dice.one_in(3) {
                history.points.push(history.now.clone());
                if open.sync(false).is_err() {
                    return;
                }
                history.told = history.points.len() - 1;
            }
        }
        // The close commits too, and tells nobody whether it could.
        history.points.push(history.now.clone());
        drop(open);
        if scene.disk.is_dead() || scene.log.status().failed {
            return;
        }
        history.told = history.points.len() - 1;
    }
}

#[test]
fn after_a_crash_each_file_is_at_a_consistency_point() {
    for seed in 0..400 {
        play(seed);
    }
}

#[test]
fn once_a_sync_has_failed_every_write_and_commit_does() {
    let scene = Scene::new(Arc::new(MemStore::new()));
    let root = scene.root();
    let (node, open) = root.create(b"file", BOTH, 0o644).unwrap();
    open.write_at(b"before", 0).unwrap();
    open.sync(false).unwrap();
    scene.disk.set_syncs(Syncs::FailOnce);
    open.write_at(b"lost", 0).unwrap();
    let errno = |result: store::Result<()>| result.unwrap_err().to_errno();
    assert_eq!(errno(open.sync(false)), Errno::EIO);
    for _ in 0..3 {
        assert_eq!(errno(open.sync(true)), Errno::EIO);
        assert_eq!(errno(open.write_at(b"x", 0).map(drop)), Errno::EIO);
        assert_eq!(errno(root.create(b"other", BOTH, 0o644).map(drop)), Errno::EIO);
        assert_eq!(errno(root.remove(b"file", false)), Errno::EIO);
        assert!(scene.store.commit_all().is_err());
    }
    assert!(scene.store.status().failed);
    // What was read before can be read still.
    assert_eq!(house::content(&node), b"lostre");
    drop((root, node, open));
    let scene = scene.restart(|disk| disk.crash());
    assert_eq!(content_at(&scene.root(), "file"), b"before");
}

#[test]
fn what_was_open_at_a_restart_is_the_same_file_afterwards() {
    let target = MemStore::new();
    target.root().unwrap().create(b"old", BOTH, 0o644).unwrap();
    let mut scene = Scene::with(Arc::new(target), small());
    let root = scene.root();
    root.make_directory(b"dir", 0o755).unwrap();
    let paths = ["old", "new", "dir/drained", "dir", "dir/later"];
    for path in ["new", "dir/drained", "old"] {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = at(&root, dir.as_bytes()).unwrap();
        dir.create(name.as_bytes(), BOTH, 0o644).unwrap().1.write_at(b"x", 0).unwrap();
    }
    let held = at(&root, b"dir/drained").unwrap();
    scene.store.commit_all().unwrap();
    scene.drain_all();
    let dir = at(&root, b"dir").unwrap();
    let later = dir.create(b"later", BOTH, 0o644).unwrap();
    let numbers = |scene: &Scene| {
        let root = scene.root();
        paths.map(|path| {
            let node = at(&root, path.as_bytes()).unwrap();
            assert_eq!(node.attributes().unwrap().qid.path, node.qid().path);
            node.qid().path
        })
    };
    let (new, before) = (at(&root, b"new").unwrap(), numbers(&scene));
    scene.store.commit_all().unwrap();
    scene.drain(1, 0);
    drop((root, held, new, dir, later));
    let mut scene = scene.restart(|disk| disk.kill());
    assert_eq!(numbers(&scene), before);
    scene.drain_all();
    assert_eq!(numbers(&scene), before);
    let scene = scene.restart(|disk| disk.kill());
    assert_eq!(numbers(&scene), before);
    let other = scene.root().create(b"other", BOTH, 0o644).unwrap().0.qid().path;
    assert!(!before.contains(&other));
}

/// Between exec(2) and its first moments a program has nothing open that it was given.
#[test]
fn what_was_closed_a_moment_ago_is_still_the_same_file() {
    let mut scene = Scene::new(Arc::new(MemStore::new()));
    let number = |scene: &Scene| at(&scene.root(), b"file").unwrap().qid().path;
    scene.root().create(b"file", BOTH, 0o644).unwrap().1.write_at(b"x", 0).unwrap();
    let before = number(&scene);
    scene.drain_all();
    assert_eq!(number(&scene), before);
    // What has no name any more is not kept.
    scene.root().remove(b"file", false).unwrap();
    scene.store.commit_all().unwrap();
    scene.drain_all();
    assert_eq!(scene.store.status().files, 0);
}
