//! Nodes on a network that delivers in any order between pairs, against arrays in one memory.

use std::collections::{BTreeMap, HashMap};

use hyperslab::Steps;
use nctypes::Format;
use proptest::prelude::*;
use proptest::test_runner::TestRng;

use super::*;
use crate::{Component, Distribution, FullQueue, Length};

/// What is under way between two places.
enum Packet {
    Message(Message),
    Values { file: File, cycle: Cycle, wish: u32, part: Slab, values: Vec<u8> },
}

/// All nodes, the network, and the memory of the programs.
struct World {
    nodes: BTreeMap<Place, Node>,
    network: BTreeMap<(Place, Place), VecDeque<Packet>>,
    memory: HashMap<Handle, Vec<u8>>,
    handles: u64,
    complete: Vec<Handle>,
    failed: HashMap<Handle, Refusal>,
    released: Vec<Handle>,
    begun: Vec<(Place, Option<Cycle>)>,
    read: Vec<(Place, Cycle)>,
    batches: u64,
}

const FILE: File = File(0);

impl World {
    fn new(coupling: Coupling) -> Self {
        coupling.check().unwrap();
        let coupling = Arc::new(coupling);
        let spec = &coupling.files[0];
        let places = spec.writers.iter().chain(&spec.readers);
        let nodes = places.map(|&place| (place, Node::new(place, coupling.clone()))).collect();
        Self {
            nodes,
            network: BTreeMap::new(),
            memory: HashMap::new(),
            handles: 0,
            complete: Vec::new(),
            failed: HashMap::new(),
            released: Vec::new(),
            begun: Vec::new(),
            read: Vec::new(),
            batches: 0,
        }
    }

    /// Calls a node, and does what it says.
    fn call<T>(&mut self, place: Place, work: impl FnOnce(&mut Node) -> T) -> T {
        let result = work(self.nodes.get_mut(&place).unwrap());
        while let Some(action) = self.nodes.get_mut(&place).unwrap().next_action() {
            self.act(place, action);
        }
        result
    }

    fn act(&mut self, place: Place, action: Action) {
        match action {
            Action::Send { to, message } => {
                self.batches += u64::from(matches!(message.said, Said::Batch(_)));
                // As it would travel.
                let mut bytes = Vec::new();
                message.encode(&mut bytes);
                let (message, rest) = Message::decode(&bytes).unwrap();
                assert!(rest.is_empty());
                self.network.entry((place, to)).or_default().push_back(Packet::Message(message));
            }
            Action::Copy(copy) => {
                let Copy { to, file, cycle, wish, part, handle, copies, conversion } = copy;
                let memory = &self.memory[&handle];
                // All memory of writers is of four bytes a value, and variables are, too.
                let mut gathered = vec![0; part.elements() as usize * 4];
                for run in copies.runs() {
                    let (from, to) = (run.source as usize * 4, run.destination as usize * 4);
                    let length = run.length as usize * 4;
                    gathered[to..to + length].copy_from_slice(&memory[from..from + length]);
                }
                let mut values = vec![0; gathered.len()];
                conversion.apply(&gathered, &mut values);
                let packet = Packet::Values { file, cycle, wish, part, values };
                self.network.entry((place, to)).or_default().push_back(packet);
            }
            Action::Fill(fill) => {
                let mut value = [0; 8];
                fill.conversion.apply(&fill.value[..4], &mut value);
                let memory = self.memory.get_mut(&fill.handle).unwrap();
                for run in fill.copies.runs() {
                    for at in
                        run.destination as usize..run.destination as usize + run.length as usize
                    {
                        memory[at * 8..at * 8 + 8].copy_from_slice(&value);
                    }
                }
            }
            Action::Begun { cycle, .. } => self.begun.push((place, cycle)),
            Action::Complete { handle } => {
                assert!(!self.failed.contains_key(&handle));
                self.complete.push(handle);
            }
            Action::Failed { handle, refusal } => {
                assert!(self.failed.insert(handle, refusal).is_none());
            }
            Action::Released { handles, .. } => self.released.extend(handles),
            Action::Read { cycle, .. } => self.read.push((place, cycle)),
        }
    }

