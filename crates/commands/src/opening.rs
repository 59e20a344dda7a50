//! An opened control file: one user of one dataset, command by command.

use std::sync::{Arc, Mutex, PoisonError};

use p9::{Attributes, Errno, SetAttributes};
use store::{OpenNode, Result as StoreResult};

use crate::stream::{Given, Output, Provider, Served, Shape, Source};
use crate::wire::{self, Message};
use crate::worker::{Step, Worker};

/// An opened control file.
pub(crate) struct Opening {
    pub(crate) attributes: Attributes,
    state: Mutex<State>,
}

struct State {
    provider: Arc<dyn Provider>,
    path: Vec<u8>,
    /// Written and not a whole message yet.
    up: Vec<u8>,
    up_position: u64,
    /// Made and not read yet, from the second on.
    down: Vec<u8>,
    down_taken: usize,
    down_position: u64,
    dataset: Option<Box<dyn Served>>,
    phase: Phase,
}

/// How far the command is.
enum Phase {
    /// There is none.
    Idle,
    /// It is to be carried out when its answer is asked for.
    Ready(Message),
    /// It has been carried out, and has more output.
    Giving { rest: Vec<u8>, shape: Shape, more: bool },
    /// A thread is at it; what it has come to is to be waited for.
    Working(Worker),
    /// The thread waits for input.
    Wanting(Worker),
    /// The thread has more output, to be asked for behind `rest`.
    WorkerGiving { worker: Worker, rest: Vec<u8>, shape: Shape, more: bool },
}

fn refuse<T>(operation: &'static str, errno: Errno) -> StoreResult<T> {
    Err(store::Error::System { operation, errno })
}

/// Input that came whole.
struct Whole {
    shape: Shape,
    data: Option<Vec<u8>>,
}

impl Source for Whole {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, String> {
        Ok(match self.data.take() {
            Some(data) => {
                *piece = data;
                true
            }
            None => false,
        })
    }

    fn has_ended(&self) -> bool {
        self.data.is_none()
    }
}

impl Opening {
    pub(crate) fn new(provider: &Arc<dyn Provider>, path: &[u8], attributes: Attributes) -> Self {
        let state = State {
            provider: Arc::clone(provider),
            path: path.to_vec(),
            up: Vec::new(),
            up_position: 0,
            down: Vec::new(),
            down_taken: 0,
            down_position: 0,
            dataset: None,
            phase: Phase::Idle,
        };
        Self { attributes, state: Mutex::new(state) }
    }
}

impl OpenNode for Opening {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> StoreResult<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Each byte is read once, in order: whoever asks for another one has lost track.
        if offset != wire::READ_BASE + state.down_position {
            return refuse("read", Errno::ESPIPE);
        }
        if state.down_taken == state.down.len() {
            state.down.clear();
            state.down_taken = 0;
            state.make_message();
        }
        let ready = &state.down[state.down_taken..];
        let count = ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        state.down_taken += count;
        state.down_position += count as u64;
        Ok(count)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> StoreResult<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if offset != state.up_position {
            return refuse("write", Errno::ESPIPE);
        }
        state.up.extend_from_slice(data);
        state.up_position += data.len() as u64;
        state.take_messages()?;
        Ok(data.len())
    }

    fn attributes(&self) -> StoreResult<Attributes> {
        Ok(self.attributes)
    }

    fn set_attributes(&self, _set: &SetAttributes) -> StoreResult<()> {
        refuse("setattr", Errno::EPERM)
    }

    fn sync(&self, _data_only: bool) -> StoreResult<()> {
        Ok(())
    }
}

