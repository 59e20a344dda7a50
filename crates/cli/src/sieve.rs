//! `sluice sieve`: plans, parameters and measurements of non-contiguous access.

mod bench;
mod explain;
mod page;
mod parameters;
mod tune;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::sieve::Sieve;
use crate::in_force::InForce;

pub(crate) fn sieve(command: &Sieve, in_force: &dyn Fn() -> Result<InForce>) -> Result<ExitCode> {
    match command {
        Sieve::Explain(args) => explain::explain(args, in_force),
        Sieve::Bench(args) => bench::bench(args, in_force),
        Sieve::Tune(args) => tune::tune(args, in_force),
        Sieve::Page(args) => page::page(args),
        Sieve::Learn(args) => page::learn(args),
    }
}
