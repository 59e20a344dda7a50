//! What a disk may hold where a log should be: opening it never panics and ends, what is opened can be read,
//! and goes on holding what it held.
//!
//! The first byte says whether checksums are made right, so that the fuzzer gets behind them. Then come one
//! slot of the checkpoint, the headers of two segments, and in halves their records.
#![no_main]

use std::sync::Arc;

use hostlog::media::simulated::SimulatedDisk;
use hostlog::{FileId, Log, Options, Replayed, What, Write, verify};
use libfuzzer_sys::fuzz_target;

const SEGMENT_BYTES: usize = 16 << 10;
const RECORDS_AT: usize = 4096;
const MANIFEST: &str = "format = 2\nlog = \"0102030405060708\"\nsegment_bytes = 16384\n\
                        target = \"t\"\nrun = \"r\"\ncreated = 1\n";

/// Gives `bytes` the first `fixed` bytes and in its last four the checksum of `salt` and all before.
fn right(bytes: &mut [u8], fixed: &[u8], salt: &[u8]) {
    bytes[..fixed.len()].copy_from_slice(fixed);
    let end = bytes.len() - 4;
    let crc = crc32c::crc32c_append(crc32c::crc32c(salt), &bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
}

/// Makes right the checksums of records as far as they follow each other.
fn right_records(segment: &mut [u8]) {
    let number: [u8; 4] = segment[16..20].try_into().expect("four bytes");
    let salt: [u8; 4] = segment[32..36].try_into().expect("four bytes");
    let mut at = RECORDS_AT;
    while at + 64 <= segment.len() && segment[at..at + 64].iter().any(|byte| *byte != 0) {
        let (header, rest) = segment[at..].split_at_mut(64);
        let len = u32::from_le_bytes(header[20..24].try_into().expect("four bytes")) as usize;
        if let Some(payload) = rest.get(..len) {
            header[56..60].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
        }
        header[16..20].copy_from_slice(&number);
        right(header, b"SLrc", &salt);
        at = (at + 64).saturating_add(len).next_multiple_of(64);
    }
}

fn replayed(log: &Log) -> Option<Vec<Replayed>> {
    let records: Vec<Replayed> = log.replay().collect::<Result<_, _>>().ok()?;
    for record in &records {
        if let What::Data { len, at, .. } = record.what {
            assert!(len <= SEGMENT_BYTES as u64);
            log.read(at, &mut vec![0; len as usize]).expect("its bytes");
        }
    }
    Some(records)
}

fuzz_target!(|data: &[u8]| {
    let Some((mode, data)) = data.split_first() else {
        return;
    };
    let Some((heads, records)) = data.split_at_checked(96 + 2 * 64) else {
        return;
    };
    let disk = SimulatedDisk::new(1);
    let version_and_log = [2, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1];
    let mut slot = heads[..96].to_vec();
    if mode & 1 != 0 {
        right(&mut slot, &[&b"SLcp"[..], &version_and_log].concat(), &[]);
    }
    let mut checkpoint = vec![0; 4 * 4096];
    checkpoint[..96].copy_from_slice(&slot);
    disk.set_content("checkpoint", checkpoint);
    disk.set_content("log.toml", MANIFEST.into());
    let (first, second) = records.split_at(records.len() / 2 / 64 * 64);
    for (index, records) in [first, second].into_iter().enumerate() {
        let mut segment = vec![0; SEGMENT_BYTES];
        segment[..64].copy_from_slice(&heads[96 + 64 * index..][..64]);
        let len = records.len().min(SEGMENT_BYTES - RECORDS_AT);
        segment[RECORDS_AT..RECORDS_AT + len].copy_from_slice(&records[..len]);
        if mode & 1 != 0 {
            segment[24..32].copy_from_slice(&(SEGMENT_BYTES as u64).to_le_bytes());
            right(&mut segment[..64], &[&b"SLsg"[..], &version_and_log].concat(), &[]);
            right_records(&mut segment);
        }
        disk.set_content(&format!("segments/{index:08}.seg"), segment);
    }
    let _ = verify(&disk);
    let options = Options { size_max_bytes: 8 * SEGMENT_BYTES as u64, ..Options::default() };
    let Ok((log, _)) = Log::open(Arc::new(disk.clone()), options) else {
        return;
    };
    let Some(before) = replayed(&log) else {
        return;
    };
    let write = Write { stream: 1, file: FileId(1), member: None, offset: 7, bytes: b"more" };
    if log.write(&write).is_err() || log.commit(1, FileId(1)).is_err() {
        return;
    }
    drop(log);
    disk.kill();
    disk.crash();
    let (log, _) = Log::open(Arc::new(disk), options).expect("what was opened opens again");
    let after = replayed(&log).expect("what was read is read again");
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 1);
});
