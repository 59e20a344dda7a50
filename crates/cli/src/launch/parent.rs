//! A program that this process outlives: it is started as a child, and when it has ended there is something left to do.
//!
//! The program is a child in the same process group, so that the terminal means it as it would otherwise. What the
//! terminal sends reaches both, and this process leaves it to the program; what somebody sends to this process alone is
//! passed on. When the program is stopped by the terminal's ways, so is this process, for whoever waits for it; it ends
//! as the program has ended, when what is left is done.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
    SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

use crate::report::say;

/// What the program gets that is sent to this process. `SIGTSTP` alone of those that stop: the others come of using the
/// terminal, which this process does not.
const FORWARDED: [i32; 10] =
    [SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH];

/// `SI_KERNEL` of sigaction(2): the terminal has sent it, to all of the process group.
const FROM_KERNEL: i32 = 0x80;

/// Signals while there is no program any more.
pub(crate) struct Signals {
    are_default: Arc<AtomicBool>,
}

impl Signals {
    /// From here on they do with this process what they usually do: somebody may want to wait no longer.
    pub(crate) fn restore(&self) {
        self.are_default.store(true, Ordering::Release);
    }
}

/// Runs the program, then does what is `left`, and ends as the program has ended. Where `left` is not done, an exit
/// status of success becomes a failure.
pub(crate) fn run(
    command: &mut Command,
    path: &Path,
    left: impl FnOnce(&Signals, WaitStatus) -> bool,
) -> Result<ExitCode> {
    // What is ignored stays so, here and in the program (nohup(1)).
    let ignored = ignored();
    let watched: Vec<i32> = FORWARDED.into_iter().filter(|one| !ignored(*one)).collect();
    let are_default = Arc::new(AtomicBool::new(false));
    for signal in &watched {
        signal_hook::flag::register_conditional_default(*signal, Arc::clone(&are_default))
            .context("cannot take over signals")?;
    }
    // Before the program is there: execve(2) gives it what is usual in place of our handlers.
    let mut signals = SignalsInfo::<WithRawSiginfo>::new(watched.iter().chain(&[SIGCHLD]))
        .context("cannot take over signals")?;
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            say(format_args!("sluice run: {}: cannot be executed: {error}.", path.display()));
            return Ok(ExitCode::from(126));
        }
    };
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = process.context("the program has no process")?;
    let status = follow(process, &mut signals, watched.contains(&SIGCONT))?;
    let is_well = left(&Signals { are_default }, status);
    if let Some(signal) = status.terminating_signal() {
        die_of(signal);
        return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)));
    }
    let code = u8::try_from(status.exit_status().unwrap_or(1)).unwrap_or(u8::MAX);
    // Success would mean that what was written is where it belongs.
    Ok(ExitCode::from(if code == 0 && !is_well { 125 } else { code }))
}

/// Which signals this process ignores: `SigIgn` of proc_pid_status(5), a bit for each from 1.
fn ignored() -> impl Fn(i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    move |signal| bits & (1 << (signal - 1)) != 0
}

/// Waits until the program has ended, passes signals on, and stops when the terminal's ways have stopped it.
///
/// All in one thread, because of what is sent to the whole process group: a `SIGTSTP` that was passed on only after the
/// `SIGCONT` that ended the stop would stop the program for good, and the other way round. So of these two what the
/// program had already is not passed on.
fn follow(
    process: Pid,
    signals: &mut SignalsInfo<WithRawSiginfo>,
    sees_continue: bool,
) -> Result<WaitStatus> {
    // The program is; and this process was, and has not seen the `SIGCONT` without which it would not go on.
    let (mut is_stopped, mut was_stopped) = (false, false);
    loop {
        let arrived: Vec<_> = signals.wait().collect();
        let continues = arrived.iter().filter(|info| info.si_signo == SIGCONT).count();
        let mut stops = false;
        while let Some(status) = look(process)? {
            if !status.stopped() && !status.continued() {
                return Ok(status);
            }
            is_stopped = status.stopped();
            // Whoever stops the program otherwise, such as a debugger, means it and not its service.
            stops = matches!(status.stopping_signal(), Some(SIGTSTP | SIGTTIN | SIGTTOU));
        }
        // A new stop comes after the end of the last one; any other `SIGCONT` may have come after it, and is obeyed.
        let stays = stops && continues <= usize::from(was_stopped);
        for info in arrived {
            let is_known = match info.si_signo {
                SIGTSTP => is_stopped || was_stopped || continues > 0,
                SIGCONT => stays || (was_stopped && !is_stopped),
                other => other == SIGCHLD,
            };
            if info.si_code != FROM_KERNEL
                && !is_known
                && let Some(signal) = Signal::from_named_raw(info.si_signo)
            {
                // It may be about to end.
                let _ = kill_process(process, signal);
            }
        }
        was_stopped &= continues == 0;
        if stays {
            was_stopped = sees_continue;
            let _ = kill_process(rustix::process::getpid(), Signal::STOP);
        }
    }
}

/// What has become of the program since this was asked last, if anything has.
fn look(process: Pid) -> Result<Option<WaitStatus>> {
    let options = WaitOptions::UNTRACED | WaitOptions::CONTINUED | WaitOptions::NOHANG;
    loop {
        match waitpid(Some(process), options) {
            Ok(found) => return Ok(found.map(|(_, status)| status)),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno).context("the program's end was not noticed"),
        }
    }
}

/// Ends by a signal, as the program has, without leaving a second core file.
fn die_of(signal: i32) {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    // If it comes back, an exit status says it.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}
