//! Work on a log that no agent has.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use drain::{Drain, Until};
use hostlog::{Log, Recovery, What};

use super::agent::{explain, options, text};
use super::files::Place;
use super::nodes::bytes::Members;
use super::nodes::{Meeting, member};
use super::owner::{Nobody, state_of};
use super::status::{self, Report, Show};
use super::target::Target;
use crate::args::log;
use crate::format::bytes_text;
use crate::in_force::InForce;
use crate::report::{say, tell};

/// How often is shown how far it is.
const SHOW_EVERY: Duration = Duration::from_millis(50);

/// Brings everything to its place, or waits until the log's agent has.
pub(crate) fn drain(args: &log::Drain, in_force: InForce) -> Result<ExitCode> {
    let place = Place::of(&args.dir)?;
    if let Some(holder) = place.holder() {
        say(format_args!("the log is in use by `{}`; waiting for its agent", holder.command));
        let last = status::follow(&place, Show::best())?;
        if place.holder().is_some() {
            check(&place, last)?;
            return Ok(ExitCode::SUCCESS);
        }
        // It has ended: what it left is done here.
    }
    if needed(&place)? {
        return Ok(ExitCode::SUCCESS);
    }
    let (log, recovery) = open(&place, &[])?;
    carry_out(&place, log, &recovery, args.log_bandwidth, &in_force)
}

/// Waits until the agent has brought everything to its place; where it has ended before, does it here.
pub(super) fn wait(place: &Place, in_force: &InForce) -> Result<()> {
    let dir = place.dir.display();
    let context = || format!("not everything is in its place; it stays in the log in {dir}");
    let last = status::follow(place, Show::best())?;
    check(place, last).with_context(context)?;
    if place.holder().is_some() {
        return Ok(());
    }
    // Ranks of a job wait each for themselves; the first one brings what there is.
    let turn = place.turn(true)?;
    if place.holder().is_some() {
        drop(turn);
        let last = status::follow(place, Show::best())?;
        return check(place, last).with_context(context);
    }
    let (log, recovery) = open(place, &[]).with_context(context)?;
    if log.replay().next().is_none() && recovery.in_doubt.is_empty() {
        return log.close().with_context(context);
    }
    carry_out(place, log, &recovery, None, in_force).map(drop).with_context(context)
}

/// Whether the agent can go on.
fn check(place: &Place, last: Option<Report>) -> Result<()> {
    match last.filter(|last| last.state == "failed").and_then(|last| last.error) {
        Some(error) => {
            bail!("the agent cannot drain: {error}; see {}", place.file("agent.log").display())
        }
        None => Ok(()),
    }
}

/// Has a log's bytes brought to their place by the node that has their order, where that is another one; says whether it was.
fn needed(place: &Place) -> Result<bool> {
    if !matches!(Meeting::of(place)?, Some((_, Some(_)))) {
        return Ok(false);
    }
    member::recover(place)?;
    say(format_args!("nothing in the log in {} is needed any more", place.dir.display()));
    Ok(true)
}

fn open(place: &Place, with: &[PathBuf]) -> Result<(Log, Recovery)> {
    let (log, recovery) = place.open(options(None)).map_err(|error| explain(error, place))?;
    Members::with(place, with)?.answer_to(&log);
    logstore::settle(&log)?;
    Ok((log, recovery))
}

/// Says what counts, and brings it to its place.
pub(crate) fn recover(args: &log::Recover, in_force: InForce) -> Result<ExitCode> {
    let place = Place::of(&args.dir)?;
    if needed(&place)? {
        return Ok(ExitCode::SUCCESS);
    }
    let (log, recovery) = open(&place, &args.with)?;
    tell(format_args!(
        "log for {}, last used by `{}`",
        log.description().target,
        log.description().run
    ))?;
    let how = if recovery.closed {
        "it was closed in order"
    } else {
        "it was not closed: its agent has crashed"
    };
    tell(format_args!("  {how}"))?;
    if let Some(torn) = &recovery.torn {
        tell(format_args!("  it ends in the middle of a record: {torn}"))?;
    }
    let (mut bytes, mut writes, mut changes) = (0, 0, 0);
    let mut files = std::collections::HashSet::new();
    let mut replay = log.replay();
    for record in replay.by_ref() {
        let record = record?;
        match record.what {
            What::Data { len, .. } => {
                bytes += len;
                writes += 1;
                files.insert(record.file);
            }
            What::Operation(_) => changes += 1,
        }
    }
    let skipped = replay.skipped();
    drop(replay);
    tell(format_args!(
        "  counts: {} in {writes} writes of {} files, {changes} other changes",
        bytes_text(bytes),
        files.len()
    ))?;
    tell(format_args!(
        "  dropped: {} records that nothing had committed",
        skipped + recovery.dropped_records
    ))?;
    for epoch in log.in_doubt() {
        tell(format_args!("  undecided: {} of file {}", epoch.member, epoch.file))?;
    }
    carry_out(&place, log, &recovery, args.log_bandwidth, &in_force)
}

