//! Completion scripts and manual pages, made from the command line's own definition.

use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use crate::args::{Cli, Completions, Man};
use crate::report::standard_output;

/// Writes the completion script of a shell.
pub(crate) fn completions(args: &Completions) -> Result<()> {
    // Rendered first: a reader that goes away must not become a panic.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sluice", &mut script);
    standard_output(io::stdout().write_all(&script))
}

/// Writes sluice(1), or one page per command into a directory.
pub(crate) fn pages(args: &Man) -> Result<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    // Gives every command its full name and the options of all.
    command.build();
    let Some(dir) = &args.dir else {
        return standard_output(io::stdout().write_all(&page(&command)?));
    };
    std::fs::create_dir_all(dir)
        .with_context(|| format!("cannot make the directory {}", dir.display()))?;
    for command in with_all_below(&command) {
        let path = dir.join(format!("{}.1", command.get_display_name().unwrap_or("sluice")));
        std::fs::write(&path, page(command)?)
            .with_context(|| format!("cannot write the manual page {}", path.display()))?;
    }
    Ok(())
}

/// A command and all commands below it.
fn with_all_below(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().flat_map(with_all_below);
    std::iter::once(command).chain(below).collect()
}

/// One page. Synopsis and examples are written here: clap_mangen's synopsis leaves out what options take, and it fills
/// the lines of examples.
///
/// # Source
/// man-pages(7), roff(7).
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or("sluice").to_owned();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let notes = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    // It writes options that `-h` leaves out without their help.
    let command = command.clone().after_long_help("").mut_args(|arg| arg.hide_short_help(false));
    let subcommands = command.has_subcommands();
    let man = clap_mangen::Man::new(command)
        .title(name)
        .source(concat!("sluice ", env!("CARGO_PKG_VERSION")))
        .manual("Sluice");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    write!(page, ".SH SYNOPSIS\n{}\n", roff(usage))?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    for part in notes.split("\n\n").map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once(":\n") {
            Some((title, lines)) => {
                write!(page, ".SH {}\n.nf\n{}\n.fi\n", title.to_uppercase(), roff(lines))?;
            }
            None => write!(page, ".SH NOTES\n{}\n", roff(part))?,
        }
    }
    Ok(page)
}

/// Text as roff(7) takes it: no backslash, dash or leading dot that means something there.
fn roff(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}
