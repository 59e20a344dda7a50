//! What is written is what is read.

use std::time::Duration;

use exchange::{Flowing, Format, Memory, Slab, Type, Variable};

use crate::house::{HEADER, Meet, define, get, put, slab, variable};

const TWO: &str = r#"
components = ["model", "plot"]
[[file]]
name = "a%.nc"
writers = ["model"]
readers = ["plot"]
mode = "transfer"
"#;

/// The integers of a row of blocks.
fn numbers(from: u64, count: u64) -> Vec<i32> {
    (from..from + count).map(|n| n as i32 * 3 + 1).collect()
}

fn both<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap(), other)
    })
}

/// Writers of rows and readers of columns, of so many values in all.
fn rows_and_columns(configuration: &str, side: u64, writers: u32, readers: u32, cycles: u32) {
    let meet = Meet::new(configuration);
    let write = || {
        meet.ranks("model", writers, |exchange, group| {
            let rank = u64::from(exchange::Group::rank(group));
            let rows = side / u64::from(writers);
            for cycle in 0..u64::from(cycles) {
                let mut file = exchange.create(&format!("a{cycle}.nc"), group).unwrap();
                define(&mut file, vec![variable("t", &[side, side])]);
                let mut values = numbers(rank * rows * side + cycle, rows * side);
                put(&mut file, 0, &slab(&[rank * rows, 0], &[rows, side]), &values).unwrap();
                file.close(0).unwrap();
                // The program goes on with its memory.
                values.fill(-7);
            }
        });
    };
    let read = || {
        meet.ranks("plot", readers, |exchange, group| {
            let rank = u64::from(exchange::Group::rank(group));
            let columns = side / u64::from(readers);
            for cycle in 0..u64::from(cycles) {
                let mut file = exchange.open(&format!("./a{cycle}.nc"), group).unwrap();
                assert_eq!((file.header(), file.format()), (HEADER, Format::Data64));
                assert_eq!(file.variables(), [variable("t", &[side, side])]);
                let part = slab(&[0, rank * columns], &[side, columns]);
                let values = get(&mut file, 0, &part).unwrap();
                let wanted: Vec<i32> = (0..side)
                    .flat_map(|row| numbers(row * side + rank * columns + cycle, columns))
                    .collect();
                assert!(values == wanted, "cycle {cycle}");
                file.close().unwrap();
            }
        });
    };
    both(write, read);
}

#[test]
fn rows_become_columns() {
    rows_and_columns(TWO, 12, 3, 2, 2);
    rows_and_columns(TWO, 1200, 2, 2, 3);
    rows_and_columns(TWO, 1200, 1, 1, 2);
}

#[test]
fn rows_become_columns_of_copies() {
    rows_and_columns(&format!("buffer = true\n{TWO}"), 600, 2, 3, 2);
    rows_and_columns(&format!("distribution = \"range\"\nmatchers = 2\n{TWO}"), 600, 2, 3, 2);
}

#[test]
fn replayed_or_not_rows_become_columns() {
    rows_and_columns(&format!("{TWO}replay = true\n"), 600, 2, 2, 3);
}

#[test]
fn who_starts_late_misses_nothing() {
    let meet = Meet::new(TWO);
    let write = || {
        meet.ranks("model", 1, |exchange, group| {
            for cycle in 0..3 {
                let mut file = exchange.create("a.nc", group).unwrap();
                define(&mut file, vec![variable("t", &[4])]);
                let mut values = [cycle; 4];
                put(&mut file, 0, &slab(&[0], &[4]), &values).unwrap();
                file.settle().unwrap();
                values.fill(-7);
                file.close(0).unwrap();
            }
        });
    };
    let read = || {
        std::thread::sleep(Duration::from_millis(300));
        meet.ranks("plot", 1, |exchange, group| {
            for cycle in 0..3 {
                let mut file = exchange.open("a.nc", group).unwrap();
                assert_eq!(get(&mut file, 0, &slab(&[1], &[2])).unwrap(), [cycle; 2]);
                file.close().unwrap();
            }
        });
    };
    both(write, read);
}

