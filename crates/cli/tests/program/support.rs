//! Starting `sluice` and looking at what it did.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A `sluice` with an environment of its own.
pub(crate) fn sluice() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    for variable in
        ["SLUICE_CONFIG", "SLUICE_SETTINGS", "SLUICE_PRELOAD", "SLUICE_PATCH", "LD_PRELOAD"]
    {
        command.env_remove(variable);
    }
    command.env("HOME", "/nonexistent").env("XDG_CONFIG_HOME", "/nonexistent").current_dir("/");
    command
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// Asserts success and gives standard output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.status, Some(0), "{}", self.err);
        self.out
    }

    /// Asserts failure with one exit status and gives standard error.
    #[track_caller]
    pub(crate) fn fails(self, status: i32) -> String {
        assert_eq!(self.status, Some(status), "{}{}", self.out, self.err);
        self.err
    }
}

/// A program for Python that says whose children it could wait for: wait(2) without waiting.
pub(crate) const CHILDREN: &str = r#"
import os
try: print("children:", os.waitpid(-1, os.WNOHANG))
except ChildProcessError: print("no children")
"#;

/// Runs `sluice` with arguments.
pub(crate) fn run<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Ran {
    sluice().args(arguments).stdin(Stdio::null()).output().expect("sluice starts").into()
}

/// Runs `sluice` with arguments and an input.
pub(crate) fn run_with_input<I: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = I>,
    input: &[u8],
) -> Output {
    let mut command = sluice();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("sluice starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().expect("sluice ends")
    })
}

/// A directory that is served, in memory of its name only.
pub(crate) struct Served {
    pub(crate) dir: TempDir,
    pub(crate) service: Service,
}

/// A running `sluice serve`.
pub(crate) struct Service {
    child: Child,
    /// What it listens on.
    pub(crate) uris: Vec<String>,
}

impl Service {
    /// Starts a service and waits until it listens.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("sluice starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut uris = Vec::new();
        for line in lines.by_ref() {
            let line = line.expect("text");
            match line.strip_prefix("listening on ") {
                Some(uri) => uris.push(uri.trim_end_matches('/').to_owned()),
                None => break,
            }
        }
        assert!(!uris.is_empty(), "it does not listen: {:?}", child.wait());
        // Keep reading, so that it never writes into a closed pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, uris }
    }

    pub(crate) fn id(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.id(), signal).expect("it runs");
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    /// Serves a new directory as `d`, its read-only twin as `ro` and memory as `m`.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let data = dir.path().join("data");
        std::fs::create_dir(&data).expect("a directory");
        let service = Self::serve(dir.path());
        Self { dir, service }
    }

    fn serve(dir: &Path) -> Service {
        let mut command = sluice();
        let named = |name: &str| format!("{name}={}", dir.join("data").display());
        command.arg("serve").args([named("d"), "m=mem:".into()]);
        command.args(["--listen", &format!("unix:{}", dir.join("s.sock").display())]);
        Service::start(command)
    }

    /// Kills the service without warning and starts it again.
    pub(crate) fn restart(&mut self) {
        self.service.signal(rustix::process::Signal::KILL);
        self.service.child.wait().expect("it ends");
        self.service = Self::serve(self.dir.path());
    }

    /// Where the served directory is on this machine.
    pub(crate) fn local(&self, name: &str) -> PathBuf {
        self.dir.path().join("data").join(name)
    }

    /// A path beside the served directory.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file's URI.
    pub(crate) fn uri(&self, path: &str) -> String {
        format!("{}/{path}", self.service.uris[0])
    }
}

/// Bytes that differ everywhere.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(len).collect()
}
