//! The checkpoint file: four slots in turn, so that whatever a crash does to one there is another.

use std::io::{self, IoSlice};

use crate::format::{Checkpoint, SEQUENCE_MAX, SLOT_BYTES, SLOTS};
use crate::media::MediaFile;

/// The checkpoint file of an open log.
pub(crate) struct CheckpointFile {
    file: Box<dyn MediaFile>,
    pub(crate) value: Checkpoint,
    /// Which slot of each pair is written next: never the newer one.
    turns: [u64; 2],
}

/// The pair whose slots are synced.
const SYNCED: usize = 0;
/// The pair whose slots reach the disk when the system likes.
const HINTS: usize = 1;

impl CheckpointFile {
    /// A file that was just made.
    pub(crate) fn create(file: Box<dyn MediaFile>, value: Checkpoint) -> io::Result<Self> {
        file.write_at(&[IoSlice::new(&vec![0; (SLOT_BYTES * SLOTS) as usize])], 0)?;
        let mut made = Self { file, value, turns: [0; 2] };
        made.write_synced(value)?;
        Ok(made)
    }

    /// A file that was found, whose newest slot says `value`.
    pub(crate) fn open(file: Box<dyn MediaFile>, value: Checkpoint) -> io::Result<Self> {
        let mut turns = [0; 2];
        for (pair, turn) in turns.iter_mut().enumerate() {
            let mut generations = [0; 2];
            for (slot, generation) in generations.iter_mut().enumerate() {
                let mut bytes = [0; 512];
                file.read_at(&mut bytes, (pair * 2 + slot) as u64 * SLOT_BYTES)?;
                *generation = Checkpoint::decode(&bytes).map_or(0, |found| found.generation);
            }
            *turn = u64::from(generations[0] > generations[1]);
        }
        Ok(Self { file, value, turns })
    }

    fn write(&mut self, pair: usize, value: Checkpoint) -> io::Result<()> {
        let generation = self.value.generation + 1;
        if generation > SEQUENCE_MAX {
            return Err(io::Error::other("the log has used all generations of its checkpoint"));
        }
        self.value = Checkpoint { generation, ..value };
        let slot = pair as u64 * 2 + self.turns[pair];
        self.turns[pair] ^= 1;
        self.file.write_at(&[IoSlice::new(&self.value.encode())], slot * SLOT_BYTES)
    }

    /// Says something that must be known after a crash.
    pub(crate) fn write_synced(&mut self, value: Checkpoint) -> io::Result<()> {
        self.write(SYNCED, value)?;
        self.file.sync()
    }

    /// Says something that it is good to know after a crash.
    pub(crate) fn write_hint(&mut self, value: Checkpoint) -> io::Result<()> {
        self.write(HINTS, value)
    }
}
