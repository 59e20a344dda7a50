//! `sluice cmd`: a command on a dataset.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use commands::{Dataset, Source};

use crate::args::Cmd;
use crate::place::{Place, Places};
use crate::report::standard_output;

/// Read and written at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// Standard input, read when the command wants it.
struct Input {
    ended: bool,
}

impl Source for Input {
    fn next(&mut self, piece: &mut Vec<u8>) -> std::result::Result<bool, String> {
        piece.resize(BUFFER_BYTES, 0);
        let count = loop {
            match io::stdin().lock().read(piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|error| format!("standard input: {error}"))?,
            }
        };
        piece.truncate(count);
        self.ended = count == 0;
        Ok(count > 0)
    }

    fn has_ended(&self) -> bool {
        self.ended
    }
}

/// Gives the command, passes input and output on.
pub(crate) fn cmd(args: &Cmd, places: &Places) -> Result<ExitCode> {
    let place = places.find(&args.dataset)?;
    let Place::Remote(remote) = &place else {
        bail!(
            "{place}: commands are given to datasets of a service; name one by its URI, such as scdc+uds://default/NAME"
        );
    };
    let line =
        args.command.iter().map(|word| OsStr::as_bytes(word)).collect::<Vec<_>>().join(&b' ');
    let shown = || format!("{place}: {}", String::from_utf8_lossy(&line));
    let dataset = Dataset::open(remote.session(), remote.uri().path.as_bytes());
    let mut dataset = dataset.with_context(|| format!("cannot use the dataset {place}"))?;
    let mut input = Input { ended: false };
    let terminal = io::stdin().is_terminal();
    let source = (!terminal).then_some(&mut input as &mut dyn Source);
    let answer = dataset.run(&line, source, true).with_context(shown)?;
    if !answer.success {
        bail!("{}: {}", shown(), String::from_utf8_lossy(&answer.text));
    }
    let mut out = io::stdout().lock();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut written = 0;
    while dataset.has_output() {
        let source = (!terminal).then_some(&mut input as &mut dyn Source);
        let (count, _) = dataset.take(&mut buffer, source).with_context(shown)?;
        written += count;
        let done = out.write_all(&buffer[..count]);
        let gone = matches!(&done, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
        standard_output(done)?;
        if gone {
            return Ok(ExitCode::SUCCESS);
        }
    }
    standard_output(out.flush())?;
    if !answer.text.is_empty() {
        let text = [&answer.text[..], b"\n"].concat();
        match written {
            0 => standard_output(out.write_all(&text))?,
            _ => drop(io::stderr().lock().write_all(&text)),
        }
    }
    dataset.close();
    Ok(ExitCode::SUCCESS)
}
