//! Hooks behind sockets, behind a relay, and in the same process: what a program answers arrives as it was meant.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use client::{Options, Place, Session, SocketDial};
use commands::{
    Dataset, Error, Given, HookStore, Nothing, Output, Provider, Served, Shape, Source,
};
use service::{Direct, Listen, Running, Service};
use store::relay::RelayStore;
use store::{Exports, Store};

/// Answers `echo` with its input as it comes, `count N` with N pieces of output, `sum` with the bytes of its input,
/// `add N` with a number that the dataset keeps, `fail`.
#[derive(Default)]
struct Examples {
    open: Arc<AtomicUsize>,
    keeps_states: bool,
    seen: Arc<Mutex<Vec<String>>>,
}

struct Example {
    open: Arc<AtomicUsize>,
    suspends: bool,
    number: u64,
    echoes: bool,
    left: usize,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Examples {
    fn dataset(&self, number: u64) -> Box<dyn Served> {
        self.open.fetch_add(1, Ordering::Relaxed);
        let (open, seen) = (Arc::clone(&self.open), Arc::clone(&self.seen));
        Box::new(Example {
            open,
            suspends: self.keeps_states,
            number,
            echoes: false,
            left: 0,
            seen,
        })
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Provider for Examples {
    fn open(&self, path: &[u8]) -> Result<Box<dyn Served>, String> {
        match path {
            b"missing" => Err("there is no dataset 'missing'".to_owned()),
            _ => Ok(self.dataset(path.len() as u64)),
        }
    }

    fn resume(&self, state: &[u8]) -> Result<Box<dyn Served>, String> {
        let text = std::str::from_utf8(state).map_err(|e| e.to_string())?;
        Ok(self.dataset(text.parse().map_err(|_| format!("`{text}` is no number"))?))
    }
}

fn piece(number: usize) -> Vec<u8> {
    (0..100_000).map(|at| (at + number) as u8).collect()
}

impl Served for Example {
    fn run(&mut self, line: &[u8], input: &mut dyn Source, has_input: bool, _: bool) -> Given {
        let line = String::from_utf8_lossy(line).into_owned();
        self.seen.lock().expect("whole").push(line.clone());
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let mut given = Given { success: true, text: word.as_bytes().to_vec(), ..Given::default() };
        match word {
            "echo" => {
                self.echoes = true;
                given.output.more = has_input;
            }
            "count" => {
                self.left = rest.parse().unwrap_or(0);
                given.output.shape =
                    Shape { format: *b"numbers\0\0\0\0\0\0\0\0\0", total: 7, given: b'l' };
                given.output.more = self.left > 0;
            }
            "large" => given.output.data = vec![b'L'; 5 << 20],
            "sum" => {
                let (mut bytes, mut buffer) = (0, Vec::new());
                loop {
                    match input.next(&mut buffer) {
                        Ok(true) => bytes += buffer.len(),
                        Ok(false) => break,
                        Err(text) => return Given::failed(format!("the input: {text}")),
                    }
                }
                given.text = format!("{bytes} bytes, {}", input.shape().total).into_bytes();
            }
            "one" => {
                let mut buffer = Vec::new();
                let _ = input.next(&mut buffer);
                given.text = buffer;
            }
            "add" => {
                self.number += rest.parse::<u64>().unwrap_or(0);
                given.text = self.number.to_string().into_bytes();
            }
            "panic" => panic!("on purpose"),
            _ => return Given::failed(format!("no such command: {word}")),
        }
        given
    }

    fn next(&mut self, input: &mut dyn Source) -> Result<Output, String> {
        if self.echoes {
            let mut data = Vec::new();
            let more = input.next(&mut data)?;
            return Ok(Output { data, more, ..Output::default() });
        }
        self.left -= 1;
        if self.left == 13 {
            return Err("thirteen".to_owned());
        }
        Ok(Output { data: piece(self.left), more: self.left > 0, ..Output::default() })
    }

    fn end(&mut self) {
        self.echoes = false;
    }

    fn suspend(&mut self) -> Option<Vec<u8>> {
        self.suspends.then(|| self.number.to_string().into_bytes())
    }
}

/// Input of so many pieces.
struct Pieces {
    left: usize,
    breaks_at: usize,
    given: usize,
}

impl Pieces {
    fn new(left: usize) -> Self {
        Self { left, breaks_at: usize::MAX, given: 0 }
    }
}

impl Source for Pieces {
    fn shape(&self) -> Shape {
        Shape { total: 42, given: b'x', ..Shape::default() }
    }

    fn next(&mut self, data: &mut Vec<u8>) -> Result<bool, String> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        if self.left == self.breaks_at {
            return Err("the tape is torn".to_owned());
        }
        self.given += 1;
        *data = piece(self.left);
        Ok(true)
    }

    fn has_ended(&self) -> bool {
        self.left == 0
    }
}

fn serve(store: Arc<dyn Store>, socket: &Path) -> Running {
    let exports = Exports::new([(b"hooks".to_vec(), store)]).expect("a name");
    let builder = Service::builder(Arc::new(exports)).listen(Listen::Unix(socket.to_owned()));
    builder.start().expect("a service")
}

fn session(socket: &Path) -> Arc<Session> {
    let dial = SocketDial::new(Place::Unix(socket.to_owned()));
    Session::new(Box::new(dial), Options::default())
}

/// The same test over each way to reach a provider.
fn over_every_way(examples: impl Fn() -> Examples, test: impl Fn(Arc<Session>)) {
    let directory = tempfile::tempdir().expect("a directory");
    let hooks = || Arc::new(HookStore::new(Arc::new(examples())));
    let exports = Exports::new([(b"hooks".to_vec(), hooks() as Arc<dyn Store>)]).expect("a name");
    let direct = client::direct(Arc::new(Direct::new(Arc::new(exports))));
    test(Session::new(Box::new(direct), Options::default()));
    let socket = directory.path().join("far.sock");
    let running = serve(hooks(), &socket);
    test(session(&socket));
    let relay = directory.path().join("relay.sock");
    let far = RelayStore::new(session(&socket), b"hooks");
    let relaying = serve(Arc::new(far), &relay);
    test(session(&relay));
    relaying.stop();
    running.stop();
}

fn text(answer: &commands::Answer) -> (bool, String) {
    (answer.success, String::from_utf8_lossy(&answer.text).into_owned())
}

/// All output that is left.
fn drain(dataset: &mut Dataset, input: &mut dyn Source) -> Result<Vec<u8>, Error> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 70_000]);
    loop {
        let (count, more) = dataset.take(&mut buffer, Some(input))?;
        all.extend_from_slice(&buffer[..count]);
        if !more {
            return Ok(all);
        }
    }
}

