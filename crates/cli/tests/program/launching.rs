//! run: what is started, what is refused, and what the program is told.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use address::Settings;

use crate::support::{CHILDREN, Ran, sluice};

/// Any shared library will do where only the launcher is looked at.
fn some_library() -> String {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let libraries = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    libraries.into_iter().find(|path| path.contains("libc.so")).expect("glibc").to_owned()
}

fn run_with(library: &str, arguments: &[&str]) -> Ran {
    sluice().env("SLUICE_PRELOAD", library).arg("run").args(arguments).output().unwrap().into()
}

fn run(arguments: &[&str]) -> Ran {
    run_with(&some_library(), arguments)
}

fn executable(dir: &Path, name: &str, content: &[u8]) -> String {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A 64-bit ELF header of a machine, and no program headers: what a static program is to the launcher.
fn bare_elf(class: u8, machine: u16) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
    header[16] = 2;
    header[18..20].copy_from_slice(&machine.to_le_bytes());
    header[if class == 2 { 54 } else { 42 }] = if class == 2 { 56 } else { 32 };
    header
}

#[test]
fn the_program_is_told_everything_in_one_variable() {
    let out = run(&[
        "--map",
        "/far=scdc+tcp://h/b",
        "--store",
        "s=relative",
        "--msize-bytes",
        "64KiB",
        "--no-patch",
        "--",
        "env",
        "-0",
    ])
    .ok();
    let variable = |name: &str| {
        out.split('\0').find_map(|line| line.strip_prefix(&format!("{name}="))).map(str::to_owned)
    };
    let settings = Settings::from_env(variable("SLUICE_SETTINGS").unwrap().as_bytes()).unwrap();
    assert_eq!(settings.routes.iter().next().unwrap().prefix(), b"/far");
    assert_eq!(settings.stores[0].place, address::StorePlace::Dir("/relative".into()));
    assert_eq!(settings.client.msize_bytes, 65536);
    assert_eq!(variable("LD_PRELOAD").unwrap(), some_library());
    assert_eq!(variable("SLUICE_PATCH").unwrap(), "0");
}

#[test]
fn an_inner_run_keeps_the_routes_of_the_outer_one() {
    let inner = format!("{} run --map /b=scdc:///y -- env -0", env!("CARGO_BIN_EXE_sluice"));
    let out =
        run(&["--map", "/a=scdc:///x", "--map", "/b=scdc:///x", "--", "sh", "-c", &inner]).ok();
    let value = out.split('\0').find_map(|line| line.strip_prefix("SLUICE_SETTINGS=")).unwrap();
    let settings = Settings::from_env(value.as_bytes()).unwrap();
    let mut routes: Vec<String> =
        settings.routes.iter().map(|route| route.uri().to_string()).collect();
    routes.sort();
    assert_eq!(routes, ["scdc:///x", "scdc:///y"]);
}

#[test]
fn the_exit_status_and_arguments_are_the_programs() {
    run(&["--", "sh", "-c", "exit 42"]).fails(42);
    assert_eq!(run(&["printf", "%s|", "-r", "--map", "x y"]).ok(), "-r|--map|x y|");
}

#[test]
fn an_unknown_option_is_no_program() {
    let said = run(&["--no-pach", "true"]).fails(2);
    assert!(said.contains("unexpected argument '--no-pach'") && said.contains("'--no-patch'"));
    assert!(said.contains("Usage: sluice run [OPTIONS] [--] PROGRAM [ARGUMENT]..."), "{said}");
    assert!(run(&["--", "--no-pach"]).fails(127).contains("--no-pach: no such program"));
}

#[test]
fn what_is_not_there_is_127() {
    assert!(
        run(&["--", "no-such-program"]).fails(127).contains("no-such-program: no such program")
    );
    run(&["--", "/no/such/program"]).fails(127);
    let dir = tempfile::tempdir().unwrap();
    let script = executable(dir.path(), "script", b"#!/no/such/interpreter\n");
    assert!(run(&["--", &script]).fails(127).contains("/no/such/interpreter does not exist"));
    let script = executable(dir.path(), "env-script", b"#!/usr/bin/env no-such-interpreter\n");
    assert!(run(&["--", &script]).fails(127).contains("no-such-interpreter"));
}

#[test]
fn what_cannot_be_executed_is_126() {
    let dir = tempfile::tempdir().unwrap();
    assert!(run(&["--", dir.path().to_str().unwrap()]).fails(126).contains("directory"));
    run(&["--", "/etc/passwd"]).fails(126);
}

#[test]
fn static_programs_are_refused_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let program = executable(
        dir.path(),
        "static",
        &bare_elf(2, if cfg!(target_arch = "aarch64") { 183 } else { 62 }),
    );
    let said = run(&["--", &program]).fails(126);
    assert!(said.contains("statically linked") && said.contains("sluice cp"), "{said}");
    let script = executable(dir.path(), "script", format!("#!{program}\n").as_bytes());
    assert!(run(&["--", &script]).fails(126).contains("statically linked"));
}

