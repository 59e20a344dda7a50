//! The text of a definition.

use std::fmt::Write as _;

use crate::definition::{
    ByteOrder, Definition, Field, Index, Length, Marker, Order, Part, PartField, Placing, Replica,
    Slice, Storage, Type, Update, View, ViewVariable,
};

const INDENT: &str = "    ";

/// Writes a text that means a definition: compiling it gives the same definition again.
///
/// Variables and fields must have names that the language has (see [`is_name`]); views and replicas may have any name
/// without control characters.
pub fn print(definition: &Definition) -> String {
    let printer = Printer { definition };
    let mut text = String::from("dataset {\n");
    for variable in &definition.variables {
        let _ = writeln!(text, "{INDENT}var {} {}", variable.name, printer.kind(&variable.kind, 1));
    }
    text.push_str("}\n");
    for view in &definition.views {
        printer.view(&mut text, view);
    }
    for replica in &definition.replicas {
        printer.replica(&mut text, replica);
    }
    text
}

/// Whether a text can be the name of a variable, a field, a type or a constant: letters, digits and `_`, no digit first.
pub fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c == '_' || c.is_alphabetic());
    begins && text.chars().all(|c| c == '_' || c.is_alphanumeric())
}

struct Printer<'d> {
    definition: &'d Definition,
}

/// What stands on the left and on the right of `=`.
struct Sides {
    shape: String,
    path: String,
}

