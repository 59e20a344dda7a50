//! Who sent what to whom in a cycle, to be kept and looked at.

use hyperslab::Slab;
use nctypes::Type;

use crate::{Coupling, Cycle, File, Place, Variable, VariableSpec};

/// What one rank sent in one cycle of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The file.
    pub file: File,
    /// The cycle that was recorded.
    pub cycle: Cycle,
    /// In the order in which it was sent.
    pub flows: Vec<Flow>,
}

/// A part of a variable that went from one rank to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Who had it.
    pub from: Place,
    /// Who got it.
    pub to: Place,
    /// Of which variable.
    pub variable: Variable,
    /// Which part.
    pub part: Slab,
}

/// What all ranks sent in one cycle of a file, with the names that it takes to understand it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The name of the file.
    pub file: String,
    /// The cycle.
    pub cycle: Cycle,
    /// The names of the components, by their numbers.
    pub components: Vec<String>,
    /// The variables, by their numbers.
    pub variables: Vec<(String, Type)>,
    /// What was sent.
    pub flows: Vec<Flow>,
}

impl Recording {
    /// A cycle of `file` in which `flows` were sent.
    #[must_use]
    pub fn new(
        coupling: &Coupling,
        file: File,
        cycle: Cycle,
        variables: &[VariableSpec],
        flows: Vec<Flow>,
    ) -> Self {
        Self {
            file: coupling.file(file).map(|spec| spec.name.clone()).unwrap_or_default(),
            cycle,
            components: coupling.components.clone(),
            variables: variables.iter().map(|one| (one.name.clone(), one.type_)).collect(),
            flows,
        }
    }

    /// The name of a component, or its number.
    #[must_use]
    pub fn component(&self, place: Place) -> String {
        let name = self.components.get(place.component.0 as usize);
        name.cloned().unwrap_or_else(|| format!("component {}", place.component.0))
    }

    /// Name of a variable and bytes of a value.
    #[must_use]
    pub fn variable(&self, variable: Variable) -> (String, usize) {
        match self.variables.get(variable.0 as usize) {
            Some((name, type_)) => (name.clone(), type_.size_bytes()),
            None => (format!("variable {}", variable.0), 1),
        }
    }
}
