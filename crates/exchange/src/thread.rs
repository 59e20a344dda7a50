//! The thread that serves the others while the program computes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use matching::Handle;
use rustix::event::{PollFd, PollFlags, poll};

use crate::hub::{Shared, State};
use crate::lane::FILE;
use crate::link::{Inbound, Work};
use crate::meeting::LOOK;
use crate::memory::{Walk, fetch, probe};
use crate::wire::{Frame, LaneKey, Parcel, ProcessId};

/// Bytes that are moved before others have their turn.
const TURN_BYTES: u64 = 4 << 20;
/// Values that are gathered at once for a connection.
const GATHERED_BYTES: u64 = 1 << 20;
/// How often it is written down what was carried.
const TOLD: Duration = Duration::from_millis(250);

/// Starts it; `listener` is where other processes connect.
pub(crate) fn start(shared: Arc<Shared>, listener: OwnedFd) -> std::io::Result<()> {
    let name = "sluice-couple".to_owned();
    let run = move || {
        let served = catch_unwind(AssertUnwindSafe(|| serve(&shared, &listener)));
        if served.is_err() {
            let mut state = shared.lock();
            state
                .broken
                .get_or_insert("its thread has failed; this is a mistake in Sluice".to_owned());
            state.links.clear();
            state.inbound.clear();
        }
        shared.changed();
    };
    let before = block_signals();
    let started = std::thread::Builder::new().name(name).spawn(run);
    restore_signals(before);
    started.map(drop)
}

/// A thread that the program knows nothing of must not handle its signals.
fn block_signals() -> Option<libc::sigset_t> {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset(3) fills the set; pthread_sigmask(3) reads it and fills the other.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        let done = libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        (done == 0).then(|| before.assume_init())
    }
}

fn restore_signals(before: Option<libc::sigset_t>) {
    if let Some(before) = before {
        // SAFETY: the set that pthread_sigmask(3) has filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    }
}

fn serve(shared: &Shared, listener: &OwnedFd) {
    let mut looked = Instant::now();
    let mut told = Instant::now();
    loop {
        let (fds, time, waiting) = {
            let mut state = shared.lock();
            if state.ending && state.links.values().all(|link| link.out.is_empty() || link.broken) {
                state.tell();
                // Whoever is connected sees it now.
                state.links.clear();
                state.inbound.clear();
                state.broken.get_or_insert("the process has taken leave already".to_owned());
                drop(state);
                shared.changed();
                return;
            }
            let waiting = state.waits_for_ranks();
            (state.fds(shared, listener), state.patience(waiting), waiting)
        };
        // SAFETY: descriptors are closed by this thread alone (`links`, `inbound`), which is here.
        let borrow = |fd: RawFd| unsafe { BorrowedFd::borrow_raw(fd) };
        let mut polled: Vec<PollFd<'_>> =
            fds.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(borrow(*fd), *flags)).collect();
        let time = time.and_then(|time| rustix::time::Timespec::try_from(time).ok());
        let _ = poll(&mut polled, time.as_ref());
        let noticed = polled[2].revents().contains(PollFlags::IN);
        drop(polled);

        let mut number = [0u8; 8];
        let _ = rustix::io::read(shared.wake_fd(), &mut number);
        let mut state = shared.lock();
        state.accept(listener);
        if noticed {
            state.watch.clear();
        }
        if noticed || (waiting && looked.elapsed() >= LOOK) {
            looked = Instant::now();
            state.look();
        }
        state.take_in();
        state.settle_losses();
        state.give_out();
        state.settle_losses();
        state.tidy();
        if state.tallies.dirty && told.elapsed() >= TOLD {
            told = Instant::now();
            state.tell();
        }
        drop(state);
        shared.changed();
    }
}

impl State {
    /// What is waited for: first what wakes the thread, then the listener, then the directory.
    fn fds(&self, shared: &Shared, listener: &OwnedFd) -> Vec<(RawFd, PollFlags)> {
        use std::os::fd::AsRawFd as _;
        let mut list = vec![
            (shared.wake_fd().as_raw_fd(), PollFlags::IN),
            (listener.as_raw_fd(), PollFlags::IN),
            (self.watch.fd().as_raw_fd(), PollFlags::IN),
        ];
        list.extend(self.inbound.iter().map(|one| (one.fd.as_raw_fd(), PollFlags::IN)));
        for link in self.links.values() {
            if let Some(fd) = &link.fd {
                let out = if link.out.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
                list.push((fd.as_raw_fd(), PollFlags::IN | out));
            }
        }
        list
    }

