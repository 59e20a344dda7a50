//! Host logs: programs write to a disk of their node, and from there all goes to its place in the background.
//!
//! 1. [`run`] is `sluice run --log`: it finds the log's [`agent`], or starts it, and leads the program's files there.
//! 2. The agent is the one process that has the log open. It serves a `logstore::LogStore` on a Unix socket, drains, and
//!    writes down how far it is ([`status`]).
//! 3. The commands of `sluice log` look at what it has written, or work on the log themselves where there is no agent
//!    ([`offline`]).
//! 4. Where a job runs on several nodes, their agents work together ([`nodes`]).

mod agent;
mod files;
mod job;
mod nodes;
mod offline;
mod owner;
pub(crate) mod run;
mod status;
mod target;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::log::Log;
use crate::in_force::InForce;

/// Does what the command says.
pub(crate) fn log(command: &Log, in_force: &dyn Fn() -> Result<InForce>) -> Result<ExitCode> {
    match command {
        Log::Status(args) => status::status(args),
        Log::Drain(args) => offline::drain(args, in_force()?),
        Log::Recover(args) => offline::recover(args, in_force()?),
        Log::Verify(args) => offline::verify(args),
        Log::Discard(args) => offline::discard(args),
        Log::Agent(args) => agent::agent(args, in_force()?),
    }
}