    /// Delivers one packet; false if there is none.
    fn step(&mut self, rng: &mut TestRng) -> bool {
        let ways: Vec<(Place, Place)> = self.network.keys().copied().collect();
        let Some(&(from, to)) = ways.get(rng.random_range(0..ways.len().max(1))) else {
            return false;
        };
        let way = self.network.get_mut(&(from, to)).unwrap();
        let packet = way.pop_front().unwrap();
        if way.is_empty() {
            self.network.remove(&(from, to));
        }
        match packet {
            Packet::Message(message) => self.call(to, |node| node.receive(from, message)),
            Packet::Values { file, cycle, wish, part, values } => {
                let node = self.nodes.get_mut(&to).unwrap();
                if let Some(arrival) = node.arrived(file, cycle, wish, &part) {
                    let memory = self.memory.get_mut(&arrival.handle).unwrap();
                    let mut converted = vec![0; values.len() * 2];
                    arrival.conversion.apply(&values, &mut converted);
                    for run in arrival.copies.runs() {
                        let (from, to) = (run.source as usize * 8, run.destination as usize * 8);
                        let length = run.length as usize * 8;
                        memory[to..to + length].copy_from_slice(&converted[from..from + length]);
                    }
                }
                self.call(to, |_| ());
            }
        }
        true
    }

    fn handle(&mut self, bytes: Vec<u8>) -> Handle {
        self.handles += 1;
        self.memory.insert(Handle(self.handles), bytes);
        Handle(self.handles)
    }
}

fn places(component: u16, ranks: u32) -> Vec<Place> {
    (0..ranks).map(|rank| Place { component: Component(component), rank }).collect()
}

/// What one rank asks for: a variable, a slab, whether memory is turned round, whether it synchronises before.
type Asked = (u32, Slab, bool, bool);

/// A cycle of all ranks.
#[derive(Debug, Clone)]
struct Plan {
    writes: Vec<Vec<Asked>>,
    reads: Vec<Vec<Asked>>,
}

#[derive(Debug, Clone)]
struct Case {
    spec: FileSpec,
    variables: Vec<VariableSpec>,
    /// Which plan each cycle follows.
    cycles: Vec<usize>,
    plans: Vec<Plan>,
    flush: bool,
}

fn variable() -> impl Strategy<Value = VariableSpec> {
    let lengths = prop::collection::vec(1u64..6, 0..4);
    (lengths, any::<bool>(), any::<bool>()).prop_map(|(lengths, records, filled)| {
        let mut shape: Vec<Length> = lengths.into_iter().map(Length::Fixed).collect();
        if let (true, Some(first)) = (records, shape.first_mut()) {
            *first = Length::Records;
        }
        let fill = filled.then(|| Type::Int.fill());
        VariableSpec { name: "v".to_owned(), type_: Type::Int, shape, fill }
    })
}

/// A slab of one of the variables.
fn asked(variables: Vec<VariableSpec>) -> impl Strategy<Value = Asked> {
    let dimension = (any::<u64>(), any::<u64>(), 1u64..4);
    let dimensions = prop::collection::vec(dimension, 3);
    let flags = (any::<bool>(), prop::bool::weighted(0.1));
    (0..variables.len(), dimensions, flags).prop_map(move |(number, dimensions, (turned, sync))| {
        let steps = variables[number].shape.iter().zip(&dimensions).enumerate();
        let steps = steps.map(|(d, (length, &(start, count, step)))| {
            let length = match length {
                Length::Fixed(length) => *length,
                Length::Records => 5,
            };
            let start = start % length;
            let most = (length - start).div_ceil(step);
            Steps::new(d, start, count % most + 1, step).unwrap()
        });
        (number as u32, Slab::from_steps(steps), turned, sync)
    })
}

fn case() -> impl Strategy<Value = Case> {
    let distribution = prop_oneof![
        Just(Distribution::Balanced),
        Just(Distribution::Variable),
        prop::option::of(1u64..4).prop_map(|block| Distribution::Range { block }),
    ];
    let queue =
        prop_oneof![Just(None), (1u32..4).prop_map(|limit| Some((limit, FullQueue::Block)))];
    let settings = (distribution, prop::option::of(1u32..5), any::<bool>(), queue, any::<bool>());
    let sizes = (1u32..4, 0u32..3, 1u32..4, 0u32..2);
    let variables = prop::collection::vec(variable(), 1..4);
    let cycles = prop::collection::vec(0usize..2, 1..5);
    (settings, sizes, variables, cycles).prop_flat_map(|(settings, sizes, variables, cycles)| {
        let (distribution, matchers, replay, queue, flush) = settings;
        let writers = [places(0, sizes.0), places(1, sizes.1)].concat();
        let readers = [places(2, sizes.2), places(3, sizes.3)].concat();
        let list = || prop::collection::vec(asked(variables.clone()), 0..5);
        let (writing, reading) = (writers.len(), readers.len());
        let plan = (prop::collection::vec(list(), writing), prop::collection::vec(list(), reading));
        let plan = plan.prop_map(|(writes, reads)| Plan { writes, reads });
        let plans = prop::collection::vec(plan, 2);
        let spec = FileSpec {
            matchers,
            distribution,
            replay,
            queue,
            format: Format::Classic,
            ..FileSpec::new("f.nc", writers, readers)
        };
        plans.prop_map(move |plans| Case {
            spec: spec.clone(),
            variables: variables.clone(),
            cycles: cycles.clone(),
            plans,
            flush,
        })
    })
}

