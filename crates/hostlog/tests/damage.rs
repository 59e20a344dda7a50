//! Disks that fail, fill up or decay: what was committed is there, or the log says that it is not.

use std::sync::Arc;

use hostlog::media::simulated::{Dice, SimulatedDisk, Syncs};
use hostlog::{
    Change, Description, Error, FileId, Log, Operation, Options, Replayed, Sequence, What, Write,
    verify,
};
use rustix::io::Errno;

const FILE: FileId = FileId(3);
const SEGMENT_BYTES: u64 = 16 << 10;

fn options() -> Options {
    Options { segment_bytes: SEGMENT_BYTES, size_max_bytes: 8 * SEGMENT_BYTES, ready_segments: 1 }
}

fn create(disk: &SimulatedDisk) -> Log {
    let description = Description { target: "target".into(), run: "run".into(), created: 5 };
    Log::create(Arc::new(disk.clone()), &description, options()).expect("a new log")
}

fn open(disk: &SimulatedDisk) -> hostlog::Result<Log> {
    Log::open(Arc::new(disk.clone()), options()).map(|(log, _)| log)
}

fn write(log: &Log, offset: u64, len: usize) -> hostlog::Result<()> {
    let bytes: Vec<u8> = (0..len).map(|i| (i as u64 * 3 + offset) as u8).collect();
    let write = Write { stream: 1, file: FILE, member: None, offset, bytes: &bytes };
    log.write(&write).map(drop)
}

/// What a log says, with the bytes.
fn told(log: &Log) -> hostlog::Result<Vec<(Replayed, Vec<u8>)>> {
    log.replay()
        .map(|record| {
            let record = record?;
            let mut bytes = Vec::new();
            if let What::Data { len, at, .. } = record.what {
                bytes.resize(len as usize, 0);
                log.read(at, &mut bytes)?;
            }
            Ok((record, bytes))
        })
        .collect()
}

/// A log over several segments, with commits in between, the last of which covers everything.
fn filled(disk: &SimulatedDisk) -> Log {
    let log = create(disk);
    for i in 0..30 {
        let change = Change { stream: 1, file: FILE, member: None, namespace: true };
        let mkdir = Operation::Mkdir { path: format!("d{i}").into_bytes(), mode: 0o755 };
        log.change(&change, &mkdir).expect("a change");
        write(&log, i * 1000, 700 + 37 * i as usize).expect("a write");
        if i % 4 == 0 {
            log.commit(1, FILE).expect("a commit");
        }
    }
    log.commit(1, FILE).expect("a commit");
    log
}

#[test]
fn a_flipped_bit_of_committed_data_is_noticed_or_harmless() {
    let disk = SimulatedDisk::new(1);
    let log = filled(&disk);
    let expected = told(&log).expect("replay");
    drop(log);
    disk.kill();
    let mut dice = Dice::new(7);
    let (mut noticed, mut harmless) = (0, 0);
    for (name, size) in disk.files() {
        for _ in 0..300 {
            let flipped = disk.copy(dice.roll());
            // Mostly where something stands.
            let byte = if dice.one_in(2) { dice.below(size.min(5000)) } else { dice.below(size) };
            assert!(flipped.flip(&name, byte, dice.below(8) as u32));
            let verified = verify(&flipped);
            match open(&flipped).and_then(|log| told(&log)) {
                Ok(found) => {
                    assert!(found == expected, "{name}: byte {byte} changes what is replayed");
                    harmless += 1;
                }
                Err(_) => {
                    let damage = verified.map(|verified| verified.damage.is_some());
                    assert!(damage.unwrap_or(true), "{name}: verify does not see byte {byte}");
                    noticed += 1;
                }
            }
        }
    }
    assert!(noticed > 500 && harmless > 100, "{noticed} noticed, {harmless} harmless");
}

