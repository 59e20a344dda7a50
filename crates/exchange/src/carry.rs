//! Nodes are driven: they are told what happened, and what they answer is done.

use hyperslab::Memory;
use matching::{Action, Component, Copy, Cycle, Fill, Handle, Place, Request};
use nctypes::Format;

use crate::hub::{Pull, State};
use crate::lane::{Call, FILE, Finishing, Lane, Now};
use crate::link::Out;
use crate::memory::{Piece, Walk};
use crate::wire::{Frame, LaneKey, Parcel, Post};

/// Below this it is quicker to send bytes than to send word of them.
const INLINE_BYTES: u64 = 4096;
/// Pieces of memory that are smaller are gathered by those who have them.
const FRAGMENT_BYTES: u64 = 256;

impl State {
    /// Does what the node of a lane says, until it has nothing to say.
    pub(crate) fn pump(&mut self, key: LaneKey) {
        while let Some(lane) = self.lanes.get_mut(&key) {
            let me = lane.me;
            let Some(node) = &mut lane.node else { return };
            let Some(action) = node.next_action() else { return };
            match action {
                Action::Send { to, message } if to == me => node.receive(me, message),
                Action::Send { to, message } => {
                    self.send(key, to, &Frame::Note(key, me, message));
                }
                Action::Begun { cycle, .. } => lane.now = cycle.map_or(Now::Dropped, Now::Writing),
                Action::Copy(copy) => self.copy(key, copy),
                Action::Fill(fill) => self.fill(&fill),
                Action::Complete { handle } => self.answer(handle, Ok(())),
                Action::Failed { handle, refusal } => self.answer(handle, Err(refusal)),
                Action::Released { handles, .. } => {
                    lane.released += 1;
                    for handle in handles {
                        self.not_wanted(handle);
                    }
                }
                Action::Read { .. } => {}
            }
        }
    }

    fn answer(&mut self, handle: Handle, answer: Result<(), matching::Refusal>) {
        if let Some(wish) = self.wishes.get_mut(&handle) {
            wish.done.get_or_insert(answer);
        }
    }

    fn fill(&mut self, fill: &Fill) {
        if let Some(wish) = self.wishes.get_mut(&fill.handle) {
            let walk = Walk::destinations(&fill.copies);
            wish.ranged += wish.target.fill(&walk, elements(fill), &fill.value, &fill.conversion);
        }
    }

