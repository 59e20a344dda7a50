//! Everything in a log looked at, without changing anything.

use crate::error::{Error, Result};
use crate::format::{Bad, SEGMENT_HEADER_BYTES, record_end};
use crate::ids::Sequence;
use crate::manifest::Description;
use crate::media::Media;
use crate::rules::InDoubt;
use crate::shelf::Shelf;
use crate::walk::walk;
use crate::window::Window;

/// What there is in a log.
#[derive(Debug)]
pub struct Verification {
    /// What its owner said of it.
    pub description: Description,
    /// The last record.
    pub last: Sequence,
    /// All up to here had been made durable.
    pub durable: Sequence,
    /// All up to here are in the target.
    pub drained: Sequence,
    /// Every segment file, by name.
    pub segments: Vec<SegmentReport>,
    /// How many of the checkpoint's slots are whole. Those that were never written are not.
    pub checkpoint_slots: usize,
    /// Where the log ends in the middle of something, and what is found there.
    pub torn: Option<String>,
    /// Whole records behind the end.
    pub dropped_records: u64,
    /// Epochs to decide on.
    pub in_doubt: Vec<InDoubt>,
    /// What is damaged: records are missing that had been durable.
    pub damage: Option<Error>,
}

/// What there is in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// The file.
    pub name: String,
    /// Which use of it this is; `None` where it has no whole header.
    pub number: Option<u32>,
    /// Whether it holds records that are part of the log.
    pub live: bool,
    /// How many records follow each other from its beginning.
    pub records: u64,
    /// The first of them.
    pub first: Option<Sequence>,
    /// The last of them.
    pub last: Option<Sequence>,
    /// How far they reach in the file.
    pub used_bytes: u64,
    /// What stands behind them.
    pub behind: &'static str,
}

/// Checks every checksum of a log, of what is drained too as far as it is still there.
///
/// It takes no lock, so that it can be asked about a log in use; what is just being written may look torn
/// then.
///
/// # Errors
/// `Missing`, `Version`, `Manifest`, `System`; `Corrupt` where not even the order of segments is known.
pub fn verify(media: &dyn Media) -> Result<Verification> {
    let shelf = Shelf::open(media, false)?;
    let found = walk(&shelf)?;
    let mut segments = Vec::new();
    for (index, slot) in shelf.slots.iter().enumerate() {
        let live = found.segments.iter().any(|walked| walked.link.slot == index);
        let mut report = SegmentReport {
            name: slot.name.clone(),
            number: slot.header.map(|header| header.used.number),
            live,
            records: 0,
            first: None,
            last: None,
            used_bytes: 0,
            behind: "no header of this log",
        };
        if let (Some(header), true) = (slot.header, slot.whole) {
            let mut window = Window::new(slot.file.clone(), header.segment_bytes, header.used);
            let mut offset = SEGMENT_HEADER_BYTES;
            let bad = loop {
                let record = window.record(offset);
                match record.map_err(|source| shelf.read_error(index, source))? {
                    Ok(record) => {
                        report.records += 1;
                        report.first.get_or_insert(record.sequence);
                        report.last = Some(record.sequence);
                        offset = record_end(offset, u64::from(record.len));
                    }
                    Err(bad) => break bad,
                }
            };
            report.used_bytes = offset;
            report.behind = match bad {
                Bad::Nothing => "nothing",
                Bad::Header => "a damaged or torn header",
                Bad::Payload => "a damaged or torn payload",
                Bad::Malformed => "an unknown record",
            };
        }
        segments.push(report);
    }
    let end = found.end.filter(|_| found.is_torn());
    Ok(Verification {
        description: shelf.manifest.description.clone(),
        last: Sequence(found.last),
        durable: Sequence(found.durable),
        drained: Sequence(found.drained),
        segments,
        checkpoint_slots: shelf.whole_slots,
        torn: end.map(|end| {
            format!("{} in {} at byte {}", end.bad, shelf.slots[end.slot].name, end.offset)
        }),
        dropped_records: found.dropped.0,
        in_doubt: found.rules.in_doubt(),
        damage: found.is_corrupt().then(|| found.corrupt(&shelf)),
    })
}
