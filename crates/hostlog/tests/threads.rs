//! Several threads at once: writers that commit, somebody who prepares segments, somebody who drains.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hostlog::media::Media;
use hostlog::media::directory::Directory;
use hostlog::media::simulated::{Dice, SimulatedDisk};
use hostlog::{Description, Error, FileId, Log, Options, What, Write};

const WRITERS: u64 = 4;

fn options() -> Options {
    Options { segment_bytes: 32 << 10, size_max_bytes: 512 << 10, ready_segments: 2 }
}

fn bytes(file: u64, count: u64, len: usize) -> Vec<u8> {
    let mut dice = Dice::new(file << 32 | count);
    (0..len).map(|_| dice.roll() as u8).collect()
}

/// Writes and commits until the log fails. Returns how many writes the last commit covered that returned,
/// and how many one in flight may have.
fn writer(log: &Log, file: u64, rounds: u64, seed: u64) -> (u64, u64) {
    let mut dice = Dice::new(seed);
    let (mut committed, mut count) = (0, 0);
    for _ in 0..rounds {
        for _ in 0..1 + dice.below(4) {
            let bytes = bytes(file, count, 1 + dice.below(3000) as usize);
            let write = Write {
                stream: file as u32,
                file: FileId(file),
                member: None,
                offset: count,
                bytes: &bytes,
            };
            match log.write(&write) {
                Ok(placements) if placements.len() == bytes.len() as u64 => count += 1,
                _ => return (committed, count),
            }
        }
        if log.commit(file as u32, FileId(file)).is_err() {
            return (committed, count);
        }
        committed = count;
    }
    (committed, count)
}

/// The offsets, which count the writes, of each file's records, their bytes looked at.
fn replayed(log: &Log) -> BTreeMap<u64, Vec<u64>> {
    let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for record in log.replay() {
        let record = record.expect("a record");
        let What::Data { offset, len, at } = record.what else {
            panic!("nobody wrote {record:?}");
        };
        let mut there = vec![0; len as usize];
        log.read(at, &mut there).expect("its bytes");
        assert!(there == bytes(record.file.0, offset, there.len()), "{record:?}");
        found.entry(record.file.0).or_default().push(offset);
    }
    found
}

#[test]
fn when_the_power_fails_every_writer_finds_what_it_committed() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let disk = SimulatedDisk::new(dice.roll());
        let media: Arc<dyn Media> = Arc::new(disk.clone());
        let log = Log::create(media.clone(), &Description::default(), options()).expect("a log");
        disk.fail_power_after(20 + dice.below(300));
        let log = &log;
        let ended: Vec<(u64, u64)> = std::thread::scope(|scope| {
            let writers: Vec<_> = (1..=WRITERS)
                .map(|file| {
                    let seed = dice.roll();
                    scope.spawn(move || writer(log, file, 12, seed))
                })
                .collect();
            scope.spawn(|| while matches!(log.prepare_ahead(), Ok(true)) {});
            let moment = std::time::Duration::from_micros(200);
            scope.spawn(move || (0..100).all(|_| log.sync_ahead(3000, moment).is_ok()));
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
        });
        disk.crash();
        let (log, _) = Log::open(media, options()).expect("open");
        let found = replayed(&log);
        for (file, (committed, written)) in (1..).zip(ended) {
            let found = found.get(&file).cloned().unwrap_or_default();
            let len = found.len() as u64;
            assert_eq!(found, (0..len).collect::<Vec<u64>>(), "seed {seed}, file {file}");
            assert!(
                len == committed || len == written,
                "seed {seed}, file {file}: {len} records instead of {committed} or {written}"
            );
        }
    }
}

