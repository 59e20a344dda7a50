//! What a view takes of a type of the dataset.

use std::collections::HashMap;
use std::sync::Arc;

use super::types::describe;
use super::{Dataset, is_new, unknown};
use crate::ast::{Name, Shape, ShapeFields, Step};
use crate::definition::{Field, Marker, Part, PartField, Type};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::limits::{LEAVES_MAX, NESTING_MAX};
use crate::source::Span;

/// A view type: what it takes, and of which type.
#[derive(Debug, Clone)]
pub(super) struct ViewPart {
    pub(super) base: Type,
    pub(super) part: Part,
    /// Of how many parts it is made.
    pub(super) count: u64,
}

/// What is known where a part is taken.
#[derive(Clone, Copy)]
pub(super) struct Taken<'t> {
    /// Names of dimensions of arrays around it.
    pub(super) outer: &'t [&'t str],
    /// It is within a record already, and cannot be one.
    pub(super) in_record: bool,
    /// Parts around it.
    pub(super) depth: usize,
    /// Where to tell what is about all of it.
    pub(super) span: Span,
}

/// Turns what a text says of parts into parts.
pub(super) struct Parts<'p, 'd, 'a> {
    pub(super) dataset: &'p Dataset<'d>,
    /// The types of the view; `None`: wrong, which was told.
    pub(super) types: HashMap<&'a str, Option<ViewPart>>,
    /// The markers of records that do not say it.
    pub(super) marker: Marker,
    pub(super) findings: &'p mut Findings,
    pub(super) work: &'p mut Work,
}

/// What goes on from view to view.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Parts that were made.
    pub(super) parts: u64,
    /// The fields of large structs by name, by the address of what the dataset's types share.
    fields: HashMap<usize, HashMap<String, usize>>,
}

/// Fields that are looked through one by one.
const FEW_FIELDS: usize = 16;

impl Work {
    fn field(&mut self, fields: &Arc<[Field]>, name: &str) -> Option<usize> {
        if fields.len() <= FEW_FIELDS {
            return fields.iter().position(|field| field.name == name);
        }
        let address = Arc::as_ptr(fields).cast::<u8>() as usize;
        let known = self.fields.entry(address).or_insert_with(|| {
            let numbers = fields.iter().enumerate();
            numbers.map(|(number, field)| (field.name.clone(), number)).collect()
        });
        known.get(name).copied()
    }
}