/// Every index of a slab, in order.
fn indexes(slab: &Slab) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for steps in slab.dimensions() {
        all = all
            .into_iter()
            .flat_map(|one: Vec<u64>| {
                (0..steps.count()).map(move |at| [&one[..], &[steps.at(at)]].concat())
            })
            .collect();
    }
    all
}

/// Dense, or with the dimensions the other way round, and where each element lies.
fn memory(slab: &Slab, turned: bool) -> (Memory, Vec<usize>) {
    let dense = Memory::dense(slab).unwrap();
    let memory = if turned {
        let mut distances = Vec::new();
        let mut distance = 1;
        for steps in slab.dimensions() {
            distances.push(distance);
            distance *= steps.count() as i64;
        }
        Memory::mapped(&distances)
    } else {
        dense
    };
    let place = |index: &Vec<u64>| {
        let positions = slab.dimensions().iter().zip(index).zip(memory.distances());
        positions.map(|((steps, &i), by)| steps.position(i).unwrap() as i64 * by).sum::<i64>()
    };
    let at = indexes(slab).iter().map(|index| place(index) as usize).collect();
    (memory, at)
}

/// A program: what it still has to do, and whether it waits.
struct Program {
    place: Place,
    writer: bool,
    number: usize,
    cycle: usize,
    /// Next call of the cycle; none while it waits to begin.
    call: Option<usize>,
}

/// What a read must come to.
struct Expected {
    handle: Handle,
    at: Vec<usize>,
    /// None: it must fail.
    values: Option<Vec<f64>>,
}

type Truth = HashMap<(u32, Vec<u64>), ((u32, u32, Place), i32)>;

fn value(cycle: usize, place: Place, request: usize, element: usize) -> i32 {
    let who = i32::from(place.component.0 as u8) * 8 + place.rank as i32;
    ((cycle as i32 * 32 + who) * 8 + request as i32) * 1000 + element as i32
}

/// What every element is after a cycle, and how many records there are.
fn truth(case: &Case, cycle: usize) -> (Truth, u64) {
    let (mut truth, mut records) = (Truth::new(), 0);
    let plan = &case.plans[case.cycles[cycle]];
    for (&place, writes) in case.spec.writers.iter().zip(&plan.writes) {
        let mut epoch = 0;
        for (request, (number, slab, _, sync)) in writes.iter().enumerate() {
            epoch += u32::from(*sync);
            if case.variables[*number as usize].has_records() {
                records = records.max(slab.dimensions()[0].span().end);
            }
            for (element, index) in indexes(slab).into_iter().enumerate() {
                let new = ((epoch, request as u32, place), value(cycle, place, request, element));
                let old = truth.entry((*number, index)).or_insert(new);
                *old = (*old).max(new);
            }
        }
    }
    (truth, records)
}

