//! layout: definitions checked and formatted.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{Ran, Service, run_with_input, sluice};

const RIGHT: &str = "dataset {\n    var a int32\n}\nview v {\n    var a = a\n}\n";

fn layout(dir: &Path, arguments: &[&str]) -> Ran {
    let mut command: Command = sluice();
    command.current_dir(dir).arg("layout").args(arguments);
    command.output().expect("sluice starts").into()
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

#[test]
fn a_right_definition_is_counted_and_a_wrong_one_is_shown_with_its_line() {
    let wrong = RIGHT.replace("= a", "= b");
    let dir = directory(&[("right.drepl", RIGHT), ("wrong.drepl", &wrong)]);
    let said = layout(dir.path(), &["check", "right.drepl"]).ok();
    assert_eq!(said, "right.drepl: 1 variable, 1 view, 0 replicas\n");
    let ran = layout(dir.path(), &["check", "wrong.drepl", "right.drepl"]);
    // The right one is looked at nevertheless.
    assert!(ran.out.contains("right.drepl: 1 variable"), "{}", ran.out);
    let said = ran.fails(1);
    for word in ["wrong.drepl:5:13", "var a = b", "there is no variable of the dataset `b`"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains('\u{1b}'), "colour, though this is no terminal: {said}");
}

#[test]
fn diagnostics_for_programs_have_places_and_suggestions() {
    let dir = directory(&[("x.drepl", "dataset {\n  var a, a int32\n  var b flaot32\n}\n")]);
    let ran = layout(dir.path(), &["check", "--json", "x.drepl"]);
    assert_eq!((ran.status, &*ran.err), (Some(1), ""));
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&said["file"], &said["ok"], &said["omitted"]),
        (&"x.drepl".into(), &false.into(), &0.into())
    );
    let [twice, unknown] = &said["diagnostics"].as_array().unwrap()[..] else { panic!("{said}") };
    assert_eq!((&twice["code"], &twice["severity"]), (&"duplicate-name".into(), &"error".into()));
    assert_eq!(
        (&twice["line"], &twice["column"], &twice["end_column"]),
        (&2.into(), &10.into(), &11.into())
    );
    assert_eq!(twice["related"][0]["column"], 7);
    assert_eq!(unknown["help"], "did you mean `float32`?");
    let said: Value =
        serde_json::from_str(&layout(dir.path(), &["check", "--json", "none"]).out).unwrap();
    assert_eq!(said["diagnostics"][0]["code"], "source");
}

#[test]
fn files_are_included_from_beside_the_one_that_names_them() {
    let dir = directory(&[
        ("run/main.drepl", "dataset \"../data.drepl\"\nview \"views/v.drepl\"\n"),
        ("data.drepl", "dataset { var a int32 }\n"),
        ("run/views/v.drepl", "view v { var a = a }\n"),
    ]);
    let said = layout(dir.path(), &["check", "run/main.drepl"]).ok();
    assert_eq!(said, "run/main.drepl: 1 variable, 1 view, 0 replicas\n");
    fs::write(dir.path().join("run/views/v.drepl"), "view v { var a = b }\n").unwrap();
    assert!(
        layout(dir.path(), &["check", "run/main.drepl"])
            .fails(1)
            .contains("run/views/v.drepl:1:18")
    );
    // By another path it is the same file.
    symlink(dir.path(), dir.path().join("run/views/up")).unwrap();
    fs::write(dir.path().join("run/views/v.drepl"), "view \"up/run/main.drepl\"\n").unwrap();
    let said = layout(dir.path(), &["check", "run/main.drepl"]).fails(1);
    assert!(said.contains("`run/main.drepl` includes itself"), "{said}");
}

