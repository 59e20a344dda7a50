//! How far a log is: what its agent writes down, and how it is shown.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use drain::{Phase, Snapshot};
use hostlog::rules::InDoubt;
use hostlog::{Log, verify};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use super::files::{Holder, Place};
use crate::args::log::Status as Args;
use crate::format::bytes_text;
use crate::report::{say, tell};

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often is said how far it is, on plain lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How a log stands: `status.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Of whom.
    #[serde(flatten)]
    pub(crate) holder: Holder,
    /// `idle`, `draining`, `waiting` for the target, or `failed`.
    pub(crate) state: String,
    /// Why it waits or has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Connections to the agent.
    pub(crate) clients: u64,
    /// Bytes that do not count yet.
    pub(crate) uncommitted_bytes: u64,
    /// Bytes that are in the log only.
    pub(crate) logged_bytes: u64,
    /// Bytes that programs had written and not finished when they were killed; they are in no file.
    #[serde(default)]
    pub(crate) dropped_bytes: u64,
    /// Bytes that came to the target.
    pub(crate) drained_bytes: u64,
    /// Bytes still to come there, about.
    pub(crate) left_bytes: u64,
    pub(crate) bytes_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds_left: Option<u64>,
    pub(crate) files_drained: u64,
    pub(crate) epochs_drained: u64,
    /// Records: the last, and up to which the target has all.
    pub(crate) last_record: u64,
    pub(crate) drained_record: u64,
    /// Writers that wait because the log is full.
    pub(crate) writers_waiting: u64,
    /// The log's disk has no space for more of it.
    #[serde(default)]
    pub(crate) disk_full: bool,
    /// Files that ranks have open together, and whom they wait for.
    pub(crate) groups: Vec<GroupReport>,
    /// When this was written, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Everything that was written is in the target.
    pub(crate) done: bool,
    /// The agent has ended since.
    pub(crate) ended: bool,
    /// Records that do not count yet.
    #[serde(skip)]
    pub(crate) uncommitted: u64,
    #[serde(skip)]
    pub(crate) phase: Phase,
}

/// A file of a group of ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GroupReport {
    pub(crate) path: String,
    pub(crate) ranks: u32,
    pub(crate) epochs_committed: u64,
    pub(crate) waiting_for: Vec<u32>,
}

impl Report {
    pub(super) fn of(
        holder: &Holder,
        log: &Log,
        store: &logstore::Status,
        drain: &Snapshot,
        clients: u64,
    ) -> Self {
        let status = log.status();
        let (state, error) = match &drain.phase {
            _ if status.failed => ("failed", Some("the log takes nothing more".to_owned())),
            Phase::Idle => ("idle", None),
            Phase::Draining => ("draining", None),
            Phase::Waiting { error, .. } => ("waiting", Some(error.clone())),
            Phase::Failed { error } => ("failed", Some(error.clone())),
        };
        let group = |group: &logstore::GroupStatus| GroupReport {
            path: String::from_utf8_lossy(group.path.as_deref().unwrap_or(b"(removed)"))
                .into_owned(),
            ranks: group.ranks,
            epochs_committed: group.committed.into(),
            waiting_for: group.waiting_for.clone(),
        };
        Self {
            holder: holder.clone(),
            state: state.to_owned(),
            error,
            clients,
            uncommitted_bytes: store.uncommitted_bytes,
            logged_bytes: store.logged_bytes,
            dropped_bytes: 0,
            drained_bytes: drain.bytes,
            left_bytes: drain.bytes_left,
            bytes_per_second: drain.bytes_per_second.round(),
            seconds_left: drain.time_left().map(|left| left.as_secs()),
            files_drained: drain.files,
            epochs_drained: drain.epochs,
            last_record: status.last.0,
            drained_record: status.drained.0,
            writers_waiting: store.waiting,
            disk_full: status.disk_full,
            groups: store.groups.iter().map(group).collect(),
            at_ms: now_ms(),
            done: false,
            ended: false,
            uncommitted: store.uncommitted_records + store.uncommitted_names,
            phase: drain.phase.clone(),
        }
    }

    /// Of a log that was drained without an agent.
    pub(super) fn drained(log: &Log, drain: &Snapshot) -> Self {
        let description = log.description();
        let holder = Holder {
            pid: std::process::id(),
            socket: std::path::PathBuf::new(),
            log: String::new(),
            target: description.target.clone(),
            run: String::new(),
            command: description.run.clone(),
        };
        Self {
            ended: true,
            done: true,
            ..Self::of(&holder, log, &logstore::Status::default(), drain, 0)
        }
    }

    /// Whether something that counts has not been looked at by the drain yet.
    pub(super) fn is_behind(&self, log: &Log) -> bool {
        log.replay().next().is_some()
    }

    pub(super) fn json(&self) -> String {
        // Nothing in it cannot be said in JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn is_done(&self) -> bool {
        self.done
    }

    /// One line for people.
    fn line(&self) -> String {
        let how = match (&self.error, self.state.as_str()) {
            (Some(error), "waiting") => format!("waiting for the target: {error}"),
            (Some(error), _) => format!("failed: {error}"),
            (None, "draining") => {
                let rate = bytes_text(self.bytes_per_second as u64);
                let left =
                    self.seconds_left.map_or(String::new(), |left| format!(", {left} s left"));
                format!("draining at {rate}/s{left}")
            }
            (None, _) if !self.done => "waiting for what does not count yet".to_owned(),
            (None, _) => "all is drained".to_owned(),
        };
        let (done, left) = (bytes_text(self.drained_bytes), bytes_text(self.logged_bytes));
        let dropped = match self.dropped_bytes {
            0 => String::new(),
            bytes => format!("; {} of killed programs dropped", bytes_text(bytes)),
        };
        format!("{how}; {done} drained, {left} in the log only{dropped}")
    }
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// What an agent that lives says of its log.
pub(super) fn live(place: &Place) -> Option<Report> {
    let holder = place.holder()?;
    let report = last(place)?;
    (report.holder.pid == holder.pid).then_some(report)
}

/// What was written down last.
pub(super) fn last(place: &Place) -> Option<Report> {
    serde_json::from_slice(&std::fs::read(place.file("status.json")).ok()?).ok()
}

/// Says how far a log is.
pub(crate) fn status(args: &Args) -> Result<ExitCode> {
    let place = Place::of(&args.dir)?;
    if args.follow && place.holder().is_some() {
        let show = if args.json { Show::Json } else { Show::best() };
        let last = follow(&place, show)?;
        let is_well = last.is_none_or(|last| last.state != "failed");
        return Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    match live(&place) {
        Some(report) if args.json => tell(format_args!("{}", report.json()))?,
        Some(report) => shown(&report)?,
        None => left(&place, args.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(report: &Report) -> Result<()> {
    let Holder { pid, target, command, .. } = &report.holder;
    tell(format_args!(
        "log for {target}, used by `{command}` (agent {pid}, {} connections)",
        report.clients
    ))?;
    tell(format_args!("  {}", report.line()))?;
    if report.uncommitted_bytes > 0 {
        tell(format_args!("  {} do not count yet", bytes_text(report.uncommitted_bytes)))?;
    }
    if report.disk_full {
        tell(format_args!(
            "  its disk is full: it cannot become larger than it is; make space there, or wait for the drain"
        ))?;
    }
    if report.writers_waiting > 0 {
        tell(format_args!(
            "  the log is full: {} writers wait for the drain",
            report.writers_waiting
        ))?;
    }
    for group in report.groups.iter().filter(|group| !group.waiting_for.is_empty()) {
        let ranks: Vec<String> = group.waiting_for.iter().take(8).map(u32::to_string).collect();
        let more = if group.waiting_for.len() > 8 { ", …" } else { "" };
        let GroupReport { path, epochs_committed, ranks: of, .. } = group;
        tell(format_args!(
            "  {path}: {epochs_committed} epochs of {of} ranks; the next waits for rank {}{more}",
            ranks.join(", ")
        ))?;
    }
    Ok(())
}

/// A log that nobody uses, by its files.
fn left(place: &Place, json: bool) -> Result<()> {
    let found = verify(&place.media())?;
    let is_damaged = found.damage.is_some();
    let last = last(place).filter(|last| last.ended);
    // Behind the mark stand at least the mark itself, and the end of the last use.
    let drained =
        last.as_ref().is_some_and(|last| last.is_done() && last.last_record >= found.last.0);
    let failure = last.filter(|last| last.state == "failed").and_then(|last| last.error);
    if json {
        let value = serde_json::json!({
            "target": found.description.target,
            "command": found.description.run,
            "state": if is_damaged { "damaged" } else if drained { "drained" } else { "left" },
            "last_record": found.last.0,
            "drained_record": found.drained.0,
            "undecided": found.in_doubt.iter().map(undecided).collect::<Vec<_>>(),
            "segments": found.segments.iter().filter(|segment| segment.live).count(),
            "error": found.damage.as_ref().map_or(failure.clone(), |damage| Some(damage.to_string())),
        });
        return tell(format_args!("{value}"));
    }
    let dir = place.dir.display();
    tell(format_args!(
        "log for {}, last used by `{}`; nobody uses it now",
        found.description.target, found.description.run
    ))?;
    if let Some(damage) = found.damage {
        return tell(format_args!("  damaged: {damage}"));
    }
    if drained {
        return tell(format_args!("  all is drained"));
    }
    if let Some(failure) = failure {
        let why = place.file("agent.log");
        tell(format_args!("  its agent has failed: {failure}; {} says why", why.display()))?;
    }
    tell(format_args!(
        "  records {} to {} may hold what is not drained; `sluice log drain {dir}` brings it to its place",
        found.drained.0 + 1,
        found.last
    ))?;
    for doubt in &found.in_doubt {
        tell(format_args!("  undecided: {}", undecided(doubt)))?;
    }
    Ok(())
}

/// An epoch that ranks had come to when the agent ended, and that counts if all had.
pub(super) fn undecided(doubt: &InDoubt) -> String {
    let (came, ranks) = (doubt.prepared.len(), doubt.ranks);
    format!("{} of file {}: {came} of {ranks} ranks had come to it", doubt.member, doubt.file)
}

/// How progress is shown.
pub(super) enum Show {
    Bar(ProgressBar),
    Lines,
    Json,
}

impl Show {
    pub(super) fn best() -> Self {
        if !io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new(0);
        let template = "{bar:30} {bytes}/{total_bytes} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// Shows how far a drain of this process is.
    pub(super) fn snapshot(&self, now: &Snapshot) {
        let Self::Bar(bar) = self else { return };
        bar.set_length(now.bytes + now.bytes_left);
        bar.set_position(now.bytes);
        let rate = bytes_text(now.bytes_per_second as u64);
        bar.set_message(match (&now.phase, now.time_left()) {
            (Phase::Waiting { error, .. }, _) => format!("waiting: {error}"),
            (_, Some(left)) => format!("{rate}/s, {} s left", left.as_secs()),
            (_, None) => format!("{rate}/s"),
        });
    }

    fn report(&self, now: &Report) {
        match self {
            Self::Bar(bar) => {
                bar.set_length(now.drained_bytes + now.logged_bytes.max(now.left_bytes));
                bar.set_position(now.drained_bytes);
                bar.set_message(now.line());
            }
            Self::Lines => say(format_args!("{}", now.line())),
            Self::Json => {
                let _ = tell(format_args!("{}", now.json()));
            }
        }
    }

    pub(super) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Shows how far an agent is until all is drained or it has ended. What it wrote last.
pub(super) fn follow(place: &Place, show: Show) -> Result<Option<Report>> {
    let mut told: Option<(std::time::Instant, String)> = None;
    let begun = now_ms();
    loop {
        // What was written before says nothing of what a program has written since.
        let Some(report) = live(place).filter(|report| report.at_ms >= begun) else {
            if place.holder().is_none() {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
            continue;
        };
        let is_line = matches!(show, Show::Lines);
        let is_due = told.as_ref().is_none_or(|(at, state)| {
            !is_line || *state != report.state || at.elapsed() >= LINE_EVERY
        });
        if is_due {
            show.report(&report);
            told = Some((std::time::Instant::now(), report.state.clone()));
        }
        if report.is_done() || report.state == "failed" {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    show.finish();
    Ok(last(place).filter(|report| report.at_ms >= begun))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hostlog::media::directory::Directory;
    use hostlog::{Description, FileId, Group, Log, Member, Options, Prepare, verify};

    use super::undecided;

    #[test]
    fn epochs_that_nobody_has_decided_on_are_told_of_a_log_that_nobody_has() {
        let dir = tempfile::tempdir().unwrap();
        let media = Arc::new(Directory::new(dir.path()));
        let options =
            Options { segment_bytes: 1 << 20, size_max_bytes: 4 << 20, ..Options::default() };
        let log = Log::create(media.clone(), &Description::default(), options).unwrap();
        let member = Member { group: Group(7), epoch: 3 };
        let file = FileId(24);
        for rank in [0, 2] {
            log.prepare(&Prepare { stream: 1, file, member, rank, ranks: 4, name: b"a job" })
                .unwrap();
        }
        drop(log);
        let found = verify(&*media).unwrap().in_doubt;
        let told: Vec<String> = found.iter().map(undecided).collect();
        assert_eq!(told, ["epoch 3 of group 7 of file 24: 2 of 4 ranks had come to it"]);
    }
}