    /// Sends a part of something written, or word where it can be fetched.
    fn copy(&mut self, key: LaneKey, copy: Copy) {
        let Copy { to, cycle, wish, part, handle, .. } = copy;
        let Some(lane) = self.lanes.get(&key) else { return };
        let Some(contact) = lane.contact(to).cloned() else { return };
        let (name, other) = (lane.name.clone(), self.plan.name(key.reader).to_owned());
        if self.gone.contains_key(&contact.process) {
            return;
        }
        let Some(piece) = self.pieces.get(&handle) else { return };
        let Some(walk) = piece.walk(&part) else { return };
        let (elements, size) = (part.elements() as u64, piece.type_.size_bytes());
        let bytes = elements * size as u64;
        self.tallies.of(&name, true, &other).bytes += bytes;
        let same_node = contact.node == self.node && !self.by_socket;
        let fetched = same_node && bytes >= INLINE_BYTES && !self.link(&contact).denied;
        if !fetched {
            self.values(key, to, (cycle, wish), part, handle);
            return;
        }
        let fragments = walk.run() * (size as u64) < FRAGMENT_BYTES;
        let handle = if fragments { self.gathered(handle, &walk, &part) } else { handle };
        let number = self.number();
        let Some(piece) = self.pieces.get_mut(&handle) else { return };
        piece.busy += 1;
        let Some(walk) = piece.walk(&part) else { return };
        let (source, of_program) = (piece.tell(&walk), piece.is_program());
        let parcel = Parcel { lane: key, cycle, wish, part: part.clone(), size: size as u8 };
        self.link(&contact).push(&Frame::Offer(number, parcel, source));
        let (to, lane) = (contact.process, key);
        self.pulls.insert(number, Pull { handle, to, lane, cycle, wish, part, of_program });
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.pulls += 1;
        }
    }

    /// A copy of a part that lies in small pieces.
    fn gathered(&mut self, handle: Handle, walk: &Walk, part: &hyperslab::Slab) -> Handle {
        let Some(piece) = self.pieces.get(&handle) else { return handle };
        let bytes = part.elements() as usize * piece.type_.size_bytes();
        let mut buffer = self.buffer(bytes);
        let Some(piece) = self.pieces.get(&handle) else { return handle };
        piece.gather(walk, 0, part.elements() as u64, &mut buffer);
        let Some(copy) = Piece::of_buffer(piece.variable, piece.type_, part.clone(), buffer) else {
            return handle;
        };
        let handle = Handle(self.number());
        self.pieces.insert(handle, copy);
        handle
    }

    /// Sends values through the connection.
    pub(crate) fn values(
        &mut self,
        key: LaneKey,
        to: Place,
        (cycle, wish): (Cycle, u32),
        part: hyperslab::Slab,
        handle: Handle,
    ) {
        let Some(contact) = self.lanes.get(&key).and_then(|lane| lane.contact(to)).cloned() else {
            return;
        };
        let Some(piece) = self.pieces.get_mut(&handle) else { return };
        piece.busy += 1;
        let size = piece.type_.size_bytes();
        let bytes = part.elements() as u64 * size as u64;
        let parcel = Parcel { lane: key, cycle, wish, part: part.clone(), size: size as u8 };
        let link = self.link(&contact);
        link.push(&Frame::Values(parcel, bytes));
        link.out.push_back(Out::Piece { handle, part, done: 0 });
    }

    /// Tells a writer's node what the program has called, as far as it can be told.
    pub(crate) fn feed(&mut self, key: LaneKey) {
        loop {
            self.pump(key);
            let Some(lane) = self.lanes.get_mut(&key).filter(|lane| lane.abandoned.is_none())
            else {
                return;
            };
            let Some(node) = &mut lane.node else { return };
            if lane.calls.is_empty() || lane.now == Now::Asking {
                return;
            }
            if lane.now == Now::Between {
                lane.now = Now::Asking;
                if node.begin_writing(FILE).is_err() {
                    return;
                }
                continue;
            }
            let (me, now) = (lane.me, lane.now);
            let Some(call) = lane.calls.pop_front() else { return };
            match call {
                Call::Define(defined) => {
                    let _ = node.define_written(FILE, defined.variables.clone());
                    lane.finishing.entry(lane.submitted_to_node).or_default().defined =
                        Some(defined);
                }
                Call::Synchronise => {
                    let _ = node.synchronise(FILE);
                }
                Call::Write(handle) => match (self.pieces.get(&handle), now) {
                    (Some(piece), Now::Writing(_)) => {
                        if let Some(request) = request(piece, handle) {
                            // It was checked when the program called.
                            let _ = node.write(FILE, request);
                        }
                    }
                    _ => self.not_wanted(handle),
                },
                Call::Finish { records } => {
                    let _ = node.finish_writing(FILE);
                    lane.now = Now::Between;
                    match now {
                        // Numbers are those of cycles that were not dropped.
                        Now::Writing(cycle) => {
                            lane.submitted_to_node = cycle.0 + 1;
                            self.finished(key, me, cycle, records);
                        }
                        _ => lane.released += 1,
                    }
                }
            }
        }
    }

    /// This rank has finished a cycle: readers are told when all have.
    pub(crate) fn finished(&mut self, key: LaneKey, me: Place, cycle: Cycle, records: u64) {
        let Some(poster) = self.lanes.get(&key).map(Lane::poster) else { return };
        if poster == me {
            self.has_finished(key, me, cycle, records);
        } else {
            self.send(key, poster, &Frame::Finished(key, me, cycle, records));
        }
    }

    /// At the rank that tells the readers: a rank has finished a cycle.
    pub(crate) fn has_finished(&mut self, key: LaneKey, who: Place, cycle: Cycle, records: u64) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let one: &mut Finishing = lane.finishing.entry(cycle.0).or_default();
        one.places.insert(who);
        one.records = one.records.max(records);
        self.post(key);
    }

    /// Leaves the headers of cycles that all have finished.
    pub(crate) fn post(&mut self, key: LaneKey) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if lane.is_file {
            let own = lane.me.component.0;
            let all = lane.roster(own).map_or(usize::MAX, Vec::len);
            if lane.finishing.get(&0).is_some_and(|one| one.places.len() == all) {
                lane.finishing.clear();
                lane.released = lane.submitted;
                self.put(key, &format!("d{own}"), b"");
            }
            return;
        }
        if !lane.posts() || !lane.is_full() {
            return;
        }
        let all = lane.writing_places().len();
        let mut posts = Vec::new();
        while let Some(one) = lane.finishing.get(&lane.posted).filter(|one| one.places.len() == all)
        {
            let Some(defined) = one.defined.clone() else { break };
            posts.push((lane.posted, defined, one.records));
            lane.finishing.remove(&lane.posted);
            // A cycle that is not defined anew is as the one before.
            lane.posted += 1;
            let next = lane.finishing.entry(lane.posted).or_default();
            next.defined.get_or_insert(posts[posts.len() - 1].1.clone());
        }
        let end = lane.closed && lane.calls.is_empty() && lane.now == Now::Between;
        let end = end && !lane.said_closed && lane.posted >= lane.submitted_to_node;
        let (next, name) = (lane.posted, lane.name.clone());
        lane.said_closed |= end;
        for (cycle, defined, records) in posts {
            let (header, variables) = (defined.header.clone(), defined.variables.clone());
            let (name, format) = (name.clone(), defined.format);
            let post = Post { name, header, format, variables, records };
            self.put(key, &format!("c{cycle}"), &post.encode());
        }
        if end {
            let who = self.plan.component().to_owned();
            let why = format!("{who} has closed `{name}` after {next} cycles");
            self.put(key, &format!("x{next}"), why.as_bytes());
        }
    }

    /// Leaves something in the directory; who waits for it in vain is told by the time that it takes.
    pub(crate) fn put(&mut self, key: LaneKey, end: &str, bytes: &[u8]) {
        if let Err(fault) = self.meeting.put(key, end, bytes) {
            self.broken.get_or_insert(fault.report());
        }
    }

    /// Makes the node of a lane whose ranks are all known.
    pub(crate) fn start(&mut self, key: LaneKey, format: Format) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if lane.node.is_some() || lane.is_file || !lane.is_full() {
            return;
        }
        lane.start(format);
        let first =
            if lane.posts() { lane.readers.as_ref().and_then(|all| all.first()) } else { None };
        let first = first.cloned().filter(|one| !self.gone.contains_key(&one.process));
        if let Some(first) = first {
            // So that it is noticed if they end before they say anything.
            self.link(&first);
        }
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let held = std::mem::take(&mut lane.held);
        let places: Vec<Place> =
            lane.writing_places().into_iter().chain(lane.reading_places()).collect();
        for place in places {
            let process = self.lanes.get(&key).and_then(|lane| Some(lane.contact(place)?.process));
            if let Some(&clean) = process.and_then(|process| self.gone.get(&process)) {
                self.lose(key, place, clean);
            }
        }
        for frame in held {
            self.frame(frame);
        }
        self.feed(key);
    }

    /// A rank of a lane is gone.
    pub(crate) fn lose(&mut self, key: LaneKey, place: Place, clean: bool) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        let writer = lane.is_writer(place);
        // Who takes leave has delivered everything.
        if writer && clean {
            return;
        }
        if let Some(node) = &mut lane.node {
            node.lost(place);
        }
        if writer && !lane.writes {
            lane.lost.get_or_insert(place);
        }
        let (me, posts) = (lane.me, lane.posts() && !lane.said_closed);
        let (cycle, who) = (lane.posted, lane.describe(place));
        let readers = lane.reading_places();
        if writer && lane.writes {
            for reader in readers.into_iter().filter(|reader| *reader != me) {
                self.send(key, reader, &Frame::Gone(key, place));
            }
            if posts {
                let why = format!("{who} has ended before it had finished it");
                self.put(key, &format!("x{cycle}"), why.as_bytes());
                if let Some(lane) = self.lanes.get_mut(&key) {
                    lane.said_closed = true;
                }
            }
        }
        self.feed(key);
    }

    /// Nobody will read what is written to a lane.
    pub(crate) fn abandon(&mut self, key: LaneKey, why: &str) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if lane.abandoned.is_some() {
            return;
        }
        lane.abandoned = Some(why.to_owned());
        let unread = lane.submitted > lane.released && !lane.is_file;
        let (file, opening) = (lane.name.clone(), key.opening);
        let calls = std::mem::take(&mut lane.calls);
        if unread {
            self.unread.push(crate::Unread { file, opening, why: why.to_owned() });
        }
        for call in calls {
            if let Call::Write(handle) = call {
                self.not_wanted(handle);
            }
        }
        // What its node has is released by it.
        let readers = self.lanes.get(&key).map(Lane::reading_places).unwrap_or_default();
        for place in readers {
            if let Some(node) = self.lanes.get_mut(&key).and_then(|lane| lane.node.as_mut()) {
                node.lost(place);
            }
        }
        self.pump(key);
    }

    /// Ranks of a component have become known.
    pub(crate) fn know(
        &mut self,
        key: LaneKey,
        component: u16,
        contacts: Vec<crate::wire::Contact>,
    ) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if contacts.is_empty() {
            let why = format!("{} has ended", self.plan.name(component));
            self.abandon(key, &why);
            return;
        }
        lane.set_roster(component, contacts);
        self.start(key, Format::Data64);
        self.post(key);
    }

    /// Looks for ranks that other ranks of this group wait for as well.
    pub(crate) fn look(&mut self) {
        let waiting: Vec<LaneKey> = self
            .lanes
            .values()
            .filter(|lane| lane.writes && lane.leads() && lane.abandoned.is_none())
            .filter(|lane| !lane.is_full() && !lane.is_file)
            .map(|lane| lane.key)
            .collect();
        for key in waiting {
            let Some(lane) = self.lanes.get(&key) else { continue };
            let mut missing: Vec<u16> = lane
                .writers
                .iter()
                .filter(|(_, list)| list.is_none())
                .map(|(one, _)| *one)
                .collect();
            if lane.readers.is_none() {
                missing.push(key.reader);
            }
            let (own, me) = (lane.me.component.0, lane.me);
            for component in missing {
                let end = match component == key.reader {
                    true => "r".to_owned(),
                    false => format!("w{component}"),
                };
                // Whoever has ended may have left it just before.
                let ended = self.meeting.ended(component).is_some();
                let contacts = match self.meeting.roster(key, &end) {
                    Some(contacts) => contacts,
                    None if ended => Vec::new(),
                    None => continue,
                };
                let size = self.lanes.get(&key).and_then(|lane| Some(lane.roster(own)?.len()));
                for rank in (0..size.unwrap_or(0) as u32).filter(|rank| *rank != me.rank) {
                    let to = Place { component: Component(own), rank };
                    self.send(key, to, &Frame::Roster(key, component, contacts.clone()));
                }
                self.know(key, component, contacts);
            }
        }
    }
}

fn elements(fill: &Fill) -> u64 {
    let runs = u64::try_from(fill.copies.len()).unwrap_or(u64::MAX);
    runs.saturating_mul(fill.copies.first().length)
}

fn request(piece: &Piece, handle: Handle) -> Option<Request> {
    let (variable, slab, type_) = (piece.variable, piece.slab.clone(), piece.type_);
    // Where its elements lie is the piece's own business: it may be copied meanwhile.
    let memory = Memory::dense(&slab).ok()?;
    Some(Request { variable, slab, memory, type_, handle })
}
