//! The agent of a node whose programs' order another node keeps.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use drain::Snapshot;
use hostlog::{Description, Log, Manifest};
use logstore::{MemberStore, Needed};
use service::{Listen, Running, Service};
use store::{Node as StoreNode, Store};

use super::home::{Gate, HomeStore, reach};
use super::{Meeting, Node, bytes};
use crate::agents::note;
use crate::args::log::Agent as Args;
use crate::log::agent::{FIRST_CLIENT, GRACE, LINGER, TICK, explain, identity, options};
use crate::log::files::{Holder, Place};
use crate::log::status::Report;

/// How often the home is asked how far it is.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// So long after the home stopped to answer, and the last program ended, the agent ends and leaves its log.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// What other nodes call the log in a place.
pub(crate) fn number(place: &Place) -> Result<u64> {
    Ok(Manifest::read(&place.media())?.log)
}

/// The home that needs the bytes in a place, if there is one.
///
/// # Errors
/// Where it cannot be told: what nobody has said to be drained must not be thrown away.
pub(crate) fn needed_by(place: &Place) -> Result<Option<(Meeting, Node)>> {
    let Some((meeting, Some(home))) = Meeting::of(place)? else { return Ok(None) };
    if meeting.has_drained(&home)? {
        return Ok(None);
    }
    match meeting.home()? {
        Some(found) if found.log == home => Ok(Some((meeting, found))),
        _ => bail!(
            "the log in {0} holds bytes whose order is in log {home}, and {1} says neither where that is nor that it is \
             drained: if it is not, recover it with `--with {0}`; then throw this one away by `sluice log discard {0}`",
            place.dir.display(),
            meeting.dir().display()
        ),
    }
}

/// Sees to it that a place holds no bytes that a home needs.
pub(crate) fn let_go(place: &Place) -> Result<()> {
    let Some((meeting, member_of)) = Meeting::of(place)? else { return Ok(()) };
    if let Some((_, home)) = needed_by(place)? {
        let (dir, host) = (place.dir.display(), &home.host);
        bail!(
            "the log in {dir} holds bytes of an earlier job that the log in {} on {host} still needs: run `sluice log recover` \
             for both of them first",
            home.dir.display()
        );
    }
    if member_of.is_some() {
        // All of it is in the target.
        if let (Ok(number), Some(home)) = (number(place), member_of) {
            meeting.leave_member(number, &home, place);
        }
        place.discard()?;
    }
    Ok(())
}

pub(crate) struct Member {
    place: Place,
    pub(crate) holder: Holder,
    log: Arc<Log>,
    number: u64,
    meeting: Meeting,
    home: Node,
    store: Arc<MemberStore>,
    running: Running,
    gate: Gate,
}

impl Member {
    pub(crate) fn start(args: &Args, place: &Place, meeting: Meeting, home: Node) -> Result<Self> {
        let dir = place.dir.display();
        let options = options(args.log_size);
        match place.open(options) {
            Ok((log, _)) => {
                logstore::settle(&log)?;
                let left = log.replay().next().transpose()?.is_some();
                if left || !log.in_doubt().is_empty() {
                    // Now it would write over what the home's programs write.
                    bail!(
                        "the log in {dir} still holds what an earlier run wrote: bring it to its place by `sluice log drain \
                         {dir}` before the job begins"
                    );
                }
            }
            Err(hostlog::Error::Missing { .. }) => {}
            Err(error) => return Err(explain(error, place)),
        }
        place.discard()?;
        // Nobody has been given a byte of what could not begin.
        Self::begin(args, place, meeting, home, options).inspect_err(|_| {
            let _ = place.discard();
        })
    }

    /// With a log that is new.
    fn begin(
        args: &Args,
        place: &Place,
        meeting: Meeting,
        home: Node,
        options: hostlog::Options,
    ) -> Result<Self> {
        let to = args.to.to_str().context("--to is not UTF-8")?;
        let description =
            Description { target: to.to_owned(), run: args.command.clone(), created: 0 };
        let media = Arc::new(place.media());
        // Before there is a log: a log without it would be taken for one that can be drained by itself.
        meeting.note(place, Some(&home.log), args.log_listen.as_deref())?;
        let log = Arc::new(Log::create(media.clone(), &description, options)?);
        let number = number(place)?;
        let here = Node { log: identity(&*media)?, ..Node::here(place, to) };
        let gate = bytes::serve(&meeting, (&log, number), here, args.log_listen.as_deref())?;
        let len_min = usize::try_from(args.log_own).unwrap_or(usize::MAX);
        let order = Arc::new(HomeStore::new(home.clone()));
        let store = Arc::new(MemberStore::new(order, Arc::clone(&log), number, len_min));
        let socket = place.socket()?;
        let shown: Arc<dyn Store> = store.clone();
        let running = Service::builder(shown).listen(Listen::Unix(socket.clone())).start()?;
        let holder = Holder {
            pid: std::process::id(),
            socket,
            // Programs know each other by it: all nodes have one order.
            log: home.log.clone(),
            target: to.to_owned(),
            run: args.run.clone(),
            command: args.command.clone(),
        };
        place.replace("agent.json", &serde_json::to_string(&holder)?).context("agent.json")?;
        let place = place.clone();
        Ok(Self { place, holder, log, number, meeting, home, store, running, gate })
    }

