//! numpy: dtypes, .npy files, and how a view's file is mapped.
//!
//! # Source
//!
//! NumPy reference, "Data type objects (dtype)", "Specifying and constructing data types", and
//! `numpy.lib.format`.

mod literal;

use std::fmt::Write as _;

use drepl::Definition;
use drepl::definition::{ByteOrder, Field, Order, Scalar, Type, View};
use layout::{Layout, Lengths};

use crate::error::{Error, Result};
use crate::shape::{Fields, array, bytes, lengths, lying};
use crate::{Place, single};
use literal::Literal;

/// A definition for elements of a dtype: `<f4`, `float64`, `[('a', '<f4'), ('v', '<f8', (3,))]`, or
/// the dictionary with names, formats, offsets and itemsize.
///
/// # Errors
/// When it is no dtype, or one that no view can hold, such as objects or mixed byte orders.
pub fn import(dtype: &str, place: &Place) -> Result<Definition> {
    let bare = dtype.trim();
    // On a command line a simple dtype comes without quotes.
    let is_word = bare.starts_with(|c: char| c.is_ascii_alphabetic() || "<>=|?".contains(c));
    let literal = match is_word {
        true => Literal::Text(bare.to_owned()),
        false => literal::parse(bare)?,
    };
    let mut orders = Orders::default();
    let kind = of_dtype(&literal, "the dtype", &mut orders)?;
    Ok(single(place, kind, orders.agreed()?, Order::RowMajor))
}

/// A definition for a .npy file of which `begin` holds the first bytes, at least its header. Shape,
/// header and order of `place` are replaced by those of the file.
///
/// # Errors
/// When it is no .npy file, or its dtype is one that no view can hold.
pub fn import_npy(begin: &[u8], place: &Place) -> Result<Definition> {
    let npy = |reason| Error::Npy { reason };
    let rest = begin.strip_prefix(b"\x93NUMPY").ok_or(npy("it does not begin with \\x93NUMPY"))?;
    let (length, start) = match rest {
        [1, _, a, b, ..] => (u32::from(u16::from_le_bytes([*a, *b])), 10),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]), 12),
        _ => return Err(npy("its version is none of 1, 2 and 3")),
    };
    let end = start + length as usize;
    let header = begin.get(start..end).ok_or(npy("its header is cut off"))?;
    let header = str::from_utf8(header).map_err(|_| npy("its header is no text"))?;
    let Literal::Dictionary(entries) = literal::parse(header)? else {
        return Err(npy("its header is no dictionary"));
    };
    let get = |key: &str| entries.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    let (Some(descr), Some(Literal::Truth(is_fortran)), Some(Literal::Tuple(shape))) =
        (get("descr"), get("fortran_order"), get("shape"))
    else {
        return Err(npy("its header lacks descr, fortran_order or shape"));
    };
    let mut orders = Orders::default();
    let kind = of_dtype(descr, "the dtype", &mut orders)?;
    let order = if *is_fortran { Order::RowMinor } else { Order::RowMajor };
    let place = Place { shape: numbers(shape, "the shape")?, header: end as u64, ..place.clone() };
    Ok(single(&place, kind, orders.agreed()?, order))
}

/// The byte orders that were met.
#[derive(Default)]
struct Orders {
    little: bool,
    big: bool,
}

impl Orders {
    fn agreed(&self) -> Result<ByteOrder> {
        match (self.little, self.big) {
            (true, true) => Err(Error::inexpressible(
                "the dtype",
                "it mixes little-endian and big-endian numbers; a view has one byte order",
            )),
            (false, true) => Ok(ByteOrder::Big),
            _ => Ok(ByteOrder::Little),
        }
    }
}

fn of_dtype(dtype: &Literal, what: &str, orders: &mut Orders) -> Result<Type> {
    match dtype {
        Literal::Text(text) => of_text(text, what, orders),
        Literal::List(fields) => {
            let mut made = Fields::new();
            for field in fields {
                let Literal::Tuple(parts) = field else {
                    return Err(Error::inexpressible(what, "a field is no tuple"));
                };
                let (name, kind) = match parts.as_slice() {
                    [name, kind] => (name, of_dtype(kind, what, orders)?),
                    [name, kind, shape] => {
                        (name, array(shape_of(shape, what)?, of_dtype(kind, what, orders)?))
                    }
                    _ => {
                        let reason = "a field is none of (name, dtype) and (name, dtype, shape)";
                        return Err(Error::inexpressible(what, reason));
                    }
                };
                // (title, name) names it twice.
                let name = match name {
                    Literal::Text(name) => name,
                    Literal::Tuple(both) => match both.as_slice() {
                        [_, Literal::Text(name)] => name,
                        _ => return Err(Error::inexpressible(what, "a field has no name")),
                    },
                    _ => return Err(Error::inexpressible(what, "a field has no name")),
                };
                // Padding is written as a field without a name.
                let at = made.end();
                let gap = format!("_gap{at}");
                made.push(if name.is_empty() { &gap } else { name }, kind, at)?;
            }
            let size = made.end();
            Ok(made.finish(size))
        }
        Literal::Dictionary(entries) => of_dictionary(entries, what, orders),
        Literal::Tuple(parts) => match parts.as_slice() {
            [kind, shape] => Ok(array(shape_of(shape, what)?, of_dtype(kind, what, orders)?)),
            _ => Err(Error::inexpressible(what, "a tuple is (dtype, shape)")),
        },
        Literal::Number(_) | Literal::Truth(_) | Literal::None => {
            Err(Error::inexpressible(what, format!("{dtype:?} is no dtype")))
        }
    }
}

