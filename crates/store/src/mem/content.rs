//! The bytes of a regular file.

use std::collections::BTreeMap;
use std::sync::Arc;

use p9::Errno;

use super::Space;

/// Bytes of a block. What was never written in one takes no memory, nor does the end of the last.
const BLOCK_BYTES: u64 = 64 * 1024;

/// What is counted as one unit of room.
pub(super) const GRAIN_BYTES: u64 = 4096;

/// The largest size of a file, as everywhere on Linux.
pub(super) const SIZE_MAX: u64 = i64::MAX as u64;

/// Bytes by offset; those that no block holds are zero.
pub(super) struct Content {
    size: u64,
    /// By offset divided by [`BLOCK_BYTES`]; a block may be shorter than that, never longer.
    blocks: BTreeMap<u64, Vec<u8>>,
    space: Arc<Space>,
    taken: u64,
}

/// Room that a block of so many bytes is counted for.
fn room(len: usize) -> u64 {
    (len as u64).next_multiple_of(GRAIN_BYTES)
}

fn place(offset: u64) -> (u64, usize) {
    (offset / BLOCK_BYTES, (offset % BLOCK_BYTES) as usize)
}

impl Content {
    pub(super) fn new(space: &Arc<Space>) -> Self {
        Self { size: 0, blocks: BTreeMap::new(), space: Arc::clone(space), taken: 0 }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that are counted against the store's limit.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Fills `buffer` from `offset`, short at the end of the file.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let left = self.size.saturating_sub(offset);
        let len = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut rest = &mut buffer[..len];
        let mut at = offset;
        while !rest.is_empty() {
            let (index, start) = place(at);
            let wanted = rest.len().min(BLOCK_BYTES as usize - start);
            let (now, later) = rest.split_at_mut(wanted);
            let block = self.blocks.get(&index).map_or(&[][..], |block| block);
            let held = block.get(start..).unwrap_or(&[]);
            let held = &held[..held.len().min(wanted)];
            now[..held.len()].copy_from_slice(held);
            now[held.len()..].fill(0);
            rest = later;
            at += wanted as u64;
        }
        len
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// `ENOSPC` and `EFBIG`, when not one byte could be written.
    pub(super) fn write(&mut self, data: &[u8], offset: u64) -> Result<usize, Errno> {
        let left = SIZE_MAX.saturating_sub(offset);
        let len = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if len == 0 && !data.is_empty() {
            return Err(Errno::EFBIG);
        }
        let mut done = 0;
        while done < len {
            let (index, start) = place(offset + done as u64);
            let now = (len - done).min(BLOCK_BYTES as usize - start);
            if !self.write_block(index, start, &data[done..done + now]) {
                break;
            }
            done += now;
        }
        if done == 0 && len > 0 {
            return Err(Errno::ENOSPC);
        }
        if done > 0 {
            self.size = self.size.max(offset + done as u64);
        }
        Ok(done)
    }

    fn write_block(&mut self, index: u64, start: usize, data: &[u8]) -> bool {
        let end = start + data.len();
        let had = self.blocks.get(&index).map_or(0, |block| room(block.len()));
        let more = room(end).saturating_sub(had);
        if !self.space.take_bytes(more) {
            return false;
        }
        self.taken += more;
        let block = self.blocks.entry(index).or_default();
        if block.capacity() < end {
            let wanted = end.max(2 * block.capacity()).min(BLOCK_BYTES as usize);
            block.reserve_exact(wanted - block.len());
        }
        if block.len() <= start {
            block.resize(start, 0);
            block.extend_from_slice(data);
        } else {
            if block.len() < end {
                block.resize(end, 0);
            }
            block[start..end].copy_from_slice(data);
        }
        true
    }

    /// Cuts off, or extends with zeros that take no room.
    ///
    /// # Errors
    /// `EFBIG` as truncate(2).
    pub(super) fn resize(&mut self, size: u64) -> Result<(), Errno> {
        if size > SIZE_MAX {
            return Err(Errno::EFBIG);
        }
        if size < self.size {
            let (index, keep) = place(size);
            let mut gone = self.blocks.split_off(&index);
            let mut freed = gone.values().map(|block| room(block.len())).sum();
            if let Some(mut last) = gone.remove(&index).filter(|_| keep > 0) {
                last.truncate(keep);
                last.shrink_to_fit();
                freed -= room(last.len());
                self.blocks.insert(index, last);
            }
            self.taken -= freed;
            self.space.give_bytes(freed);
        }
        self.size = size;
        Ok(())
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.space.give_bytes(self.taken);
    }
}
