//! Commands on files: the same words and bytes as SCDC's, on any service.

use std::sync::Arc;

use client::{Options, Session};
use commands::{Dataset, Source};
use service::Direct;
use store::mem::MemStore;
use store::{Exports, Store};

fn session(store: Arc<dyn Store>) -> Arc<Session> {
    let exports = Exports::new([(b"s".to_vec(), store)]).expect("a name");
    let direct = client::direct(Arc::new(Direct::new(Arc::new(exports))));
    Session::new(Box::new(direct), Options::default())
}

struct Text(Option<&'static str>);

impl Source for Text {
    fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, String> {
        let text = self.0.take();
        *piece = text.unwrap_or_default().into();
        Ok(text.is_some())
    }
}

/// Runs commands, `LINE < INPUT` with input, and compares `answer` or, for output, `> OUTPUT`.
fn run(dataset: &mut Dataset, script: &[(&'static str, bool, &str)]) {
    for (line, success, expected) in script {
        let (command, input) = line.split_once(" < ").map_or((*line, None), |(c, i)| (c, Some(i)));
        let mut input = input.map(|text| Text(Some(text)));
        let source = input.as_mut().map(|input| input as &mut dyn Source);
        let answer = dataset.run(command.as_bytes(), source, true).expect("reached");
        let mut said = String::from_utf8_lossy(&answer.text).into_owned();
        if dataset.has_output() {
            said.push_str("> ");
            let mut buffer = [0; 3];
            loop {
                let (count, more) = dataset.take(&mut buffer, None).expect("read");
                said.push_str(&String::from_utf8_lossy(&buffer[..count]));
                if !more {
                    break;
                }
            }
        }
        assert_eq!((answer.success, &*said), (*success, *expected), "{line}");
    }
}

#[test]
fn commands_on_directories_say_what_scdc_says() {
    let session = session(Arc::new(MemStore::new()));
    let mut dataset = Dataset::open(&session, b"s").expect("a dataset");
    assert!(!dataset.is_hooks());
    let script = [
        ("ls", true, "0|"),
        ("info", true, "entries: 0"),
        ("mkd sub", true, ""),
        ("mkd sub", false, "making dir 'sub' failed"),
        ("put file < 0123456789", true, ""),
        ("put file 3 < abc", true, ""),
        ("put file 12:2 < xyz", true, ""),
        ("put file 2F:1 < Q", true, ""),
        ("put file :2 < ST", true, ""),
        ("get file", true, "> STQabc6789\0\0xy"),
        ("get file 3", true, "> abc6789\0\0xy"),
        ("get file 3:4", true, "> abc6"),
        ("get file :4", true, "> STQa"),
        ("get file :0", true, "> "),
        ("get file 100", true, "> "),
        ("get file x", false, "`x` is not understood: [POSITION][:SIZE] in bytes was expected"),
        ("get", false, "opening file '' failed"),
        ("get nosuch", false, "opening file 'nosuch' failed"),
        ("get sub", false, "opening file 'sub' failed"),
        ("info file", true, "entry 'file', size: 14"),
        ("info sub", true, "entries: 0"),
        ("info nosuch", true, "entry 'nosuch' not found"),
        ("ls", true, "2|f:file|d:sub|"),
        ("cd sub", true, ""),
        ("pwd", true, "sub"),
        ("put in/er < x", false, "opening file 'in/er' failed"),
        ("put ../out < x", false, "opening file '../out' failed"),
        ("put inner < x", true, ""),
        ("ls", true, "1|f:inner|"),
        ("cd nosuch", false, "opening dir '/sub/nosuch' failed"),
        ("cd ..", false, "opening dir '/sub/..' failed"),
        ("cd", true, ""),
        ("pwd", true, ""),
        ("rm sub", false, "removing file 'sub' failed"),
        ("rm sub/inner", true, ""),
        ("rm sub", true, ""),
        ("rm file", true, ""),
        ("rm file", false, "removing file 'file' failed"),
        ("rm", false, "removing file '' failed"),
        ("bogus", false, "command 'bogus' not implemented"),
        ("", false, "command '' not implemented"),
        ("put", false, "opening file '' failed"),
        ("put empty", true, ""),
        ("get empty", true, "> "),
    ];
    run(&mut dataset, &script);
    let refused = |path: &[u8]| Dataset::open(&session, path).err().map(|error| error.to_string());
    assert_eq!(refused(b"s/nosuch").as_deref(), Some("opening dir '/nosuch' failed"));
    assert_eq!(refused(b"s/empty").as_deref(), Some("opening dir '/empty' failed"));
    assert_eq!(refused(b"other").as_deref(), Some("no matching provider found"));
}

#[test]
fn commands_on_stores_say_what_scdc_says() {
    let session = session(Arc::new(Dataset::shelf(Arc::new(MemStore::new()))));
    let mut dataset = Dataset::open(&session, b"s").expect("a dataset");
    let script = [
        ("ls", true, "0|"),
        ("info", true, "stores: 0"),
        ("mkd sub", false, "command 'mkd' not implemented"),
        ("get file", false, "command not available for a store"),
        ("put st", true, ""),
        ("put st", false, "making store 'st' failed"),
        ("put a/b", false, "making store 'a/b' failed"),
        ("ls", true, "1|st|"),
        ("info st", true, "store 'st', entries: 0"),
        ("info x", true, "store 'x' not found"),
        ("cd nosuch", false, "opening store 'nosuch' failed"),
        ("cd st", true, ""),
        ("info", true, "entries: 0"),
        ("put e < hello", true, ""),
        ("ls", true, "1|e|"),
        ("info e", true, "entry 'e', size: 5"),
        ("get e 1:3", true, "> ell"),
        ("rm x", false, "removing entry 'x' failed"),
        ("cd ADMIN", true, ""),
        ("rm st", true, ""),
        ("rm st", false, "removing store 'st' failed"),
        ("put convert", true, ""),
    ];
    run(&mut dataset, &script);
    let mut dataset = Dataset::open(&session, b"s/convert").expect("a dataset");
    run(&mut dataset, &[("put e < 1", true, ""), ("ls", true, "1|e|")]);
    let mut admin = Dataset::open(&session, b"s/ADMIN").expect("a dataset");
    run(&mut admin, &[("ls", true, "1|convert|")]);
    let error = Dataset::open(&session, b"s/nosuch").err().expect("none");
    assert_eq!(error.to_string(), "opening store 'nosuch' failed");
}
