//! Programs beside the library: other implementations of the same accesses.
//!
//! Such a program is started with the file's path as its last argument. It reads lines from
//! standard input, each of nine words:
//!
//! ```text
//! read|write DATA HOLE DISPLACEMENT TOTAL CALL FIRST SECONDS wall|processor
//! ```
//!
//! The view is blocks of DATA bytes with holes of HOLE between them, the first at DISPLACEMENT;
//! TOTAL bytes of data are in the file. Calls carry CALL bytes of data each (the last one what is
//! left); the program makes call number FIRST, then the next, after the last one number 0 again,
//! until SECONDS have passed on the clock that is named last. For each line it writes one: the
//! bytes of data that were carried, the seconds that it took and, if it knows them, the seconds in
//! which it was running; or `error` and what went wrong.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use sieve::Warmth;

use super::{Cell, Lane, Turn, Work};
use crate::error::{Error, Result};
use crate::explain::access_word;

/// How long one line may take before the program is given up.
const ANSWER_SECONDS_MAX: u64 = 120;

/// A program that is asked to do the same.
#[derive(Debug)]
pub struct BesideLane {
    name: String,
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    stage: Option<(Cell, Work)>,
}

impl BesideLane {
    /// Starts a program: `command` as a shell would, with the path behind it.
    ///
    /// # Errors
    /// [`Error::Lane`] when no shell can be started.
    pub fn start(name: &str, command: &str, file: &Path) -> Result<Self> {
        let failed = |what: String| Error::Lane { lane: name.to_owned(), what };
        let mut child = Command::new("/bin/sh")
            .args(["-c", &format!("exec {command} \"$0\"")])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("cannot be started: {error}")))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("has no standard input or output".into()));
        };
        let (sender, lines) = mpsc::channel();
        // Ends with the program's output, or when nobody listens any more.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { name: name.to_owned(), child, stdin, lines, stage: None })
    }

    fn failed(&self, what: impl ToString) -> Error {
        Error::Lane { lane: self.name.clone(), what: what.to_string() }
    }
}

impl Lane for BesideLane {
    fn name(&self) -> &str {
        &self.name
    }

    fn begin(&mut self, cell: &Cell, work: &Work) -> Result<()> {
        if cell.servers > 0 || cell.warmth == Warmth::Cold {
            return Err(self.failed("other programs are asked for warm, real files only"));
        }
        self.stage = Some((*cell, *work));
        Ok(())
    }

    fn turn(&mut self, first_call: u64) -> Result<Turn> {
        let Some((cell, work)) = self.stage else {
            return Err(self.failed("no cell was begun"));
        };
        let (access, total) = (access_word(cell.access), cell.data_in(work.file_bytes));
        let Cell { data, hole, displacement, .. } = cell;
        let (count, _) = work.calls(&cell);
        let (call, seconds) = (work.call_in(&cell), work.seconds);
        let first = first_call % count.max(1);
        let clock = work.clock.name();
        let line = format!(
            "{access} {data} {hole} {displacement} {total} {call} {first} {seconds} {clock}\n"
        );
        let sent = self.stdin.write_all(line.as_bytes()).and_then(|()| self.stdin.flush());
        sent.map_err(|error| self.failed(format_args!("does not listen: {error}")))?;
        let answer = self.lines.recv_timeout(Duration::from_secs(ANSWER_SECONDS_MAX));
        let answer = answer.map_err(|_| self.failed("ended, or gave no answer"))?;
        let mut words = answer.split_whitespace();
        let bytes = words.next().and_then(|word| word.parse().ok());
        let mut seconds = || words.next().and_then(|word| word.parse::<f64>().ok());
        match (bytes, seconds()) {
            (Some(bytes), Some(all_s)) if bytes > 0 && all_s > 0.0 => {
                let away_s = seconds().map_or(0.0, |ran_s| (all_s - ran_s).max(0.0));
                Ok(Turn { bytes, seconds: all_s, away_s })
            }
            _ => Err(self.failed(answer.trim_start_matches("error ").trim())),
        }
    }
}

impl Drop for BesideLane {
    fn drop(&mut self) {
        // It ends by itself when its input does; one that hangs must not stay.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::cell;

    fn lane(script: &str) -> BesideLane {
        BesideLane::start("other", &format!("sh -c '{script}' sh"), Path::new("/some/file"))
            .unwrap()
    }

    const WORK: Work = Work::new(1 << 20, 1000, 0.001);

    #[test]
    fn a_program_is_asked_and_answers() {
        let mut lane = lane("while read -r line; do set -- $line; echo $6 0.5 0.375; done");
        lane.begin(&cell(8, 92), &WORK).unwrap();
        assert_eq!(lane.turn(1).unwrap(), Turn { bytes: 1000, seconds: 0.5, away_s: 0.125 });
        assert_eq!(lane.turn(2).unwrap().seconds, 0.5);
    }

    #[test]
    fn it_is_told_the_file_and_what_it_says_of_errors_is_passed_on() {
        let mut lane = lane("while read -r line; do echo error no such file $1; done");
        lane.begin(&cell(8, 92), &WORK).unwrap();
        let error = lane.turn(0).unwrap_err();
        assert_eq!(error.to_string(), "other: no such file /some/file");
    }

    #[test]
    fn one_that_ends_is_no_reason_to_wait() {
        let mut lane = lane("exit 3");
        lane.begin(&cell(8, 92), &WORK).unwrap();
        assert!(lane.turn(0).is_err());
        assert!(lane.begin(&Cell { warmth: Warmth::Cold, ..cell(8, 92) }, &WORK).is_err());
    }
}
