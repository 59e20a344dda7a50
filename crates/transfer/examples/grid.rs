//! Every planner on a grid of strided patterns, as the thesis varied them (Table 5.1): how many
//! nanoseconds a block takes, and how the adaptive planner compares with the best of the others.
//!
//! `cargo run --release -p transfer --example grid -- DIRECTORY [read|write] [cold]`

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

use sieve::{FileView, Profile};
use transfer::{Engine, LocalFile, Planner};

const FILE_BYTES: u64 = 256 << 20;
const DATA_MAX: u64 = 30 << 20;
const BLOCKS: [u64; 7] = [8, 64, 512, 4096, 32768, 100_000, 1_000_000];
const HOLES: [u64; 6] = [8, 100, 1000, 4096, 32768, 1_000_000];
const NAMES: [&str; 5] = ["naive", "romio", "extent", "adaptive", "vector"];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().unwrap_or_else(|| "/tmp".into()));
    let writes = arguments.next().is_some_and(|word| word == "write");
    let cold = arguments.next().is_some_and(|word| word == "cold");
    let path = directory.join("sluice-grid.tmp");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.expect("a file to measure on");
    if file.metadata().expect("its size").len() < FILE_BYTES {
        for at in (0..FILE_BYTES).step_by(1 << 20) {
            file.write_all_at(&vec![at as u8; 1 << 20], at).expect("room");
        }
    }
    file.sync_all().expect("a disk");
    let target = LocalFile::new(file.as_fd());
    let mut buffer = vec![0; 4 << 20];
    let mut data = vec![1; DATA_MAX as usize];
    let (mut sum, mut worst, mut cells) = (0.0, 0.0f64, 0);
    println!(
        "{:>9}{:>9}  {}  regret",
        "block",
        "hole",
        NAMES.map(|name| format!("{name:>12}")).concat()
    );
    let mut engines: Vec<Engine> = NAMES
        .iter()
        .map(|name| match *name {
            "vector" => {
                // Only vectored calls: what the model would do if nothing else were to be had.
                let mut profile = Profile::default();
                profile.copy.block_ns = 1e6;
                profile.read.call_ns = 1e6;
                let adaptive = sieve::Adaptive::new(profile).expect("sound").steady();
                Engine::new(Planner::Adaptive(Box::new(adaptive)))
            }
            name => Engine::by_name(name, Profile::default()).expect("it exists"),
        })
        .collect();
    for block in BLOCKS {
        for hole in HOLES {
            let view = FileView::strided(hole, block, hole).expect("within a file");
            let blocks = (FILE_BYTES - hole) / (block + hole);
            let len = (blocks * block).min(DATA_MAX);
            let mut best = [f64::INFINITY; NAMES.len()];
            for _ in 0..3 {
                for (engine, best) in engines.iter_mut().zip(&mut best) {
                    if cold {
                        file.sync_all().expect("a disk");
                        let all = rustix::fs::Advice::DontNeed;
                        rustix::fs::fadvise(&file, 0, None, all).expect("it can be dropped");
                    }
                    let data = &mut data[..len as usize];
                    let start = Instant::now();
                    let done = if writes {
                        engine.write(&target, &view, &mut buffer, 0, data)
                    } else {
                        engine.read(&target, &view, &mut buffer, 0, data)
                    };
                    let seconds = start.elapsed().as_secs_f64();
                    assert_eq!(done.expect("it works"), len);
                    *best = best.min(seconds * 1e9 * block as f64 / len as f64);
                }
            }
            let others = best.iter().enumerate().filter(|(n, _)| NAMES[*n] != "adaptive");
            let other = others.map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min);
            let mine = best[3];
            let regret = mine / other.min(mine);
            (sum, worst, cells) = (sum + regret.ln(), worst.max(regret), cells + 1);
            let columns = best.map(|ns| format!("{ns:>12.1}")).concat();
            println!("{block:>9}{hole:>9}  {columns}  {regret:.2} {:.2}", other / mine);
        }
    }
    println!("regret: geometric mean {:.3}, worst {worst:.2}", (sum / f64::from(cells)).exp());
    std::fs::remove_file(&path).expect("it is ours");
}
