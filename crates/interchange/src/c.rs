//! C: structs as x86-64 and AArch64 Linux lay them out (LP64).
//!
//! # Source
//!
//! "System V Application Binary Interface, AMD64 Architecture Processor Supplement", §3.1.2.

mod token;

use std::collections::HashMap;
use std::fmt::Write as _;

use drepl::Definition;
use drepl::definition::{ByteOrder, Order, Scalar, Type};
use layout::{Layout, Lengths};

use crate::error::{Error, Result};
use crate::shape::{Fields, array, bytes, lengths, lying, size};
use crate::{Place, single};
use token::{Kind, Token};

/// A definition for the struct `name` of a C text, or for its last one. The gaps that the compiler
/// leaves become fields of bytes.
///
/// # Errors
/// When the text is not understood (no expressions but numbers and `#define`d ones, no macros that
/// expand to declarations), or holds what has no bytes of its own, such as pointers.
pub fn import(text: &str, name: Option<&str>, place: &Place) -> Result<Definition> {
    let cut = token::cut(text)?;
    let mut reader = Reader {
        tokens: &cut.tokens,
        at: 0,
        constants: cut.constants,
        structs: HashMap::new(),
        order: Vec::new(),
    };
    while reader.at < reader.tokens.len() {
        reader.declaration()?;
    }
    let Some(name) = name.map(str::to_owned).or_else(|| reader.order.last().cloned()) else {
        return Err(Error::inexpressible("the text", "it declares no struct"));
    };
    match reader.structs.remove(&name) {
        Some(found) => Ok(single(place, found.kind, ByteOrder::Little, Order::RowMajor)),
        None => Err(Error::Unknown { what: "struct", name, known: reader.order.join(", ") }),
    }
}

/// A type of C: what it is here, and where it may begin.
#[derive(Debug, Clone)]
struct Typed {
    kind: Type,
    alignment: u64,
}

