//! Files that are kept mapped: the same bytes as without, whatever becomes of the file meanwhile.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use sieve::model::MapCost;
use sieve::{Access, FileView, Profile, Tuple, Warmth};
use tempfile::NamedTempFile;
use transfer::{Engine, FileMap, LocalFile, LockKind, Piece, Target};

/// One by which mappings are for nothing, so that they are always taken.
fn eager() -> Engine {
    let map = MapCost { call_ns: 0.0, block_ns: 0.0, page_ns: 0.0, byte_ns: 0.0, fault_ns: 0.0 };
    Engine::by_name("adaptive", Profile { map, ..Profile::default() }).expect("it exists")
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 % 251) as u8 + 1).collect()
}

/// A file on a file system that can be mapped: none where the tests run elsewhere.
fn file_in(directory: &Path, content: &[u8]) -> Option<NamedTempFile> {
    let mut file = NamedTempFile::new_in(directory).ok()?;
    file.write_all(content).expect("room for it");
    // What has no blocks yet looks like a hole.
    file.as_file().sync_all().expect("a device that works");
    let map = FileMap::new();
    let is_mapped =
        LocalFile::new(file.as_fd()).keeping(&map).mapped(0..1, Access::Write).is_some();
    is_mapped.then_some(file)
}

/// On tmpfs, and wherever temporary files are.
fn files(content: &[u8]) -> Vec<NamedTempFile> {
    let directories = [Path::new("/dev/shm"), &std::env::temp_dir()];
    let files: Vec<_> = directories.iter().filter_map(|path| file_in(path, content)).collect();
    assert!(!files.is_empty(), "no directory here is on a file system that can be mapped");
    files
}

fn fresh(file: &File, map: &FileMap, len: u64) -> Option<u64> {
    let target = LocalFile::new(file.as_fd()).keeping(map);
    target.mapped(0..len, Access::Read).map(|mapped| mapped.fresh)
}

#[test]
fn what_goes_through_a_mapping_are_the_same_bytes() {
    let content = bytes(3_000_000);
    let list = (0..5000u64).map(|n| Tuple { size: 1 + n * 37 % 900, hole: n * n % 3000 });
    let views = [
        FileView::strided(5, 8, 24).unwrap(),
        FileView::strided(100, 3000, 9000).unwrap(),
        FileView::strided(0, 100_000, 0).unwrap(),
        FileView::strided(70_000, 200_000, 300_000).unwrap(),
        FileView::from_tuples(3, list).unwrap(),
    ];
    for file in files(&content) {
        let map = FileMap::new();
        let (mut expected, mut touched) = (content.clone(), false);
        for (number, view) in views.iter().enumerate() {
            let mut engine = eager();
            let target = LocalFile::new(file.as_fd()).keeping(&map);
            let mut buffer = vec![0; 65536];
            for (turn, len) in [(0, 40_000), (1, 7), (2, 500_000)] {
                let mut out = vec![0; len];
                let blocks: Vec<_> = view.blocks(0, len as u64).unwrap().collect();
                let places = || blocks.iter().flat_map(|block| block.file..block.file + block.len);
                let there = places().take_while(|place| (*place as usize) < expected.len()).count();
                let done = engine.read(&target, view, &mut buffer, 0, &mut out).unwrap();
                assert_eq!(done, there as u64, "view {number}");
                let out = &out[..there];
                assert!(places().zip(out).all(|(at, byte)| expected[at as usize] == *byte));
                // Within the file: a longer file would be one with gaps.
                let data = vec![100 + 10 * number as u8 + turn; there];
                assert_eq!(engine.write(&target, view, &mut buffer, 0, &data), Ok(there as u64));
                places()
                    .take(there)
                    .zip(&data)
                    .for_each(|(at, byte)| expected[at as usize] = *byte);
            }
            touched |= fresh(file.as_file(), &map, 3_000_000).is_some_and(|fresh| fresh < 46);
        }
        assert!(touched, "nothing went through the mapping");
        let mut now = vec![0; expected.len() + 1];
        assert_eq!(file.as_file().read_at(&mut now, 0).unwrap(), expected.len());
        assert!(now[..expected.len()] == expected, "bytes differ");
    }
}

#[test]
fn a_file_that_shrinks_just_ends() {
    let content = bytes(1_000_000);
    let view = FileView::strided(0, 8, 1000).unwrap();
    for file in files(&content) {
        let (map, mut engine) = (FileMap::new(), eager());
        let target = LocalFile::new(file.as_fd()).keeping(&map);
        let mut out = vec![0; 7000];
        assert_eq!(engine.read(&target, &view, &mut [], 0, &mut out), Ok(7000));
        assert_eq!(fresh(file.as_file(), &map, 500_000), Some(0));
        file.as_file().set_len(100_100).unwrap();
        assert_eq!(engine.read(&target, &view, &mut [], 0, &mut out), Ok(800));
        // As if it had shrunk just now: what the mapping has behind the end is nobody's.
        let pieces = [0, 1008, 99_900].map(|offset| Piece { offset, len: 300 });
        assert!(target.read_mapped(&pieces, &mut out[..900]).is_err());
        assert!(target.write_mapped(&pieces, &vec![0; 900]).is_err());
        // A write makes it longer again, with zeros between.
        assert_eq!(engine.write(&target, &view, &mut [0; 8], 0, &vec![9; 7000]), Ok(7000));
        assert_eq!(file.as_file().metadata().unwrap().len(), 874 * 1008 + 8);
        let mut byte = [1];
        assert_eq!(file.as_file().read_at(&mut byte, 500_000).unwrap(), 1);
        assert_eq!(byte, [0]);
    }
}

