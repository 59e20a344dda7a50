//! `sluice couple run`: all components at once.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use coupling::Program;
use exchange::{Lobby, Plan, Traffic};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::part;
use crate::args::couple::RunAll;
use crate::launch::library;
use crate::report::{say, tell};

/// So often it is shown what flows.
const SHOWN: Duration = Duration::from_millis(500);
/// Between the friendly signal and the other one.
const KILLED: Duration = Duration::from_secs(5);

enum Event {
    Ended(usize, ExitStatus),
    Signal(i32),
}

/// A component that was started.
struct Running {
    component: String,
    number: u16,
    group: Pid,
    status: Option<ExitStatus>,
}

pub(crate) fn run(args: &RunAll) -> Result<ExitCode> {
    let (path, configuration) = part::configuration(&args.file)?;
    for warning in &configuration.warnings {
        say(format_args!("{}:{warning} (a warning)", path.display()));
    }
    if configuration.programs.is_empty() {
        bail!(
            "{} does not say how its components are started; add [[component]] with name and command, or start each with `sluice run \
             --couple {} --as NAME -- …`",
            path.display(),
            args.file.display()
        );
    }
    let library = if args.no_preload { None } else { Some(library::for_coupling()?) };
    let meet = Meet::new(args.meet.as_deref())?;
    let lobby = Lobby::new(&meet.path)?;
    let (sender, receiver) = channel();
    signals(&sender)?;
    let mut all = Vec::new();
    let mut failed = None;
    for program in &configuration.programs {
        let number = configuration.components.iter().position(|one| *one == program.component);
        let number = u16::try_from(number.unwrap_or_default())?;
        let mut command = command(program, &path, library.as_deref());
        part::tell(&mut command, &path, &program.component, &meet.path);
        command.env(Plan::WAIT, args.wait.to_string());
        match command.spawn() {
            Ok(child) => {
                all.push(running(program, number, &child)?);
                wait(child, all.len() - 1, sender.clone());
            }
            Err(error) => {
                let _ = lobby.ended(number, "it was not started");
                let (name, word) = (&program.component, &program.command[0]);
                say(format_args!("sluice couple run: {name}: {word} cannot be started: {error}"));
                failed = Some(127);
                break;
            }
        }
    }
    let code = Show { args, lobby: &lobby, begun: Instant::now(), line: false }.until_ended(
        &mut all,
        &receiver,
        failed,
        &configuration.components,
    )?;
    Ok(ExitCode::from(code))
}

/// The directory where ranks meet; one of our own is removed.
struct Meet {
    path: PathBuf,
    own: bool,
}

impl Meet {
    fn new(path: Option<&Path>) -> Result<Self> {
        if let Some(path) = path {
            let path = std::path::absolute(path)?;
            // What an earlier run has left is not this one's.
            Lobby::clear(&path).with_context(|| path.display().to_string())?;
            return Ok(Self { path, own: false });
        }
        let name = format!("couple-run-{}", std::process::id());
        let path = crate::sockets::private(&name)?.with_extension("");
        let _ = std::fs::remove_dir_all(&path);
        Ok(Self { path, own: true })
    }
}

impl Drop for Meet {
    fn drop(&mut self) {
        if self.own {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn command(program: &Program, configuration: &Path, library: Option<&Path>) -> Command {
    let mut command = Command::new(&program.command[0]);
    command.args(&program.command[1..]).stdin(Stdio::null());
    // So that a component can be ended with all that it has started.
    command.process_group(0);
    if let Some(directory) = &program.directory {
        let base = configuration.parent().unwrap_or(Path::new("/"));
        command.current_dir(base.join(directory));
    }
    if let Some(library) = library {
        command.env("LD_PRELOAD", library::preload(library, std::env::var_os("LD_PRELOAD")));
    }
    command.envs(program.environment.iter().map(|(name, value)| (name, value)));
    command
}

fn running(program: &Program, number: u16, child: &Child) -> Result<Running> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = group.context("a component has no process")?;
    Ok(Running { component: program.component.clone(), number, group, status: None })
}

fn wait(mut child: Child, number: usize, sender: Sender<Event>) {
    std::thread::spawn(move || {
        let status = child.wait().unwrap_or_else(|_| ExitStatus::from_raw(1 << 8));
        let _ = sender.send(Event::Ended(number, status));
    });
}

fn signals(sender: &Sender<Event>) -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .context("cannot take over signals")?;
    let sender = sender.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let _ = sender.send(Event::Signal(signal));
        }
    });
    Ok(())
}

