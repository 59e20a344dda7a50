//! `sluice layout status`: how replicas are.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use dataset::Condition;
use serde::Serialize;

use crate::args::layout::Status;
use crate::report::tell;

/// One line of the output for programs.
#[derive(Serialize)]
struct Found<'a> {
    file: String,
    /// A service, or another command, has it open.
    in_use: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    /// Replicas may differ until the dataset is opened again: it was not closed.
    unfinished: bool,
    replicas: Vec<Replica<'a>>,
}

#[derive(Serialize)]
struct Replica<'a> {
    name: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<&'a str>,
}

pub(crate) fn status(args: &Status) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        let path = Path::new(file);
        let found = dataset::Status::of(path)?;
        let ok = |condition: &Condition| *condition == Condition::Fresh;
        if !found.replicas.iter().all(|(_, condition)| ok(condition)) {
            code = ExitCode::FAILURE;
        }
        if args.json {
            let replicas = found.replicas.iter().map(|(name, condition)| Replica {
                name,
                ok: ok(condition),
                stale: match condition {
                    Condition::Fresh => None,
                    Condition::Stale { reason } => Some(reason),
                },
            });
            let line = Found {
                file: path.display().to_string(),
                in_use: found.in_use,
                process: found.process,
                unfinished: found.unfinished && !found.in_use,
                replicas: replicas.collect(),
            };
            tell(format_args!("{}", serde_json::to_string(&line)?))?;
            continue;
        }
        let note = match (found.in_use, found.process, found.unfinished) {
            (true, Some(process), _) => format!(" (open in process {process})"),
            (true, None, _) => " (open)".to_owned(),
            (false, _, true) => {
                " (was not closed; replicas are made equal when it is opened)".to_owned()
            }
            (false, _, false) => String::new(),
        };
        tell(format_args!("{}{note}", path.display()))?;
        let width = found.replicas.iter().map(|(name, _)| name.chars().count()).max();
        let width = width.unwrap_or(0);
        for (name, condition) in &found.replicas {
            match condition {
                Condition::Fresh => tell(format_args!("  {name:width$}  up to date"))?,
                Condition::Stale { reason } => {
                    tell(format_args!("  {name:width$}  stale: {reason}"))?;
                }
            }
        }
    }
    Ok(code)
}
