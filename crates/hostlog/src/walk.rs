//! From the first record to the last: what a log holds after whatever befell it.
//!
//! A log ends at the first record that is not the next one. Behind that may lie the ruins of writes
//! that a crash cut short, or of records that had been durable and have since been damaged. They are
//! told apart by what is known to have been durable: the checkpoint says so, and every record says it of
//! those before it.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::format::{Bad, Header, Kind, RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, record_end};
use crate::ids::Sequence;
use crate::rules::Rules;
use crate::shelf::{Link, Shelf};
use crate::window::Window;

/// A segment with records that are part of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walked {
    pub(crate) link: Link,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) records: u64,
    /// Where the last record ends.
    pub(crate) end: u64,
    /// Where the first record begins that is not known to be durable; `end` if all are.
    pub(crate) unsure: u64,
}

/// Where and why the log ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// Index into the shelf's slots.
    pub(crate) slot: usize,
    pub(crate) offset: u64,
    pub(crate) bad: Bad,
}

/// The state in which a log was left.
pub(crate) struct Found {
    pub(crate) segments: Vec<Walked>,
    pub(crate) rules: Rules,
    /// The last record.
    pub(crate) last: u64,
    /// No sequence above this one was ever seen.
    pub(crate) used: u64,
    /// All up to here must be there.
    pub(crate) durable: u64,
    pub(crate) drained: u64,
    /// What the owner said when that much was drained.
    pub(crate) drained_state: Vec<u8>,
    pub(crate) last_file: u64,
    pub(crate) last_group: u32,
    /// `None` where there is no segment at all.
    pub(crate) end: Option<End>,
    /// Whole records behind the end, and their payloads' bytes.
    pub(crate) dropped: (u64, u64),
}

impl Found {
    /// Whether something was being written when the log ended.
    pub(crate) fn is_torn(&self) -> bool {
        self.dropped.0 > 0 || self.end.is_some_and(|end| end.bad != Bad::Nothing)
    }

    /// Whether records are missing that had been durable.
    pub(crate) fn is_corrupt(&self) -> bool {
        self.durable > self.last || self.end.is_some_and(|end| end.bad == Bad::Malformed)
    }

    pub(crate) fn corrupt(&self, shelf: &Shelf) -> Error {
        Error::Corrupt {
            place: shelf.place.clone(),
            last: Sequence(self.last),
            durable: Sequence(self.durable),
            segment: self.end.map_or(String::new(), |end| shelf.slots[end.slot].name.clone()),
            offset: self.end.map_or(0, |end| end.offset),
            found: self.end.map_or(Bad::Nothing, |end| end.bad).to_string(),
        }
    }
}

/// Walks a log from its first segment to its end, and looks at what lies behind.
pub(crate) fn walk(shelf: &Shelf) -> Result<Found> {
    let checkpoint = &shelf.checkpoint;
    let chain = shelf.chain()?;
    let mut found = Found {
        segments: Vec::new(),
        rules: Rules::new(),
        last: checkpoint.drained,
        used: checkpoint.used.max(checkpoint.durable),
        durable: checkpoint.durable,
        drained: checkpoint.drained,
        drained_state: Vec::new(),
        last_file: 0,
        last_group: 0,
        end: None,
        dropped: (0, 0),
    };
    let mut drained_seen = 0;
    for link in &chain {
        let Some(walked) = walk_segment(shelf, *link, &mut found, &mut drained_seen)? else {
            break;
        };
        found.segments.push(walked);
    }
    if checkpoint.drained > drained_seen {
        // The record that says so was durable before the checkpoint was written.
        found.durable = found.durable.max(checkpoint.drained + 1);
    }
    found.used = found.used.max(found.last);
    if !(checkpoint.closed && found.last == found.durable) {
        look_behind(shelf, &chain, &mut found)?;
    }
    Ok(found)
}

