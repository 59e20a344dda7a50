//! sieve: plans in words, parameters by measurement, grids of patterns, what is learned from them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Ran, Served, run, sluice};

fn json(ran: Ran) -> Value {
    serde_json::from_str(&ran.ok()).unwrap()
}

/// A small grid in a directory, with more arguments.
fn grid(dir: &Path, more: &[&str]) -> Command {
    grid_of_rounds(dir, "3", more)
}

fn grid_of_rounds(dir: &Path, rounds: &str, more: &[&str]) -> Command {
    let mut command = sluice();
    command.current_dir(dir).args(["sieve", "bench", ".", "--data", "8,1000", "--hole", "64,4096"]);
    command
        .args(["--file-size", "1MiB", "--turn-seconds", "0.0002", "--rounds", rounds])
        .args(more);
    command
}

fn ran(mut command: Command) -> Ran {
    command.stdin(Stdio::null()).output().expect("sluice starts").into()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_plan_is_explained_in_words_and_as_json() {
    let said = run(["sieve", "explain", "8,92", "--length", "80KiB", "--profile", "default"]).ok();
    for word in ["8,92 (regular", "window by window", "naive", "scanfile", "predicted", "default"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let arguments = ["sieve", "explain", "8:92, 16:4", "--write", "--method", "romio", "--json"];
    let plan = json(run(arguments));
    assert_eq!((plan["access"].as_str(), plan["method"].as_str()), (Some("write"), Some("romio")));
    assert_eq!(plan["view"]["tuples"], 2);
    assert_eq!(plan["methods"].as_array().unwrap().len(), 6);
    assert!(plan["groups"][0]["file_bytes"].as_u64().unwrap() > 0);
    // The cheapest first.
    let predicted = |number: usize| plan["methods"][number]["predicted_ns"].as_f64().unwrap();
    assert!(predicted(0) <= predicted(5));
}

#[test]
fn what_is_no_pattern_or_method_is_refused_with_the_reason() {
    let said = run(["sieve", "explain", "8:x"]).fails(1);
    assert!(said.contains("pattern `8:x`") && said.contains("size"), "{said}");
    let said = run(["sieve", "explain", "8,8", "--method", "best"]).fails(2);
    assert!(said.contains("no method `best`"), "{said}");
    let said = run(["sieve", "explain", "8,8", "--profile", "/nonexistent/p.toml"]).fails(1);
    assert!(said.contains("/nonexistent/p.toml"), "{said}");
    let said = run(["sieve", "explain", "8,8", "--offset", "8388607TiB", "--length", "8388607TiB"]);
    assert!(said.fails(1).contains("largest file offset"));
}

#[test]
fn parameters_are_measured_once_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    let with_config = |arguments: &[&str]| {
        let mut command = sluice();
        command.env("XDG_CONFIG_HOME", &config).current_dir(dir.path()).args(arguments);
        ran(command)
    };
    let tuned = json(with_config(&["sieve", "tune", ".", "--file-size", "16MiB", "--json"]));
    let file = tuned["file"].as_str().unwrap();
    assert!(fs::read_to_string(file).unwrap().contains("call_ns"));
    assert_eq!(names(dir.path()), ["config"], "nothing is left behind");
    let plan = json(with_config(&["sieve", "explain", "8,92", "--json"]));
    let origin = plan["parameters"].as_str().unwrap();
    assert!(origin.contains("measured"), "{origin}");
    let plan = json(with_config(&["sieve", "explain", "8,92", "--profile", file, "--json"]));
    assert_eq!(plan["parameters"].as_str().unwrap(), origin);
    let said = with_config(&["sieve", "tune", ".", "--file-size", "1MiB"]).fails(1);
    assert!(said.contains("--file-size"), "{said}");
}

#[test]
fn a_service_is_tuned_through_its_route() {
    let served = Served::new();
    let output = served.beside("p.toml");
    let arguments = ["sieve", "tune", &served.uri("d"), "--file-size", "16MiB", "--output"];
    run(arguments.into_iter().chain([output.to_str().unwrap()])).ok();
    let profile = fs::read_to_string(&output).unwrap();
    assert!(
        profile.contains("write_behind = false") && profile.contains("scdc+uds://"),
        "{profile}"
    );
    assert_eq!(run(["ls", "-a", &served.uri("d")]).ok(), "");
}

/// Sends a signal to a command as soon as a file of a kind is in a directory.
fn interrupt_when_there(mut command: Command, dir: &Path, prefix: &str) -> (Option<i32>, String) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("sluice starts");
    let began = Instant::now();
    while !names(dir).iter().any(|name| name.starts_with(prefix)) {
        assert!(began.elapsed() < Duration::from_secs(20), "no {prefix} appeared");
        std::thread::sleep(Duration::from_millis(2));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_interrupted_tuning_removes_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = sluice();
    command.args(["sieve", "tune"]).arg(dir.path()).args(["-o", "/dev/null"]);
    let (status, said) = interrupt_when_there(command, dir.path(), ".sluice-sieve");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn a_grid_is_measured_kept_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let told = json(ran(grid(dir.path(), &["--json"])));
    let groups = told["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "reading and writing");
    for group in groups {
        let cells = group["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 4);
        for cell in cells {
            assert_eq!(cell["methods"].as_array().unwrap().len(), 6, "{cell}");
            assert!(cell["regret"].as_f64().unwrap() >= 1.0);
        }
    }
    assert_eq!(names(dir.path()), ["sluice-sieve.html", "sluice-sieve.sqlite"]);
    let page = fs::read_to_string(dir.path().join("sluice-sieve.html")).unwrap();
    assert!(page.contains("<svg") && page.trim_end().ends_with("</html>"));

    let results = dir.path().join("sluice-sieve.sqlite");
    let results = results.to_str().unwrap();
    let learned = json(run(["sieve", "learn", results, "--json"]));
    assert_eq!(learned["cells"], 8);
    assert!(learned["learned"]["geomean"].as_f64().unwrap() >= 1.0);
    let said = run(["sieve", "explain", "500,500", "--learned", results]).ok();
    assert!(said.contains("learned from 8 measured patterns"), "{said}");
    let again = dir.path().join("again.html");
    run(["sieve", "page", results, "-o", again.to_str().unwrap()]).ok();
    assert_eq!(fs::read_to_string(again).unwrap(), page);
    assert!(run(["sieve", "page", results, "--run", "9"]).fails(1).contains("no such run"));
}

#[test]
fn an_interrupted_grid_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let slow = ["--cell-seconds", "1", "--no-page"];
    let mut command = grid_of_rounds(dir.path(), "400", &slow);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let is_first = |line: &Result<String, _>| line.as_ref().unwrap().starts_with("1/8 ");
    assert!(lines.any(|line| is_first(&line)), "a pattern is done");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(said.iter().any(|line| line.contains("--resume")), "{said:?}");
    assert_eq!(names(dir.path()), ["sluice-sieve.sqlite"]);
    let resumed = ran(grid_of_rounds(dir.path(), "400", &[&slow[..], &["--resume"]].concat()));
    assert_eq!(resumed.status, Some(0), "{}", resumed.err);
    assert!(resumed.err.contains("measured before"), "{}", resumed.err);
    assert!(resumed.out.contains("(run 1)"), "{}", resumed.out);
}

#[test]
fn a_simulated_grid_needs_no_file_and_says_the_same_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let simulated = |results: &str| {
        let mut command = sluice();
        command.current_dir(dir.path()).args(["sieve", "bench", "--simulate", "wr"]);
        command.args(["--servers", "2", "--stripe-size", "128KiB", "--aligned", "--data", "1,2"]);
        command.args(["--hole", "1,7", "--no-page", "--json", "--results", results]);
        json(ran(command))["groups"].clone()
    };
    let first = simulated("a.sqlite");
    assert_eq!(first.as_array().unwrap().len(), 2);
    assert_eq!(first[0]["cells"].as_array().unwrap().len(), 4);
    assert_eq!(first, simulated("b.sqlite"));
}

#[test]
fn a_program_beside_it_is_asked_for_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("other");
    let text = "#!/bin/sh\nwhile read -r what data rest; do echo 1000 0.5; done\n";
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let beside = format!("other={}", program.display());
    let told = json(ran(grid(dir.path(), &["--json", "--no-page", "--beside", &beside])));
    for group in told["groups"].as_array().unwrap() {
        let speed_ups = group["speed_ups"].as_array().unwrap();
        let other = speed_ups.iter().find(|entry| entry["method"] == "other").unwrap();
        assert!(other["min"].as_f64().unwrap() > 1.0, "{other}");
    }
    let wrong = ran(grid(dir.path(), &["--beside", "romio=true"])).fails(1);
    assert!(wrong.contains("called romio already"), "{wrong}");
}
