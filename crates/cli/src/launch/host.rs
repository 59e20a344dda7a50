//! A program whose stores are datasets: this process stays, and serves them on a socket of its own for as long as the
//! program runs, because several processes of a program cannot each keep replicas equal.
//!
//! The program is a child in the same process group, so that the terminal means it as it would otherwise. What the
//! terminal sends reaches both, and this process leaves it to the program; what somebody sends to this process alone is
//! passed on. When the program is stopped by the terminal's ways, so is this process, for whoever waits for it; it ends
//! as the program has ended, when all replicas are up to date.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use address::{Endpoint, Settings, SocketName, StorePlace, StoreSpec};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use service::{Limits, Running, Service};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
    SIGUSR1, SIGUSR2, SIGWINCH, SIGXFSZ,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

use crate::report::say;
use crate::{serve, stores};

/// What the program gets that is sent to this process. `SIGTSTP` alone of those that stop: the others come of using the
/// terminal, which this process does not.
const FORWARDED: [i32; 10] =
    [SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH];

/// `SI_KERNEL` of sigaction(2): the terminal has sent it, to all of the process group.
const FROM_KERNEL: i32 = 0x80;

/// After so long at the end, the user is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Datasets that are served for one program.
pub(crate) struct Host {
    running: Running,
}

impl Host {
    /// Serves the datasets among the stores, and makes the settings lead there; none if there is none.
    pub(crate) fn start(settings: &mut Settings) -> Result<Option<Self>> {
        let mut own = Vec::new();
        for spec in &mut settings.stores {
            let StorePlace::Dataset(path) = &spec.place else { continue };
            // Programs share what is served for all of them.
            match dataset::Service::of(path).filter(|_| is_in_use(path)) {
                Some(service) if !service.is_private => {
                    spec.place = StorePlace::Relay(address::Uri::parse(service.uri.as_bytes())?);
                }
                _ => own.push(spec.clone()),
            }
        }
        if own.is_empty() {
            return Ok(None);
        }
        // A write beyond the limit is then EFBIG for the program, and not the end of the service (setrlimit(2)).
        signal_hook::flag::register(SIGXFSZ, Arc::default()).context("cannot take over SIGXFSZ")?;
        stores::say_only_trouble();
        let exports = Arc::new(stores::exports(&own, false, settings)?);
        let name = SocketName::Named(format!("run-{}", std::process::id()));
        let listen = serve::listen(&Endpoint::Unix(name))?;
        let running = Service::builder(exports).limits(Limits::default()).listen(listen).start()?;
        let Some(uri) = running.addresses().first().map(serve::uri) else {
            bail!("the datasets could not be served")
        };
        let is_own = |spec: &StoreSpec| own.iter().any(|one| one.name == spec.name);
        for spec in settings.stores.iter_mut().filter(|spec| is_own(spec)) {
            spec.place = StorePlace::Relay(uri.join(&spec.name));
        }
        stores::announce(&own, &uri, true);
        Ok(Some(Self { running }))
    }

    /// Runs the program, and ends as it ends.
    pub(crate) fn run(self, command: &mut Command, path: &Path) -> Result<ExitCode> {
        // What is ignored stays so, here and in the program (nohup(1)).
        let ignored = ignored();
        let watched: Vec<i32> = FORWARDED.into_iter().filter(|one| !ignored(*one)).collect();
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
        let is_well = self.finish();
        if let Some(signal) = status.terminating_signal() {
            die_of(signal);
            return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)));
        }
        let code = u8::try_from(status.exit_status().unwrap_or(1)).unwrap_or(u8::MAX);
        // Success would mean that what was written is where it belongs.
        Ok(ExitCode::from(if code == 0 && !is_well { 125 } else { code }))
    }

    /// Brings all replicas up to date. False, and said, if that fails.
    fn finish(self) -> bool {
        let (done, waiting) = channel::<()>();
        std::thread::spawn(move || {
            if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                say(format_args!(
                    "sluice run: the program has ended; bringing replicas up to date"
                ));
            }
        });
        self.running.stop();
        let is_well = stores::close_datasets();
        drop(done);
        is_well
    }
}

fn is_in_use(path: &Path) -> bool {
    dataset::Status::of(path).is_ok_and(|status| status.in_use)
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

/// What `--layout [PREFIX=]FILE` means: a store, and a prefix that leads there.
pub(crate) fn add_layouts(settings: &mut Settings, layouts: &[std::ffi::OsString]) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let cwd = std::env::current_dir().context("cannot tell the working directory")?;
    let mut routes: Vec<address::Route> = settings.routes.iter().cloned().collect();
    for text in layouts {
        let bytes = text.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=');
        let (prefix, file) = match at {
            Some(at) if bytes.first() == Some(&b'/') => (Some(&bytes[..at]), &bytes[at + 1..]),
            _ => (None, bytes),
        };
        let path = Path::new(std::ffi::OsStr::from_bytes(file));
        let Some(stem) = path.file_stem().filter(|_| !file.ends_with(b"/")) else {
            bail!("--layout {}: this is no file; name a definition", text.display())
        };
        let spec = StoreSpec {
            name: stem.as_bytes().to_vec(),
            place: StorePlace::Dataset(path.to_path_buf()),
            read_only: false,
        };
        // As any store: its name is checked by parsing it.
        let parsed = StoreSpec::parse(&[stem.as_bytes(), b"=", file].concat(), false)?;
        let spec = crate::in_force::absolute(StoreSpec { name: parsed.name, ..spec }, &cwd);
        if let Some(prefix) = prefix {
            let route = [prefix, b"=scdc:///", stem.as_bytes()].concat();
            let route = address::Route::parse(&route)?;
            routes.retain(|weaker| weaker.prefix() != route.prefix());
            routes.push(route);
        }
        settings.stores.retain(|weaker| weaker.name != spec.name);
        settings.stores.push(spec);
    }
    StoreSpec::check_distinct(&settings.stores)?;
    settings.routes = address::Routes::new(routes)?;
    Ok(())
}

/// Runs the program: becomes it, or stays to serve its datasets.
pub(crate) fn start(host: Option<Host>, command: &mut Command, path: &Path) -> Result<ExitCode> {
    if let Some(host) = host {
        return host.run(command, path);
    }
    let error = command.exec();
    say(format_args!("sluice run: {}: cannot be executed: {error}.", path.display()));
    Ok(ExitCode::from(126))
}