fn run(case: &Case, mut rng: TestRng) -> World {
    let components = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    let mut world = World::new(Coupling { components, files: vec![case.spec.clone()] });
    let program = |writer: bool| {
        move |(number, &place): (usize, &Place)| Program {
            place,
            writer,
            number,
            cycle: 0,
            call: None,
        }
    };
    let writers = case.spec.writers.iter().enumerate().map(program(true));
    let readers = case.spec.readers.iter().enumerate().map(program(false));
    let mut programs: Vec<Program> = writers.chain(readers).collect();
    let mut expected = Vec::new();
    let mut written = Vec::new();
    loop {
        let ready: Vec<usize> = (0..programs.len())
            .filter(|&at| {
                let Program { place, writer, cycle, call, .. } = &programs[at];
                let begun = world.begun.iter().filter(|(one, _)| one == place).count();
                *cycle < case.cycles.len() && (call.is_none() || !writer || begun > *cycle)
            })
            .collect();
        if ready.is_empty() || rng.random_range(0..3) == 0 {
            if !world.step(&mut rng) && ready.is_empty() {
                break;
            }
            continue;
        }
        let program = &mut programs[ready[rng.random_range(0..ready.len())]];
        let (place, cycle) = (program.place, program.cycle);
        let plan = &case.plans[case.cycles[cycle]];
        let Some(call) = program.call else {
            world.call(place, |node| match program.writer {
                true => node.begin_writing(FILE).unwrap(),
                false => node.begin_reading(FILE).unwrap(),
            });
            program.call = Some(0);
            continue;
        };
        let list = if program.writer { &plan.writes } else { &plan.reads };
        let list = &list[program.number];
        if call == 0 {
            let variables = case.variables.clone();
            world.call(place, |node| match program.writer {
                true => node.define_written(FILE, variables).unwrap(),
                false => node.define_read(FILE, variables).unwrap(),
            });
        }
        let Some((number, slab, turned, sync)) = list.get(call) else {
            world.call(place, |node| match program.writer {
                true => node.finish_writing(FILE).unwrap(),
                false => node.finish_reading(FILE).unwrap(),
            });
            program.call = None;
            program.cycle += 1;
            continue;
        };
        program.call = Some(call + 1);
        let (memory, at) = memory(slab, *turned);
        let (variable, slab) = (Variable(*number), slab.clone());
        if program.writer {
            let mut bytes = vec![0; at.len() * 4];
            for (element, &at) in at.iter().enumerate() {
                let value = value(cycle, place, call, element);
                bytes[at * 4..at * 4 + 4].copy_from_slice(&value.to_ne_bytes());
            }
            let handle = world.handle(bytes);
            written.push(handle);
            let request = Request { variable, slab, memory, type_: Type::Int, handle };
            world.call(place, |node| {
                if *sync {
                    node.synchronise(FILE).unwrap();
                }
                node.write(FILE, request).unwrap();
                if case.flush {
                    node.flush_written(FILE).unwrap();
                }
            });
        } else {
            let (truth, records) = truth(case, cycle);
            let spec = &case.variables[*number as usize];
            let beyond = spec.has_records() && slab.dimensions()[0].span().end > records;
            let values: Option<Vec<f64>> = indexes(&slab)
                .into_iter()
                .map(|index| match truth.get(&(*number, index)) {
                    Some((_, value)) => Some(f64::from(*value)),
                    None => spec.fill.map(|_| -2_147_483_647.0),
                })
                .collect();
            let handle = world.handle(vec![0xee; at.len() * 8]);
            expected.push(Expected { handle, at, values: values.filter(|_| !beyond) });
            let request = Request { variable, slab, memory, type_: Type::Double, handle };
            world.call(place, |node| {
                node.read(FILE, request).unwrap();
                if case.flush {
                    node.flush_read(FILE).unwrap();
                }
            });
        }
    }
    for Expected { handle, at, values } in &expected {
        match values {
            Some(values) => {
                assert_eq!(world.failed.get(handle), None);
                assert_eq!(world.complete.iter().filter(|one| *one == handle).count(), 1);
                let bytes = &world.memory[handle];
                let found: Vec<f64> = at
                    .iter()
                    .map(|&at| f64::from_ne_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap()))
                    .collect();
                assert_eq!(&found, values);
            }
            None => assert!(world.failed.contains_key(handle)),
        }
    }
    assert_eq!(world.complete.len() + world.failed.len(), expected.len());
    world.released.sort();
    written.sort();
    assert_eq!(world.released, written);
    assert_eq!(world.read.len(), case.spec.readers.len() * case.cycles.len());
    for node in world.nodes.values_mut() {
        assert!(node.writers.values().all(writer::Writer::is_idle), "a writer keeps a cycle");
        assert!(node.readers.values().all(reader::Reader::is_idle), "a reader keeps a cycle");
        assert!(node.matchers.values().all(matcher::Matcher::is_idle), "a matcher keeps a board");
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn readers_get_what_was_written_last(case in case(), seed in any::<[u8; 32]>()) {
        let rng = TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &seed);
        run(&case, rng);
    }
}

fn rng() -> TestRng {
    TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &[7; 32])
}

