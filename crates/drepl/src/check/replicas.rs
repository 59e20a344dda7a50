//! Replica sections.

use std::collections::HashMap;

use super::measure::{Measures, checked};
use super::placing::part_size;
use super::values::Scope;
use super::views::Checked;
use super::{Dataset, is_new, unknown};
use crate::ast::{self, At, Expr, ReplicaFlag, StorageOption};
use crate::compiled::{ReplicaSpans, SourceMap};
use crate::definition::{Definition, Replica, ReplicaView, Storage, Update};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::limits::FILE_SIZE_MAX;
use crate::source::Span;

/// Checks all replicas.
pub(super) fn check(
    replicas: &[ast::Replica],
    views: &[Checked<'_>],
    dataset: &Dataset<'_>,
    map: &mut SourceMap,
    findings: &mut Findings,
) -> Vec<Replica> {
    // Views that are wrong have no number, but their names are known.
    let numbers = views.iter().enumerate().map(|(number, view)| (&*view.name.text, number));
    let numbers: HashMap<&str, usize> = numbers.rev().collect();
    let mut files: HashMap<String, Span> = HashMap::new();
    let mut checked = Vec::with_capacity(replicas.len());
    for replica in replicas {
        file_name(replica, &mut files, findings);
        let mut checker = Checker { numbers: &numbers, dataset, findings };
        checked.push(checker.replica(replica));
        map.replicas.push(ReplicaSpans {
            name: replica.name.span,
            whole: replica.whole,
            views: replica.views.iter().map(|view| view.name.span).collect(),
        });
    }
    checked
}

/// Whether a replica's file has a possible name, which no other replica has.
fn file_name(replica: &ast::Replica, files: &mut HashMap<String, Span>, findings: &mut Findings) {
    let (text, span) = (&replica.name.text, replica.name.span);
    let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let root = if text.starts_with('/') { "/" } else { "" };
    let is_file = parts.last().is_some_and(|last| *last != "..") && !text.ends_with('/');
    if !is_file || text.contains('\0') || parts.iter().any(|part| part.len() > 255) {
        let error = Diagnostic::error(Code::Replica, span, "a replica cannot have this name");
        return findings.add(error.label("expected the name of a file"));
    }
    if let Some(first) = files.insert(format!("{root}{}", parts.join("/")), span) {
        let message = format!("another replica is stored in `{text}`");
        let error = Diagnostic::error(Code::DuplicateName, span, message);
        findings.add(error.label("expected another file").related(first, "the other one"));
    }
}

/// Looks at one replica.
struct Checker<'c, 'd> {
    numbers: &'c HashMap<&'c str, usize>,
    dataset: &'c Dataset<'d>,
    findings: &'c mut Findings,
}

impl Checker<'_, '_> {
    fn replica(&mut self, replica: &ast::Replica) -> Replica {
        let mut made = Replica {
            name: replica.name.text.clone(),
            complete: false,
            update: Update::default(),
            closeness: 0,
            storage: Storage::default(),
            views: Vec::new(),
        };
        let mut said: [Option<Span>; 4] = [None; 4];
        for At { what, span } in &replica.flags {
            let kind = match what {
                ReplicaFlag::Complete => {
                    made.complete = true;
                    0
                }
                ReplicaFlag::Update(update) => {
                    made.update = *update;
                    1
                }
                ReplicaFlag::Near(expr) => {
                    let most = i64::from(u32::MAX);
                    let near = self.number(expr, "closeness", 0, most);
                    made.closeness = near.and_then(|near| u32::try_from(near).ok()).unwrap_or(0);
                    2
                }
                ReplicaFlag::Storage(storage) => {
                    made.storage = *storage;
                    3
                }
            };
            if let Some(before) = said[kind].replace(*span) {
                let message = "a flag of the same kind stands here already";
                let error = Diagnostic::error(Code::Flag, *span, message);
                self.findings
                    .add(error.label("expected one of them").related(before, "the first one"));
            }
        }
        if replica.views.is_empty() && !made.complete && !self.findings.is_partial {
            let message = format!("the replica `{}` would store nothing", made.name);
            let error = Diagnostic::error(Code::Replica, replica.name.span, message);
            let error = error.label("expected views: `view NAME`");
            self.findings.add(error.help("with `complete` it stores the whole dataset"));
        }
        let mut names = HashMap::new();
        for view in &replica.views {
            let is_new = is_new(&mut names, &view.name, "view of this replica", self.findings);
            let stored = self.view(view, made.storage);
            made.views.extend(stored.filter(|_| is_new));
        }
        made
    }

    fn view(&mut self, view: &ast::ReplicaView, storage: Storage) -> Option<ReplicaView> {
        let number = self.numbers.get(&*view.name.text).copied();
        if number.is_none() {
            let known = self.numbers.keys().copied();
            let error = unknown(self.findings, "view", &view.name.text, view.name.span, known);
            self.findings.add(error);
        }
        let mut made = ReplicaView {
            view: number.unwrap_or(0),
            group: None,
            split: false,
            chunk: None,
            deflate: None,
        };
        let mut said: [Option<Span>; 4] = [None; 4];
        for At { what, span } in &view.options {
            let kind = match what {
                StorageOption::Group(path) => {
                    if path != "/" && path.split('/').all(|part| matches!(part, "" | ".")) {
                        let error = Diagnostic::error(Code::Replica, *span, "this is no group");
                        self.findings
                            .add(error.label("expected a path such as `\"/fields/run1\"`"));
                    }
                    made.group = Some(path.clone());
                    0
                }
                StorageOption::Split => {
                    made.split = true;
                    1
                }
                StorageOption::Chunk(lengths) => {
                    let lengths =
                        lengths.iter().map(|one| self.number(one, "a chunk", 1, i64::MAX));
                    let lengths: Vec<Option<u64>> = lengths.collect();
                    made.chunk = lengths.into_iter().collect();
                    2
                }
                StorageOption::Deflate(level) => {
                    let level = self.number(level, "a gzip level", 1, 9);
                    made.deflate = level.and_then(|level| u8::try_from(level).ok());
                    3
                }
            };
            if let Some(before) = said[kind].replace(*span) {
                let error = Diagnostic::error(Code::Flag, *span, "this is said twice");
                self.findings
                    .add(error.label("expected it once").related(before, "the first time"));
            }
        }
        if let (Storage::Raw, Some(first)) = (storage, view.options.first()) {
            let message = "this means nothing in a replica of raw bytes";
            let warning = Diagnostic::warning(Code::Flag, first.span, message);
            let warning = warning.label("is about HDF5 files");
            self.findings
                .add(warning.help("say that the replica is one: `replica NAME hdf5 { … }`"));
        }
        number.map(|_| made)
    }

    fn number(&mut self, expr: &Expr, what: &str, least: i64, most: i64) -> Option<u64> {
        let scope = Scope {
            constants: &self.dataset.constants,
            variables: &self.dataset.variables,
            temporaries: &[],
        };
        let value = scope.constant(expr, self.findings)?;
        if !(least..=most).contains(&value) {
            let message = format!("{what} cannot be {value}");
            let error = Diagnostic::error(Code::Arithmetic, expr.span, message);
            let expected = match most {
                i64::MAX => format!("expected {least} or more"),
                _ => format!("expected {least} to {most}"),
            };
            self.findings.add(error.label(expected));
            return None;
        }
        u64::try_from(value).ok()
    }
}

/// Whether the views of every replica fit into a file one after the other, and with them, in a complete replica, what
/// they leave out, which is at most the dataset.
pub(super) fn check_sizes(
    definition: &Definition,
    measures: &mut Measures,
    map: &SourceMap,
    findings: &mut Findings,
) {
    let mut views = Vec::with_capacity(definition.views.len());
    for view in &definition.views {
        let mut end = Some(view.header);
        for variable in &view.variables {
            let kind = &definition.variables[variable.source].kind;
            let size = part_size(kind, &variable.part, measures).map_or(Some(0), |(size, _)| size);
            // Alignment and record markers: an estimate from above.
            let around = variable.placing.align.unwrap_or(8).checked_add(variable.placing.pad);
            end = checked(end.max(variable.placing.at), size, u64::checked_add);
            end = checked(end, around, u64::checked_add);
            if variable.record.is_some() {
                let markers = size.map(|size| 16 + size / (1 << 27));
                end = checked(end, markers, u64::checked_add);
            }
        }
        views.push(checked(end, Some(8), u64::checked_add));
    }
    let dataset = definition.variables.iter().try_fold(0, |sum, variable| {
        let size = checked(measures.of(&variable.kind).size, Some(8), u64::checked_add);
        checked(Some(sum), size, u64::checked_add)
    });
    for (replica, spans) in definition.replicas.iter().zip(&map.replicas) {
        let rest = if replica.complete { dataset } else { Some(0) };
        let size = replica
            .views
            .iter()
            .fold(rest, |sum, stored| checked(sum, views[stored.view], u64::checked_add));
        if size.is_none() {
            let message = format!("the replica `{}` is too large for a file", replica.name);
            let error = Diagnostic::error(Code::Size, spans.name, message);
            findings.add(error.label(format!("more than {FILE_SIZE_MAX} bytes")));
        }
    }
}
