//! `sluice sieve page` and `learn`: what results say.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use measure::Error;
use measure::bench::results::{CellRow, Results, RunId, RunInfo};
use measure::bench::summary::Spread;
use measure::learned;

use crate::args::sieve::{Learn, Page};
use crate::format::time_text;
use crate::report::{say, tell};

pub(super) fn page(args: &Page) -> Result<ExitCode> {
    let results = Results::open_existing(&args.results)?;
    let info = find(&results, args.run)?;
    let output = args.output.clone().unwrap_or_else(|| beside(&args.results));
    write(&results, info.id, &output)?;
    say(format_args!("{}", output.display()));
    Ok(ExitCode::SUCCESS)
}

/// Where the page of results is when nobody says.
pub(super) fn beside(results: &Path) -> PathBuf {
    results.with_extension("html")
}

/// Draws the page of a run.
pub(super) fn write(results: &Results, id: RunId, output: &Path) -> Result<()> {
    let info = find(results, Some(id.0))?;
    let page = measure::page::page(&info, &results.rows(id)?, &time_text)?;
    std::fs::write(output, page).with_context(|| format!("cannot write {}", output.display()))
}

fn find(results: &Results, number: Option<i64>) -> Result<RunInfo> {
    let mut runs = results.runs()?.into_iter();
    let found = match number {
        Some(number) => runs.find(|run| run.id.0 == number),
        None => runs.next(),
    };
    let what = "such run";
    Ok(found.ok_or_else(|| Error::NoResults { path: results.path().to_path_buf(), what })?)
}

/// The cells of one run or of all.
pub(super) fn rows(path: &Path, number: Option<i64>) -> Result<Vec<CellRow>> {
    let results = Results::open_existing(path)?;
    let mut rows = Vec::new();
    for run in results.runs()?.into_iter().filter(|run| number.is_none_or(|id| run.id.0 == id)) {
        rows.extend(results.rows(run.id)?);
    }
    Ok(rows)
}

pub(super) fn learn(args: &Learn) -> Result<ExitCode> {
    let rows = rows(&args.results, args.run)?;
    let missing = || Error::NoResults { path: args.results.clone(), what: "two measured patterns" };
    let assessment = learned::assess(&rows).ok_or_else(missing)?;
    if args.json {
        tell(format_args!("{}", serde_json::to_string(&assessment)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    tell(format_args!("{} patterns, each predicted from the others", assessment.cells))?;
    tell(format_args!(
        "{:<28} {:>7} {:>7}   time over that of the best method",
        "model", "mean", "worst"
    ))?;
    let line = |name: &str, spread: Option<&Spread>| match spread {
        Some(Spread { geomean, max, .. }) => {
            tell(format_args!("{name:<28} {geomean:>7.3} {max:>7.2}"))
        }
        None => Ok(()),
    };
    line("learned", Some(&assessment.learned))?;
    line("analytic (adaptive)", assessment.analytic.as_ref())?;
    tell(format_args!("among the fixed methods only"))?;
    line("  learned", assessment.learned_fixed.as_ref())?;
    line("  analytic", assessment.analytic_fixed.as_ref())?;
    for spread in &assessment.fixed {
        line(&format!("  always {}", spread.method), Some(spread))?;
    }
    Ok(ExitCode::SUCCESS)
}