/// Takes the records of one segment as far as they are the next ones; `None` if not even its first is.
fn walk_segment(
    shelf: &Shelf,
    link: Link,
    found: &mut Found,
    drained_seen: &mut u64,
) -> Result<Option<Walked>> {
    let error = |source| shelf.read_error(link.slot, source);
    let file = shelf.slots[link.slot].file.clone();
    let mut window = Window::new(file, shelf.manifest.segment_bytes, link.used);
    let mut offset = SEGMENT_HEADER_BYTES;
    let mut walked: Option<Walked> = None;
    loop {
        let record = window.record(offset).map_err(error)?;
        let fits = record.and_then(|header| {
            let next = continues(&header, found, walked.is_none());
            if next { Ok(header) } else { Err(Bad::Nothing) }
        });
        let header = match fits {
            Ok(header) => header,
            Err(bad) => {
                // An earlier segment that was left half full ends with nothing, and so may this one.
                if walked.is_some() || found.end.is_none_or(|end| end.bad == Bad::Nothing) {
                    found.end = Some(End { slot: link.slot, offset, bad });
                }
                return Ok(walked);
            }
        };
        found.last = header.sequence.0;
        found.last_file = found.last_file.max(header.file.0);
        found.last_group = found.last_group.max(header.member.map_or(0, |member| member.group.0));
        match header.kind {
            Kind::Data | Kind::Elsewhere | Kind::Operation => {}
            Kind::Prepare => {
                let name = window.payload(offset, &header).map_err(error)?;
                found.rules.apply(&header, &name);
            }
            Kind::Drained => {
                *drained_seen = header.value.max(*drained_seen);
                found.drained = header.value.max(found.drained);
                found.drained_state = window.payload(offset, &header).map_err(error)?;
            }
            Kind::Commit | Kind::Abort | Kind::CommitGroup | Kind::AbortGroup | Kind::Restart => {
                found.rules.apply(&header, &[]);
            }
        }
        let begin = offset;
        offset = record_end(offset, u64::from(header.len));
        let sequence = header.sequence.0;
        let walked = walked.get_or_insert(Walked {
            link,
            first: sequence,
            last: sequence,
            records: 0,
            end: begin,
            unsure: begin,
        });
        if walked.unsure == walked.end && sequence <= shelf.checkpoint.durable {
            walked.unsure = offset;
        }
        walked.last = sequence;
        walked.end = offset;
        walked.records += 1;
    }
}

/// Whether a record is the next one. Only a segment's first may be a restart, and only the log's first
/// may stand behind records that are not there, if those are in the target.
fn continues(header: &Header, found: &Found, first_of_segment: bool) -> bool {
    let restart = header.kind == Kind::Restart;
    if restart && !first_of_segment {
        return false;
    }
    let before = if restart { header.value } else { header.sequence.0 - 1 };
    if restart && before >= header.sequence.0 {
        return false;
    }
    if found.segments.is_empty() && first_of_segment {
        before <= found.last
    } else {
        before == found.last
    }
}

/// Looks for whole records behind the end: how many there are, what they know to have been durable, and
/// which sequences must not be used again.
fn look_behind(shelf: &Shelf, chain: &[Link], found: &mut Found) -> Result<()> {
    let ends: Vec<(usize, u64)> =
        found.segments.iter().map(|walked| (walked.link.slot, walked.end)).collect();
    let chained: HashSet<usize> = chain.iter().map(|link| link.slot).collect();
    let last_walked = found.segments.last().map(|walked| walked.link.used.number);
    for (slot, here) in shelf.slots.iter().enumerate() {
        let Some(header) = here.header.filter(|_| here.whole) else {
            continue;
        };
        // A segment that is not in the order of the log is of interest only if it is newer.
        if !chained.contains(&slot) && header.used.number <= shelf.checkpoint.last {
            continue;
        }
        // The rest of a segment that a later one follows was looked at when that one was begun.
        if last_walked.is_some_and(|last| header.used.number < last) {
            continue;
        }
        let walked = ends.iter().find(|(of, _)| *of == slot);
        let mut offset = walked.map_or(SEGMENT_HEADER_BYTES, |(_, end)| *end);
        let mut window = Window::new(here.file.clone(), shelf.manifest.segment_bytes, header.used);
        let error = |source| shelf.read_error(slot, source);
        // Most of a segment that was never used before is a hole.
        match here.file.data_from(offset).map_err(error)? {
            Some(data) => offset = offset.max(data / RECORD_HEADER_BYTES * RECORD_HEADER_BYTES),
            None => continue,
        }
        while offset < shelf.manifest.segment_bytes {
            let Ok(record) = window.header(offset).map_err(error)? else {
                offset += RECORD_HEADER_BYTES;
                continue;
            };
            found.used = found.used.max(record.sequence.0);
            found.durable = found.durable.max(record.durable.0);
            if window.record(offset).map_err(error)?.is_ok() {
                found.dropped.0 += 1;
                found.dropped.1 += u64::from(record.len);
                offset = record_end(offset, u64::from(record.len));
            } else {
                offset += RECORD_HEADER_BYTES;
            }
        }
    }
    Ok(())
}
