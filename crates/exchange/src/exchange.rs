//! One process among others.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use coupling::{Mode, Rule};
use matching::{Component, FullQueue, Place, Role};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::hub::Shared;
use crate::lane::{Lane, Manner, Now};
use crate::meeting::{Meeting, Watch, fault};
use crate::wire::{Contact, Frame, Hello, LaneKey, Opened};
use crate::{Fault, Plan, Wanted, Written, thread};

/// The ranks that open a file together: an MPI communicator, or threads.
pub trait Group {
    /// Which of them this is.
    fn rank(&self) -> u32;

    /// How many they are.
    fn size(&self) -> u32;

    /// What each has given, by their ranks. Collective.
    ///
    /// # Errors
    /// [`Fault::Group`]
    fn gather_all(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Fault>;
}

/// Something that was written and that nobody has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The file.
    pub file: String,
    /// The how-manieth time that it was created, from 0.
    pub opening: u32,
    /// Why nobody will.
    pub why: String,
}

/// This process among those that are coupled. One for each process, made at the first coupled file; shared by its threads.
pub struct Exchange {
    plan: Plan,
    shared: Arc<Shared>,
    socket: PathBuf,
    /// Who has joined: a forked child has no thread that serves.
    pid: u32,
    /// Where other processes try whether they can read the memory of this one.
    _probe: Box<[u8; 16]>,
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// The longest path of a socket (`sun_path` of unix(7) has 108 bytes).
const SOCKET_PATH_MAX: usize = 100;

impl Exchange {
    /// Takes this process's place.
    ///
    /// # Errors
    /// The directory cannot be used, or the thread cannot be started.
    pub fn join(plan: Plan) -> Result<Self, Fault> {
        let meeting = Meeting::new(plan.meet())?;
        let broken = |what: &str, error: &dyn std::fmt::Display| Fault::Broken {
            what: format!("{what}: {error}"),
        };
        let random = || -> Result<[u8; 16], Fault> {
            let mut bytes = [0u8; 16];
            let flags = rustix::rand::GetRandomFlags::empty();
            rustix::rand::getrandom(&mut bytes[..], flags)
                .map_err(|error| broken("no random numbers", &error))?;
            Ok(bytes)
        };
        let (process, probe) = (random()?, Box::new(random()?));
        let pid = std::process::id();
        let name: String = process[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let socket = meeting.socket(&name);
        let listener = listen(&socket).map_err(|source| fault("the socket", &socket, source))?;
        let hello = Hello { process, pid, probe_at: probe.as_ptr() as u64, probe: *probe };
        let watch = Watch::new().map_err(|error| broken("inotify", &error))?;
        let wake = thread::wakeable().map_err(|error| broken("eventfd", &error))?;
        let shared = Arc::new(Shared::new(plan.clone(), meeting, hello, watch, wake));
        thread::start(shared.clone(), listener).map_err(|error| broken("no thread", &error))?;
        Ok(Self { plan, shared, socket, pid, _probe: probe })
    }

    /// What the launcher has said.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The group creates a file that others read. Collective. Waits if the rule says that writers may be only so far ahead.
    ///
    /// In mode `file` the program then writes the file itself, and calls [`Written::close`] when it has closed it.
    ///
    /// # Errors
    /// The file is not coupled, or the readers are too late or gone while a queue is full.
    pub fn create(&self, name: &str, group: &dyn Group) -> Result<Written, Fault> {
        let rule = self.rule(name, Role::Writer)?;
        let (writers, readers) = self.plan.sides(rule, Role::Writer);
        let stream = stream(rule, name, &writers);
        let is_file = rule.mode == Mode::File;
        let me = self.place(group);
        if let (Some((_, FullQueue::Discard)), true) = (rule.queue, writers.len() > 1) {
            let what = "cycles cannot be discarded where several components write the file";
            return Err(self.order(me, name, what));
        }
        let begun = Instant::now();
        let until = begun + self.plan.patience();
        let mut full = Vec::new();
        for &reader in &readers {
            let ahead = |state: &mut crate::hub::State| {
                let lanes = state.lanes.values();
                let same =
                    lanes.filter(|lane| lane.key.stream == stream && lane.key.reader == reader);
                // One that is open is ahead, too, once it is closed.
                same.filter(|lane| !lane.is_file).map(Lane::ahead).sum::<u32>()
            };
            match rule.queue {
                Some((limit, FullQueue::Block)) if !is_file => {
                    let free =
                        self.shared.wait(until, |state| (ahead(state) < limit).then_some(()))?;
                    if free.is_none() {
                        let who = self.plan.name(reader);
                        let what = format!("{who} to read one of {limit} cycles that it is behind");
                        return Err(self.late(me, name, what, begun));
                    }
                    full.push(0u8);
                }
                Some((limit, FullQueue::Discard)) if !is_file => {
                    full.push(u8::from(ahead(&mut self.shared.lock()) >= limit));
                }
                _ => full.push(0),
            }
        }
        let meeting = self.shared.lock().meeting.clone();
        meeting.begin(stream, &stream_name(rule, name))?;
        let end = format!("w{}", self.plan.number());
        let openings = |reader: &u16| meeting.next_opening(stream, *reader, &end);
        let openings: Vec<u32> = match me.rank {
            0 => readers.iter().map(openings).collect(),
            _ => vec![0; readers.len()],
        };
        let mine = Opened { contact: self.contact(), openings, full };
        let all = self.gather(name, group, &mine)?;
        let contacts: Vec<Contact> = all.iter().map(|one| one.contact.clone()).collect();
        let mut keys = Vec::new();
        for (number, &reader) in readers.iter().enumerate() {
            let dropped = all.iter().all(|one| one.full.get(number) == Some(&1));
            let Some(&opening) = all[0].openings.get(number) else { continue };
            if dropped {
                continue;
            }
            let key = LaneKey { stream, reader, opening };
            let list = |one: &u16| (*one, (*one == me.component.0).then(|| contacts.clone()));
            let mut lane = self.lane(key, name, rule, me, writers.iter().map(list).collect());
            lane.writes = true;
            lane.is_file = is_file;
            if me.rank == 0 {
                meeting.put(key, &end, &Contact::encode_all(&contacts))?;
            }
            self.add(lane);
            keys.push(key);
        }
        let mut state = self.shared.lock();
        state.watch.add(&meeting.stream(stream));
        if me.rank != 0 && !contacts[0].is_same(&mine.contact) {
            // So that the first rank notices if this one ends.
            let _ = state.link(&contacts[0]);
        }
        for reader in &readers {
            let other = self.plan.name(*reader);
            let tally = state.tallies.of(name, true, other);
            tally.openings += 1;
            tally.waited += begun.elapsed();
        }
        if me.rank == 0 {
            state.look();
        }
        drop(state);
        self.shared.wake();
        let limit = rule.queue.filter(|(_, full)| *full == FullQueue::Block && !is_file);
        let limit = limit.map(|(limit, _)| limit);
        Ok(Written::new(self.shared.clone(), keys, name, me, is_file, rule.buffer, limit))
    }

    /// The group opens a file that others have written. Collective. Waits until they have finished a cycle of it; in mode `file`
    /// until they have closed it, and the program then reads the file itself.
    ///
    /// # Errors
    /// The file is not coupled, or the writers are too late or gone.
    pub fn open(&self, name: &str, group: &dyn Group) -> Result<Wanted, Fault> {
        let rule = self.rule(name, Role::Reader)?;
        let (writers, _) = self.plan.sides(rule, Role::Reader);
        let stream = stream(rule, name, &writers);
        let is_file = rule.mode == Mode::File;
        let me = self.place(group);
        let begun = Instant::now();
        let meeting = self.shared.lock().meeting.clone();
        meeting.begin(stream, &stream_name(rule, name))?;
        let reader = self.plan.number();
        let opening = match me.rank {
            0 => meeting.next_opening(stream, reader, "r"),
            _ => 0,
        };
        let mine = Opened { contact: self.contact(), openings: vec![opening], full: vec![] };
        let all = self.gather(name, group, &mine)?;
        let contacts: Vec<Contact> = all.iter().map(|one| one.contact.clone()).collect();
        let opening = all[0].openings.first().copied().unwrap_or_default();
        let key = LaneKey { stream, reader, opening };
        // The first rank waits for all, and tells the others what it has found.
        let found = if me.rank == 0 {
            meeting
                .put(key, "r", &Contact::encode_all(&contacts))
                .and_then(|()| self.await_writers(key, name, me, &writers, is_file))
        } else {
            Ok(Vec::new())
        };
        if found.is_err() {
            // Whoever tries again wants the same opening.
            meeting.withdraw(key, "r");
        }
        let told = match &found {
            Ok(bytes) => [&[0], bytes.as_slice()].concat(),
            Err(fault) => {
                [&[1], fault.status().to_le_bytes().as_slice(), fault.report().as_bytes()].concat()
            }
        };
        let told = group.gather_all(&told)?;
        found?;
        let garbled = || self.disagree(name, "what the first rank has told is garbled");
        let (post, rosters) = match told.first().and_then(|bytes| bytes.split_first()) {
            Some((0, bytes)) => crate::wire::decode_opening(bytes).map_err(|_| garbled())?,
            Some((_, bytes)) => {
                let (status, text) = bytes.split_first_chunk().ok_or_else(garbled)?;
                let text = String::from_utf8_lossy(text).into_owned();
                return Err(Fault::Told { text, status: i32::from_le_bytes(*status) });
            }
            None => return Err(garbled()),
        };
        if me.rank == 0 && !is_file {
            // The writers have found those of the opening before, or it would not have been read.
            meeting.forget(key, &["r"]);
        }
        let format = post.format;
        let lists = rosters.into_iter().map(|(one, list)| (one, Some(list))).collect();
        let mut lane = self.lane(key, name, rule, me, lists);
        lane.readers = Some(contacts);
        lane.is_file = is_file;
        let other: Vec<&str> = writers.iter().map(|one| self.plan.name(*one)).collect();
        let other = other.join(", ");
        if !is_file {
            self.add(lane);
            self.shared.lock().start(key, format);
        }
        let mut state = self.shared.lock();
        let tally = state.tallies.of(name, false, &other);
        tally.openings += 1;
        tally.waited += begun.elapsed();
        drop(state);
        self.shared.wake();
        Ok(Wanted::new(self.shared.clone(), key, name, me, is_file, post, other))
    }

    /// Waits for the writers of an opening, and for their first cycle.
    fn await_writers(
        &self,
        key: LaneKey,
        name: &str,
        me: Place,
        writers: &[u16],
        is_file: bool,
    ) -> Result<Vec<u8>, Fault> {
        let begun = Instant::now();
        let until = begun + self.plan.patience();
        let meeting = self.shared.lock().meeting.clone();
        let watch =
            Watch::new().map_err(|source| fault("inotify for", self.plan.meet(), source))?;
        watch.add(&meeting.stream(key.stream));
        watch.add(&meeting.ended_directory());
        let mut rosters: Vec<(u16, Vec<Contact>)> = Vec::new();
        loop {
            // Read before the rest: who has ended may have left something just before.
            let ended: Vec<(u16, String)> =
                writers.iter().filter_map(|one| Some((*one, meeting.ended(*one)?))).collect();
            for &writer in writers {
                if !rosters.iter().any(|(one, _)| *one == writer)
                    && let Some(list) = meeting.roster(key, &format!("w{writer}"))
                {
                    let mut state = self.shared.lock();
                    if let Some(first) =
                        list.first().filter(|one| !state.gone.contains_key(&one.process))
                    {
                        let _ = state.link(first);
                    }
                    drop(state);
                    self.shared.wake();
                    rosters.push((writer, list));
                }
            }
            let missing =
                writers.iter().find(|one| !rosters.iter().any(|(known, _)| known == *one));
            if is_file {
                let open = |one: &&u16| !meeting.has(key, &format!("d{one}"));
                if writers.iter().find(open).is_none() {
                    rosters.sort_by_key(|(one, _)| writers.iter().position(|other| other == one));
                    return Ok(crate::wire::encode_opening(None, &rosters));
                }
            } else if let Some(post) = meeting.post(key, 0)
                && missing.is_none()
            {
                let post = post.map_err(|why| self.gone(me, name, "its writer", &why))?;
                if !same_file(&post.name, name) {
                    let (read, written) = (name.to_owned(), post.name);
                    return Err(Fault::OtherFile { read, written });
                }
                rosters.sort_by_key(|(one, _)| writers.iter().position(|other| other == one));
                return Ok(crate::wire::encode_opening(Some(&post), &rosters));
            }
            let waits_for = |one: u16| {
                missing == Some(&one) || is_file && !meeting.has(key, &format!("d{one}"))
            };
            if let Some((one, how)) = ended.iter().find(|(one, _)| waits_for(*one)) {
                let who = self.plan.name(*one).to_owned();
                let opened = if missing.is_none() { "closed" } else { "created" };
                let why = format!(" ({how}): it has not {opened} the file");
                return Err(self.gone(me, name, &who, &why));
            }
            let state = self.shared.lock();
            let lost = rosters.iter().find_map(|(one, list)| {
                let first = list.first()?;
                let clean = *state.gone.get(&first.process)?;
                (!clean).then_some(*one)
            });
            drop(state);
            if let Some(one) = lost {
                let who = format!("rank 0 of {}", self.plan.name(one));
                return Err(self.gone(me, name, &who, " before it had finished the file"));
            }
            if !watch.wait(until) {
                let names: Vec<&str> = writers.iter().map(|one| self.plan.name(*one)).collect();
                let names = names.join(" and ");
                let what = match missing {
                    Some(one) => format!("{} to create it", self.plan.name(*one)),
                    None if is_file => format!("{names} to close it"),
                    None => format!("{names} to finish a cycle of it"),
                };
                return Err(self.late(me, name, what, begun));
            }
        }
    }

    /// Waits until what this process has written is read, or nobody is left to read it, and takes leave. For the end of the
    /// program, while it still can wait: at `MPI_Finalize`, or when it exits. What nobody has read is told.
    pub fn leave(&self) -> Vec<Unread> {
        if std::process::id() != self.pid {
            return Vec::new();
        }
        let until = Instant::now() + self.plan.patience();
        let done = self.shared.wait(until, |state| {
            let open = state.lanes.values().any(|lane| lane.writes && !lane.is_done());
            (!open && state.pulls.is_empty()).then_some(())
        });
        let clean = matches!(done, Ok(Some(())));
        let mut state = self.shared.lock();
        if clean {
            for link in state.links.values_mut().filter(|link| !link.broken) {
                link.push(&Frame::Bye);
            }
        } else {
            let waited = self.plan.patience();
            let late: Vec<Unread> = state
                .lanes
                .values()
                .filter(|lane| lane.writes && !lane.is_delivered())
                .map(|lane| Unread {
                    file: lane.name.clone(),
                    opening: lane.key.opening,
                    why: format!(
                        "{} did not read it in {waited:?}",
                        self.plan.name(lane.key.reader)
                    ),
                })
                .collect();
            state.unread.extend(late);
        }
        let unread = std::mem::take(&mut state.unread);
        state.ending = true;
        drop(state);
        self.shared.wake();
        // The thread is gone when it has said the last word.
        let until = Instant::now() + self.plan.patience().min(std::time::Duration::from_secs(10));
        let _ = self.shared.wait(until, |state| (state.links.is_empty()).then_some(()));
        unread
    }

    fn lane(
        &self,
        key: LaneKey,
        name: &str,
        rule: &Rule,
        me: Place,
        writers: Vec<(u16, Option<Vec<Contact>>)>,
    ) -> Lane {
        Lane {
            key,
            name: name.to_owned(),
            manner: Manner::of(rule),
            components: self.plan.configuration().components.clone(),
            me,
            writes: false,
            is_file: false,
            writers,
            readers: None,
            node: None,
            matching: Vec::new(),
            held: Vec::new(),
            calls: std::collections::VecDeque::new(),
            now: Now::Between,
            submitted: 0,
            released: 0,
            submitted_to_node: 0,
            pulls: 0,
            finishing: std::collections::BTreeMap::new(),
            posted: 0,
            closed: false,
            said_closed: false,
            abandoned: None,
            lost: None,
        }
    }

    fn add(&self, lane: Lane) {
        let key = lane.key;
        let mut state = self.shared.lock();
        state.lanes.insert(key, lane);
        for frame in state.early.remove(&key).unwrap_or_default() {
            state.frame(frame);
        }
    }

    fn gather(&self, name: &str, group: &dyn Group, mine: &Opened) -> Result<Vec<Opened>, Fault> {
        if std::process::id() != self.pid {
            let what = "the process is a forked child of the one that takes part".to_owned();
            return Err(Fault::Broken { what });
        }
        let all = group.gather_all(&mine.encode())?;
        if all.len() != group.size() as usize || all.is_empty() {
            return Err(self.disagree(name, "a rank is missing"));
        }
        let decoded = all.iter().map(|bytes| Opened::decode(bytes)).collect::<Result<_, _>>();
        decoded.map_err(|_| self.disagree(name, "a rank is of another version of Sluice"))
    }

    fn disagree(&self, name: &str, why: &str) -> Fault {
        Fault::Group { file: name.to_owned(), why: why.to_owned() }
    }

    fn contact(&self) -> Contact {
        self.shared.lock().contact(&self.socket.to_string_lossy())
    }

    fn place(&self, group: &dyn Group) -> Place {
        Place { component: Component(self.plan.number()), rank: group.rank() }
    }

    fn order(&self, me: Place, file: &str, what: &'static str) -> Fault {
        let (component, rank) = (self.plan.component().to_owned(), me.rank);
        Fault::Order { component, rank, file: file.to_owned(), what }
    }

    fn late(&self, me: Place, file: &str, what: String, begun: Instant) -> Fault {
        let (component, rank) = (self.plan.component().to_owned(), me.rank);
        Fault::Late { component, rank, file: file.to_owned(), what, waited: begun.elapsed() }
    }

    fn gone(&self, me: Place, file: &str, who: &str, why: &str) -> Fault {
        let (component, rank) = (self.plan.component().to_owned(), me.rank);
        let why = if why.starts_with(' ') { why.to_owned() } else { format!(": {why}") };
        Fault::Gone { component, rank, file: file.to_owned(), who: who.to_owned(), why }
    }

    fn rule(&self, name: &str, role: Role) -> Result<&Rule, Fault> {
        let found = self.plan.rule(name);
        let found = found.filter(|_| self.plan.role(name, role == Role::Writer) == Some(role));
        found.ok_or_else(|| Fault::NotCoupled {
            file: name.to_owned(),
            what: if role == Role::Writer { "written" } else { "read" },
            component: self.plan.component().to_owned(),
        })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if std::process::id() == self.pid {
            self.shared.lock().ending = true;
            self.shared.wake();
            let _ = std::fs::remove_file(&self.socket);
        }
    }
}

/// Listens at a path of any length.
fn listen(path: &std::path::Path) -> std::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    if path.as_os_str().len() > SOCKET_PATH_MAX {
        let what =
            "the path of the meeting directory is too long for sockets; choose a shorter one";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
    }
    rustix::net::bind(&fd, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// What both sides call a file: a rule without `%` is about one file, however it is named; others are about files of the names that
/// programs give.
fn stream_name(rule: &Rule, name: &str) -> String {
    let pattern = rule.name.as_str();
    if !pattern.contains('%') {
        return pattern.to_owned();
    }
    let name = without_system(name);
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let root = if name.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// MPI-IO's names may begin with a file system's.
fn without_system(name: &str) -> &str {
    match name.split_once(':') {
        Some((system, rest)) if system.len() > 1 && system.chars().all(char::is_alphanumeric) => {
            rest
        }
        _ => name,
    }
}

/// Whether two names can be one file's: the shorter one is the end of the longer one, without what leads to other directories.
fn same_file(one: &str, other: &str) -> bool {
    fn parts(name: &str) -> impl Iterator<Item = &str> {
        let name = without_system(name);
        name.rsplit('/').filter(|part| !matches!(*part, "" | ".")).take_while(|part| *part != "..")
    }
    parts(one).zip(parts(other)).all(|(one, other)| one == other)
}

/// A number for a file and who writes it.
///
/// # Source
/// FNV-1a.
fn stream(rule: &Rule, name: &str, writers: &[u16]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let writers = writers.iter().flat_map(|one| one.to_le_bytes());
    for byte in stream_name(rule, name).bytes().chain([0]).chain(writers) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_file_end_alike() {
        for (one, other, same) in [
            ("restart.nc", "./restart.nc", true),
            ("ufs:restart.nc", "restart.nc", true),
            ("../run/restart.nc", "/scratch/run//restart.nc", true),
            ("../run/restart.nc", "/scratch/other/restart.nc", false),
            ("1/restart.nc", "2/restart.nc", false),
            ("restart.nc", "restart.nc.old", false),
        ] {
            assert_eq!(same_file(one, other), same, "{one} {other}");
        }
    }
}
