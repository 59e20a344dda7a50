//! View sections.

use std::collections::HashMap;

use super::measure::Measures;
use super::part::{Parts, Taken, ViewPart, Work, has_record};
use super::placing::Cursor;
use super::values::Scope;
use super::{Dataset, graph, is_new, unknown};
use crate::ast::{
    self, At, Expr, Name, PlacingWord, Shape, ViewFlag, ViewMember, ViewType, ViewVar,
};
use crate::compiled::{SourceMap, ViewSpans};
use crate::definition::{ByteOrder, Marker, Order, Part, Placing, Record, View, ViewVariable};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::limits::LEAVES_MAX;
use crate::source::Span;

/// A view by the name that replicas know it by.
pub(super) struct Checked<'a> {
    pub(super) name: &'a Name,
    /// `None`: wrong, which was told.
    pub(super) view: Option<View>,
}

/// Checks all views.
pub(super) fn check<'a>(
    views: &'a [ast::View],
    dataset: &mut Dataset<'_>,
    map: &mut SourceMap,
    findings: &mut Findings,
) -> Vec<Checked<'a>> {
    let mut names = HashMap::new();
    let mut checked = Vec::with_capacity(views.len());
    // Measures change while the dataset is looked at.
    let mut measures = std::mem::take(&mut dataset.measures);
    let mut work = Work::default();
    for view in views {
        let is_right =
            is_new(&mut names, &view.name, "view", findings) & is_file_name(&view.name, findings);
        let mut spans =
            ViewSpans { name: view.name.span, whole: view.whole, variables: Vec::new() };
        let checker = Checker {
            dataset,
            measures: &mut measures,
            findings,
            work: &mut work,
            spans: &mut spans,
        };
        let found = checker.view(view);
        checked.push(Checked { name: &view.name, view: found.filter(|_| is_right) });
        map.views.push(spans);
        if work.parts > LEAVES_MAX {
            let message = format!("the views take more than {LEAVES_MAX} parts");
            let error = Diagnostic::error(Code::Limit, view.name.span, message);
            findings.add(error.label("up to here"));
            break;
        }
    }
    dataset.measures = measures;
    checked
}

/// Whether a view can be a file of this name.
fn is_file_name(name: &Name, findings: &mut Findings) -> bool {
    let text = &name.text;
    let fault = if text.is_empty() {
        "it is empty"
    } else if text == "." || text == ".." {
        "it is a directory"
    } else if text.contains('/') {
        "`/` parts directories"
    } else if text.contains('\0') {
        "it has a zero byte"
    } else if text.len() > 255 {
        // NAME_MAX of limits.h.
        "it is longer than 255 bytes"
    } else {
        return true;
    };
    let error = Diagnostic::error(Code::Flag, name.span, "a view cannot have this name");
    findings.add(error.label(format!("{fault}; expected the name of a file")));
    false
}

/// What flags say.
#[derive(Default)]
struct Flags {
    read_only: Option<Span>,
    order: Option<At<Order>>,
    byte_order: Option<At<ByteOrder>>,
    packed: Option<Span>,
    header: Option<At<u64>>,
    records: Option<At<Marker>>,
}

/// Looks at one view.
struct Checker<'c, 'd> {
    dataset: &'c Dataset<'d>,
    measures: &'c mut Measures,
    findings: &'c mut Findings,
    work: &'c mut Work,
    spans: &'c mut ViewSpans,
}