impl Parts<'_, '_, '_> {
    /// What `shape = ….steps` takes of a type.
    pub(super) fn take(
        &mut self,
        kind: &Type,
        steps: &[Step],
        shape: Option<&Shape>,
        taken: Taken<'_>,
    ) -> Option<Part> {
        if taken.depth > NESTING_MAX {
            let message = format!("parts nest deeper than {NESTING_MAX}");
            self.findings
                .add(Diagnostic::error(Code::Limit, taken.span, message).label("too deep"));
            return None;
        }
        let taken = Taken { depth: taken.depth + 1, ..taken };
        if let Some(Shape::Record { keyword, marker, inner }) = shape {
            if taken.in_record {
                let error = Diagnostic::error(Code::Flag, *keyword, "a record within a record");
                self.findings.add(error.label("Fortran has none"));
                return None;
            }
            let taken = Taken { in_record: true, ..taken };
            let part = Box::new(self.take(kind, steps, inner.as_deref(), taken)?);
            return self.made(Part::Record { marker: marker.unwrap_or(self.marker), part });
        }
        match steps.split_first() {
            Some((Step::Index(indexes), rest)) => self.slice(kind, indexes, rest, shape, taken),
            Some((Step::Member(name), rest)) => {
                let (field, inner) = self.field(kind, name)?;
                let part = Box::new(self.take(&inner, rest, shape, taken)?);
                self.made(Part::Member { field, part })
            }
            None => self.shaped(kind, shape, taken),
        }
    }

    /// What a shape takes of a type, where the right side says nothing more.
    fn shaped(&mut self, kind: &Type, shape: Option<&Shape>, taken: Taken<'_>) -> Option<Part> {
        match shape {
            None => self.made(Part::Whole),
            Some(Shape::Fields { fields, span }) => self.fields(kind, fields, *span, taken),
            Some(Shape::Named(name)) => self.named(kind, name, taken),
            Some(Shape::Array { indexes, element }) => {
                let Type::Array(array) = kind else {
                    let message = format!("{} has no elements", describe(kind));
                    let error = Diagnostic::error(Code::Shape, indexes.span, message);
                    let error = error.label("expected no brackets");
                    self.findings.add(error.related(taken.span, "this is meant"));
                    return None;
                };
                if !indexes.is_empty() {
                    // Whatever else is wrong with them goes first.
                    self.temporaries(indexes, taken)?;
                    let error =
                        Diagnostic::error(Code::Index, indexes.span, "the right side has no index");
                    let error =
                        error.label("which elements are these?").related(taken.span, "of this");
                    let help = "index the variable: `var d [i] = data[i*5]`; `[]` takes all of it";
                    self.findings.add(error.help(help));
                    return None;
                }
                if indexes.list.len() > 1 && !self.has_rank(array, indexes, "dimension") {
                    return None;
                }
                let element = self.take(&array.element, &[], element.as_deref(), taken)?;
                self.all_elements(array, element)
            }
            // Taken care of before.
            Some(Shape::Record { .. }) => None,
        }
    }

    fn fields(
        &mut self,
        kind: &Type,
        fields: &[ShapeFields],
        span: Span,
        taken: Taken<'_>,
    ) -> Option<Part> {
        if fields.is_empty() {
            let error = Diagnostic::error(Code::Shape, span, "nothing is taken");
            self.findings.add(error.label("expected the names of fields"));
            return None;
        }
        let mut spans = HashMap::new();
        let mut parts = Vec::new();
        let mut is_right = true;
        for ShapeFields { names, shape, source } in fields {
            let steps = source.as_ref().map_or(&[][..], |source| &source.steps);
            if let (Some(source), Some(name)) = (source, names.first())
                && source.root.text != name.text
            {
                let message = format!("the field `{}` is taken from itself", name.text);
                let error = Diagnostic::error(Code::Shape, source.root.span, message);
                self.findings.add(error.label(format!("expected `{}`", name.text)));
                is_right = false;
                continue;
            }
            for name in names {
                let is_first = is_new(&mut spans, name, "field of this part", self.findings);
                let part = self.field(kind, name).and_then(|(field, inner)| {
                    let span = if names.len() == 1 { taken.span } else { name.span };
                    let taken = Taken { span, ..taken };
                    let part = self.take(&inner, steps, shape.as_ref(), taken)?;
                    Some(PartField { field, part })
                });
                is_right &= is_first && part.is_some();
                if part.is_none() && !matches!(kind, Type::Struct(_)) {
                    return None;
                }
                parts.extend(part);
            }
        }
        if is_right { self.made(Part::Fields(parts)) } else { None }
    }

    fn field(&mut self, kind: &Type, name: &Name) -> Option<(usize, Type)> {
        let Type::Struct(fields) = kind else {
            let message = format!("{} has no fields", describe(kind));
            let error = Diagnostic::error(Code::Shape, name.span, message);
            let help = match kind {
                Type::Array(array) if matches!(array.element, Type::Struct(_)) => Some(format!(
                    "its elements have: `[] {{ {0} }} = …`, or `[i] = …[i].{0}` without a struct around it",
                    name.text
                )),
                _ => None,
            };
            self.findings.add(error.label("expected a struct").maybe_help(help));
            return None;
        };
        match self.work.field(fields, &name.text) {
            Some(number) => Some((number, fields[number].kind.clone())),
            None => {
                let known = fields.iter().map(|field| &*field.name);
                let error = unknown(self.findings, "field", &name.text, name.span, known);
                let label = format!("this is {}", describe(kind));
                self.findings.add(error.label(label));
                None
            }
        }
    }

    /// A view type, or a type of the dataset, which must be the one that is there.
    fn named(&mut self, kind: &Type, name: &Name, taken: Taken<'_>) -> Option<Part> {
        let (base, part) = match self.types.get(&*name.text) {
            Some(None) => return None,
            Some(Some(found)) => {
                if taken.in_record && has_record(&found.part) {
                    let error =
                        Diagnostic::error(Code::Flag, name.span, "a record within a record");
                    self.findings.add(error.label("Fortran has none"));
                    return None;
                }
                self.work.parts = self.work.parts.saturating_add(found.count);
                if self.work.parts > LEAVES_MAX {
                    return None;
                }
                (found.base.clone(), found.part.clone())
            }
            None => match self.dataset.types.get(&name.text) {
                Ok(base) => (base?, Part::Whole),
                Err(()) => {
                    let known = self.types.keys().copied().chain(self.dataset.types.names());
                    let error = unknown(self.findings, "view type", &name.text, name.span, known);
                    self.findings.add(error);
                    return None;
                }
            },
        };
        if base != *kind {
            let message = format!("`{}` is no part of what is taken here", name.text);
            let error = Diagnostic::error(Code::Shape, name.span, message);
            let is = if self.types.contains_key(&*name.text) { "is a part of" } else { "is" };
            let mut label = format!("{is} {}", describe(&base));
            let what = describe(kind);
            if describe(&base) == what {
                label += " of other types or lengths";
            }
            self.findings.add(error.label(label).related(taken.span, format!("this is {what}")));
            return None;
        }
        self.made(part)
    }

    /// Counts a part.
    pub(super) fn made(&mut self, part: Part) -> Option<Part> {
        self.work.parts += 1;
        // Told once, where all views are known; until then it must only end.
        (self.work.parts <= LEAVES_MAX).then_some(part)
    }
}

/// Whether there is a record in it.
pub(super) fn has_record(part: &Part) -> bool {
    match part {
        Part::Whole => false,
        Part::Record { .. } => true,
        Part::Fields(fields) => fields.iter().any(|field| has_record(&field.part)),
        Part::Member { part, .. } => has_record(part),
        Part::Slice(slice) => has_record(&slice.element),
    }
}
