//! Being a rank of an MPI job in which some ranks serve and others use what they serve (`scdc+mpi://`).
//!
//! - `sluice serve --listen mpi:NAME` is a rank itself: [`Rank::serve`].
//! - A command that uses such a service, `sluice run` with a program that knows nothing of MPI included, is started
//!   once more as a child. This process stays as the child's *agent*: it is the rank, and carries what the child
//!   says on a socket ([`run_beside`]).
//! - A program that uses MPI becomes a rank by itself; a preloaded library does there what an agent does
//!   ([`prepare_program`]).

use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use address::Endpoint;
use anyhow::{Context, Result, bail};
use mpi::Mpi;
use ranks::launcher::{Launcher, leads_to_launcher};
use ranks::{Control, Job, Parting, Role, SOCKETS_VARIABLE, WORLD_VARIABLE};
use rustix::process::{Pid, Signal, kill_process};
use service::Running;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::args::{Command as Order, MpiRole, Run};
use crate::in_force::InForce;
use crate::launch::{library, mpi as programs};
use crate::report::say;

/// Tells a child that it has an agent: the agent's process number.
const AGENT_VARIABLE: &str = "SLUICE_MPI_AGENT";

/// After so long without all ranks the user is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// This process as a rank.
pub(crate) struct Rank {
    mpi: &'static Mpi,
    job: Job,
}

impl Rank {
    /// Initializes MPI and meets the other ranks. The thread that calls this is the one that may call MPI.
    pub(crate) fn join(role: &Role) -> Result<Self> {
        let (arrived, waiting) = channel();
        std::thread::spawn(move || tell_of_waiting(&waiting));
        let mpi = Launcher::load()?;
        mpi.start(mpi.constants().numbers.thread_funneled).context("MPI_Init_thread")?;
        let job = Job::join(mpi, role)?;
        drop(arrived);
        Ok(Self { mpi, job })
    }

    /// Serves the other ranks until all have said goodbye. A first signal ends the service, but not the rank: the
    /// others need it to finalize MPI. A second ends that, too.
    pub(crate) fn serve(self, running: Running, mut signals: Signals) -> Result<()> {
        if self.job.client_count() == 0 {
            say(format_args!(
                "sluice serve: no rank of this MPI job is a client; start some by `sluice run`, as docs/MPI.md shows"
            ));
        }
        let control = Control::new()?;
        let on_signal = control.clone();
        std::thread::spawn(move || {
            let mut signals = signals.forever();
            signals.next();
            on_signal.end();
            if signals.next().is_some() {
                std::process::exit(1);
            }
        });
        let mut adopt = |socket| running.adopt(socket).is_ok();
        self.job.serve(&control, &mut adopt)?;
        running.stop();
        self.end()
    }

    fn end(self) -> Result<()> {
        self.job.leave();
        self.mpi.end().context("MPI_Finalize")
    }
}

/// Says once what the job waits for, if it waits for long.
fn tell_of_waiting(waiting: &Receiver<()>) {
    if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        say(format_args!(
            "sluice: still waiting for the other ranks of this MPI job; each must be started by `sluice serve \
             --listen mpi:NAME`, `sluice run --mpi agent` or `sluice run --mpi program`, and a program must call \
             MPI_Init"
        ));
    }
}

/// Whether this process is to be the agent of a child that does what the command says.
pub(crate) fn is_agent(order: &Order, in_force: impl Fn() -> Result<InForce>) -> Result<bool> {
    if std::env::var_os(SOCKETS_VARIABLE).is_some() {
        return Ok(false);
    }
    match order {
        Order::Run(Run { mpi: Some(MpiRole::Agent), .. }) => return Ok(true),
        Order::Run(Run { mpi: Some(_), .. }) => return Ok(false),
        Order::Run(_)
        | Order::Ls(_)
        | Order::Cat(_)
        | Order::Cp(_)
        | Order::Rm(_)
        | Order::Stat(_)
        | Order::Mkdir(_)
        | Order::Cmd(_) => {}
        _ => return Ok(false),
    }
    if Launcher::of_process().is_none() || !names_a_service(&in_force()?) {
        return Ok(false);
    }
    let Order::Run(run) = order else { return Ok(true) };
    // What cannot be run at all is for `sluice run` to refuse.
    let program = run.program.first().and_then(|name| crate::launch::program::check(name).ok());
    Ok(program.is_some_and(|path| !programs::is_mpi_program(&path)))
}

