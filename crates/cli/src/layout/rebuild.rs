//! `sluice layout rebuild`: replicas made anew.

use std::process::ExitCode;

use anyhow::Result;

use super::found::{Called, Found};
use crate::args::layout::Rebuild;
use crate::place::Places;

pub(crate) fn rebuild(args: &Rebuild, places: &Places) -> Result<ExitCode> {
    let found = Found::new(&args.file, places)?;
    found.rebuild(&args.replicas, &Called::new(&args.file, args.quiet)?)?;
    found.close()?;
    Ok(ExitCode::SUCCESS)
}
