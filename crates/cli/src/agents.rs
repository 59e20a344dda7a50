//! Processes of ours that stay while programs need them, and that programs know nothing of: a log's agent, and the one for
//! object stores.
//!
//! 1. `sluice run` asks for one by [`start`]. It becomes the program by execve(2), whose children are those that it had:
//!    a program that waits for all of its children, whoever they are, must not wait for an agent. So a process between
//!    the two starts the agent and ends at once ([`start_orphan`]), and the agent is nobody's child.
//! 2. The agent [begins](begin), says on its standard output what the user is to be told ([`Starter::say`]), and at last
//!    that it is ready, or why it is not.
//! 3. A connection on which nothing is ever said keeps it ([`lease`]).

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use address::Settings;
use anyhow::{Context, Result, bail};
use rustix::fs::{Mode, OFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::Orphan;
use crate::report::say;

/// The number that the connection which keeps an agent has at least: low ones belong to the program.
const LEASE_FROM: i32 = 600;

/// Starts `sluice WORDS` as nobody's child, and passes on what it says until it is ready. Returns what it says then. `who`
/// is it for messages, and `log` is where it writes what it says later.
pub(crate) fn start(words: &[OsString], who: &str, log: &Path) -> Result<String> {
    let program = std::env::current_exe().context("cannot tell where sluice itself is")?;
    let mut command = Command::new(program);
    command.arg("orphan").args(words);
    // An agent is nobody's rank, and its own files are local.
    command.env_remove(Settings::VARIABLE).env_remove("LD_PRELOAD");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut between = command.spawn().with_context(|| format!("cannot start {who}"))?;
    let stdout = between.stdout.take().with_context(|| format!("cannot hear of {who}"))?;
    // It ends at once, and is gone before there is a program.
    between.wait().with_context(|| format!("cannot start {who}"))?;
    for line in BufReader::new(stdout).lines() {
        let line = line.with_context(|| format!("cannot hear of {who}"))?;
        match line.split_once(' ') {
            Some(("say", text)) => say(format_args!("{text}")),
            Some(("ready", text)) => return Ok(text.to_owned()),
            Some(("failed", error)) => bail!("{error}"),
            _ => {}
        }
    }
    bail!("{who} has ended before it was ready; see {}", log.display())
}

/// The process between: starts `sluice WORDS` and ends.
pub(crate) fn start_orphan(args: &Orphan) -> ExitCode {
    let spawned =
        std::env::current_exe().and_then(|own| Command::new(own).args(&args.words).spawn());
    match spawned {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            Starter::line("failed", &format!("cannot start an agent: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Connects to an agent for good: the connection is inherited by the program and by what it starts, and while one of
/// them lives, so does the agent.
pub(crate) fn lease(stream: UnixStream, who: &str) -> Result<OwnedFd> {
    // Kept over execve(2), and above where programs expect theirs.
    let high = rustix::io::fcntl_dupfd_cloexec(&stream, LEASE_FROM);
    let fd = high.unwrap_or_else(|_| stream.into());
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::empty())
        .with_context(|| format!("cannot keep {who}"))?;
    Ok(fd)
}

/// Makes this process an agent: of a session of its own, without what launchers and shells left open. What is returned
/// becomes true when somebody tells it to end.
pub(crate) fn begin() -> Result<Arc<AtomicBool>> {
    let _ = rustix::process::setsid();
    close_inherited();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot take over signals")?;
    }
    Ok(stop)
}

/// Whoever waits for the end of a pipe must not wait for this process.
fn close_inherited() {
    let names = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let numbers: Vec<i32> = numbers.filter(|number| *number > 2).collect();
    for number in numbers {
        // The one of the listing is closed already. Nothing else of this process is open yet.
        let _ = nix::unistd::close(number);
    }
}

/// Whoever started this agent, as long as it listens.
pub(crate) struct Starter;

impl Starter {
    fn line(kind: &str, text: &str) {
        // Nobody listening is no reason to end.
        let _ = writeln!(std::io::stdout(), "{kind} {}", text.replace('\n', " "));
    }

    /// Something for the user.
    pub(crate) fn say(text: &str) {
        Self::line("say", text);
    }

    /// Why the agent ends.
    pub(crate) fn failed(error: &anyhow::Error) {
        Self::line("failed", &format!("{error:#}"));
    }

    /// The agent is there. It leaves the terminal and the working directory; what is said from here on goes to the file `log`.
    pub(crate) fn ready(text: &str, log: &Path) {
        Self::line("ready", text);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        if let Ok(null) = null {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
            let log = rustix::fs::open(log, flags, Mode::from_raw_mode(0o600));
            let _ = rustix::stdio::dup2_stderr(log.as_ref().unwrap_or(&null));
        }
        let _ = std::env::set_current_dir("/");
    }
}

/// Says something in the agent's own log, with the time.
pub(crate) fn note(text: std::fmt::Arguments<'_>) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    let time = crate::format::time_text(i64::try_from(seconds).unwrap_or(0));
    say(format_args!("{time} {text}"));
}