/// Whether the program that is run becomes a rank of a job with services by itself.
pub(crate) fn is_program(run: &Run, in_force: &InForce, path: &Path) -> bool {
    match run.mpi {
        Some(role) => role == MpiRole::Program,
        None => {
            std::env::var_os(SOCKETS_VARIABLE).is_none()
                && Launcher::of_process().is_some()
                && programs::is_mpi_program(path)
                && names_a_service(in_force)
        }
    }
}

/// Whether the command line or a route leads to a service of an MPI job.
fn names_a_service(in_force: &InForce) -> bool {
    const SCHEMES: [&[u8]; 2] = [b"scdc+mpi:", b"sluice+mpi:"];
    let named = |text: &[u8]| {
        SCHEMES.iter().any(|scheme| text.windows(scheme.len()).any(|part| part == *scheme))
    };
    std::env::args_os().any(|word| named(word.as_bytes()))
        || in_force
            .settings
            .routes
            .iter()
            .any(|route| matches!(route.uri().endpoint, Endpoint::Mpi { .. }))
}

/// Lets a program join the job when it calls MPI_Init.
pub(crate) fn prepare_program(command: &mut Command, library: &Path, run: &Run) -> Result<()> {
    let has_large_counts = Launcher::of_process() != Some(Launcher::OpenMpi);
    // Behind the others: what they do with communicators is meant as the program means it.
    let inherited = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD");
    let mut preload = inherited.and_then(|(_, value)| value).unwrap_or_default().to_owned();
    for world in library::for_world(library, has_large_counts)? {
        preload.push(":");
        preload.push(world);
    }
    command.env("LD_PRELOAD", preload);
    command.env(SOCKETS_VARIABLE, sockets()?);
    command.env(WORLD_VARIABLE, run.mpi_world.as_deref().unwrap_or_default());
    Ok(())
}

/// A name for the sockets of this rank that nobody else has.
fn sockets() -> Result<String> {
    let mut random = [0; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .context("no random number for the sockets of this rank")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Starts this very command once more, and is its agent until it has ended.
pub(crate) fn run_beside() -> Result<ExitCode> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])
        .context("cannot take over signals")?;
    let rank = Rank::join(&Role::Agent)?;
    if rank.job.services().is_empty() {
        bail!("no rank of this MPI job serves; start one by `sluice serve --listen mpi:NAME`");
    }
    let (sockets, control) = (sockets()?, Control::new()?);
    let (report, reported) = channel();
    let start = || {
        let ended = control.clone();
        let outcome = child(&sockets).map(|mut child| {
            let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    forward(process, signal);
                }
            });
            let report = report.clone();
            std::thread::spawn(move || {
                let _ = report.send(child.wait());
                ended.end();
            });
        });
        if outcome.is_err() {
            control.end();
        }
        outcome
    };
    let mut started = None;
    let parting = rank.job.attend(&sockets, &control, || started = Some(start()))?;
    if let Some(outcome) = started {
        outcome?;
    }
    let status = reported.recv().context("the program's end was not noticed")??;
    match parting {
        Parting::Orderly => rank.end()?,
        Parting::Abandoned => {
            say(format_args!("sluice: a service of this MPI job does not answer any more"));
            std::process::exit(code(status).max(1).into());
        }
    }
    Ok(ExitCode::from(code(status)))
}

fn child(sockets: &str) -> Result<Child> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    let mut command = Command::new(own);
    command.args(std::env::args_os().skip(1));
    // Not even a program that uses MPI may take this rank's place.
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| leads_to_launcher(&name.to_string_lossy()))
    {
        command.env_remove(name);
    }
    command.env(SOCKETS_VARIABLE, sockets).env(AGENT_VARIABLE, std::process::id().to_string());
    command.spawn().context("cannot start the program beside its agent")
}

fn forward(process: Option<Pid>, signal: i32) {
    if let (Some(process), Some(signal)) = (process, Signal::from_named_raw(signal)) {
        // It may have ended meanwhile.
        let _ = kill_process(process, signal);
    }
}

/// The exit status as a shell would give it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// In a child with an agent: ends with it, for without the agent nobody waits for the program.
pub(crate) fn stay_with_agent() -> Result<()> {
    let Some(agent) = std::env::var(AGENT_VARIABLE).ok().and_then(|text| text.parse::<i32>().ok())
    else {
        return Ok(());
    };
    let is_parent =
        || rustix::process::getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == agent);
    // A `sluice run` further down has another parent, which looks after it.
    if is_parent() {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .context("cannot bind the program to its agent")?;
        if !is_parent() {
            bail!("the agent of this program has ended");
        }
    }
    Ok(())
}
