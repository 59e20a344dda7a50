//! What counts, in the log's order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::elsewhere::Elsewhere;
use crate::error::{Error, Result};
use crate::format::{
    Bad, Header, Kind, RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, Use, record_end,
};
use crate::ids::{FileId, Member, Position, Sequence};
use crate::log::{Log, Segment};
use crate::operation::Operation;
use crate::rules::{Fate, Rules};
use crate::window::Window;

/// A record that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// Its place in the log's order.
    pub sequence: Sequence,
    /// The connection or process that asked for it.
    pub stream: u32,
    /// The file that it is about.
    pub file: FileId,
    /// The epoch that it belonged to.
    pub member: Option<Member>,
    /// What it says.
    pub what: What,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Bytes of the file.
    Data {
        /// Where in the file.
        offset: u64,
        /// How many.
        len: u64,
        /// Where the first lies in the log, or in another one.
        at: Position,
    },
    /// A change that is no data.
    Operation(Operation),
}

/// The records that count and are not drained, in order. What is committed while it runs may or may not
/// be among them.
pub struct Replay<'a> {
    log: &'a Log,
    segments: std::vec::IntoIter<(Arc<Segment>, Use, u64)>,
    here: Option<Here>,
    drained: u64,
    skipped: u64,
    first_pending: Option<Sequence>,
    names_pending: bool,
    failed: bool,
    /// What counted when it began, if that is what is asked for.
    rules: Option<Rules>,
}

struct Here {
    segment: Arc<Segment>,
    number: u32,
    /// The last record to look at.
    last: u64,
    offset: u64,
    window: Window,
}

impl Log {
    /// Goes through all records that count, are durable and lie behind what is drained.
    #[must_use]
    pub fn replay(&self) -> Replay<'_> {
        self.replay_after(Sequence(0))
    }

    /// The same, from behind `after` on.
    #[must_use]
    pub fn replay_after(&self, after: Sequence) -> Replay<'_> {
        let state = self.state();
        let drained = state.drained.max(after.0);
        let segments: Vec<_> = state
            .live
            .iter()
            .filter(|live| live.first <= state.durable && live.last > drained)
            .map(|live| (live.segment.clone(), live.used, live.last.min(state.durable)))
            .collect();
        let segments = segments.into_iter();
        Replay {
            log: self,
            segments,
            here: None,
            drained,
            skipped: 0,
            first_pending: None,
            names_pending: false,
            failed: false,
            rules: None,
        }
    }

    /// The same as [`Log::replay`] with what counts at this moment: nothing that is committed while it runs is among it.
    #[must_use]
    pub fn replay_of_now(&self) -> Replay<'_> {
        // First the rules: what is durable by then is among what is looked at.
        let rules = self.state().rules.clone();
        Replay { rules: Some(rules), ..self.replay() }
    }
}

impl Replay<'_> {
    /// How many records of data and operations were passed over so far, because they do not count.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The first record passed over so far that may still come to count. Nothing from there on may be marked as
    /// [drained](Log::drained).
    #[must_use]
    pub fn first_pending(&self) -> Option<Sequence> {
        self.first_pending
    }

    /// Whether a record of the namespace was passed over so far that may still come to count. What comes behind it
    /// may rely on it: a commit may have been made since it was passed.
    #[must_use]
    pub fn names_pending(&self) -> bool {
        self.names_pending
    }

    fn step(&mut self) -> Result<Option<Replayed>> {
        loop {
            if self.here.is_none() {
                let Some((segment, used, last)) = self.segments.next() else {
                    return Ok(None);
                };
                let (segment_bytes, number) = (self.log.manifest.segment_bytes, used.number);
                let window = Window::new(segment.file.clone(), segment_bytes, used);
                let offset = SEGMENT_HEADER_BYTES;
                self.here = Some(Here { segment, number, last, offset, window });
            }
            let Some(here) = &mut self.here else {
                return Ok(None);
            };
            let (found, ended) = here.record(self.log)?;
            if ended {
                self.here = None;
            }
            let Some((header, what)) = found else {
                continue;
            };
            if header.sequence.0 <= self.drained {
                continue;
            }
            let fate = match &self.rules {
                Some(rules) => rules.fate(&header),
                None => self.log.state().rules.fate(&header),
            };
            if fate != Fate::Committed {
                self.skipped += 1;
                if fate == Fate::Pending {
                    self.first_pending.get_or_insert(header.sequence);
                    self.names_pending |= header.namespace;
                }
                continue;
            }
            let Header { sequence, stream, file, member, .. } = header;
            return Ok(Some(Replayed { sequence, stream, file, member, what }));
        }
    }
}

impl Here {
    /// The record at the offset, if it is data or an operation, and whether it is the last.
    fn record(&mut self, log: &Log) -> Result<(Option<(Header, What)>, bool)> {
        let at = Position { segment: self.number, offset: self.offset as u32 };
        let system = |source| Error::system("reading", &log.place, &self.segment.name, source);
        let found = self.window.header(self.offset).map_err(system)?;
        let recycled = || Error::Recycled { place: log.place.clone(), at };
        let lost = |bad: Bad, last: Sequence| Error::Corrupt {
            place: log.place.clone(),
            last,
            durable: Sequence(self.last),
            segment: self.segment.name.clone(),
            offset: self.offset,
            found: bad.to_string(),
        };
        let header = match found {
            Ok(header) if self.is_live() => header,
            Ok(_) => return Err(recycled()),
            Err(_) if !self.is_live() => return Err(recycled()),
            // It was whole when the log was opened or when it was written.
            Err(bad) => return Err(lost(bad, Sequence(0))),
        };
        let ended = header.sequence.0 >= self.last;
        let what = match header.kind {
            Kind::Data => Some(What::Data {
                offset: header.value,
                len: u64::from(header.len),
                at: at.advanced(RECORD_HEADER_BYTES),
            }),
            Kind::Elsewhere => {
                let payload = self.window.payload(self.offset, &header).map_err(system)?;
                if !self.is_live() {
                    return Err(recycled());
                }
                let (len, from) = Elsewhere::decode(&payload)
                    .ok_or_else(|| lost(Bad::Malformed, header.sequence))?;
                let at = log.others.position(from).ok_or_else(|| log.too_many())?;
                Some(What::Data { offset: header.value, len, at })
            }
            Kind::Operation => {
                let payload = self.window.payload(self.offset, &header).map_err(system)?;
                if !self.is_live() {
                    return Err(recycled());
                }
                let operation = Operation::decode(&payload)
                    .ok_or_else(|| lost(Bad::Malformed, header.sequence))?;
                Some(What::Operation(operation))
            }
            Kind::Prepare
            | Kind::Commit
            | Kind::Abort
            | Kind::CommitGroup
            | Kind::AbortGroup
            | Kind::Drained
            | Kind::Restart => None,
        };
        self.offset = record_end(self.offset, u64::from(header.len));
        Ok((what.map(|what| (header, what)), ended))
    }

    fn is_live(&self) -> bool {
        self.segment.number.load(Ordering::Acquire) == self.number
    }
}

impl Iterator for Replay<'_> {
    type Item = Result<Replayed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.step().transpose();
        self.failed = matches!(item, Some(Err(_)));
        item
    }
}
