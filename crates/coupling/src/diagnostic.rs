//! What is wrong with a configuration: where, what was expected, and what to do.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, without a full stop.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// Everything that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    /// The file.
    pub file: String,
    /// At least one, in the order of the file.
    pub list: Vec<Diagnostic>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// So many are shown: a file with more of them is hardly a configuration.
const SHOWN_MAX: usize = 20;

/// A line each: `file:line:column: message; help`.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, one) in self.list.iter().take(SHOWN_MAX).enumerate() {
            write!(f, "{}{}:{one}", if number == 0 { "" } else { "\n" }, self.file)?;
        }
        match self.list.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Diagnostics {}

/// A place in a text: line and column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct At {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Spot<T> {
    pub(crate) value: T,
    pub(crate) at: At,
}

/// Gathers what is found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) errors: Vec<Diagnostic>,
    pub(crate) warnings: Vec<Diagnostic>,
}

impl Found {
    pub(crate) fn error(&mut self, at: At, message: impl Into<String>, help: Option<String>) {
        self.errors.push(diagnostic(at, message.into(), help));
    }

    pub(crate) fn warning(&mut self, at: At, message: impl Into<String>, help: Option<String>) {
        self.warnings.push(diagnostic(at, message.into(), help));
    }
}

fn diagnostic(at: At, message: String, help: Option<String>) -> Diagnostic {
    Diagnostic { line: at.line, column: at.column, message, help }
}

/// `did you mean …?`, if a known word resembles the one that was written.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let near = address::nearest_of(word, known)?;
    Some(format!("did you mean `{near}`?"))
}
