//! What users and scripts are told: failures, names in JSON, the end of standard output.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::place::{Place, Trouble};

/// Failures of a command that goes on after each.
pub(crate) struct Failures {
    /// What is done, as in "cannot list".
    verb: &'static str,
    count: usize,
}

impl Failures {
    pub(crate) fn new(verb: &'static str) -> Self {
        Self { verb, count: 0 }
    }

    /// Tells what failed, where, why, and what to do.
    pub(crate) fn add(&mut self, place: &Place, trouble: &Trouble) {
        let verb = self.verb;
        self.add_error(&format_args!("cannot {verb} {place}: {}", place.explain(trouble)));
    }

    /// Tells of a failure in full.
    pub(crate) fn add_error(&mut self, error: &dyn Display) {
        say(format_args!("sluice: {error:#}"));
        self.count += 1;
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// A path or URI in JSON, which holds only text: other bytes appear in hexadecimal beside it.
#[derive(Serialize)]
pub(crate) struct JsonName {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
}

impl JsonName {
    pub(crate) fn new(name: &[u8]) -> Self {
        let hex = std::str::from_utf8(name).is_err();
        Self {
            path: String::from_utf8_lossy(name).into_owned(),
            path_hex: hex.then(|| name.iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }
}

/// The outcome of writing to standard output: a reader that has seen enough (`| head`) is no failure.
pub(crate) fn standard_output(written: io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// Writes a line to standard error. Nobody listening there is no reason to end, as `eprintln!` would.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a line to standard output, at once.
pub(crate) fn tell(line: fmt::Arguments<'_>) -> Result<()> {
    standard_output(writeln!(io::stdout(), "{line}").and_then(|()| io::stdout().flush()))
}
