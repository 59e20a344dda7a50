//! `sluice layout`: definitions of datasets, views and replicas.

mod check;
mod files;
mod fmt;
mod interchange;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::layout::Layout;

pub(crate) fn layout(command: &Layout) -> Result<ExitCode> {
    match command {
        Layout::Check(args) => check::check(args),
        Layout::Fmt(args) => fmt::fmt(args),
        Layout::Import(args) => interchange::import(args),
        Layout::Export(args) => interchange::export(args),
    }
}
