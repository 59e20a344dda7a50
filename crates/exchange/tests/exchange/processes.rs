//! Ranks as processes: this program starts itself.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use exchange::{Exchange, Group as _};

use crate::house::{Meet, define, get, group, put, slab, variable};

const TWO: &str = r#"
components = ["model", "plot"]
[[file]]
name = "a.nc"
writers = ["model"]
readers = ["plot"]
mode = "transfer"
"#;

/// What a child of these tests is.
const ROLE: &str = "SLUICE_TEST_ROLE";
const MEET: &str = "SLUICE_TEST_MEET";
const VALUES: u64 = 3_000_000;

/// Starts this test program with only `child` to run.
fn start(role: &str, meet: &Meet) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child", "--nocapture"])
        .env(ROLE, role)
        .env(MEET, meet.directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test by itself: what a started process does.
#[test]
fn child() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let configuration = exchange::Configuration::parse(TWO, "couple.toml").unwrap();
    let meet = std::env::var_os(MEET).unwrap();
    let plan = exchange::Plan::new(configuration, "model", meet.as_ref()).unwrap();
    let exchange = Exchange::join(plan).unwrap();
    let mut file = exchange.create("a.nc", &group(1)[0]).unwrap();
    define(&mut file, vec![variable("t", &[VALUES])]);
    let values: Vec<i32> = (0..VALUES as i32).collect();
    put(&mut file, 0, &slab(&[0], &[VALUES]), &values).unwrap();
    match role.to_str() {
        Some("unfinished") => loop {
            std::thread::park();
        },
        Some("stopped") => {
            // Handed over, and then neither fetched from nor answering.
            file.close(0).unwrap();
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::STOP).unwrap();
        }
        _ => {
            file.close(0).unwrap();
            drop(values);
            assert_eq!(exchange.leave(), []);
        }
    }
}

#[test]
fn data_comes_from_another_process() {
    let meet = Meet::new(TWO);
    let mut child = start("writer", &meet);
    let exchange = meet.join("plot");
    let group = group(1).remove(0);
    assert_eq!(group.rank(), 0);
    let mut file = exchange.open("a.nc", &group).unwrap();
    let values = get(&mut file, 0, &slab(&[1], &[VALUES - 1])).unwrap();
    assert!(values.iter().zip(1..).all(|(found, wanted)| *found == wanted));
    file.close().unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_writer_that_is_killed_before_it_has_finished_is_named() {
    let meet = Meet::new(TWO);
    let mut child = start("unfinished", &meet);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // When it has created the file.
            while std::fs::read_dir(meet.directory.path().join("f")).map_or(0, Iterator::count) == 0
            {
                std::thread::sleep(Duration::from_millis(50));
            }
            std::thread::sleep(Duration::from_millis(300));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let exchange = meet.join("plot");
        let fault = exchange.open("a.nc", &group(1)[0]).err().unwrap();
        let text = fault.to_string();
        assert!(text.contains("rank 0 of model has ended or cannot be reached"), "{text}");
        assert_eq!(fault.status(), -205);
    });
}

#[test]
fn a_writer_that_is_killed_while_it_is_read_from_is_named() {
    let meet = Meet::new(TWO);
    let mut child = start("stopped", &meet);
    let exchange = meet.join("plot");
    let mut file = exchange.open("a.nc", &group(1)[0]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        // It is stopped, or about to be: this is answered before or by its end.
        match get(&mut file, 0, &slab(&[0], &[VALUES])) {
            Ok(values) => assert!(values.iter().zip(0..).all(|(found, wanted)| *found == wanted)),
            Err(fault) => {
                let text = fault.to_string();
                assert!(text.starts_with("rank 0 of plot cannot read `t` of `a.nc`"), "{text}");
                assert!(text.contains("rank 0 of model has ended"), "{text}");
            }
        }
        std::thread::sleep(Duration::from_millis(700));
        let fault = get(&mut file, 0, &slab(&[0], &[VALUES])).unwrap_err();
        assert!(fault.to_string().contains("rank 0 of model has ended"), "{fault}");
    });
}
