//! Memory for what large requests bring, used again: fresh memory costs a page fault every 4 KiB, which together take
//! longer than copying the bytes.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Buffers that are kept when nobody uses them.
const SPARE_MAX: usize = 8;

/// Where buffers come from and go to.
pub(crate) struct Memory {
    /// What a large request brings.
    part_bytes: usize,
    spare: Mutex<Vec<Vec<u8>>>,
}

/// A buffer that is filled once, and is given back when the last who holds its bytes lets go of them.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    memory: Arc<Memory>,
}

impl Memory {
    pub(crate) fn new(part_bytes: u64) -> Self {
        let part_bytes = usize::try_from(part_bytes).unwrap_or(usize::MAX);
        Self { part_bytes, spare: Mutex::default() }
    }

    /// An empty buffer with room for `len` bytes.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Buffer {
        let spare = if self.is_large(len) { self.spare().pop() } else { None };
        let bytes = spare.unwrap_or_else(|| {
            let room = if self.is_large(len) { self.part_bytes } else { len };
            Vec::with_capacity(room)
        });
        Buffer { bytes, memory: Arc::clone(self) }
    }

    /// Whether so many bytes get a buffer that can hold any part: what it holds more than them is less than they are.
    fn is_large(&self, len: usize) -> bool {
        len > self.part_bytes / 2 && len <= self.part_bytes
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn finish(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        if bytes.capacity() != self.memory.part_bytes {
            return;
        }
        bytes.clear();
        let mut spare = self.memory.spare();
        if spare.len() < SPARE_MAX {
            spare.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_buffer_is_used_again_once_nobody_holds_its_bytes() {
        let memory = Arc::new(Memory::new(1000));
        let filled = |len: usize, byte: u8| {
            let mut buffer = memory.take(len);
            buffer.push(&vec![byte; len]);
            buffer.finish()
        };
        let first = filled(600, 1);
        let part = first.slice(10..20);
        let place = first.as_ptr();
        drop(first);
        let second = filled(1000, 2);
        assert_ne!(second.as_ptr(), place, "somebody holds bytes of the first");
        assert_eq!(part, [1; 10][..]);
        drop(part);
        let third = filled(501, 3);
        assert_eq!((third.as_ptr(), third.len()), (place, 501));
        assert!(third.iter().all(|byte| *byte == 3));
    }

    #[test]
    fn small_ones_are_as_large_as_they_need_to_be_and_few_are_kept() {
        let memory = Arc::new(Memory::new(1000));
        assert_eq!(memory.take(500).bytes.capacity(), 500);
        assert_eq!(memory.take(2000).bytes.capacity(), 2000);
        assert!(memory.spare().is_empty());
        let many: Vec<Buffer> = (0..10).map(|_| memory.take(900)).collect();
        drop(many);
        assert_eq!(memory.spare().len(), SPARE_MAX);
    }
}
