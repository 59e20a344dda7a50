//! What a drain must know after a crash: which changes of names the target has.
//!
//! `DIR/drain` holds the paths of all files as of a record, up to which all changes of names are durable in the
//! target. `DIR/drain.intent` holds the changes that must not be made twice and may have been made or not: everything
//! before them was made, and of each of them tells the identity of the file that it is about whether it was. Both are
//! replaced as a whole.
//!
//! All other changes can be made again as long as nothing that comes behind has been made but such: a file,
//! directory or link that is there is left as it is.

use std::io;
use std::sync::Arc;

use hostlog::media::Media;
use hostlog::{FileId, Manifest, Sequence};

use crate::error::{Error, Result};
use crate::names::Names;

/// The files' names in the log's directory.
const STATE: &str = "drain";
const INTENT: &str = "drain.intent";
/// What was begun at the target and stays there until it is finished or abandoned.
const BEGUN: &str = "drain.begun";

/// The first bytes of both.
const MAGIC: &[u8; 8] = b"SlDrain\x01";

/// Changes of names that are done, and what follows from them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// All changes of names up to here are durable in the target.
    pub(crate) through: Sequence,
    /// Paths as of there.
    pub(crate) names: Names,
}

/// Changes that may have been made. Everything before the first of them was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Intents {
    /// Each with the identity of its file; `None` if there was none.
    pub(crate) of: Vec<(Sequence, Option<u64>)>,
}

impl Intents {
    /// The identity that a change's file had, if the change was intended.
    pub(crate) fn get(&self, sequence: Sequence) -> Option<Option<u64>> {
        self.of.iter().find(|(other, _)| *other == sequence).map(|(_, identity)| *identity)
    }

    /// Whether the change comes before the intended ones, so that it was surely made.
    pub(crate) fn are_behind(&self, sequence: Sequence) -> bool {
        self.of.first().is_some_and(|(first, _)| sequence < *first)
    }
}

/// Where both are kept.
pub(crate) struct Journal {
    media: Arc<dyn Media>,
    /// Tells this log's files from those of an earlier one in the same place.
    log: u64,
}

impl Journal {
    pub(crate) fn new(media: Arc<dyn Media>) -> Result<Self> {
        let log = Manifest::read(&*media)?.log;
        Ok(Self { media, log })
    }

    /// What was saved last.
    pub(crate) fn load(&self) -> Result<(State, Intents)> {
        let state = match self.read(STATE)? {
            Some(bytes) => decode_state(&bytes).ok_or_else(|| self.damaged(STATE))?,
            None => State::default(),
        };
        let intents = match self.read(INTENT)? {
            Some(bytes) => decode_intents(&bytes).ok_or_else(|| self.damaged(INTENT))?,
            None => Intents::default(),
        };
        // They were written before the state that says that they are done.
        let done = intents.of.first().is_some_and(|(first, _)| *first <= state.through);
        Ok((state, if done { Intents::default() } else { intents }))
    }

    pub(crate) fn save(&self, state: &State) -> Result<()> {
        self.write(STATE, &encode_state(state))
    }

    pub(crate) fn intend(&self, intents: &Intents) -> Result<()> {
        self.write(INTENT, &encode_intents(intents))
    }