/// What is shown, and until when.
struct Show<'a> {
    args: &'a RunAll,
    lobby: &'a Lobby,
    begun: Instant,
    /// Something stands in the terminal's last line.
    line: bool,
}

impl Show<'_> {
    fn until_ended(
        &mut self,
        all: &mut [Running],
        receiver: &Receiver<Event>,
        mut failed: Option<u8>,
        components: &[String],
    ) -> Result<u8> {
        let grace = Duration::from_secs(self.args.grace.into());
        // When what comes next to those that are left, and what.
        let mut next: Option<(Instant, Signal)> =
            failed.map(|_| (Instant::now() + grace, Signal::TERM));
        while all.iter().any(|one| one.status.is_none()) {
            let time = next.map_or(SHOWN, |(at, _)| at.saturating_duration_since(Instant::now()));
            match receiver.recv_timeout(time.min(SHOWN)) {
                Ok(Event::Ended(number, status)) => {
                    let one = &mut all[number];
                    one.status = Some(status);
                    let _ = self.lobby.ended(one.number, &how(status));
                    // What it has left behind, such as ranks of an mpiexec that was killed, is ended with it.
                    let _ = kill_process_group(one.group, Signal::TERM);
                    if !status.success() {
                        let name = one.component.clone();
                        let left: Vec<&str> = all
                            .iter()
                            .filter(|one| one.status.is_none())
                            .map(|one| one.component.as_str())
                            .collect();
                        let rest = match left.is_empty() || next.is_some() {
                            true => String::new(),
                            false => {
                                format!(
                                    "; {} ended in {} s at the latest",
                                    is_are(&left),
                                    self.args.grace
                                )
                            }
                        };
                        self.say(format_args!(
                            "sluice couple run: {name} has failed: {}{rest}",
                            how(status)
                        ));
                        failed.get_or_insert(code(status));
                        next.get_or_insert((Instant::now() + grace, Signal::TERM));
                    }
                }
                Ok(Event::Signal(signal)) => {
                    failed.get_or_insert(u8::try_from(128 + signal).unwrap_or(u8::MAX));
                    if let Some(signal) = Signal::from_named_raw(signal) {
                        send(all, signal);
                    }
                    next = Some((Instant::now() + KILLED, Signal::KILL));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Some((at, signal)) = next
                && Instant::now() >= at
            {
                send(all, signal);
                next = Some((Instant::now() + KILLED, Signal::KILL));
            }
            self.show(components);
        }
        self.clear();
        self.finish(all, components)?;
        Ok(failed.unwrap_or(0))
    }

    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        self.clear();
        say(line);
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.line) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }

    /// One line, where somebody looks at it.
    fn show(&mut self, components: &[String]) {
        let mut stderr = std::io::stderr();
        if self.args.quiet || !stderr.is_terminal() {
            return;
        }
        let traffic = self.lobby.traffic();
        let written = traffic.iter().filter(|one| one.flowing.writes);
        let (mut cycles, mut bytes, mut files) = (0, 0, 0);
        for one in written {
            files += 1;
            cycles += one.flowing.tally.cycles;
            bytes += one.flowing.tally.bytes;
        }
        let waited: Vec<String> = (0..)
            .zip(components)
            .map(|(number, name)| {
                let waited = Lobby::waited(&traffic, number).as_secs_f64();
                format!("{name} waited {waited:.1} s")
            })
            .collect();
        let time = self.begun.elapsed().as_secs();
        let moved = crate::format::bytes_text(bytes);
        let _ = write!(
            stderr,
            "\r\x1b[2K{time} s: {files} files, {cycles} cycles, {moved}; {}",
            waited.join(", ")
        );
        let _ = stderr.flush();
        self.line = true;
    }

    fn finish(&self, all: &[Running], components: &[String]) -> Result<()> {
        let traffic = self.lobby.traffic();
        let flows = flows(&traffic, components);
        if self.args.json {
            let told = Told {
                seconds: self.begun.elapsed().as_secs_f64(),
                components: all.iter().map(|one| ended(one, &traffic)).collect(),
                files: flows,
            };
            return tell(format_args!("{}", serde_json::to_string(&told)?));
        }
        if self.args.quiet {
            return Ok(());
        }
        for flow in flows {
            let Flow { file, writer, reader, cycles, bytes, .. } = &flow;
            let (moved, written, read) = (
                crate::format::bytes_text(*bytes),
                flow.writer_waited_seconds,
                flow.reader_waited_seconds,
            );
            let plural = if *cycles == 1 { "cycle" } else { "cycles" };
            say(format_args!(
                "{file}: {writer} → {reader}: {cycles} {plural}, {moved}; waited {written:.2} s → {read:.2} s"
            ));
        }
        Ok(())
    }
}