impl Printer<'_> {
    fn kind(&self, kind: &Type, depth: usize) -> String {
        match kind {
            Type::Scalar(scalar) => scalar.name().to_owned(),
            Type::Text { capacity } => format!("string{capacity}"),
            Type::Struct(fields) => {
                let mut text = String::from("struct {\n");
                // Neighbours of one type share a line.
                for group in fields.chunk_by(|a, b| is_short(a) && a.kind == b.kind) {
                    let names: Vec<&str> = group.iter().map(|field| &*field.name).collect();
                    let indent = INDENT.repeat(depth + 1);
                    let kind = self.kind(&group[0].kind, depth + 1);
                    let _ = writeln!(text, "{indent}{} {kind}", names.join(", "));
                }
                text + &INDENT.repeat(depth) + "}"
            }
            Type::Array(array) => {
                let lengths: Vec<String> =
                    array.lengths.iter().map(|one| self.length(*one)).collect();
                format!("[{}]{}", lengths.join(", "), self.kind(&array.element, depth))
            }
        }
    }

    fn length(&self, length: Length) -> String {
        match length {
            Length::Fixed(count) => count.to_string(),
            Length::Stored(variable) => self.definition.variables[variable].name.clone(),
        }
    }

    fn view(&self, text: &mut String, view: &View) {
        let _ = write!(text, "\nview {}", name(&view.name));
        if view.read_only {
            text.push_str(" read-only");
        }
        if view.order == Order::RowMinor {
            text.push_str(" rowminor");
        }
        if view.byte_order == ByteOrder::Big {
            text.push_str(" bigendian");
        }
        if view.packed {
            text.push_str(" packed");
        }
        if view.header > 0 {
            let _ = write!(text, " header {}", view.header);
        }
        text.push_str(" {\n");
        for group in view.variables.chunk_by(|a, b| a.record.is_some() && a.record == b.record) {
            let Some(record) = group[0].record else {
                self.variable(text, &group[0], 1);
                continue;
            };
            let _ = writeln!(text, "{INDENT}record {} {{", bytes(record.marker));
            group.iter().for_each(|variable| self.variable(text, variable, 2));
            let _ = writeln!(text, "{INDENT}}}");
        }
        text.push_str("}\n");
    }

    fn variable(&self, text: &mut String, variable: &ViewVariable, depth: usize) {
        let source = &self.definition.variables[variable.source];
        let Sides { shape, path } = self.sides(&source.kind, &variable.part, 0);
        let _ = write!(text, "{}var {}", INDENT.repeat(depth), variable.name);
        if !shape.is_empty() {
            let _ = write!(text, " {shape}");
        }
        let _ = write!(text, " = {}{path}", source.name);
        let Placing { at, align, pad } = variable.placing;
        for (word, value) in
            [("at", at), ("align", align), ("pad", Some(pad).filter(|&pad| pad > 0))]
        {
            if let Some(value) = value {
                let _ = write!(text, " {word} {value}");
            }
        }
        text.push('\n');
    }

    /// A part of a type; `used` dimensions around it have names.
    fn sides(&self, kind: &Type, part: &Part, used: usize) -> Sides {
        match (part, kind) {
            (Part::Fields(parts), Type::Struct(fields)) => {
                let parts = parts.iter().map(|part| self.field(fields, part, used));
                let shape = format!("{{ {} }}", parts.collect::<Vec<_>>().join("; "));
                Sides { shape, path: String::new() }
            }
            (Part::Member { field, part }, Type::Struct(fields)) => {
                let inner = self.sides(&fields[*field].kind, part, used);
                Sides { path: format!(".{}{}", fields[*field].name, inner.path), ..inner }
            }
            (Part::Slice(slice), Type::Array(array)) => {
                let Slice { lengths, indexes, element } = slice;
                let inner = self.sides(&array.element, element, used + lengths.len());
                let indexes: Vec<String> =
                    indexes.iter().map(|index| index_text(*index, used)).collect();
                let path = format!("[{}]{}", indexes.join(", "), inner.path);
                if lengths.is_empty() {
                    return Sides { path, ..inner };
                }
                let names: Vec<String> = (used..used + lengths.len()).map(dimension).collect();
                let names = names.join(", ");
                let blank = if inner.shape.starts_with(['{', 'r']) { " " } else { "" };
                Sides { shape: format!("[{names}]{blank}{}", inner.shape), path }
            }
            (Part::Record { marker, part }, _) => {
                let inner = self.sides(kind, part, used);
                let blank = if inner.shape.is_empty() { "" } else { " " };
                Sides { shape: format!("record {}{blank}{}", bytes(*marker), inner.shape), ..inner }
            }
            // Whole; and what does not fit its type, which no definition has.
            _ => Sides { shape: String::new(), path: String::new() },
        }
    }

    fn field(&self, fields: &[Field], part: &PartField, used: usize) -> String {
        let field = &fields[part.field];
        let Sides { shape, path } = self.sides(&field.kind, &part.part, used);
        let mut text = field.name.clone();
        if !shape.is_empty() {
            let _ = write!(text, " {shape}");
        }
        if !path.is_empty() {
            let _ = write!(text, " = {}{path}", field.name);
        }
        text
    }

    fn replica(&self, text: &mut String, replica: &Replica) {
        let _ = write!(text, "\nreplica {}", name(&replica.name));
        if replica.complete {
            text.push_str(" complete");
        }
        text.push_str(match replica.update {
            Update::Sync => "",
            Update::Async => " async",
            Update::OnClose => " on-close",
        });
        if replica.closeness > 0 {
            let _ = write!(text, " near {}", replica.closeness);
        }
        if replica.storage == Storage::Hdf5 {
            text.push_str(" hdf5");
        }
        text.push_str(" {\n");
        for view in &replica.views {
            let _ = write!(text, "{INDENT}view {}", name(&self.definition.views[view.view].name));
            if let Some(group) = &view.group {
                let _ = write!(text, " group {}", quoted(group));
            }
            if view.split {
                text.push_str(" split");
            }
            if let Some(chunk) = &view.chunk {
                let lengths: Vec<String> = chunk.iter().map(u64::to_string).collect();
                let _ = write!(text, " chunk [{}]", lengths.join(", "));
            }
            if let Some(level) = view.deflate {
                let _ = write!(text, " deflate {level}");
            }
            text.push('\n');
        }
        text.push_str("}\n");
    }
}

/// Whether a field has a type that others can share its line with.
fn is_short(field: &Field) -> bool {
    matches!(field.kind, Type::Scalar(_) | Type::Text { .. })
}

fn bytes(marker: Marker) -> u8 {
    match marker {
        Marker::Four => 4,
        Marker::Eight => 8,
    }
}

/// `i`, `j`, … and `i18`, `i19`, … for the dimensions of a view. A dataset that is printed has no constants.
fn dimension(number: usize) -> String {
    match u8::try_from(number) {
        Ok(small @ 0..=17) => char::from(b'i' + small).to_string(),
        _ => format!("i{number}"),
    }
}

fn index_text(index: Index, used: usize) -> String {
    match index {
        Index::Fixed(index) => index.to_string(),
        Index::Running { dimension: number, step, start } => {
            let name = dimension(used + number);
            let multiple = match step {
                1 => name,
                _ => format!("{step}*{name}"),
            };
            match start {
                0 => multiple,
                _ => format!("{multiple} + {start}"),
            }
        }
    }
}

/// A name by itself where that is possible, else a text.
fn name(text: &str) -> String {
    if is_name(text) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
