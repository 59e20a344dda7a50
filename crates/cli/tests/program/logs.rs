//! run --log and the commands of log, with real programs: what they write is in the target in the end, whatever ends
//! in between.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{CHILDREN, Ran, Served, noise, run, sluice};

/// The preload library, as it is now: `./dev test` has just built it, and says where.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        if let Some(built) = std::env::var_os("SLUICE_TEST_LIBRARY") {
            return built.into();
        }
        let sluice = Path::new(env!("CARGO_BIN_EXE_sluice"));
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "-p", "preload"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if sluice.parent().is_some_and(|dir| dir.ends_with("release")) {
            cargo.arg("--release");
        }
        assert!(cargo.status().expect("cargo").success(), "the preload library is not built");
        sluice.with_file_name("libsluice.so")
    })
}

/// A log and a target directory.
struct Logged {
    dir: TempDir,
    name: String,
}

impl Logged {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("target")).expect("a directory");
        Self { dir, name: "log".to_owned() }
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    fn target(&self) -> PathBuf {
        self.dir.path().join("target")
    }

    /// `sluice run --log … --to TO … bash -c SCRIPT`, in the target's own directory.
    fn command(&self, to: &str, flags: &[&str], script: &str) -> Command {
        let mut command = sluice();
        for name in ["SLUICE_LOG", "SLUICE_LOG_RUN"] {
            command.env_remove(name);
        }
        command.env("SLUICE_PRELOAD", library()).current_dir(self.dir.path()).arg("run");
        command.arg("--log").arg(self.log()).args(["--to", to]).args(flags);
        command.args(["--", "bash", "-c", script]).stdin(Stdio::null());
        command
    }

    fn run(&self, flags: &[&str], script: &str) -> Ran {
        self.command("target", flags, script).output().expect("sluice starts").into()
    }

    fn log_command(&self, words: &[&str]) -> Ran {
        let log = self.log();
        let mut arguments = vec!["log", words[0], log.to_str().expect("text")];
        arguments.extend(&words[1..]);
        run(arguments)
    }

    /// What the agent says of itself.
    fn agent(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&fs::read(self.log().join("agent.json")).ok()?).ok()
    }

    fn socket(&self) -> PathBuf {
        self.agent().expect("an agent")["socket"].as_str().expect("a path").into()
    }

    fn signal_agent(&self, signal: Signal) {
        let socket = self.socket();
        let pid = self.agent().expect("an agent")["pid"].as_i64().expect("a number");
        let pid = Pid::from_raw(i32::try_from(pid).expect("a process")).expect("a process");
        // It may be about to end by itself.
        let _ = kill_process(pid, signal);
        while UnixStream::connect(&socket).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Until it has let go of the log.
        let lock = fs::File::open(self.log().join("lock")).expect("a lock");
        lock.lock().expect("it is let go");
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        if let Some(pid) = self.agent().and_then(|agent| agent["pid"].as_i64())
            && UnixStream::connect(self.socket()).is_ok()
        {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process");
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Everything below a directory.
fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(at).expect("a directory") {
            let entry = entry.expect("an entry");
            let path = entry.path();
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            let kind = entry.file_type().expect("a type");
            if kind.is_dir() {
                found.insert(format!("{name}/"), Vec::new());
                todo.push(path);
            } else if kind.is_symlink() {
                found.insert(
                    format!("{name}@"),
                    fs::read_link(path).unwrap().display().to_string().into(),
                );
            } else {
                found.insert(name, fs::read(path).expect("a file"));
            }
        }
    }
    found
}

/// A bit of everything that programs do to files.
const WORK: &str = r#"
set -e
cd target
mkdir -p a/b
dd if=../noise of=a/big bs=100k status=none
dd if=../noise of=a/big bs=4k count=3 seek=7 conv=notrunc status=none
cp a/big a/b/copy
python3 -c '
import os
with open("numbers", "w+b") as f:
    for i in range(1000):
        f.write(i.to_bytes(8, "little"))
    f.seek(80); f.write(b"changed"); f.truncate(4000)
