//! The seeds of the fuzz target `hostlog_replay`: made by a real log, so that they stay what a log writes.

use std::path::Path;
use std::sync::Arc;

use hostlog::media::simulated::SimulatedDisk;
use hostlog::{
    Attributes, Change, Description, FileId, Group, Log, Member, Operation, Options, Prepare, Time,
    Write, format,
};

/// The seed that a disk with two segments makes.
fn seed(disk: &SimulatedDisk) -> Vec<u8> {
    let content = |name: &str| disk.content(name).expect("a file");
    let mut out = vec![1];
    // The newest synced slot: the one with the higher generation.
    let checkpoint = content("checkpoint");
    let generation = |slot: &&[u8]| slot[16..24].iter().rev().copied().collect::<Vec<u8>>();
    let slots = [&checkpoint[..96], &checkpoint[4096..4192]];
    out.extend(*slots.iter().max_by_key(|slot| generation(slot)).expect("two slots"));
    let segments = ["segments/00000000.seg", "segments/00000001.seg"].map(content);
    for segment in &segments {
        out.extend(&segment[..64]);
    }
    // Halves of one length, as the target cuts them.
    let used = |segment: &Vec<u8>| {
        let last = segment.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        (last + 1).max(4096).next_multiple_of(64)
    };
    let end = segments.iter().map(used).max().unwrap_or(4096);
    for segment in &segments {
        out.extend(unsalted(&segment[4096..end]));
    }
    out
}

/// Records without the checksums of their headers, which depend on a random number. The target makes them anew.
fn unsalted(records: &[u8]) -> Vec<u8> {
    let mut out = records.to_vec();
    let mut at = 0;
    while out[at..].starts_with(b"SLrc") {
        out[at + 60..at + 64].fill(0);
        let len = u32::from_le_bytes(out[at + 20..at + 24].try_into().expect("four bytes"));
        at = format::record_end(at as u64, u64::from(len)) as usize;
    }
    out
}

#[test]
fn the_seeds_of_the_fuzz_target_are_what_a_log_writes() {
    let disk = SimulatedDisk::new(1);
    let media = Arc::new(disk.clone());
    let options = Options { segment_bytes: 16 << 10, size_max_bytes: 64 << 10, ready_segments: 1 };
    let log = Log::create(media.clone(), &Description::default(), options).expect("a log");
    let file = FileId(2);
    let change = Change { stream: 1, file, member: None, namespace: true };
    let path = b"a/b".to_vec();
    let set = Attributes {
        mode: Some(0o600),
        modified: Some(Time { seconds: -1, nanoseconds: 5 }),
        ..Attributes::default()
    };
    for operation in [
        Operation::Mkdir { path: b"a".to_vec(), mode: 0o755 },
        Operation::Create { path: path.clone(), mode: 0o644 },
        Operation::Attributes { path: path.clone(), set },
        Operation::Rename { from: path, to: b"c".to_vec(), flags: 1 },
        Operation::Truncate { size: 1 << 40 },
    ] {
        assert_eq!(Operation::decode(&operation.encode()).as_ref(), Some(&operation));
        log.change(&change, &operation).expect("a change");
    }
    let member = Member { group: Group(1), epoch: 1 };
    let write =
        |member, offset| Write { stream: 1, file, member, offset, bytes: b"some bytes of it" };
    log.write(&write(None, 5)).expect("a write");
    log.write(&write(Some(member), 70)).expect("a write");
    log.commit(1, file).expect("a commit");
    let prepare = Prepare { stream: 1, file, member, rank: 0, ranks: 2, name: b"job" };
    log.prepare(&prepare).expect("a prepare");
    drop(log);
    disk.kill();
    let (log, recovery) = Log::open(media, options).expect("open");
    assert_eq!(recovery.in_doubt.len(), 1);
    log.commit_group(member).expect("a commit");
    assert_eq!(log.replay().count(), 7);
    let made = seed(&disk);
    assert!(made.len() < 3000 && made.len() > 1 + 96 + 128 + 12 * 64);
    // `HOSTLOG_SEEDS=1` writes it anew.
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/hostlog_replay/group");
    if std::env::var_os("HOSTLOG_SEEDS").is_some() {
        std::fs::write(&kept, &made).expect("the seed");
    }
    let kept = std::fs::read(kept).expect("the seed: HOSTLOG_SEEDS=1 makes it");
    // Apart from the log's random number and what depends on it.
    assert_eq!(kept.len(), made.len());
    assert_eq!(kept[1 + 96 + 128..], made[1 + 96 + 128..]);
}