#[test]
fn cycles_of_one_opening_follow_each_other() {
    for replay in ["", "replay = true\n"] {
        let meet = Meet::new(&format!("{TWO}{replay}"));
        let write = || {
            meet.ranks("model", 2, |exchange, group| {
                let rank = u64::from(exchange::Group::rank(group));
                let mut file = exchange.create("a.nc", group).unwrap();
                define(&mut file, vec![variable("t", &[4])]);
                for cycle in 0..4 {
                    let values = [cycle + rank as i32; 2];
                    put(&mut file, 0, &slab(&[rank * 2], &[2]), &values).unwrap();
                    file.finish(0).unwrap();
                    file.delivered().unwrap();
                }
                file.close(0).unwrap();
            });
        };
        let read = || {
            meet.ranks("plot", 1, |exchange, group| {
                let mut file = exchange.open("a.nc", group).unwrap();
                for cycle in 0..4 {
                    let mut values = [-1i32; 4];
                    let all = slab(&[0], &[4]);
                    let memory = Memory::dense(&all).unwrap();
                    // SAFETY: finished before it is looked at.
                    unsafe {
                        let address = values.as_mut_ptr().cast();
                        file.read(Variable(0), all, memory, Type::Int, address, 16).unwrap();
                    }
                    file.finish().unwrap();
                    assert_eq!(values, [cycle, cycle, cycle + 1, cycle + 1]);
                }
                let more = get(&mut file, 0, &slab(&[0], &[4])).unwrap_err();
                assert!(more.to_string().contains("closed `a.nc` after 4 cycles"), "{more}");
            });
        };
        both(write, read);
    }
}

#[test]
fn who_reads_only_some_of_the_cycles_keeps_nobody() {
    let meet = Meet::new(TWO);
    let write = || {
        meet.ranks("model", 1, |exchange, group| {
            let mut file = exchange.create("a.nc", group).unwrap();
            define(&mut file, vec![variable("t", &[4])]);
            for cycle in 0..4 {
                let values = [cycle; 4];
                put(&mut file, 0, &slab(&[0], &[4]), &values).unwrap();
                file.finish(0).unwrap();
                file.settle().unwrap();
            }
            file.delivered().unwrap();
            file.close(0).unwrap();
        });
    };
    let read = || {
        meet.ranks("plot", 1, |exchange, group| {
            let mut file = exchange.open("a.nc", group).unwrap();
            assert_eq!(get(&mut file, 0, &slab(&[0], &[4])).unwrap(), [0; 4]);
            file.close().unwrap();
        });
    };
    both(write, read);
}

#[test]
fn three_components_in_a_circle() {
    let meet = Meet::new(
        r#"
components = ["model", "filter", "plot"]
[[file]]
name = "forecast"
writers = ["model"]
readers = ["filter", "plot"]
mode = "transfer"
[[file]]
name = "analysis"
between = ["filter", "model"]
mode = "transfer"
"#,
    );
    let all = slab(&[0], &[3]);
    let model = || {
        meet.ranks("model", 2, |exchange, group| {
            let rank = exchange::Group::rank(group);
            let mut value = 1;
            for _ in 0..10 {
                let mut file = exchange.create("forecast", group).unwrap();
                define(&mut file, vec![variable("t", &[3])]);
                let values = [value; 3];
                if rank == 1 {
                    put(&mut file, 0, &all, &values).unwrap();
                }
                file.close(0).unwrap();
                let mut file = exchange.open("analysis", group).unwrap();
                value = get(&mut file, 0, &all).unwrap()[0];
                file.close().unwrap();
            }
            value
        })
    };
    let filter = || {
        meet.ranks("filter", 1, |exchange, group| {
            for _ in 0..10 {
                let mut file = exchange.open("forecast", group).unwrap();
                let value = get(&mut file, 0, &all).unwrap()[2];
                file.close().unwrap();
                let mut file = exchange.create("analysis", group).unwrap();
                define(&mut file, vec![variable("t", &[3])]);
                let values = [value * 2; 3];
                put(&mut file, 0, &all, &values).unwrap();
                file.close(0).unwrap();
            }
        })
    };
    let plot = || {
        // Comes when all is over.
        std::thread::sleep(Duration::from_millis(200));
        meet.ranks("plot", 1, |exchange, group| {
            let one = |_| {
                let mut file = exchange.open("forecast", group).unwrap();
                let value = get(&mut file, 0, &all).unwrap()[0];
                file.close().unwrap();
                value
            };
            (0..10).map(one).collect::<Vec<_>>()
        })
    };
    let (values, (_, seen)) = both(model, || both(filter, plot));
    assert_eq!(values, [1024, 1024]);
    assert_eq!(seen, [(0..10).map(|n| 1 << n).collect::<Vec<i32>>()]);
}

