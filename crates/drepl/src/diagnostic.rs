//! What is wrong with a definition: where, what was expected, and what to do.

use std::fmt;

use crate::limits::DIAGNOSTICS_MAX;
use crate::source::{Sources, Span};

#[cfg(feature = "render")]
mod render;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// There is no definition.
    Error,
    /// The definition stands, but something in it means nothing.
    Warning,
}

/// What kind of thing is wrong; for programs, and for those who look one up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// A file cannot be read, or is no text.
    Source,
    /// A file includes itself, or too much is included.
    Include,
    /// A character, number or text that the language does not have.
    Token,
    /// Something else was expected here.
    Syntax,
    /// Something nests too deeply, or is too large to work on.
    Limit,
    /// A name that is not defined.
    UnknownName,
    /// A name that is defined twice, or belongs to the language.
    DuplicateName,
    /// A type or constant that is defined by itself.
    Cycle,
    /// A value that does not fit, or does not exist.
    Arithmetic,
    /// The length of an array or a text that cannot be.
    Length,
    /// Something of variable size where only fixed sizes can be.
    VariableSize,
    /// A size that no file can have.
    Size,
    /// A part that its variable does not have.
    Shape,
    /// An index of a slice that is no `step * i + start`, or leads out of the array.
    Index,
    /// A flag or option that contradicts another, or means nothing here.
    Flag,
    /// A place in a view that is taken already.
    Placing,
    /// A replica that cannot be.
    Replica,
    /// Data that no replica stores.
    Coverage,
}

impl Code {
    /// As it is called in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Source => "source",
            Code::Include => "include",
            Code::Token => "token",
            Code::Syntax => "syntax",
            Code::Limit => "limit",
            Code::UnknownName => "unknown-name",
            Code::DuplicateName => "duplicate-name",
            Code::Cycle => "cycle",
            Code::Arithmetic => "arithmetic",
            Code::Length => "length",
            Code::VariableSize => "variable-size",
            Code::Size => "size",
            Code::Shape => "shape",
            Code::Index => "index",
            Code::Flag => "flag",
            Code::Placing => "placing",
            Code::Replica => "replica",
            Code::Coverage => "coverage",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What kind of thing it is.
    pub code: Code,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What is said beneath that place; what was expected, or the reason.
    pub label: String,
    /// Other places that have to do with it.
    pub related: Vec<(Span, String)>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    pub(crate) fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            label: String::new(),
            related: Vec::new(),
            help: None,
        }
    }

    pub(crate) fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    pub(crate) fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    pub(crate) fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push((span, text.into()));
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Help that is known only sometimes.
    pub(crate) fn maybe_help(mut self, text: Option<String>) -> Self {
        self.help = text.or(self.help);
        self
    }
}

/// Everything that is wrong with a definition, in the order in which it stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    /// At most [`DIAGNOSTICS_MAX`](crate::limits::DIAGNOSTICS_MAX).
    pub list: Vec<Diagnostic>,
    /// How many more there are.
    pub omitted: usize,
    /// What the spans are ranges of.
    pub sources: Sources,
}

impl Diagnostics {
    /// Whether there is an error among them, or only warnings.
    pub fn has_errors(&self) -> bool {
        self.omitted > 0 || self.list.iter().any(|one| one.severity == Severity::Error)
    }

    /// The same, with another name for the text that was looked at.
    pub fn named(mut self, name: &str) -> Self {
        self.sources.rename(name);
        self
    }

    /// As people read them, with source lines; `colour` for a terminal.
    #[cfg(feature = "render")]
    pub fn render(&self, colour: bool) -> String {
        render::render(self, colour)
    }
}

/// One line each: `name:line:column: error: message`.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, one) in self.list.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            if let Some(at) = self.sources.position(one.span) {
                write!(f, "{}:{}:{}: ", at.name, at.line, at.column)?;
            }
            let severity = match one.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            write!(f, "{severity}: {}", one.message)?;
        }
        if self.omitted > 0 {
            write!(f, "\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Where the parts of the compiler put what they find.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Diagnostic>,
    omitted: usize,
    errors: usize,
    /// Part of the text was not understood: names that are missing may stand there.
    pub(crate) is_partial: bool,
}

impl Findings {
    pub(crate) fn add(&mut self, one: Diagnostic) {
        if self.is_partial && one.code == Code::UnknownName {
            self.errors += 1;
            return;
        }
        let is_error = one.severity == Severity::Error;
        self.errors += usize::from(is_error);
        if self.list.len() < DIAGNOSTICS_MAX {
            self.list.push(one);
        } else {
            // A warning that nobody sees is none.
            self.omitted += usize::from(is_error);
        }
    }

    /// What is found from now on is only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.is_partial || self.list.len() >= DIAGNOSTICS_MAX
    }

    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    /// Orders them by place; sources in the order in which they were read.
    pub(crate) fn into_diagnostics(mut self, sources: Sources) -> Diagnostics {
        self.list.sort_by_key(|one| one.span);
        Diagnostics { list: self.list, omitted: self.omitted, sources }
    }
}
