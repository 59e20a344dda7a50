//! Appending: a place is reserved under the lock, the bytes are written outside of it.

use std::io::{self, IoSlice};
use std::sync::Arc;

use super::{Log, Segment, State};
use crate::error::{Error, Result};
use crate::format::{Header, Kind, RECORD_HEADER_BYTES, SEQUENCE_MAX, record_end};
use crate::ids::{FileId, Member, Position, Sequence};
use crate::names::SEGMENTS;
use crate::operation::Operation;

/// A write is cut at the end of a segment only if at least so much of it comes before.
const CUT_BYTES_MIN: u64 = 64 << 10;

/// Bytes written to a file.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The connection or process that wrote them.
    pub stream: u32,
    /// The file.
    pub file: FileId,
    /// The epoch that they belong to, if the file was opened by a group.
    pub member: Option<Member>,
    /// Where in the file.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Whose commit makes an operation count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The connection or process that asked for it.
    pub stream: u32,
    /// The file that it is about; [`FileId::NONE`] if it is about names alone.
    pub file: FileId,
    /// The epoch that it belongs to, if the file was opened by a group.
    pub member: Option<Member>,
    /// Whether it belongs to the namespace: then it counts as soon as anything behind it is committed.
    pub namespace: bool,
}

/// Where a piece of a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Its record.
    pub sequence: Sequence,
    /// Where in the file.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
    /// Where its first byte lies in the log.
    pub at: Position,
}

/// Where a write went: in one piece, unless it met the end of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placements {
    first: Option<Placed>,
    more: Vec<Placed>,
}

impl Placements {
    fn push(&mut self, placed: Placed) {
        match self.first {
            None => self.first = Some(placed),
            Some(_) => self.more.push(placed),
        }
    }

    /// The pieces, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Placed> {
        self.first.iter().chain(&self.more)
    }

    /// How many bytes they have together: fewer than were to be written if the log became full.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.iter().map(|placed| placed.len).sum()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

/// What the value of a record is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    Is(u64),
    /// The sequence of the record before.
    Before,
}

/// A record before it has its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    pub(crate) namespace: bool,
    pub(crate) file: FileId,
    pub(crate) value: Value,
    pub(crate) member: Option<Member>,
    pub(crate) stream: u32,
}

/// A record's place, with a header that lacks the payload's checksum.
struct Reserved {
    segment: Arc<Segment>,
    offset: u64,
    salt: u32,
    header: Header,
    /// A restart that has to be written before it.
    restart: Option<(Header, u64)>,
}

enum Step {
    Reserved(Reserved),
    /// First so many segments have to be ready.
    Segments(usize),
    Full,
}

impl Log {
    /// Appends bytes of a file. They can be read at once, count when they are committed, and are durable
    /// then. Of what several threads write at once, the higher sequence is the newer.
    ///
    /// The write may be short where the log becomes full on the way.
    ///
    /// # Errors
    /// `Full` if nothing could be written: wait for the drain ([`Log::wait_for_space`]). `Failed`, `System`.
    pub fn write(&self, write: &Write<'_>) -> Result<Placements> {
        let mut placements = Placements::default();
        let mut rest = write.bytes;
        let mut offset = write.offset;
        while !rest.is_empty() {
            let draft = Draft {
                kind: Kind::Data,
                namespace: false,
                file: write.file,
                value: Value::Is(offset),
                member: write.member,
                stream: write.stream,
            };
            let len = rest.len() as u64;
            let reserved = match self.reserve(&draft, len, CUT_BYTES_MIN.min(len), true) {
                Ok(reserved) => reserved,
                Err(Error::Full { .. } | Error::System { .. }) if !placements.is_empty() => break,
                Err(error) => return Err(error),
            };
            let (piece, behind) = rest.split_at(reserved.header.len as usize);
            let at = Position {
                segment: reserved.header.segment,
                offset: (reserved.offset + RECORD_HEADER_BYTES) as u32,
            };
            let (sequence, len) = (reserved.header.sequence, piece.len() as u64);
            self.put(reserved, piece, crc32c::crc32c(piece))?;
            placements.push(Placed { sequence, offset, len, at });
            offset += len;
            rest = behind;
        }
        Ok(placements)
    }

