//! Types by name, and the variables of the dataset.

use std::collections::HashMap;
use std::sync::Arc;

use super::measure::{Measure, Measures};
use super::values::{Constants, Scope};
use super::{Dataset, graph, is_new, unknown};
use crate::ast::{Expr, ExprKind, Fields, Name, TypeExpr};
use crate::definition::{Array, Field, Length, Scalar, Type};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::limits::{FILE_SIZE_MAX, LEAVES_MAX, NESTING_MAX, RANK_MAX};
use crate::source::Span;
use crate::words::{self, Role};

/// The longest text of a `stringN`: its length is an `int16`.
const CAPACITY_MAX: u16 = i16::MAX as u16;

/// The named types of a dataset.
#[derive(Debug, Default)]
pub(super) struct Types<'a> {
    /// `None`: wrong, which was told.
    named: HashMap<&'a str, Option<Type>>,
}

impl<'a> Types<'a> {
    pub(super) fn new(
        defined: &[(&'a Name, &'a TypeExpr)],
        constants: &Constants<'a>,
        variables: &HashMap<&'a str, usize>,
        measures: &mut Measures,
        findings: &mut Findings,
    ) -> Self {
        let mut spans = HashMap::new();
        let mut unique: Vec<(&'a Name, &'a TypeExpr)> = Vec::with_capacity(defined.len());
        for &(name, kind) in defined {
            if is_builtin(&name.text) {
                let message = format!("`{}` is a type of the language", name.text);
                let error = Diagnostic::error(Code::DuplicateName, name.span, message);
                findings.add(error.label("expected another name"));
            } else if is_new(&mut spans, name, "type", findings) {
                unique.push((name, kind));
            }
        }
        let numbers = unique.iter().enumerate().map(|(number, (name, _))| (&*name.text, number));
        let numbers: HashMap<&str, usize> = numbers.collect();
        let references: Vec<Vec<usize>> = unique
            .iter()
            .map(|(_, kind)| {
                let mut names = Vec::new();
                names_of(kind, &mut names);
                names.iter().filter_map(|name| numbers.get(&*name.text).copied()).collect()
            })
            .collect();
        let ordered = graph::order(&references);
        let mut types = Self { named: numbers.keys().map(|&name| (name, None)).collect() };
        for cycle in &ordered.cycles {
            findings.add(contains_itself(cycle, &unique));
        }
        let scope = Scope { constants, variables, temporaries: &[] };
        for number in ordered.order {
            let (name, kind) = unique[number];
            let kind = Resolver { types: &types, scope, measures, findings }.resolve(kind);
            types.named.insert(&name.text, kind);
        }
        types
    }

    /// A type by name; `Err` if there is none.
    pub(super) fn get(&self, name: &str) -> Result<Option<Type>, ()> {
        match self.named.get(name) {
            Some(kind) => Ok(kind.clone()),
            None => builtin(name).map(Some).ok_or(()),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let builtin = words::of(Role::Type).map(|word| -> &str { word });
        self.named.keys().map(|name| -> &str { name }).chain(builtin)
    }
}

fn names_of<'a>(kind: &'a TypeExpr, names: &mut Vec<&'a Name>) {
    match kind {
        TypeExpr::Named(name) => names.push(name),
        TypeExpr::Struct { fields, .. } => {
            fields.iter().for_each(|several| names_of(&several.kind, names));
        }
        TypeExpr::Array { element, .. } => names_of(element, names),
    }
}

fn contains_itself(cycle: &[usize], defined: &[(&Name, &TypeExpr)]) -> Diagnostic {
    let (name, _) = defined[cycle[0]];
    let chain: Vec<&str> =
        cycle.iter().chain(&cycle[..1]).map(|&one| &*defined[one].0.text).collect();
    let message = format!("the type `{}` contains itself", name.text);
    let mut error = Diagnostic::error(Code::Cycle, name.span, message)
        .label(format!("would have no end: {}", chain.join(" → ")));
    for (at, &one) in cycle.iter().enumerate().take(4) {
        let next = &defined[cycle[(at + 1) % cycle.len()]].0.text;
        let mut names = Vec::new();
        names_of(defined[one].1, &mut names);
        if let Some(reference) = names.iter().find(|name| name.text == *next) {
            error = error.related(reference.span, format!("contains `{next}`"));
        }
    }
    error
}

