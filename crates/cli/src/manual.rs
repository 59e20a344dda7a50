//! Completion scripts and manual pages, made from the command line's own definition.

use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::CommandFactory;

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
    let command = Cli::command();
    match &args.dir {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            standard_output(io::stdout().write_all(&page))
        }
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("cannot make the directory {}", dir.display()))?;
            clap_mangen::generate_to(command, dir)
                .with_context(|| format!("cannot write manual pages into {}", dir.display()))
        }
    }
}