impl State {
    /// Takes in what was written, message by message.
    fn take_messages(&mut self) -> StoreResult<()> {
        while let Some(length) = match Message::length(&self.up) {
            Ok(length) => length,
            Err(_) => return refuse("write", Errno::EINVAL),
        } {
            if self.up.len() < length {
                break;
            }
            let rest = self.up.split_off(length);
            let bytes = std::mem::replace(&mut self.up, rest);
            let Ok(message) = Message::decode(&bytes) else {
                return refuse("write", Errno::EINVAL);
            };
            match message.kind {
                wire::COMMAND => {
                    // The output of the one before is not wanted any more.
                    self.end_command();
                    self.phase = Phase::Ready(message);
                }
                wire::INPUT => match std::mem::replace(&mut self.phase, Phase::Idle) {
                    Phase::Wanting(worker) => {
                        worker.give(match message.is(wire::BROKEN) {
                            true => Err(String::from_utf8_lossy(&message.text).into_owned()),
                            false => Ok((message.data, message.flags & wire::MORE != 0)),
                        });
                        self.phase = Phase::Working(worker);
                    }
                    other => {
                        self.phase = other;
                        return refuse("write", Errno::EINVAL);
                    }
                },
                _ => return refuse("write", Errno::EINVAL),
            }
        }
        Ok(())
    }

