//! Every way to carry out an access against a model that moves one byte at a time: random views,
//! random requests, every planner, files that end anywhere, and a target that gives short counts
//! and interruptions whenever it likes.
//!
//! `SLUICE_SIEVE_CASES` sets how many cases there are (default 150 000), `SLUICE_SIEVE_SEED` where
//! they start; a failure prints the seed of its case.

mod faults;
mod memory;
mod random;

use memory::Memory;
use random::Random;
use sieve::aggregate::{Aggregate, Decision, Step};
use sieve::model::{CopyCost, Device, MapCost, RequestCost};
use sieve::{FileView, Profile, Tuple, Warmth};
use transfer::{Engine, Locking};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Decides at random, but never nonsense.
struct Whim(Random);

impl Aggregate for Whim {
    fn name(&self) -> &str {
        "whim"
    }

    fn decide(&mut self, step: &Step) -> Decision {
        let random = &mut self.0;
        if random.one_in(2) {
            return Decision::join(step);
        }
        // Something, if nothing has been gathered yet.
        let least = u64::from(step.data_gathered == 0);
        let bytes = if random.one_in(2) {
            step.bytes_max
        } else {
            random.below(step.bytes_max + 1).max(least.min(step.bytes_max))
        };
        let after = random.below(step.hole.min(step.room()) + 1);
        let before_max = (step.hole - after).min(step.buffer_bytes.saturating_sub(1));
        let hole_before_next = random.below(before_max + 1);
        Decision { join: false, bytes, hole_after: after, hole_before_next }
    }
}

fn tuples(random: &mut Random) -> Vec<Tuple> {
    let count = 1 + random.below(6);
    let regular = random.one_in(3).then(|| (1 + random.below(9), random.below(12)));
    (0..count)
        .map(|_| {
            let (size, hole) = regular.unwrap_or((random.below(9), random.below(12)));
            // Now and then a large one.
            let size = if random.one_in(12) { size + random.below(200) } else { size };
            let hole = if random.one_in(9) { hole + random.below(300) } else { hole };
            Tuple { size, hole }
        })
        .collect()
}

/// Costs of any proportion, so that every arm is the best now and then.
fn profile(random: &mut Random) -> Profile {
    let mut cost = |max: u64| random.below(max + 1) as f64;
    let read = RequestCost { call_ns: cost(2000), page_ns: cost(100), byte_ns: cost(20) };
    let write = RequestCost { call_ns: cost(2000), page_ns: cost(100), byte_ns: cost(20) };
    let copy =
        CopyCost { block_ns: cost(50), byte_ns: cost(9), far_byte_ns: cost(9), cache_bytes: 64 };
    let map = MapCost {
        call_ns: cost(300),
        block_ns: cost(50),
        page_ns: cost(50),
        byte_ns: cost(9),
        fault_ns: cost(3000),
    };
    let (vector_entry_ns, lock_ns) = (cost(100), cost(500));
    let device = Device {
        latency_ns: cost(5000),
        byte_ns: cost(30),
        in_flight_max: 1 + random.below(8) as u32,
        unit_bytes: random.below(64),
        read_ahead_bytes: random.below(3) * 100,
        servers: 1 + random.below(4) as u32,
        stripe_bytes: random.below(3) * 16,
        write_behind: random.one_in(2),
    };
    Profile {
        read,
        write,
        device,
        copy,
        map,
        vector_entry_ns,
        lock_ns,
        page_bytes: 1 + random.below(64),
    }
}

fn engine(random: &mut Random) -> (Engine, &'static str) {
    let names =
        ["naive", "romio", "simple_pm", "extent", "scanfile", "adaptive", "adaptive", "whim"];
    let name = names[random.below(names.len() as u64) as usize];
    let engine = match name {
        "whim" => Engine::with_function(Whim(random.fork())),
        _ => Engine::by_name(name, profile(random)).expect("all of these exist"),
    };
    let lockings = [Locking::SingleWriter, Locking::Windows, Locking::All];
    (engine.locking(lockings[random.below(3) as usize]), name)
}

/// Where the bytes of the view's data are, one by one, up to byte `end` of it.
fn places(displacement: u64, tuples: &[Tuple], end: u64) -> Vec<u64> {
    let mut places = Vec::new();
    let mut at = displacement;
    while (places.len() as u64) < end {
        for tuple in tuples {
            places.extend(at..at + tuple.size);
            at += tuple.size + tuple.hole;
        }
    }
    places.truncate(end as usize);
    places
}

/// Which ways of carrying out were taken.
#[derive(Debug, Default)]
struct Ways {
    vectored: u64,
    batches: u64,
    announced: u64,
    mapped: u64,
    locks: u64,
}

fn case(seed: u64, ways: &mut Ways) {
    let mut random = Random::new(seed);
    let tuples = tuples(&mut random);
    let displacement = random.below(20);
    let view = FileView::from_tuples(displacement, tuples.iter().copied()).expect("small");
    if view.size() == 0 {
        return;
    }
    let content: Vec<u8> = (0..random.below(700)).map(|_| random.below(256) as u8).collect();
    let warmth = if random.one_in(2) { Warmth::Cold } else { Warmth::Warm };
    let mut model = content.clone();
    let file = Memory::new(content, warmth, &mut random);
    let (mut engine, name) = engine(&mut random);
    // The functions of the thesis want at least one byte.
    let buffer_max = if random.one_in(4) { 8 } else { 400 };
    let mut buffer = vec![0xEE; 1 + random.below(buffer_max) as usize];

    for access in 0..3 {
        let context = || format!("seed {seed}, access {access}, {name}, {tuples:?}");
        let offset = random.below(100);
        let len_max = if random.one_in(5) { 600 } else { 60 };
        let len = random.below(len_max);
        let all = places(displacement, &tuples, offset + len);
        let wanted = &all[offset as usize..];
        if random.one_in(2) {
            let data: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            let done = engine.write(&file, &view, &mut buffer, offset, &data);
            assert_eq!(done, Ok(len), "{}", context());
            for (place, byte) in wanted.iter().zip(&data) {
                if model.len() as u64 <= *place {
                    model.resize(*place as usize + 1, 0);
                }
                model[*place as usize] = *byte;
            }
        } else {
            let mut out = vec![0xAA; len as usize];
            let done = engine.read(&file, &view, &mut buffer, offset, &mut out);
            let there: Vec<u8> =
                wanted.iter().map_while(|place| model.get(*place as usize).copied()).collect();
            assert_eq!(done, Ok(there.len() as u64), "{}", context());
            assert_eq!(out[..there.len()], there, "{}", context());
        }
        assert!(*file.content() == model, "{}: the file differs from the model", context());
        file.assert_unlocked();
    }
    ways.vectored += u64::from(file.vectored_calls.get());
    ways.batches += u64::from(file.batches.get());
    ways.announced += u64::from(file.announced.get());
    ways.mapped += u64::from(file.mapped_calls.get());
    ways.locks += u64::from(file.locks_taken.get());
}

#[test]
fn all_ways_move_the_same_bytes() {
    let cases = number("SLUICE_SIEVE_CASES", 150_000);
    let first = number("SLUICE_SIEVE_SEED", 1);
    let mut ways = Ways::default();
    for seed in first..first + cases {
        case(seed, &mut ways);
    }
    // None of the ways may be left out by chance.
    let few = cases / 200;
    let all = [ways.vectored, ways.batches, ways.announced, ways.mapped, ways.locks];
    assert!(all.iter().all(|count| *count > few), "{ways:?}");
}