#[test]
fn two_components_write_one_file() {
    let meet = Meet::new(
        "components = [\"land\", \"sea\", \"plot\"]\n[[file]]\nname = \"world\"\nwriters = [\"land\", \"sea\"]\n\
         readers = [\"plot\"]\nmode = \"transfer\"\n",
    );
    let write = |component: &'static str, start: u64| {
        let meet = &meet;
        move || {
            meet.ranks(component, 2, |exchange, group| {
                let rank = u64::from(exchange::Group::rank(group));
                let mut file = exchange.create("world", group).unwrap();
                define(&mut file, vec![variable("t", &[8])]);
                let from = start + rank * 2;
                let values = numbers(from, 2);
                put(&mut file, 0, &slab(&[from], &[2]), &values).unwrap();
                file.close(0).unwrap();
            });
        }
    };
    let read = || {
        meet.ranks("plot", 1, |exchange, group| {
            let mut file = exchange.open("world", group).unwrap();
            assert_eq!(get(&mut file, 0, &slab(&[0], &[8])).unwrap(), numbers(0, 8));
            file.close().unwrap();
        });
    };
    both(write("land", 0), || both(write("sea", 4), read));
}

#[test]
fn writers_wait_for_readers_or_drop_what_is_too_much() {
    for (full, seen) in [("block", vec![0, 1, 2, 3, 4]), ("discard", vec![0, 1])] {
        let meet = Meet::new(&format!("{TWO}queue = 2\nqueue_full = \"{full}\"\n"));
        let write = || {
            meet.ranks("model", 2, |exchange, group| {
                for cycle in 0..5 {
                    let mut file = exchange.create("a.nc", group).unwrap();
                    define(&mut file, vec![variable("t", &[1])]);
                    let values = [cycle];
                    put(&mut file, 0, &slab(&[0], &[1]), &values).unwrap();
                    file.close(0).unwrap();
                }
            });
        };
        let read = || {
            std::thread::sleep(Duration::from_millis(200));
            meet.ranks("plot", 1, |exchange, group| {
                let one = |_| {
                    let mut file = exchange.open("a.nc", group).unwrap();
                    let value = get(&mut file, 0, &slab(&[0], &[1])).unwrap()[0];
                    file.close().unwrap();
                    value
                };
                (0..seen.len()).map(one).collect::<Vec<_>>()
            })
        };
        assert_eq!(both(write, read).1[0], seen, "{full}");
    }
}

#[test]
fn a_file_is_read_when_it_was_closed() {
    let meet = Meet::new(
        "components = [\"model\", \"plot\"]\n[[file]]\nname = \"mean\"\nbetween = [\"model\", \"plot\"]\nmode = \"file\"\n",
    );
    let path = meet.directory.path().join("mean");
    let write = || {
        meet.ranks("model", 2, |exchange, group| {
            let file = exchange.create("mean", group).unwrap();
            assert!(file.is_file());
            std::thread::sleep(Duration::from_millis(100));
            if exchange::Group::rank(group) == 1 {
                std::fs::write(&path, "all of it").unwrap();
            }
            file.close(0).unwrap();
        });
    };
    let read = || {
        meet.ranks("plot", 2, |exchange, group| {
            let file = exchange.open("mean", group).unwrap();
            assert!(file.is_file());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "all of it");
            file.close().unwrap();
        });
    };
    both(write, read);
}

#[test]
fn values_are_those_of_the_variables_type() {
    let meet = Meet::new(TWO);
    let all = slab(&[0], &[4]);
    let write = || {
        meet.ranks("model", 1, |exchange, group| {
            let mut file = exchange.create("a.nc", group).unwrap();
            define(&mut file, vec![variable("t", &[4])]);
            let mut values = [1.9f64, -2.5, 1e300, 7.0];
            let memory = Memory::mapped(&[-1]);
            // SAFETY: what is refused is not kept.
            let turned = unsafe {
                let address = values.as_ptr().cast();
                file.write(Variable(0), all.clone(), memory, Type::Double, address, 32)
            };
            assert!(turned.unwrap_err().to_string().contains("does not fit in 32 bytes"));
            let memory = Memory::dense(&all).unwrap();
            // SAFETY: it is settled before it is changed.
            let ranged = unsafe {
                let address = values.as_ptr().cast();
                file.write(Variable(0), all.clone(), memory, Type::Double, address, 32)
            };
            assert_eq!(ranged.unwrap().0, 1);
            file.settle().unwrap();
            values.fill(0.0);
            file.close(0).unwrap();
        });
    };
    let read = || {
        meet.ranks("plot", 1, |exchange, group| {
            let mut file = exchange.open("a.nc", group).unwrap();
            let mut values = [0i8; 8];
            let memory = Memory::mapped(&[2]);
            // SAFETY: it is waited for before it is looked at.
            let token = unsafe {
                let address = values.as_mut_ptr().cast();
                file.read(Variable(0), all.clone(), memory, Type::Byte, address, 7).unwrap()
            };
            // The fill value of integers is no signed byte.
            assert_eq!(file.wait(&[token]).remove(0).unwrap().0, 1);
            assert_eq!(values, [1, 0, -2, 0, -127, 0, 7, 0]);
            file.close().unwrap();
        });
    };
    both(write, read);
}

