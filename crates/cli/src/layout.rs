//! `sluice layout`: definitions of datasets, views and replicas.

mod check;
mod explain;
mod files;
mod fmt;
mod interchange;
mod rebuild;
mod status;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::layout::Layout;

pub(crate) fn layout(command: &Layout) -> Result<ExitCode> {
    match command {
        Layout::Check(args) => check::check(args),
        Layout::Fmt(args) => fmt::fmt(args),
        Layout::Status(args) => status::status(args),
        Layout::Rebuild(args) => rebuild::rebuild(args),
        Layout::Explain(args) => explain::explain(args),
        Layout::Import(args) => interchange::import(args),
        Layout::Export(args) => interchange::export(args),
    }
}
