//! `sluice couple`: what there is of coupling programs.

mod check;
mod explain;
mod simulate;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::couple::Couple;

pub(crate) fn couple(command: &Couple) -> Result<ExitCode> {
    match command {
        Couple::Check(args) => check::check(args),
        Couple::Simulate(args) => simulate::simulate(args),
        Couple::Explain(args) => explain::explain(args),
    }
}
