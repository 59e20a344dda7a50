//! `sluice layout fmt`: definitions as they should look.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use drepl::Loader;

use super::check::show;
use super::files::{Files, STANDARD_INPUT};
use crate::args::layout::Fmt;
use crate::report::{Failures, standard_output, tell};

/// What became of a file.
#[derive(PartialEq, Eq)]
enum Outcome {
    Done,
    WouldChange,
    NotUnderstood,
}

pub(crate) fn fmt(args: &Fmt) -> Result<ExitCode> {
    let mut failures = Failures::new("format");
    let mut is_right = true;
    for file in &args.files {
        match one(args, file) {
            Ok(outcome) => is_right &= outcome == Outcome::Done,
            Err(error) => failures.add_error(&format_args!("{error:#}")),
        }
    }
    Ok(if is_right { failures.exit_code() } else { ExitCode::FAILURE })
}

fn one(args: &Fmt, file: &OsStr) -> Result<Outcome> {
    let name = file.to_string_lossy();
    let text = file.to_str().context("its name is no text");
    let text = text.and_then(|path| Ok(Files.load(path, None)?.bytes));
    let text = text.and_then(|bytes| String::from_utf8(bytes).context("it is no text"));
    let text = text.with_context(|| format!("cannot format {name}"))?;
    let formatted = match drepl::format(&text) {
        Ok(formatted) => formatted,
        Err(wrong) => {
            show(&wrong.named(&name));
            return Ok(Outcome::NotUnderstood);
        }
    };
    if args.check {
        if formatted == text {
            return Ok(Outcome::Done);
        }
        tell(format_args!("{name}"))?;
        return Ok(Outcome::WouldChange);
    }
    if !args.write || name == STANDARD_INPUT {
        standard_output(io::stdout().write_all(formatted.as_bytes()))?;
    } else if formatted != text {
        replace(Path::new(file), &formatted).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(Outcome::Done)
}

/// Gives a file another content, all of it or none.
fn replace(path: &Path, text: &str) -> Result<()> {
    // What a symbolic link leads to is replaced, not the link.
    let path = path.canonicalize()?;
    let permissions = fs::metadata(&path)?.permissions();
    if permissions.readonly() {
        bail!("it is read-only");
    }
    let (beside, mut file) = beside(&path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(permissions))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // The first failure is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    Ok(written?)
}

/// A new file in the same directory.
fn beside(path: &Path) -> io::Result<(PathBuf, fs::File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.sluice-part", std::process::id()));
    Ok((beside.clone(), fs::File::create_new(beside)?))
}
