//! `sluice couple`: programs that exchange data instead of files.

mod check;
mod explain;
pub(crate) mod part;
mod run;
mod simulate;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::couple::Couple;

pub(crate) fn couple(command: &Couple) -> Result<ExitCode> {
    match command {
        Couple::Run(args) => run::run(args),
        Couple::Check(args) => check::check(args),
        Couple::Simulate(args) => simulate::simulate(args),
        Couple::Explain(args) => explain::explain(args),
    }
}
