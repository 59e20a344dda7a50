//! Virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use hyperslab::{Memory, Slab};
use matching::{
    Action, Cycle, File, Flow, Handle, Load, Message, Node, Place, Recording, Request, Said,
    Variable,
};
use nctypes::Type;
use rustix::time::{ClockId, clock_gettime};

use crate::scenario::WRITER;
use crate::{Machine, Outcome, Scenario, ScenarioError, Tally};

const FILE: File = File(0);

/// Something arrives. Ordered by time, then by when it was sent.
struct Arrival {
    at: f64,
    number: u64,
    from: usize,
    to: usize,
    what: Packet,
}

enum Packet {
    Message(Message),
    /// Parts of wishes of a cycle, the bytes of all and the runs in which they are unpacked.
    Data {
        cycle: Cycle,
        parts: Vec<(u32, Slab)>,
        bytes: u64,
    },
}

/// What goes to one reader at once.
struct Parcel {
    cycle: Cycle,
    parts: Vec<(u32, Slab)>,
    bytes: u64,
    /// Runs of elements that are packed.
    runs: f64,
}

impl Parcel {
    fn new(cycle: Cycle) -> Self {
        Self { cycle, parts: Vec::new(), bytes: 0, runs: 0.0 }
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.total_cmp(&other.at).then(self.number.cmp(&other.number))
    }
}

/// A rank, and until when it and its link are busy.
struct Rank {
    node: Node,
    busy: f64,
    sending: f64,
    receiving: f64,
    load: Load,
    matched_s: f64,
    matched_virtual_ns: f64,
}

struct World<'a> {
    machine: &'a Machine,
    scenario: &'a Scenario,
    ranks: Vec<Rank>,
    under_way: BinaryHeap<Reverse<Arrival>>,
    sent: u64,
    control: Tally,
    data: Tally,
    flows: Vec<Flow>,
    read_ns: f64,
    written_ns: f64,
    /// Room for messages that are only measured.
    scratch: Vec<u8>,
}

impl Scenario {
    /// Plays it.
    ///
    /// # Errors
    /// A scenario that cannot be.
    pub fn run(&self, machine: &Machine) -> Result<Outcome, ScenarioError> {
        let coupling = Arc::new(self.coupling()?);
        let spec = &coupling.files[0];
        let rank = |place: &Place| Rank {
            node: Node::new(*place, coupling.clone()),
            busy: 0.0,
            sending: 0.0,
            receiving: 0.0,
            load: Load::default(),
            matched_s: 0.0,
            matched_virtual_ns: 0.0,
        };
        let mut world = World {
            machine,
            scenario: self,
            ranks: spec.writers.iter().chain(&spec.readers).map(rank).collect(),
            under_way: BinaryHeap::new(),
            sent: 0,
            control: Tally::default(),
            data: Tally::default(),
            flows: Vec::new(),
            read_ns: 0.0,
            written_ns: 0.0,
            scratch: Vec::new(),
        };
        let mut cycles_s = Vec::new();
        for _ in 0..self.cycles {
            let begin = world.now();
            world.cycle()?;
            cycles_s.push((world.now() - begin) / 1e9);
        }
        let matchers = spec.matching_places();
        let cycle = Cycle(self.cycles.saturating_sub(1));
        let flows = std::mem::take(&mut world.flows);
        let of = |rank: &Place| &world.ranks[world.index(*rank)];
        Ok(Outcome {
            control: world.control,
            data: world.data,
            loads: matchers.iter().map(|place| of(place).load).collect(),
            matched_s: matchers.iter().map(|place| of(place).matched_s).collect(),
            matched_virtual_s: matchers
                .iter()
                .map(|place| of(place).matched_virtual_ns / 1e9)
                .collect(),
            read_s: world.read_ns / 1e9,
            written_s: world.written_ns / 1e9,
            cycles_s,
            recording: Recording::new(&coupling, FILE, cycle, &self.variables, flows),
        })
    }
}