/// A type that the language has. `stringN` only where N is possible.
pub(super) fn builtin(name: &str) -> Option<Type> {
    Some(match name {
        "int8" => Type::Scalar(Scalar::Int8),
        "int16" => Type::Scalar(Scalar::Int16),
        "int32" => Type::Scalar(Scalar::Int32),
        "int64" => Type::Scalar(Scalar::Int64),
        "uint8" => Type::Scalar(Scalar::Uint8),
        "uint16" => Type::Scalar(Scalar::Uint16),
        "uint32" => Type::Scalar(Scalar::Uint32),
        "uint64" => Type::Scalar(Scalar::Uint64),
        "float32" => Type::Scalar(Scalar::Float32),
        "float64" => Type::Scalar(Scalar::Float64),
        _ => {
            let capacity = name.strip_prefix("string")?.parse().ok()?;
            return (1..=CAPACITY_MAX).contains(&capacity).then_some(Type::Text { capacity });
        }
    })
}

/// Whether a name belongs to the language, also as a text of an impossible length.
fn is_builtin(name: &str) -> bool {
    let digits = name.strip_prefix("string");
    builtin(name).is_some() || digits.is_some_and(|n| n.bytes().all(|c| c.is_ascii_digit()))
}

/// What a type of the language may have been called by those who know it from elsewhere.
fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "int" | "integer" | "int32_t" | "i32" => "int32",
        "long" | "int64_t" | "i64" => "int64",
        "short" | "int16_t" | "i16" => "int16",
        "char" | "int8_t" | "i8" => "int8",
        "byte" | "uchar" | "uint8_t" | "u8" => "uint8",
        "uint" | "unsigned" | "uint32_t" | "u32" => "uint32",
        "ulong" | "uint64_t" | "u64" => "uint64",
        "ushort" | "uint16_t" | "u16" => "uint16",
        "float" | "real" | "f32" => "float32",
        "double" | "f64" => "float64",
        _ => return None,
    })
}

/// Turns what a text says of a type into the type.
struct Resolver<'r, 'a> {
    types: &'r Types<'a>,
    scope: Scope<'r>,
    measures: &'r mut Measures,
    findings: &'r mut Findings,
}

impl Resolver<'_, '_> {
    fn resolve(&mut self, expr: &TypeExpr) -> Option<Type> {
        let kind = match expr {
            TypeExpr::Named(name) => return self.named(name),
            TypeExpr::Struct { fields, span } => self.fields(fields, *span)?,
            TypeExpr::Array { lengths, element, .. } => self.array(lengths, element)?,
        };
        let measure = self.measures.of(&kind);
        self.check(measure, expr.span()).then_some(kind)
    }

    fn named(&mut self, name: &Name) -> Option<Type> {
        if let Ok(kind) = self.types.get(&name.text) {
            return kind;
        }
        let digits =
            name.text.strip_prefix("string").filter(|n| n.bytes().all(|c| c.is_ascii_digit()));
        if let Some(digits) = digits {
            let message = match digits {
                "" => "a string has a maximal length".to_owned(),
                _ => format!("a string cannot have {digits} bytes"),
            };
            let error = Diagnostic::error(Code::Length, name.span, message);
            let label = format!("expected `string1` to `string{CAPACITY_MAX}`");
            let help = "its length is stored in an int16 (longer text: an array of int8)";
            self.findings.add(error.label(label).help(help));
            return None;
        }
        let names = self.types.names();
        let mut error = unknown(self.findings, "type", &name.text, name.span, names);
        if let Some(word) = elsewhere(&name.text) {
            error = error.help(crate::parse::did_you_mean(word));
        }
        self.findings.add(error);
        None
    }