os.rename("numbers", "a/renamed")
os.link("a/renamed", "linked")
open("gone", "w").write("x" * 5000)
os.remove("gone")
'
for i in 1 2 3 4 5; do echo line $i >> a/lines; done
mv a/b c
ln -s a/lines symbolic
mkdir empty
mv old a/old
truncate -s 12345 holes
chmod 600 a/lines
"#;

fn prepare(dir: &Path) {
    fs::write(dir.join("noise"), noise(700_000)).unwrap();
    fs::write(dir.join("target/old"), noise(1000)).unwrap();
}

#[test]
fn programs_write_through_a_log_what_they_write_without() {
    let (native, logged) = (Logged::new(), Logged::new());
    for one in [&native, &logged] {
        prepare(one.dir.path());
    }
    let plain = Command::new("bash").args(["-c", WORK]).current_dir(native.dir.path()).status();
    assert!(plain.expect("bash").success());
    logged.run(&[], WORK).ok();
    logged.log_command(&["drain"]).ok();
    assert_eq!(tree(&logged.target()), tree(&native.target()));
    let said = logged.log_command(&["status"]).ok();
    assert!(said.contains("all is drained"), "{said}");
    assert!(logged.log_command(&["verify"]).ok().contains("no damage"));
}

#[test]
fn a_service_as_the_target_is_reached_by_its_own_addresses() {
    let served = Served::new();
    let logged = Logged::new();
    fs::write(logged.dir.path().join("noise"), noise(300_000)).unwrap();
    let to = served.uri("d");
    let script = format!(
        "set -e; dd if=noise of={to}/x bs=30k status=none; cp {to}/x {to}/y; mv {to}/y {to}/z; cmp {to}/x {to}/z"
    );
    Ran::from(logged.command(&to, &[], &script).output().unwrap()).ok();
    logged.log_command(&["drain"]).ok();
    assert_eq!(fs::read(served.local("x")).unwrap(), noise(300_000));
    assert_eq!(fs::read(served.local("z")).unwrap(), noise(300_000));
    assert!(!served.local("y").exists());
}

#[test]
fn a_target_that_vanishes_and_returns_gets_everything() {
    let mut served = Served::new();
    let logged = Logged::new();
    fs::write(logged.dir.path().join("noise"), noise(3_000_000)).unwrap();
    let to = served.uri("d");
    let script = format!(
        "dd if=noise of={to}/x bs=100k status=none; sleep 1; dd if=noise of={to}/y bs=1M status=none"
    );
    let child = logged.command(&to, &["--log-bandwidth", "1MiB"], &script).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(900));
    served.restart();
    std::thread::sleep(Duration::from_millis(800));
    served.restart();
    Ran::from(child.wait_with_output().unwrap()).ok();
    logged.log_command(&["drain"]).ok();
    for name in ["x", "y"] {
        assert!(fs::read(served.local(name)).unwrap() == noise(3_000_000), "{name}");
    }
}

#[test]
fn the_agent_is_no_child_of_the_program() {
    let logged = Logged::new();
    fs::write(logged.dir.path().join("children.py"), CHILDREN).unwrap();
    assert_eq!(logged.run(&[], "exec python3 children.py").ok(), "no children\n");
}

#[test]
fn a_log_may_lie_in_a_directory_whose_name_is_too_long_for_a_socket() {
    let runtime = tempfile::tempdir().unwrap();
    let log = format!("{}/log", "deep".repeat(30));
    let mut logged = Logged::new();
    logged.name = log;
    let places = [runtime.path().to_owned(), runtime.path().join("missing")];
    for (place, below) in places.iter().zip([runtime.path(), Path::new("/tmp")]) {
        let run = |script: &str| {
            let mut command = logged.command("target", &[], script);
            Ran::from(command.env("XDG_RUNTIME_DIR", place).output().unwrap()).ok()
        };
        run("echo one > target/x");
        let socket = logged.socket();
        assert!(socket.starts_with(below), "{}", socket.display());
        // The agent is found there by other steps of a script, and by commands.
        let agent = logged.agent().unwrap()["pid"].clone();
        run("echo two >> target/x");
        assert_eq!(logged.agent().unwrap()["pid"], agent);
        logged.log_command(&["drain"]).ok();
        assert_eq!(fs::read(logged.target().join("x")).unwrap(), b"one\ntwo\n");
        logged.signal_agent(Signal::TERM);
        assert!(!socket.exists());
        logged.log_command(&["discard", "--yes"]).ok();
    }
}

