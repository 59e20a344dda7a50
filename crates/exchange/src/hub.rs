//! What all threads of a process share: its lanes, its connections, and what lies in memory until it is fetched.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyperslab::Slab;
use matching::{Cycle, Handle, Place, Refusal};

use crate::lane::Lane;
use crate::link::{Inbound, Link, Out};
use crate::meeting::{Meeting, Watch};
use crate::memory::{Buffer, Piece, Target};
use crate::tally::Tallies;
use crate::wire::{Contact, Frame, Hello, LaneKey, ProcessId};
use crate::{Fault, Plan};

pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    wake: OwnedFd,
}

/// A read that is under way.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) target: Target,
    /// Values that did not fit.
    pub(crate) ranged: u64,
    pub(crate) done: Option<Result<(), Refusal>>,
}

/// Something that another process fetches.
#[derive(Debug)]
pub(crate) struct Pull {
    pub(crate) handle: Handle,
    pub(crate) to: ProcessId,
    pub(crate) lane: LaneKey,
    pub(crate) cycle: Cycle,
    pub(crate) wish: u32,
    pub(crate) part: Slab,
    /// Whether it lies in the program's memory.
    pub(crate) of_program: bool,
}

pub(crate) struct State {
    pub(crate) plan: Plan,
    pub(crate) meeting: Meeting,
    pub(crate) hello: Hello,
    pub(crate) node: String,
    pub(crate) lanes: HashMap<LaneKey, Lane>,
    /// Those that are over.
    pub(crate) past: HashSet<LaneKey>,
    /// What came before its lane.
    pub(crate) early: HashMap<LaneKey, Vec<Frame>>,
    pub(crate) pieces: HashMap<Handle, Piece>,
    pub(crate) wishes: HashMap<Handle, Wish>,
    pub(crate) pulls: HashMap<u64, Pull>,
    pub(crate) links: HashMap<ProcessId, Link>,
    pub(crate) inbound: Vec<Inbound>,
    /// Processes that cannot be reached any more; whether they took leave.
    pub(crate) gone: HashMap<ProcessId, bool>,
    pub(crate) lost: VecDeque<(ProcessId, bool)>,
    pub(crate) watch: Watch,
    pub(crate) tallies: Tallies,
    /// Numbers of handles and pulls.
    pub(crate) next: u64,
    pool: Vec<Buffer>,
    owned: usize,
    owned_max: usize,
    pub(crate) broken: Option<String>,
    pub(crate) ending: bool,
    pub(crate) unread: Vec<crate::Unread>,
    /// Nothing is fetched, all goes through connections.
    pub(crate) by_socket: bool,
}

impl Shared {
    pub(crate) fn new(
        plan: Plan,
        meeting: Meeting,
        hello: Hello,
        watch: Watch,
        wake: OwnedFd,
    ) -> Self {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        watch.add(&meeting.ended_directory());
        let state = State {
            plan,
            meeting,
            hello,
            node: boot.unwrap_or_default().trim().to_owned(),
            lanes: HashMap::new(),
            past: HashSet::new(),
            early: HashMap::new(),
            pieces: HashMap::new(),
            wishes: HashMap::new(),
            pulls: HashMap::new(),
            links: HashMap::new(),
            inbound: Vec::new(),
            gone: HashMap::new(),
            lost: VecDeque::new(),
            watch,
            tallies: Tallies::default(),
            next: 0,
            pool: Vec::new(),
            owned: 0,
            owned_max: 0,
            broken: None,
            ending: false,
            unread: Vec::new(),
            by_socket: std::env::var_os("SLUICE_COUPLE_COPY").is_some_and(|how| how == "socket"),
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), wake }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic the state says that it is broken.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the thread that there is something to send.
    pub(crate) fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    pub(crate) fn wake_fd(&self) -> &OwnedFd {
        &self.wake
    }

    /// Tells those who wait to look again.
    pub(crate) fn changed(&self) {
        self.changed.notify_all();
    }

