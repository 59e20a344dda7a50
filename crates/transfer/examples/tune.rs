//! Measures a place for files and prints the profile that explains it, and how well it does.
//!
//! `cargo run --release -p transfer --example tune -- DIRECTORY`

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use sieve::Profile;
use transfer::LocalFile;
use transfer::tune::Bench;

const FILE_BYTES: u64 = 64 << 20;

fn main() {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "/tmp".into()));
    let path = directory.join("sluice-tune.tmp");
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).open(&path);
    let file = file.expect("a file to measure on");
    std::fs::remove_file(&path).expect("it is ours");
    for at in (0..FILE_BYTES).step_by(1 << 20) {
        file.write_all_at(&vec![at as u8; 1 << 20], at).expect("room");
    }
    let mut forget = || {
        file.sync_all().expect("a disk");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("droppable");
    };
    let target = LocalFile::new(file.as_fd());
    let bench = Bench::new(&target, FILE_BYTES, Duration::from_secs(30)).writes();
    let samples = bench.cold(32, &mut forget).samples().expect("it can be read and written");
    let (before, after) = (Profile::default(), Profile::default().fitted(&samples));
    println!("{after:#?}");
    for (name, profile) in [("default", before), ("fitted", after)] {
        let mut errors: Vec<f64> =
            samples.iter().map(|s| (s.predicted_ns(&profile) / s.ns).ln().abs().exp()).collect();
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| errors[(share * (errors.len() - 1) as f64) as usize];
        println!(
            "{name}: {} samples, off by a factor of {:.2} (median), {:.2} (nine of ten), {:.2} (worst)",
            errors.len(),
            at(0.5),
            at(0.9),
            at(1.0)
        );
    }
}
