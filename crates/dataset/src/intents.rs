//! Which parts of the dataset may differ between replicas, so that a crash costs the comparing of
//! those only: the write-intent bitmap of a RAID, as a log.
//!
//! Before the first write into a region of a view a record is made durable; when all replicas are
//! up to date and durable, all records are forgotten at once by beginning a new generation. The
//! file is written in full when it is made, because a record then costs no change of metadata of
//! the file system: 115 instead of 200 µs on ext4.
//!
//! ```text
//! 0   header: "sluice-intents\0\1", generation u64, check u64
//! 32  records of 32 bytes: generation u64, view u64, region u64, check u64
//! ```
//!
//! Numbers are little-endian. A record of another generation, or with a wrong check, ends the log:
//! it was never finished, and the write that it was for never begun.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Result;
use crate::file::{File, Surroundings};
use crate::hash::fnv1a;

/// Bytes of a view that one record stands for.
pub(crate) const REGION_BYTES: u64 = 16 << 20;

const MAGIC: &[u8; 16] = b"sluice-intents\0\x01";
const RECORD_BYTES: usize = 32;
const RECORDS_MAX: usize = 2047;
const FILE_BYTES: usize = (1 + RECORDS_MAX) * RECORD_BYTES;

/// A region of a view that may differ between replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Intent {
    /// Index of the view.
    pub(crate) view: usize,
    /// The region: its first byte is this times [`REGION_BYTES`].
    pub(crate) region: u64,
}

impl Intent {
    /// Anything may differ: everything was placed anew.
    pub(crate) const EVERYTHING: Intent = Intent { view: usize::MAX, region: 0 };

    /// From here on, `view` is a variable that stores a length and `region` the length before.
    const LENGTHS: usize = usize::MAX / 2;

    /// A length is about to change that was `before`: arrays of several dimensions begin anew.
    pub(crate) fn length(variable: usize, before: u64) -> Self {
        Self { view: Self::LENGTHS + variable, region: before }
    }

    /// The variable and the length before, of an intent made by [`Intent::length`].
    pub(crate) fn as_length(self) -> Option<(usize, u64)> {
        let variable = self.view.checked_sub(Self::LENGTHS)?;
        (self != Self::EVERYTHING).then_some((variable, self.region))
    }
}

/// The log, and what stands in it.
pub(crate) struct Intents {
    file: File,
    generation: u64,
    live: BTreeSet<Intent>,
    records: usize,
}

impl Intents {
    /// Opens the log, or makes an empty one.
    pub(crate) fn open(path: &Path, around: &Surroundings) -> Result<Self> {
        let found = match File::open(path, around)? {
            // A shorter one was never finished: nothing was written after it.
            Some(file) if file.size()? == FILE_BYTES as u64 => Some(Self::read(file)?),
            Some(file) => Some(Self::prepare(file)?),
            None => None,
        };
        match found {
            Some(found) => Ok(found),
            None => Self::prepare(File::create(path, around)?),
        }
    }

    /// Whether anything stands in a log, which is left alone.
    pub(crate) fn peek(path: &Path, around: &Surroundings) -> Result<bool> {
        match File::open(path, around)? {
            Some(file) if file.size()? == FILE_BYTES as u64 => {
                let mut bytes = vec![0; FILE_BYTES];
                file.read_at(&mut bytes, 0)?;
                let (header, records) = bytes.split_at(RECORD_BYTES);
                Ok(!of_generation(records, word(header, 2)).is_empty())
            }
            Some(_) | None => Ok(false),
        }
    }

    fn prepare(file: File) -> Result<Self> {
        file.write_at(&vec![0; FILE_BYTES], 0)?;
        let mut new = Self { file, generation: 0, live: BTreeSet::new(), records: 0 };
        new.begin_generation(1)?;
        Ok(new)
    }

    fn read(file: File) -> Result<Self> {
        let mut bytes = vec![0; FILE_BYTES];
        file.read_at(&mut bytes, 0)?;
        let (header, records) = bytes.split_at(RECORD_BYTES);
        let words = [word(header, 0), word(header, 1), word(header, 2)];
        if header[..16] != MAGIC[..] || word(header, 3) != check(&words) {
            // The header is changed in place; half of one means that it was about to be a new
            // generation, or never was any. What is in the log then still has to be done.
            return Self::salvage(file, records);
        }
        let generation = words[2];
        let live: Vec<Intent> = of_generation(records, generation);
        let count = live.len();
        Ok(Self { file, generation, live: live.into_iter().collect(), records: count })
    }

    /// Takes the newest generation that the records tell of.
    fn salvage(file: File, records: &[u8]) -> Result<Self> {
        if !records.chunks_exact(RECORD_BYTES).any(|record| parse(record).is_some()) {
            return Self::prepare(file);
        }
        let newest = records.chunks_exact(RECORD_BYTES).filter_map(parse).map(|(g, _)| g).max();
        let generation = newest.unwrap_or(0);
        let live: Vec<Intent> = of_generation(records, generation);
        let count = live.len();
        Ok(Self { file, generation, live: live.into_iter().collect(), records: count })
    }

    /// What may differ between replicas.
    pub(crate) fn live(&self) -> impl Iterator<Item = Intent> {
        self.live.iter().copied()
    }