struct Reader<'t> {
    tokens: &'t [Token],
    at: usize,
    constants: HashMap<String, u64>,
    /// By their tag or the name that a typedef gives them.
    structs: HashMap<String, Typed>,
    order: Vec<String>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Kind::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Kind::Word(word)) if word == wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: char) -> Result<()> {
        if self.take(sign) { Ok(()) } else { Err(self.expected(&format!("'{sign}'"))) }
    }

    fn name(&mut self) -> Option<String> {
        match self.peek() {
            Some(Kind::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Some(word)
            }
            _ => None,
        }
    }

    fn expected(&self, expected: &str) -> Error {
        let last = self.tokens.last().map_or(1, |token| token.line);
        let line = self.tokens.get(self.at).map_or(last, |token| token.line);
        let found = match self.peek() {
            Some(Kind::Word(word)) => format!("{word:?}"),
            Some(Kind::Number(number)) => number.to_string(),
            Some(Kind::Sign(sign)) => format!("'{sign}'"),
            None => "the end".to_owned(),
        };
        Error::Syntax { line, expected: expected.to_owned(), found }
    }

    /// One declaration at the top: `struct … {…};` or `typedef struct {…} NAME;`.
    fn declaration(&mut self) -> Result<()> {
        if self.take(';') {
            return Ok(());
        }
        let is_typedef = self.take_word("typedef");
        if !matches!(self.peek(), Some(Kind::Word(word)) if word == "struct") {
            return Err(self.expected("the declaration of a struct"));
        }
        let found = self.kind()?;
        if is_typedef {
            let name = self.name().ok_or_else(|| self.expected("the name of the type"))?;
            self.add(name, found);
        }
        self.expect(';')
    }

    fn add(&mut self, name: String, found: Typed) {
        self.order.retain(|known| *known != name);
        self.order.push(name.clone());
        self.structs.insert(name, found);
    }

    /// The words of a type, or a struct with its body.
    fn kind(&mut self) -> Result<Typed> {
        if self.take_word("struct") {
            return self.structure();
        }
        let begin = self.at;
        let mut words: Vec<String> = Vec::new();
        while let Some(Kind::Word(word)) = self.peek() {
            let word = word.clone();
            let is_base = BASE_WORDS.contains(&word.as_str());
            if !is_base && !words.is_empty() {
                break;
            }
            self.at += 1;
            match word.as_str() {
                "const" | "volatile" => continue,
                "union" | "enum" => {
                    self.at = begin;
                    return Err(
                        self.expected("a number or a struct; a view has no unions and enums")
                    );
                }
                _ => words.push(word),
            }
            if !is_base {
                break;
            }
        }
        if let [name] = words.as_slice()
            && let Some(known) = self.structs.get(name)
        {
            return Ok(known.clone());
        }
        words.sort_unstable();
        match scalar(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
            Some(scalar) => Ok(Typed { kind: Type::Scalar(scalar), alignment: scalar.size() }),
            None => {
                self.at = begin;
                Err(self.expected("a type"))
            }
        }
    }

    /// What follows `struct`.
    fn structure(&mut self) -> Result<Typed> {
        let mut is_packed = self.attribute()?;
        let tag = self.name();
        if !self.take('{') {
            let tag = tag.ok_or_else(|| self.expected("'{'"))?;
            let known = self.order.join(", ");
            return self.structs.get(&tag).cloned().ok_or(Error::Unknown {
                what: "struct",
                name: tag,
                known,
            });
        }
        let mut members = Vec::new();
        while !self.take('}') {
            self.members(&mut members)?;
        }
        is_packed |= self.attribute()?;
        let mut fields = Fields::new();
        let mut alignment = 1;
        for (name, member) in members {
            let own = if is_packed { 1 } else { member.alignment };
            alignment = alignment.max(own);
            let offset = fields.end().next_multiple_of(own);
            fields.push(&name, member.kind, offset)?;
        }
        let end = fields.end().next_multiple_of(alignment);
        let found = Typed { kind: fields.finish(end), alignment };
        if let Some(tag) = tag {
            self.add(tag, found.clone());
        }
        Ok(found)
    }

    /// `double a, b[3];`
    fn members(&mut self, members: &mut Vec<(String, Typed)>) -> Result<()> {
        let base = self.kind()?;
        loop {
            if self.peek() == Some(&Kind::Sign('*')) {
                return Err(self.expected("no pointer: what it points to is not in the file"));
            }
            let name = self.name().ok_or_else(|| self.expected("the name of a member"))?;
            if self.peek() == Some(&Kind::Sign(':')) {
                return Err(self.expected("no bit field: views have whole bytes"));
            }
            let mut shape = Vec::new();
            while self.take('[') {
                shape.push(self.length()?);
                self.expect(']')?;
            }
            let kind = match shape.is_empty() {
                true => base.kind.clone(),
                false => array(shape, base.kind.clone()),
            };
            members.push((name, Typed { kind, alignment: base.alignment }));
            if !self.take(',') {
                return self.expect(';');
            }
        }
    }

    fn length(&mut self) -> Result<u64> {
        let length = match self.peek() {
            Some(Kind::Number(number)) => *number,
            Some(Kind::Word(word)) if self.constants.contains_key(word) => self.constants[word],
            _ => return Err(self.expected("a length: a number, or a name that #define gives one")),
        };
        if length == 0 {
            return Err(self.expected("a length of at least 1"));
        }
        self.at += 1;
        Ok(length)
    }

    /// `__attribute__((packed))`, if it is there.
    fn attribute(&mut self) -> Result<bool> {
        if !self.take_word("__attribute__") {
            return Ok(false);
        }
        self.expect('(')?;
        self.expect('(')?;
        if !self.take_word("packed") && !self.take_word("__packed__") {
            return Err(self.expected("packed, the only attribute that is understood"));
        }
        self.expect(')')?;
        self.expect(')')?;
        Ok(true)
    }
}

const BASE_WORDS: [&str; 11] = [
    "char", "const", "double", "float", "int", "long", "short", "signed", "unsigned", "volatile",
    "_Bool",
];

/// The number that sorted words name.
fn scalar(words: &[&str]) -> Option<Scalar> {
    Some(match words {
        ["char"] | ["char", "signed"] | ["int8_t"] => Scalar::Int8,
        ["char", "unsigned"] | ["uint8_t"] | ["_Bool"] | ["bool"] => Scalar::Uint8,
        ["short"]
        | ["int", "short"]
        | ["short", "signed"]
        | ["int", "short", "signed"]
        | ["int16_t"] => Scalar::Int16,
        ["short", "unsigned"] | ["int", "short", "unsigned"] | ["uint16_t"] => Scalar::Uint16,
        ["int"] | ["signed"] | ["int", "signed"] | ["int32_t"] => Scalar::Int32,
        ["unsigned"] | ["int", "unsigned"] | ["uint32_t"] => Scalar::Uint32,
        ["long"]
        | ["int", "long"]
        | ["long", "long"]
        | ["int", "long", "long"]
        | ["long", "signed"]
        | ["int", "long", "signed"]
        | ["long", "long", "signed"]
        | ["int64_t"]
        | ["ssize_t"]
        | ["ptrdiff_t"]
        | ["intptr_t"]
        | ["off_t"] => Scalar::Int64,
        ["long", "unsigned"]
        | ["int", "long", "unsigned"]
        | ["long", "long", "unsigned"]
        | ["int", "long", "long", "unsigned"]
        | ["uint64_t"]
        | ["size_t"]
        | ["uintptr_t"] => Scalar::Uint64,
        ["float"] => Scalar::Float32,
        ["double"] => Scalar::Float64,
        _ => return None,
    })
}