#[test]
fn commands_are_answered_with_text_output_and_failures() {
    over_every_way(Examples::default, |session| {
        let mut dataset = Dataset::open(&session, b"hooks/some/where").expect("a dataset");
        assert!(dataset.is_hooks());
        dataset.check().expect("it is there");
        let answer = dataset.run(b"add 5", None, false).expect("answered");
        assert_eq!(text(&answer), (true, "15".into()));
        let answer = dataset.run(b"add 1", None, false).expect("answered");
        assert_eq!(text(&answer), (true, "16".into()), "the dataset stays between commands");
        let answer = dataset.run(b"dance", None, false).expect("answered");
        assert_eq!(text(&answer), (false, "no such command: dance".into()));
        let answer = dataset.run(b"count 5", None, true).expect("answered");
        assert_eq!(text(&answer), (true, "count".into()));
        assert_eq!(dataset.output_shape().total, 7);
        let pieces: Vec<u8> = (0..5).rev().flat_map(piece).collect();
        assert!(drain(&mut dataset, &mut Nothing).expect("output") == pieces);
        dataset.run(b"large", None, true).expect("answered");
        assert!(drain(&mut dataset, &mut Nothing).expect("output") == vec![b'L'; 5 << 20]);
        // What is not taken is gone with the next command.
        dataset.run(b"count 9", None, true).expect("answered");
        dataset.take(&mut [0; 10], None).expect("some");
        let answer = dataset.run(b"add 0", None, false).expect("answered");
        assert_eq!(text(&answer), (true, "16".into()));
        dataset.run(b"count 20", None, true).expect("answered");
        let error = drain(&mut dataset, &mut Nothing).expect_err("a next that fails");
        assert_eq!(error.to_string(), "thirteen");
        let answer = dataset.run(b"add 0", None, false).expect("answered");
        assert_eq!(text(&answer), (true, "16".into()));
        let mut missing = Dataset::open(&session, b"hooks/missing").expect("hooks tell later");
        assert!(missing.check().is_err_and(|e| e.to_string().contains("no dataset 'missing'")));
        assert!(
            Dataset::open(&session, b"nosuch")
                .is_err_and(|e| e.to_string() == "no matching provider found")
        );
        dataset.close();
    });
}