    /// How long nothing need be done if nothing comes; none: for ever.
    fn patience(&self, waiting: bool) -> Option<Duration> {
        let pulls = self.inbound.iter().any(|one| matches!(one.work, Work::Pull { .. }));
        let dials = self.links.values().any(|link| link.fd.is_none() && !link.broken);
        match () {
            () if pulls || !self.lost.is_empty() => Some(Duration::ZERO),
            () if dials => Some(Duration::from_millis(10)),
            () if waiting || self.tallies.dirty => Some(LOOK.min(TOLD)),
            () => None,
        }
    }

    fn waits_for_ranks(&self) -> bool {
        let waits = |lane: &crate::lane::Lane| {
            lane.writes
                && lane.leads()
                && lane.abandoned.is_none()
                && !lane.is_full()
                && !lane.is_file
        };
        self.lanes.values().any(waits)
    }

    fn accept(&mut self, listener: &OwnedFd) {
        let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
        while let Ok(fd) = rustix::net::accept_with(listener, flags) {
            // The directory is nobody else's; where it is, this tells them apart.
            let own = rustix::process::geteuid();
            let known = rustix::net::sockopt::socket_peercred(fd.as_fd());
            if known.is_ok_and(|peer| peer.uid == own || peer.uid.is_root()) {
                self.inbound.push(Inbound::new(fd));
            }
        }
    }

    /// Receives, and does what was received.
    fn take_in(&mut self) {
        // So that frames can use everything else meanwhile.
        let mut all = std::mem::take(&mut self.inbound);
        for one in &mut all {
            if matches!(one.work, Work::None | Work::Values { .. }) {
                one.receive();
            }
            self.work(one);
        }
        all.retain(|one| {
            let over = one.ended && !matches!(one.work, Work::Pull { .. });
            if let (true, Some(peer)) = (over, &one.peer) {
                self.lost.push_back((peer.process, one.bye));
            }
            !over
        });
        all.append(&mut self.inbound);
        self.inbound = all;
    }

    fn work(&mut self, from: &mut Inbound) {
        loop {
            match std::mem::replace(&mut from.work, Work::None) {
                Work::None => {
                    let Some(frame) = from.next() else { return };
                    self.framed(from, frame);
                }
                Work::Values { parcel, done, left } => {
                    if !self.take_values(from, parcel, done, left) {
                        return;
                    }
                }
                Work::Pull { number, parcel, address, walk, done } => {
                    from.work = self.take_pull(from, number, parcel, (address, walk), done);
                    if matches!(from.work, Work::Pull { .. }) {
                        return;
                    }
                }
            }
        }
    }

    fn framed(&mut self, from: &mut Inbound, frame: Frame) {
        match frame {
            Frame::Hello(hello) => from.peer = Some(hello),
            // Strangers say who they are first.
            _ if from.peer.is_none() => from.ended = true,
            Frame::Bye => from.bye = true,
            Frame::Values(parcel, bytes) => {
                from.work = Work::Values { parcel, done: 0, left: bytes };
            }
            Frame::Offer(number, parcel, source) => {
                let readable = match (from.readable, from.peer) {
                    (Some(known), _) => known,
                    (None, Some(peer)) => probe(peer.pid, peer.probe_at, &peer.probe),
                    (None, None) => false,
                };
                let readable = readable && !self.by_socket;
                from.readable = Some(readable);
                if !readable || !from.pull(number, parcel, &source) {
                    self.reply(from, &Frame::Deny(number));
                }
            }
            Frame::Pulled(numbers) => {
                for number in numbers {
                    if let Some(pull) = self.pulled(number) {
                        self.not_busy(pull.handle);
                    }
                }
            }
            Frame::Deny(number) => self.denied(number),
            other => self.frame(other),
        }
    }

    /// Says something to the process that has said something.
    fn reply(&mut self, from: &Inbound, frame: &Frame) {
        let Some(peer) = from.peer else { return };
        if let Some(link) = self.links.get_mut(&peer.process) {
            link.push(frame);
            return;
        }
        let lanes = self.lanes.values();
        let of = |lane: &crate::lane::Lane| {
            lane.place_of(&peer.process).and_then(|place| lane.contact(place)).cloned()
        };
        let contact = lanes.filter_map(of).next();
        if let Some(contact) = contact.filter(|one| !self.gone.contains_key(&one.process)) {
            self.link(&contact).push(frame);
        }
    }

    /// What was offered goes through the connection instead, and all else to that process.
    fn denied(&mut self, number: u64) {
        let Some(pull) = self.pulled(number) else { return };
        if let Some(link) = self.links.get_mut(&pull.to) {
            link.denied = true;
        }
        let place = self.lanes.get(&pull.lane).and_then(|lane| lane.place_of(&pull.to));
        if let Some(place) = place {
            self.values(pull.lane, place, (pull.cycle, pull.wish), pull.part, pull.handle);
        }
        self.not_busy(pull.handle);
    }

