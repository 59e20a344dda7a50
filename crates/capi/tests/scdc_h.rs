//! `scdc.h` as programs have it: services and clients in C, over function calls, sockets and a relay.

#[path = "house/house.rs"]
mod house;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use house::{Installed, here, output, run};

fn program(installed: &Installed, name: &str) -> PathBuf {
    let source = [here().join("tests/programs").join(format!("{name}.c"))];
    let strict = ["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-nonnull", "-pthread"];
    installed.build("cc", &source, &strict, name)
}

/// A program that serves until its standard input ends.
struct Serving(Child);

impl Serving {
    fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let said = child.stdout.as_mut().expect("piped");
        BufReader::new(said).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Self(child)
    }

    /// Ends it; it must have found nothing wrong.
    fn end(mut self) {
        drop(self.0.stdin.take());
        let ended = self.0.wait_with_output().expect("an end");
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    }
}

fn serve(installed: &Installed, check: &Path, socket: &Path) -> Serving {
    Serving::start(installed.command(check).arg("serve").arg(socket))
}

#[test]
fn a_program_serves_and_uses_commands_within_itself_and_over_sockets_and_a_relay() {
    let installed = Installed::new();
    let check = program(&installed, "scdc_check");
    assert_eq!(run(installed.command(&check).arg("direct")), "ok\n");
    let (socket, relay) = (installed.path("s.sock"), installed.path("r.sock"));
    let serving = serve(&installed, &check, &socket);
    let uri = format!("scdc+uds://{}", socket.display());
    assert_eq!(run(installed.command(&check).args(["use", &uri])), "ok\n");
    let mut relaying = installed.command(&check);
    let relaying = Serving::start(relaying.arg("relay").arg(&relay).arg(&uri));
    let far = format!("scdc+uds://{}/far", relay.display());
    assert_eq!(run(installed.command(&check).args(["use", &far])), "ok\n");
    relaying.end();
    serving.end();
}

#[test]
fn bad_input_is_an_error_and_no_crash() {
    let installed = Installed::new();
    let program = program(&installed, "bad_scdc");
    assert_eq!(run(&mut installed.command(&program)), "ok\n");
}

#[test]
fn nothing_is_leaked_or_read_that_is_not_there() {
    if output(Command::new("sh").args(["-c", "command -v valgrind"])).stdout.is_empty() {
        eprintln!("valgrind is not installed; nothing was checked");
        return;
    }
    let installed = Installed::new();
    for (name, arguments) in [("bad_scdc", &[][..]), ("scdc_check", &["direct"])] {
        let program = program(&installed, name);
        let mut valgrind = installed.command(Path::new("valgrind"));
        valgrind.args([
            "-q",
            "--error-exitcode=9",
            "--leak-check=full",
            "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite",
        ]);
        assert_eq!(run(valgrind.arg(&program).args(arguments)), "ok\n", "{name}");
    }
}

#[test]
fn the_header_is_for_c_and_cxx_with_old_names_of_fields_too() {
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++11")] {
        for old in ["-DHAVE_SCDC_DEPRECATED=0", "-DHAVE_SCDC_DEPRECATED=1"] {
            let mut cc = Command::new("cc");
            cc.args([
                "-x",
                language,
                standard,
                "-pedantic-errors",
                "-Wall",
                "-Wextra",
                "-Werror",
                old,
            ]);
            run(cc.arg("-fsyntax-only").arg(here().join("include/scdc.h")));
        }
    }
}