/// Two writers of the halves of a row and a reader of all of it, in so many cycles.
fn halves(cycles: usize, replay: bool) -> Case {
    let shape = vec![Length::Fixed(8)];
    let (name, type_, fill) = ("t".to_owned(), Type::Int, None);
    let half = |start| vec![(0, Slab::new(&[start], &[4]).unwrap(), false, false)];
    let all = vec![(0, Slab::all(&[8]), false, false)];
    let spec = FileSpec { replay, ..FileSpec::new("halves.nc", places(0, 2), places(1, 1)) };
    Case {
        spec,
        variables: vec![VariableSpec { name, type_, shape, fill }],
        cycles: vec![0; cycles],
        plans: vec![Plan { writes: vec![half(0), half(4)], reads: vec![all] }],
        flush: false,
    }
}

#[test]
fn a_replayed_cycle_is_not_matched() {
    let matched = run(&halves(4, false), rng());
    let replayed = run(&halves(4, true), rng());
    assert_eq!((matched.batches, replayed.batches), (12, 3));
    let pattern = replayed.nodes[&places(0, 2)[1]].pattern(FILE).unwrap();
    assert_eq!((pattern.cycle, pattern.flows.len()), (Cycle(0), 1));
    assert_eq!(pattern.flows[0].part, Slab::new(&[4], &[4]).unwrap());
}

#[test]
fn a_record_is_dropped_when_anybody_asks_for_something_else() {
    let mut case = halves(3, true);
    let mut other = case.plans[0].clone();
    other.reads[0][0].1 = Slab::new(&[2], &[4]).unwrap();
    case.plans.push(other);
    case.cycles = vec![0, 0, 1, 1, 0];
    assert_eq!(run(&case, rng()).batches, 9);
}

#[test]
fn what_nobody_wrote_is_an_error_that_says_who_and_what() {
    let mut case = halves(1, false);
    case.plans[0].writes[1].clear();
    let world = run(&case, rng());
    let told: Vec<String> = world.failed.values().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "rank 0 of b cannot read `t` of `halves.nc`: a did not write [4:8], and the variable is not filled; write \
          it, or define the variable with fill values"
        ]
    );
}

#[test]
fn other_definitions_are_refused() {
    let case = halves(1, false);
    let components = ["model", "plot"].map(str::to_owned).to_vec();
    let mut world = World::new(Coupling { components, files: vec![case.spec.clone()] });
    let (writers, reader) = (places(0, 2), places(1, 1)[0]);
    for (at, &place) in writers.iter().enumerate() {
        let handle = world.handle(vec![0; 16]);
        let slab = Slab::new(&[at as u64 * 4], &[4]).unwrap();
        let memory = Memory::dense(&slab).unwrap();
        let request = Request { variable: Variable(0), slab, memory, type_: Type::Int, handle };
        world.call(place, |node| {
            node.begin_writing(FILE).unwrap();
            node.define_written(FILE, case.variables.clone()).unwrap();
            node.write(FILE, request).unwrap();
            node.finish_writing(FILE).unwrap();
        });
    }
    let mut other = case.variables.clone();
    other[0].shape = vec![Length::Fixed(6)];
    let slab = Slab::all(&[6]);
    let (memory, handle) = (Memory::dense(&slab).unwrap(), world.handle(vec![0; 48]));
    let request = Request { variable: Variable(0), slab, memory, type_: Type::Double, handle };
    world.call(reader, |node| {
        node.begin_reading(FILE).unwrap();
        node.define_read(FILE, other).unwrap();
        node.read(FILE, request).unwrap();
        node.finish_reading(FILE).unwrap();
    });
    while world.step(&mut rng()) {}
    let told = world.failed[&handle].to_string();
    assert!(told.contains("rank 0 of model has defined the file with other"), "{told}");
    assert_eq!(world.failed[&handle].status, -46);
    assert_eq!((world.read.len(), world.released.len()), (1, 2));
}