#[test]
fn what_was_carried_is_written_down() {
    let meet = Meet::new(TWO);
    let write = || {
        meet.ranks("model", 1, |exchange, group| {
            let mut file = exchange.create("a.nc", group).unwrap();
            define(&mut file, vec![variable("t", &[1000])]);
            let values = numbers(0, 1000);
            put(&mut file, 0, &Slab::all(&[1000]), &values).unwrap();
            file.close(0).unwrap();
        });
    };
    let read = || {
        meet.ranks("plot", 1, |exchange, group| {
            let mut file = exchange.open("a.nc", group).unwrap();
            get(&mut file, 0, &slab(&[500], &[500])).unwrap();
            file.close().unwrap();
        });
    };
    both(write, read);
    let mut found: Vec<Flowing> = std::fs::read_dir(meet.directory.path().join("flow"))
        .unwrap()
        .flat_map(|entry| Flowing::parse(&std::fs::read_to_string(entry.unwrap().path()).unwrap()))
        .collect();
    found.sort_by_key(|one| one.writes);
    let told: Vec<_> = found
        .iter()
        .map(|one| {
            (one.writes, one.other.as_str(), one.tally.openings, one.tally.cycles, one.tally.bytes)
        })
        .collect();
    assert_eq!(told, [(false, "model", 1, 1, 2000), (true, "plot", 1, 1, 2000)]);
}

#[test]
fn what_nobody_wrote_is_filled() {
    let meet = Meet::new(TWO);
    let write = || {
        meet.ranks("model", 1, |exchange, group| {
            let mut file = exchange.create("a.nc", group).unwrap();
            let filled =
                exchange::VariableSpec { fill: Some(Type::Int.fill()), ..variable("t", &[6]) };
            define(&mut file, vec![filled]);
            let values = [1, 2];
            put(&mut file, 0, &slab(&[2], &[2]), &values).unwrap();
            file.close(0).unwrap();
        });
    };
    let read = || {
        meet.ranks("plot", 1, |exchange, group| {
            let mut file = exchange.open("a.nc", group).unwrap();
            let fill = -2_147_483_647;
            let found = get(&mut file, 0, &slab(&[0], &[6])).unwrap();
            assert_eq!(found, [fill, fill, 1, 2, fill, fill]);
            file.close().unwrap();
        });
    };
    both(write, read);
}

#[test]
fn what_is_left_in_the_directory_does_not_grow() {
    let meet = Meet::new(TWO);
    let cycles = 20;
    let write = || {
        meet.ranks("model", 2, |exchange, group| {
            for cycle in 0..cycles {
                let mut file = exchange.create("a.nc", group).unwrap();
                define(&mut file, vec![variable("t", &[1])]);
                let values = [cycle];
                put(&mut file, 0, &slab(&[0], &[1]), &values).unwrap();
                file.close(0).unwrap();
            }
        });
    };
    let read = || {
        meet.ranks("plot", 1, |exchange, group| {
            for cycle in 0..cycles {
                let mut file = exchange.open("a.nc", group).unwrap();
                assert_eq!(get(&mut file, 0, &slab(&[0], &[1])).unwrap(), [cycle]);
                file.close().unwrap();
            }
        });
    };
    both(write, read);
    let streams = std::fs::read_dir(meet.directory.path().join("f")).unwrap();
    let stream = streams.map(|entry| entry.unwrap().path()).next().unwrap();
    let mut left: Vec<String> = std::fs::read_dir(stream)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["1.19.c0", "1.19.r", "1.19.w0", "1.19.x1", "name"]);
}