/// Structs that lie over the file of a view, and the offset of each of its variables.
///
/// # Errors
/// When the view is big-endian or row-minor inside of elements, cannot be placed, or holds an
/// array whose length is stored in the dataset.
pub fn export(definition: &Definition, view: usize) -> Result<String> {
    let placement = Layout::new(definition)?.view(view, &Lengths::new())?;
    let view = &definition.views[view];
    if view.byte_order == ByteOrder::Big {
        let reason = "its numbers are big-endian, which C has no types for";
        return Err(Error::inexpressible(format!("the view {}", view.name), reason));
    }
    let mut text = String::from("#include <stdint.h>\n");
    let mut offsets = String::new();
    for placed in placement.variables() {
        let variable = &view.variables[placed.variable];
        let source = &definition.variables[variable.source];
        let kind = lying(&source.kind, &variable.part, &variable.name)?;
        let mut writer = Writer { order: view.order, structs: String::new() };
        let (base, shape) = writer.declared(&kind, &variable.name, &variable.name)?;
        let _ = writeln!(text, "\n{}typedef {base} {}_t{shape};", writer.structs, variable.name);
        let _ = writeln!(
            text,
            "_Static_assert(sizeof({}_t) == {}, \"{}\");",
            variable.name,
            size(&kind, &variable.name)?,
            variable.name
        );
        let _ = writeln!(offsets, "    {}_offset = {},", variable.name, placed.offset);
    }
    let _ =
        write!(text, "\n/* Where each variable begins in the file. */\nenum {{\n{offsets}}};\n");
    Ok(text)
}

/// Collects the structs that a type needs.
struct Writer {
    order: Order,
    structs: String,
}

impl Writer {
    /// The base type and the brackets of a declaration.
    fn declared(&mut self, kind: &Type, path: &str, what: &str) -> Result<(String, String)> {
        Ok(match kind {
            Type::Scalar(scalar) => (c_name(*scalar).to_owned(), String::new()),
            Type::Text { capacity } => {
                let fields = [
                    ("length".to_owned(), Type::Scalar(Scalar::Int16)),
                    ("text".to_owned(), bytes(u64::from(*capacity))),
                ];
                (self.structure(&fields, path, what)?, String::new())
            }
            Type::Struct(fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|f| (f.name.clone(), f.kind.clone())).collect();
                (self.structure(&fields, path, what)?, String::new())
            }
            Type::Array(array) => {
                let mut shape = lengths(array, what)?;
                // C has its last index run fastest.
                if self.order == Order::RowMinor {
                    shape.reverse();
                }
                let shape: String = shape.iter().map(|length| format!("[{length}]")).collect();
                let (base, inner) = self.declared(&array.element, path, what)?;
                (base, shape + &inner)
            }
        })
    }

    fn structure(&mut self, fields: &[(String, Type)], path: &str, what: &str) -> Result<String> {
        let mut body = String::new();
        for (name, kind) in fields {
            let (base, shape) = self.declared(kind, &format!("{path}_{name}"), what)?;
            let _ = writeln!(body, "    {base} {name}{shape};");
        }
        let _ = writeln!(self.structs, "struct __attribute__((packed)) {path} {{\n{body}}};");
        Ok(format!("struct {path}"))
    }
}

fn c_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Int8 => "int8_t",
        Scalar::Int16 => "int16_t",
        Scalar::Int32 => "int32_t",
        Scalar::Int64 => "int64_t",
        Scalar::Uint8 => "uint8_t",
        Scalar::Uint16 => "uint16_t",
        Scalar::Uint32 => "uint32_t",
        Scalar::Uint64 => "uint64_t",
        Scalar::Float32 => "float",
        Scalar::Float64 => "double",
    }
}