impl World<'_> {
    fn index(&self, place: Place) -> usize {
        let before = if place.component == WRITER { 0 } else { self.scenario.writes.len() };
        before + place.rank as usize
    }

    fn place(&self, index: usize) -> Place {
        self.ranks[index].node.place()
    }

    /// When everybody is done with all that is known.
    fn now(&self) -> f64 {
        self.ranks.iter().map(|rank| rank.busy.max(rank.sending)).fold(0.0, f64::max)
    }

    /// All ranks at the same moment ask for what is theirs; then whatever comes of it.
    fn cycle(&mut self) -> Result<(), ScenarioError> {
        let now = self.now();
        self.flows.clear();
        for index in 0..self.ranks.len() {
            self.ranks[index].busy = now;
            let rank = &mut self.ranks[index];
            let place = rank.node.place();
            let writes = place.component == WRITER;
            let list = if writes { &self.scenario.writes } else { &self.scenario.reads };
            let variables = self.scenario.variables.clone();
            let node = &mut rank.node;
            if writes {
                node.begin_writing(FILE)?;
                node.define_written(FILE, variables)?;
            } else {
                node.begin_reading(FILE)?;
                node.define_read(FILE, variables)?;
            }
            for (number, (variable, slab)) in list[place.rank as usize].iter().enumerate() {
                let type_ = self.scenario.variables.get(*variable as usize);
                let Ok(memory) = Memory::dense(slab) else { continue };
                let request = Request {
                    variable: Variable(*variable),
                    slab: slab.clone(),
                    memory,
                    type_: type_.map_or(Type::Double, |variable| variable.type_),
                    handle: Handle(number as u64),
                };
                match writes {
                    true => node.write(FILE, request)?,
                    false => node.read(FILE, request)?,
                }
            }
            match writes {
                true => node.finish_writing(FILE)?,
                false => node.finish_reading(FILE)?,
            }
            self.carry_out(index);
        }
        while let Some(Reverse(arrival)) = self.under_way.pop() {
            self.arrive(arrival);
        }
        Ok(())
    }

    fn arrive(&mut self, arrival: Arrival) {
        let Arrival { at, from, to, what, .. } = arrival;
        let from = self.place(from);
        let machine = self.machine;
        let rank = &mut self.ranks[to];
        rank.busy = rank.busy.max(at) + machine.message_ns;
        match what {
            Packet::Message(message) => {
                let batch = matches!(message.said, Said::Batch(_));
                let begin = processor_s();
                rank.node.receive(from, message);
                if batch {
                    rank.matched_s += processor_s() - begin;
                    rank.matched(machine);
                }
            }
            Packet::Data { cycle, parts, bytes } => {
                let mut runs = 0.0;
                for (wish, part) in parts {
                    if let Some(arrival) = rank.node.arrived(FILE, cycle, wish, &part) {
                        runs += arrival.copies.len() as f64;
                    }
                }
                rank.busy += bytes as f64 * machine.copy_byte_ns + runs * machine.run_ns;
            }
        }
        self.carry_out(to);
    }

    fn carry_out(&mut self, index: usize) {
        // What is told to be sent to one reader at once travels together.
        let mut together = BTreeMap::<Place, Parcel>::new();
        // A matcher may have had work of its own rank's calls.
        self.ranks[index].matched(self.machine);
        while let Some(action) = self.ranks[index].node.next_action() {
            let busy = self.ranks[index].busy;
            match action {
                Action::Send { to, message } => {
                    self.scratch.clear();
                    message.encode(&mut self.scratch);
                    let bytes = self.scratch.len() as u64;
                    if let Said::Closed = message.said {
                        // Data goes before what is said after it.
                        self.send_data(index, std::mem::take(&mut together));
                    }
                    self.control.messages += 1;
                    self.control.bytes += bytes;
                    self.send(index, to, bytes, Packet::Message(message));
                }
                Action::Copy(copy) => {
                    let variable = self.variable(self.place(index), copy.handle);
                    let size = self.scenario.variables[variable as usize].type_.size_bytes();
                    let bytes = copy.part.elements() as u64 * size as u64;
                    self.flows.push(Flow {
                        from: self.place(index),
                        to: copy.to,
                        variable: Variable(variable),
                        part: copy.part.clone(),
                    });
                    let parcel = together.entry(copy.to).or_insert_with(|| Parcel::new(copy.cycle));
                    parcel.parts.push((copy.wish, copy.part));
                    parcel.bytes += bytes;
                    parcel.runs += copy.copies.len() as f64;
                }
                Action::Read { .. } => self.read_ns = self.read_ns.max(busy),
                Action::Released { .. } => {
                    self.send_data(index, std::mem::take(&mut together));
                    self.written_ns = self.written_ns.max(self.ranks[index].busy);
                }
                Action::Begun { .. }
                | Action::Fill(_)
                | Action::Complete { .. }
                | Action::Failed { .. } => {}
            }
        }
        self.send_data(index, together);
    }

    fn send_data(&mut self, index: usize, together: BTreeMap<Place, Parcel>) {
        for (to, Parcel { cycle, parts, bytes, runs }) in together {
            let machine = self.machine;
            self.ranks[index].busy += bytes as f64 * machine.copy_byte_ns + runs * machine.run_ns;
            self.data.messages += 1;
            self.data.bytes += bytes;
            self.send(index, to, bytes, Packet::Data { cycle, parts, bytes });
        }
    }

    fn variable(&self, owner: Place, handle: Handle) -> u32 {
        self.scenario.writes[owner.rank as usize][handle.0 as usize].0
    }

    fn send(&mut self, from: usize, to: Place, bytes: u64, what: Packet) {
        let machine = self.machine;
        let sender = &mut self.ranks[from];
        sender.busy += machine.message_ns;
        let to = self.index(to);
        let (mut at, time) = (self.ranks[from].busy, bytes as f64 * machine.byte_ns);
        if from != to {
            let begin = at.max(self.ranks[from].sending);
            self.ranks[from].sending = begin + time;
            // The receiver's link is taken while the bytes come in, which they do as they go out.
            let begin = (begin + machine.latency_ns).max(self.ranks[to].receiving);
            self.ranks[to].receiving = begin + time;
            at = begin + time;
        }
        self.sent += 1;
        let arrival = Arrival { at, number: self.sent, from, to, what };
        self.under_way.push(Reverse(arrival));
    }
}

/// How long this thread has been running: what else the machine does is not counted.
fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Rank {
    /// Charges the matching that was done since it was asked last.
    fn matched(&mut self, machine: &Machine) {
        let load = self.node.load();
        let grown = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let cost = grown(load.compared, self.load.compared) * machine.compare_ns
            + grown(load.requests(), self.load.requests()) * machine.request_ns
            + grown(load.pairs, self.load.pairs) * machine.pair_ns;
        self.load = load;
        self.busy += cost;
        self.matched_virtual_ns += cost;
    }
}
