//! The DRepl language: a dataset, views of it, and the replicas that store them.
//!
//! A [`Definition`] is what a definition file means after every name was resolved, every constant
//! computed and every length checked. It says nothing about bytes; the crate `layout` places it.
//!
//! The way of a text through [`compile`]:
//!
//! 1. `load` asks the [`Loader`] for the file and for the files that it includes.
//! 2. `token` cuts a text into tokens, `parse` (by recursive descent, expressions by precedence)
//!    makes sections and declarations of them, which `ast` describes. After an error it goes on with
//!    the next declaration.
//! 3. `check` computes constants, resolves types and variables, and turns what views take into
//!    [`definition::Part`]s; sizes are added up to see that they are sizes.
//! 4. What is wrong comes back as [`Diagnostics`], which [`Diagnostics::render`] shows with the lines
//!    they are about.
//!
//! [`format()`] writes a text as it should look, and [`print()`] makes a text of a [`Definition`].
//!
//! # Source
//!
//! Ionkov, Lang, Maltzahn, "DRepl: Optimizing Access to Application Data for Analysis and
//! Visualization", §II.
#![forbid(unsafe_code)]

mod ast;
mod check;
mod compiled;
pub mod definition;
pub mod diagnostic;
mod format;
pub mod limits;
mod load;
mod parse;
mod print;
pub mod source;
mod token;
pub mod words;

pub use compiled::{Compiled, ReplicaSpans, SourceMap, ViewSpans};
pub use definition::Definition;
pub use diagnostic::{Code, Diagnostic, Diagnostics, Severity};
pub use format::format;
pub use print::{is_name, print};
pub use source::{LoadError, Loaded, Loader, MemoryLoader};

use diagnostic::Findings;

/// Compiles a definition, the file `path` of the loader.
///
/// # Errors
/// All that is wrong with it, up to [`limits::DIAGNOSTICS_MAX`] things.
pub fn compile(path: &str, loader: &mut dyn Loader) -> Result<Compiled, Diagnostics> {
    let mut findings = Findings::default();
    let mut reader = load::Reader::new(loader, &mut findings);
    reader.read(path);
    let load::Reader { sources, program, .. } = reader;
    let is_understood = findings.errors() == 0;
    findings.is_partial = !is_understood;
    let (definition, mut map) = check::check(&program, is_understood, &mut findings);
    if findings.errors() > 0 {
        return Err(findings.into_diagnostics(sources));
    }
    let Diagnostics { list: warnings, sources, .. } = findings.into_diagnostics(sources);
    map.sources = sources;
    Ok(Compiled { definition, map, warnings })
}