    /// Appends a change that is no data.
    ///
    /// # Errors
    /// `Full`: wait for the drain. `TooLarge`, `Failed`, `System`.
    pub fn change(&self, change: &Change, operation: &Operation) -> Result<Sequence> {
        let draft = Draft {
            kind: Kind::Operation,
            namespace: change.namespace,
            file: change.file,
            value: Value::Is(0),
            member: change.member,
            stream: change.stream,
        };
        self.append(&draft, &operation.encode(), true)
    }

    /// Appends a record as a whole. Only `limited` ones are refused when the log is full.
    pub(crate) fn append(&self, draft: &Draft, payload: &[u8], limited: bool) -> Result<Sequence> {
        let len = payload.len() as u64;
        if len > self.payload_bytes_max() {
            return Err(Error::TooLarge { len, segment_bytes: self.manifest.segment_bytes });
        }
        let crc = crc32c::crc32c(payload);
        let reserved = self.reserve(draft, len, len, limited)?;
        let sequence = reserved.header.sequence;
        self.put(reserved, payload, crc)?;
        Ok(sequence)
    }

    /// Finds a place for a record with `len` bytes of payload, or with fewer, but no fewer than `len_min`.
    fn reserve(&self, draft: &Draft, len: u64, len_min: u64, limited: bool) -> Result<Reserved> {
        // In small segments no piece can be as large as one would like.
        let len_min = len_min.min(self.payload_bytes_max());
        loop {
            let mut state = self.state();
            if let Some(failure) = self.failure(&state) {
                return Err(failure);
            }
            // With the record of a restart before it: what is opened must be found below the limit again.
            if state.next >= SEQUENCE_MAX - 1 {
                drop(state);
                let source = io::Error::other("the log has used all numbers that records can have");
                return Err(self.fail(Error::system("writing", &self.place, SEGMENTS, source)));
            }
            match self.try_reserve(&mut state, draft, len, len_min, limited) {
                Step::Reserved(reserved) => return Ok(reserved),
                Step::Segments(want) => {
                    drop(state);
                    match self.make_ready(want, limited) {
                        // The next turn says what that means for this record.
                        Err(Error::System { .. })
                            if limited && self.state().disk_full.is_some() => {}
                        made => made?,
                    }
                }
                Step::Full => {
                    let disk_full = state.disk_full.is_some();
                    let bytes = match disk_full {
                        true => state.files * self.manifest.segment_bytes,
                        false => self.options.size_max_bytes,
                    };
                    return Err(Error::Full { place: self.place.clone(), bytes, disk_full });
                }
            }
        }
    }

    fn try_reserve(
        &self,
        state: &mut State,
        draft: &Draft,
        len: u64,
        len_min: u64,
        limited: bool,
    ) -> Step {
        let segment_bytes = self.manifest.segment_bytes;
        let fits = |offset: u64| record_end(offset, len_min) <= segment_bytes;
        let mut restart = None;
        if limited && state.disk_full.is_some() && self.spare(state) == 0 {
            // The segment that was kept is in use. Data must not fill it: there is no other for the mark that frees some.
            return if self.may_grow(state) { Step::Segments(1) } else { Step::Full };
        }
        if !state.tail.as_ref().is_some_and(|tail| fits(tail.offset)) {
            // One segment is kept for what must get on even when the log or the disk is full of data.
            let is_tried_again = state.disk_full.is_some() && self.may_grow(state);
            if limited && self.spare(state) < 2 && !is_tried_again {
                return Step::Full;
            }
            if limited && state.ready.len() + state.free.len() < 2 {
                return Step::Segments(2);
            }
            if !self.begin_segment(state) {
                return Step::Segments(1);
            }
            if let Some(last) = state.restart.take() {
                let draft = Draft {
                    kind: Kind::Restart,
                    namespace: false,
                    file: FileId::NONE,
                    value: Value::Is(last),
                    member: None,
                    stream: 0,
                };
                if let Some((header, _, offset)) = place(state, &draft, 0) {
                    state.rules.apply(&header, &[]);
                    restart = Some((header, offset));
                }
            }
        }
        let room = state
            .tail
            .as_ref()
            .map_or(0, |tail| segment_bytes.saturating_sub(tail.offset + RECORD_HEADER_BYTES));
        let salt = state.tail.as_ref().map_or(0, |tail| tail.used.salt);
        let Some((header, segment, offset)) = place(state, draft, len.min(room)) else {
            return Step::Segments(1);
        };
        Step::Reserved(Reserved { segment, offset, salt, header, restart })
    }