    fn fields(&mut self, several: &[Fields], span: Span) -> Option<Type> {
        let mut spans = HashMap::new();
        let mut fields = Vec::new();
        let mut is_right = true;
        for Fields { names, kind } in several {
            let resolved = self.fixed(kind, "a field of a struct");
            is_right &= resolved.is_some();
            for name in names {
                is_right &= is_new(&mut spans, name, "field", self.findings);
                if let Some(kind) = &resolved {
                    fields.push(Field { name: name.text.clone(), kind: kind.clone() });
                }
            }
        }
        if several.is_empty() {
            let error = Diagnostic::error(Code::Length, span, "a struct has at least one field");
            self.findings.add(error.label("expected fields: `{ a, b float32 }`"));
            return None;
        }
        is_right.then(|| Type::Struct(fields.into()))
    }

    fn array(&mut self, lengths: &[Expr], element: &TypeExpr) -> Option<Type> {
        let element = self.fixed(element, "an element of an array");
        if let Some(beyond) = lengths.get(RANK_MAX) {
            let message = format!("an array cannot have more than {RANK_MAX} dimensions");
            let error = Diagnostic::error(Code::Limit, beyond.span, message);
            self.findings.add(error.label(format!("has {}", lengths.len())));
            return None;
        }
        let mut stored: Option<Span> = None;
        let mut known = Vec::with_capacity(lengths.len());
        let mut is_right = true;
        for expr in lengths {
            let length = self.length(expr);
            is_right &= length.is_some();
            if let Some(Length::Stored(_)) = length {
                if let Some(first) = stored {
                    let message = "only one dimension of an array can be of variable size";
                    let error = Diagnostic::error(Code::VariableSize, expr.span, message);
                    let error =
                        error.label("this is the second one").related(first, "the first one");
                    self.findings.add(error.help("make the other one as long as it can become"));
                    is_right = false;
                }
                stored = stored.or(Some(expr.span));
            }
            known.extend(length);
        }
        let element = element.filter(|_| is_right)?;
        Some(Type::Array(Arc::new(Array { lengths: known, element })))
    }

    fn length(&mut self, expr: &Expr) -> Option<Length> {
        if let ExprKind::Name(name) = &expr.kind
            && let Some(&variable) = self.scope.variables.get(&**name)
        {
            return Some(Length::Stored(variable));
        }
        let length = self.scope.constant(expr, self.findings)?;
        match u64::try_from(length) {
            Ok(length) if length > 0 => Some(Length::Fixed(length)),
            _ => {
                let message = format!("an array cannot have {length} elements");
                let error = Diagnostic::error(Code::Length, expr.span, message);
                self.findings.add(error.label("expected at least 1"));
                None
            }
        }
    }

    /// A type that is part of another.
    fn fixed(&mut self, expr: &TypeExpr, part: &str) -> Option<Type> {
        let kind = self.resolve(expr)?;
        if self.measures.of(&kind).stored.is_none() {
            return Some(kind);
        }
        let message = format!("{part} cannot be of variable size");
        let error = Diagnostic::error(Code::VariableSize, expr.span(), message);
        let error = error.label("its length is stored in a variable");
        let help = "where the next one begins would depend on all before it; make it a variable of its own";
        self.findings.add(error.help(help));
        None
    }

    fn check(&mut self, measure: Measure, span: Span) -> bool {
        let (code, message, label) = if measure.size.is_none() {
            (
                Code::Size,
                "no file can hold this type".to_owned(),
                format!("more than {FILE_SIZE_MAX} bytes"),
            )
        } else if measure.depth > NESTING_MAX {
            (
                Code::Limit,
                format!("this type nests deeper than {NESTING_MAX}"),
                "too deep".to_owned(),
            )
        } else if measure.leaves > LEAVES_MAX {
            let message = format!("this type has more than {LEAVES_MAX} fields");
            (Code::Limit, message, format!("has {}", measure.leaves))
        } else {
            return true;
        };
        self.findings.add(Diagnostic::error(code, span, message).label(label));
        false
    }
}

