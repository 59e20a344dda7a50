//! The interface as C sees it: a program against `nct.h`, linked with the shared and with the static
//! library, and both sides' idea of every struct.

use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use sluice_nct::{NctDecision, NctInfo, NctStep, NctTuple, NctTuple64};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/nct_check.c")
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// Where cargo puts the libraries that it builds for a test: beside the test itself.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a path of its own");
    test.parent().expect("a directory").to_owned()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

/// Builds the program with what is needed to link `library`, and runs it.
fn checked(name: &str, link: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]).arg(include());
    run(cc.arg(source()).arg("-o").arg(&program).arg("-L").arg(libraries()).args(link));
    run(Command::new(&program)
        .arg(directory.path().join("data"))
        .env("LD_LIBRARY_PATH", libraries()))
}

#[test]
fn a_c_program_with_the_shared_library() {
    let said = checked("shared", &["-lsluice_nct"]);
    assert!(said.ends_with("ok\n"), "{said}");
    let layouts = format!(
        "tuple {}\ntuple64 {}\ninfo {} dsMethod {}\nstep {} buffsize {}\ndecision {}\nok\n",
        size_of::<NctTuple>(),
        size_of::<NctTuple64>(),
        size_of::<NctInfo>(),
        offset_of!(NctInfo, ds_method),
        size_of::<NctStep>(),
        offset_of!(NctStep, buffsize),
        size_of::<NctDecision>(),
    );
    assert_eq!(said, layouts);
}

#[test]
fn a_c_program_with_the_static_library() {
    // What Rust's own library wants of the system: `rustc --print native-static-libs`.
    let link = ["-l:libsluice_nct.a", "-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];
    assert!(checked("static", &link).ends_with("ok\n"));
}

#[test]
fn the_header_is_strict_c99_and_cxx() {
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++11")] {
        let mut cc = Command::new("cc");
        cc.args(["-x", language, standard, "-pedantic-errors", "-Wall", "-Wextra", "-Werror"]);
        run(cc.arg("-fsyntax-only").arg(include().join("nct.h")));
    }
}
