//! `sluice layout check`: what is wrong with definitions.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use dataset::{Explanation, VariablePlace};
use drepl::source::{Sources, Span};
use drepl::{Code, Compiled, Diagnostic, Diagnostics, Severity};
use serde::Serialize;

use super::files::Files;
use crate::args::layout::Check;
use crate::report::{say, tell};

/// One line of the output for programs.
#[derive(Serialize)]
struct Checked<'a> {
    file: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<Counts>,
    diagnostics: Vec<Told<'a>>,
    /// Errors beyond those that are listed.
    omitted: usize,
}

#[derive(Serialize)]
struct Counts {
    variables: usize,
    views: usize,
    replicas: usize,
}

/// A diagnostic for programs.
#[derive(Serialize)]
struct Told<'a> {
    severity: &'static str,
    code: &'static str,
    message: &'a str,
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    #[serde(flatten)]
    place: Place<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<Related<'a>>,
}

#[derive(Serialize)]
struct Related<'a> {
    label: &'a str,
    #[serde(flatten)]
    place: Place<'a>,
}

/// Lines and columns from 1, columns in characters; the end is behind the last character.
#[derive(Serialize)]
struct Place<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

impl<'a> Place<'a> {
    fn new(sources: &'a Sources, span: Span) -> Option<Self> {
        let start = sources.position(span)?;
        let end = sources.position(Span { start: span.end, ..span })?;
        Some(Self {
            file: start.name,
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
        })
    }
}

fn told<'a>(one: &'a Diagnostic, sources: &'a Sources) -> Option<Told<'a>> {
    let related = one
        .related
        .iter()
        .filter_map(|(span, label)| Some(Related { label, place: Place::new(sources, *span)? }));
    Some(Told {
        severity: match one.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        code: one.code.as_str(),
        message: &one.message,
        label: &one.label,
        help: one.help.as_deref(),
        place: Place::new(sources, one.span)?,
        related: related.collect(),
    })
}

pub(crate) fn check(args: &Check) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        let name = file.to_str().with_context(|| {
            format!("the name of a definition is text, which {} is not", file.to_string_lossy())
        })?;
        let (counts, diagnostics) = match drepl::compile(name, &mut Files) {
            Err(wrong) => {
                code = ExitCode::FAILURE;
                (None, wrong)
            }
            Ok(mut compiled) => {
                let unserved = unserved(&compiled, Path::new(file));
                if !unserved.is_empty() {
                    code = ExitCode::FAILURE;
                }
                compiled.warnings.extend(unserved);
                let definition = &compiled.definition;
                let counts = Counts {
                    variables: definition.variables.len(),
                    views: definition.views.len(),
                    replicas: definition.replicas.len(),
                };
                let (list, sources) = (compiled.warnings, compiled.map.sources);
                let all = Diagnostics { list, omitted: 0, sources };
                ((!all.has_errors()).then_some(counts), all)
            }
        };
        if args.json {
            let Diagnostics { list, omitted, sources } = &diagnostics;
            let line = Checked {
                file: name,
                ok: counts.is_some(),
                definition: counts,
                diagnostics: list.iter().filter_map(|one| told(one, sources)).collect(),
                omitted: *omitted,
            };
            tell(format_args!("{}", serde_json::to_string(&line)?))?;
            continue;
        }
        show(&diagnostics);
        if let Some(Counts { variables, views, replicas }) = counts {
            let (variables, views) = (plural(variables, "variable"), plural(views, "view"));
            let replicas = plural(replicas, "replica");
            tell(format_args!("{name}: {variables}, {views}, {replicas}"))?;
        }
    }
    Ok(code)
}

/// Why a definition that means something cannot be served, if it has replicas: elements that a view shows and no replica
/// has, arrays of variable size in HDF5, and what else is known only when everything has its place.
fn unserved(compiled: &Compiled, path: &Path) -> Vec<Diagnostic> {
    let (definition, map) = (&compiled.definition, &compiled.map);
    let Some(first) = map.replicas.first() else { return Vec::new() };
    let error = |span, message, label: &str, help: Option<&str>| Diagnostic {
        severity: Severity::Error,
        code: Code::Coverage,
        span,
        message,
        label: label.to_owned(),
        help: help.map(str::to_owned),
        related: Vec::new(),
    };
    let found = match Explanation::of_definition(definition.clone(), path) {
        Ok(found) => found,
        Err(reason) => {
            let message = format!("the replicas cannot be laid out: {reason}");
            return vec![error(first.name, message, "so nothing can be served", None)];
        }
    };
    let mut unserved = Vec::new();
    for (view, spans) in found.views.iter().zip(&map.views) {
        for (variable, span) in view.variables.iter().zip(&spans.variables) {
            if variable.missing == 0 {
                continue;
            }
            let VariablePlace { name, missing, .. } = variable;
            let message = format!(
                "no `sync` replica stores {missing} bytes of `{name}` in the view `{}`",
                view.name
            );
            let label = "would read as zeros, and writes to it would be lost";
            let help = "add a view that has them to a replica, or make a `sync` replica `complete`";
            unserved.push(error(*span, message, label, Some(help)));
        }
    }
    unserved
}

/// Diagnostics on standard error, in colour where that is a terminal and nobody minds.
pub(super) fn show(diagnostics: &Diagnostics) {
    if !diagnostics.list.is_empty() {
        // https://no-color.org
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = std::io::stderr().is_terminal() && !plain;
        say(format_args!("{}", diagnostics.render(colour).trim_end()));
    }
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
