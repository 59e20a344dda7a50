//! `sluice couple check`: what is wrong with configurations, or what they mean.

use std::process::ExitCode;

use anyhow::{Context, Result};
use coupling::{Configuration, Diagnostic, Mode, Parties, Rule};
use matching::FullQueue;
use serde::Serialize;

use crate::args::couple::Check;
use crate::report::{say, tell};

/// One line of the output for programs.
#[derive(Serialize)]
struct Checked<'a> {
    file: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<&'a [String]>,
    files: Vec<Told<'a>>,
    diagnostics: Vec<Wrong<'a>>,
    /// The line of the rule of each name that was asked for; null: it is not exchanged.
    names: Vec<(&'a str, Option<usize>)>,
}

/// A rule for programs.
#[derive(Serialize)]
struct Told<'a> {
    line: usize,
    name: &'a str,
    exclude: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writers: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    readers: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    between: Option<[&'a str; 2]>,
    mode: &'static str,
    write_only: bool,
    replay: bool,
    buffer: bool,
    lent: bool,
    mirror_root: bool,
    sessions: Option<u32>,
    matchers: Option<u32>,
    distribution: String,
    queue: Option<u32>,
    queue_full: Option<&'static str>,
}

#[derive(Serialize)]
struct Wrong<'a> {
    severity: &'static str,
    line: usize,
    column: usize,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

pub(crate) fn check(args: &Check) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        let name = file.to_string_lossy();
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the configuration {name}"))?;
        let parsed = Configuration::parse(&text, &name);
        if parsed.is_err() {
            code = ExitCode::FAILURE;
        }
        let rule = |configuration: &Configuration, name: &str| {
            configuration.rule(name).map(|rule| rule.line)
        };
        if args.json {
            let line = match &parsed {
                Ok(configuration) => Checked {
                    file: &name,
                    ok: true,
                    components: Some(&configuration.components),
                    files: configuration.rules.iter().map(told).collect(),
                    diagnostics: wrong(&configuration.warnings, "warning"),
                    names: args
                        .name
                        .iter()
                        .map(|one| (one.as_str(), rule(configuration, one)))
                        .collect(),
                },
                Err(errors) => Checked {
                    file: &name,
                    ok: false,
                    components: None,
                    files: Vec::new(),
                    diagnostics: wrong(&errors.list, "error"),
                    names: Vec::new(),
                },
            };
            tell(format_args!("{}", serde_json::to_string(&line)?))?;
            continue;
        }
        match parsed {
            Err(errors) => say(format_args!("{errors}")),
            Ok(configuration) => {
                for warning in &configuration.warnings {
                    say(format_args!("{name}:{warning} (a warning)"));
                }
                tell(format_args!("{name}: {}", summary(&configuration)))?;
                for rule in &configuration.rules {
                    tell(format_args!("  line {:<4} {}", rule.line, sentence(rule)))?;
                }
                for one in &args.name {
                    match rule(&configuration, one) {
                        Some(line) => tell(format_args!("  {one}: the rule of line {line}"))?,
                        None => tell(format_args!("  {one}: not exchanged"))?,
                    }
                }
            }
        }
    }
    Ok(code)
}

fn wrong<'a>(list: &'a [Diagnostic], severity: &'static str) -> Vec<Wrong<'a>> {
    list.iter()
        .map(|one| Wrong {
            severity,
            line: one.line,
            column: one.column,
            message: &one.message,
            help: one.help.as_deref(),
        })
        .collect()
}

fn told(rule: &Rule) -> Told<'_> {
    let (writers, readers, between) = match &rule.parties {
        Parties::Directed { writers, readers } => (Some(&writers[..]), Some(&readers[..]), None),
        Parties::Either(one, other) => (None, None, Some([one.as_str(), other.as_str()])),
    };
    Told {
        line: rule.line,
        name: rule.name.as_str(),
        exclude: rule.exclude.iter().map(coupling::NamePattern::as_str).collect(),
        writers,
        readers,
        between,
        mode: mode(rule.mode),
        write_only: rule.write_only,
        replay: rule.replay,
        buffer: rule.buffer,
        lent: rule.lent,
        mirror_root: rule.mirror_root,
        sessions: rule.sessions,
        matchers: rule.matchers,
        distribution: rule.distribution.to_string(),
        queue: rule.queue.map(|(limit, _)| limit),
        queue_full: rule.queue.map(|(_, full)| full_queue(full)),
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::File => "file",
        Mode::Transfer => "transfer",
    }
}

fn full_queue(full: FullQueue) -> &'static str {
    match full {
        FullQueue::Block => "block",
        FullQueue::Discard => "discard",
    }
}

fn summary(configuration: &Configuration) -> String {
    let plural =
        |count: usize, what| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (components, rules) = (configuration.components.len(), configuration.rules.len());
    format!("{}, {} for files", plural(components, "component"), plural(rules, "rule"))
}

/// A rule in words.
fn sentence(rule: &Rule) -> String {
    let who = match &rule.parties {
        Parties::Directed { writers, readers } => {
            format!("{} → {}", writers.join(", "), readers.join(", "))
        }
        Parties::Either(one, other) => format!("{one} ↔ {other}"),
    };
    let mut told = format!("{}  {who}  {}", rule.name.as_str(), mode(rule.mode));
    if rule.mode == Mode::Transfer {
        told += &format!(", {}", rule.distribution);
        told += &rule.matchers.map(|count| format!(", {count} matchers")).unwrap_or_default();
        if let Some((limit, full)) = rule.queue {
            told += &format!(", queue of {limit} ({})", full_queue(full));
        }
    }
    for (is, word) in [
        (rule.write_only, "write only"),
        (rule.replay, "replayed"),
        (rule.buffer, "buffered"),
        (rule.lent, "lent"),
    ] {
        if is {
            told += &format!(", {word}");
        }
    }
    for one in &rule.exclude {
        told += &format!(", not {}", one.as_str());
    }
    told
}