    /// Whether there is room for so many regions more.
    pub(crate) fn has_room(&self, regions: usize) -> bool {
        self.records + regions <= RECORDS_MAX
    }

    /// Says, durably, that bytes of a view are about to be written.
    ///
    /// # Panics
    /// When there is no room; see [`Intents::has_room`].
    pub(crate) fn declare(&mut self, view: usize, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let regions = offset / REGION_BYTES..=(offset + len - 1) / REGION_BYTES;
        self.add(regions.map(|region| Intent { view, region }))
    }

    /// Says, durably, that everything is about to be placed anew, because of these lengths.
    pub(crate) fn declare_everything(
        &mut self,
        lengths: impl Iterator<Item = Intent>,
    ) -> Result<()> {
        self.add(lengths.chain([Intent::EVERYTHING]))
    }

    fn add(&mut self, intents: impl Iterator<Item = Intent>) -> Result<()> {
        let new: Vec<Intent> = intents.filter(|intent| !self.live.contains(intent)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let bytes: Vec<u8> =
            new.iter().flat_map(|intent| record(self.generation, *intent)).collect();
        assert!(self.has_room(new.len()), "the log of intents is full");
        self.file.write_at(&bytes, ((1 + self.records) * RECORD_BYTES) as u64)?;
        self.file.sync()?;
        self.records += new.len();
        self.live.extend(new);
        Ok(())
    }

    /// Forgets everything: the replicas are equal, and durable.
    pub(crate) fn clear(&mut self) -> Result<()> {
        if self.live.is_empty() && self.records == 0 {
            return Ok(());
        }
        self.begin_generation(self.generation + 1)
    }

    fn begin_generation(&mut self, generation: u64) -> Result<()> {
        let mut header = [0; RECORD_BYTES];
        header[..16].copy_from_slice(MAGIC);
        header[16..24].copy_from_slice(&generation.to_le_bytes());
        let words = [word(&header, 0), word(&header, 1), word(&header, 2)];
        header[24..].copy_from_slice(&check(&words).to_le_bytes());
        self.file.write_at(&header, 0)?;
        self.file.sync()?;
        self.generation = generation;
        self.live.clear();
        self.records = 0;
        Ok(())
    }
}

fn record(generation: u64, intent: Intent) -> [u8; RECORD_BYTES] {
    let words = [generation, intent.view as u64, intent.region];
    let mut bytes = [0; RECORD_BYTES];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words.into_iter().chain([check(&words)])) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn parse(record: &[u8]) -> Option<(u64, Intent)> {
    let words = [word(record, 0), word(record, 1), word(record, 2)];
    let view = usize::try_from(words[1]).ok()?;
    (words[0] != 0 && word(record, 3) == check(&words))
        .then_some((words[0], Intent { view, region: words[2] }))
}

fn of_generation(records: &[u8], generation: u64) -> Vec<Intent> {
    records
        .chunks_exact(RECORD_BYTES)
        .map_while(parse)
        .take_while(|(of, _)| *of == generation)
        .map(|(_, intent)| intent)
        .collect()
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[8 * index..8 * index + 8]);
    u64::from_le_bytes(word)
}

fn check(words: &[u64; 3]) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    fnv1a(&bytes) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(path: &Path) -> Vec<Intent> {
        Intents::open(path, &Surroundings::default()).unwrap().live().collect()
    }

    fn intent(view: usize, region: u64) -> Intent {
        Intent { view, region }
    }

    #[test]
    fn what_is_declared_is_there_until_it_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("intents");
        let around = Surroundings::default();
        assert!(!Intents::peek(&path, &around).unwrap());
        let mut intents = Intents::open(&path, &around).unwrap();
        intents.declare(3, REGION_BYTES - 1, 2).unwrap();
        intents.declare(3, 5, 10).unwrap();
        intents.declare(1, 9 * REGION_BYTES, 1).unwrap();
        assert_eq!(intents.records, 3, "what is declared again is not written again");
        assert_eq!(live(&path), [intent(1, 9), intent(3, 0), intent(3, 1)]);
        assert!(Intents::peek(&path, &around).unwrap());
        intents.clear().unwrap();
        assert_eq!(live(&path), []);
        intents.declare(2, 0, 1).unwrap();
        assert_eq!(live(&path), [intent(2, 0)], "those of the generation before are void");
        assert_eq!(Intent::length(7, 5).as_length(), Some((7, 5)));
        assert_eq!(Intent::EVERYTHING.as_length(), None);
        assert_eq!(intent(7, 5).as_length(), None);
    }

    #[test]
    fn half_a_record_is_none_and_half_a_header_loses_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("intents");
        let around = Surroundings::default();
        let mut intents = Intents::open(&path, &around).unwrap();
        intents.declare(0, 0, 1).unwrap();
        intents.declare(1, 0, 1).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut torn = whole.clone();
        torn[2 * RECORD_BYTES + 9] ^= 1;
        std::fs::write(&path, &torn).unwrap();
        assert_eq!(live(&path), [intent(0, 0)]);
        let mut torn = whole.clone();
        torn[20] ^= 1;
        std::fs::write(&path, &torn).unwrap();
        assert_eq!(live(&path), [intent(0, 0), intent(1, 0)]);
        std::fs::write(&path, &whole[..500]).unwrap();
        assert_eq!(live(&path), [], "a file that was never finished");
    }
}