    /// Stays while programs are connected, and while the home needs bytes.
    pub(crate) fn stay(self, stop: &AtomicBool) -> Result<ExitCode> {
        let Self { place, holder, log, number, meeting, home, store, running, gate } = self;
        let mut asked = Asked::new(&home, &meeting);
        let (began, mut idle_since, mut told, mut seen) = (Instant::now(), None, None, None);
        // At once, and for as long as this agent lives: so the home lives, too.
        let (mut turn, mut needed) = (None, asked.look_after(&store));
        while !stop.load(Ordering::Acquire) {
            std::thread::sleep(TICK);
            // Segments are made ready ahead of need, as far as that goes.
            while log.prepare_ahead().unwrap_or(false) {}
            let counters = running.counters();
            // What the home said before somebody came or went may not be true any more.
            let clients = (counters.accepted, counters.connections);
            if asked.is_due() || seen != Some(clients) {
                seen = Some(clients);
                needed = asked.look_after(&store);
            }
            let report = report(&holder, &log, counters.connections, needed);
            if told != Some((report.clients, report.done)) {
                told = Some((report.clients, report.done));
                let _ = place.replace("status.json", &report.json());
            }
            let been_used = counters.accepted > 0 || began.elapsed() > FIRST_CLIENT;
            let may_end = needed == Needed::No || asked.is_silent();
            if counters.connections > 0 || !been_used || !may_end {
                idle_since = None;
                continue;
            }
            if idle_since.get_or_insert_with(Instant::now).elapsed() < LINGER {
                continue;
            }
            // While somebody is about to connect, it is their turn.
            turn = place.turn(false)?;
            if turn.is_some() && running.counters().connections == 0 {
                break;
            }
            turn = None;
        }
        let since = Instant::now();
        while running.counters().connections > 0 && since.elapsed() < GRACE {
            std::thread::sleep(TICK / 10);
        }
        running.stop();
        needed = asked.look_after(&store);
        drop(asked);
        drop(gate);
        let report = report(&holder, &log, 0, needed);
        let _ = place.replace("status.json", &Report { ended: true, ..report }.json());
        drop(store);
        log.sync()?;
        if needed == Needed::No {
            meeting.leave_member(number, &home.log, &place);
        }
        let _ = std::fs::remove_file(place.file("agent.json"));
        drop(turn);
        Ok(ExitCode::SUCCESS)
    }
}

fn report(holder: &Holder, log: &Log, clients: u64, needed: Needed) -> Report {
    let (store, drain) = (logstore::Status::default(), Snapshot::default());
    let report = Report::of(holder, log, &store, &drain, clients);
    Report { done: needed == Needed::No && clients == 0, ..report }
}

/// The home, as this agent asks it.
struct Asked {
    order: HomeStore,
    meeting: Meeting,
    /// The identity of its log.
    log: String,
    root: Option<Arc<dyn StoreNode>>,
    last: Instant,
    silent_since: Option<Instant>,
}

impl Asked {
    fn new(home: &Node, meeting: &Meeting) -> Self {
        Self {
            order: HomeStore::new(home.clone()),
            meeting: meeting.clone(),
            log: home.log.clone(),
            root: None,
            last: Instant::now(),
            silent_since: None,
        }
    }

    fn is_due(&self) -> bool {
        self.last.elapsed() >= ASK_EVERY
    }

    fn is_silent(&self) -> bool {
        self.silent_since.is_some_and(|since| since.elapsed() >= SILENT_MAX)
    }

    fn look_after(&mut self, store: &MemberStore) -> Needed {
        self.last = Instant::now();
        let asked = match &self.root {
            Some(root) => Ok(Arc::clone(root)),
            None => self.order.root(),
        };
        let answered = asked.and_then(|root| {
            let needed = store.look_after(&*root)?;
            self.root = Some(root);
            Ok(needed)
        });
        match answered {
            Ok(needed) => {
                self.silent_since = None;
                needed
            }
            Err(error) => {
                self.root = None;
                if self.meeting.has_drained(&self.log).unwrap_or(false) {
                    // It was recovered without an agent, and that is over.
                    return Needed::No;
                }
                if self.silent_since.is_none() {
                    self.silent_since = Some(Instant::now());
                    note(format_args!("the home cannot be asked how far it is: {error}"));
                }
                Needed::Yes
            }
        }
    }
}

/// Serves the bytes of a member's log that was left, until the home has drained them.
pub(crate) fn recover(place: &Place) -> Result<()> {
    let listen = Meeting::listened(place)?;
    let (log, _) = place.open(options(None)).map_err(|error| explain(error, place))?;
    let (log, number) = (Arc::new(log), number(place)?);
    let here = Node::here(place, &log.description().target);
    let mut gate = None;
    let mut told = false;
    while let Some((meeting, home)) = needed_by(place)? {
        if gate.is_none() {
            gate = Some(bytes::serve(&meeting, (&log, number), here.clone(), listen.as_deref())?);
        }
        if !told {
            told = true;
            crate::report::say(format_args!(
                "the order of what is in this log is in {} on {}: waiting until that one is drained{}",
                home.dir.display(),
                home.host,
                if reach(&home).unwrap_or(false) {
                    ""
                } else {
                    "; run `sluice log recover` there, too"
                }
            ));
        }
        std::thread::sleep(TICK);
    }
    drop(gate);
    drop(log);
    let_go(place)
}