    /// A frame that is about a lane.
    pub(crate) fn frame(&mut self, frame: Frame) {
        let key = match &frame {
            Frame::Note(key, ..)
            | Frame::Finished(key, ..)
            | Frame::Roster(key, ..)
            | Frame::Gone(key, _)
            | Frame::Left(key, _) => *key,
            _ => return,
        };
        if self.past.contains(&key) {
            return;
        }
        let Some(lane) = self.lanes.get_mut(&key) else {
            self.early.entry(key).or_default().push(frame);
            return;
        };
        let Some(node) = &mut lane.node else {
            match frame {
                Frame::Roster(_, component, contacts) => self.know(key, component, contacts),
                Frame::Finished(_, who, cycle, records) => {
                    self.has_finished(key, who, cycle, records);
                }
                other => lane.held.push(other),
            }
            return;
        };
        match frame {
            Frame::Note(_, from, message) => {
                node.receive(from, message);
                self.feed(key);
            }
            Frame::Finished(_, who, cycle, records) => self.has_finished(key, who, cycle, records),
            Frame::Gone(_, place) => self.lose(key, place, false),
            Frame::Left(_, place) => {
                node.lost(place);
                self.feed(key);
            }
            // What is known already, or is nobody's business here.
            _ => {}
        }
    }

    /// Where the values of a parcel belong, if anybody still wants them.
    fn destination(&mut self, parcel: &Parcel) -> Option<matching::Arrival> {
        let node = self.lanes.get_mut(&parcel.lane)?.node.as_mut()?;
        let arrival = node.destination(FILE, parcel.cycle, parcel.wish, &parcel.part)?;
        self.wishes.contains_key(&arrival.handle).then_some(arrival)
    }

    /// All values of a parcel are in their place.
    fn arrived(&mut self, parcel: &Parcel) {
        let bytes = parcel.part.elements() as u64 * u64::from(parcel.size);
        let (key, cycle, wish) = (parcel.lane, parcel.cycle, parcel.wish);
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if let Some(node) = &mut lane.node {
            node.arrived(FILE, cycle, wish, &parcel.part);
        }
        let name = lane.name.clone();
        let other: Vec<&str> = lane.writers.iter().map(|(one, _)| self.plan.name(*one)).collect();
        let other = other.join(", ");
        self.tallies.of(&name, false, &other).bytes += bytes;
        self.pump(key);
    }

    /// Puts received values where they belong; false if more have to be received.
    fn take_values(&mut self, from: &mut Inbound, parcel: Parcel, done: u64, left: u64) -> bool {
        let size = usize::from(parcel.size).max(1);
        let have = (from.bytes().len() as u64).min(left);
        let whole = (have / size as u64).min(TURN_BYTES);
        let bytes = whole as usize * size;
        if let Some(arrival) = self.destination(&parcel) {
            let walk = Walk::destinations(&arrival.copies);
            let elements = parcel.part.elements() as u64;
            if let Some(wish) = self.wishes.get_mut(&arrival.handle)
                && done + whole <= elements
            {
                let values = &from.bytes()[..bytes];
                wish.ranged += wish.target.scatter(&walk, &arrival.conversion, done, values, size);
            }
        }
        from.used += bytes;
        let left = left - bytes as u64;
        if left > 0 {
            // Less than a value at the end of a stream is nothing.
            let more = !from.ended;
            from.work = Work::Values { parcel, done: done + whole, left };
            return more && whole > 0;
        }
        self.arrived(&parcel);
        true
    }

    /// Fetches some of an offer.
    fn take_pull(
        &mut self,
        from: &Inbound,
        number: u64,
        parcel: Parcel,
        (address, walk): (u64, Walk),
        done: u64,
    ) -> Work {
        let elements = parcel.part.elements() as u64;
        let size = usize::from(parcel.size).max(1);
        let pid = from.peer.map_or(0, |peer| peer.pid);
        let until = (done + TURN_BYTES / size as u64).min(elements);
        let mut now = done;
        let Some(arrival) = self.destination(&parcel) else {
            self.reply(from, &Frame::Pulled(vec![number]));
            return Work::None;
        };
        let to = Walk::destinations(&arrival.copies);
        let straight = arrival.conversion.is_plain() && to.run() * size as u64 >= 64;
        let Some(wish) = self.wishes.get_mut(&arrival.handle) else { return Work::None };
        let mut values = Vec::new();
        while now < until {
            let fetched = if straight {
                wish.target.pull(pid, (address, &walk), &to, (now, until))
            } else {
                let end = (now + (1 << 18) / size as u64).min(until);
                let fetched = fetch(pid, (address, &walk), (now, end), size, &mut values);
                if fetched.is_ok() {
                    let target = &mut wish.target;
                    wish.ranged += target.scatter(&to, &arrival.conversion, now, &values, size);
                }
                fetched
            };
            match fetched {
                Ok(some) => now += some,
                // The other process sends them, or is gone, which is noticed by its connection.
                Err(_) => {
                    self.reply(from, &Frame::Deny(number));
                    return Work::None;
                }
            }
        }
        if now < elements {
            return Work::Pull { number, parcel, address, walk, done: now };
        }
        // Another process may have got the number of one that has ended: then this was not its memory.
        let same = from.peer.is_some_and(|peer| probe(peer.pid, peer.probe_at, &peer.probe));
        if !same {
            self.reply(from, &Frame::Deny(number));
            return Work::None;
        }
        self.arrived(&parcel);
        self.reply(from, &Frame::Pulled(vec![number]));
        Work::None
    }

