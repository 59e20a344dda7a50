//! What planning costs, in nanoseconds for each block: walking views, cutting them into groups by
//! each function and by the model. Prints one line for each; the numbers to stay under are 3 for
//! regular patterns and 20 for others.
//!
//! `cargo bench -p sieve --bench planning [-- PART OF A NAME]`

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use sieve::aggregate::{self, Aggregate, FileSystem, Naive, Romio, ScanFile, SimplePm};
use sieve::{Access, Adaptive, FileView, Level, Profile, Request, Tuple};

/// How long this thread was running, whatever else the machine was busy with.
fn processor_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The best of several turns of `work`, which answers for how many blocks it worked, in ns a block.
fn best_ns(mut work: impl FnMut() -> u64) -> f64 {
    let turns = (0..7).map(|_| {
        let start = processor_ns();
        let blocks = work();
        (processor_ns() - start) / blocks as f64
    });
    turns.fold(f64::INFINITY, f64::min)
}

fn walk(view: &FileView, blocks: u64, len: u64) -> f64 {
    best_ns(|| {
        let mut sum = 0;
        let mut count = 0;
        for block in view.blocks(0, len).expect("within a file") {
            sum ^= black_box(block.file);
            count += 1;
        }
        black_box(sum);
        assert_eq!(count, blocks);
        count
    })
}

fn plan(view: &FileView, access: Access, blocks: u64, len: u64) -> f64 {
    best_ns(|| {
        let mut adaptive = Adaptive::new(Profile::default()).expect("sound").steady();
        let mut request = Request::new(access, 0..len, 4 << 20);
        while !request.data.is_empty() {
            let plan = adaptive.plan(view, &request).expect("within a file");
            for group in plan.groups {
                black_box(&group);
            }
            request.data.start += plan.data_len;
        }
        blocks
    })
}

fn by_function(view: &FileView, blocks: u64, len: u64, function: &mut dyn Aggregate) -> f64 {
    best_ns(|| {
        let groups = aggregate::Groups::new(view, Access::Read, 0, len, 4 << 20, function);
        for group in groups.expect("within a file") {
            black_box(&group.expect("sense"));
        }
        blocks
    })
}

fn main() {
    let count = 1_000_000u64;
    let levels = [Level { count: 100, hole: 24 }, Level { count: 50, hole: 4000 }];
    let mut state = 1u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut irregular = |size: u64, hole: u64| -> Vec<Tuple> {
        (0..count).map(|_| Tuple { size: 1 + random(size), hole: 1 + random(hole) }).collect()
    };
    let (sparse, dense, large) = (irregular(200, 6000), irregular(20, 60), irregular(8000, 6000));
    let views = [
        ("strided 8/24", FileView::strided(0, 8, 24)),
        ("nested 8/24/4000/1000", FileView::nested(0, 8, &levels, 1000)),
        ("irregular, sparse", FileView::from_tuples(0, sparse)),
        ("irregular, dense", FileView::from_tuples(0, dense)),
        ("irregular, large", FileView::from_tuples(0, large)),
    ];
    println!(
        "{:<24}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}",
        "ns a block", "walk", "read", "write", "naive", "romio", "simple", "scan"
    );
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    for (name, view) in views {
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let view = view.expect("within a file");
        let len = if view.closed_form().is_some() { 8 * count } else { view.size() };
        let slow = FileSystem { bandwidth: 118e6, latency_network: 8e-5, latency_fs: 0.0 };
        println!(
            "{name:<24}{:>8.2}{:>8.2}{:>8.2}{:>8.2}{:>8.2}{:>8.2}{:>8.2}",
            walk(&view, count, len),
            plan(&view, Access::Read, count, len),
            plan(&view, Access::Write, count, len),
            by_function(&view, count, len, &mut Naive),
            by_function(&view, count, len, &mut Romio),
            by_function(&view, count, len, &mut SimplePm(slow)),
            by_function(&view, count, len, &mut ScanFile { stripe_bytes: 128 << 10 }),
        );
    }
}
