//! A C program that is linked with the archive, as the crate's text says, and started by itself: without
//! `sluice run`, without `LD_PRELOAD`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use service::{Listen, Service};
use store::fs::FsStore;
use store::{Exports, Store};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn run(command: &mut Command) -> String {
    let output = command.output().expect("started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}{errors}", output.status);
    text
}

/// Builds the archive alone: together with the other crates of the workspace it would get their features
/// and define libc's names. What is built already is used again.
fn archive() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    run(Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "preload-static", "--target-dir"])
        .arg(target)
        .current_dir(HERE));
    target.join("debug/libsluice_static.a")
}

fn link(directory: &Path, archive: &Path) -> PathBuf {
    let program = directory.join("copy");
    run(Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(Path::new(HERE).join("tests/copy.c"))
        .arg("-Wl,-u,sluice_start")
        .arg(archive)
        .args(["-lpthread", "-ldl", "-lm"]));
    program
}

#[test]
fn a_program_linked_with_the_archive_reads_and_writes_files_of_a_service() {
    let directory = tempfile::tempdir().expect("a directory");
    let export = directory.path().join("export");
    std::fs::create_dir(&export).expect("mkdir");
    let content: Vec<u8> = (0_u32..3_000_017).map(|at| (at / 7 % 251) as u8).collect();
    std::fs::write(export.join("in"), &content).expect("write");
    let store: Arc<dyn Store> = Arc::new(FsStore::new(&export).expect("a store"));
    let exports = Exports::new([(b"store".to_vec(), store)]).expect("exports");
    let socket = directory.path().join("store.sock");
    let _service = Service::builder(Arc::new(exports))
        .listen(Listen::Unix(socket.clone()))
        .start()
        .expect("a service");

    let program = link(directory.path(), &archive());
    let address = |name: &str| format!("scdc+uds://{}/store/{name}", socket.display());
    let copy = || {
        let mut command = Command::new(&program);
        command.env_remove("LD_PRELOAD").env_remove("SLUICE_SETTINGS").current_dir(&export);
        command
    };
    let said = run(copy().arg(address("in")).arg(address("out")).arg("in"));
    assert_eq!(said, "3000017 bytes\n");
    assert!(std::fs::read(export.join("out")).expect("out") == content, "other bytes arrived");
    // Local files are what they were, and each side can be either.
    run(copy().arg("in").arg(address("up")).arg("in"));
    run(copy().arg(address("up")).arg("down").arg("in"));
    assert!(std::fs::read(export.join("down")).expect("down") == content, "other bytes came back");
    let names: Vec<_> = std::fs::read_dir(&export)
        .expect("a list")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names.len(), 4, "no address was taken for a local name: {names:?}");
    // What fails there fails here, with the number of the call.
    let refused =
        copy().arg(address("in")).arg(address("out")).arg("in").output().expect("started");
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("File exists"), "{refused:?}");
}
