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

mod args;
#[allow(dead_code)]
mod format;
mod in_force;
mod launch;
mod manual;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use args::{Cli, Command};
use in_force::InForce;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let failed = match cli.command {
        Command::Run(_) => ExitCode::from(125),
        _ => ExitCode::FAILURE,
    };
    match dispatch(&cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sluice: {error:#}");
            failed
        }
    }
}

fn dispatch(cli: &Cli) -> Result<ExitCode> {
    let in_force = || InForce::new(&cli.common);
    match &cli.command {
        Command::Run(args) => launch::run(args, &in_force()?),
        Command::Completions(args) => manual::completions(args).map(|()| ExitCode::SUCCESS),
        Command::Man(args) => manual::pages(args).map(|()| ExitCode::SUCCESS),
        _ => todo!(),
    }
}
