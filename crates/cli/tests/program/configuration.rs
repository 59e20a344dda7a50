//! Configuration, doctor, completions, manual pages.

use std::fs;

use crate::support::{Served, run, sluice};

#[test]
fn a_wrong_file_is_told_by_line_and_nearest_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    fs::write(&file, "[client]\nread_ahed_bytes = 1\n").unwrap();
    let said = run(["ls", "--config", file.to_str().unwrap()]).fails(1);
    let expected = format!(
        "sluice: {}:2:1: unknown key `read_ahed_bytes`; did you mean `read_ahead_bytes`?\n",
        file.display()
    );
    assert_eq!(said, expected);
    fs::write(&file, "[client]\nread_ahed_bytes = 1\nmsize_bytes = 1\n[rutes]\n").unwrap();
    let said = run(["ls", "--config", file.to_str().unwrap()]).fails(1);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    for (line, at) in lines.iter().zip(["2:1", "3:15", "4:2"]) {
        assert!(line.starts_with(&format!("sluice: {}:{at}: ", file.display())), "{line}");
    }
    assert!(run(["ls", "--config", "/no/such.toml"]).fails(1).contains("/no/such.toml (--config)"));
}

#[test]
fn the_strongest_source_wins() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, seconds: u32| {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("[client]\nreconnect_seconds = {seconds}\n")).unwrap();
        path
    };
    let user = write("xdg/sluice/sluice.toml", 1);
    let in_force = |change: &dyn Fn(&mut std::process::Command)| {
        let mut command = sluice();
        command
            .current_dir(dir.path())
            .env("XDG_CONFIG_HOME", dir.path().join("xdg"))
            .args(["doctor", "--json"]);
        change(&mut command);
        let out = command.output().unwrap().stdout;
        let findings: serde_json::Value = serde_json::from_slice(&out).unwrap();
        (
            findings["client"]["reconnect_seconds"].as_u64().unwrap(),
            findings["config"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(in_force(&|_| {}), (1, user.display().to_string()));
    write("sluice.toml", 2);
    assert_eq!(in_force(&|_| {}).0, 2);
    let variable = write("v.toml", 3);
    let with_variable = |command: &mut std::process::Command| {
        command.env("SLUICE_CONFIG", &variable);
    };
    assert_eq!(in_force(&with_variable).0, 3);
    let flag = write("f.toml", 4);
    let with_flag = |command: &mut std::process::Command| {
        with_variable(command);
        command.arg("--config").arg(&flag);
    };
    assert_eq!(in_force(&with_flag).0, 4);
    let with_key = |command: &mut std::process::Command| {
        with_flag(command);
        command.args(["--reconnect-seconds", "5"]);
    };
    assert_eq!(in_force(&with_key).0, 5);
}

#[test]
fn doctor_reaches_every_route_and_says_which_is_broken() {
    let served = Served::new();
    let good = format!("/good={}", served.uri("d"));
    let ran = run(["doctor", "--json", "--map", &good, "--map", "/etc=scdc+tcp://127.0.0.1:1/x"]);
    assert_eq!(ran.status, Some(1));
    let findings: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let routes = findings["routes"].as_array().unwrap();
    let route = |prefix: &str| routes.iter().find(|route| route["prefix"] == prefix).unwrap();
    assert_eq!(route("/good")["ok"], true);
    assert!(route("/good")["round_trip_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(route("/etc")["ok"], false);
    assert!(route("/etc")["error"].as_str().unwrap().contains("refused"));
    assert_eq!(route("/etc")["hides"], "a local directory");
    let text = run(["doctor", "--map", &good]).out;
    assert!(text.contains("ok    route /good"), "{text}");
    let wrong = format!("/wrong={}", served.uri("none"));
    let ran = run(["doctor", "--map", &wrong, "--store", "s=/no/such/directory"]);
    let listing = format!("`sluice ls {}` shows", served.uri(""));
    assert!(ran.out.contains(&listing), "{}", ran.out);
    assert!(ran.out.contains("/no/such/directory: it does not exist; make"), "{}", ran.out);
}

#[test]
fn completions_and_pages_know_every_command() {
    let script = run(["completions", "bash"]).ok();
    let page = run(["man"]).ok();
    let dir = tempfile::tempdir().unwrap();
    run(["man", dir.path().join("man1").to_str().unwrap()]).ok();
    for command in ["run", "serve", "ls", "cat", "cp", "rm", "stat", "mkdir", "doctor"] {
        assert!(
            script.contains(&format!("sluice__subcmd__{command}"))
                || script.contains(&format!("sluice__{command}"))
        );
        assert!(page.contains(command));
        assert!(dir.path().join(format!("man1/sluice-{command}.1")).exists());
        assert!(run([command, "--help"]).ok().contains("Usage: sluice"));
    }
    let page = fs::read_to_string(dir.path().join("man1/sluice-run.1")).unwrap();
    assert!(page.contains("\nsluice run [OPTIONS] [\\-\\-] PROGRAM [ARGUMENT]...\n"), "{page}");
    assert!(page.contains(".TH sluice-run 1"), "{page}");
    // Each option says what it does, those that `-h` leaves out too.
    assert!(page.contains("Most bytes read ahead"), "{page}");
}

#[test]
fn the_short_help_leaves_out_what_experts_tune() {
    for command in ["run", "serve", "cp", "ls"] {
        let (short, long) = (run([command, "-h"]).ok(), run([command, "--help"]).ok());
        for option in ["--read-ahead-bytes", "--msize-bytes", "--reconnect-seconds"] {
            assert!(!short.contains(option) && long.contains(option), "{command} {option}");
        }
        assert!(short.contains("Where files are:\n      --map"), "{short}");
    }
    let long = run(["serve", "--help"]).ok();
    assert!(!run(["serve", "-h"]).ok().contains("--fids-max") && long.contains("Limits:"));
}

#[test]
fn a_wrong_command_line_is_2() {
    assert!(run(["lss"]).fails(2).contains("similar"));
    run(["cp", "one"]).fails(2);
}