impl<'d> Checker<'_, 'd> {
    fn view(mut self, view: &ast::View) -> Option<View> {
        let errors = self.findings.errors();
        let flags = self.flags(&view.flags);
        let header = flags.header.as_ref().map_or(0, |header| header.what);
        let mut names = HashMap::new();
        let mut variables = Vec::new();
        let mut cursor = Cursor::new(header, flags.packed.is_some());
        let mut records = 0;
        let types = self.types(view, &flags);
        let mut parts = Parts {
            dataset: self.dataset,
            types,
            marker: flags.records.as_ref().map_or(Marker::Four, |marker| marker.what),
            findings: self.findings,
            work: self.work,
        };
        for member in &view.members {
            let (vars, group) = match member {
                ViewMember::Type(_) => continue,
                ViewMember::Var(var) => (std::slice::from_ref(var), None),
                ViewMember::Record { keyword, marker, vars } => {
                    if vars.is_empty() {
                        let error =
                            Diagnostic::error(Code::Shape, *keyword, "a record without variables");
                        parts.findings.add(error.label("expected variables between its braces"));
                    }
                    let marker = marker.unwrap_or(parts.marker);
                    (&**vars, Some(Record { number: records, marker }))
                }
            };
            records += usize::from(group.is_some());
            cursor.begin_record(group.map(|record| record.marker));
            for var in vars {
                self.spans.variables.push(var.name.span);
                let is_new = is_new(&mut names, &var.name, "variable of this view", parts.findings);
                let Some((source, part)) = taken(&mut parts, var, group.is_some()) else {
                    cursor.give_up();
                    continue;
                };
                let mut record = group;
                if let (Some(At { what: marker, .. }), None) = (&flags.records, group)
                    && !has_record(&part)
                {
                    record = Some(Record { number: records, marker: *marker });
                    records += 1;
                    cursor.begin_record(Some(*marker));
                }
                let placing = placing(&mut parts, var, record.is_some());
                let kind = self.dataset.declared.get(source).and_then(|(_, kind)| kind.as_ref());
                if let Some(kind) = kind {
                    cursor.place(var, kind, &part, &placing, self.measures, parts.findings);
                }
                if record.is_some() && group.is_none() {
                    cursor.end_record(var, parts.findings);
                }
                if is_new {
                    let name = var.name.text.clone();
                    variables.push(ViewVariable { name, source, part, placing, record });
                }
            }
            if let (Some(_), Some(last)) = (group, vars.last()) {
                cursor.end_record(last, parts.findings);
            }
        }
        (self.findings.errors() == errors).then(|| View {
            name: view.name.text.clone(),
            read_only: flags.read_only.is_some(),
            order: flags.order.map(|order| order.what).unwrap_or_default(),
            byte_order: flags.byte_order.map(|order| order.what).unwrap_or_default(),
            packed: flags.packed.is_some(),
            header,
            variables,
        })
    }

    fn flags(&mut self, list: &[At<ViewFlag>]) -> Flags {
        let mut flags = Flags::default();
        for At { what, span } in list {
            let span = *span;
            let before = match what {
                ViewFlag::ReadOnly => flags.read_only.replace(span),
                ViewFlag::Packed => flags.packed.replace(span),
                ViewFlag::Order(order) => {
                    flags.order.replace(At { what: *order, span }).map(|before| before.span)
                }
                ViewFlag::ByteOrder(order) => {
                    flags.byte_order.replace(At { what: *order, span }).map(|before| before.span)
                }
                ViewFlag::Records(marker) => {
                    flags.records.replace(At { what: *marker, span }).map(|before| before.span)
                }
                ViewFlag::Header(bytes) => {
                    let what = bytes_of(self.dataset, bytes, self.findings);
                    let header = At { what: what.unwrap_or(0), span };
                    flags.header.replace(header).map(|before| before.span)
                }
            };
            if let Some(before) = before {
                let message = "a flag of the same kind stands here already";
                let error = Diagnostic::error(Code::Flag, span, message);
                self.findings
                    .add(error.label("expected one of them").related(before, "the first one"));
            }
        }
        flags
    }

    /// The types that the view defines, in any order.
    fn types<'a>(
        &mut self,
        view: &'a ast::View,
        flags: &Flags,
    ) -> HashMap<&'a str, Option<ViewPart>> {
        let mut spans = HashMap::new();
        let mut defined: Vec<&ViewType> = Vec::new();
        for member in &view.members {
            if let ViewMember::Type(one) = member
                && is_new(&mut spans, &one.name, "type of this view", self.findings)
            {
                defined.push(one);
            }
        }
        let numbers = defined.iter().enumerate().map(|(number, one)| (&*one.name.text, number));
        let numbers: HashMap<&str, usize> = numbers.collect();
        let references: Vec<Vec<usize>> = defined
            .iter()
            .map(|one| {
                let mut names = Vec::new();
                names_of(&one.shape, &mut names);
                names.iter().filter_map(|name| numbers.get(&*name.text).copied()).collect()
            })
            .collect();
        let ordered = graph::order(&references);
        for cycle in &ordered.cycles {
            let name = &defined[cycle[0]].name;
            let chain = cycle.iter().chain(&cycle[..1]).map(|&one| &*defined[one].name.text);
            let chain = chain.collect::<Vec<_>>().join(" → ");
            let message = format!("the view type `{}` contains itself", name.text);
            let error = Diagnostic::error(Code::Cycle, name.span, message);
            self.findings.add(error.label(format!("would have no end: {chain}")));
        }
        let mut parts = Parts {
            dataset: self.dataset,
            types: numbers.keys().map(|&name| (name, None)).collect(),
            marker: flags.records.as_ref().map_or(Marker::Four, |marker| marker.what),
            findings: self.findings,
            work: self.work,
        };
        for number in ordered.order {
            let one = defined[number];
            let part = view_type(&mut parts, one);
            parts.types.insert(&one.name.text, part);
        }
        parts.types
    }
}

