//! How large types are, how they are aligned, and of how many parts they are made.

use std::collections::HashMap;
use std::sync::Arc;

use crate::definition::{Length, Type};
use crate::limits::FILE_SIZE_MAX;

/// What is counted of a type. All of it follows from the types that it is made of, so shared types are counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measure {
    /// In bytes; `None` if it is more than [`FILE_SIZE_MAX`]. Of an array of variable size: with that dimension taken as 1.
    pub(super) size: Option<u64>,
    /// In bytes (§III-B).
    pub(super) alignment: u64,
    /// Numbers and texts, those of an array's element counted once.
    pub(super) leaves: u64,
    /// Types within types.
    pub(super) depth: usize,
    /// The variable that stores a length.
    pub(super) stored: Option<usize>,
}

/// Types that have been measured.
#[derive(Debug, Default)]
pub(super) struct Measures {
    /// By the address of what is shared, which `kept` keeps from being used again.
    known: HashMap<usize, Measure>,
    kept: Vec<Type>,
}

impl Measures {
    /// Measures a type.
    ///
    /// # Source
    /// §III-B of the paper for sizes and alignment.
    pub(super) fn of(&mut self, kind: &Type) -> Measure {
        let address = match kind {
            Type::Scalar(scalar) => return leaf(scalar.size(), scalar.size()),
            Type::Text { capacity } => return leaf(2 + u64::from(*capacity), 2),
            Type::Struct(fields) => Arc::as_ptr(fields).cast::<u8>() as usize,
            Type::Array(array) => Arc::as_ptr(array).cast::<u8>() as usize,
        };
        // A struct without fields shares its address with others, and is not worth keeping.
        let is_kept = !matches!(kind, Type::Struct(fields) if fields.is_empty());
        if let Some(known) = self.known.get(&address).filter(|_| is_kept) {
            return *known;
        }
        let measure = self.compute(kind);
        if is_kept {
            self.known.insert(address, measure);
            self.kept.push(kind.clone());
        }
        measure
    }

    fn compute(&mut self, kind: &Type) -> Measure {
        match kind {
            Type::Scalar(_) | Type::Text { .. } => self.of(kind),
            Type::Struct(fields) => {
                let mut whole =
                    Measure { size: Some(0), alignment: 1, leaves: 0, depth: 0, stored: None };
                for (number, field) in fields.iter().enumerate() {
                    let part = self.of(&field.kind);
                    if number == 0 {
                        whole.alignment = part.alignment;
                    }
                    whole.size = checked(whole.size, part.size, u64::checked_add);
                    whole.leaves = whole.leaves.saturating_add(part.leaves);
                    whole.depth = whole.depth.max(part.depth);
                    whole.stored = whole.stored.or(part.stored);
                }
                Measure { depth: whole.depth + 1, ..whole }
            }
            Type::Array(array) => {
                let element = self.of(&array.element);
                let mut whole = Measure { depth: element.depth + 1, ..element };
                for length in &array.lengths {
                    match *length {
                        Length::Fixed(count) => {
                            whole.size = checked(whole.size, Some(count), u64::checked_mul);
                        }
                        Length::Stored(variable) => whole.stored = Some(variable),
                    }
                }
                whole
            }
        }
    }
}

fn leaf(size: u64, alignment: u64) -> Measure {
    Measure { size: Some(size), alignment, leaves: 1, depth: 1, stored: None }
}

/// Arithmetic on sizes that gives none for what no file can have.
pub(super) fn checked(
    left: Option<u64>,
    right: Option<u64>,
    operation: fn(u64, u64) -> Option<u64>,
) -> Option<u64> {
    operation(left?, right?).filter(|&size| size <= FILE_SIZE_MAX)
}
