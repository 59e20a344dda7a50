//! `sluice sieve tune`: parameters by measurement.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use measure::Error;
use measure::bench::local::Scratch;
use measure::tune::{FILE_BYTES_MIN, FitQuality, LocalPlace, Tuned};
use profiles::Stored;
use serde::Serialize;
use transfer::Target;
use transfer_remote::ServedFile;

use super::{bench, parameters};
use crate::args::sieve::Tune;
use crate::format::{bytes_text, time_text};
use crate::in_force::InForce;
use crate::place::{Place, Places, Remote};
use crate::report::{say, tell};

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    place: &'a str,
    file: &'a Path,
    warnings: &'a [String],
    fits: &'a [FitQuality],
}

pub(super) fn tune(args: &Tune, in_force: &dyn Fn() -> Result<InForce>) -> Result<ExitCode> {
    if args.file_size < FILE_BYTES_MIN {
        bail!("--file-size: less than {} tells too little", bytes_text(FILE_BYTES_MIN));
    }
    let places = Places::new(in_force()?)?;
    let key = parameters::place(&args.place, places.in_force())?;
    let place = places.find(&args.place)?;
    let stop = bench::stopper()?;
    let progress = Progress::new(args.json);
    let tuned = match &place {
        Place::Local(directory) => local(directory, args.file_size, &stop, &progress),
        Place::Remote(_) => remote(&place, args.file_size, &stop, &progress),
    };
    progress.end();
    let tuned = match tuned {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Interrupted)) => {
            bail!("interrupted; nothing was kept")
        }
        other => other?,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let stored = Stored {
        profile: tuned.profile,
        place: key.to_string(),
        measured: time_text(now as i64),
        warnings: tuned.warnings,
    };
    let file = match &args.output {
        Some(file) => {
            std::fs::write(file, stored.to_text())
                .with_context(|| format!("cannot write {}", file.display()))?;
            file.clone()
        }
        None => profiles::save(&parameters::directory()?, &key, &stored)?,
    };
    report(args, &stored, &tuned.fits, &file)?;
    Ok(ExitCode::SUCCESS)
}

fn report(args: &Tune, stored: &Stored, fits: &[FitQuality], file: &PathBuf) -> Result<()> {
    if args.json {
        let Stored { place, warnings, .. } = stored;
        let answer = Answer { place, file, warnings, fits };
        return tell(format_args!("{}", serde_json::to_string(&answer)?));
    }
    tell(format_args!("{}", stored.to_text().trim_end()))?;
    tell(format_args!(""))?;
    for FitQuality { parameters, error, observations } in fits {
        let percent = error * 100.0;
        tell(format_args!(
            "# {parameters}: {observations} times, which differ from the fit by {percent:.0} %"
        ))?;
    }
    for warning in &stored.warnings {
        say(format_args!("sluice: {}: {warning}", stored.place));
    }
    say(format_args!("kept in {}", file.display()));
    Ok(())
}

fn local(directory: &Path, bytes: u64, stop: &AtomicBool, progress: &Progress) -> Result<Tuned> {
    let scratch = Scratch::new(directory, bytes, |done| {
        progress.at("writing a file", 0.2 * done as f64 / bytes as f64);
        !stop.load(Ordering::Relaxed)
    })?;
    Ok(measured(&LocalPlace::new(&scratch), stop, progress)?)
}

fn measured(
    place: &dyn measure::tune::Place,
    stop: &AtomicBool,
    progress: &Progress,
) -> measure::Result<Tuned> {
    measure::tune::tune(place, &mut |what, share| {
        progress.at(what, 0.2 + 0.8 * share);
        !stop.load(Ordering::Relaxed)
    })
}

/// A file of a service that is removed when this goes.
struct RemoteScratch {
    file: ServedFile,
    place: Place,
    bytes: u64,
}

impl RemoteScratch {
    fn new(place: &Place, remote: &Remote, bytes: u64) -> Result<Self> {
        let failed = |error| anyhow::anyhow!("cannot make {place}: {error}");
        let file = remote.served(0o600).map_err(failed)?;
        Ok(Self { file, place: place.clone(), bytes })
    }

    fn fill(&self, stop: &AtomicBool, progress: &Progress) -> Result<()> {
        let block = vec![0x5a; 1 << 20];
        for offset in (0..self.bytes).step_by(block.len()) {
            let len = block.len().min((self.bytes - offset) as usize);
            let (done, errno) = transfer::write_full(&self.file, offset, &block[..len]);
            if let Some(errno) = errno {
                bail!("cannot write {}: {errno}", self.place);
            }
            if done < len || stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted.into());
            }
            progress.at("writing a file", 0.2 * offset as f64 / self.bytes as f64);
        }
        Ok(())
    }
}

impl Drop for RemoteScratch {
    fn drop(&mut self) {
        if let Err(trouble) = self.place.remove_file() {
            say(format_args!("sluice: cannot remove {}: {trouble}", self.place));
        }
    }
}

impl measure::tune::Place for RemoteScratch {
    fn target(&self) -> &dyn Target {
        &self.file
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn drop_cache(&self) -> measure::Result<Option<bool>> {
        Ok(None)
    }
}

fn remote(place: &Place, bytes: u64, stop: &AtomicBool, progress: &Progress) -> Result<Tuned> {
    let child = place.child(format!(".sluice-sieve-{}", std::process::id()).as_bytes());
    let Place::Remote(remote) = &child else { bail!("{place} is not at a service") };
    let scratch = RemoteScratch::new(&child, remote, bytes)?;
    scratch.fill(stop, progress)?;
    Ok(measured(&scratch, stop, progress)?)
}

/// How far it is: a bar on a terminal, lines elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    is_silent: bool,
    last: std::cell::Cell<&'static str>,
}

impl Progress {
    fn new(is_silent: bool) -> Self {
        let bar = (!is_silent && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(100);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} % {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, is_silent, last: std::cell::Cell::new("") }
    }

    fn at(&self, what: &'static str, share: f64) {
        if let Some(bar) = &self.bar {
            bar.set_position((share * 100.0) as u64);
            bar.set_message(what);
        } else if !self.is_silent && self.last.replace(what) != what {
            say(format_args!("{what} …"));
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
