//! Whatever goes wrong is said, by whom it concerns, and nobody waits for ever.

use std::time::Duration;

use exchange::{Exchange, Fault, Group as _};

use crate::house::{Meet, Thread, define, get, group, put, slab, variable};

const TWO: &str = r#"
components = ["model", "plot"]
[[file]]
name = "a.nc"
writers = ["model"]
readers = ["plot"]
mode = "transfer"
"#;

fn alone() -> Thread {
    group(1).remove(0)
}

/// A fault, where the answer is not one that can be shown.
fn fault<T>(answer: Result<T, Fault>) -> Fault {
    match answer {
        Ok(_) => panic!("it should have failed"),
        Err(fault) => fault,
    }
}

#[test]
fn who_never_comes_is_named_after_a_while() {
    let meet = Meet::new(TWO);
    let plan = meet.plan("plot").with_patience(Duration::from_millis(300));
    let exchange = Exchange::join(plan).unwrap();
    let fault = fault(exchange.open("a.nc", &alone()));
    let text = fault.to_string();
    assert!(text.starts_with("plot, rank 0: file `a.nc`: waited "), "{text}");
    assert!(text.contains("for model to create it"), "{text}");
    assert_eq!(fault.status(), -204);
    // Who tries again wants the same.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            meet.ranks("model", 1, |exchange, group| {
                let mut file = exchange.create("a.nc", group).unwrap();
                define(&mut file, vec![variable("t", &[4])]);
                file.close(0).unwrap();
            });
        });
        let opened = (0..100).find_map(|_| exchange.open("a.nc", &alone()).ok());
        opened.expect("it is there now").close().unwrap();
    });
}

#[test]
fn who_has_ended_is_not_waited_for() {
    let meet = Meet::new(TWO);
    let exchange = meet.join("plot");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            meet.ended(0, "exit status 3");
        });
        let fault = fault(exchange.open("a.nc", &alone()));
        assert_eq!(
            fault.to_string(),
            "plot, rank 0: file `a.nc`: model has ended or cannot be reached any more (exit status 3): it has not created \
             the file"
        );
    });
}

#[test]
fn all_ranks_of_a_group_are_told() {
    let meet = Meet::new(TWO);
    meet.ended(0, "signal 9");
    let faults = meet.ranks("plot", 3, |exchange, group| {
        let fault = fault(exchange.open("a.nc", group));
        (fault.status(), fault.to_string())
    });
    for (status, text) in faults {
        assert_eq!(status, -205);
        assert!(text.contains("model has ended"), "{text}");
    }
}

#[test]
fn what_was_written_for_nobody_is_told() {
    let meet = Meet::new(TWO);
    meet.ended(1, "exit status 0");
    let exchange = meet.join("model");
    let mut file = exchange.create("a.nc", &alone()).unwrap();
    define(&mut file, vec![variable("t", &[4])]);
    let values = [1; 4];
    put(&mut file, 0, &slab(&[0], &[4]), &values).unwrap();
    file.close(0).unwrap();
    let unread = exchange.leave();
    let told: Vec<_> = unread.iter().map(|one| (one.file.as_str(), one.why.as_str())).collect();
    assert_eq!(told, [("a.nc", "plot has ended")]);
}

#[test]
fn a_file_that_is_given_up_is_an_error_for_its_readers() {
    let meet = Meet::new(TWO);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            meet.ranks("model", 2, |exchange, group| {
                let mut file = exchange.create("a.nc", group).unwrap();
                define(&mut file, vec![variable("t", &[4])]);
                file.abort();
            });
        });
        let exchange = meet.join("plot");
        let fault = fault(exchange.open("a.nc", &alone()));
        assert!(fault.to_string().contains("rank 0 of model has given up `a.nc`"), "{fault}");
    });
}

#[test]
fn what_was_not_written_is_named_and_the_rest_is_read() {
    let meet = Meet::new(TWO);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            meet.ranks("model", 2, |exchange, group| {
                let mut file = exchange.create("a.nc", group).unwrap();
                define(&mut file, vec![variable("t", &[4]), variable("never", &[4])]);
                let values = [5; 4];
                if group.rank() == 0 {
                    put(&mut file, 0, &slab(&[0], &[4]), &values).unwrap();
                }
                file.close(0).unwrap();
            });
        });
        meet.ranks("plot", 1, |exchange, group| {
            let mut file = exchange.open("a.nc", group).unwrap();
            let fault = fault(get(&mut file, 1, &slab(&[0], &[4])));
            let text = fault.to_string();
            assert!(text.starts_with("rank 0 of plot cannot read `never` of `a.nc`"), "{text}");
            assert_eq!(fault.status(), -205);
            let beyond = get(&mut file, 0, &slab(&[0], &[5])).unwrap_err();
            assert_eq!(beyond.status(), -40);
            assert_eq!(get(&mut file, 2, &slab(&[0], &[1])).unwrap_err().status(), -49);
            assert_eq!(get(&mut file, 0, &slab(&[0], &[4])).unwrap(), [5; 4]);
            file.close().unwrap();
        });
    });
}