    /// Ends the command that there is: who waits for input is told that there is none.
    fn end_command(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle | Phase::Ready(_) => {}
            Phase::Giving { .. } => self.dataset.iter_mut().for_each(|dataset| dataset.end()),
            Phase::Working(worker)
            | Phase::Wanting(worker)
            | Phase::WorkerGiving { worker, .. } => self.take_back(worker),
        }
    }

    /// Ends a thread's work, and has its dataset again.
    fn take_back(&mut self, worker: Worker) {
        self.dataset = worker.finish();
    }

    /// Makes the next message that is to be read; nothing, if there is no command.
    fn make_message(&mut self) {
        let message = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => return,
            Phase::Ready(command) => self.start(command),
            Phase::Giving { rest, shape, more } => {
                let output = match rest.is_empty() {
                    false => Ok(Output { shape, data: rest, more }),
                    true => match &mut self.dataset {
                        Some(dataset) => dataset.next(&mut Whole { shape, data: None }),
                        None => Err("the dataset is gone".to_owned()),
                    },
                };
                self.giving(output)
            }
            Phase::Working(worker) => self.wait(worker),
            // It waits as long as the client does not give what was asked for.
            Phase::Wanting(worker) => {
                self.phase = Phase::Wanting(worker);
                Message { kind: wire::WANT, ..Message::default() }
            }
            Phase::WorkerGiving { worker, rest, shape, more } => {
                if rest.is_empty() {
                    worker.ask();
                    self.wait(worker)
                } else {
                    self.worker_giving(worker, Ok(Output { shape, data: rest, more }))
                }
            }
        };
        message.encode(&mut self.down);
    }

    /// Carries out a command, or has a thread begin to.
    fn start(&mut self, command: Message) -> Message {
        let opened = if command.is(wire::STATE) {
            self.dataset = None;
            self.provider.resume(&command.state).map(Some)
        } else if self.dataset.is_none() {
            self.provider.open(&self.path).map(Some)
        } else {
            Ok(None)
        };
        match opened {
            Ok(Some(dataset)) => self.dataset = Some(dataset),
            Ok(None) => {}
            Err(text) => return self.answer(Given::failed(text), None),
        }
        let Some(mut dataset) = self.dataset.take() else {
            return self.answer(Given::failed("the dataset is gone"), None);
        };
        let wants_output = command.is(wire::WANTS_OUTPUT);
        // Without a command word it is only seen whether there is such a dataset.
        if command.text.is_empty() {
            self.dataset = Some(dataset);
            return self.answer(Given { success: true, ..Given::default() }, None);
        }
        if command.is(wire::MORE) {
            let Message { text, shape, data, .. } = command;
            return match Worker::start(dataset, text, shape, data, wants_output) {
                Ok(worker) => self.wait(worker),
                Err(text) => self.answer(Given::failed(text), None),
            };
        }
        let has_input = command.is(wire::HAS_INPUT);
        let data = has_input.then_some(command.data);
        let mut input = Whole { shape: command.shape, data };
        let given = dataset.run(&command.text, &mut input, has_input, wants_output);
        self.dataset = Some(dataset);
        self.answer(given, None)
    }

    /// What a thread has come to, as a message.
    fn wait(&mut self, worker: Worker) -> Message {
        match worker.wait() {
            Some(Step::Want) => {
                self.phase = Phase::Wanting(worker);
                Message { kind: wire::WANT, ..Message::default() }
            }
            Some(Step::Given(given)) => self.answer(given, Some(worker)),
            Some(Step::Output(output)) => self.worker_giving(worker, output),
            None => self.answer(Given::failed("the command has ended by a bug"), None),
        }
    }

    /// A command's answer, and what comes after it.
    fn answer(&mut self, given: Given, worker: Option<Worker>) -> Message {
        let Given { success, mut text, output: Output { shape, mut data, more } } = given;
        text.truncate(wire::TEXT_MAX);
        let rest = data.split_off(data.len().min(wire::DATA_MAX));
        let goes_on = more || !rest.is_empty();
        let mut flags = if success { wire::SUCCESS } else { 0 };
        match worker {
            Some(worker) if goes_on => {
                self.phase = Phase::WorkerGiving { worker, rest, shape, more };
            }
            Some(worker) => self.take_back(worker),
            None if goes_on => self.phase = Phase::Giving { rest, shape, more },
            None => self.dataset.iter_mut().for_each(|dataset| dataset.end()),
        }
        let mut state = Vec::new();
        if goes_on {
            flags |= wire::MORE;
        } else if let Some(told) = self.suspend() {
            flags |= wire::STATE;
            state = told;
        }
        Message { kind: wire::RESULT, flags, shape, text, state, data }
    }

    /// Closes the dataset between commands, if it can be opened again by what it tells.
    fn suspend(&mut self) -> Option<Vec<u8>> {
        let state = self.dataset.as_mut()?.suspend()?;
        if state.len() > wire::TEXT_MAX {
            return None;
        }
        self.dataset = None;
        Some(state)
    }

    /// A piece of output, and what comes after it.
    fn giving(&mut self, output: Result<Output, String>) -> Message {
        match output {
            Ok(Output { shape, mut data, more }) => {
                let rest = data.split_off(data.len().min(wire::DATA_MAX));
                let goes_on = more || !rest.is_empty();
                if goes_on {
                    self.phase = Phase::Giving { rest, shape, more };
                } else {
                    self.dataset.iter_mut().for_each(|dataset| dataset.end());
                }
                self.last(Message::output(Output { shape, data, more: goes_on }))
            }
            Err(text) => {
                self.dataset.iter_mut().for_each(|dataset| dataset.end());
                self.last(broken(text))
            }
        }
    }

    fn worker_giving(&mut self, worker: Worker, output: Result<Output, String>) -> Message {
        match output {
            Ok(Output { shape, mut data, more }) => {
                let rest = data.split_off(data.len().min(wire::DATA_MAX));
                let goes_on = more || !rest.is_empty();
                match goes_on {
                    true => self.phase = Phase::WorkerGiving { worker, rest, shape, more },
                    false => self.take_back(worker),
                }
                self.last(Message::output(Output { shape, data, more: goes_on }))
            }
            Err(text) => {
                self.take_back(worker);
                self.last(broken(text))
            }
        }
    }

    /// Tells the state with what is the last message of a command.
    fn last(&mut self, mut message: Message) -> Message {
        if !message.is(wire::MORE)
            && let Some(state) = self.suspend()
        {
            message.flags |= wire::STATE;
            message.state = state;
        }
        message
    }
}

/// Output that has failed.
fn broken(text: String) -> Message {
    let mut text = text.into_bytes();
    text.truncate(wire::TEXT_MAX);
    Message { kind: wire::OUTPUT, flags: wire::BROKEN, text, ..Message::default() }
}

impl Drop for State {
    fn drop(&mut self) {
        // A hook that does not end must not keep whoever closes the file: its thread ends with it, and the dataset is
        // dropped there.
        if let Phase::Giving { .. } = self.phase {
            self.dataset.iter_mut().for_each(|dataset| dataset.end());
        }
    }
}
