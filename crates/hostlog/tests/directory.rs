//! The log in a directory of a real file system.

use std::io::IoSlice;
use std::sync::Arc;

use hostlog::media::Media;
use hostlog::media::directory::Directory;
use hostlog::{
    Change, Description, Error, FileId, Log, Operation, Options, Placed, Replayed, What, Write,
    verify,
};

const FILE: FileId = FileId(7);

fn options() -> Options {
    Options { segment_bytes: 64 << 10, size_max_bytes: 1 << 20, ready_segments: 1 }
}

fn description() -> Description {
    Description { target: "/target \"of\"\n it".into(), run: "run 1".into(), created: 0 }
}

fn write(log: &Log, offset: u64, bytes: &[u8]) -> Vec<Placed> {
    let write = Write { stream: 1, file: FILE, member: None, offset, bytes };
    log.write(&write).expect("write").iter().copied().collect()
}

fn replayed(log: &Log) -> Vec<Replayed> {
    log.replay().collect::<hostlog::Result<_>>().expect("replay")
}

fn create(log: &Log, path: &[u8]) {
    let change = Change { stream: 1, file: FILE, member: None, namespace: true };
    log.change(&change, &Operation::Create { path: path.into(), mode: 0o644 }).expect("create");
}

#[test]
fn what_is_committed_is_there_when_the_log_is_opened_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let media = Arc::new(Directory::new(directory.path().join("log")));
    let log = Log::create(media.clone(), &description(), options()).expect("a new log");
    assert!(log.prepare_ahead().expect("prepare"));
    create(&log, b"a/b");
    let placed = write(&log, 100, b"hello");
    let mut bytes = [0; 3];
    log.read(placed[0].at.advanced(1), &mut bytes).expect("read");
    assert_eq!(&bytes, b"ell");
    log.commit(1, FILE).expect("commit");
    write(&log, 200, b"never committed");
    assert!(matches!(Log::open(media.clone(), options()), Err(Error::Busy { .. })));
    // As a crash of the process would.
    drop(log);
    let (log, recovery) = Log::open(media.clone(), options()).expect("open");
    assert!(!recovery.closed);
    assert_eq!(recovery.last_file, FILE);
    assert_eq!(log.description().target, description().target);
    let mut replay = log.replay();
    let records: Vec<Replayed> = replay.by_ref().map(|r| r.expect("a record")).collect();
    assert_eq!(replay.skipped(), 1);
    assert_eq!(records.len(), 2);
    let What::Data { offset: 100, len: 5, at } = records[1].what else {
        panic!("{records:?}");
    };
    let mut bytes = [0; 5];
    log.read(at, &mut bytes).expect("read");
    assert_eq!(&bytes, b"hello");
    // A commit of the same file does not reach what the crash made void.
    write(&log, 300, b"later");
    log.commit(1, FILE).expect("commit");
    assert_eq!(replayed(&log).len(), 3);
    log.close().expect("close");
    let (log, recovery) = Log::open(media.clone(), options()).expect("open");
    assert!(recovery.closed && recovery.torn.is_none());
    assert_eq!(replayed(&log).len(), 3);
    assert!(verify(&*media).expect("verify").damage.is_none());
}

#[test]
fn a_large_write_goes_to_several_segments_and_a_drain_makes_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let media = Arc::new(Directory::new(directory.path()));
    let log = Log::create(media.clone(), &description(), options()).expect("a new log");
    let bytes: Vec<u8> = (0..400_000_u32).map(|i| (i * 7 / 3) as u8).collect();
    let placed = write(&log, 0, &bytes);
    assert!(placed.len() > 6);
    let mut back = vec![0; bytes.len()];
    for piece in &placed {
        let at = piece.offset as usize;
        log.read(piece.at, &mut back[at..at + piece.len as usize]).expect("read");
    }
    assert!(back == bytes);
    log.commit(1, FILE).expect("commit");
    // Until nothing more fits: at last in part, then not at all.
    let mut left = Vec::new();
    let full = loop {
        let write = Write { stream: 1, file: FILE, member: None, offset: 0, bytes: &bytes };
        match log.write(&write) {
            Ok(placements) => left.push(placements.len()),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::Full { .. }) && full.is_retryable());
    assert!(*left.last().expect("a write") < bytes.len() as u64);
    // What is needed to get on is taken nevertheless.
    let commit = log.commit(1, FILE).expect("commit");
    log.drained(commit, b"state").expect("drained");
    assert!(matches!(log.read(placed[0].at, &mut [0]), Err(Error::Recycled { .. })));
    assert!(log.status().segment_files <= 17);
    write(&log, 5, b"again");
    log.commit(1, FILE).expect("commit");
    drop(log);
    let (log, recovery) = Log::open(media, options()).expect("open");
    assert_eq!((recovery.drained, &recovery.drained_state[..]), (commit, &b"state"[..]));
    let records = replayed(&log);
    assert_eq!(records.len(), 1);
    assert!(matches!(records[0].what, What::Data { offset: 5, len: 5, .. }));
}

#[test]
fn what_stands_behind_a_hole_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let media = Directory::new(directory.path());
    drop(media.lock().expect("the directory"));
    let file = media.create("segments/00000000.seg").expect("a file");
    file.fill(1 << 20).expect("zeros");
    assert_eq!(file.size().expect("a size"), 1 << 20);
    let mut bytes = [1; 16];
    file.read_at(&mut bytes, (1 << 20) - 16).expect("read");
    assert_eq!(bytes, [0; 16]);
    for at in [700_000, 300_000, 4096] {
        file.write_at(&[IoSlice::new(b"record")], at).expect("write");
        // A file system may take more for data than is, but never less.
        let found = file.data_from(4096).expect("seek").expect("data");
        assert!((4096..=at).contains(&found), "{found} for {at}");
        file.sync().expect("sync");
        assert!(file.data_from(4096).expect("seek").is_some_and(|found| found <= at));
    }
    file.read_at(&mut bytes[..6], 700_000).expect("read");
    assert_eq!(&bytes[..6], b"record");
    assert!(file.data_from(700_006).expect("seek").is_none_or(|found| found >= 700_006));
}
