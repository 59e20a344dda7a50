//! Diagnostics with the source lines they are about.

use std::collections::HashMap;
use std::fmt::Write as _;

use ariadne::{Cache, CharSet, Color, Config, IndexType, Label, Report, ReportKind, Source};

use super::{Diagnostic, Diagnostics, Severity};
use crate::source::{Sources, Span};

/// Source texts in the form in which ariadne wants them, prepared when they are first shown.
struct Shown<'a> {
    sources: &'a Sources,
    prepared: HashMap<u32, Source<&'a str>>,
}

impl<'a> Cache<u32> for Shown<'a> {
    type Storage = &'a str;

    fn fetch(&mut self, id: &u32) -> Result<&Source<&'a str>, impl std::fmt::Debug> {
        let text = self.sources.get(*id).map_or("", |source| &source.text);
        Ok::<_, std::convert::Infallible>(
            self.prepared.entry(*id).or_insert_with(|| Source::from(text)),
        )
    }

    fn display<'b>(&self, id: &'b u32) -> Option<impl std::fmt::Display + 'b> {
        self.sources.get(*id).map(|source| source.name.clone())
    }
}

pub(super) fn render(diagnostics: &Diagnostics, colour: bool) -> String {
    let mut shown = Shown { sources: &diagnostics.sources, prepared: HashMap::new() };
    let mut text = Vec::new();
    for one in &diagnostics.list {
        if !is_showable(one, &diagnostics.sources) {
            text.extend(plain(one, &diagnostics.sources).into_bytes());
            continue;
        }
        let written = report(one, colour).write(&mut shown, &mut text);
        debug_assert!(written.is_ok(), "memory takes everything");
    }
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if diagnostics.omitted > 0 {
        let _ = writeln!(text, "… and {} more errors", diagnostics.omitted);
    }
    // Lines without text end in the spaces of their margin.
    text.lines().fold(String::new(), |lines, line| lines + line.trim_end() + "\n")
}

/// Lines that no terminal shows are not shown.
const LINE_LEN_MAX: usize = 500;

fn is_showable(one: &Diagnostic, sources: &Sources) -> bool {
    let spans = one.related.iter().map(|(span, _)| *span).chain([one.span]);
    spans.into_iter().all(|span| {
        let Some(source) = sources.get(span.source) else { return false };
        // In another file than the first ariadne 0.6 takes a count of characters for one of bytes (`write.rs`, "location").
        if span.source != one.span.source && !source.text.is_ascii() {
            return false;
        }
        [span.start, span.end].into_iter().all(|at| {
            let (before, after) = source.text.as_bytes().split_at(at as usize);
            let is_line = |byte: &u8| *byte != b'\n';
            let before = before.iter().rev().take(LINE_LEN_MAX).take_while(|byte| is_line(byte));
            let after = after.iter().take(LINE_LEN_MAX).take_while(|byte| is_line(byte));
            before.count() + after.count() < LINE_LEN_MAX
        })
    })
}

/// Without the line.
fn plain(one: &Diagnostic, sources: &Sources) -> String {
    let severity = match one.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
    };
    let mut text = format!("[{}] {severity}: {}\n", one.code.as_str(), one.message);
    if let Some(at) = sources.position(one.span) {
        let _ = writeln!(text, "   at {}:{}:{}: {}", at.name, at.line, at.column, one.label);
    }
    if let Some(help) = &one.help {
        let _ = writeln!(text, "   Help: {help}");
    }
    text
}

type Place = (u32, std::ops::Range<usize>);

fn place(span: Span) -> Place {
    (span.source, span.start as usize..span.end as usize)
}

fn report(one: &Diagnostic, colour: bool) -> Report<'_, Place> {
    let (kind, paint) = match one.severity {
        Severity::Error => (ReportKind::Error, Color::Red),
        Severity::Warning => (ReportKind::Warning, Color::Yellow),
    };
    let config = Config::default()
        .with_color(colour)
        .with_char_set(CharSet::Unicode)
        .with_index_type(IndexType::Byte);
    let label = if one.label.is_empty() { "here" } else { &one.label };
    // In the order of the text: ariadne shows what goes backwards as if it were of another file.
    let main = std::iter::once((one.span, label, paint));
    let related = one.related.iter().map(|(span, text)| (*span, &**text, Color::Cyan));
    let mut labels: Vec<_> = main.chain(related).collect();
    labels.sort_by_key(|(span, ..)| *span);
    let labels = labels
        .into_iter()
        .map(|(span, text, paint)| Label::new(place(span)).with_message(text).with_color(paint));
    let mut report = Report::build(kind, place(one.span))
        .with_config(config)
        .with_code(one.code.as_str())
        .with_message(&one.message)
        .with_labels(labels);
    if let Some(help) = &one.help {
        report = report.with_help(help);
    }
    report.finish()
}