fn names_of<'a>(shape: &'a Shape, names: &mut Vec<&'a Name>) {
    match shape {
        Shape::Named(name) => names.push(name),
        Shape::Fields { fields, .. } => {
            let shapes = fields.iter().filter_map(|several| several.shape.as_ref());
            shapes.for_each(|shape| names_of(shape, names));
        }
        Shape::Array { element, .. } => {
            element.iter().for_each(|element| names_of(element, names));
        }
        Shape::Record { inner, .. } => inner.iter().for_each(|inner| names_of(inner, names)),
    }
}

fn view_type(parts: &mut Parts<'_, '_, '_>, one: &ViewType) -> Option<ViewPart> {
    let root = &one.base.root;
    let Ok(base) = parts.dataset.types.get(&root.text) else {
        let mut error = unknown(
            parts.findings,
            "type of the dataset",
            &root.text,
            root.span,
            parts.dataset.types.names(),
        );
        if parts.dataset.variables.contains_key(&*root.text) {
            error = error.label("this is a variable").help("give its type a name in the dataset");
        }
        parts.findings.add(error);
        return None;
    };
    let base = base?;
    let before = parts.work.parts;
    let taken = Taken { outer: &[], in_record: false, depth: 0, span: one.base.span };
    let part = parts.take(&base, &one.base.steps, Some(&one.shape), taken)?;
    Some(ViewPart { base, part, count: parts.work.parts - before })
}

/// What a variable of a view takes, and of which variable of the dataset.
fn taken(parts: &mut Parts<'_, '_, '_>, var: &ViewVar, in_record: bool) -> Option<(usize, Part)> {
    let root = &var.source.root;
    let Some(&source) = parts.dataset.variables.get(&*root.text) else {
        let known = parts.dataset.variables.keys().copied();
        let mut error =
            unknown(parts.findings, "variable of the dataset", &root.text, root.span, known);
        if parts.dataset.constants.contains(&root.text) {
            error = error.label("this is a constant, which is stored nowhere");
        }
        parts.findings.add(error);
        return None;
    };
    // A wrong type was told.
    let kind = parts.dataset.declared.get(source)?.1.clone()?;
    let taken = Taken { outer: &[], in_record, depth: 0, span: var.source.span };
    let part = parts.take(&kind, &var.source.steps, var.shape.as_ref(), taken)?;
    Some((source, part))
}

fn placing(parts: &mut Parts<'_, '_, '_>, var: &ViewVar, in_record: bool) -> Placing {
    let mut placing = Placing::default();
    let mut spans: [Option<Span>; 3] = [None; 3];
    for At { what, span } in &var.placing {
        let (number, expr) = match what {
            PlacingWord::At(expr) => (0, expr),
            PlacingWord::Align(expr) => (1, expr),
            PlacingWord::Pad(expr) => (2, expr),
        };
        if let Some(before) = spans[number].replace(*span) {
            let error = Diagnostic::error(Code::Flag, *span, "this is said twice");
            parts.findings.add(error.label("expected it once").related(before, "the first time"));
        }
        if in_record {
            let message = "what is in a record cannot be placed by itself";
            let error = Diagnostic::error(Code::Placing, *span, message);
            let help = "records follow each other without gaps; only `header` goes before them";
            parts.findings.add(error.label("expected nothing here").help(help));
            continue;
        }
        let Some(value) = bytes_of(parts.dataset, expr, parts.findings) else {
            continue;
        };
        match what {
            PlacingWord::At(_) => placing.at = Some(value),
            PlacingWord::Pad(_) => placing.pad = value,
            PlacingWord::Align(_) if value.is_power_of_two() => placing.align = Some(value),
            PlacingWord::Align(_) => {
                let message = format!("{value} is no alignment");
                let error = Diagnostic::error(Code::Placing, expr.span, message);
                parts.findings.add(error.label("expected a power of two: 1, 2, 4, 8, …"));
            }
        }
    }
    if let (Some(at), Some(align)) = (placing.at, placing.align)
        && at % align != 0
    {
        let span = spans[0].unwrap_or(var.name.span);
        let error =
            Diagnostic::error(Code::Placing, span, format!("byte {at} is not aligned to {align}"));
        let error = error.label("expected a multiple of the alignment");
        parts.findings.add(error.related(spans[1].unwrap_or(span), "is asked for here"));
    }
    placing
}

/// A number of bytes.
fn bytes_of(dataset: &Dataset<'_>, expr: &Expr, findings: &mut Findings) -> Option<u64> {
    let scope =
        Scope { constants: &dataset.constants, variables: &dataset.variables, temporaries: &[] };
    let value = scope.constant(expr, findings)?;
    let bytes = u64::try_from(value).ok();
    if bytes.is_none() {
        let message = format!("{value} is no number of bytes");
        let error = Diagnostic::error(Code::Placing, expr.span, message);
        findings.add(error.label("expected 0 or more"));
    }
    bytes
}
