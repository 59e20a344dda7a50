//! A command whose input is still coming: a thread that carries it out, and stops where it needs the client.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::stream::{Given, Output, Served, Shape, Source};

/// What the thread has come to.
pub(crate) enum Step {
    /// It wants more input.
    Want,
    /// The command's answer.
    Given(Given),
    /// A piece of output, after the answer.
    Output(Result<Output, String>),
}

/// What it is told.
enum Word {
    /// Input: the piece, and whether there is more; or why there is none.
    Input(Result<(Vec<u8>, bool), String>),
    /// More output is wanted.
    Next,
}

/// A thread that carries out one command. Dropping this ends its input; the thread then ends as soon as the command
/// does.
pub(crate) struct Worker {
    words: SyncSender<Word>,
    steps: Receiver<Step>,
    back: Receiver<Box<dyn Served>>,
}

/// Most threads that wait for input, of all openings of a process: what a client can take.
const WORKERS_MAX: usize = 256;

static WORKERS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

struct Counted;

impl Counted {
    fn new() -> Option<Self> {
        use std::sync::atomic::Ordering::Relaxed;
        let room = |count| (count < WORKERS_MAX).then_some(count + 1);
        WORKERS.fetch_update(Relaxed, Relaxed, room).ok().map(|_| Self)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        WORKERS.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Worker {
    /// Starts a command whose input begins with `first`. Gives the dataset back with a reason if no thread is to be had.
    pub(crate) fn start(
        mut dataset: Box<dyn Served>,
        line: Vec<u8>,
        shape: Shape,
        first: Vec<u8>,
        wants_output: bool,
    ) -> Result<Self, String> {
        let Some(counted) = Counted::new() else {
            return Err(format!("{WORKERS_MAX} commands are waiting for their input already"));
        };
        let (words, told) = sync_channel(1);
        let (say, steps) = sync_channel(1);
        let (give_back, back) = sync_channel(1);
        let work = move || {
            let _counted = counted;
            let mut input =
                Awaited { shape, first: Some(first), ended: false, say: say.clone(), told };
            let given = dataset.run(&line, &mut input, true, wants_output);
            let mut more = given.output.more;
            let mut heard = say.send(Step::Given(given)).is_ok();
            while heard && more {
                match input.told.recv() {
                    Ok(Word::Next) => {}
                    // Input that nobody asked for, or nobody is there.
                    Ok(Word::Input(_)) => continue,
                    Err(_) => break,
                }
                let output = dataset.next(&mut input);
                more = output.as_ref().is_ok_and(|output| output.more);
                heard = say.send(Step::Output(output)).is_ok();
            }
            dataset.end();
            let _ = give_back.send(dataset);
        };
        let thread = std::thread::Builder::new().name("command".into());
        match thread.spawn(work) {
            Ok(_) => Ok(Self { words, steps, back }),
            Err(error) => Err(format!("no thread for the command: {error}")),
        }
    }

    /// Gives it a piece of input.
    pub(crate) fn give(&self, input: Result<(Vec<u8>, bool), String>) {
        // If it has ended, its end is what comes next.
        let _ = self.words.send(Word::Input(input));
    }

    /// Asks for more output.
    pub(crate) fn ask(&self) {
        let _ = self.words.send(Word::Next);
    }

    /// Waits for what it comes to; `None`: it has ended by a panic.
    pub(crate) fn wait(&self) -> Option<Step> {
        self.steps.recv().ok()
    }

    /// The dataset, after the last step.
    pub(crate) fn finish(self) -> Option<Box<dyn Served>> {
        let Self { words, steps, back } = self;
        // It must neither wait for a word nor for somebody to hear it.
        drop(words);
        drop(steps);
        back.recv().ok()
    }
}

/// The input, as the thread sees it.
struct Awaited {
    shape: Shape,
    first: Option<Vec<u8>>,
    ended: bool,
    say: SyncSender<Step>,
    told: Receiver<Word>,
}

impl Source for Awaited {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, String> {
        if let Some(first) = self.first.take() {
            *piece = first;
            return Ok(true);
        }
        if self.ended {
            return Ok(false);
        }
        let gone = || "whoever gave the command is gone".to_owned();
        self.say.send(Step::Want).map_err(|_| gone())?;
        match self.told.recv() {
            Ok(Word::Input(Ok((data, more)))) => {
                self.ended = !more;
                *piece = data;
                Ok(true)
            }
            Ok(Word::Input(Err(text))) => {
                self.ended = true;
                Err(text)
            }
            Ok(Word::Next) | Err(_) => {
                self.ended = true;
                Err(gone())
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.first.is_none() && self.ended
    }
}
