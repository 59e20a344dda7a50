//! The process that has a log: it shows it as files, and drains it.
//!
//! It begins with a conversation on its standard output: lines that `sluice run` is to pass on, and at last `ready` or
//! `failed`. Then it leaves the terminal. It stays while anybody is connected, and ends when nobody is and everything
//! that counts is drained; at a SIGTERM it ends at once, and all that was written stays in the log.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use drain::{Drain, Phase, Progress, Until};
use hostlog::media::Media;
use hostlog::{Description, Log, Manifest, Recovery};
use logstore::{LogStore, Unfinished};
use service::{Listen, Running, Service};

use super::files::{Holder, Place};
use super::nodes::bytes::Members;
use super::nodes::home::{Gate, welcome};
use super::nodes::member::{self, Member};
use super::nodes::{Meeting, Node, Role};
use super::owner::{Nobody, Shown, state_of};
use super::status::Report;
use super::target::Target;
use crate::agents::{self, Starter, note};
use crate::args::log::Agent as Args;
use crate::format::bytes_text;
use crate::in_force::InForce;

/// How often it looks after things.
pub(super) const TICK: Duration = Duration::from_millis(250);
/// So many bytes are synced before anybody commits them: a disk takes them meanwhile.
const SYNC_AHEAD_BYTES: u64 = 4 << 20;
/// Changes of names are durable after so long at the latest.
const NAMES_EVERY: Duration = Duration::from_secs(1);
/// How long it stays when it could end: the next run may come at once.
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// How long it waits for programs to end, when it is told to.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// How nice the drain is: its work is what programs do not wait for.
const DRAIN_NICE: i32 = 10;
/// How long it waits for its first client.
pub(super) const FIRST_CLIENT: Duration = Duration::from_secs(60);

