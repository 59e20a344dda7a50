//! `sluice layout explain`: where everything lies, and what reading it costs.

use std::process::ExitCode;

use anyhow::Result;
use dataset::{Explanation, VariablePlace};
use serde::Serialize;

use crate::args::layout::Explain;
use crate::report::tell;

/// The output for programs.
#[derive(Serialize)]
struct Explained<'a> {
    views: Vec<View<'a>>,
    replicas: Vec<Replica<'a>>,
}

#[derive(Serialize)]
struct View<'a> {
    name: &'a str,
    bytes: u64,
    variables: Vec<Variable<'a>>,
}

#[derive(Serialize)]
struct Variable<'a> {
    name: &'a str,
    offset: u64,
    bytes: u64,
    replicas: &'a [String],
    bytes_moved: u64,
    bytes_touched: u64,
    bytes_missing: u64,
}

#[derive(Serialize)]
struct Replica<'a> {
    name: &'a str,
    bytes_of_files: &'a [u64],
}

pub(crate) fn explain(args: &Explain) -> Result<ExitCode> {
    let found = Explanation::of(&args.file)?;
    if args.json {
        let explained = Explained {
            views: found
                .views
                .iter()
                .map(|view| View {
                    name: &view.name,
                    bytes: view.size,
                    variables: view.variables.iter().map(of_variable).collect(),
                })
                .collect(),
            replicas: found
                .replicas
                .iter()
                .map(|(name, sizes)| Replica { name, bytes_of_files: sizes })
                .collect(),
        };
        tell(format_args!("{}", serde_json::to_string(&explained)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    for view in &found.views {
        tell(format_args!("view {}, {} bytes", view.name, view.size))?;
        tell(format_args!(
            "    {:>14}  {:>14}  {:<16}  {:>13}  served by",
            "offset", "bytes", "variable", "touched/byte"
        ))?;
        for variable in &view.variables {
            let VariablePlace { name, offset, size, .. } = variable;
            let (share, from) = (touched(variable), served(variable));
            tell(format_args!("    {offset:>14}  {size:>14}  {name:<16}  {share:>13}  {from}"))?;
        }
    }
    for (name, sizes) in &found.replicas {
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        let files = if sizes.len() > 1 { "files of " } else { "" };
        tell(format_args!("replica {name}, {files}{} bytes", sizes.join(", ")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn of_variable(place: &VariablePlace) -> Variable<'_> {
    Variable {
        name: &place.name,
        offset: place.offset,
        bytes: place.size,
        replicas: &place.replicas,
        bytes_moved: place.moved,
        bytes_touched: place.touched,
        bytes_missing: place.missing,
    }
}

/// The bytes touched for each that is wanted.
fn touched(place: &VariablePlace) -> String {
    match place.moved {
        0 => "-".to_owned(),
        moved => format!("{:.2}", place.touched as f64 / moved as f64),
    }
}

fn served(place: &VariablePlace) -> String {
    match (place.replicas.join(", "), place.missing) {
        (none, _) if none.is_empty() => "no replica: zeros".to_owned(),
        (names, 0) => names,
        (names, missing) => format!("{names}; {missing} bytes by none: zeros"),
    }
}
