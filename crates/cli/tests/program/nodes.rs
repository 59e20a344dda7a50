//! run --log-meet: two nodes, played by two logs that see each other through TCP only, have one set of files. What ranks write
//! in epochs is in tests/log.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::logs::library;
use crate::support::{Ran, run, sluice};

/// How long something may take that should happen soon.
const SOON: Duration = Duration::from_secs(60);

/// Two logs, a target, and where the agents meet.
struct Nodes {
    dir: TempDir,
}

impl Nodes {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("target")).expect("a directory");
        let made = Command::new("mkfifo").arg(dir.path().join("wait")).status();
        assert!(made.expect("mkfifo").success());
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `sluice run --log LOG --log-meet … bash -c SCRIPT`.
    fn command(&self, log: &str, to: &str, script: &str) -> Command {
        let mut command = sluice();
        for name in ["SLUICE_LOG", "SLUICE_LOG_RUN"] {
            command.env_remove(name);
        }
        command.env("SLUICE_PRELOAD", library()).current_dir(self.dir.path());
        command.args(["run", "--reconnect-seconds", "1", "--log", log, "--to", to]);
        command.args(["--log-meet", "meeting", "--log-listen", "127.0.0.1"]);
        command.args(["--", "bash", "-c", script]).stdin(Stdio::null());
        command
    }

    fn run(&self, log: &str, script: &str) -> Ran {
        self.command(log, "target", script).output().expect("sluice starts").into()
    }

    /// Starts a script that waits in its middle, and waits until it has come to it.
    fn begin(&self, log: &str, before: &str, after: &str) -> Child {
        let script = format!("{before}; touch up; read < wait; {after}");
        let mut command = self.command(log, "target", &script);
        let child = command.stdout(Stdio::piped()).spawn().expect("sluice starts");
        wait_until("the script is in its middle", || self.path("up").exists());
        child
    }

    fn go_on(&self, child: Child) -> Ran {
        fs::write(self.path("wait"), "\n").expect("a pipe");
        child.wait_with_output().expect("an end").into()
    }

    fn agent(&self, log: &str) -> Option<serde_json::Value> {
        let path = self.path(log).join("agent.json");
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    fn kill_agent(&self, log: &str) {
        let lives = || UnixStream::connect(self.path(log).join("agent.sock")).is_ok();
        if let Some(pid) = self.agent(log).and_then(|agent| agent["pid"].as_i64())
            && lives()
        {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process");
            let _ = kill_process(pid, Signal::KILL);
            wait_until("the agent is gone", || !lives());
        }
    }

    fn home(&self) -> serde_json::Value {
        let text = fs::read(self.path("meeting/home.json")).expect("a home");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// The agents have ended, and think of nothing that others might need.
    fn is_over(&self) -> bool {
        // One that was killed has left what it said of itself.
        let lives = |log: &&str| UnixStream::connect(self.path(log).join("agent.sock")).is_ok();
        let no_agents = !["one", "two"].iter().any(lives);
        no_agents && fs::read_dir(self.path("meeting")).expect("a directory").next().is_none()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for log in ["one", "two"] {
            self.kill_agent(log);
        }
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < SOON, "not so after {SOON:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn programs_on_two_nodes_have_the_same_files() {
    let nodes = Nodes::new();
    let one = nodes.begin("one", "echo one > target/x", "cat target/y");
    let found = nodes.run("two", "cat target/x && echo two > target/y && mv target/x target/z");
    assert_eq!(found.ok(), "one\n");
    // Programs cannot tell their logs apart: they have one order.
    let log = |name| nodes.agent(name).expect("an agent")["log"].clone();
    assert_eq!(log("one"), log("two"));
    assert_eq!(nodes.go_on(one).ok(), "two\n");
    wait_until("all is over", || nodes.is_over());
    let read = |name: &str| fs::read_to_string(nodes.path("target").join(name)).unwrap();
    assert_eq!((read("z"), read("y")), ("one\n".to_owned(), "two\n".to_owned()));
    // The next job's home may be another node.
    assert_eq!(nodes.run("two", "cat target/z").ok(), "one\n");
}

#[test]
fn only_who_knows_the_secret_comes_in() {
    let nodes = Nodes::new();
    let one = nodes.begin("one", "echo one > target/x", "true");
    let (home, path) = (nodes.home(), nodes.path("meeting/home.json"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let address = home["address"].as_str().expect("an address").to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    // A client of 9P is not greeted, and told nothing.
    let list = run(["ls", &format!("scdc+tcp://{address}/")]);
    assert_ne!(list.status, Some(0), "{}{}", list.out, list.err);
    assert!(TcpStream::connect(&address).is_ok(), "it listens on");
    // An agent with another secret is not either, and its programs do not run.
    let mut wrong = home.clone();
    let text = home["secret"].as_str().expect("a secret");
    assert_eq!(text.len(), 64);
    wrong["secret"] = text.chars().rev().collect::<String>().into();
    fs::write(&path, wrong.to_string()).unwrap();
    let error = nodes.run("two", "true").fails(125);
    assert!(error.contains("does not answer"), "{error}");
    fs::write(&path, home.to_string()).unwrap();
    assert_eq!(nodes.run("two", "cat target/x").ok(), "one\n");
    nodes.go_on(one).ok();
}

#[test]
fn when_the_home_is_killed_others_get_errors_and_recover_brings_what_counts() {
    let nodes = Nodes::new();
    let one = nodes.begin("one", "echo one > target/x", "cat target/x");
    let two = nodes.run(
        "two",
        "echo two > target/y && kill -9 $(sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/' one/agent.json) && \
                                sleep 0.2; echo more > target/z || echo failed",
    );
    assert_eq!(two.ok(), "failed\n");
    assert_ne!(nodes.go_on(one).status, Some(0));
    assert!(!nodes.is_over());
    // Whoever comes next, when the other agent has seen that the home is gone, has to wait for it.
    wait_until("the member has ended", || nodes.agent("two").is_none());
    let error = nodes.run("two", "cat target/y").fails(125);
    assert!(error.contains("does not answer") && error.contains("sluice log recover"), "{error}");
    run(["log", "recover", nodes.path("one").to_str().unwrap()]).ok();
    let read = |name: &str| fs::read_to_string(nodes.path("target").join(name)).unwrap();
    assert_eq!((read("x"), read("y")), ("one\n".to_owned(), "two\n".to_owned()));
    assert!(!nodes.path("target/z").exists());
    wait_until("all is over", || nodes.is_over());
    assert_eq!(nodes.run("two", "cat target/y").ok(), "two\n");
}

#[test]
fn bytes_that_nobody_says_are_drained_are_not_thrown_away() {
    let nodes = Nodes::new();
    let one = nodes.begin("one", "true", "true");
    nodes.run("two", "echo two > target/y").ok();
    nodes.kill_agent("two");
    nodes.kill_agent("one");
    nodes.go_on(one);
    fs::rename(nodes.path("meeting/home.json"), nodes.path("kept")).unwrap();
    let error = nodes.run("two", "true").fails(125);
    assert!(error.contains("says neither where that is nor that it is drained"), "{error}");
    fs::rename(nodes.path("kept"), nodes.path("meeting/home.json")).unwrap();
    let error = nodes.run("two", "true").fails(125);
    assert!(error.contains("still needs"), "{error}");
    // The home says it itself when it is.
    run(["log", "recover", nodes.path("one").to_str().unwrap()]).ok();
    assert_eq!(nodes.run("two", "cat target/y").ok(), "two\n");
    wait_until("all is over", || nodes.is_over());
}

#[test]
fn what_cannot_go_together_is_refused() {
    let nodes = Nodes::new();
    fs::create_dir(nodes.path("other")).unwrap();
    let one = nodes.begin("one", "true", "true");
    let refused: Ran = nodes.command("two", "other", "true").output().unwrap().into();
    let error = refused.fails(125);
    assert!(error.contains("give it a meeting of its own"), "{error}");
    nodes.go_on(one).ok();
    let mut alone = sluice();
    alone.env("SLUICE_PRELOAD", library()).current_dir(nodes.path(""));
    alone.args(["run", "--log", "three", "--to", "target", "--log-listen", "127.0.0.1", "true"]);
    let error = Ran::from(alone.output().unwrap()).fails(125);
    assert!(error.contains("--log-listen needs --log-meet"), "{error}");
}