/// Has the log until it is not needed any more.
pub(crate) fn agent(args: &Args, in_force: InForce) -> Result<ExitCode> {
    let stop = agents::begin()?;
    let place = Place::of(&args.dir)?;
    match begin(args, &place, &in_force) {
        Ok((holder, stay)) => {
            Starter::ready(&serde_json::to_string(&holder)?, &place.file("agent.log"));
            stay(&stop)
        }
        Err(error) => {
            Starter::failed(&error);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// What an agent does until it is not needed any more.
type Stay = Box<dyn FnOnce(&AtomicBool) -> Result<ExitCode>>;

/// Begins as what the log's agent is to be: alone, or for the agents of other nodes.
fn begin(args: &Args, place: &Place, in_force: &InForce) -> Result<(Holder, Stay)> {
    member::let_go(place)?;
    let Some(dir) = &args.log_meet else {
        let agent = Agent::start(args, place, in_force, None)?;
        return Ok((agent.holder.clone(), Box::new(|stop| agent.stay(stop))));
    };
    let meeting = Meeting::at(dir)?;
    let to = args.to.to_str().context("--to is not UTF-8")?;
    match meeting.role(&Node::here(place, to))? {
        Role::Member(home) => {
            let member = Member::start(args, place, meeting, home)?;
            Ok((member.holder.clone(), Box::new(|stop| member.stay(stop))))
        }
        Role::Home => {
            let agent = Agent::start(args, place, in_force, Some(meeting.clone()));
            let agent = agent.inspect_err(|_| meeting.give_up(place))?;
            Ok((agent.holder.clone(), Box::new(|stop| agent.stay(stop))))
        }
    }
}

/// The options of a log of so many bytes.
pub(crate) fn options(size: Option<u64>) -> hostlog::Options {
    let default = hostlog::Options::default();
    let size_max_bytes = size.unwrap_or(default.size_max_bytes).max(2 << 20);
    // Some segments at least, so that those in front can be given back.
    let segment_bytes = (size_max_bytes / 16).clamp(1 << 20, default.segment_bytes) & !4095;
    hostlog::Options { segment_bytes, size_max_bytes, ..default }
}

/// The text that tells a log from all others.
pub(crate) fn identity(media: &dyn Media) -> Result<String> {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().into_owned();
    Ok(format!("{host}:{:016x}", Manifest::read(media)?.log))
}

struct Agent {
    place: Place,
    holder: Holder,
    log: Arc<Log>,
    store: Arc<LogStore>,
    running: Arc<Running>,
    drain: Drain,
    /// The agents of other nodes that this one is the home of, and how they come in.
    nodes: Option<(Meeting, Gate)>,
}

impl Agent {
    fn start(
        args: &Args,
        place: &Place,
        in_force: &InForce,
        meeting: Option<Meeting>,
    ) -> Result<Self> {
        let to = args.to.to_str().context("--to is not UTF-8")?;
        let place_of_target = Target::of_log(to)?;
        let target = place_of_target.open(&in_force.settings)?;
        let bytes_per_second = args.log_bandwidth.filter(|rate| *rate > 0);
        let drain_options = drain::Options { bytes_per_second, ..drain::Options::default() };
        let media = Arc::new(place.media());
        let options = options(args.log_size);
        let description =
            Description { target: to.to_owned(), run: args.command.clone(), created: 0 };
        let (log, recovery) = match place.open(options) {
            Ok((log, recovery)) => {
                Members::with(place, &[])?.answer_to(&log);
                Self::take_over(place, log, recovery, to, &target, &drain_options)?;
                reopen(place, &description, options)?
            }
            Err(hostlog::Error::Missing { .. }) => {
                place.discard()?;
                (Log::create(media.clone(), &description, options)?, None)
            }
            Err(error) => return Err(explain(error, place)),
        };
        Members::of(meeting.clone()).answer_to(&log);
        let log = Arc::new(log);
        let identity = identity(&*media)?;
        let store_options = logstore::Options {
            identity: identity.clone().into_bytes(),
            ..logstore::Options::default()
        };
        let store = LogStore::open(Arc::clone(&log), recovery.as_ref(), &target, store_options)?;
        let owner = Shown { store: Arc::clone(&store), state: state_of(recovery.as_ref()) };
        let mut drain =
            Drain::new(Arc::clone(&log), media, target, Arc::new(owner), drain_options)?;
        if let Target::Service(_) = place_of_target {
            drain = drain.with_bulk(place_of_target.open(&in_force.settings)?);
        }
        let socket = place.socket()?;
        let shown: Arc<dyn store::Store> = store.clone();
        let running = Service::builder(shown).listen(Listen::Unix(socket.clone())).start()?;
        let running = Arc::new(running);
        let holder = Holder {
            pid: std::process::id(),
            socket,
            log: identity,
            target: to.to_owned(),
            run: args.run.clone(),
            command: args.command.clone(),
        };
        place.replace("agent.json", &serde_json::to_string(&holder)?).context("agent.json")?;
        let nodes = match meeting {
            Some(meeting) => {
                let listen = args.log_listen.as_deref();
                meeting.note(place, None, listen)?;
                let gate = welcome(&meeting, place, (&holder.log, to), listen, &running)?;
                Some((meeting, gate))
            }
            None => None,
        };
        Ok(Self { place: place.clone(), holder, log, store, running, drain, nodes })
    }

    /// What an earlier run left is brought to the target first.
    fn take_over(
        place: &Place,
        log: Log,
        recovery: Recovery,
        to: &str,
        target: &Arc<dyn store::Store>,
        options: &drain::Options,
    ) -> Result<()> {
        let dir = place.dir.display();
        logstore::settle(&log)?;
        let left = log.replay().next().transpose()?.is_some();
        let before = log.description().target.clone();
        if left && before != to {
            bail!(
                "the log in {dir} still holds what an earlier run wrote for {before}, and this one is for {to}: bring \
                 it there by `sluice log drain {dir}`, or throw it away by `sluice log discard {dir}`"
            );
        }
        if !left {
            return Ok(());
        }
        let how = if recovery.closed { "left" } else { "left by a crash" };
        Starter::say(&format!(
            "sluice run: the log in {dir} holds what was {how} in an earlier run; bringing it to {to} first"
        ));
        let owner = Nobody { state: state_of(Some(&recovery)) };
        let (log, media) = (Arc::new(log), Arc::new(place.media()));
        let mut drain =
            Drain::new(log, media, Arc::clone(target), Arc::new(owner), options.clone())?;
        let began = Instant::now();
        drain.run(Until::Drained, |error| {
            let error = text(error);
            Starter::say(&format!("sluice run: {error}; it is tried again and again"));
        })?;
        let done = drain.progress().snapshot();
        Starter::say(&format!(
            "sluice run: {} of an earlier run are in their place ({:.1} s)",
            crate::format::bytes_text(done.bytes),
            began.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// Looks after everything until it is not needed any more.
    fn stay(self, stop: &AtomicBool) -> Result<ExitCode> {
        let Self { place, holder, log, store, running, mut drain, nodes } = self;
        let (progress, stopper) = (drain.progress(), drain.stopper());
        let failed: Arc<Mutex<Option<String>>> = Arc::default();
        let drained = {
            let failed = Arc::clone(&failed);
            std::thread::spawn(move || {
                give_way();
                let ended = drain.run(Until::Stopped, |error| {
                    note(format_args!("{}; it is tried again", text(error)));
                });
                if let Err(error) = ended {
                    let error = text(&error);
                    note(format_args!("the drain has ended: {error}"));
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            })
        };
        let ending = Arc::new(AtomicBool::new(false));
        let ahead = {
            let (log, ending) = (Arc::clone(&log), Arc::clone(&ending));
            std::thread::spawn(move || {
                while !ending.load(Ordering::Acquire) {
                    if !log.prepare_ahead().unwrap_or(false) {
                        std::thread::sleep(TICK);
                    }
                }
            })
        };
        let early = {
            let (log, ending) = (Arc::clone(&log), Arc::clone(&ending));
            std::thread::spawn(move || {
                while !ending.load(Ordering::Acquire) {
                    // When the log has failed there is nothing to sync any more.
                    if log.sync_ahead(SYNC_AHEAD_BYTES, TICK).is_err() {
                        return;
                    }
                }
            })
        };
        let mut running = Some(running);
        let mut watch = Watch::new(place.clone(), holder);
        let mut turn = None;
        while !stop.load(Ordering::Acquire) {
            std::thread::sleep(TICK);
            let clients = running.as_ref().map_or(0, |running| running.counters().connections);
            let been_used = running.as_ref().is_some_and(|running| running.counters().accepted > 0);
            watch.names(&store);
            if clients == 0 && been_used {
                // Whoever wrote has ended: what they did not close counts no more.
                watch.commit(&store);
            }
            let idle = watch.look(&log, &store, &progress, clients);
            // Nothing gets better by waiting, and whoever is to recover the log cannot while it is in use.
            let lost = log.status().failed
                || failed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
                    && is_committed(&store);
            if watch.may_end((idle || lost) && clients == 0, been_used) {
                // While somebody is about to connect, it is their turn.
                turn = place.turn(false)?;
                let now = running.as_ref().map_or(0, |running| running.counters().connections);
                if turn.is_some() && now == 0 {
                    break;
                }
                turn = None;
            }
        }
        // In order: no new requests, everything that counts is durable, no more draining. Who ends a job tells all
        // its processes at once: programs that are about to die of that have not closed their files.
        let since = Instant::now();
        let has_clients = |running: &Arc<Running>| running.counters().connections > 0;
        while running.as_ref().is_some_and(has_clients) && since.elapsed() < GRACE {
            std::thread::sleep(TICK / 10);
        }
        store.end();
        let meeting = nodes.map(|(meeting, _gate)| meeting);
        if let Some(running) = running.take().and_then(Arc::into_inner) {
            running.stop();
        }
        watch.commit(&store);
        stopper.stop();
        let _ = drained.join();
        ending.store(true, Ordering::Release);
        let _ = ahead.join();
        let _ = early.join();
        if watch.end(&log, &store, &progress)
            && let Some(meeting) = meeting
        {
            meeting.leave_home(&place)?;
        }
        drop(store);
        if let Some(log) = Arc::into_inner(log) {
            log.close().map_err(|error| explain(error, &place))?;
        }
        let _ = std::fs::remove_file(place.file("agent.json"));
        drop(turn);
        let failed = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(if failed.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Lets programs, and the threads that answer them, go before this thread and those that it starts.
fn give_way() {
    // On Linux it is of a thread (setpriority(2), BUGS). Without it all is as before.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), DRAIN_NICE);
}

/// What is looked at again and again.
struct Watch {
    place: Place,
    holder: Holder,
    began: Instant,
    names: Instant,
    idle_since: Option<Instant>,
    told: Option<(Instant, String)>,
    /// Bytes that killed programs had not finished.
    dropped: u64,
    noted: Option<String>,
}

fn is_committed(store: &LogStore) -> bool {
    let status = store.status();
    status.uncommitted_names == 0 && status.uncommitted_records == 0
}

impl Watch {
    fn new(place: Place, holder: Holder) -> Self {
        let now = Instant::now();
        Self {
            place,
            holder,
            began: now,
            names: now,
            idle_since: None,
            told: None,
            dropped: 0,
            noted: None,
        }
    }

    /// Commits changes of names, if it is time.
    fn names(&mut self, store: &LogStore) {
        if self.names.elapsed() >= NAMES_EVERY {
            self.names = Instant::now();
            if store.status().uncommitted_names > 0 {
                let done = store.commit_names();
                self.tried(done);
            }
        }
    }

    /// When nobody is connected any more: changes of names count, and what was not closed never will.
    fn commit(&mut self, store: &LogStore) {
        if is_committed(store) {
            return;
        }
        let done = store.commit_names().and_then(|()| self.drop_unfinished(store));
        self.tried(done);
    }

    fn drop_unfinished(&mut self, store: &LogStore) -> logstore::Result<()> {
        for Unfinished { path, bytes } in store.drop_unfinished()? {
            let path = path.unwrap_or_else(|| b"a removed file".to_vec());
            note(format_args!(
                "{}: dropped {}, written by a program that was killed before its next fsync or close",
                String::from_utf8_lossy(&path),
                bytes_text(bytes)
            ));
            self.dropped += bytes;
        }
        Ok(())
    }

    /// Notes what went wrong, once: it is tried several times a second.
    fn tried(&mut self, done: logstore::Result<()>) {
        let wrong = done.err().map(|error| format!("{:#}", anyhow!(error)));
        if let Some(wrong) = &wrong
            && self.noted.as_ref() != Some(wrong)
        {
            note(format_args!("{wrong}"));
        }
        self.noted = wrong;
    }

    /// Writes down how things are, and says whether there is nothing left to do.
    fn look(&mut self, log: &Log, store: &LogStore, progress: &Progress, clients: u64) -> bool {
        let mut report =
            Report::of(&self.holder, log, &store.status(), &progress.snapshot(), clients);
        let idle = report.phase == Phase::Idle && report.uncommitted == 0 && !report.is_behind(log);
        report.done = idle;
        report.dropped_bytes = self.dropped;
        self.write(&report, false);
        idle
    }

    fn write(&mut self, report: &Report, at_once: bool) {
        let text = report.json();
        let is_due = self.told.as_ref().is_none_or(|(at, told)| {
            *told != text && (at_once || at.elapsed() >= Duration::from_secs(1))
        });
        if is_due {
            // Next time, perhaps.
            let _ = self.place.replace("status.json", &text);
            self.told = Some((Instant::now(), text));
        }
    }

    fn may_end(&mut self, is_idle: bool, been_used: bool) -> bool {
        if !is_idle || (!been_used && self.began.elapsed() < FIRST_CLIENT) {
            self.idle_since = None;
            return false;
        }
        self.idle_since.get_or_insert_with(Instant::now).elapsed() >= LINGER
    }

    /// Says whether everything is in the target.
    fn end(&mut self, log: &Log, store: &LogStore, progress: &Progress) -> bool {
        let mut report = Report::of(&self.holder, log, &store.status(), &progress.snapshot(), 0);
        report.ended = true;
        report.dropped_bytes = self.dropped;
        report.done = report.uncommitted == 0 && !report.is_behind(log);
        self.write(&report, true);
        report.done
    }
}

/// Opens a log again after what was in it is drained, or makes a new one where it was for something else.
fn reopen(
    place: &Place,
    description: &Description,
    options: hostlog::Options,
) -> Result<(Log, Option<Recovery>)> {
    let (log, recovery) = place.open(options).map_err(|error| explain(error, place))?;
    let left = log.replay().next().transpose()?.is_some();
    if left || !recovery.in_doubt.is_empty() {
        return Ok((log, Some(recovery)));
    }
    // Nothing is in it: this run has one of its own size and name.
    drop(log);
    place.discard()?;
    Ok((Log::create(Arc::new(place.media()), description, options)?, None))
}

/// An error with its causes.
pub(crate) fn text(error: &drain::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text = format!("{text}: {source}");
        cause = source.source();
    }
    text
}

/// What to do about an error of the log.
pub(crate) fn explain(error: hostlog::Error, place: &Place) -> anyhow::Error {
    let holder = place.holder();
    match (&error, holder) {
        (hostlog::Error::Busy { .. }, Some(holder)) => anyhow!(
            "the log in {} is in use by `{}` (its agent is process {})",
            place.dir.display(),
            holder.command,
            holder.pid
        ),
        _ => anyhow!(error),
    }
}
