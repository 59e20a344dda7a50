//! A definition with all that it includes.

use std::sync::Arc;

use crate::ast::{Dataset, Include, Item, Replica, Section, View};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::limits::{INCLUDE_DEPTH_MAX, SOURCE_SIZE_MAX, SOURCES_MAX, SOURCES_SIZE_MAX};
use crate::parse;
use crate::source::{LoadError, Loaded, Loader, Source, Sources, Span};

/// The sections of all files, in their order.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) datasets: Vec<Dataset>,
    pub(crate) views: Vec<View>,
    pub(crate) replicas: Vec<Replica>,
}

/// Reads a file and what it includes.
pub(crate) struct Reader<'a> {
    pub(crate) loader: &'a mut dyn Loader,
    pub(crate) findings: &'a mut Findings,
    pub(crate) sources: Sources,
    pub(crate) program: Program,
    /// The files that are being read, each included by the one before it.
    open: Vec<String>,
    total_size: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(loader: &'a mut dyn Loader, findings: &'a mut Findings) -> Self {
        let (sources, program) = (Sources::default(), Program::default());
        Self { loader, findings, sources, program, open: Vec::new(), total_size: 0 }
    }

    /// Reads the first file.
    pub(crate) fn read(&mut self, path: &str) {
        let loaded = self.loader.load(path, None);
        let text = match loaded {
            Ok(loaded) => self.text(loaded, None),
            Err(error) => {
                let empty = Source { name: path.to_owned(), text: "".into() };
                self.sources.add(empty);
                let label = reason(&error);
                let message = format!("cannot read `{path}`: {label}");
                self.findings
                    .add(Diagnostic::error(Code::Source, Span::default(), message).label(label));
                None
            }
        };
        if let Some(source) = text {
            self.parse(source);
        }
    }

    /// Keeps a text if it is one.
    fn text(&mut self, loaded: Loaded, include: Option<Span>) -> Option<Source> {
        let Loaded { name, bytes } = loaded;
        let size = bytes.len() as u64;
        self.total_size += size;
        let at = include.unwrap_or_default();
        let fault = if size > SOURCE_SIZE_MAX {
            Some(Diagnostic::error(Code::Limit, at, format!("`{name}`: {}", LoadError::TooLarge)))
        } else if self.total_size > SOURCES_SIZE_MAX {
            let total = SOURCES_SIZE_MAX >> 20;
            let message = format!("what is included is larger than {total} MiB together");
            Some(Diagnostic::error(Code::Limit, at, message))
        } else {
            None
        };
        let text = match (fault, String::from_utf8(bytes)) {
            (None, Ok(text)) => return Some(Source { name, text: Arc::from(text) }),
            (Some(fault), _) => {
                self.findings.add(fault.label("too large"));
                String::new()
            }
            (None, Err(error)) => {
                let valid = error.utf8_error().valid_up_to();
                let message = format!("`{name}` is not UTF-8 text: byte {valid} is wrong");
                let help = "a definition is text; is this the data?";
                let error =
                    Diagnostic::error(Code::Source, at, message).label("no text").help(help);
                self.findings.add(error);
                String::new()
            }
        };
        if include.is_none() {
            self.sources.add(Source { name, text: text.into() });
        }
        None
    }

    fn parse(&mut self, source: Source) {
        let text = source.text.clone();
        self.open.push(source.name.clone());
        let number = self.sources.add(source);
        for item in parse::parse(&text, number, self.findings) {
            match item {
                Item::Dataset(dataset) => self.program.datasets.push(dataset),
                Item::View(view) => self.program.views.push(view),
                Item::Replica(replica) => self.program.replicas.push(replica),
                Item::Include(include) => self.include(&include),
            }
        }
        self.open.pop();
    }

    fn include(&mut self, include: &Include) {
        let Include { section, path } = include;
        let error = |message| Diagnostic::error(Code::Include, path.span, message);
        if self.open.len() >= INCLUDE_DEPTH_MAX {
            let message = format!("files include each other more than {INCLUDE_DEPTH_MAX} deep");
            return self.findings.add(error(message).label("not read"));
        }
        if self.sources.iter().len() >= SOURCES_MAX {
            let message = format!("more than {SOURCES_MAX} files are included");
            return self.findings.add(error(message).label("not read"));
        }
        let from = self.open.last().map(String::as_str);
        let loaded = match self.loader.load(&path.text, from) {
            Ok(loaded) => loaded,
            Err(fault) => {
                let message = format!("cannot include `{}`: {}", path.text, reason(&fault));
                let help = match section {
                    Section::Dataset => "a dataset has no name: `dataset { … }`".to_owned(),
                    _ => format!(
                        "a {0} whose name is a text has its content behind it: `{0} \"{1}\" {{ … }}`",
                        section.word(),
                        path.text
                    ),
                };
                let error = Diagnostic::error(Code::Source, path.span, message);
                return self
                    .findings
                    .add(error.label("expected the name of a definition").help(help));
            }
        };
        if self.open.contains(&loaded.name) {
            let chain = format!("{} → {}", self.open.join(" → "), loaded.name);
            let message = format!("`{}` includes itself", loaded.name);
            return self.findings.add(error(message).label("included here").help(chain));
        }
        let Some(source) = self.text(loaded, Some(path.span)) else { return };
        let count = |program: &Program| match section {
            Section::Dataset => program.datasets.len(),
            Section::View => program.views.len(),
            Section::Replica => program.replicas.len(),
        };
        let (before, errors) = (count(&self.program), self.findings.errors());
        self.parse(source);
        if count(&self.program) == before && self.findings.errors() == errors {
            let message = format!("`{}` has no {}", path.text, section.word());
            self.findings.add(error(message).label(format!("expected a {} in it", section.word())));
        }
    }
}

/// A failure and its cause in one sentence.
fn reason(error: &LoadError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