/// All that is told at the end.
#[derive(Serialize)]
struct Told {
    seconds: f64,
    components: Vec<Ended>,
    files: Vec<Flow>,
}

#[derive(Serialize)]
struct Ended {
    name: String,
    /// Null if a signal ended it.
    status: Option<i32>,
    signal: Option<i32>,
    waited_seconds: f64,
}

/// A file between two components.
#[derive(Serialize)]
struct Flow {
    file: String,
    writer: String,
    reader: String,
    openings: u64,
    cycles: u64,
    bytes: u64,
    writer_waited_seconds: f64,
    reader_waited_seconds: f64,
}

fn ended(one: &Running, traffic: &[Traffic]) -> Ended {
    Ended {
        name: one.component.clone(),
        status: one.status.and_then(|status| status.code()),
        signal: one.status.and_then(|status| status.signal()),
        waited_seconds: Lobby::waited(traffic, one.number).as_secs_f64(),
    }
}

fn flows(traffic: &[Traffic], components: &[String]) -> Vec<Flow> {
    let name =
        |one: &Traffic| components.get(usize::from(one.component)).cloned().unwrap_or_default();
    let waits: BTreeMap<(String, &str), f64> = traffic
        .iter()
        .filter(|one| !one.flowing.writes)
        .map(|one| ((name(one), one.flowing.file.as_str()), one.flowing.tally.waited.as_secs_f64()))
        .collect();
    let written = traffic.iter().filter(|one| one.flowing.writes);
    let flow = |one: &Traffic| {
        let (tally, reader) = (&one.flowing.tally, one.flowing.other.clone());
        let waited = waits.get(&(reader.clone(), one.flowing.file.as_str()));
        Flow {
            file: one.flowing.file.clone(),
            writer: name(one),
            openings: tally.openings,
            cycles: tally.cycles,
            bytes: tally.bytes,
            writer_waited_seconds: tally.waited.as_secs_f64(),
            reader_waited_seconds: waited.copied().unwrap_or_default(),
            reader,
        }
    };
    written.map(flow).collect()
}

fn is_are(names: &[&str]) -> String {
    format!("{} {}", names.join(" and "), if names.len() == 1 { "is" } else { "are" })
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".to_owned(),
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn send(all: &[Running], signal: Signal) {
    for one in all.iter().filter(|one| one.status.is_none()) {
        let _ = kill_process_group(one.group, signal);
    }
}
