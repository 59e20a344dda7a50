//! `sluice layout rebuild`: replicas made anew.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use dataset::{Condition, Dataset, Options};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::layout::Rebuild;
use crate::report::{say, tell};

pub(crate) fn rebuild(args: &Rebuild) -> Result<ExitCode> {
    let path = Path::new(&args.file);
    let name = path.display().to_string();
    let dataset_name = name.clone();
    let tell_notice: dataset::Tell = Arc::new(move |notice| {
        // That a replica was made is said below.
        if !matches!(notice, dataset::Notice::Made { .. }) {
            say(format_args!("sluice: {dataset_name}: {notice}"));
        }
    });
    let options = Options { tell: Some(tell_notice), ..Options::default() };
    let dataset = Dataset::open(path, &options)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot take over SIGINT and SIGTERM")?;
    }
    let stale = dataset.replicas().into_iter();
    let stale = stale.filter(|(_, condition)| *condition != Condition::Fresh).map(|(name, _)| name);
    let wanted: Vec<String> =
        if args.replicas.is_empty() { stale.collect() } else { args.replicas.clone() };
    if wanted.is_empty() && !args.quiet {
        tell(format_args!("{name}: every replica is up to date"))?;
    }
    for replica in wanted {
        let bar = bar(&replica, args.quiet);
        let made = dataset.rebuild(&replica, &mut |done, all| {
            bar.set_length(all);
            bar.set_position(done);
            !stop.load(Ordering::Relaxed)
        });
        bar.finish_and_clear();
        let made = made.with_context(|| format!("cannot rebuild replica `{replica}` of {name}"))?;
        if !args.quiet {
            let what = if made { "made anew" } else { "up to date already" };
            tell(format_args!("{name}: {replica}: {what}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn bar(replica: &str, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::no_length().with_style(style).with_message(replica.to_owned())
}