#[test]
fn who_defines_something_else_is_named() {
    let meet = Meet::new(
        "components = [\"land\", \"sea\", \"plot\"]\n[[file]]\nname = \"world\"\nwriters = [\"land\", \"sea\"]\n\
         readers = [\"plot\"]\nmode = \"transfer\"\n",
    );
    let write = |component: &'static str, length: u64| {
        let meet = &meet;
        move || {
            meet.ranks(component, 1, |exchange, group| {
                let mut file = exchange.create("world", group).unwrap();
                define(&mut file, vec![variable("t", &[length])]);
                file.close(0).unwrap();
            });
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(write("land", 4));
        scope.spawn(write("sea", 5));
        meet.ranks("plot", 1, |exchange, group| {
            let mut file = exchange.open("world", group).unwrap();
            let fault = fault(get(&mut file, 0, &slab(&[0], &[4])));
            let text = fault.to_string();
            assert!(text.contains("of sea has defined the file with other"), "{text}");
            assert_eq!(fault.status(), -46);
            file.close().unwrap();
        });
    });
}

#[test]
fn a_writer_that_vanishes_fails_those_who_wait_for_it() {
    let meet = Meet::new(TWO);
    std::thread::scope(|scope| {
        let both = group(2);
        let mut other = both.clone();
        scope.spawn({
            let (meet, me) = (&meet, other.remove(1));
            move || {
                // Joins, opens the file, and is gone: its connections break.
                let exchange = meet.join("model");
                let file = exchange.create("a.nc", &me).unwrap();
                std::thread::sleep(Duration::from_millis(100));
                std::mem::forget(file);
            }
        });
        scope.spawn({
            let (meet, me) = (&meet, both[0].clone());
            move || {
                let exchange = meet.join("model");
                let mut file = exchange.create("a.nc", &me).unwrap();
                define(&mut file, vec![variable("t", &[4])]);
                let values = [5; 4];
                put(&mut file, 0, &slab(&[0], &[4]), &values).unwrap();
                file.close(0).unwrap();
                // Until the reader has been told.
                std::thread::sleep(Duration::from_millis(1000));
            }
        });
        let exchange = meet.join("plot");
        let fault = fault(exchange.open("a.nc", &alone()));
        let text = fault.to_string();
        assert!(text.contains("rank 1 of model has ended before it had finished it"), "{text}");
    });
}

#[test]
fn who_has_no_part_in_a_file_is_told_so() {
    let meet = Meet::new(TWO);
    let exchange = meet.join("plot");
    let fault = fault(exchange.create("a.nc", &alone()));
    assert_eq!(
        fault.to_string(),
        "file `a.nc` is not written by plot; see `sluice couple check --name`"
    );
    assert_eq!(fault.status(), -37);
}

#[test]
fn two_files_of_one_rule_are_not_taken_for_each_other() {
    let meet = Meet::new(TWO);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            meet.ranks("model", 1, |exchange, group| {
                let mut file = exchange.create("1/a.nc", group).unwrap();
                define(&mut file, vec![variable("t", &[4])]);
                file.close(0).unwrap();
            });
        });
        meet.ranks("plot", 1, |exchange, group| {
            let fault = fault(exchange.open("2/a.nc", group));
            assert!(matches!(fault, Fault::OtherFile { .. }), "{fault}");
            let text = fault.to_string();
            assert!(text.starts_with("`2/a.nc` is to be read, but"), "{text}");
        });
        meet.ended(1, "exit status 0");
    });
}

#[test]
fn a_reader_that_vanishes_keeps_no_writer() {
    let meet = Meet::new(TWO);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let exchange = meet.join("plot");
            let file = exchange.open("a.nc", &alone()).unwrap();
            std::mem::forget(file);
        });
        meet.ranks("model", 2, |exchange, group| {
            let mut file = exchange.create("a.nc", group).unwrap();
            define(&mut file, vec![variable("t", &[4])]);
            let values = [5; 4];
            put(&mut file, 0, &slab(&[0], &[4]), &values).unwrap();
            file.finish(0).unwrap();
            file.delivered().unwrap();
            file.close(0).unwrap();
        });
    });
}

#[test]
fn who_reads_too_slowly_is_named() {
    let meet = Meet::new(&format!("{TWO}queue = 1\n"));
    let plan = meet.plan("model").with_patience(Duration::from_millis(300));
    let exchange = Exchange::join(plan).unwrap();
    let mut file = exchange.create("a.nc", &alone()).unwrap();
    define(&mut file, vec![variable("t", &[4])]);
    file.close(0).unwrap();
    let fault = fault(exchange.create("a.nc", &alone()));
    let text = fault.to_string();
    assert!(text.contains("for plot to read one of 1 cycles"), "{text}");
    let unread = exchange.leave();
    assert_eq!(unread.len(), 1);
    assert!(unread[0].why.starts_with("plot did not read it in"), "{unread:?}");
}
