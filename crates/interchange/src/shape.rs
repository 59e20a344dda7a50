//! The type that a view's variable has, and structs with gaps.

use std::sync::Arc;

use drepl::definition::{Array, Field, Length, Marker, Part, Scalar, Type};

use crate::error::{Error, Result};

/// The type of a variable of a view, as it lies in the view's file: with the markers of the records
/// in it.
pub(crate) fn lying(kind: &Type, part: &Part, what: &str) -> Result<Type> {
    if let Part::Slice(slice) = part
        && let Type::Array(array) = kind
        && !slice.lengths.is_empty()
    {
        let element = lying(&array.element, &slice.element, what)?;
        return Ok(Type::Array(Arc::new(Array { lengths: slice.lengths.clone(), element })));
    }
    let Part::Record { marker, part } = part else {
        let misfit = || Error::inexpressible(what, "what it takes does not fit the dataset");
        return part.taken(kind).ok_or_else(misfit);
    };
    let scalar = match marker {
        Marker::Four => Scalar::Int32,
        Marker::Eight => Scalar::Int64,
    };
    let mark = |name: &str| Field { name: name.to_owned(), kind: Type::Scalar(scalar) };
    let data = Field { name: "data".to_owned(), kind: lying(kind, part, what)? };
    Ok(Type::Struct(vec![mark("_begin"), data, mark("_end")].into()))
}

/// The bytes of a type without any alignment, as views and both tools have it in a struct.
pub(crate) fn size(kind: &Type, what: &str) -> Result<u64> {
    let overflow = || Error::inexpressible(what, "its size does not fit in 64 bits");
    match kind {
        Type::Scalar(scalar) => Ok(scalar.size()),
        Type::Text { capacity } => Ok(2 + u64::from(*capacity)),
        Type::Struct(fields) => fields.iter().try_fold(0_u64, |bytes, field| {
            bytes.checked_add(size(&field.kind, what)?).ok_or_else(overflow)
        }),
        Type::Array(array) => lengths(array, what)?
            .into_iter()
            .try_fold(size(&array.element, what)?, |bytes, length| bytes.checked_mul(length))
            .ok_or_else(overflow),
    }
}

/// The lengths of an array whose size is known.
pub(crate) fn lengths(array: &Array, what: &str) -> Result<Vec<u64>> {
    let known = array.lengths.iter().map(|length| match length {
        Length::Fixed(length) => Ok(*length),
        Length::Stored(_) => {
            Err(Error::inexpressible(what, "its length is stored in the dataset, not known here"))
        }
    });
    known.collect()
}

/// Collects the fields of a struct from what lies at which offset, with fields of bytes for gaps.
pub(crate) struct Fields {
    fields: Vec<Field>,
    end: u64,
}

impl Fields {
    pub(crate) fn new() -> Self {
        Self { fields: Vec::new(), end: 0 }
    }

    /// The next field, at `offset`, which must not lie in what is there.
    pub(crate) fn push(&mut self, name: &str, kind: Type, offset: u64) -> Result<()> {
        if offset < self.end {
            let reason = format!(
                "it begins at byte {offset}, inside of what ends at byte {}: overlapping fields \
                 are two views, not one",
                self.end
            );
            return Err(Error::inexpressible(name, reason));
        }
        if !drepl::is_name(name) {
            let reason = "fields are named by letters, digits and _, no digit first";
            return Err(Error::inexpressible(format!("the field {name:?}"), reason));
        }
        if self.fields.iter().any(|field| field.name == name) {
            return Err(Error::inexpressible(name, "two fields have this name"));
        }
        self.fill(offset);
        self.end = offset
            .checked_add(size(&kind, name)?)
            .ok_or_else(|| Error::inexpressible(name, "its end does not fit in 64 bits"))?;
        self.fields.push(Field { name: name.to_owned(), kind });
        Ok(())
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The struct, filled up to `size` bytes.
    pub(crate) fn finish(mut self, size: u64) -> Type {
        self.fill(size);
        Type::Struct(self.fields.into())
    }

    fn fill(&mut self, to: u64) {
        if to > self.end {
            let name = format!("_gap{}", self.end);
            self.fields.push(Field { name, kind: bytes(to - self.end) });
            self.end = to;
        }
    }
}

/// An array of bytes.
pub(crate) fn bytes(count: u64) -> Type {
    array(vec![count], Type::Scalar(Scalar::Uint8))
}

/// An array of a known shape.
pub(crate) fn array(shape: Vec<u64>, element: Type) -> Type {
    let lengths = shape.into_iter().map(Length::Fixed).collect();
    Type::Array(Arc::new(Array { lengths, element }))
}
