//! The commands about layouts.

use std::ffi::OsString;

use clap::{Args, Subcommand, ValueHint};

/// Datasets, their views and their replicas: definitions checked and formatted
#[derive(Debug, Subcommand)]
pub(crate) enum Layout {
    Check(Check),
    Fmt(Fmt),
}

/// Say what is wrong with definitions
///
/// Every error is shown with its line, with what was expected there and, where one is known, a suggestion. Files that a
/// definition includes are checked with it. The exit status is 1 if there is an error.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout check points.drepl
  sluice layout check --json points.drepl | jq '.diagnostics[].message'
")]
pub(crate) struct Check {
    /// Definitions in the DRepl language; - is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<OsString>,
    /// One JSON object per file and line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Format definitions
///
/// Blanks, indentation and needless semicolons change; lines, comments and the meaning stay. Without a flag, the result
/// goes to standard output.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout fmt points.drepl
  sluice layout fmt --write *.drepl
  sluice layout fmt --check *.drepl
")]
pub(crate) struct Fmt {
    /// Change nothing; name the files that would change, and exit with 1 if there is one
    #[arg(long)]
    pub(crate) check: bool,
    /// Write the result into the files
    #[arg(long, conflicts_with = "check")]
    pub(crate) write: bool,
    /// Definitions in the DRepl language; - is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<OsString>,
}
