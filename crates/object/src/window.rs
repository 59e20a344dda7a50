//! The bytes of a file that is being written which are not sent yet. Pure.
//!
//! They begin where those that were sent end. Writes may arrive in any order, as requests that are under way together do,
//! so some may lie behind a gap. What stays a gap is a hole and reads as zeros.

use std::collections::BTreeMap;

/// Bytes from an offset on.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Where it begins in the file.
    base: u64,
    /// Without gaps.
    front: Vec<u8>,
    /// Behind gaps, without overlap, by offset.
    beyond: BTreeMap<u64, Vec<u8>>,
    size: u64,
}

/// A write or change that touches what is sent already, or reaches too far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// These bytes are on their way.
    Sent,
    /// The hole before it would be larger than the window.
    Far,
}

impl Window {
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The size of the file so far.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that can be sent.
    pub(crate) fn ready(&self) -> u64 {
        self.front.len() as u64
    }

    fn end(&self) -> u64 {
        self.base + self.front.len() as u64
    }

    /// Takes a write; the gaps before it are holes when it is more than `reach` bytes behind what lies together.
    pub(crate) fn write(&mut self, data: &[u8], offset: u64, reach: u64) -> Result<(), Refused> {
        if data.is_empty() {
            return Ok(());
        }
        if offset < self.base {
            return Err(Refused::Sent);
        }
        let end = offset + data.len() as u64;
        if offset > self.end().saturating_add(reach) {
            return Err(Refused::Far);
        }
        self.size = self.size.max(end);
        if offset <= self.end() {
            let at = (offset - self.base) as usize;
            let over = data.len().min(self.front.len() - at);
            self.front[at..at + over].copy_from_slice(&data[..over]);
            self.front.extend_from_slice(&data[over..]);
            self.join();
        } else {
            self.cover(data, offset);
        }
        Ok(())
    }

    /// Newer bytes behind a gap.
    fn cover(&mut self, data: &[u8], offset: u64) {
        let end = offset + data.len() as u64;
        let starts: Vec<u64> = self
            .beyond
            .range(..end)
            .rev()
            .take_while(|(start, bytes)| **start + bytes.len() as u64 > offset)
            .map(|(start, _)| *start)
            .collect();
        for start in starts {
            let Some(mut bytes) = self.beyond.remove(&start) else { continue };
            if start + bytes.len() as u64 > end {
                let tail = bytes.split_off((end - start) as usize);
                bytes.truncate(bytes.len());
                self.beyond.insert(end, tail);
            }
            if start < offset {
                bytes.truncate((offset - start) as usize);
                self.beyond.insert(start, bytes);
            }
        }
        self.beyond.insert(offset, data.to_vec());
    }

    /// What lies at the end of the front now is part of it. The front is newer.
    fn join(&mut self) {
        while let Some(entry) = self.beyond.first_entry() {
            let start = *entry.key();
            if start > self.base + self.front.len() as u64 {
                break;
            }
            let bytes = entry.remove();
            let skip = (self.end() - start) as usize;
            if skip < bytes.len() {
                self.front.extend_from_slice(&bytes[skip..]);
            }
        }
    }

    /// Makes gaps holes until `bytes` lie together, or all.
    pub(crate) fn fill(&mut self, bytes: u64) {
        while self.ready() < bytes && self.end() < self.size {
            let next = self.beyond.first_key_value().map_or(self.size, |(start, _)| *start);
            let stop = next.min(self.base + bytes.max(self.ready()));
            self.front.resize((stop - self.base) as usize, 0);
            self.join();
        }
    }

    /// Whether so many bytes wait behind gaps that the gaps must be holes.
    pub(crate) fn held_back(&self) -> u64 {
        self.size - self.end()
    }

    /// Takes the first bytes out: they are sent from now on.
    pub(crate) fn take(&mut self, bytes: u64) -> Vec<u8> {
        let len = (bytes as usize).min(self.front.len());
        let rest = self.front.split_off(len);
        self.base += len as u64;
        std::mem::replace(&mut self.front, rest)
    }

