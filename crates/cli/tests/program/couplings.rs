//! couple: components started, configurations checked, ranks simulated, recordings explained.

use std::fs;

use serde_json::Value;

use crate::support::{Ran, run};

const RIGHT: &str = "[INFO]\nncomp=2\ncomp_name=\"model\"\ncomp_name=\"plot\"\n\
                     [FILE]\nfilename=\"0%/hist.%\"\nwriter=\"model\"\nreader=\"plot\"\niomode=\"memory\"\n";

fn couple(arguments: &[&str]) -> Ran {
    run(["couple"].iter().chain(arguments))
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&couple(arguments).ok()).expect("JSON")
}

#[test]
fn configurations_are_checked_and_said_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dtf.ini");
    let name = file.to_str().unwrap();
    fs::write(&file, RIGHT).unwrap();
    let said = couple(&["check", name, "--name", "01/hist.nc", "--name", "mean"]).ok();
    for word in [
        "2 components, 1 rule for files",
        "line 5    0%/hist.%  model → plot  transfer, range",
        "01/hist.nc: the rule of line 5",
        "mean: not exchanged",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let told = json(&["check", name, "--name", "01/hist.nc", "--json"]);
    assert_eq!(told["files"][0]["writers"][0], "model");
    assert_eq!(told["names"][0][1], 5);
    fs::write(&file, RIGHT.replace("writer=\"model\"", "writer=\"modle\"")).unwrap();
    let said = couple(&["check", name]).fails(1);
    assert!(said.contains(":7:8: there is no component `modle`; did you mean `model`?"), "{said}");
    let ran = couple(&["check", name, "--json"]);
    assert_eq!(ran.status, Some(1));
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["ok"], &told["diagnostics"][0]["line"]), (&false.into(), &7.into()));
}

#[test]
fn a_simulated_run_is_counted_recorded_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pattern");
    let name = file.to_str().unwrap();
    let shape = ["--grid", "8x8x8", "--writers", "2x1x1", "--readers", "1x2x1"];
    let arguments = ["simulate", "--json", "--cycles", "2", "--record", name];
    let told = json(&[&arguments[..], &shape].concat());
    let row = &told["rows"][0];
    // Every point has 16 doubles; each of two readers gets a quarter from each of two writers, in two cycles.
    assert_eq!(row["data_bytes"], 2 * 8 * 8 * 8 * 128);
    assert_eq!((&row["pairs"], &row["data_messages"]), (&32.into(), &8.into()));
    let told = json(&[&["simulate", "--json", "--cycles", "2", "--replay"][..], &shape].concat());
    assert!(told["rows"][0]["pairs"] == 16 && told["rows"][0]["data_messages"] == 8, "{told}");
    let told = json(&["explain", name, "--json", "--parts"]);
    assert_eq!(told["bytes"], 8 * 8 * 8 * 128);
    assert_eq!((told["pairs"].as_array().unwrap().len(), told["cycle"].as_u64()), (4, Some(1)));
    let part = &told["parts"][0];
    assert_eq!(
        (&part["from"]["component"], &part["variable"]),
        (&"writer".into(), &"yspecies".into())
    );
    let said = couple(&["explain", name]).ok();
    assert!(said.contains("writer 1 → reader 0    16.0 KiB  4 parts"), "{said}");
    fs::write(&file, "no recording").unwrap();
    let said = couple(&["explain", name]).fails(1);
    assert!(said.contains("no recording") && said.contains("--record FILE"), "{said}");
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    let said = couple(&["simulate", "--grid", "4x4"]).fails(2);
    assert!(said.contains("not three numbers"), "{said}");
    let said = couple(&["simulate", "--writers", "1048576x1x1"]).fails(1);
    assert!(said.contains("at most 65536 ranks"), "{said}");
}

