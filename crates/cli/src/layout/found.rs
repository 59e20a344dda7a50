//! A dataset that is to be changed: opened by this process, or where it is served.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use address::Uri;
use anyhow::{Context, Result, bail};
use client::{At, ReadPart, Repeat, Session, WritePart};
use dataset::{Dataset, Edit, Error, Notice, Options, Report, Service};
use indicatif::{ProgressBar, ProgressStyle};
use p9::OpenFlags;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::IsTerminal;

use crate::place::{Place, Places};
use crate::report::{say, tell};

/// How often a service is asked how far it is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Where the text of a report ends at the latest.
const REPORT_BYTES_MAX: usize = 64 << 20;

/// A dataset, wherever it is.
pub(super) enum Found {
    /// Nobody else has it open.
    Here(Dataset),
    /// At a service.
    There(Control),
}

impl Found {
    /// Opens the dataset of a definition, or finds the service that has it.
    pub(super) fn new(text: &OsStr, places: &Places) -> Result<Self> {
        let path = match places.find(text)? {
            Place::Remote(remote) => {
                return Ok(Self::There(Control::new(remote.session(), remote.uri())));
            }
            Place::Local(path) => path,
        };
        let name = path.display().to_string();
        let told: dataset::Tell = Arc::new(move |notice| {
            // That a replica was made is said by whoever asked for it.
            if !matches!(notice, Notice::Made { .. }) {
                say(format_args!("sluice: {name}: {notice}"));
            }
        });
        let options = Options { tell: Some(told), ..Options::default() };
        match Dataset::open(&path, &options) {
            Ok(dataset) => Ok(Self::Here(dataset)),
            Err(error @ Error::InUse { .. }) => match Control::of_file(&path, places)? {
                Some(control) => Ok(Self::There(control)),
                None => Err(anyhow::Error::new(error)
                    .context("it is not served at an address that is known here; name its URI")),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Changes the definition, and waits until replicas that were added are made.
    pub(super) fn change(&self, edit: &Edit, called: &Called<'_>) -> Result<()> {
        let said = match self {
            Self::Here(dataset) => dataset.change(edit)?.to_text(),
            Self::There(control) => control.command(&match edit {
                Edit::Add(sections) => format!("add {sections}"),
                Edit::RemoveView(name) => format!("remove view {name}"),
                Edit::RemoveReplica(name) => format!("remove replica {name}"),
            })?,
        };
        for line in said.lines() {
            match line.strip_prefix("making replica ") {
                Some(replica) => self.finish(replica, called)?,
                None => called.tell(format_args!("{line}"))?,
            }
        }
        Ok(())
    }

    /// Makes replicas anew, all that are stale if none is named.
    pub(super) fn rebuild(&self, replicas: &[String], called: &Called<'_>) -> Result<()> {
        let report = match self {
            Self::Here(dataset) => dataset.report(),
            Self::There(control) => control.report()?,
        };
        let is_wanted =
            |one: &&dataset::ReplicaReport| one.stale.is_some() || one.orphaned.is_some();
        let stale = report.replicas.iter().filter(is_wanted).map(|one| one.name.clone());
        let wanted = if replicas.is_empty() { stale.collect() } else { replicas.to_vec() };
        if wanted.is_empty() {
            called.tell(format_args!("every replica is up to date"))?;
        }
        for replica in wanted {
            if let Self::There(control) = self
                && report.replicas.iter().all(|one| one.name != replica || one.progress.is_none())
            {
                let said = control.command(&format!("rebuild {replica}"))?;
                if !said.starts_with("making") {
                    called.tell(format_args!("{replica}: up to date already"))?;
                    continue;
                }
            }
            self.finish(&replica, called)?;
        }
        Ok(())
    }

    /// Makes a replica, or waits until the service has made it.
    fn finish(&self, replica: &str, called: &Called<'_>) -> Result<()> {
        let bar = called.bar(replica);
        let go_on = |done, all| {
            bar.set_length(all);
            bar.set_position(done);
            !called.stop.load(Ordering::Relaxed)
        };
        let made = match self {
            Self::Here(dataset) => dataset.rebuild(replica, &mut { go_on }).map_err(Into::into),
            Self::There(control) => control.wait_for(replica, go_on).map(|()| true),
        };
        bar.finish_and_clear();
        let made =
            made.with_context(|| format!("cannot make replica `{replica}` of {}", called.name))?;
        let what = if made { "made, and up to date" } else { "up to date already" };
        called.tell(format_args!("{replica}: {what}"))
    }

    /// Ends the work on it.
    pub(super) fn close(self) -> Result<()> {
        match self {
            Self::Here(dataset) => Ok(dataset.close()?),
            Self::There(_) => Ok(()),
        }
    }
}

/// A dataset at a service.
pub(super) struct Control {
    session: Arc<Session>,
    uri: Uri,
}

impl Control {
    pub(super) fn new(session: &Arc<Session>, uri: &Uri) -> Self {
        Self { session: Arc::clone(session), uri: uri.clone() }
    }

    /// Where the dataset of a definition is served, if somebody has said so.
    pub(super) fn of_file(path: &Path, places: &Places) -> Result<Option<Self>> {
        let Some(service) = Service::of(path) else { return Ok(None) };
        let uri = Uri::parse(service.uri.as_bytes())?;
        match places.remote(&uri, service.uri.into_bytes())? {
            Place::Remote(remote) => Ok(Some(Self::new(remote.session(), remote.uri()))),
            Place::Local(_) => Ok(None),
        }
    }

    fn file(&self, name: &str) -> Uri {
        self.uri.join(b".sluice").join(name.as_bytes())
    }

    /// Has something done, and tells what.
    fn command(&self, text: &str) -> Result<String> {
        let uri = self.file("ctl");
        let failed = || format!("{}: cannot be changed; is it a dataset?", self.uri);
        let at = At::root(uri.path.as_bytes());
        let handle = self.session.open(at, OpenFlags::READ_WRITE, 0).with_context(failed)?.handle;
        let mut parts = [WritePart::new(0, text.as_bytes())];
        handle.write_batch(Repeat::OnlyUnsent, &mut parts).with_context(failed)?;
        let (done, refusal) = (parts[0].done, parts[0].refusal);
        let mut reply = vec![0; 1 << 16];
        let mut read = [ReadPart::new(0, &mut reply)];
        handle.read_batch(&mut read).with_context(failed)?;
        let len = read[0].done;
        handle.close();
        let reply = String::from_utf8_lossy(&reply[..len]).into_owned();
        match refusal {
            Some(_) if !reply.is_empty() => bail!("{}", reply.trim_end()),
            Some(errno) => bail!("{}: {}", self.uri, errno.message()),
            None if done < text.len() => {
                bail!("{}: the text is too long for one message", self.uri)
            }
            None => Ok(reply),
        }
    }

    /// How it is.
    pub(super) fn report(&self) -> Result<Report> {
        let uri = self.file("status");
        let failed = || format!("{}: cannot be looked at; is it a dataset?", self.uri);
        let at = At::root(uri.path.as_bytes());
        let handle = self.session.open(at, OpenFlags::empty(), 0).with_context(failed)?.handle;
        let size = handle.attributes().with_context(failed)?.size;
        let mut text = vec![0; usize::try_from(size).unwrap_or(usize::MAX).min(REPORT_BYTES_MAX)];
        let mut read = [ReadPart::new(0, &mut text)];
        handle.read_batch(&mut read).with_context(failed)?;
        let len = read[0].done;
        handle.close();
        text.truncate(len);
        Ok(Report::from_text(&String::from_utf8_lossy(&text))?)
    }

    /// Waits until a replica is made.
    fn wait_for(&self, replica: &str, go_on: impl Fn(u64, u64) -> bool) -> Result<()> {
        loop {
            let report = self.report()?;
            let found = report.replicas.iter().find(|one| one.name == replica);
            let Some(found) = found else { bail!("it was removed meanwhile") };
            match (found.progress, &found.stale) {
                (Some((done, all)), _) => {
                    if !go_on(done, all) {
                        bail!("interrupted; the service goes on");
                    }
                }
                (None, Some(reason)) => bail!("{reason}"),
                (None, None) => return Ok(()),
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// What the user asked about, and how to tell.
pub(super) struct Called<'c> {
    name: std::path::Display<'c>,
    quiet: bool,
    stop: Arc<AtomicBool>,
}

impl<'c> Called<'c> {
    pub(super) fn new(name: &'c OsStr, quiet: bool) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .context("cannot take over SIGINT and SIGTERM")?;
        }
        Ok(Self { name: Path::new(name).display(), quiet, stop })
    }

    fn tell(&self, line: std::fmt::Arguments<'_>) -> Result<()> {
        if self.quiet { Ok(()) } else { tell(format_args!("{}: {line}", self.name)) }
    }

    fn bar(&self, replica: &str) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template(
            "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        );
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        ProgressBar::no_length().with_style(style).with_message(replica.to_owned())
    }
}