#[test]
fn whoever_is_gone_is_named_and_nobody_waits() {
    for replay in [false, true] {
        let case = halves(1, replay);
        let components = ["model", "plot"].map(str::to_owned).to_vec();
        let mut world = World::new(Coupling { components, files: vec![case.spec.clone()] });
        let (writers, reader) = (places(0, 2), places(1, 1)[0]);
        let slab = Slab::all(&[8]);
        let (memory, handle) = (Memory::dense(&slab).unwrap(), world.handle(vec![0; 64]));
        let request = Request { variable: Variable(0), slab, memory, type_: Type::Double, handle };
        world.call(reader, |node| {
            node.begin_reading(FILE).unwrap();
            node.define_read(FILE, case.variables.clone()).unwrap();
            node.read(FILE, request).unwrap();
            node.finish_reading(FILE).unwrap();
        });
        let slab = Slab::new(&[0], &[4]).unwrap();
        let (memory, mine) = (Memory::dense(&slab).unwrap(), world.handle(vec![0; 16]));
        let request =
            Request { variable: Variable(0), slab, memory, type_: Type::Int, handle: mine };
        world.call(writers[0], |node| {
            node.begin_writing(FILE).unwrap();
            node.define_written(FILE, case.variables.clone()).unwrap();
            node.write(FILE, request).unwrap();
            node.finish_writing(FILE).unwrap();
        });
        while world.step(&mut rng()) {}
        assert_eq!((world.complete.len(), world.failed.len()), (0, 0));
        world.nodes.remove(&writers[1]);
        for place in [reader, writers[0]] {
            world.call(place, |node| node.lost(writers[1]));
        }
        world.network.retain(|(_, to), _| *to != writers[1]);
        while world.step(&mut rng()) {}
        let told = world.failed[&handle].to_string();
        assert!(
            told.ends_with("rank 1 of model has ended or cannot be reached any more"),
            "{told}"
        );
        assert_eq!(world.read, [(reader, Cycle(0))]);
        assert_eq!(world.released, [mine], "{replay}");
    }
}

#[test]
fn writers_wait_for_readers_or_drop_what_is_too_much() {
    let components = ["model", "plot"].map(str::to_owned).to_vec();
    let mut case = halves(1, false);
    case.spec.writers.truncate(1);
    for (full, begun) in [(FullQueue::Block, 2), (FullQueue::Discard, 4)] {
        case.spec.queue = Some((2, full));
        let files = vec![case.spec.clone()];
        let mut world = World::new(Coupling { components: components.clone(), files });
        let writer = case.spec.writers[0];
        let mut told = 0;
        for _ in 0..4 {
            if world.call(writer, |node| node.begin_writing(FILE)).is_err() {
                break;
            }
            while world.step(&mut rng()) {}
            if world.begun.len() == told {
                break;
            }
            told = world.begun.len();
            world.call(writer, |node| {
                node.define_written(FILE, case.variables.clone()).unwrap();
                node.finish_writing(FILE).unwrap();
            });
            while world.step(&mut rng()) {}
        }
        assert_eq!(world.begun.len(), begun);
        let dropped = world.begun.iter().filter(|(_, cycle)| cycle.is_none()).count();
        assert_eq!(dropped, begun - 2);
    }
}

#[test]
fn what_netcdf_would_refuse_is_refused_at_once() {
    let case = halves(1, false);
    let components = ["model", "plot"].map(str::to_owned).to_vec();
    let mut world = World::new(Coupling { components, files: vec![case.spec.clone()] });
    let (writer, reader) = (places(0, 1)[0], places(1, 1)[0]);
    let ask = |slab: &Slab, type_| Request {
        variable: Variable(0),
        slab: slab.clone(),
        memory: Memory::dense(slab).unwrap(),
        type_,
        handle: Handle(0),
    };
    let all = Slab::all(&[8]);
    let early = world.call(writer, |node| node.write(FILE, ask(&all, Type::Int)));
    assert!(matches!(early, Err(RequestError::Order { .. })));
    let stranger = world.call(reader, |node| node.begin_writing(FILE)).unwrap_err();
    assert_eq!(stranger.to_string(), "file `halves.nc` is not written by rank 0 of plot");
    world.call(writer, |node| {
        node.begin_writing(FILE).unwrap();
        node.define_written(FILE, case.variables.clone()).unwrap();
        let far = node.write(FILE, ask(&Slab::all(&[9]), Type::Int)).unwrap_err();
        assert_eq!(far.to_string(), "variable `t` of `halves.nc` does not hold [0:9]");
        assert_eq!(far.status(), -40);
        let text = node.write(FILE, ask(&all, Type::Char)).unwrap_err();
        assert_eq!(text.to_string(), "variable `t` of `halves.nc` is int: it cannot be char");
        let mut none = ask(&all, Type::Int);
        none.variable = Variable(1);
        assert_eq!(node.write(FILE, none).unwrap_err().status(), -49);
    });
}