impl<'a> Dataset<'a> {
    /// Resolves the types of the variables.
    pub(super) fn declare(
        &mut self,
        declared: &[(&'a Name, &'a TypeExpr)],
        findings: &mut Findings,
    ) {
        let (mut size, mut leaves) = (Some(0u64), 0u64);
        // Variables that share one declaration share its type, and its faults.
        let mut before: Option<(*const TypeExpr, Option<Type>)> = None;
        for &(name, expr) in declared {
            let shared = before.take().filter(|(of, _)| std::ptr::eq(*of, expr));
            let kind = match shared {
                Some((_, kind)) => kind,
                None => {
                    let scope = Scope {
                        constants: &self.constants,
                        variables: &self.variables,
                        temporaries: &[],
                    };
                    let measures = &mut self.measures;
                    Resolver { types: &self.types, scope, measures, findings }.resolve(expr)
                }
            };
            before = Some((expr, kind.clone()));
            let kind = kind.filter(|kind| self.is_stored_right(kind, expr, declared, findings));
            if let Some(kind) = &kind {
                let measure = self.measures.of(kind);
                leaves = leaves.saturating_add(measure.leaves);
                let was_right = size.is_some() && leaves <= LEAVES_MAX;
                size = super::measure::checked(size, measure.size, u64::checked_add);
                if was_right && size.is_none() {
                    let error =
                        Diagnostic::error(Code::Size, name.span, "the dataset is too large");
                    let label = format!("with this variable more than {FILE_SIZE_MAX} bytes");
                    findings.add(error.label(label));
                }
            }
            self.declared.push((name, kind));
        }
        if let Some((name, _)) = declared.last().filter(|_| leaves > LEAVES_MAX) {
            let message = format!("the dataset has more than {LEAVES_MAX} numbers and texts");
            let error = Diagnostic::error(Code::Limit, name.span, message);
            findings
                .add(error.label(format!("{leaves} up to here; elements of an array count once")));
        }
    }

    /// Whether a stored length is in a variable that is declared before and is an integer.
    fn is_stored_right(
        &mut self,
        kind: &Type,
        expr: &TypeExpr,
        declared: &[(&Name, &TypeExpr)],
        findings: &mut Findings,
    ) -> bool {
        let Some(stored) = self.measures.of(kind).stored else { return true };
        let Some((name, stored_kind)) = self.declared.get(stored) else {
            let name = declared.get(stored).map_or("", |(name, _)| &*name.text);
            let message = format!("`{name}` is declared after the array whose length it stores");
            let error = Diagnostic::error(Code::VariableSize, length_span(expr, name), message);
            let help = format!("declare `{name}` first: who reads the data in order must know it");
            findings.add(error.label("not known yet").help(help));
            return false;
        };
        match stored_kind {
            Some(Type::Scalar(scalar)) if !matches!(scalar, Scalar::Float32 | Scalar::Float64) => {
                true
            }
            // Its own fault was told.
            None => false,
            Some(other) => {
                let message = format!("`{}` cannot store a length", name.text);
                let error =
                    Diagnostic::error(Code::VariableSize, length_span(expr, &name.text), message);
                let error = error.label("expected an integer variable or a constant");
                findings.add(error.related(name.span, format!("is {}", describe(other))));
                false
            }
        }
    }
}

/// Where a variable is named as a length; the whole type where a named type does it.
fn length_span(expr: &TypeExpr, variable: &str) -> Span {
    if let TypeExpr::Array { lengths, .. } = expr {
        let is_it =
            |length: &&Expr| matches!(&length.kind, ExprKind::Name(name) if name == variable);
        if let Some(length) = lengths.iter().find(is_it) {
            return length.span;
        }
    }
    expr.span()
}

/// A type in words.
pub(super) fn describe(kind: &Type) -> String {
    match kind {
        Type::Scalar(scalar) => scalar.name().to_owned(),
        Type::Text { capacity } => format!("string{capacity}"),
        Type::Struct(fields) => {
            let names: Vec<&str> = fields.iter().take(8).map(|field| &*field.name).collect();
            let more = if fields.len() > 8 { ", …" } else { "" };
            format!("a struct with the fields {}{more}", names.join(", "))
        }
        Type::Array(array) => {
            let element = match &array.element {
                Type::Struct(_) => "structs".to_owned(),
                Type::Array(_) => "arrays".to_owned(),
                other => describe(other),
            };
            match array.lengths.len() {
                1 => format!("an array of {element}"),
                rank => format!("an array of {element} with {rank} dimensions"),
            }
        }
    }
}