    /// Writes a record to its place, and says that it is written.
    fn put(&self, reserved: Reserved, payload: &[u8], crc: u32) -> Result<()> {
        let Reserved { segment, offset, salt, mut header, restart } = reserved;
        header.payload_crc = crc;
        let error =
            |source| self.fail(Error::system("writing", &self.place, &segment.name, source));
        if let Some((restart, offset)) = restart {
            let bytes = restart.encode(salt);
            segment.file.write_at(&[IoSlice::new(&bytes)], offset).map_err(error)?;
            self.written(restart, &[]);
        }
        let bytes = header.encode(salt);
        let parts = [IoSlice::new(&bytes), IoSlice::new(payload)];
        segment.file.write_at(&parts, offset).map_err(error)?;
        self.written(header, payload);
        Ok(())
    }

    /// Takes notice that a record is written, and remembers what it decides until it is durable.
    fn written(&self, header: Header, payload: &[u8]) {
        let decides = match header.kind {
            Kind::Data | Kind::Elsewhere | Kind::Operation | Kind::Drained | Kind::Restart => false,
            Kind::Prepare | Kind::Commit | Kind::Abort | Kind::CommitGroup | Kind::AbortGroup => {
                true
            }
        };
        let mut state = self.state();
        if decides {
            let at = state.decisions.partition_point(|(other, _)| other.sequence < header.sequence);
            state.decisions.insert(at, (header, payload.to_vec()));
        }
        let index = (header.sequence.0 - state.written - 1) as usize;
        state.writing[index] = true;
        let before = state.written;
        while state.writing.front() == Some(&true) {
            state.writing.pop_front();
            state.written += 1;
        }
        state.unsynced += u64::from(header.len);
        state.untold += u64::from(header.len);
        if state.sync_ahead_at.is_some_and(|bytes| state.unsynced >= bytes) {
            state.sync_ahead_at = None;
            self.grown.notify_one();
        }
        if state.written > before {
            self.announce(state);
        }
    }
}

/// Gives a record the next sequence and the next place. `None` where there is no segment.
fn place(state: &mut State, draft: &Draft, len: u64) -> Option<(Header, Arc<Segment>, u64)> {
    let tail = state.tail.as_mut()?;
    let sequence = state.next;
    let offset = tail.offset;
    let header = Header {
        kind: draft.kind,
        namespace: draft.namespace,
        sequence: Sequence(sequence),
        segment: tail.used.number,
        len: len as u32,
        file: draft.file,
        value: match draft.value {
            Value::Is(value) => value,
            Value::Before => sequence - 1,
        },
        member: draft.member,
        stream: draft.stream,
        durable: Sequence(state.durable),
        payload_crc: 0,
    };
    tail.offset = record_end(offset, len);
    let segment = tail.segment.clone();
    state.next += 1;
    state.writing.push_back(false);
    if let Some(live) = state.live.back_mut() {
        live.last = sequence;
        live.dirty = true;
    }
    Some((header, segment, offset))
}
