//! The program `sluice`.
//!
//! 1. [`args`] says what the command line may be.
//! 2. [`in_force`] lays flags over the configuration file.
//! 3. Each command is a module: [`launch`] becomes another program; [`serve`] answers 9P; the others work on
//!    [`place::Place`]s, which may be local or remote.
//!
//! Results go to standard output, everything else to standard error. Exit status: 0 done, 1 something failed, 2 the
//! command line is wrong; `run` has its own (125, 126, 127), as env(1) has.
#![forbid(unsafe_code)]

mod agents;
mod args;
mod cmd;
mod copy;
mod couple;
mod doctor;
mod format;
mod in_force;
mod launch;
mod layout;
mod list;
mod log;
mod manual;
mod mount;
mod objects;
mod place;
mod rank;
mod report;
mod serve;
mod show;
mod sieve;
mod sockets;
mod stores;
mod tree;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use args::{Cli, Command};
use in_force::InForce;
use place::Places;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let failed = match cli.command {
        Command::Run(_) => ExitCode::from(125),
        _ => ExitCode::FAILURE,
    };
    match dispatch(&cli) {
        Ok(code) => code,
        Err(error) => {
            // Several things may be wrong with a configuration file.
            let lines = format!("{error:#}").replace('\n', "\nsluice: ");
            crate::report::say(format_args!("sluice: {lines}"));
            failed
        }
    }
}

fn dispatch(cli: &Cli) -> Result<ExitCode> {
    let in_force = || InForce::new(&cli.common);
    if rank::is_agent(&cli.command, in_force)? {
        return rank::run_beside();
    }
    let places = || Places::new(in_force()?);
    match &cli.command {
        Command::Run(args) => launch::run(args, &in_force()?),
        Command::Serve(args) => serve::serve(args, &in_force()?),
        Command::Ls(args) => list::ls(args, &places()?),
        Command::Cat(args) => show::cat(args, &places()?),
        Command::Cp(args) => copy::cp(args, &places()?),
        Command::Rm(args) => tree::rm(args, &places()?),
        Command::Stat(args) => show::stat(args, &places()?),
        Command::Mkdir(args) => tree::mkdir(args, &places()?),
        Command::Cmd(args) => cmd::cmd(args, &places()?),
        Command::Mount(args) => mount::mount(args, &places()?),
        Command::Umount(args) => mount::umount(args),
        Command::Sieve(command) => sieve::sieve(command, &in_force),
        Command::Log(command) => log::log(command, &in_force),
        Command::Couple(command) => couple::couple(command),
        Command::ObjectsAgent(args) => objects::agent(args),
        Command::Orphan(args) => Ok(agents::start_orphan(args)),
        Command::Layout(command) => layout::layout(command, &places),
        Command::Doctor(args) => doctor::doctor(args, in_force()?),
        Command::Completions(args) => manual::completions(args).map(|()| ExitCode::SUCCESS),
        Command::Man(args) => manual::pages(args).map(|()| ExitCode::SUCCESS),
    }
}