#[test]
fn writers_wait_for_the_drain_and_syncs_are_shared() {
    let directory = tempfile::tempdir().expect("a directory");
    let media = Arc::new(Directory::new(directory.path()));
    let log = Log::create(media, &Description::default(), options()).expect("a log");
    let done = AtomicBool::new(false);
    let (waited, drained) = (AtomicU64::new(0), AtomicU64::new(0));
    let minute = std::time::Duration::from_secs(60);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (1..=WRITERS)
            .map(|file| {
                let (log, waited) = (&log, &waited);
                scope.spawn(move || {
                    for count in 0..150 {
                        let bytes = bytes(file, count, 5000);
                        let mut done = 0;
                        while done < bytes.len() {
                            let write = Write {
                                stream: 1,
                                file: FileId(file),
                                member: None,
                                offset: done as u64,
                                bytes: &bytes[done..],
                            };
                            match log.write(&write) {
                                Ok(placements) => done += placements.len() as usize,
                                Err(Error::Full { .. }) => {
                                    waited.fetch_add(1, Ordering::Relaxed);
                                    assert!(log.wait_for_space(minute), "nothing was drained");
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                        log.commit(1, FileId(file)).expect("a commit");
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let pause = || std::thread::sleep(std::time::Duration::from_millis(1));
            let mut seen = 0;
            while !done.load(Ordering::Acquire) {
                // Only when somebody waits: so somebody does.
                let now = waited.load(Ordering::Relaxed);
                if now == seen {
                    pause();
                    continue;
                }
                seen = now;
                // Whoever wrote something and has not committed it must not lose it.
                let mut last = None;
                let mut replay = log.replay();
                while let Some(record) = replay.next() {
                    if replay.skipped() > 0 {
                        break;
                    }
                    last = Some(record.expect("a record").sequence);
                }
                if let Some(last) = last {
                    drained.fetch_add(1, Ordering::Relaxed);
                    log.drained(last, b"").expect("drained");
                }
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                log.prepare_ahead().expect("no failure");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        for writer in writers {
            writer.join().expect("a writer");
        }
        done.store(true, Ordering::Release);
    });
    // Three megabytes went through half a megabyte.
    let status = log.status();
    assert!(status.segment_files * status.segment_bytes <= (512 << 10) + 2 * status.segment_bytes);
    assert!(waited.load(Ordering::Relaxed) > 0 && drained.load(Ordering::Relaxed) > 0);
}

#[test]
fn what_is_written_is_synced_ahead_of_commits_and_counts_only_with_them() {
    let disk = SimulatedDisk::new(7);
    let media: Arc<dyn Media> = Arc::new(disk.clone());
    let log = Log::create(media.clone(), &Description::default(), options()).expect("a log");
    let told = Arc::new(AtomicU64::new(0));
    let watcher = Arc::clone(&told);
    log.watch(move || {
        watcher.fetch_add(1, Ordering::Relaxed);
    });
    let put = |file, count: u64| {
        for n in 0..count {
            let bytes = bytes(file, n * 5000, 5000);
            let write = Write {
                stream: 1,
                file: FileId(file),
                member: None,
                offset: n * 5000,
                bytes: &bytes,
            };
            log.write(&write).expect("space");
        }
        log.status().last
    };
    let minute = std::time::Duration::from_secs(60);
    let first = put(1, 3);
    log.sync_ahead(15_001, std::time::Duration::ZERO).expect("too little");
    assert!(log.status().durable < first);
    log.sync_ahead(15_000, minute).expect("no failure");
    assert_eq!(log.status().durable, first);
    // Somebody waits, and is woken by the write that makes it enough.
    let second = std::thread::scope(|scope| {
        let ahead = scope.spawn(|| log.sync_ahead(20_000, minute));
        let second = put(2, 4);
        ahead.join().expect("no panic").expect("no failure");
        second
    });
    assert_eq!(log.status().durable, second);
    assert_eq!(told.load(Ordering::Relaxed), 0, "nothing was committed");
    log.commit(1, FileId(2)).expect("no failure");
    assert_eq!(told.load(Ordering::Relaxed), 0, "35,000 bytes are not much");
    disk.crash();
    let (log, _) = Log::open(media, options()).expect("open");
    let found = replayed(&log);
    assert_eq!(found.keys().copied().collect::<Vec<u64>>(), [2], "the first was not committed");
}

#[test]
fn the_drain_is_told_when_much_counts() {
    let media: Arc<dyn Media> = Arc::new(SimulatedDisk::new(8));
    let options = Options { segment_bytes: 1 << 20, size_max_bytes: 16 << 20, ready_segments: 2 };
    let log = Log::create(media, &Description::default(), options).expect("a log");
    let told = Arc::new(AtomicU64::new(0));
    let watcher = Arc::clone(&told);
    log.watch(move || {
        watcher.fetch_add(1, Ordering::Relaxed);
    });
    for (len, times) in [(600 << 10, 0), (600 << 10, 1), (1000, 1)] {
        let bytes = vec![1; len];
        let write = Write { stream: 1, file: FileId(1), member: None, offset: 0, bytes: &bytes };
        log.write(&write).expect("space");
        log.commit(1, FileId(1)).expect("no failure");
        assert_eq!(told.load(Ordering::Relaxed), times);
    }
}
