//! The files of a log as they are found: which segments there are, and in which order they belong.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::{
    Checkpoint, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN, SEQUENCE_MAX, SLOT_BYTES, SLOTS,
    SegmentHeader, Use,
};
use crate::ids::Sequence;
use crate::manifest::Manifest;
use crate::media::{Media, MediaFile};
use crate::names::{CHECKPOINT, MANIFEST, SEGMENTS};

/// A segment file.
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) file: Arc<dyn MediaFile>,
    /// What its header says; `None` if it has none, or not one of this log.
    pub(crate) header: Option<SegmentHeader>,
    /// Whether the file has its full length.
    pub(crate) whole: bool,
}

/// All files of a log.
pub(crate) struct Shelf {
    pub(crate) place: PathBuf,
    pub(crate) manifest: Manifest,
    pub(crate) checkpoint: Checkpoint,
    /// Which of the checkpoint's slots are whole.
    pub(crate) whole_slots: usize,
    pub(crate) slots: Vec<Slot>,
}

/// A segment in the order of the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// Index into the shelf's slots.
    pub(crate) slot: usize,
    pub(crate) used: Use,
}

impl Shelf {
    /// Opens everything, and looks at headers only.
    pub(crate) fn open(media: &dyn Media, write: bool) -> Result<Self> {
        let place = media.place();
        let manifest = Manifest::read(media)?;
        if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&manifest.segment_bytes)
            || !manifest.segment_bytes.is_multiple_of(4096)
        {
            let why = format!("segment_bytes = {} is no size of a segment", manifest.segment_bytes);
            return Err(Error::Manifest { path: place.join(MANIFEST), why });
        }
        let (checkpoint, whole_slots) = read_checkpoint(media, manifest.log)?;
        let mut slots = Vec::new();
        let listed = media.segments();
        let listed = listed.map_err(|e| Error::system("listing", &place, SEGMENTS, e))?;
        for name in listed {
            let file = media.open(&name, write);
            let file = file.map_err(|e| Error::system("opening", &place, &name, e))?;
            let (header, whole) = read_header(&*file, &manifest, &place, &name)?;
            slots.push(Slot { name, file: Arc::from(file), header, whole });
        }
        Ok(Self { place, manifest, checkpoint, whole_slots, slots })
    }

    /// The segments from the first that is needed to the last that may hold records.
    pub(crate) fn chain(&self) -> Result<Vec<Link>> {
        let Checkpoint { first, last, .. } = self.checkpoint;
        let mut chain = Vec::new();
        if first == 0 {
            return Ok(chain);
        }
        let mut number = last;
        loop {
            let found = self.slots.iter().enumerate().find_map(|(slot, here)| {
                let header = here.header.filter(|_| here.whole)?;
                (header.used.number == number).then_some((slot, header))
            });
            let Some((slot, SegmentHeader { used, previous, .. })) = found else {
                return Err(self.missing(number));
            };
            chain.push(Link { slot, used });
            if number == first {
                break;
            }
            if previous >= number || previous < first {
                return Err(self.missing(first));
            }
            number = previous;
        }
        chain.reverse();
        Ok(chain)
    }

    fn missing(&self, number: u32) -> Error {
        Error::Corrupt {
            place: self.place.clone(),
            last: Sequence(self.checkpoint.drained),
            durable: Sequence(self.checkpoint.durable),
            segment: format!("{SEGMENTS} (use {number} of a segment)"),
            offset: 0,
            found: "no header".to_owned(),
        }
    }

    pub(crate) fn read_error(&self, slot: usize, source: io::Error) -> Error {
        Error::system("reading", &self.place, &self.slots[slot].name, source)
    }
}

fn read_header(
    file: &dyn MediaFile,
    manifest: &Manifest,
    place: &std::path::Path,
    name: &str,
) -> Result<(Option<SegmentHeader>, bool)> {
    let system = |source| Error::system("reading", place, name, source);
    let len = file.size().map_err(system)?;
    if len < 512 {
        return Ok((None, false));
    }
    let mut bytes = [0; 512];
    file.read_at(&mut bytes, 0).map_err(system)?;
    let header = match SegmentHeader::decode(&bytes) {
        Some(Err(found)) => {
            return Err(Error::Version { place: place.to_owned(), found: u64::from(found) });
        }
        Some(Ok(header)) => Some(header),
        None => None,
    };
    let ours = header.filter(|header| {
        header.log == manifest.log && header.segment_bytes == manifest.segment_bytes
    });
    Ok((ours, len == manifest.segment_bytes))
}

/// The newest of the checkpoint's slots, with the furthest of what any of them says is durable.
fn read_checkpoint(media: &dyn Media, log: u64) -> Result<(Checkpoint, usize)> {
    let place = media.place();
    let system = |source| Error::system("reading", &place, CHECKPOINT, source);
    let file = media.open(CHECKPOINT, false).map_err(system)?;
    let mut found: Vec<Checkpoint> = Vec::new();
    for slot in 0..SLOTS {
        let mut bytes = [0; 512];
        match file.read_at(&mut bytes, slot * SLOT_BYTES) {
            Ok(()) => found.extend(Checkpoint::decode(&bytes).filter(|one| one.log == log)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(source) => return Err(system(source)),
        }
    }
    if let Some(beyond) = found.iter().map(Checkpoint::largest).find(|it| *it > SEQUENCE_MAX) {
        let why = format!("{beyond} is no number that a log reaches");
        return Err(Error::Manifest { path: place.join(CHECKPOINT), why });
    }
    let whole = found.len();
    let durable = found.iter().map(|one| one.durable).max();
    let Some(newest) = found.into_iter().max_by_key(|one| one.generation) else {
        let why = "none of its slots is whole".to_owned();
        return Err(Error::Manifest { path: place.join(CHECKPOINT), why });
    };
    Ok((Checkpoint { durable: durable.unwrap_or(newest.durable), ..newest }, whole))
}
