//! Whether everything is stored somewhere.
//!
//! What no replica holds reads as zeros, and writes to it are lost; so it is refused. A definition without any replica
//! stores nothing and is not asked. Looked at are variables and fields: that a slice leaves elements of an array out is
//! seen only when everything has its place, by `sluice layout check` and when the dataset is served.

use crate::compiled::SourceMap;
use crate::definition::{Definition, Part, Type};
use crate::diagnostic::{Code, Diagnostic, Findings};

/// What of a type is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stored {
    Nothing,
    All,
    /// Of a struct, by field.
    Fields(Vec<Stored>),
    /// Of the elements of an array.
    Elements(Box<Stored>),
}

pub(super) fn check(definition: &Definition, map: &SourceMap, findings: &mut Findings) {
    let replicas = &definition.replicas;
    if replicas.is_empty() || replicas.iter().any(|replica| replica.complete) {
        return;
    }
    let mut stored = vec![Stored::Nothing; definition.variables.len()];
    let mut is_held = vec![false; definition.views.len()];
    for view in replicas.iter().flat_map(|replica| &replica.views) {
        is_held[view.view] = true;
    }
    let held = definition.views.iter().zip(is_held).filter(|(_, is_held)| *is_held);
    for variable in held.flat_map(|(view, _)| &view.variables) {
        let kind = &definition.variables[variable.source].kind;
        stored[variable.source].add(kind, &variable.part);
    }
    for ((variable, stored), span) in definition.variables.iter().zip(&stored).zip(&map.variables) {
        if let Some(path) = stored.missing(&variable.kind) {
            let message = format!("no replica stores `{}{path}`", variable.name);
            let error = Diagnostic::error(Code::Coverage, *span, message);
            let error = error.label("would read as zeros, and writes to it would be lost");
            let help = "add a view that has it to a replica, or make a replica `complete`";
            findings.add(error.help(help));
        }
    }
}

impl Stored {
    fn add(&mut self, kind: &Type, part: &Part) {
        if *self == Stored::All {
            return;
        }
        match (part, kind) {
            (Part::Whole, _) => *self = Stored::All,
            (Part::Record { part, .. }, _) => self.add(kind, part),
            (Part::Fields(parts), Type::Struct(fields)) => {
                for part in parts {
                    self.field(part.field, fields.len()).add(&fields[part.field].kind, &part.part);
                }
            }
            (Part::Member { field, part }, Type::Struct(fields)) => {
                self.field(*field, fields.len()).add(&fields[*field].kind, part);
            }
            (Part::Slice(slice), Type::Array(array)) => {
                if !matches!(self, Stored::Elements(_)) {
                    *self = Stored::Elements(Box::new(Stored::Nothing));
                }
                if let Stored::Elements(element) = self {
                    element.add(&array.element, &slice.element);
                }
            }
            // Parts are made from their types.
            _ => {}
        }
    }

    fn field(&mut self, field: usize, count: usize) -> &mut Stored {
        if !matches!(self, Stored::Fields(_)) {
            *self = Stored::Fields(vec![Stored::Nothing; count]);
        }
        match self {
            Stored::Fields(fields) => &mut fields[field],
            other => other,
        }
    }

    /// The path of something that is not stored.
    fn missing(&self, kind: &Type) -> Option<String> {
        match (self, kind) {
            (Stored::All, _) => None,
            (Stored::Elements(element), Type::Array(array)) => {
                let path = element.missing(&array.element)?;
                let indexes = vec![".."; array.lengths.len()].join(", ");
                Some(format!("[{indexes}]{path}"))
            }
            (Stored::Fields(parts), Type::Struct(fields)) => {
                parts.iter().zip(fields.iter()).find_map(|(part, field)| {
                    Some(format!(".{}{}", field.name, part.missing(&field.kind)?))
                })
            }
            _ => Some(String::new()),
        }
    }
}
