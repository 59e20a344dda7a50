//! Random patterns against arrays in one memory.

use exchange::{Group as _, Slab};
use proptest::prelude::*;

use crate::house::{Meet, define, get, put, slab, variable};

/// Where something is written or read, and by whom.
#[derive(Debug, Clone)]
struct Ask {
    rank: u32,
    slab: Slab,
}

#[derive(Debug, Clone)]
struct Case {
    shape: Vec<u64>,
    writers: u32,
    readers: u32,
    /// By cycles.
    writes: Vec<Vec<Ask>>,
    reads: Vec<Vec<Ask>>,
    settings: &'static str,
    settle: bool,
}

fn ask(shape: Vec<u64>, ranks: u32) -> impl Strategy<Value = Ask> {
    let dimension = (any::<u64>(), any::<u64>(), 1u64..4);
    (0..ranks, prop::collection::vec(dimension, shape.len())).prop_map(move |(rank, list)| {
        let mut sizes = (Vec::new(), Vec::new(), Vec::new());
        for (length, (start, count, stride)) in shape.iter().zip(list) {
            let start = start % length;
            sizes.0.push(start);
            sizes.1.push(1 + count % ((length - start - 1) / stride + 1));
            sizes.2.push(stride);
        }
        Ask { rank, slab: Slab::strided(&sizes.0, &sizes.1, &sizes.2).unwrap() }
    })
}

fn case() -> impl Strategy<Value = Case> {
    let settings = prop::sample::select(vec![
        "",
        "buffer = true",
        "replay = true",
        "matchers = 2\ndistribution = \"range\"",
        "matchers = 3\ndistribution = \"varid\"",
        "queue = 1",
    ]);
    let sizes = (prop::collection::vec(1u64..60, 1..4), 1u32..4, 1u32..4, 1usize..3);
    (sizes, settings, any::<bool>()).prop_flat_map(
        |((shape, writers, readers, cycles), settings, settle)| {
            let asks = |ranks| {
                let one = prop::collection::vec(ask(shape.clone(), ranks), 0..6);
                prop::collection::vec(one, cycles)
            };
            (asks(writers), asks(readers)).prop_map(move |(writes, reads)| Case {
                shape: shape.clone(),
                writers,
                readers,
                writes,
                reads,
                settings,
                settle,
            })
        },
    )
}

/// The places of a slab in a dense array.
fn places(slab: &Slab, shape: &[u64]) -> Vec<usize> {
    let mut all = vec![0u64];
    for (steps, length) in slab.dimensions().iter().zip(shape) {
        let indices: Vec<u64> = (0..steps.count()).map(|position| steps.at(position)).collect();
        all = all.iter().flat_map(|at| indices.iter().map(move |i| at * length + i)).collect();
    }
    all.into_iter().map(|at| at as usize).collect()
}

/// Every write has values of its own.
fn values(cycle: usize, number: usize, count: usize) -> Vec<i32> {
    (0..count).map(|n| ((cycle * 7 + number) * 1_000_000 + n) as i32).collect()
}

fn run(case: &Case) {
    let configuration = format!(
        "components = [\"model\", \"plot\"]\n[[file]]\nname = \"x\"\nwriters = [\"model\"]\nreaders = [\"plot\"]\n\
         mode = \"transfer\"\n{}\n",
        case.settings
    );
    let meet = Meet::new(&configuration);
    let total: u64 = case.shape.iter().product();
    let mut memories = Vec::new();
    for (cycle, writes) in case.writes.iter().enumerate() {
        // What ranks write to one place without synchronising is ordered by their requests, and then by ranks.
        let mut ordered: Vec<(usize, u32, usize)> = Vec::new();
        let mut counts = [0usize; 8];
        for (number, ask) in writes.iter().enumerate() {
            ordered.push((counts[ask.rank as usize], ask.rank, number));
            counts[ask.rank as usize] += 1;
        }
        ordered.sort_unstable();
        let mut memory = vec![None; total as usize];
        for (_, _, number) in ordered {
            let at = places(&writes[number].slab, &case.shape);
            for (at, value) in at.iter().zip(values(cycle, number, at.len())) {
                memory[*at] = Some(value);
            }
        }
        memories.push(memory);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            meet.ranks("model", case.writers, |exchange, group| {
                for (cycle, writes) in case.writes.iter().enumerate() {
                    let mut file = exchange.create("x", group).unwrap();
                    define(&mut file, vec![variable("t", &case.shape)]);
                    let mut kept = Vec::new();
                    for (number, ask) in writes.iter().enumerate() {
                        if ask.rank == group.rank() {
                            let values = values(cycle, number, ask.slab.elements() as usize);
                            put(&mut file, 0, &ask.slab, &values).unwrap();
                            kept.push(values);
                            if case.settle {
                                file.settle().unwrap();
                                kept.iter_mut().for_each(|values| values.fill(-7));
                            }
                        }
                    }
                    file.close(0).unwrap();
                    kept.iter_mut().for_each(|values| values.fill(-8));
                }
            });
        });
        meet.ranks("plot", case.readers, |exchange, group| {
            for (cycle, reads) in case.reads.iter().enumerate() {
                let mut file = exchange.open("x", group).unwrap();
                for ask in reads.iter().filter(|ask| ask.rank == group.rank()) {
                    let at = places(&ask.slab, &case.shape);
                    let wanted: Option<Vec<i32>> =
                        at.iter().map(|at| memories[cycle][*at]).collect();
                    let found = get(&mut file, 0, &ask.slab);
                    match wanted {
                        Some(wanted) => assert!(found.unwrap() == wanted),
                        None => {
                            let told = found.unwrap_err().to_string();
                            assert!(told.contains("model did not write"), "{told}");
                        }
                    }
                }
                file.close().unwrap();
            }
        });
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn readers_get_what_was_written_last(case in case()) {
        run(&case);
    }
}

#[test]
fn without_reading_each_others_memory_it_is_the_same() {
    // The variable is read when a process joins; for a moment others of this program use the connection as well.
    let whole = Ask { rank: 0, slab: slab(&[0, 0], &[300, 200]) };
    let case = Case {
        shape: vec![300, 200],
        writers: 2,
        readers: 2,
        writes: vec![
            vec![whole.clone(), Ask { rank: 1, slab: slab(&[100, 0], &[50, 200]) }],
            vec![whole.clone()],
        ],
        reads: vec![vec![whole.clone(), Ask { rank: 1, ..whole.clone() }], vec![whole]],
        settings: "",
        settle: false,
    };
    // SAFETY: tests of this program read no other variable meanwhile, and those that read this one may find either.
    unsafe { std::env::set_var("SLUICE_COUPLE_COPY", "socket") };
    run(&case);
    // SAFETY: as before.
    unsafe { std::env::remove_var("SLUICE_COUPLE_COPY") };
}