fn of_dictionary(entries: &[(String, Literal)], what: &str, orders: &mut Orders) -> Result<Type> {
    let list = |key: &str| match entries.iter().find(|(name, _)| name == key) {
        Some((_, Literal::List(items) | Literal::Tuple(items))) => Some(items.as_slice()),
        _ => None,
    };
    let (Some(names), Some(formats)) = (list("names"), list("formats")) else {
        return Err(Error::inexpressible(what, "a dictionary needs names and formats"));
    };
    let offsets = list("offsets").map(|offsets| numbers(offsets, "offsets")).transpose()?;
    let count = names.len();
    if formats.len() != count || offsets.as_ref().is_some_and(|offsets| offsets.len() != count) {
        return Err(Error::inexpressible(what, "names, formats and offsets differ in number"));
    }
    let mut fields = Vec::new();
    for (index, (name, format)) in names.iter().zip(formats).enumerate() {
        let Literal::Text(name) = name else {
            return Err(Error::inexpressible(what, "a name is no text"));
        };
        let offset = offsets.as_ref().map(|offsets| offsets[index]);
        fields.push((offset, name, of_dtype(format, name, orders)?));
    }
    // The order of the names is not the order of the bytes.
    fields.sort_by_key(|(offset, ..)| *offset);
    let mut made = Fields::new();
    for (offset, name, kind) in fields {
        let at = made.end();
        made.push(name, kind, offset.unwrap_or(at))?;
    }
    let size = match entries.iter().find(|(name, _)| name == "itemsize") {
        Some((_, Literal::Number(size))) if *size >= made.end() => *size,
        Some(_) => {
            return Err(Error::inexpressible(what, "its itemsize is less than its fields need"));
        }
        None => made.end(),
    };
    Ok(made.finish(size))
}

fn of_text(text: &str, what: &str, orders: &mut Orders) -> Result<Type> {
    let refuse = |reason: &str| Err(Error::inexpressible(what, format!("{text:?}: {reason}")));
    let (order, code) = match text.strip_prefix(['<', '>', '=', '|']) {
        Some(code) => (text.as_bytes()[0], code),
        None => (b'=', text),
    };
    let named = match code {
        "int" | "long" | "longlong" | "intp" => "i8",
        "uint" | "ulong" | "ulonglong" | "uintp" => "u8",
        "intc" => "i4",
        "uintc" => "u4",
        "short" => "i2",
        "ushort" => "u2",
        "byte" => "i1",
        "ubyte" => "u1",
        "float" | "double" => "f8",
        "single" => "f4",
        "bool" | "bool_" | "?" => "b1",
        "complex" | "cdouble" => "c16",
        "csingle" => "c8",
        code => code,
    };
    let digits = named.trim_start_matches(|c: char| !c.is_ascii_digit());
    let letters = &named[..named.len() - digits.len()];
    let Ok(size) = (if digits.is_empty() { Ok(1) } else { digits.parse::<u64>() }) else {
        return refuse("its size is no number");
    };
    // float32 tells bits, f4 bytes.
    let (letter, size) = match letters {
        "int" => ("i", size / 8),
        "uint" => ("u", size / 8),
        "float" => ("f", size / 8),
        "complex" => ("c", size / 8),
        letters => (letters, size),
    };
    let number = |scalar: Scalar| Type::Scalar(scalar);
    let kind = match (letter, size) {
        ("b" | "i", 1) => number(if letter == "i" { Scalar::Int8 } else { Scalar::Uint8 }),
        ("i", 2) => number(Scalar::Int16),
        ("i", 4) => number(Scalar::Int32),
        ("i", 8) => number(Scalar::Int64),
        ("u", 1) => number(Scalar::Uint8),
        ("u", 2) => number(Scalar::Uint16),
        ("u", 4) => number(Scalar::Uint32),
        ("u", 8) => number(Scalar::Uint64),
        ("f", 4) => number(Scalar::Float32),
        ("f", 8) => number(Scalar::Float64),
        ("c", 8) => complex(Scalar::Float32),
        ("c", 16) => complex(Scalar::Float64),
        ("M" | "m", 8) => number(Scalar::Int64),
        // The bytes of a text, which has no length before it as a string of the language has.
        ("S" | "a" | "V", size) if size > 0 => return Ok(bytes(size)),
        ("U", size) if size > 0 => array(vec![size], number(Scalar::Uint32)),
        ("O", _) => return refuse("Python objects have no bytes of their own"),
        ("f" | "c", _) => {
            return refuse("floating-point numbers of the language have 32 or 64 bits");
        }
        _ => return refuse("no such dtype"),
    };
    match order {
        _ if letter == "b" || size == 1 => {}
        b'>' => orders.big = true,
        _ => orders.little = true,
    }
    Ok(kind)
}

