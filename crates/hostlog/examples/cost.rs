//! What a committed record costs, beside writing the same bytes without a log: into a file that was written
//! before, and into one that grows.
//!
//! `cargo run --release -p hostlog --example cost [DIRECTORY]`
//!
//! All are timed in turn; what is printed is the median of each, in microseconds.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use hostlog::media::directory::Directory;
use hostlog::{Description, FileId, Log, Options, Write};

const FILE: FileId = FileId(1);

fn micros(act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_secs_f64() * 1e6
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn append(log: &Log, bytes: &[u8]) {
    let write = Write { stream: 1, file: FILE, member: None, offset: 0, bytes };
    log.write(&write).expect("a write");
}

fn compare(root: &std::path::Path, log: &Log, len: usize, rounds: usize) {
    let bytes: Vec<u8> = (0..len).map(|i| ((i * 31) >> 3) as u8).collect();
    let written = root.join("written");
    let mut file = File::create(&written).expect("a file");
    for _ in 0..rounds {
        file.write_all(&vec![0; len]).expect("zeros");
    }
    file.sync_all().expect("a sync");
    let growing = File::create(root.join("growing")).expect("a file");
    let mut times: [Vec<f64>; 5] = Default::default();
    for round in 0..rounds {
        let offset = (round * len) as u64;
        times[0].push(micros(|| {
            file.write_all_at(&bytes, offset).expect("a write");
            file.sync_data().expect("a sync");
        }));
        times[1].push(micros(|| {
            growing.write_all_at(&bytes, offset).expect("a write");
            growing.sync_data().expect("a sync");
        }));
        times[2].push(micros(|| {
            append(log, &bytes);
            log.commit(1, FILE).expect("a commit");
        }));
        times[3].push(micros(|| file.write_all_at(&bytes, offset).expect("a write")));
        file.sync_data().expect("a sync");
        times[4].push(micros(|| append(log, &bytes)));
        log.sync().expect("a sync");
        // Segments are made ready by another thread, as the log's owner does.
        while log.prepare_ahead().expect("no failure") {}
    }
    let [written, growing, log, write, append] = times.each_mut().map(|times| median(times));
    println!(
        "{len:>8} bytes: pwrite + fdatasync, written before {written:7.1}; growing {growing:7.1}; \
         log, append + commit {log:7.1} ({:.2} of the first, {:.2} of the second); without sync: \
         pwrite {write:6.1}, append {append:6.1}",
        log / written,
        log / growing
    );
}

fn main() {
    let place = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let root = tempfile::tempdir_in(place).expect("a directory");
    let media = Arc::new(Directory::new(root.path().join("log")));
    let options = Options { size_max_bytes: 2 << 30, ..Options::default() };
    let log = Log::create(media.clone(), &Description::default(), options).expect("a log");
    let first = micros(|| while log.prepare_ahead().expect("no failure") {});
    println!("{} segments of 64 MiB made ready in {:.0} ms", options.ready_segments, first / 1e3);
    compare(root.path(), &log, 64, 400);
    compare(root.path(), &log, 4 << 10, 400);
    compare(root.path(), &log, 64 << 10, 200);
    compare(root.path(), &log, 1 << 20, 100);
    let committed = 8;
    let shared = micros(|| {
        std::thread::scope(|scope| {
            for _ in 0..committed {
                scope.spawn(|| {
                    for _ in 0..100 {
                        append(&log, &[7; 4096]);
                        log.commit(1, FILE).expect("a commit");
                    }
                });
            }
        });
    });
    println!("{committed} threads that commit 4 KiB each: {:.1} a commit", shared / 800.0);
    let last = log.status();
    drop(log);
    let mut reopened = None;
    let open = micros(|| reopened = Some(Log::open(media, options).expect("a log")));
    let records = reopened.as_ref().map_or(0, |(log, _)| log.replay().count());
    println!(
        "opened after a kill, {} segments of {} MiB: {:.0} ms, {records} records of data",
        last.live_segments,
        last.segment_bytes >> 20,
        open / 1e3
    );
    let bytes = vec![5_u8; 64 << 20];
    let mut crc = 0;
    let time = micros(|| crc = crc32c::crc32c(&bytes));
    println!("CRC-32C: {:.1} GB/s ({crc:08x})", bytes.len() as f64 / time / 1e3);
}