#[test]
fn what_is_no_text_or_no_file_is_refused() {
    let dir = directory(&[]);
    fs::write(dir.path().join("binary"), [0u8, 255, 1]).unwrap();
    assert!(layout(dir.path(), &["check", "binary"]).fails(1).contains("not UTF-8 text: byte 1"));
    assert!(layout(dir.path(), &["check", "."]).fails(1).contains("no regular file"));
    assert!(layout(dir.path(), &["check", "/dev/zero"]).fails(1).contains("no regular file"));
    let large = fs::File::create(dir.path().join("large")).unwrap();
    large.set_len((16 << 20) + 1).unwrap();
    assert!(layout(dir.path(), &["check", "large"]).fails(1).contains("larger than 16 MiB"));
    assert!(layout(dir.path(), &["fmt", "large"]).fails(1).contains("larger than 16 MiB"));
}

#[test]
fn definitions_are_formatted_on_standard_output_in_place_or_not_at_all() {
    let untidy = RIGHT.replace("    ", "  ").replace("int32", "int32 ;");
    let dir = directory(&[("tidy.drepl", RIGHT), ("untidy.drepl", &untidy)]);
    let path = dir.path().join("untidy.drepl");
    assert_eq!(layout(dir.path(), &["fmt", "untidy.drepl"]).ok(), RIGHT);
    let ran = layout(dir.path(), &["fmt", "--check", "tidy.drepl", "untidy.drepl"]);
    assert_eq!((ran.status, &*ran.out), (Some(1), "untidy.drepl\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), untidy);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("untidy.drepl", dir.path().join("link.drepl")).unwrap();
    assert_eq!(layout(dir.path(), &["fmt", "--write", "link.drepl", "tidy.drepl"]).ok(), "");
    assert_eq!(fs::read_to_string(&path).unwrap(), RIGHT);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(dir.path().join("link.drepl").is_symlink());
    layout(dir.path(), &["fmt", "--check", "tidy.drepl", "untidy.drepl"]).ok();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "a file was left behind");
}

#[test]
fn what_is_not_understood_is_shown_and_left_alone() {
    let dir = directory(&[("wrong.drepl", "dataset { var }\n"), ("untidy.drepl", "dataset{}")]);
    let said = layout(dir.path(), &["fmt", "--write", "wrong.drepl", "untidy.drepl"]).fails(1);
    assert!(said.contains("wrong.drepl:1:15"), "{said}");
    assert_eq!(fs::read_to_string(dir.path().join("wrong.drepl")).unwrap(), "dataset { var }\n");
    // The others are formatted nevertheless.
    assert_eq!(fs::read_to_string(dir.path().join("untidy.drepl")).unwrap(), "dataset {}\n");
    let ran: Ran = run_with_input(["layout", "fmt", "-"], b"dataset{var a int8}").into();
    assert_eq!(ran.ok(), "dataset { var a int8 }\n");
    let ran: Ran = run_with_input(["layout", "check", "-"], b"dataset{var a int8}").into();
    assert_eq!(ran.ok(), "-: 1 variable, 0 views, 0 replicas\n");
}

const STORED: &str = "// Numbers.
dataset {
    var a [1000]int32
}
view v { var a = a } // all
replica one { view v }
";

#[test]
fn views_and_replicas_come_and_go_with_and_without_a_service() {
    for is_served in [false, true] {
        let dir = directory(&[("x.drepl", STORED)]);
        let service = is_served.then(|| {
            let mut command = sluice();
            let socket = dir.path().join("s.sock");
            command.current_dir(dir.path()).args(["serve", "x=x.drepl", "--listen"]);
            command.arg(format!("unix:{}", socket.display()));
            Service::start(command)
        });
        let uri = service.as_ref().map(|service| format!("{}/x", service.uris[0]));
        let target = uri.as_deref().unwrap_or("x.drepl");
        let said = layout(
            dir.path(),
            &[
                "add",
                "x.drepl",
                "view  back { var a[i] = a[999 - i] }",
                "replica two { view back }",
            ],
        );
        assert_eq!(said.ok(), "x.drepl: added view back\nx.drepl: two: made, and up to date\n");
        assert_eq!(fs::metadata(dir.path().join("two")).unwrap().len(), 4000);
        layout(dir.path(), &["add", "-q", target, "view w { var a = a }"]).ok();
        let text = fs::read_to_string(dir.path().join("x.drepl")).unwrap();
        assert!(text.starts_with(STORED) && text.contains("\nview back { var"), "{text}");

        let said = layout(dir.path(), &["remove", target, "v"]).fails(1);
        assert!(said.contains("replica `one` stores view `v`"), "{said}");
        let said = layout(dir.path(), &["add", target, "view w { var a = a }"]).fails(1);
        assert!(said.contains('w') && said.contains("x.drepl:"), "{said}");
        let said = layout(dir.path(), &["remove", "x.drepl", "--replica", "one"]).ok();
        assert_eq!(said, "x.drepl: removed replica one\n");
        layout(dir.path(), &["remove", "x.drepl", "v", "w"]).ok();
        assert!(dir.path().join("one").exists(), "files stay");

        let status = layout(dir.path(), &["status", "--json", target]).ok();
        let status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["in_use"], is_served);
        assert_eq!(status["replicas"][0]["name"], "two");
        assert_eq!(status["replicas"].as_array().unwrap().len(), 1);
        if let Some(service) = service {
            let names: Ran = sluice().args(["ls", target]).output().unwrap().into();
            assert_eq!(names.ok(), "back\n");
            service.signal(rustix::process::Signal::TERM);
            assert_eq!(service.wait(), Some(0));
        }
        assert!(!dir.path().join(".x.drepl.sluice/service").exists());
    }
}

