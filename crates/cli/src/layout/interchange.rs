//! `sluice layout import` and `export`: layouts as other tools describe them.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use drepl::Definition;
use interchange::Place;

use super::check::show;
use super::files::Files;
use crate::args::layout::{Export, Import, Tool};
use crate::report::{say, tell};

/// No header of a .npy file is longer, and no C text is read further.
const TEXT_MAX: u64 = 16 << 20;

pub(crate) fn import(args: &Import) -> Result<ExitCode> {
    if !drepl::is_name(&args.name) {
        bail!("--name {}: letters, digits and _, no digit first", args.name);
    }
    let named = args.source.as_deref().map(file_name).transpose()?;
    let place = |file: Option<String>| Place {
        name: args.name.clone(),
        file: args.file.clone().or(file).unwrap_or_else(|| format!("{}.bin", args.name)),
        shape: args.shape.clone(),
        header: args.header,
    };
    let definition = match (&args.source, &args.numpy) {
        (_, Some(dtype)) => interchange::from_numpy(dtype, &place(None))?,
        (Some(source), None) => {
            let begin = beginning(source).with_context(|| source.display().to_string())?;
            if begin.starts_with(b"\x93NUMPY") {
                refuse_shape(args, "a .npy file tells its shape and its header itself")?;
                interchange::from_npy(&begin, &place(named))
            } else if is_hdf5(&begin) {
                refuse_shape(args, "an HDF5 file tells its shapes itself")?;
                from_hdf5(source, place(named).file)
            } else {
                let text = String::from_utf8(begin).ok().with_context(|| {
                    format!("{}: neither .npy nor HDF5, and no text either", source.display())
                })?;
                interchange::from_c(&text, args.r#struct.as_deref(), &place(None))
            }
            .with_context(|| source.display().to_string())?
        }
        (None, None) => bail!("nothing to import: name a file, or give --numpy"),
    };
    tell(format_args!("{}", drepl::print(&definition).trim_end()))?;
    Ok(ExitCode::SUCCESS)
}

/// Takes over an HDF5 file and says what is left out.
fn from_hdf5(source: &Path, file: String) -> interchange::Result<Definition> {
    let imported = interchange::from_hdf5(source, &file)?;
    for (dataset, reason) in &imported.left_out {
        say(format_args!("{}: {dataset} is left out: {reason}", source.display()));
    }
    Ok(imported.definition)
}

fn refuse_shape(args: &Import, reason: &str) -> interchange::Result<()> {
    if args.shape.is_empty() && args.header == 0 {
        return Ok(());
    }
    Err(interchange::Error::Inexpressible {
        what: "--shape and --header".to_owned(),
        reason: reason.to_owned(),
    })
}

fn file_name(source: &Path) -> Result<String> {
    let name = source.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned)
        .with_context(|| format!("{}: its name is no text; give --file", source.display()))
}

/// The first bytes of a file.
fn beginning(source: &Path) -> std::io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    std::fs::File::open(source)?.take(TEXT_MAX).read_to_end(&mut begin)?;
    Ok(begin)
}

/// Whether a file has HDF5's signature, which may stand behind a user block of 512, 1024, … bytes.
fn is_hdf5(begin: &[u8]) -> bool {
    let places = std::iter::once(0).chain((9..24).map(|power| 1_usize << power));
    places
        .into_iter()
        .any(|at| begin.get(at..).is_some_and(|b| b.starts_with(b"\x89HDF\r\n\x1a\n")))
}

pub(crate) fn export(args: &Export) -> Result<ExitCode> {
    let name = args.file.to_str().with_context(|| {
        format!("the name of a definition is text, which {} is not", args.file.to_string_lossy())
    })?;
    let definition = match drepl::compile(name, &mut Files) {
        Ok(compiled) => compiled.definition,
        Err(wrong) => {
            show(&wrong);
            return Ok(ExitCode::FAILURE);
        }
    };
    let Some(view) = definition.views.iter().position(|view| view.name == args.view) else {
        let known: Vec<&str> = definition.views.iter().map(|view| &*view.name).collect();
        bail!("{name}: there is no view {:?}; there are: {}", args.view, known.join(", "));
    };
    let text = match args.to {
        Tool::Numpy => interchange::to_numpy(&definition, view),
        Tool::C => interchange::to_c(&definition, view),
    };
    tell(format_args!("{}", text.with_context(|| name.to_owned())?.trim_end()))?;
    Ok(ExitCode::SUCCESS)
}
