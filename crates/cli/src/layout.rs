//! `sluice layout`: definitions of datasets, views and replicas.

mod change;
mod check;
mod explain;
mod files;
mod fmt;
mod found;
mod interchange;
mod rebuild;
mod status;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::layout::Layout;
use crate::place::Places;

pub(crate) fn layout(command: &Layout, places: &dyn Fn() -> Result<Places>) -> Result<ExitCode> {
    match command {
        Layout::Check(args) => check::check(args),
        Layout::Fmt(args) => fmt::fmt(args),
        Layout::Status(args) => status::status(args, &places()?),
        Layout::Rebuild(args) => rebuild::rebuild(args, &places()?),
        Layout::Add(args) => change::add(args, &places()?),
        Layout::Remove(args) => change::remove(args, &places()?),
        Layout::Explain(args) => explain::explain(args),
        Layout::Import(args) => interchange::import(args),
        Layout::Export(args) => interchange::export(args),
    }
}