fn carry_out(
    place: &Place,
    log: Log,
    recovery: &Recovery,
    bytes_per_second: Option<u64>,
    in_force: &InForce,
) -> Result<ExitCode> {
    let target_text = log.description().target.clone();
    let target = Target::of_log(&target_text)?.open(&in_force.settings)?;
    let owner = Arc::new(Nobody { state: state_of(Some(recovery)) });
    let options = drain::Options { bytes_per_second, ..drain::Options::default() };
    let log = Arc::new(log);
    let mut drain = Drain::new(Arc::clone(&log), Arc::new(place.media()), target, owner, options)?;
    let (progress, began) = (drain.progress(), Instant::now());
    let show = Show::best();
    let ended = std::thread::scope(|scope| {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let drain = &mut drain;
        let work = scope.spawn(move || {
            // Dropped when all is done.
            let _end = end;
            drain.run(Until::Drained, |error| {
                say(format_args!("sluice: {}; it is tried again, interrupt to stop", text(error)));
            })
        });
        while ended.recv_timeout(SHOW_EVERY) == Err(RecvTimeoutError::Timeout) {
            show.snapshot(&progress.snapshot());
        }
        work.join()
    });
    show.finish();
    match ended {
        Ok(result) => result?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    let done = progress.snapshot();
    drop(drain);
    // What an agent said of it is not true any more.
    if done.pending {
        let _ = std::fs::remove_file(place.file("status.json"));
    } else {
        let report = Report::drained(&log, &done);
        place.replace("status.json", &report.json()).context("cannot write status.json")?;
        if let Some((meeting, _)) = Meeting::of(place)? {
            meeting.leave_home(place)?;
        }
    }
    if let Some(log) = Arc::into_inner(log) {
        log.close()?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let (bytes, names) = (bytes_text(done.bytes), done.names);
    say(format_args!(
        "drained {bytes} and {names} changes of names to {target_text} in {seconds:.1} s"
    ));
    if done.pending {
        bail!(
            "something in the log is not decided yet, and stays there: ranks on other nodes may have committed it; \
             `sluice log status {}` says more",
            place.dir.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks every checksum.
pub(crate) fn verify(args: &log::Verify) -> Result<ExitCode> {
    let place = Place::of(&args.dir)?;
    if place.holder().is_some() {
        say(format_args!("the log is in use: what is just being written may look torn"));
    }
    let found = hostlog::verify(&place.media())?;
    if !args.quiet {
        for segment in &found.segments {
            let records = match (segment.first, segment.last) {
                (Some(first), Some(last)) => format!("records {first} to {last}"),
                _ => "no records".to_owned(),
            };
            let use_of =
                segment.number.map_or("unused".to_owned(), |number| format!("use {number}"));
            let live = if segment.live { "" } else { ", not needed any more" };
            tell(format_args!(
                "{}: {use_of}{live}: {records} in {}, then {}",
                segment.name,
                bytes_text(segment.used_bytes),
                segment.behind
            ))?;
        }
        let (last, durable, drained) = (found.last, found.durable, found.drained);
        tell(format_args!(
            "records up to {last}; durable up to {durable} at least, drained up to {drained}"
        ))?;
        if let Some(torn) = &found.torn {
            tell(format_args!("ends in the middle of a record, as after a crash: {torn}"))?;
        }
        if found.dropped_records > 0 {
            tell(format_args!(
                "{} records behind the end, which nothing had made durable",
                found.dropped_records
            ))?;
        }
    }
    match found.damage {
        None => {
            if !args.quiet {
                tell(format_args!("no damage"))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(damage) => bail!(damage),
    }
}

/// Removes a log.
pub(crate) fn discard(args: &log::Discard) -> Result<ExitCode> {
    let place = Place::of(&args.dir)?;
    let dir = place.dir.display();
    if let Some(holder) = place.holder() {
        bail!(
            "the log in {dir} is in use by `{}`; end its agent first: kill {}",
            holder.command,
            holder.pid
        );
    }
    let _turn = place.turn(true)?;
    // Of a log that cannot be read nothing is known; it may be removed all the same.
    let what = match place.open(options(None)) {
        Ok((log, _)) => {
            let mut bytes = 0;
            let mut records = 0;
            for record in log.replay() {
                records += 1;
                if let What::Data { len, .. } = record?.what {
                    bytes += len;
                }
            }
            let target = log.description().target.clone();
            match records {
                0 => format!("everything in it is in {target}"),
                _ => format!("{} in {records} records did not come to {target}", bytes_text(bytes)),
            }
        }
        Err(error @ hostlog::Error::Busy { .. }) => return Err(explain(error, &place)),
        Err(error @ hostlog::Error::Missing { .. }) => return Err(error.into()),
        Err(error) => format!("it cannot be read: {error}"),
    };
    say(format_args!("the log in {dir}: {what}"));
    if let Ok(Some((_, home))) = member::needed_by(&place) {
        say(format_args!(
            "bytes in it are needed to drain the log in {} on {}: without them that one never will be",
            home.dir.display(),
            home.host
        ));
    }
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            bail!("not discarded: say --yes to do it without being asked");
        }
        let _ = write!(std::io::stderr(), "discard it? [y/N] ");
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).context("no answer")?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            bail!("not discarded");
        }
    }
    place.discard()?;
    for name in ["start.lock", "lock"] {
        let _ = std::fs::remove_file(place.file(name));
    }
    // Whatever else somebody put there stays, and the directory with it.
    let _ = std::fs::remove_dir(&place.dir);
    Ok(ExitCode::SUCCESS)
}