#[test]
fn a_run_that_waits_ends_when_all_is_drained_and_as_the_program_ended() {
    let logged = Logged::new();
    prepare(logged.dir.path());
    for (script, status) in [("cp noise target/x", Some(0)), ("cp noise target/y; exit 7", Some(7))]
    {
        let flags = ["--wait", "--log-bandwidth", "1MiB"];
        let ran = logged.run(&flags, script);
        assert_eq!(ran.status, status, "{}", ran.err);
        assert!(ran.err.contains("drained"), "{}", ran.err);
    }
    for name in ["x", "y"] {
        assert!(fs::read(logged.target().join(name)).unwrap() == noise(700_000), "{name}");
    }
    // What a program that is killed has not finished is waited for no longer than the program.
    let ran = logged.run(&["--wait"], "exec 3> target/z; echo lost >&3; kill -9 $$");
    assert_eq!(ran.status, None, "{}", ran.err);
    assert_eq!(fs::read(logged.target().join("z")).unwrap(), b"");
    let mut alone = sluice();
    alone.env("SLUICE_PRELOAD", library()).args(["run", "--wait", "true"]);
    let error = Ran::from(alone.output().unwrap());
    assert!(error.fails(125).contains("--wait needs --log"));
}

#[test]
fn a_run_that_waits_says_that_the_drain_has_failed_or_does_its_work() {
    let logged = Logged::new();
    prepare(logged.dir.path());
    // The agent is gone when the program has ended: the run drains.
    let kill =
        "kill -9 $(python3 -c 'import json; print(json.load(open(\"log/agent.json\"))[\"pid\"])')";
    let slowly = ["--wait", "--log-bandwidth", "10KiB"];
    let ran = logged.run(&slowly, &format!("cp noise target/x; {kill}"));
    assert!(ran.err.contains("drained"), "{}", ran.err);
    ran.ok();
    assert!(fs::read(logged.target().join("x")).unwrap() == noise(700_000));
    // It is gone, and what it has left cannot be read.
    let script = format!("cp noise target/y; {kill}; echo broken > log/log.toml");
    let error = logged.run(&slowly, &script).fails(125);
    assert!(error.contains("not everything is in its place"), "{error}");
    // Whoever waits no longer interrupts the wait, not the agent.
    let logged = Logged::new();
    prepare(logged.dir.path());
    let script = "cp noise target/x; touch up";
    let mut child = logged.command("target", &slowly, script).spawn().unwrap();
    while !logged.dir.path().join("up").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Until the program has ended: then signals are the run's own.
    while child.try_wait().unwrap().is_none() {
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(UnixStream::connect(logged.socket()).is_ok(), "the agent has ended");
}

#[test]
fn an_agent_that_is_told_to_end_keeps_everything_for_later() {
    let logged = Logged::new();
    prepare(logged.dir.path());
    logged.run(&["--log-bandwidth", "10KiB"], "cp noise target/x").ok();
    logged.signal_agent(Signal::TERM);
    assert!(fs::read(logged.target().join("x")).map_or(0, |x| x.len()) < 700_000);
    let said = logged.log_command(&["status"]).ok();
    assert!(said.contains("not drained"), "{said}");
    // Another run finds it, and says so.
    let ran = logged.run(&[], "cmp noise target/x");
    assert!(ran.err.contains("left in an earlier run"), "{}", ran.err);
    ran.ok();
    logged.log_command(&["drain"]).ok();
    assert!(fs::read(logged.target().join("x")).unwrap() == noise(700_000));
}

/// Writes and syncs A, writes B, and ends in one of many ways.
const ENDS: &str = r#"
import ctypes, os, signal, sys
how = sys.argv[1]
f = os.open("target/" + how, os.O_CREAT | os.O_WRONLY)
os.write(f, b"A" * 1000); os.fsync(f); os.write(f, b"B" * 1000)
def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
if how == "close": os.close(f)
elif how == "exit": sys.exit(0)
elif how == "_exit": os._exit(0)
elif how == "status": sys.exit(3)
elif how == "abort": os.abort()
elif how == "term": os.kill(os.getpid(), signal.SIGTERM)
elif how == "exec":
    os.set_inheritable(f, True)
    os.execvp("sh", ["sh", "-c", f"printf CCC >&{f}; kill -9 $$"])
elif how == "execkept":
    os.set_inheritable(f, True)
    os.execvp("sh", ["sh", "-c", f"printf CCC >&{f}"])
elif how == "child": child(lambda: None)
elif how in ("execv", "execvp", "execvpe", "execl", "execlp", "execle"):
    libc = ctypes.CDLL(None)
    words = [b"sh", b"-c", b"kill -9 $$", None]
    path = b"sh" if "p" in how[5:] else b"/bin/sh"
    many = lambda words: (ctypes.c_char_p * len(words))(*words)
    environment = many([f"{name}={value}".encode() for name, value in os.environ.items()] + [None])
    rest = words if how[4] == "l" else [many(words)]
    getattr(libc, how)(path, *rest, *([environment] if how.endswith("e") else []))
elif how == "spawn": os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
elif how == "system": os.system("exit 0")
elif how == "writingchild": child(lambda: os.write(f, b"CCC"))
os.kill(os.getpid(), signal.SIGKILL)
"#;

#[test]
fn a_program_that_is_killed_has_closed_nothing() {
    let logged = Logged::new();
    fs::write(logged.dir.path().join("ends.py"), ENDS).unwrap();
    let held = "sh -c 'echo half; kill -9 $$' 2> /dev/null\ntrue\n";
    fs::write(logged.dir.path().join("held.sh"), held).unwrap();
    let (synced, all) = ("A".repeat(1000), "A".repeat(1000) + &"B".repeat(1000));
    let and_more = format!("{all}CCC");
    let expected = [
        ("close", &all),
        ("exit", &all),
        ("_exit", &all),
        ("status", &all),
        ("abort", &synced),
        ("term", &synced),
        ("kill", &synced),
        // A consistency point; and what comes after it.
        ("exec", &all),
        ("execkept", &and_more),
        ("child", &synced),
        ("writingchild", &and_more),
    ];
    let names: Vec<&str> = expected.iter().map(|(how, _)| *how).collect();
    let script = format!(
        "for how in {}; do python3 ends.py $how; done 2> /dev/null
        sh -c 'echo half; kill -9 $$' > target/shell
        bash held.sh > target/held
        echo whole > target/whole",
        names.join(" ")
    );
    logged.run(&[], &script).ok();
    logged.log_command(&["drain"]).ok();
    for (how, content) in expected {
        let found = fs::read_to_string(logged.target().join(how)).unwrap();
        assert!(found == *content, "{how}: {} bytes, {:?}", found.len(), &found[found.len() - 3..]);
    }
    let text = |name: &str| fs::read_to_string(logged.target().join(name)).unwrap();
    assert_eq!((text("shell"), text("whole")), (String::new(), "whole\n".to_owned()));
    // Somebody else has inherited it, and has ended in order.
    assert_eq!(text("held"), "half\n");
    let said = fs::read_to_string(logged.log().join("agent.log")).unwrap();
    assert!(said.contains("child: dropped 1000 B, written by a program that was killed"), "{said}");
    assert!(!said.contains("whole:"), "{said}");
}

/// Writes, waits for a file named go, and goes on; prints what is wrong with each step.
const GOES_ON: &str = r#"
import os, time
def tried(what, *arguments):
    try: what(*arguments); print("ok")
    except OSError as error: print(error.errno)
f = os.open("target/x", os.O_CREAT | os.O_WRONLY)
os.write(f, b"A" * 1000); os.fsync(f); os.write(f, b"B" * 1000); os.fstat(f)
open("up", "w").close()
while not os.path.exists("go"): time.sleep(0.02)
os.write(f, b"C" * 1000)
tried(os.fsync, f)
tried(os.close, f)
"#;

/// What was not synced is gone with the agent, and the one that comes after it cannot know: the program must be told.
#[test]
fn a_program_is_told_what_it_has_lost_with_the_agent() {
    let logged = Logged::new();
    let file = |name: &str| logged.dir.path().join(name);
    fs::write(file("goes_on.py"), GOES_ON).unwrap();
    let mut command = logged.command("target", &[], "exec python3 goes_on.py");
    let program = command.stdout(Stdio::piped()).spawn().unwrap();
    while !file("up").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    logged.signal_agent(Signal::KILL);
    logged.run(&[], "touch go").ok();
    let ran: Ran = program.wait_with_output().unwrap().into();
    // The file that it has open is not the one that is there now.
    assert_eq!(ran.ok(), "116\n116\n");
    logged.log_command(&["drain"]).ok();
    assert_eq!(fs::read(logged.target().join("x")).unwrap(), b"A".repeat(1000));
}

#[test]
fn a_program_that_ends_has_closed_its_files_without_patching_too() {
    let logged = Logged::new();
    fs::write(logged.dir.path().join("ends.py"), ENDS).unwrap();
    let closed = ["exit", "_exit", "exec"];
    // Functions of libc that call execve(2) within it: consistency points, too.
    let becomes = ["execv", "execvp", "execvpe", "execl", "execlp", "execle"];
    let lives_on = ["kill", "spawn", "system"];
    let names = [&closed[..], &becomes[..], &lives_on[..]].concat();
    let all = names.join(" ");
    let script = format!("for how in {all}; do python3 ends.py $how; done 2> /dev/null\ntrue");
    let mut command = logged.command("target", &[], &script);
    Ran::from(command.env("SLUICE_PATCH", "0").output().expect("sluice starts")).ok();
    logged.log_command(&["drain"]).ok();
    for how in names {
        let found = fs::metadata(logged.target().join(how)).unwrap().len();
        assert_eq!(found, if lives_on.contains(&how) { 1000 } else { 2000 }, "{how}");
    }
}

#[test]
fn a_program_may_begin_to_write_long_after_it_was_given_a_file() {
    let logged = Logged::new();
    // Its file is drained by then.
    let ran = logged.run(&[], "sh -c 'sleep 2; echo late' > target/x; cat target/x");
    assert_eq!(ran.ok(), "late\n");
    logged.log_command(&["drain"]).ok();
    assert_eq!(fs::read(logged.target().join("x")).unwrap(), b"late\n");
}

/// Kills the agent, or the whole run, at random moments. Every file that was synced must be there, whole, and of the
/// others only what the program wrote.
#[test]
fn what_was_synced_survives_a_crash_at_any_moment() {
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
    eprintln!("seed {seed}");
    let script = r#"
        python3 -c '
import os, sys
done = open("done", "a")
for i in range(2000):
    data = str(i).encode() * 5000
    with open(f"target/new{i}", "wb") as f:
        f.write(data[:7000]); f.write(data[7000:]); f.flush(); os.fsync(f.fileno())
    os.rename(f"target/new{i}", f"target/file{i}")
    fd = os.open("target", os.O_RDONLY); os.fsync(fd); os.close(fd)
    done.write(f"{i}\n"); done.flush()
' 2>/dev/null"#;
    for round in 0..4_u32 {
        let logged = Logged::new();
        let mut child: Child = logged.command("target", &[], script).spawn().unwrap();
        let began = Instant::now();
        while logged.agent().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "no agent");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(u64::from(seed.rotate_left(round * 7) % 700)));
        if round % 2 == 1 {
            let _ = child.kill();
        }
        logged.signal_agent(Signal::KILL);
        let _ = child.kill();
        child.wait().unwrap();
        let done = fs::read_to_string(logged.dir.path().join("done")).unwrap_or_default();
        let said = logged.log_command(&["recover"]).ok();
        assert!(said.contains("agent has crashed"), "{said}");
        let found = tree(&logged.target());
        for i in done.lines() {
            let data = i.as_bytes().repeat(5000);
            assert!(
                found.get(&format!("file{i}")) == Some(&data),
                "seed {seed}, round {round}: file {i}"
            );
        }
        for (name, content) in &found {
            let i = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            assert!(i.as_bytes().repeat(5000).starts_with(content), "seed {seed}: {name}");
            // A file gets its name when it is whole.
            assert!(
                name.starts_with("new") || content.len() == i.len() * 5000,
                "seed {seed}: {name}"
            );
        }
    }
}