    /// A copy of all, with holes as zeros; only while nothing is sent.
    pub(crate) fn whole(&mut self) -> &[u8] {
        self.fill(self.size - self.base);
        &self.front
    }

    /// Cuts or extends.
    pub(crate) fn resize(&mut self, size: u64, reach: u64) -> Result<(), Refused> {
        if size < self.base {
            return Err(Refused::Sent);
        }
        if size > self.end().saturating_add(reach) {
            return Err(Refused::Far);
        }
        let front = (size - self.base).min(self.front.len() as u64);
        if size < self.size {
            self.front.truncate(front as usize);
            let cut = self.beyond.split_off(&size);
            drop(cut);
            if let Some((start, bytes)) = self.beyond.iter_mut().next_back() {
                bytes.truncate((size - start) as usize);
            }
        }
        self.size = size;
        Ok(())
    }

    /// Reads; `None` where that is sent already.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Option<usize> {
        let left = self.size.saturating_sub(offset);
        let len = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if len == 0 {
            return Some(0);
        }
        let at = usize::try_from(offset.checked_sub(self.base)?).ok()?;
        let buffer = &mut buffer[..len];
        buffer.fill(0);
        let end = offset + len as u64;
        if at < self.front.len() {
            let n = len.min(self.front.len() - at);
            buffer[..n].copy_from_slice(&self.front[at..at + n]);
        }
        for (start, bytes) in self.beyond.range(..end) {
            let stop = start + bytes.len() as u64;
            if stop <= offset {
                continue;
            }
            let (from, to) = (offset.max(*start), end.min(stop));
            let target = (from - offset) as usize..(to - offset) as usize;
            buffer[target].copy_from_slice(&bytes[(from - start) as usize..(to - start) as usize]);
        }
        Some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACH: u64 = 100_000;

    /// Random writes, cuts and reads against a plain vector; what is taken out is compared, too.
    #[test]
    fn a_window_behaves_as_a_file_behind_what_was_sent() {
        for seed in 1..300_u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut next = |below: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let (mut window, mut model, mut sent) = (Window::default(), Vec::new(), Vec::new());
            for step in 0..200 {
                let offset = next(3000);
                match next(8) {
                    0..5 => {
                        let data = vec![step as u8 + 1; next(200) as usize];
                        let done = window.write(&data, offset, REACH);
                        if data.is_empty() {
                            continue;
                        }
                        assert_eq!(done.is_ok(), offset as usize >= sent.len());
                        if done.is_ok() {
                            let end = offset as usize + data.len();
                            model.resize(model.len().max(end), 0);
                            model[offset as usize..end].copy_from_slice(&data);
                        }
                    }
                    5 => {
                        let done = window.resize(offset, REACH);
                        assert_eq!(done.is_ok(), offset as usize >= sent.len());
                        if done.is_ok() {
                            model.resize(offset as usize, 0);
                        }
                    }
                    6 => {
                        if next(2) == 0 {
                            window.fill(next(500));
                        }
                        sent.extend(window.take(next(300)));
                        assert_eq!(window.base(), sent.len() as u64);
                    }
                    _ => {
                        let mut buffer = vec![0xee; next(500) as usize];
                        let found = window.read(&mut buffer, offset);
                        let from = (offset as usize).min(model.len());
                        let len = buffer.len().min(model.len() - from);
                        if len > 0 && (offset as usize) < sent.len() {
                            assert_eq!(found, None);
                        } else {
                            assert_eq!(found, Some(len));
                            assert_eq!(buffer[..len], model[from..from + len]);
                        }
                    }
                }
                assert_eq!(window.size(), model.len() as u64);
            }
            sent.extend_from_slice(window.whole());
            assert_eq!(sent, model);
        }
    }

    #[test]
    fn a_hole_larger_than_the_window_is_refused() {
        let mut window = Window::default();
        assert_eq!(window.write(b"x", REACH + 1, REACH), Err(Refused::Far));
        assert_eq!(window.size(), 0);
        window.write(b"x", REACH, REACH).unwrap();
    }
}
