//! serve: where it listens, what it refuses, and how it ends.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use rustix::process::Signal;

use crate::support::{Served, Service, noise, run, run_with_input, sluice};

#[test]
fn it_ends_by_a_signal_with_status_0_and_removes_its_socket() {
    for signal in [Signal::TERM, Signal::INT] {
        let served = Served::new();
        let socket = served.beside("s.sock");
        assert!(fs::metadata(&socket).unwrap().file_type().is_socket());
        served.service.signal(signal);
        assert_eq!(served.service.wait(), Some(0));
        assert!(!socket.exists());
    }
}

#[test]
fn the_default_socket_is_private_and_has_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = sluice();
    command.env("XDG_RUNTIME_DIR", dir.path()).args(["serve", "m=mem:"]);
    let service = Service::start(command);
    assert_eq!(service.uris, [format!("scdc+uds://{}/sluice/default.sock", dir.path().display())]);
    assert_eq!(
        fs::metadata(dir.path().join("sluice")).unwrap().permissions().mode() & 0o777,
        0o700
    );
    let mut ls = sluice();
    let listed =
        ls.env("XDG_RUNTIME_DIR", dir.path()).args(["ls", "scdc+uds://default"]).output().unwrap();
    assert_eq!(listed.stdout, b"m\n");
}

#[test]
fn a_second_service_on_the_same_socket_is_refused_and_a_dead_one_replaced() {
    let mut served = Served::new();
    let listen = format!("unix:{}", served.beside("s.sock").display());
    assert!(run(["serve", "m=mem:", "--listen", &listen]).fails(1).contains("already listening"));
    served.restart();
    assert_eq!(run(["ls", &served.uri("")]).ok(), "d\nm\n");
}

#[test]
fn a_relay_passes_on_and_survives_a_restart_of_what_is_behind_it() {
    let mut behind = Served::new();
    let bytes = noise(3_000_000);
    fs::write(behind.local("f"), &bytes).unwrap();
    let mut command = sluice();
    command.args(["serve", &format!("far={}", behind.uri("d")), "--listen", "tcp:127.0.0.1:0"]);
    let middle = Service::start(command);
    let uri = |name: &str| format!("{}/far/{name}", middle.uris[0]);
    assert_eq!(run(["ls", &uri("")]).ok(), "f\n");
    assert!(run_with_input(["cat", &uri("f")], b"").stdout == bytes);
    behind.restart();
    run(["cp", &uri("f"), &uri("g")]).ok();
    assert!(fs::read(behind.local("g")).unwrap() == bytes);
}

#[test]
fn tcp_is_loopback_unless_insecure() {
    let said = run(["serve", "m=mem:", "--listen", "tcp:0.0.0.0:0"]).fails(1);
    assert!(said.contains("--insecure") && said.contains("0.0.0.0"), "{said}");
    let mut command = sluice();
    command.args([
        "serve",
        "m=mem:",
        "--listen",
        "tcp:0.0.0.0:0",
        "--insecure",
        "--listen",
        "tcp:127.0.0.1:0",
    ]);
    let service = Service::start(command);
    assert_eq!(service.uris.len(), 2);
    assert_eq!(run(["ls", &service.uris[1]]).ok(), "m\n");
}

#[test]
fn a_read_only_service_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("f"), "content").unwrap();
    let mut command = sluice();
    command.args(["serve", "--read-only", &format!("d={}", dir.path().display())]);
    let listen = format!("unix:{}/s.sock", dir.path().display());
    let service = Service::start({
        command.args(["--listen", &listen]);
        command
    });
    let uri = |path: &str| format!("{}/{path}", service.uris[0]);
    assert_eq!(run(["cat", &uri("d/f")]).ok(), "content");
    for change in [vec!["rm", "d/f"], vec!["mkdir", "d/x"], vec!["cp", "d/f", "d/g"]] {
        let arguments = change
            .iter()
            .enumerate()
            .map(|(i, word)| if i == 0 { (*word).to_owned() } else { uri(word) });
        assert!(run(arguments).fails(1).contains("read-only"), "{change:?}");
    }
    assert!(!dir.path().join("g").exists() && dir.path().join("f").exists());
}

#[test]
fn what_cannot_be_served_is_told() {
    assert!(run(["serve"]).fails(1).contains("nothing to serve"));
    assert!(run(["serve", "data"]).fails(1).contains("NAME=DIR"));
    let said = run(["serve", "data=/no/such/directory"]).fails(1);
    assert!(said.contains("/no/such/directory") && said.contains("No such file"), "{said}");
    assert!(run(["serve", "a=/", "a=/tmp"]).fails(1).contains("given twice"));
    assert!(run(["serve", "a/b=/"]).fails(1).contains("one path component"));
    assert!(run(["serve", "m=mem:", "--listen", "5640"]).fails(1).contains("unix:PATH"));
    assert!(
        run(["serve", "m=mem:", "--listen", "unix:/no/such/dir/s.sock"])
            .fails(1)
            .contains("/no/such/dir/s.sock")
    );
}

#[test]
fn the_configuration_file_says_what_flags_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("c.sock");
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(dir.path().join("data/f"), "x").unwrap();
    let text = format!(
        "[serve]\nlisten = [\"unix:{}\"]\n[serve.stores]\nd = \"data\"\n",
        socket.display()
    );
    fs::write(dir.path().join("sluice.toml"), text).unwrap();
    let mut command = sluice();
    command.current_dir(dir.path()).arg("serve");
    let service = Service::start(command);
    assert_eq!(run(["ls", &format!("{}/d", service.uris[0])]).ok(), "f\n");
}
