//! A definition, and where in the text its parts stand.

use crate::definition::Definition;
use crate::diagnostic::Diagnostic;
use crate::source::{Sources, Span};

/// What a text means.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The dataset, its views and its replicas.
    pub definition: Definition,
    /// Where they stand.
    pub map: SourceMap,
    /// What is no error but means nothing.
    pub warnings: Vec<Diagnostic>,
}

/// Where the parts of a definition stand; the lists have the order of those in [`Definition`].
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    /// The texts.
    pub sources: Sources,
    /// The names of the dataset's variables.
    pub variables: Vec<Span>,
    /// The views.
    pub views: Vec<ViewSpans>,
    /// The replicas.
    pub replicas: Vec<ReplicaSpans>,
}

/// Where a view stands.
#[derive(Debug, Clone, Default)]
pub struct ViewSpans {
    /// Its name.
    pub name: Span,
    /// All of it, from its keyword to its closing brace.
    pub whole: Span,
    /// The names of its variables.
    pub variables: Vec<Span>,
}

/// Where a replica stands.
#[derive(Debug, Clone, Default)]
pub struct ReplicaSpans {
    /// Its name.
    pub name: Span,
    /// All of it, from its keyword to its closing brace.
    pub whole: Span,
    /// The names of its views.
    pub views: Vec<Span>,
}
