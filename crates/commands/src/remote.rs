//! A dataset of hooks, from the client's side.

use std::sync::Arc;

use client::{At, Connection, Handle, Repeat, Session};
use p9::{Data, OpenFlags, Reply, Request};

use crate::error::{Error, Result};
use crate::stream::{Given, Output, Source};
use crate::wire::{self, Message};

/// What the first read of an answer asks for: all of it, where a command gives little. A service clears the room for what is
/// asked for.
const FIRST_READ: u32 = 4096;

/// The data of one write: a service takes in what is larger piece by piece.
const WRITE_MAX: usize = 60 << 10;

/// An opened control file.
pub(crate) struct Remote {
    handle: Handle,
    /// The connection on which the positions and the dataset's state at the service are.
    connection: Option<Arc<Connection>>,
    up: u64,
    down: u64,
    /// By what the dataset is to be resumed.
    state: Option<Vec<u8>>,
    /// The service has carried out a command, and knows of it.
    used: bool,
    /// There is more output.
    more: bool,
}

impl Remote {
    /// Opens the control file at `path`.
    pub(crate) fn open(session: &Arc<Session>, path: &[u8]) -> Result<Self> {
        // To append: then services, and those between, keep reads and writes in their order.
        let flags = OpenFlags::READ_WRITE | OpenFlags::APPEND;
        let handle = session.open(At::root(path), flags, 0)?.handle;
        Ok(Self { handle, connection: None, up: 0, down: 0, state: None, used: false, more: false })
    }

    /// Carries out a command: gives the input as far as the service wants it, or to its end.
    pub(crate) fn run(
        &mut self,
        line: &[u8],
        input: Option<&mut dyn Source>,
        wants_output: bool,
    ) -> Result<Given> {
        if line.len() > wire::TEXT_MAX {
            return Err(Error::TooLong { bytes: line.len(), max: wire::TEXT_MAX });
        }
        let mut command =
            Message { kind: wire::COMMAND, text: line.to_vec(), ..Message::default() };
        if let Some(state) = &self.state {
            command.flags |= wire::STATE;
            command.state.clone_from(state);
        }
        if wants_output {
            command.flags |= wire::WANTS_OUTPUT;
        }
        let mut feed = Feed { input, left: Vec::new() };
        if feed.input.is_some() {
            command.flags |= wire::HAS_INPUT;
            feed.fill(&mut command);
            if command.is(wire::BROKEN) {
                return Err(Error::refused(String::from_utf8_lossy(&command.text)));
            }
        }
        self.more = false;
        let mut answer = self.exchange(&command)?;
        while answer.kind == wire::WANT {
            let mut piece = Message { kind: wire::INPUT, ..Message::default() };
            feed.fill(&mut piece);
            answer = self.exchange(&piece)?;
        }
        if answer.kind != wire::RESULT {
            return Err(Error::Malformed { what: "no result came" });
        }
        self.took(&answer);
        let Message { flags, shape, text, data, .. } = answer;
        let success = flags & wire::SUCCESS != 0;
        Ok(Given { success, text, output: Output { shape, data, more: self.more } })
    }

    /// The next piece of the last command's output. `input` is what is left of its input.
    pub(crate) fn next(&mut self, input: Option<&mut dyn Source>) -> Result<Output> {
        if !self.more {
            return Ok(Output::default());
        }
        let mut feed = Feed { input, left: Vec::new() };
        let mut answer = self.exchange_bytes(&[])?;
        while answer.kind == wire::WANT {
            let mut piece = Message { kind: wire::INPUT, ..Message::default() };
            feed.fill(&mut piece);
            answer = self.exchange(&piece)?;
        }
        self.took(&answer);
        match answer {
            Message { kind: wire::OUTPUT, flags, text, .. } if flags & wire::BROKEN != 0 => {
                Err(Error::refused(String::from_utf8_lossy(&text)))
            }
            Message { kind: wire::OUTPUT, shape, data, .. } => {
                Ok(Output { shape, data, more: self.more })
            }
            _ => Err(Error::Malformed { what: "no output came" }),
        }
    }

