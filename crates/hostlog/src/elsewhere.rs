//! Bytes that lie in the logs of other nodes: this log has their place among its records, and asks for them when they are
//! read.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{Error, Result};
use crate::format::Kind;
use crate::ids::{FileId, Member, Position};
use crate::log::{Draft, Log, Placed, Value};

/// Other logs that one log can speak of at a time.
const LOGS_MAX: usize = 1 << 7;
/// How many bits of a position's segment are that of another log.
const SEGMENT_BITS: u32 = 24;
/// Says that a position is another log's. No segment of a log has so high a number.
pub(crate) const ELSEWHERE: u32 = 1 << 31;

/// Where bytes lie: in which log, by the number of its description, and where there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elsewhere {
    /// The log.
    pub log: u64,
    /// Where the first byte is.
    pub at: Position,
}

impl Elsewhere {
    /// The payload of a record that speaks of `len` bytes.
    fn encode(&self, len: u64) -> Vec<u8> {
        let mut out = len.to_le_bytes().to_vec();
        out.extend(self.log.to_le_bytes());
        out.extend(self.at.segment.to_le_bytes());
        out.extend(self.at.offset.to_le_bytes());
        out
    }

    /// What a payload says.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(u64, Self)> {
        let wide = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let at = Position { segment: number(16)?, offset: number(20)? };
        (bytes.len() == 24).then_some((wide(0)?, Self { log: wide(8)?, at }))
    }
}

/// Bytes of a file that are in another log.
#[derive(Debug, Clone, Copy)]
pub struct Refer {
    /// The connection or process that wrote them.
    pub stream: u32,
    /// The file.
    pub file: FileId,
    /// The epoch that they belong to.
    pub member: Member,
    /// Where in the file.
    pub offset: u64,
    /// How many.
    pub len: u64,
    /// Where they are.
    pub from: Elsewhere,
}

/// Gets bytes of other logs.
pub trait Fetch: Send + Sync {
    /// Fills the buffer.
    ///
    /// # Errors
    /// When the log cannot be reached; `NotFound` where it has given them away.
    fn fetch(&self, from: Elsewhere, buffer: &mut [u8]) -> io::Result<()>;
}

/// What a log knows of the others.
#[derive(Default)]
pub(crate) struct Others {
    logs: RwLock<Vec<u64>>,
    fetch: RwLock<Option<Arc<dyn Fetch>>>,
}

impl fmt::Debug for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Others").finish_non_exhaustive()
    }
}

impl Others {
    /// The position by which this log knows a place of another one; `None` where there are too many, or it is too far.
    pub(crate) fn position(&self, from: Elsewhere) -> Option<Position> {
        if from.at.segment >> SEGMENT_BITS != 0 {
            return None;
        }
        let mut logs = self.logs.write().unwrap_or_else(PoisonError::into_inner);
        let known = logs.iter().position(|log| *log == from.log);
        let index = known.unwrap_or(logs.len());
        if known.is_none() {
            if index == LOGS_MAX {
                return None;
            }
            logs.push(from.log);
        }
        let index = u32::try_from(index).ok()?;
        Some(Position { segment: ELSEWHERE | index << SEGMENT_BITS | from.at.segment, ..from.at })
    }

    fn place(&self, at: Position) -> Option<Elsewhere> {
        let index = (at.segment & !ELSEWHERE) >> SEGMENT_BITS;
        let segment = at.segment & ((1 << SEGMENT_BITS) - 1);
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        let log = *logs.get(index as usize)?;
        Some(Elsewhere { log, at: Position { segment, ..at } })
    }
}

impl Log {
    /// Has bytes of other logs fetched in this way.
    pub fn fetch_by(&self, fetch: Arc<dyn Fetch>) {
        *self.others.fetch.write().unwrap_or_else(PoisonError::into_inner) = Some(fetch);
    }

    /// Appends that bytes of a file are in another log. They must be durable there before a rank's [`prepare`](Log::prepare)
    /// of their epoch is appended here.
    ///
    /// # Errors
    /// As [`Log::change`]; `TooManyLogs`.
    pub fn refer(&self, refer: &Refer) -> Result<Placed> {
        let Refer { stream, file, member, offset, len, from } = *refer;
        let at = self.others.position(from).ok_or_else(|| self.too_many())?;
        let draft = Draft {
            kind: Kind::Elsewhere,
            namespace: false,
            file,
            value: Value::Is(offset),
            member: Some(member),
            stream,
        };
        let sequence = self.append(&draft, &from.encode(len), true)?;
        Ok(Placed { sequence, offset, len, at })
    }

    pub(crate) fn too_many(&self) -> Error {
        Error::TooManyLogs { place: self.place.clone(), max: LOGS_MAX }
    }

    /// Reads bytes of another log.
    pub(crate) fn read_elsewhere(&self, at: Position, buffer: &mut [u8]) -> Result<()> {
        let from = self.others.place(at);
        let from = from.ok_or_else(|| Error::Recycled { place: self.place.clone(), at })?;
        let fetch = self.others.fetch.read().unwrap_or_else(PoisonError::into_inner).clone();
        let fetched = match fetch {
            Some(fetch) => fetch.fetch(from, buffer),
            None => Err(io::Error::other("nobody was told where that is")),
        };
        fetched.map_err(|source| match source.kind() {
            // It was given away there, because the target has it.
            io::ErrorKind::NotFound => Error::Recycled { place: self.place.clone(), at },
            _ => Error::Elsewhere { place: self.place.clone(), log: from.log, source },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_other_logs_come_back_and_are_no_places_of_this_one() {
        let others = Others::default();
        for log in [5, 9, 5] {
            for segment in [0, 1, (1 << SEGMENT_BITS) - 1] {
                let from = Elsewhere { log, at: Position { segment, offset: 77 } };
                let at = others.position(from).unwrap();
                assert!(at.segment >= ELSEWHERE);
                assert_eq!(others.place(at), Some(from));
                let further = others.place(at.advanced(3)).unwrap();
                assert_eq!(further.at, Position { segment, offset: 80 });
            }
        }
        let far = Position { segment: 1 << SEGMENT_BITS, offset: 0 };
        assert_eq!(others.position(Elsewhere { log: 5, at: far }), None);
        let at = Position { segment: 1, offset: 0 };
        let told = (0..200).filter(|log| others.position(Elsewhere { log: *log, at }).is_some());
        assert_eq!(told.count(), LOGS_MAX - 2 + 2);
    }
}