#[test]
fn reading_a_file_with_gaps_fills_none_of_them() {
    for file in files(&[1]) {
        file.as_file().set_len(4 << 20).unwrap();
        let before = file.as_file().metadata().unwrap().blocks();
        let (map, mut engine) = (FileMap::new(), eager());
        let target = LocalFile::new(file.as_fd()).keeping(&map);
        let view = FileView::strided(0, 8, 4088).unwrap();
        let mut out = vec![3; 8000];
        assert_eq!(engine.read(&target, &view, &mut [], 0, &mut out), Ok(8000));
        assert!(out[0] == 1 && out[1..].iter().all(|byte| *byte == 0));
        assert_eq!(file.as_file().metadata().unwrap().blocks(), before);
    }
}

#[test]
fn a_write_through_a_mapping_changes_the_time_of_the_file() {
    let view = FileView::strided(0, 8, 1000).unwrap();
    for file in files(&bytes(1_000_000)) {
        let (map, mut engine) = (FileMap::new(), eager());
        let target = LocalFile::new(file.as_fd()).keeping(&map);
        let mut write = || engine.write(&target, &view, &mut [], 0, &[7; 4000]).unwrap();
        assert_eq!(write(), 4000);
        file.as_file().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(write(), 4000);
        assert_eq!(fresh(file.as_file(), &map, 500_000), Some(0), "it was not mapped");
        assert!(file.as_file().metadata().unwrap().mtime() > 0);
    }
}

#[test]
fn a_write_through_a_mapping_waits_for_windows_of_others() {
    for file in files(&bytes(1_000_000)) {
        let other = OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let other = LocalFile::new(other.as_fd());
        other.lock(100_000..200_000, LockKind::Exclusive).unwrap();
        let (done, is_done) = mpsc::channel();
        std::thread::scope(|scope| {
            let file = file.as_file();
            scope.spawn(move || {
                let (map, mut engine) = (FileMap::new(), eager());
                let target = LocalFile::private(file.as_fd()).keeping(&map);
                done.send(engine.write(
                    &target,
                    &FileView::strided(0, 8, 1000).unwrap(),
                    &mut [],
                    0,
                    &[7; 4000],
                ))
                .unwrap();
            });
            assert!(is_done.recv_timeout(Duration::from_millis(50)).is_err(), "it did not wait");
            other.unlock(100_000..200_000);
            assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(Ok(4000)));
        });
    }
}

#[test]
fn descriptors_that_promise_more_than_a_mapping_are_written_by_calls() {
    let content = bytes(100_000);
    for named in files(&content) {
        let open = |options: &mut OpenOptions| options.open(named.path()).unwrap();
        let mut all = OpenOptions::new();
        let synchronous =
            open(all.read(true).write(true).custom_flags(rustix::fs::OFlags::DSYNC.bits() as i32));
        let only_read = open(OpenOptions::new().read(true));
        let only_written = open(OpenOptions::new().write(true));
        let is_mapped = |file: &File, access| {
            let map = FileMap::new();
            LocalFile::new(file.as_fd()).keeping(&map).mapped(0..10, access).is_some()
        };
        assert!(is_mapped(&synchronous, Access::Read) && !is_mapped(&synchronous, Access::Write));
        assert!(is_mapped(&only_read, Access::Read) && !is_mapped(&only_read, Access::Write));
        assert!(!is_mapped(&only_written, Access::Write));
    }
    let device = OpenOptions::new().read(true).write(true).open("/dev/zero").unwrap();
    let map = FileMap::new();
    let target = LocalFile::new(device.as_fd()).keeping(&map);
    assert_eq!(target.mapped(0..10, Access::Read), None);
}

#[test]
fn another_file_behind_the_same_map_is_not_taken_for_the_first() {
    let view = FileView::strided(0, 8, 1000).unwrap();
    let (map, mut engine) = (FileMap::new(), eager());
    for (content, byte) in [(vec![1; 500_000], 1), (vec![2; 500_000], 2)] {
        for file in files(&content) {
            let target = LocalFile::new(file.as_fd()).keeping(&map);
            let mut out = vec![0; 3000];
            assert_eq!(engine.read(&target, &view, &mut [], 0, &mut out), Ok(3000));
            assert!(out.iter().all(|came| *came == byte));
        }
    }
}

#[test]
fn nothing_is_mapped_before_it_pays() {
    for file in files(&bytes(8 << 20)) {
        let map = FileMap::new();
        let target = LocalFile::new(file.as_fd()).keeping(&map);
        assert_eq!(target.warmth(0..8 << 20), Warmth::Warm);
        // A single turn through blocks that are far apart: touching costs more than it saves.
        let view = FileView::strided(0, 8, 100_000).unwrap();
        let mut engine = Engine::adaptive(Profile::default()).unwrap();
        let mut out = [0; 8 * 80];
        let mut turn = || {
            assert_eq!(engine.read(&target, &view, &mut [], 0, &mut out), Ok(640));
            fresh(file.as_file(), &map, 8 << 20).unwrap()
        };
        assert_eq!(turn(), 128);
        let turns = (0..100).take_while(|_| turn() == 128).count();
        assert!((2..60).contains(&turns), "touched after {turns} turns");
    }
}
