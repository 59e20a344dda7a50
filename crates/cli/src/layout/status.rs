//! `sluice layout status`: how replicas are.

use std::ffi::OsStr;
use std::process::ExitCode;

use anyhow::Result;
use dataset::{Condition, ReplicaReport};
use serde::Serialize;

use super::found::Control;
use crate::args::layout::Status;
use crate::place::{Place, Places};
use crate::report::tell;

/// One line of the output for programs.
#[derive(Serialize)]
struct Shown {
    file: String,
    /// A service, or another command, has it open.
    in_use: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    /// Replicas may differ until the dataset is opened again: it was not closed.
    unfinished: bool,
    replicas: Vec<Replica>,
}

#[derive(Serialize)]
struct Replica {
    name: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<String>,
    /// While it is made: bytes done, and bytes in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<(u64, u64)>,
}

impl From<ReplicaReport> for Replica {
    fn from(report: ReplicaReport) -> Self {
        let stale = report.stale.or(report.orphaned);
        Self { name: report.name, ok: stale.is_none(), stale, progress: report.progress }
    }
}

pub(crate) fn status(args: &Status, places: &Places) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        let shown = look(file, places)?;
        if !shown.replicas.iter().all(|replica| replica.ok) {
            code = ExitCode::FAILURE;
        }
        if args.json {
            tell(format_args!("{}", serde_json::to_string(&shown)?))?;
        } else {
            print(&shown)?;
        }
    }
    Ok(code)
}

fn look(file: &OsStr, places: &Places) -> Result<Shown> {
    let name = std::path::Path::new(file).display().to_string();
    let served = |control: &Control| -> Result<Shown> {
        let report = control.report()?;
        Ok(Shown {
            file: name.clone(),
            in_use: true,
            process: Some(report.process),
            unfinished: false,
            replicas: report.replicas.into_iter().map(Replica::from).collect(),
        })
    };
    let path = match places.find(file)? {
        Place::Remote(remote) => return served(&Control::new(remote.session(), remote.uri())),
        Place::Local(path) => path,
    };
    let found = dataset::Status::of(&path)?;
    if found.in_use
        && let Some(control) = Control::of_file(&path, places)?
        // Else what is known without it is shown.
        && let Ok(shown) = served(&control)
    {
        return Ok(shown);
    }
    let replicas = found.replicas.into_iter().map(|(name, condition)| Replica {
        name,
        ok: condition == Condition::Fresh,
        stale: match condition {
            Condition::Fresh => None,
            Condition::Stale { reason } => Some(reason),
        },
        progress: None,
    });
    Ok(Shown {
        file: name,
        in_use: found.in_use,
        process: found.process,
        unfinished: found.unfinished && !found.in_use,
        replicas: replicas.collect(),
    })
}

fn print(shown: &Shown) -> Result<()> {
    let note = match (shown.in_use, shown.process, shown.unfinished) {
        (true, Some(process), _) => format!(" (open in process {process})"),
        (true, None, _) => " (open)".to_owned(),
        (false, _, true) => {
            " (was not closed; replicas are made equal when it is opened)".to_owned()
        }
        (false, _, false) => String::new(),
    };
    tell(format_args!("{}{note}", shown.file))?;
    let width = shown.replicas.iter().map(|replica| replica.name.chars().count()).max();
    let width = width.unwrap_or(0);
    for Replica { name, stale, progress, .. } in &shown.replicas {
        match (progress, stale) {
            (Some((done, all)), _) => {
                let percent = (u128::from(*done) * 100).checked_div(u128::from(*all));
                let percent = percent.unwrap_or(100);
                tell(format_args!("  {name:width$}  is being made: {percent} % of {all} bytes"))?;
            }
            (None, Some(reason)) => tell(format_args!("  {name:width$}  stale: {reason}"))?,
            (None, None) => tell(format_args!("  {name:width$}  up to date"))?,
        }
    }
    Ok(())
}
