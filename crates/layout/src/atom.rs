//! The atoms of a dataset: what is copied as one number or one run of characters.
//!
//! Every scalar that a variable's type contains, counted once however many elements the arrays
//! around it have, is an atom; a text is two of them (its length, its characters). They are
//! numbered in the order of the declaration. A number in an array of structs in the dataset, and
//! the same number in a view, have the same atom and the same indexes: this is how they are found.

use std::collections::HashMap;
use std::sync::Arc;

use drepl::definition::{Definition, Field, Type};

use crate::error::{Error, Result};

/// The most atoms that a dataset may have. Types that contain each other twice, twenty levels
/// deep, have more.
pub const FIELDS_MAX: u64 = 1 << 20;

/// How deep types may be nested.
pub const DEPTH_MAX: usize = 200;

/// The numbering of a definition's atoms.
#[derive(Debug)]
pub(crate) struct Atoms {
    /// The first atom of every variable, and one past the last one.
    first: Vec<u32>,
    /// For each struct, by its address: the first atom of each field, relative to the struct's.
    structs: HashMap<usize, Vec<u32>>,
}

impl Atoms {
    pub(crate) fn new(definition: &Definition) -> Result<Self> {
        let mut atoms = Self { first: vec![0], structs: HashMap::new() };
        let mut total = 0;
        for variable in &definition.variables {
            total += u64::from(atoms.count(&variable.kind, &variable.name, 0)?);
            atoms.first.push(small(total)?);
        }
        Ok(atoms)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.first.last().map_or(0, |&n| n as usize)
    }

    /// The first atom of a variable.
    pub(crate) fn of_variable(&self, variable: usize) -> u32 {
        self.first[variable]
    }

    /// The first atom of a field, relative to the first one of its struct.
    pub(crate) fn of_field(&self, fields: &Arc<[Field]>, field: usize) -> u32 {
        self.structs[&address(fields)][field]
    }

    fn count(&mut self, kind: &Type, name: &str, depth: usize) -> Result<u32> {
        if depth > DEPTH_MAX {
            return Err(Error::TooDeep { name: name.to_owned(), limit: DEPTH_MAX });
        }
        match kind {
            Type::Scalar(_) => Ok(1),
            Type::Text { .. } => Ok(2),
            Type::Array(array) => self.count(&array.element, name, depth + 1),
            Type::Struct(fields) => {
                if let Some(known) = self.structs.get(&address(fields)) {
                    return Ok(known.last().copied().unwrap_or(0));
                }
                let mut firsts = Vec::with_capacity(fields.len() + 1);
                let mut total = 0;
                firsts.push(0);
                for field in fields.iter() {
                    total += u64::from(self.count(&field.kind, name, depth + 1)?);
                    firsts.push(small(total)?);
                }
                self.structs.insert(address(fields), firsts);
                small(total)
            }
        }
    }
}

/// Structs are told apart by their address. All empty ones may share it; they have no atoms.
fn address(fields: &Arc<[Field]>) -> usize {
    if fields.is_empty() { 0 } else { Arc::as_ptr(fields).cast::<()>() as usize }
}

fn small(total: u64) -> Result<u32> {
    if total > FIELDS_MAX {
        return Err(Error::TooManyFields { limit: FIELDS_MAX });
    }
    Ok(total as u32)
}