#[test]
fn what_stands_in_an_included_file_is_removed_there() {
    let dir = directory(&[("x.drepl", STORED), ("more.drepl", "view w { var a = a }\n")]);
    fs::write(dir.path().join("x.drepl"), format!("{STORED}view \"more.drepl\"\n")).unwrap();
    let said = layout(dir.path(), &["remove", "x.drepl", "w"]).fails(1);
    assert!(said.contains("more.drepl") && said.contains("remove it there"), "{said}");
}

#[test]
fn elements_that_no_replica_stores_are_told_before_anything_is_served() {
    let dataset = "dataset {\n    type P struct { a, b float32 }\n    var d [10]P\n    var n int32\n}\n\
        view all { var d = d; var n = n }\n\
        view odd { var d [i] = d[2*i + 1] }\n\
        view even { var d [i] = d[2*i]; var n = n }\n";
    let check = |replicas: &str| {
        let dir = directory(&[("x.drepl", &format!("{dataset}{replicas}\n"))]);
        layout(dir.path(), &["check", "x.drepl"])
    };
    check("replica r { view odd; view even }").ok();
    check("replica r { view odd }; replica s { view even }").ok();
    check("replica r complete { view odd }").ok();
    let said = check("replica r { view even }").fails(1);
    // Five points of two numbers.
    let words = ["x.drepl:6:16", "stores 40 bytes of `d` in the view `all`", "`odd`"];
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains("`even`"), "{said}");
    // What is written later does not keep what a read needs at once.
    let said = check("replica r { view odd }; replica s async { view even }").fails(1);
    assert!(said.contains("in the view `even`") && said.contains("`n`"), "{said}");
    let dir = directory(&[("x.drepl", &format!("{dataset}replica r {{ view even }}\n"))]);
    let ran = layout(dir.path(), &["check", "--json", "x.drepl"]);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.status, &told["ok"]), (Some(1), &false.into()), "{told}");
    assert_eq!(told["diagnostics"][0]["code"], "coverage");
    assert_eq!(told["diagnostics"][0]["line"], 6);
}

#[test]
fn replicas_that_cannot_be_laid_out_are_told_before_anything_is_served() {
    let text = "dataset { var n int32; var d [n]float64 }\nview v { var n = n; var d = d }\n\
        replica \"r.h5\" hdf5 { view v }\n";
    let dir = directory(&[("x.drepl", text)]);
    let said = layout(dir.path(), &["check", "x.drepl"]).fails(1);
    assert!(said.contains("x.drepl:3:9") && said.contains("variable size"), "{said}");
}