fn complex(part: Scalar) -> Type {
    let field = |name: &str| Field { name: name.to_owned(), kind: Type::Scalar(part) };
    Type::Struct(vec![field("re"), field("im")].into())
}

fn shape_of(shape: &Literal, what: &str) -> Result<Vec<u64>> {
    match shape {
        Literal::Number(length) => Ok(vec![*length]),
        Literal::Tuple(lengths) if !lengths.is_empty() => numbers(lengths, what),
        _ => Err(Error::inexpressible(what, "a shape is a number or a tuple of numbers")),
    }
}

fn numbers(literals: &[Literal], what: &str) -> Result<Vec<u64>> {
    let number = |literal: &Literal| match literal {
        Literal::Number(number) => Ok(*number),
        _ => Err(Error::inexpressible(what, "it holds something that is no number")),
    };
    literals.iter().map(number).collect()
}

/// A variable of a view's file, as an array of numpy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// The variable.
    pub name: String,
    /// Its elements, as a literal of Python that `numpy.dtype` takes.
    pub dtype: String,
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// How long it is in each dimension; none for a single element.
    pub shape: Vec<u64>,
    /// Whether the first index varies fastest, as in Fortran.
    pub is_fortran: bool,
}

/// The variables of a view's file as arrays.
///
/// # Errors
/// When the view cannot be placed, or holds an array whose length is stored in the dataset.
pub fn mapped(definition: &Definition, view: usize) -> Result<Vec<Mapped>> {
    let placement = Layout::new(definition)?.view(view, &Lengths::new())?;
    let view = &definition.views[view];
    let mut arrays = Vec::new();
    for placed in placement.variables() {
        let variable = &view.variables[placed.variable];
        let source = &definition.variables[variable.source];
        let mut kind = lying(&source.kind, &variable.part, &variable.name)?;
        let mut shape = Vec::new();
        if let Type::Array(outer) = &kind {
            shape = lengths(outer, &variable.name)?;
            let element = outer.element.clone();
            kind = element;
        }
        arrays.push(Mapped {
            name: variable.name.clone(),
            dtype: dtype(&kind, view, &variable.name)?,
            offset: placed.offset,
            shape,
            is_fortran: view.order == Order::RowMinor,
        });
    }
    Ok(arrays)
}

/// A piece of Python that maps every variable of a view's file: `{'b': numpy.memmap(…), …}`.
///
/// # Errors
/// As [`mapped`].
pub fn export(definition: &Definition, view: usize) -> Result<String> {
    let arrays = mapped(definition, view)?;
    let view = &definition.views[view];
    let mode = if view.read_only { "r" } else { "r+" };
    let mut text = String::from("import numpy\n\n\ndef variables(file):\n");
    let _ = writeln!(text, "    \"\"\"The variables of the view {}, mapped.\"\"\"", view.name);
    text.push_str("    return {\n");
    for array in arrays {
        let shape: String = array.shape.iter().map(|length| format!("{length}, ")).collect();
        let order = if array.is_fortran { "F" } else { "C" };
        let _ = writeln!(
            text,
            "        {:?}: numpy.memmap(\n            file, dtype={}, mode='{mode}',\n            \
             offset={}, shape=({}), order='{order}',\n        ),",
            array.name,
            array.dtype,
            array.offset,
            shape.trim_end(),
        );
    }
    text.push_str("    }\n");
    Ok(text)
}

/// A dtype as numpy takes it.
fn dtype(kind: &Type, view: &View, what: &str) -> Result<String> {
    let order = if view.byte_order == ByteOrder::Big { '>' } else { '<' };
    Ok(match kind {
        Type::Scalar(scalar) => {
            let letter = match scalar {
                Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => 'i',
                Scalar::Uint8 | Scalar::Uint16 | Scalar::Uint32 | Scalar::Uint64 => 'u',
                Scalar::Float32 | Scalar::Float64 => 'f',
            };
            format!("'{order}{letter}{}'", scalar.size())
        }
        Type::Text { capacity } => {
            format!("[('length', '{order}i2'), ('text', 'S{capacity}')]")
        }
        Type::Struct(fields) => {
            let mut inner = Vec::new();
            for field in fields.iter() {
                inner.push(format!("({:?}, {})", field.name, dtype(&field.kind, view, what)?));
            }
            format!("[{}]", inner.join(", "))
        }
        Type::Array(array) => {
            let mut shape = lengths(array, what)?;
            // Inside of an element numpy only has the order of C.
            if view.order == Order::RowMinor {
                shape.reverse();
            }
            let shape: String = shape.iter().map(|length| format!("{length},")).collect();
            format!("({}, ({shape}))", dtype(&array.element, view, what)?)
        }
    })
}
