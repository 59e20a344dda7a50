//! `sluice run`: starting a program so that its files may live elsewhere.
//!
//! 1. [`program::check`] finds the program, follows `#!` lines, and refuses what the dynamic loader would not preload.
//! 2. [`library::find`] finds the preload library, and for MPI programs ([`mpi`]) the one for MPI-IO.
//! 3. Settings go into one environment variable, the library into `LD_PRELOAD`, and execve(2) does the rest: no process
//!    stays between the shell and the program, unless something is left to do when that has ended ([`parent`]): its stores
//!    are [`datasets`], or a log is to be waited for.

mod datasets;
mod elf;
pub(crate) mod library;
pub(crate) mod mpi;
mod parent;
pub(crate) mod program;

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use address::Settings;
use anyhow::{Context, Result};

use crate::args::Run;
use crate::in_force::InForce;
use crate::report::say;
use datasets::Datasets;

/// What the library for MPI-IO reads (docs/MPI.md).
const SIEVE_VARIABLE: &str = "SLUICE_SIEVE";

/// Becomes the program, or stays until it has ended where something is left to do then.
pub(crate) fn run(args: &Run, in_force: &InForce) -> Result<ExitCode> {
    let (name, arguments) = args.program.split_first().context("no program is given")?;
    let path = match program::check(name) {
        Ok(path) => path,
        Err(refusal) => {
            say(format_args!("sluice run: {refusal}."));
            return Ok(ExitCode::from(refusal.exit_status()));
        }
    };
    let library = library::find()?;
    crate::rank::stay_with_agent()?;
    let mut settings = in_force.settings.clone();
    datasets::add_layouts(&mut settings, &args.layout)?;
    let datasets = Datasets::start(&mut settings)?;
    let log = crate::log::run::attach(&args.log, in_force, &mut settings)?;
    // After the log, whose target may be a bucket. It is kept until the program has been started.
    let _agent = crate::objects::attach(&mut settings, &args.program, args.objects)?;
    let mut command = Command::new(&path);
    command.arg0(name).args(arguments);
    environment(&mut command, &settings, &library, !args.no_patch);
    if let Some(log) = &log {
        log.tell(&mut command);
    }
    let part = crate::couple::part::join(&args.couple)?;
    if let Some(part) = &part {
        part.tell(&mut command);
    }
    if let Some(for_mpi) = library::for_mpi(&library).filter(|_| mpi::is_mpi_program(&path)) {
        // The flag, else what is set already, else the configuration.
        let is_set = std::env::var_os(SIEVE_VARIABLE).is_some();
        let configured = in_force.config.sieve.mpi.filter(|_| !is_set);
        if let Some(method) = args.sieve.or(configured) {
            command.env(SIEVE_VARIABLE, method.as_str());
        }
        add(&mut command, &library, &for_mpi);
    }
    if part.is_some() {
        add(&mut command, &library, &library::for_coupling()?);
    }
    if crate::rank::is_program(args, in_force, &path) {
        crate::rank::prepare_program(&mut command, &library, args)?;
    }
    if datasets.is_none() && !args.log.wait && part.is_none() {
        let error = command.exec();
        say(format_args!("sluice run: {}: cannot be executed: {error}.", path.display()));
        return Ok(ExitCode::from(126));
    }
    parent::run(&mut command, &path, |signals, how| {
        if let Some(part) = part {
            part.end(how);
        }
        let is_equal = datasets.is_none_or(Datasets::finish);
        signals.restore();
        let drained = match log.filter(|_| args.log.wait) {
            Some(log) => log.wait(in_force),
            None => Ok(()),
        };
        if let Err(error) = &drained {
            say(format_args!("sluice run: {error:#}"));
        }
        is_equal && drained.is_ok()
    })
}

/// Preloads another library, behind the first.
fn add(command: &mut Command, library: &Path, other: &Path) {
    let set = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD");
    let existing = set.and_then(|(_, value)| value.map(OsStr::to_owned));
    let others = library::preload(other, existing);
    command.env("LD_PRELOAD", library::preload(library, Some(others)));
}

/// Tells a program's process, and those that it starts, where its files are.
pub(crate) fn environment(command: &mut Command, settings: &Settings, library: &Path, patch: bool) {
    command.env(Settings::VARIABLE, settings.to_env());
    command.env("LD_PRELOAD", library::preload(library, std::env::var_os("LD_PRELOAD")));
    if !patch {
        command.env("SLUICE_PATCH", "0");
    }
}
