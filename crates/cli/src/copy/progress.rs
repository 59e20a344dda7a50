//! How far a copy is: a bar on a terminal, plain lines elsewhere, an object for scripts.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::args::Cp;
use crate::format::bytes_text;
use crate::place::Place;

/// How often a long file says where it is, on plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Counts, and whoever is told of them.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    json: bool,
    files: AtomicU64,
    bytes: AtomicU64,
    skipped: AtomicU64,
    resumed: AtomicU64,
    failures: Mutex<Vec<Failure>>,
}

/// A failure in `--json`.
#[derive(Serialize)]
struct Failure {
    from: String,
    to: String,
    error: String,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Summary<'a> {
    files: u64,
    bytes: u64,
    /// Were there already.
    skipped: u64,
    /// Went on from a part file.
    resumed: u64,
    seconds: f64,
    failed: &'a [Failure],
}

impl Progress {
    pub(crate) fn new(args: &Cp) -> Self {
        let silent = args.quiet || args.json;
        // The content itself may go to the terminal.
        let silent = silent || args.places.last().is_some_and(|last| last == "-");
        let bar = (!silent && io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            let template = "{bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            lines: !silent && bar.is_none(),
            bar,
            json: args.json,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            failures: Mutex::default(),
        }
    }

    /// So many more bytes are to be copied.
    pub(super) fn expect(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc_length(bytes);
        }
    }

    /// So many bytes are copied, or were there.
    pub(super) fn advance(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    pub(super) fn file_done(&self, from: &dyn Display, to: &dyn Display, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{files} files"));
        }
        self.line(&|| format!("{from} -> {to} ({})", bytes_text(bytes)));
    }

    pub(super) fn skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn resumed(&self, to: &Place, at: u64) {
        self.resumed.fetch_add(1, Ordering::Relaxed);
        self.line(&|| format!("{to} goes on at {}", bytes_text(at)));
    }

    pub(super) fn failed(&self, from: &dyn Display, to: &dyn Display, error: String) {
        let show = || crate::report::say(format_args!("sluice: {error}"));
        match &self.bar {
            Some(bar) => bar.suspend(show),
            None => show(),
        }
        let failure = Failure { from: from.to_string(), to: to.to_string(), error };
        self.failures.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(failure);
    }

    fn line(&self, text: &dyn Fn() -> String) {
        if self.lines {
            crate::report::say(format_args!("{}", text()));
        }
    }

    /// Tells now and then how far one file is.
    pub(super) fn watch<'a>(&'a self, from: &'a Place, size: u64) -> Watch<'a> {
        Watch { progress: self, from, size, told: Instant::now() }
    }

    /// Says what was done.
    pub(crate) fn finish(self, started: Instant) -> Result<ExitCode> {
        let seconds = started.elapsed().as_secs_f64();
        let failures =
            self.failures.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (files, bytes) = (self.files.into_inner(), self.bytes.into_inner());
        let skipped = self.skipped.into_inner();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if self.json {
            let resumed = self.resumed.into_inner();
            let summary = Summary { files, bytes, skipped, resumed, seconds, failed: &failures };
            let summary = serde_json::to_string(&summary).context("cannot write the summary")?;
            crate::report::tell(format_args!("{summary}"))?;
        } else if self.lines || self.bar.is_some() {
            let rate = bytes_text((bytes as f64 / seconds.max(1e-6)) as u64);
            let were_there =
                if skipped > 0 { format!(", {skipped} were there already") } else { String::new() };
            let failed = if failures.is_empty() {
                String::new()
            } else {
                format!(", {} failed", failures.len())
            };
            let (noun, copied) = (if files == 1 { "file" } else { "files" }, bytes_text(bytes));
            crate::report::say(format_args!(
                "copied {files} {noun}, {copied} in {seconds:.1} s ({rate}/s){were_there}{failed}"
            ));
        }
        Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// One file on its way.
pub(super) struct Watch<'a> {
    progress: &'a Progress,
    from: &'a Place,
    size: u64,
    told: Instant,
}

impl Watch<'_> {
    /// It is at this offset.
    pub(super) fn at(&mut self, offset: u64) {
        if self.progress.lines && self.told.elapsed() >= LINE_EVERY {
            self.told = Instant::now();
            let percent = offset as f64 * 100.0 / self.size.max(1) as f64;
            crate::report::say(format_args!(
                "{}: {percent:.0} % of {}",
                self.from,
                bytes_text(self.size)
            ));
        }
    }
}