#[test]
fn a_real_static_program_is_refused_before_it_touches_anything() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("t.c");
    fs::write(
        &source,
        "#include <stdio.h>\nint main(int n, char **v) { return fopen(v[1], \"w\") == 0; }\n",
    )
    .unwrap();
    let program = dir.path().join("t");
    let built = std::process::Command::new("cc")
        .arg("-static")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    if !built.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no static C library here");
        return;
    }
    let touched = dir.path().join("touched");
    run(&["--", program.to_str().unwrap(), touched.to_str().unwrap()]).fails(126);
    assert!(!touched.exists());
}

#[test]
fn programs_of_other_machines_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let program = executable(dir.path(), "other", &bare_elf(1, 3));
    assert!(run(&["--", &program]).fails(126).contains("32-bit x86"));
}

#[test]
fn privileged_programs_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("true");
    fs::copy("/bin/true", &program).unwrap();
    if std::os::unix::fs::chown(&program, Some(1), Some(1)).is_err() {
        eprintln!("skipped: only root can make a program of another user's");
        return;
    }
    for (mode, bit) in [(0o4755, "set-user-id"), (0o2755, "set-group-id")] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let said = run(&["--", program.to_str().unwrap()]).fails(126);
        assert!(said.contains(bit) && said.contains("sluice cp"), "{said}");
    }
    // With the bits gone, the same file is carried.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    run(&["--", program.to_str().unwrap()]).ok();
}

#[test]
fn a_missing_or_wrong_library_is_told_and_nothing_is_started() {
    let dir = tempfile::tempdir().unwrap();
    let touched = dir.path().join("touched");
    let touch = ["--", "touch", touched.to_str().unwrap()];
    assert!(
        run_with("/no/libsluice.so", &touch).fails(125).contains("cannot read the preload library")
    );
    assert!(run_with("/etc/passwd", &touch).fails(125).contains("not a shared library"));
    let spaced = dir.path().join("a b.so");
    fs::copy(some_library(), &spaced).unwrap();
    assert!(run_with(spaced.to_str().unwrap(), &touch).fails(125).contains("a space or a colon"));
    assert!(!touched.exists());
}

#[test]
fn a_malformed_map_starts_nothing() {
    assert!(run(&["--map", "/far", "--", "true"]).fails(125).contains("write PREFIX=URI"));
    assert!(run(&["--map", "far=scdc:///x", "--", "true"]).fails(125).contains("absolute path"));
}

#[test]
fn a_program_with_a_dataset_is_told_a_socket_and_ends_as_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let text = "dataset { var a int32 }\nview v { var a = a }\nreplica one { view v }\n";
    let path = dir.path().join("x.drepl");
    fs::write(&path, text).unwrap();
    let layout = format!("/views={}", path.display());
    let start = |arguments: &[&str]| {
        let mut command = sluice();
        command.env("SLUICE_PRELOAD", some_library()).args(["run", "--layout", &layout, "--"]);
        command.args(arguments).output().unwrap()
    };
    let out: Ran = start(&["env", "-0"]).into();
    let out = out.ok();
    let settings = out.split('\0').find_map(|line| line.strip_prefix("SLUICE_SETTINGS=")).unwrap();
    let settings = Settings::from_env(settings.as_bytes()).unwrap();
    let address::StorePlace::Relay(uri) = &settings.stores[0].place else { panic!("{settings:?}") };
    assert_eq!((&settings.stores[0].name[..], uri.path.as_bytes()), (&b"x"[..], &b"x"[..]));
    let route = settings.routes.iter().next().unwrap();
    assert_eq!(route.uri().to_string(), "scdc:///x");
    let address::Endpoint::Unix(address::SocketName::Path(socket)) = &uri.endpoint else {
        panic!("{uri}")
    };
    assert!(!socket.exists(), "the socket went with the program");
    assert_eq!(fs::metadata(dir.path().join("one")).unwrap().len(), 4);

    assert_eq!(start(&["sh", "-c", "exit 41"]).status.code(), Some(41));
    let status = start(&["sh", "-c", "kill -TERM $$"]).status;
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
    // Nothing of it is left in the way of the next.
    assert_eq!(start(&["true"]).status.code(), Some(0));
}

#[test]
fn the_agent_for_object_stores_is_no_child_of_the_program() {
    let runtime = tempfile::tempdir().unwrap();
    let mut command = sluice();
    command.env("SLUICE_PRELOAD", some_library()).env("XDG_RUNTIME_DIR", runtime.path());
    command.env("SLUICE_OBJECTS_LINGER", "0");
    command.args(["run", "--objects", "--", "python3", "-c", CHILDREN]);
    assert_eq!(Ran::from(command.output().unwrap()).ok(), "no children\n");
    // It ends by itself, also where nobody could find it any more.
    let name = runtime.path().to_str().unwrap().to_owned();
    drop(runtime);
    let is_agent = |entry: fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&name)
    };
    let is_there = || fs::read_dir("/proc").unwrap().flatten().any(is_agent);
    for _ in 0..300 {
        if !is_there() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("the agent is still there");
}