    fn took(&mut self, answer: &Message) {
        self.used = true;
        self.more = answer.is(wire::MORE);
        if !self.more {
            self.state = answer.is(wire::STATE).then(|| answer.state.clone());
        }
    }

    fn exchange(&mut self, message: &Message) -> Result<Message> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        self.exchange_bytes(&bytes)
    }

    /// Writes, and reads the one message that comes of it: one round trip, but for long ones.
    fn exchange_bytes(&mut self, bytes: &[u8]) -> Result<Message> {
        let Self { handle, connection: known, up, down, state, used, .. } = self;
        let begins = bytes.first() == Some(&wire::COMMAND);
        let mut lost = false;
        let answered = handle.with(Repeat::OnlyUnsent, |connection, fid| {
            if !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, connection)) {
                // On a new connection the file has been opened anew: what the service knew is lost, but for a state.
                lost = known.is_some() && (!begins || (*used && state.is_none()));
                if lost {
                    return Ok(Vec::new());
                }
                (*up, *down) = (0, 0);
                *known = Some(Arc::clone(connection));
            }
            let mut requests = Vec::with_capacity(2);
            for part in bytes.chunks(WRITE_MAX) {
                requests.push(Request::Write { fid, offset: *up, data: Data(part) });
                *up += part.len() as u64;
            }
            let offset = wire::READ_BASE + *down;
            requests.push(Request::Read { fid, offset, count: FIRST_READ });
            let writes = requests.len() - 1;
            let mut tickets = connection.submit_all(&requests)?.into_iter();
            let mut refused = Ok(());
            for ticket in tickets.by_ref().take(writes) {
                match connection.wait(ticket) {
                    Ok(body) => connection.recycle(body),
                    Err(error) => refused = refused.and(Err(error)),
                }
            }
            let ticket = tickets.next().ok_or(p9::Errno::EIO)?;
            let body = connection.wait(ticket);
            refused?;
            let body = body?;
            let mut answer = match body.reply() {
                Ok(Reply::Read { data: Data(data) }) => data.to_vec(),
                _ => return Err(p9::Errno::EPROTO.into()),
            };
            connection.recycle(body);
            *down += answer.len() as u64;
            while let Ok(wanted) = Message::length(&answer)
                && let missing = wanted.unwrap_or(wire::HEAD_LEN).saturating_sub(answer.len())
                && missing > 0
            {
                let count = missing.min(connection.payload_max());
                let ticket = connection.submit_read(fid, wire::READ_BASE + *down, count as u32)?;
                let start = answer.len();
                answer.resize(start + count, 0);
                let read = connection.wait_read(ticket, &mut answer[start..])?;
                answer.truncate(start + read);
                *down += read as u64;
                if read == 0 {
                    break;
                }
            }
            Ok(answer)
        });
        if lost {
            return Err(Error::StateLost);
        }
        Message::decode(&answered?)
    }

    /// Ends the use.
    pub(crate) fn close(self) {
        self.handle.close();
    }
}

/// The input as messages.
struct Feed<'i> {
    input: Option<&'i mut dyn Source>,
    /// Of a piece that is larger than a message.
    left: Vec<u8>,
}

impl Feed<'_> {
    /// Puts the next piece of input into `message`.
    fn fill(&mut self, message: &mut Message) {
        let Some(input) = &mut self.input else { return };
        message.shape = input.shape();
        if self.left.is_empty() {
            match input.next(&mut self.left) {
                Ok(true) => {}
                Ok(false) => return,
                Err(text) => {
                    message.flags |= wire::BROKEN;
                    message.text = text.into_bytes();
                    message.text.truncate(wire::TEXT_MAX);
                    self.input = None;
                    return;
                }
            }
        }
        let rest = self.left.split_off(self.left.len().min(wire::DATA_MAX));
        message.data = std::mem::replace(&mut self.left, rest);
        if !self.left.is_empty() || !input.has_ended() {
            message.flags |= wire::MORE;
        }
    }
}