#[test]
fn the_steps_of_a_script_follow_each_other_on_one_log() {
    let logged = Logged::new();
    // The agent of the first stays for the others, with a drain that is far behind.
    prepare(logged.dir.path());
    logged.run(&["--log-bandwidth", "10KiB"], "cp noise target/x").ok();
    for _ in 0..3 {
        logged.run(&[], "echo more >> target/x").ok();
    }
    logged
        .run(&[], "cmp -n $(stat -c %s noise) noise target/x && tail -c 15 target/x | grep -c more")
        .ok();
}

#[test]
fn a_log_belongs_to_one_run_and_one_target() {
    let logged = Logged::new();
    prepare(logged.dir.path());
    fs::create_dir(logged.dir.path().join("other")).unwrap();
    assert!(Command::new("mkfifo").arg(logged.dir.path().join("wait")).status().unwrap().success());
    let first = logged.command(
        "target",
        &["--log-bandwidth", "10KiB"],
        "cp noise target/x; touch up; read < wait",
    );
    let mut first = { first }.spawn().unwrap();
    while !logged.dir.path().join("up").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let error = logged.run(&[], "true").fails(125);
    assert!(error.contains("in use by another run, `bash -c cp noise"), "{error}");
    // What a run starts is the same run, as are the ranks of a job.
    let job = |job: &str| {
        let mut command = logged.command("target", &[], "cmp noise target/x");
        Ran::from(command.env("SLUICE_LOG_RUN", job).output().unwrap())
    };
    job(logged.agent().unwrap()["run"].as_str().unwrap()).ok();
    assert!(logged.log_command(&["discard", "--yes"]).fails(1).contains("in use by `bash"));
    fs::write(logged.dir.path().join("wait"), "\n").unwrap();
    first.wait().unwrap();
    logged.signal_agent(Signal::KILL);
    let ran: Ran = logged.command("other", &[], "true").output().unwrap().into();
    let error = ran.fails(125);
    assert!(error.contains("still holds what an earlier run wrote for"), "{error}");
    let error = logged.log_command(&["discard"]).fails(1);
    assert!(error.contains("did not come to") && error.contains("--yes"), "{error}");
    logged.log_command(&["discard", "--yes"]).ok();
    assert!(!logged.log().exists());
    Ran::from(logged.command("other", &[], "true").output().unwrap()).ok();
}

#[test]
fn damage_is_found_and_nothing_is_drained_over_it() {
    let logged = Logged::new();
    prepare(logged.dir.path());
    logged.run(&["--log-bandwidth", "10KiB"], "cp noise target/x").ok();
    logged.signal_agent(Signal::TERM);
    let segment = logged.log().join("segments/00000000.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[300_000] ^= 1;
    fs::write(&segment, bytes).unwrap();
    for command in ["verify", "drain", "recover"] {
        let error = logged.log_command(&[command]).fails(1);
        assert!(error.contains("damaged"), "{command}: {error}");
    }
    logged.log_command(&["discard", "--yes"]).ok();
    let error = logged.run(&["--log-size", "8MiB"], "true").ok();
    assert!(error.is_empty());
}