#[test]
fn a_flipped_bit_says_where_it_is() {
    let disk = SimulatedDisk::new(1);
    let log = filled(&disk);
    let records = told(&log).expect("replay");
    drop(log);
    disk.kill();
    let What::Data { at, .. } = records[3].0.what else {
        panic!("{:?}", records[3].0);
    };
    disk.flip("segments/00000000.seg", u64::from(at.offset) + 11, 2);
    let error = open(&disk).err().expect("an error");
    let Error::Corrupt { last, durable, segment, offset, found, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(last.0 + 1, records[3].0.sequence.0);
    assert!(durable.0 > 60);
    assert_eq!(*offset, u64::from(at.offset) - 64);
    assert_eq!((segment.as_str(), found.contains("payload")), ("segments/00000000.seg", true));
    assert_eq!(error.to_errno(), Errno::IO);
    let verified = verify(&disk).expect("verify");
    assert!(verified.damage.is_some());
    // What stands in the other segments is whole, and said to be.
    let behind: Vec<_> = verified.segments.iter().map(|segment| segment.behind).collect();
    assert_eq!(behind.iter().filter(|what| what.contains("payload")).count(), 1, "{behind:?}");
}

#[test]
fn what_a_crash_tore_is_dropped_and_told() {
    let disk = SimulatedDisk::new(1);
    let log = filled(&disk);
    let expected = told(&log).expect("replay");
    write(&log, 0, 500).expect("a write");
    write(&log, 1000, 500).expect("a write");
    drop(log);
    disk.kill();
    let status = verify(&disk).expect("verify");
    assert!(status.torn.is_none() && status.damage.is_none());
    // The first of the two did not reach the disk as a whole, the second did.
    let (name, used) = status
        .segments
        .iter()
        .filter(|segment| segment.live)
        .max_by_key(|segment| segment.last)
        .map(|segment| (segment.name.clone(), segment.used_bytes))
        .expect("a segment");
    disk.flip(&name, used - 2 * 576 - 64 + 100, 1);
    let (log, recovery) = Log::open(Arc::new(disk), options()).expect("open");
    assert_eq!(recovery.dropped_records, 1, "{recovery:?}");
    assert!(recovery.torn.as_ref().is_some_and(|torn| torn.contains(&name)), "{recovery:?}");
    assert!(told(&log).expect("replay") == expected);
}

#[test]
fn records_of_an_earlier_use_of_a_segment_are_not_taken_for_new_ones() {
    let disk = SimulatedDisk::new(1);
    let mut log = create(&disk);
    // Every life writes records of the same sizes to the same places of the same few segments.
    for life in 0..40 {
        for i in 0..8 {
            write(&log, life * 1000 + i, 3000).expect("a write");
        }
        let commit = log.commit(1, FILE).expect("a commit");
        let found = told(&log).expect("replay");
        assert_eq!(found.len(), 8, "life {life}");
        log.drained(commit, b"").expect("drained");
        write(&log, 0, 3000).expect("a write");
        drop(log);
        disk.kill();
        log = open(&disk).expect("open");
        assert!(told(&log).expect("replay").is_empty(), "life {life}");
    }
    assert!(log.status().segment_files <= 9);
}

/// A log whose first segment held these bytes of a file and is being used a second time, after a crash. Says which use
/// that is, and what counts.
fn used_again(bytes: &[u8]) -> (SimulatedDisk, u32, Vec<(Replayed, Vec<u8>)>) {
    let disk = SimulatedDisk::new(1);
    let log = create(&disk);
    log.write(&Write { stream: 1, file: FILE, member: None, offset: 0, bytes }).expect("a write");
    write(&log, 0, 10_000).expect("a write");
    let commit = log.commit(1, FILE).expect("a commit");
    log.drained(commit, b"").expect("drained");
    write(&log, 5, 5000).expect("a write");
    let first = |disk| verify(disk).expect("verify").segments.remove(0);
    while first(&disk).number == Some(1) || first(&disk).records == 0 {
        write(&log, 7, 2000).expect("a write");
    }
    log.commit(1, FILE).expect("a commit");
    let expected = told(&log).expect("replay");
    drop(log);
    disk.kill();
    disk.crash();
    let number = first(&disk).number.expect("a use");
    (disk, number, expected)
}

#[test]
fn the_image_of_a_log_that_a_program_wrote_is_not_taken_for_records() {
    let other = SimulatedDisk::new(2);
    let log = filled(&other);
    while write(&log, 0, 700).is_ok() {}
    log.commit(1, FILE).expect("a commit");
    let (_, number, _) = used_again(&[0; 10_000]);
    let found = verify(&other).expect("verify").segments;
    let found = found.iter().find(|segment| segment.number == Some(number)).expect("that use");
    let image = other.content(&found.name).expect("a segment")[4096..].to_vec();
    let (disk, again, expected) = used_again(&image[..10_000]);
    assert_eq!(again, number);
    // Behind the log's end lie whole records of that number, which say that more had been durable.
    let verified = verify(&disk).expect("verify");
    assert!(verified.damage.is_none() && verified.dropped_records == 0, "{verified:?}");
    assert!(told(&open(&disk).expect("open")).expect("replay") == expected);
}

#[test]
fn numbers_that_no_log_reaches_are_refused_before_anything_is_written() {
    let disk = SimulatedDisk::new(1);
    drop(filled(&disk));
    disk.kill();
    let checkpoint = disk.content("checkpoint").expect("the checkpoint");
    // The generation, and the sequence up to which all were used.
    for at in [16, 40] {
        let mut forged = checkpoint.clone();
        for slot in [0, 4096, 8192, 12288] {
            forged[slot + at..slot + at + 8].copy_from_slice(&(1u64 << 63).to_le_bytes());
            let crc = crc32c::crc32c(&forged[slot..slot + 92]);
            forged[slot + 92..slot + 96].copy_from_slice(&crc.to_le_bytes());
        }
        disk.set_content("checkpoint", forged.clone());
        let error = open(&disk).err().expect("refused");
        assert_eq!(error.to_errno(), Errno::IO, "{error}");
        assert!(disk.content("checkpoint") == Some(forged));
    }
    disk.set_content("checkpoint", checkpoint);
    open(&disk).expect("open");
}

#[test]
fn after_one_failed_sync_nothing_is_ever_committed_again() {
    for syncs in [Syncs::FailOnce, Syncs::Fail] {
        let disk = SimulatedDisk::new(1);
        let log = filled(&disk);
        let expected = told(&log).expect("replay");
        write(&log, 0, 100).expect("a write");
        disk.set_syncs(syncs);
        for _ in 0..3 {
            let error = log.commit(1, FILE).expect_err("the sync fails");
            assert!(matches!(error, Error::Failed { .. }), "{error}");
            assert_eq!(error.to_errno(), Errno::IO);
        }
        assert!(matches!(write(&log, 0, 1), Err(Error::Failed { .. })));
        assert!(matches!(log.sync(), Err(Error::Failed { .. })));
        assert!(matches!(log.prepare_ahead(), Err(Error::Failed { .. })));
        assert!(matches!(log.drained(Sequence(9), b""), Err(Error::Failed { .. })));
        assert!(log.status().failed && log.wait_for_space(std::time::Duration::ZERO));
        // What was committed can still be read.
        assert!(told(&log).expect("replay") == expected);
        assert!(log.close().is_err());
        disk.set_syncs(Syncs::Work);
        disk.crash();
        let found = told(&open(&disk).expect("open")).expect("replay");
        assert!(found == expected || found.len() == expected.len() + 1);
    }
}

#[test]
fn a_full_disk_is_told_and_can_be_got_over() {
    let disk = SimulatedDisk::new(1);
    disk.set_capacity(16384 + 200 + 2 * SEGMENT_BYTES + 5000);
    let log = create(&disk);
    let error = loop {
        match write(&log, 0, 2000) {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { disk_full: true, .. }), "{error}");
    assert!(error.is_retryable() && error.to_errno() == Errno::NOSPC);
    assert!(!log.wait_for_space(std::time::Duration::ZERO));
    // Nothing remains of the segment that did not fit.
    assert_eq!(log.status().segment_files, 2);
    assert_eq!(disk.files().iter().filter(|(name, _)| name.ends_with(".seg")).count(), 2);
    assert!(!log.prepare_ahead().expect("no failure"));
    // What is needed to get on has its place.
    for _ in 0..50 {
        log.commit(1, FILE).expect("a commit");
    }
    let commit = log.commit(1, FILE).expect("a commit");
    log.drained(commit, b"").expect("drained");
    assert!(log.wait_for_space(std::time::Duration::ZERO));
    write(&log, 0, 2000).expect("a write");
    log.commit(1, FILE).expect("a commit");
    assert!(!log.status().failed);
}

#[test]
fn data_never_take_the_room_that_a_full_disk_leaves_for_the_mark_of_the_drain() {
    let disk = SimulatedDisk::new(1);
    disk.set_capacity(16384 + 200 + 3 * SEGMENT_BYTES + 5000);
    let log = create(&disk);
    while write(&log, 0, 2000).is_ok() {}
    // The one that was kept comes into use.
    let before = log.status().live_segments;
    while log.status().live_segments == before {
        log.commit(1, FILE).expect("a commit");
    }
    for _ in 0..5 {
        while write(&log, 0, 100).is_ok() {}
        let commit = log.commit(1, FILE).expect("a commit");
        log.drained(commit, &[0; 1000]).expect("a mark");
        write(&log, 0, 100).expect("there is space");
    }
}

#[test]
fn a_disk_that_has_space_again_is_written_to_without_a_drain() {
    let disk = SimulatedDisk::new(1);
    disk.set_capacity(16384 + 200 + 2 * SEGMENT_BYTES + 5000);
    let log = create(&disk);
    while write(&log, 0, 2000).is_ok() {}
    assert!(log.status().disk_full);
    disk.set_capacity(1 << 40);
    // It is looked at only now and then.
    let written = (0..100).any(|_| {
        log.wait_for_space(std::time::Duration::from_millis(50));
        write(&log, 0, 2000).is_ok()
    });
    assert!(written && !log.status().disk_full);
}

#[test]
fn a_disk_that_became_read_only_is_a_failure() {
    let disk = SimulatedDisk::new(1);
    let log = filled(&disk);
    let expected = told(&log).expect("replay");
    disk.set_read_only(true);
    let error = write(&log, 0, 100).expect_err("read-only");
    assert!(matches!(error, Error::Failed { .. }), "{error}");
    assert!(told(&log).expect("replay") == expected);
    drop(log);
    disk.kill();
    // It cannot be opened, but looked at.
    assert_eq!(open(&disk).err().expect("read-only").to_errno(), Errno::ROFS);
    assert!(verify(&disk).expect("verify").damage.is_none());
    disk.set_read_only(false);
    assert!(told(&open(&disk).expect("open")).expect("replay") == expected);
}

#[test]
fn another_version_is_refused_with_advice() {
    let disk = SimulatedDisk::new(1);
    drop(filled(&disk));
    disk.kill();
    let manifest = String::from_utf8(disk.content("log.toml").expect("log.toml")).expect("text");
    for found in [0, 1, 77] {
        let other = manifest.replace("format = 3", &format!("format = {found}"));
        disk.set_content("log.toml", format!("{other}later = true\n").into_bytes());
        let error = open(&disk).err().expect("refused");
        assert!(matches!(error, Error::Version { found: told, .. } if told == found), "{error}");
        assert!(error.to_string().contains("drain it with the version that wrote it"));
        assert!(matches!(verify(&disk), Err(Error::Version { .. })));
        let again = Log::create(Arc::new(disk.clone()), &Description::default(), options());
        assert!(matches!(again, Err(Error::Exists { .. })));
    }
    disk.set_content("log.toml", manifest.into_bytes());
    open(&disk).expect("open");
}

#[test]
fn every_error_has_its_number_and_says_its_cause_once() {
    let disk = SimulatedDisk::new(1);
    assert_eq!(open(&disk).err().expect("no log").to_errno(), Errno::NOENT);
    let log = create(&disk);
    assert_eq!(open(&disk).err().expect("locked").to_errno(), Errno::BUSY);
    drop(log);
    let again = Log::create(Arc::new(disk.clone()), &Description::default(), options());
    assert_eq!(again.err().expect("a log").to_errno(), Errno::EXIST);
    let log = open(&disk).expect("open");
    let long = Operation::Note { tag: 1, bytes: vec![0; SEGMENT_BYTES as usize] };
    let change = Change { stream: 1, file: FILE, member: None, namespace: false };
    assert_eq!(log.change(&change, &long).expect_err("too long").to_errno(), Errno::FBIG);
    let drained = log.drained(Sequence(1000), b"").expect_err("not durable");
    assert_eq!(drained.to_errno(), Errno::INVAL);
    disk.set_syncs(Syncs::Fail);
    let error = log.commit(1, FILE).expect_err("failed");
    let mut causes = vec![error.to_string()];
    let mut cause = std::error::Error::source(&error);
    while let Some(here) = cause {
        causes.push(here.to_string());
        cause = here.source();
    }
    assert_eq!(causes.len(), 3, "{causes:?}");
    assert!(!causes[0].contains(&causes[1]) && !causes[1].contains(&causes[2]), "{causes:?}");
    let small = Options { segment_bytes: 5000, ..Options::default() };
    let refused = Log::create(Arc::new(SimulatedDisk::new(2)), &Description::default(), small);
    assert_eq!(refused.err().expect("refused").to_errno(), Errno::INVAL);
}