    /// Sends what can be sent, and notices who is gone.
    fn give_out(&mut self) {
        let processes: Vec<ProcessId> = self.links.keys().copied().collect();
        for process in processes {
            let Some(link) = self.links.get_mut(&process).filter(|link| !link.broken) else {
                continue;
            };
            let mut sent: Vec<Handle> = Vec::new();
            let pieces = &self.pieces;
            let result = link.send(|handle, part, done, bytes| {
                let Some(piece) = pieces.get(&handle) else { return (done, true) };
                let elements = part.elements() as u64;
                let end = (done + GATHERED_BYTES / piece.type_.size_bytes() as u64).min(elements);
                if let Some(walk) = piece.walk(part) {
                    piece.gather(&walk, done, end, bytes);
                }
                if end == elements {
                    sent.push(handle);
                }
                (end, end == elements)
            });
            let cut = result.is_err() || link.is_cut();
            for handle in sent {
                self.not_busy(handle);
            }
            if cut {
                self.forget(&process);
                // What it has said before is still to be heard, and perhaps that it took leave.
                let heard = |one: &Inbound| one.peer.is_some_and(|peer| peer.process == process);
                if !self.inbound.iter().any(heard) {
                    self.lost.push_back((process, false));
                }
            }
        }
    }

    /// Whoever cannot be reached is nowhere.
    fn settle_losses(&mut self) {
        while let Some((process, clean)) = self.lost.pop_front() {
            let news = self.gone.insert(process, clean).is_none();
            self.forget(&process);
            if !news {
                continue;
            }
            let lanes: Vec<(LaneKey, matching::Place)> = self
                .lanes
                .values()
                .filter_map(|lane| Some((lane.key, lane.place_of(&process)?)))
                .collect();
            for (key, place) in lanes {
                self.lose(key, place, clean);
            }
        }
    }

    /// Forgets lanes that are over.
    fn tidy(&mut self) {
        let over: Vec<LaneKey> = self
            .lanes
            .values()
            .filter(|lane| lane.writes && lane.closed && lane.is_done())
            .filter(|lane| {
                lane.abandoned.is_some() || lane.is_file || lane.said_closed || !lane.posts()
            })
            .map(|lane| lane.key)
            .collect();
        for key in over {
            if let Some(lane) = self.lanes.remove(&key) {
                self.forget_before(&lane);
            }
            self.early.remove(&key);
            self.past.insert(key);
        }
    }

    /// An opening that was read to its end proves that nobody needs the one before it.
    fn forget_before(&self, lane: &crate::lane::Lane) {
        if lane.is_file || lane.abandoned.is_some() || !lane.leads() {
            return;
        }
        let own = format!("w{}", lane.me.component.0);
        self.meeting.forget(lane.key, &[&own]);
        if lane.posts() {
            // Openings of a file are alike; what one had more of stays.
            for cycle in 0..=lane.posted {
                self.meeting.forget(lane.key, &[&format!("c{cycle}"), &format!("x{cycle}")]);
            }
        }
    }

    /// Writes down what was carried.
    pub(crate) fn tell(&mut self) {
        self.tallies.dirty = false;
        let name: String = self.hello.process.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = self.meeting.flow(&format!("{}.{name}", self.plan.number()));
        // Whoever looks on sees it a little later.
        let temporary = path.with_extension(format!("{name}.new"));
        if std::fs::write(&temporary, self.tallies.text()).is_ok() {
            let _ = std::fs::rename(&temporary, &path);
        }
    }
}

/// A descriptor that a thread can be woken by.
pub(crate) fn wakeable() -> std::io::Result<OwnedFd> {
    let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
    Ok(rustix::event::eventfd(0, flags)?)
}
