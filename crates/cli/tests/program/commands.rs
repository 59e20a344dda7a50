//! `sluice cmd`: commands on files, and on what a program answers by hooks.

use std::fs;
use std::sync::Arc;

use commands::{Given, HookStore, Output, Provider, Served as Dataset, Source};
use service::{Listen, Service};
use store::Exports;

use crate::support::{Ran, Served, noise, run, run_with_input};

fn with_input<const N: usize>(arguments: [&str; N], input: &[u8]) -> Ran {
    run_with_input(arguments, input).into()
}

#[test]
fn commands_on_files_of_a_service() {
    let served = Served::new();
    let d = served.uri("d");
    fs::write(served.local("b"), "0123456789").unwrap();
    assert_eq!(run(["cmd", &d, "ls"]).ok(), "1|f:b|\n");
    assert_eq!(run(["cmd", &d, "info", "b"]).ok(), "entry 'b', size: 10\n");
    assert_eq!(run(["cmd", &d, "get", "b", "2:5"]).ok(), "23456");
    let bytes = noise(3 << 20);
    with_input(["cmd", &d, "put", "new"], &bytes).ok();
    assert!(fs::read(served.local("new")).unwrap() == bytes);
    with_input(["cmd", &d, "put", "b", "8:4"], b"abcdef").ok();
    assert_eq!(fs::read(served.local("b")).unwrap(), b"01234567abcd");
    run(["cmd", &d, "mkd", "sub"]).ok();
    run(["cmd", &d, "rm", "sub"]).ok();
    let error = run(["cmd", &d, "get", "missing"]).fails(1);
    assert!(error.contains("get missing: opening file 'missing' failed"), "{error}");
    let error = run(["cmd", &served.uri("nosuch"), "ls"]).fails(1);
    assert!(error.contains("no matching provider found"), "{error}");
    let error = run(["cmd", "/tmp", "ls"]).fails(1);
    assert!(error.contains("name one by its URI"), "{error}");
    let error = run(["cmd", "scdc+uds:///no/such.sock/x", "ls"]).fails(1);
    assert!(error.contains("cannot reach"), "{error}");
    run(["cmd", &d]).fails(2);
}

/// Turns letters into capitals, as they come.
struct Capitals {
    shouts: bool,
}

impl Provider for Capitals {
    fn open(&self, _path: &[u8]) -> Result<Box<dyn Dataset>, String> {
        Ok(Box::new(Capitals { shouts: false }))
    }
}

impl Dataset for Capitals {
    fn run(&mut self, line: &[u8], _: &mut dyn Source, has_input: bool, _: bool) -> Given {
        if line != b"shout loudly" {
            return Given::failed("it can only shout");
        }
        self.shouts = has_input;
        let output = Output { more: has_input, ..Output::default() };
        Given { success: true, text: b"shouted".to_vec(), output }
    }

    fn next(&mut self, input: &mut dyn Source) -> Result<Output, String> {
        let mut data = Vec::new();
        let more = input.next(&mut data)?;
        data.make_ascii_uppercase();
        Ok(Output { data, more, ..Output::default() })
    }
}

#[test]
fn commands_that_a_program_answers() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s.sock");
    let store: Arc<dyn store::Store> =
        Arc::new(HookStore::new(Arc::new(Capitals { shouts: false })));
    let exports = Exports::new([(b"voice".to_vec(), store)]).unwrap();
    let builder = Service::builder(Arc::new(exports)).listen(Listen::Unix(socket.clone()));
    let running = builder.start().unwrap();
    let uri = format!("scdc+uds://{}/voice", socket.display());
    assert_eq!(with_input(["cmd", &uri, "shout", "loudly"], b"hello").ok(), "HELLO");
    let text: Vec<u8> = noise(3 << 20).iter().map(|byte| b'a' + byte % 26).collect();
    let loud = with_input(["cmd", &uri, "shout", "loudly"], &text).ok();
    assert!(loud.as_bytes() == text.to_ascii_uppercase());
    assert_eq!(with_input(["cmd", &uri, "shout", "loudly"], b"").ok(), "shouted\n");
    let error = with_input(["cmd", &uri, "sing"], b"").fails(1);
    assert!(error.contains("sing: it can only shout"), "{error}");
    assert_eq!(run(["ls", "-a", &uri]).ok(), ".command\n");
    running.stop();
}