#[test]
fn input_streams_piece_by_piece_as_it_is_wanted() {
    over_every_way(Examples::default, |session| {
        let mut dataset = Dataset::open(&session, b"hooks").expect("a dataset");
        for pieces in [0, 1, 2, 60] {
            let mut input = Pieces::new(pieces);
            let answer = dataset.run(b"sum", Some(&mut input), false).expect("answered");
            assert_eq!(text(&answer), (true, format!("{} bytes, 42", pieces * 100_000)));
        }
        // A command that wants little gets little.
        let mut input = Pieces::new(1000);
        dataset.run(b"one", Some(&mut input), false).expect("answered");
        assert!(input.given <= 2, "{}", input.given);
        // Output that is made from input that is still coming.
        let mut input = Pieces::new(50);
        dataset.run(b"echo", Some(&mut input), true).expect("answered");
        assert!(input.given <= 2, "{}", input.given);
        let echoed = drain(&mut dataset, &mut input).expect("output");
        assert!(echoed == (0..50).rev().flat_map(piece).collect::<Vec<u8>>());
        let mut torn = Pieces { breaks_at: 3, ..Pieces::new(6) };
        let answer = dataset.run(b"sum", Some(&mut torn), false).expect("answered");
        assert_eq!(text(&answer), (false, "the input: the tape is torn".into()));
        // Abandoned in the middle of both.
        let mut input = Pieces::new(50);
        dataset.run(b"echo", Some(&mut input), true).expect("answered");
        dataset.take(&mut [0; 10], Some(&mut input)).expect("some");
        let answer = dataset.run(b"add 3", None, false).expect("answered");
        assert_eq!(text(&answer), (true, "3".into()));
    });
}

#[test]
fn a_provider_that_keeps_states_has_nothing_open_between_commands() {
    let open = Arc::new(AtomicUsize::new(0));
    let examples =
        || Examples { open: Arc::clone(&open), keeps_states: true, ..Examples::default() };
    over_every_way(examples, |session| {
        let mut dataset = Dataset::open(&session, b"hooks/abc").expect("a dataset");
        for number in 1..5 {
            let answer = dataset.run(b"add 10", None, false).expect("answered");
            assert_eq!(text(&answer), (true, (3 + 10 * number).to_string()));
            assert_eq!(open.load(Ordering::Relaxed), 0);
        }
        dataset.run(b"count 2", None, true).expect("answered");
        assert_eq!(open.load(Ordering::Relaxed), 1, "output is still to come");
        drain(&mut dataset, &mut Nothing).expect("output");
        assert_eq!(open.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn after_a_break_a_state_goes_on_and_a_lost_one_is_said_to_be() {
    for keeps_states in [true, false] {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("s.sock");
        let hooks = || {
            let examples = Examples { keeps_states, ..Examples::default() };
            Arc::new(HookStore::new(Arc::new(examples)))
        };
        let running = serve(hooks(), &socket);
        let session = session(&socket);
        let mut dataset = Dataset::open(&session, b"hooks").expect("a dataset");
        dataset.run(b"add 7", None, false).expect("answered");
        running.stop();
        let again = serve(hooks(), &socket);
        match dataset.run(b"add 1", None, false) {
            Ok(answer) if keeps_states => assert_eq!(text(&answer), (true, "8".into())),
            Err(Error::StateLost) if !keeps_states => {}
            other => panic!("{keeps_states}: {:?}", other.map(|answer| text(&answer))),
        }
        again.stop();
    }
}

#[test]
fn what_breaks_the_messages_is_refused_and_hurts_nobody() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("s.sock");
    let running = serve(Arc::new(HookStore::new(Arc::new(Examples::default()))), &socket);
    let session = session(&socket);
    let flags = p9::OpenFlags::READ_WRITE | p9::OpenFlags::APPEND;
    let open = || session.open(client::At::root(b"hooks/.command"), flags, 0).expect("open").handle;
    let write = |handle: &client::Handle, offset: u64, data: &[u8]| {
        let mut part = client::WritePart::new(offset, data);
        let outcome =
            handle.write_batch(client::Repeat::OnlyUnsent, std::slice::from_mut(&mut part));
        outcome.is_ok() && part.refusal.is_none()
    };
    let handle = open();
    assert!(!write(&handle, 5, b"x"), "not where the last write ended");
    assert!(!write(&open(), 0, &[9; 64]), "no such message");
    assert!(!write(&open(), 0, &[0xff; 40]), "no such length");
    let mut input = vec![2, 0, b'n', 0];
    input.resize(40, 0);
    assert!(!write(&open(), 0, &input), "input that nobody has asked for");
    let mut dataset = Dataset::open(&session, b"hooks").expect("a dataset");
    let long = vec![b'a'; 70_000];
    assert!(matches!(dataset.run(&long, None, false), Err(Error::TooLong { .. })));
    std::panic::set_hook(Box::new(|_| {}));
    assert!(dataset.run(b"panic", None, false).is_err());
    let _ = std::panic::take_hook();
    let mut other = Dataset::open(&session, b"hooks").expect("a dataset");
    assert_eq!(text(&other.run(b"add 4", None, false).expect("answered")), (true, "4".into()));
    running.stop();
}
