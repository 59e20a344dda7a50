//! From what a text says to what it means.

use std::collections::HashMap;

use crate::ast::{Member, Name};
use crate::compiled::SourceMap;
use crate::definition::{Definition, Variable};
use crate::diagnostic::{Code, Diagnostic, Findings};
use crate::load::Program;
use crate::parse::did_you_mean;
use crate::source::Span;
use crate::words;

mod coverage;
mod graph;
mod index;
mod measure;
mod part;
mod placing;
mod replicas;
mod types;
mod values;
mod views;

use measure::Measures;
use types::Types;
use values::Constants;

/// Everything that the dataset section defines.
struct Dataset<'a> {
    constants: Constants<'a>,
    types: Types<'a>,
    measures: Measures,
    /// By name, the variables in the order of their declaration; `None` where the type is wrong.
    variables: HashMap<&'a str, usize>,
    declared: Vec<(&'a Name, Option<crate::definition::Type>)>,
}

/// Checks all of it. What depends on something that was found wrong is passed over in silence. A text that was not
/// understood in full is not asked whether anything is missing in it.
pub(crate) fn check(
    program: &Program,
    is_understood: bool,
    findings: &mut Findings,
) -> (Definition, SourceMap) {
    let mut map = SourceMap::default();
    let errors = findings.errors();
    let members = dataset_members(program, is_understood, findings);
    let mut dataset = dataset(&members, findings);
    map.variables = dataset.declared.iter().map(|(name, _)| name.span).collect();
    let views = views::check(&program.views, &mut dataset, &mut map, findings);
    let replicas = replicas::check(&program.replicas, &views, &dataset, &mut map, findings);
    let variables = dataset
        .declared
        .into_iter()
        .filter_map(|(name, kind)| Some(Variable { name: name.text.clone(), kind: kind? }));
    let variables: Vec<Variable> = variables.collect();
    let views = views.into_iter().filter_map(|view| view.view).collect();
    let definition = Definition { variables, views, replicas };
    if is_understood && findings.errors() == errors {
        replicas::check_sizes(&definition, &mut dataset.measures, &map, findings);
        coverage::check(&definition, &map, findings);
    }
    (definition, map)
}

fn dataset_members<'a>(
    program: &'a Program,
    is_understood: bool,
    findings: &mut Findings,
) -> Vec<&'a Member> {
    let mut datasets = program.datasets.iter();
    let first = datasets.next();
    for more in datasets {
        let error =
            Diagnostic::error(Code::DuplicateName, more.keyword, "a definition has one dataset");
        let error = error.label("this is the second one");
        findings.add(error.related(first.map_or(more.keyword, |one| one.keyword), "the first one"));
    }
    if first.is_none() && is_understood {
        let error = Diagnostic::error(Code::Syntax, Span::default(), "there is no dataset");
        let error = error.label("expected `dataset { … }`");
        findings
            .add(error.help("include one that stands in another file: `dataset \"file.drepl\"`"));
    }
    program.datasets.iter().flat_map(|dataset| &dataset.members).collect()
}

fn dataset<'a>(members: &[&'a Member], findings: &mut Findings) -> Dataset<'a> {
    let mut names: HashMap<&str, Span> = HashMap::new();
    let (mut constants, mut types, mut declared) = (Vec::new(), Vec::new(), Vec::new());
    for member in members {
        match member {
            Member::Const { name, value } => {
                if is_new(&mut names, name, "constant or variable", findings) {
                    constants.push((name, value));
                }
            }
            Member::Type { name, kind } => types.push((name, kind)),
            Member::Var { names: several, kind } => {
                for name in several {
                    if is_new(&mut names, name, "constant or variable", findings) {
                        declared.push((name, kind));
                    }
                }
            }
        }
    }
    let numbers = declared.iter().enumerate().map(|(number, (name, _))| (&*name.text, number));
    let variables: HashMap<&str, usize> = numbers.collect();
    let constants = Constants::new(&constants, &variables, findings);
    let mut measures = Measures::default();
    let types = Types::new(&types, &constants, &variables, &mut measures, findings);
    let mut dataset = Dataset {
        constants,
        types,
        measures,
        variables,
        declared: Vec::with_capacity(declared.len()),
    };
    dataset.declare(&declared, findings);
    dataset
}

/// Tells of a name that is defined already.
fn is_new<'a>(
    names: &mut HashMap<&'a str, Span>,
    name: &'a Name,
    what: &str,
    findings: &mut Findings,
) -> bool {
    match names.get(&*name.text) {
        None => {
            names.insert(&name.text, name.span);
            true
        }
        Some(&first) => {
            let message = format!("`{}` is the name of another {what}", name.text);
            let error = Diagnostic::error(Code::DuplicateName, name.span, message);
            findings.add(error.label("defined again").related(first, "defined first"));
            false
        }
    }
}

/// Tells of a name that nothing has.
fn unknown<'a>(
    findings: &Findings,
    what: &str,
    name: &str,
    span: Span,
    known: impl Iterator<Item = &'a str>,
) -> Diagnostic {
    // Suggestions that nobody sees are not worth the search.
    let help = match findings.is_full() {
        true => None,
        false => words::nearest(name, known).map(did_you_mean),
    };
    let error = Diagnostic::error(Code::UnknownName, span, format!("there is no {what} `{name}`"));
    error.label("not defined").maybe_help(help)
}