    /// Writes down what is begun at the target, each with its path there; what was written down before is forgotten.
    pub(crate) fn begin(&self, begun: &[(&[u8], &str)]) -> Result<()> {
        let mut out = Vec::new();
        for text in begun.iter().flat_map(|(path, id)| [path, id.as_bytes()]) {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text);
        }
        self.write(BEGUN, &out)
    }

    /// What was begun.
    pub(crate) fn begun(&self) -> Result<Vec<(Vec<u8>, String)>> {
        let Some(bytes) = self.read(BEGUN)? else { return Ok(Vec::new()) };
        let mut rest = &bytes[..];
        let mut text = || {
            let len = u32::from_le_bytes(take(&mut rest)?) as usize;
            let (text, behind) = rest.split_at_checked(len)?;
            rest = behind;
            Some(text.to_vec())
        };
        let mut begun = Vec::new();
        while let Some(path) = text() {
            let id = text().and_then(|id| String::from_utf8(id).ok());
            begun.push((path, id.ok_or_else(|| self.damaged(BEGUN))?));
        }
        Ok(begun)
    }

    fn damaged(&self, name: &str) -> Error {
        Error::JournalDamaged { path: self.media.place().join(name) }
    }

    fn error(&self, operation: &'static str, name: &str, source: io::Error) -> Error {
        Error::Journal { operation, path: self.media.place().join(name), source }
    }

    fn write(&self, name: &str, body: &[u8]) -> Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.log.to_le_bytes());
        bytes.extend_from_slice(body);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        self.media.replace(name, &bytes).map_err(|source| self.error("writing", name, source))
    }

    /// The body of a file; `None` if there is none of this log.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let error = |source| self.error("reading", name, source);
        let file = match self.media.open(name, false) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(error(cause)),
        };
        let len = file.size().map_err(error)?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        file.read_at(&mut bytes, 0).map_err(error)?;
        let whole = bytes.split_last_chunk::<4>().filter(|(rest, crc)| {
            rest.starts_with(MAGIC) && crc32c::crc32c(rest) == u32::from_le_bytes(**crc)
        });
        let body = whole.and_then(|(rest, _)| rest[MAGIC.len()..].split_first_chunk::<8>());
        let Some((log, body)) = body else {
            return Err(self.damaged(name));
        };
        Ok((u64::from_le_bytes(*log) == self.log).then(|| body.to_vec()))
    }
}

/// The state's bytes: for the journal, and for whoever opens the log.
pub(crate) fn encode_state(state: &State) -> Vec<u8> {
    let mut out = state.through.0.to_le_bytes().to_vec();
    for (file, paths) in state.names.iter() {
        out.extend_from_slice(&file.0.to_le_bytes());
        out.extend_from_slice(&(paths.len() as u32).to_le_bytes());
        for path in paths {
            out.extend_from_slice(&(path.len() as u32).to_le_bytes());
            out.extend_from_slice(path);
        }
    }
    out
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*head)
}

fn decode_state(mut from: &[u8]) -> Option<State> {
    let from = &mut from;
    let mut state =
        State { through: Sequence(u64::from_le_bytes(take(from)?)), ..State::default() };
    while !from.is_empty() {
        let file = FileId(u64::from_le_bytes(take(from)?));
        state.names.know(file);
        for _ in 0..u32::from_le_bytes(take(from)?) {
            let len = u32::from_le_bytes(take(from)?) as usize;
            let (path, rest) = from.split_at_checked(len)?;
            state.names.bind(file, path);
            *from = rest;
        }
    }
    Some(state)
}

fn encode_intents(intents: &Intents) -> Vec<u8> {
    let mut out = Vec::new();
    for (sequence, identity) in &intents.of {
        out.extend_from_slice(&sequence.0.to_le_bytes());
        out.push(identity.is_some().into());
        out.extend_from_slice(&identity.unwrap_or(0).to_le_bytes());
    }
    out
}

fn decode_intents(mut from: &[u8]) -> Option<Intents> {
    let from = &mut from;
    let mut intents = Intents::default();
    while !from.is_empty() {
        let sequence = Sequence(u64::from_le_bytes(take(from)?));
        let [is_some] = take(from)?;
        let identity = u64::from_le_bytes(take(from)?);
        intents.of.push((sequence, (is_some != 0).then_some(identity)));
    }
    Some(intents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let mut state = State { through: Sequence(9), ..State::default() };
        state.names.bind(FileId(3), b"a/b\xff");
        state.names.bind(FileId(3), b"");
        state.names.know(FileId(4));
        let bytes = encode_state(&state);
        assert_eq!(decode_state(&bytes), Some(state));
        assert_eq!(decode_state(&bytes[..bytes.len() - 1]), None);
        let intents = Intents { of: vec![(Sequence(7), Some(0)), (Sequence(8), None)] };
        let bytes = encode_intents(&intents);
        assert_eq!(decode_intents(&bytes), Some(intents));
        assert_eq!(decode_intents(&bytes[1..]), None);
    }
}
