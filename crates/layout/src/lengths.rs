//! How long the arrays of variable size are at present.

use std::collections::BTreeMap;

use drepl::definition::Length;

/// The values of the variables that store lengths.
///
/// A dataset that was never written is all zeros, and so are lengths that nobody set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lengths {
    values: BTreeMap<usize, u64>,
    otherwise: u64,
}

impl Lengths {
    /// All lengths are 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The variable of this index holds `value`.
    pub fn set(&mut self, variable: usize, value: u64) {
        self.values.insert(variable, value);
    }

    /// What the variable of this index holds.
    pub fn get(&self, variable: usize) -> u64 {
        self.values.get(&variable).copied().unwrap_or(self.otherwise)
    }

    /// All lengths are `value`.
    pub(crate) fn all(value: u64) -> Self {
        Self { values: BTreeMap::new(), otherwise: value }
    }

    pub(crate) fn resolve(&self, length: Length) -> u64 {
        match length {
            Length::Fixed(n) => n,
            Length::Stored(variable) => self.get(variable),
        }
    }
}