    /// Waits until `ready` has an answer; none if that takes too long.
    pub(crate) fn wait<T>(
        &self,
        until: Instant,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let mut state = self.lock();
        loop {
            if let Some(what) = &state.broken {
                return Err(Fault::Broken { what: what.clone() });
            }
            if let Some(found) = ready(&mut state) {
                return Ok(Some(found));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let waited = self.changed.wait_timeout(state, left.min(Duration::from_secs(1)));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// How this process is reached.
    pub(crate) fn contact(&self, socket: &str) -> Contact {
        let process = self.hello.process;
        Contact { process, node: self.node.clone(), socket: socket.to_owned() }
    }

    pub(crate) fn link(&mut self, contact: &Contact) -> &mut Link {
        let hello = self.hello;
        self.links.entry(contact.process).or_insert_with(|| Link::new(contact, hello))
    }

    /// Sends to a rank of a lane; to nobody if it is gone.
    pub(crate) fn send(&mut self, key: LaneKey, to: Place, frame: &Frame) {
        let Some(lane) = self.lanes.get(&key) else { return };
        let Some(contact) = lane.contact(to).cloned() else { return };
        if !self.gone.contains_key(&contact.process) {
            self.link(&contact).push(frame);
        }
    }

    /// Memory to copy something to.
    pub(crate) fn buffer(&mut self, bytes: usize) -> Buffer {
        self.owned += bytes;
        self.owned_max = self.owned_max.max(self.owned);
        let fits = |one: &Buffer| one.capacity() >= bytes && one.capacity() / 2 <= bytes + 4096;
        let best = (0..self.pool.len())
            .filter(|&n| fits(&self.pool[n]))
            .min_by_key(|&n| self.pool[n].capacity());
        match best {
            Some(number) => self.pool.swap_remove(number),
            None => Vec::with_capacity(bytes),
        }
    }

    /// Memory is used again, but not kept beyond what was needed at once: pages that were touched are dear.
    fn recycle(&mut self, mut buffer: Buffer) {
        self.owned = self.owned.saturating_sub(buffer.len());
        let kept: usize = self.pool.iter().map(Vec::capacity).sum();
        if kept + buffer.capacity() + self.owned <= self.owned_max {
            buffer.clear();
            self.pool.push(buffer);
        }
    }

    /// Lets go of a piece that nobody needs.
    pub(crate) fn release(&mut self, handle: Handle) {
        let over = |piece: &mut Piece| piece.lanes == 0 && piece.busy == 0;
        if self.pieces.get_mut(&handle).is_some_and(over)
            && let Some(buffer) = self.pieces.remove(&handle).and_then(Piece::into_buffer)
        {
            self.recycle(buffer);
        }
    }

    /// A piece is not being fetched, or waiting to be sent, once more.
    pub(crate) fn not_busy(&mut self, handle: Handle) {
        if let Some(piece) = self.pieces.get_mut(&handle) {
            piece.busy = piece.busy.saturating_sub(1);
        }
        self.release(handle);
    }

    /// A lane does not need a piece any more.
    pub(crate) fn not_wanted(&mut self, handle: Handle) {
        if let Some(piece) = self.pieces.get_mut(&handle) {
            piece.lanes = piece.lanes.saturating_sub(1);
        }
        self.release(handle);
    }

    /// Bytes of our own memory in which something waits to be read.
    pub(crate) fn kept(&self) -> usize {
        self.owned
    }

    /// A fetch has come to its end.
    pub(crate) fn pulled(&mut self, number: u64) -> Option<Pull> {
        let pull = self.pulls.remove(&number)?;
        if let Some(lane) = self.lanes.get_mut(&pull.lane) {
            lane.pulls = lane.pulls.saturating_sub(1);
        }
        Some(pull)
    }

    /// Whatever waits to be sent to a process, or is fetched by it, is not needed.
    pub(crate) fn forget(&mut self, process: &ProcessId) {
        let out = self.links.get_mut(process).map(|link| {
            link.broken = true;
            link.fd = None;
            std::mem::take(&mut link.out)
        });
        for one in out.into_iter().flatten() {
            if let Out::Piece { handle, .. } = one {
                self.not_busy(handle);
            }
        }
        let numbers: Vec<u64> =
            self.pulls.iter().filter(|(_, pull)| pull.to == *process).map(|(n, _)| *n).collect();
        for number in numbers {
            if let Some(pull) = self.pulled(number) {
                self.not_busy(pull.handle);
            }
        }
    }
}
