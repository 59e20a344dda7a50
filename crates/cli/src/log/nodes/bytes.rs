//! Bytes of a member's log for whoever has the home's: its drain, its readers, and who recovers it.
//!
//! ```text
//! asked    12 bytes: segment, offset in it, how many; 4 bytes each, little endian
//! answer   1 byte: 0, and the bytes; or 1: they were given away, because the target has them; or 2: they cannot be read
//! ```

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use hostlog::{Elsewhere, Fetch, Log, Position};

use super::greeting::Secret;
use super::home::{Gate, call};
use super::{Meeting, Node};
use crate::log::agent::{explain, options};
use crate::log::files::Place;

/// So many bytes are asked for at once; a longer answer would be memory that anybody who knows the secret can take.
const ASKED_MAX: usize = 8 << 20;

/// Serves a log's bytes, and tells the home's side where.
pub(crate) fn serve(
    meeting: &Meeting,
    (log, number): (&Arc<Log>, u64),
    here: Node,
    listen: Option<&str>,
) -> Result<Gate> {
    let (listener, address) = super::listener(listen)?;
    let secret = Secret::random().context("no random numbers for a secret")?;
    let gate = {
        let log = Arc::clone(log);
        Gate::open(listener, secret.clone(), move |stream| {
            // It ends when the other one goes.
            let _ = answer(&log, stream);
        })
    };
    meeting.publish_member(number, &Node { address: Some(address), secret, ..here })?;
    Ok(gate)
}

fn answer(log: &Log, mut stream: TcpStream) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let mut asked = [0; 12];
        stream.read_exact(&mut asked)?;
        let number = |at: usize| {
            let four = [asked[at], asked[at + 1], asked[at + 2], asked[at + 3]];
            u32::from_le_bytes(four)
        };
        let (at, len) = (Position { segment: number(0), offset: number(4) }, number(8) as usize);
        if len > ASKED_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        bytes.clear();
        bytes.resize(len + 1, 0);
        match log.read(at, &mut bytes[1..]) {
            Ok(()) => stream.write_all(&bytes)?,
            Err(hostlog::Error::Recycled { .. }) => stream.write_all(&[1])?,
            Err(_) => stream.write_all(&[2])?,
        }
    }
}

fn ask(stream: &mut TcpStream, at: Position, buffer: &mut [u8]) -> io::Result<()> {
    let len = u32::try_from(buffer.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let words = [at.segment, at.offset, len];
    stream.write_all(words.map(u32::to_le_bytes).as_flattened())?;
    let mut code = [0];
    stream.read_exact(&mut code)?;
    match code {
        [0] => stream.read_exact(buffer),
        [1] => Err(io::ErrorKind::NotFound.into()),
        _ => Err(io::Error::other("its log cannot be read; its agent.log may say why")),
    }
}

/// Gets the bytes of members: from their agents, or from their logs' directories where those can be reached.
pub(crate) struct Members {
    meeting: Option<Meeting>,
    /// Logs that are open here.
    open: HashMap<u64, Log>,
    /// Connections that nobody uses now.
    idle: Mutex<HashMap<u64, Vec<TcpStream>>>,
}

impl Members {
    /// Those of a meeting.
    pub(crate) fn of(meeting: Option<Meeting>) -> Self {
        Self { meeting, open: HashMap::new(), idle: Mutex::default() }
    }

    /// Those of a log's meeting, and logs in directories.
    pub(crate) fn with(place: &Place, dirs: &[PathBuf]) -> Result<Self> {
        let mut members = Self::of(Meeting::of(place)?.map(|(meeting, _)| meeting));
        for dir in dirs {
            let place = Place::of(dir)?;
            let (log, _) = place.open(options(None)).map_err(|error| explain(error, &place))?;
            members.open.insert(super::member::number(&place)?, log);
        }
        Ok(members)
    }

    /// Has a log ask them.
    pub(crate) fn answer_to(self, log: &Log) {
        log.fetch_by(Arc::new(self));
    }

    fn connected(&self, log: u64) -> io::Result<TcpStream> {
        let unknown = || {
            io::Error::other(format!(
                "where log {log:016x} is nobody has said: run `sluice log recover` for it on its node, or name its \
                 directory by --with"
            ))
        };
        let meeting = self.meeting.as_ref().ok_or_else(unknown)?;
        let node = meeting.member(log).map_err(|error| io::Error::other(format!("{error:#}")))?;
        let node = node.ok_or_else(unknown)?;
        call(&node).map_err(|error| {
            let Node { host, dir, .. } = &node;
            let dir = dir.display();
            io::Error::other(format!(
                "{error:#}; if its agent has ended, run `sluice log recover {dir}` on {host}"
            ))
        })
    }
}

impl Fetch for Members {
    fn fetch(&self, from: Elsewhere, buffer: &mut [u8]) -> io::Result<()> {
        if let Some(log) = self.open.get(&from.log) {
            return log.read(from.at, buffer).map_err(|error| match error {
                hostlog::Error::Recycled { .. } => io::ErrorKind::NotFound.into(),
                error => io::Error::other(error),
            });
        }
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        for piece in buffer.chunks_mut(ASKED_MAX) {
            let at = from.at.advanced(done);
            done += piece.len() as u64;
            let used = idle().get_mut(&from.log).and_then(Vec::pop);
            let again = match used {
                Some(mut stream) => match ask(&mut stream, at, piece) {
                    Ok(()) => {
                        idle().entry(from.log).or_default().push(stream);
                        continue;
                    }
                    // The agent may have been started again since.
                    Err(error) if error.kind() != io::ErrorKind::NotFound => true,
                    Err(error) => return Err(error),
                },
                None => true,
            };
            if again {
                let mut stream = self.connected(from.log)?;
                ask(&mut stream, at, piece)?;
                idle().entry(from.log).or_default().push(stream);
            }
        }
        Ok(())
    }
}