/// A configuration of components that are scripts for sh(1), in a directory of its own.
fn components(scripts: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for (name, script) in scripts {
        text += &format!(
            "[[component]]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n"
        );
    }
    text += "[[file]]\nname = \"x\"\nbetween = [\"a\", \"b\"]\nmode = \"transfer\"\n";
    let path = directory.path().join("couple.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

const START: [&str; 3] = ["run", "--no-preload", "--json"];

#[test]
fn components_are_told_who_they_are() {
    let told = "echo \"$SLUICE_COUPLE_AS $SLUICE_COUPLE_WAIT\"; test -d \"$SLUICE_COUPLE_MEET/s\" && test -f \"$SLUICE_COUPLE\"";
    let (_directory, file) = components(&[("a", told), ("b", told)]);
    let out = couple(&[&START[..], &["--wait", "7", &file]].concat()).ok();
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines[..2], ["a 7", "b 7"]);
    let json: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!(json["components"][1]["name"], "b");
    assert_eq!(json["components"][1]["status"], 0);
    assert_eq!(json["files"], serde_json::json!([]));
}

#[test]
fn when_one_component_fails_the_others_are_ended_with_what_they_have_started() {
    let (directory, file) = components(&[
        ("a", "echo $$ > ended; sleep 300 & echo $! >> ended; wait"),
        (
            "b",
            "while ! test -s ended || test $(wc -l < ended) -lt 2; do sleep 0.05; done; kill -9 $$",
        ),
    ]);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("command", "directory = \".\"\ncommand")).unwrap();
    let said = couple(&[&START[..], &["--grace", "0", &file]].concat()).fails(137);
    assert!(said.contains("b has failed: signal 9; a is ended in 0 s at the latest"), "{said}");
    assert!(said.contains("a has failed: signal 15"), "{said}");
    for process in std::fs::read_to_string(directory.path().join("ended")).unwrap().lines() {
        let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
}

#[test]
fn what_cannot_be_started_is_said() {
    let (_directory, file) = components(&[("a", "exit 0"), ("b", "exit 0")]);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"sh\"", "\"/nonexistent/sh\"", 1)).unwrap();
    let said = couple(&[&START[..], &[&file]].concat()).fails(127);
    assert!(said.contains("a: /nonexistent/sh cannot be started"), "{said}");
    std::fs::write(&file, "components = [\"a\", \"b\"]\n").unwrap();
    let said = couple(&[&START[..], &[&file]].concat()).fails(1);
    assert!(said.contains("does not say how its components are started"), "{said}");
}

/// Starts one component by itself, with libraries that do nothing.
fn alone(directory: &std::path::Path, file: &str, name: &str, script: &str) -> std::process::Child {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libraries = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let libc = libraries.into_iter().find(|path| path.contains("libc.so")).unwrap();
    for library in ["libsluice.so", "libsluice_nc.so"] {
        let _ = std::os::unix::fs::symlink(libc, directory.join(library));
    }
    let mut command = crate::support::sluice();
    command.env("SLUICE_PRELOAD", directory.join("libsluice.so"));
    command.args(["run", "--couple", file, "--as", name, "--couple-meet"]);
    command.arg(directory.join("meet")).args(["--", "sh", "-c", script]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.spawn().unwrap()
}

fn ran(child: std::process::Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

#[test]
fn components_that_are_started_each_by_itself_meet_and_leave_word_of_their_end() {
    let (directory, file) = components(&[("a", "true"), ("b", "true")]);
    let directory = directory.path();
    let meet = directory.join("meet");
    let out = ran(alone(directory, &file, "b", "echo $SLUICE_COUPLE_AS; echo $LD_PRELOAD; exit 4"));
    assert_eq!(out.status, Some(4), "{}", out.err);
    assert!(out.out.starts_with("b\n") && out.out.contains("libsluice_nc.so"), "{}", out.out);
    assert_eq!(std::fs::read_to_string(meet.join("ended/1")).unwrap(), "exit status 4");
    // Whoever comes first begins anew; who comes while another is there finds it.
    let wait = "while ! test -e \"$SLUICE_COUPLE_MEET/go\"; do sleep 0.05; done";
    let first = alone(directory, &file, "b", wait);
    while meet.join("ended/1").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let twice = ran(alone(directory, &file, "b", "true")).fails(125);
    assert!(twice.contains("component `b` is running already"), "{twice}");
    ran(alone(directory, &file, "a", "true")).ok();
    assert_eq!(std::fs::read_to_string(meet.join("ended/0")).unwrap(), "exit status 0");
    std::fs::write(meet.join("go"), "").unwrap();
    ran(first).ok();
    assert!(meet.join("ended/0").exists() && meet.join("ended/1").exists());
    let said = ran(alone(directory, &file, "c", "true")).fails(125);
    assert!(said.contains("has no component `c`, but a, b"), "{said}");
}
