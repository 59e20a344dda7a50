//! `sluice layout add` and `sluice layout remove`: a definition, and the dataset that follows it.

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, Result};
use dataset::Edit;

use super::files::STANDARD_INPUT;
use super::found::{Called, Found};
use crate::args::layout::{Add, Remove};
use crate::place::Places;

pub(crate) fn add(args: &Add, places: &Places) -> Result<ExitCode> {
    let mut sections = String::new();
    for section in &args.sections {
        if section == STANDARD_INPUT {
            std::io::stdin()
                .lock()
                .read_to_string(&mut sections)
                .context("cannot read standard input")?;
        } else {
            sections.push_str(section);
        }
        sections.push('\n');
    }
    let found = Found::new(&args.file, places)?;
    found.change(&Edit::Add(sections), &Called::new(&args.file, args.quiet)?)?;
    found.close()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn remove(args: &Remove, places: &Places) -> Result<ExitCode> {
    let found = Found::new(&args.file, places)?;
    let called = Called::new(&args.file, args.quiet)?;
    for name in args.names.iter().cloned() {
        let edit = if args.replica { Edit::RemoveReplica(name) } else { Edit::RemoveView(name) };
        found.change(&edit, &called)?;
    }
    found.close()?;
    Ok(ExitCode::SUCCESS)
}
