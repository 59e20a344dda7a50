//! Reading a segment from its beginning to its end, some hundred kilobytes at a time.

use std::io;
use std::sync::Arc;

use crate::format::{Bad, Header, RECORD_HEADER_BYTES, Use, record_end};
use crate::media::MediaFile;

const CHUNK_BYTES: u64 = 256 << 10;

/// As many are read first, and where bytes were left out: who looks at headers alone passes over payloads.
const CHUNK_BYTES_MIN: u64 = 4 << 10;

/// A part of a segment in memory.
pub(crate) struct Window {
    file: Arc<dyn MediaFile>,
    segment_bytes: u64,
    used: Use,
    start: u64,
    held: Vec<u8>,
    chunk: u64,
}

impl Window {
    pub(crate) fn new(file: Arc<dyn MediaFile>, segment_bytes: u64, used: Use) -> Self {
        Self { file, segment_bytes, used, start: 0, held: Vec::new(), chunk: 0 }
    }

    /// `len` bytes from `offset`, which do not pass the segment's end.
    fn bytes(&mut self, offset: u64, len: u64) -> io::Result<&[u8]> {
        let end = self.start + self.held.len() as u64;
        if offset < self.start || offset + len > end {
            let goes_on = (self.start..=end + CHUNK_BYTES_MIN).contains(&offset);
            self.chunk = if goes_on { (self.chunk * 4).min(CHUNK_BYTES) } else { 0 };
            self.chunk = self.chunk.max(CHUNK_BYTES_MIN);
            let chunk = self.chunk.max(len).min(self.segment_bytes.saturating_sub(offset));
            self.held.resize(usize::try_from(chunk).unwrap_or(usize::MAX), 0);
            self.start = offset;
            if let Err(error) = self.file.read_at(&mut self.held, offset) {
                self.held.clear();
                return Err(error);
            }
        }
        let at = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.held.get(at..at.saturating_add(len)).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// From `offset` on what is in memory, or a chunk where nothing is: one byte at least, `most` at most.
    fn some_bytes(&mut self, offset: u64, most: u64) -> io::Result<&[u8]> {
        self.bytes(offset, 1)?;
        let left = (self.start + self.held.len() as u64).saturating_sub(offset);
        self.bytes(offset, left.min(most))
    }

    /// The header at `offset`, of a record that ends within the segment.
    pub(crate) fn header(&mut self, offset: u64) -> io::Result<Result<Header, Bad>> {
        if offset + RECORD_HEADER_BYTES > self.segment_bytes {
            return Ok(Err(Bad::Nothing));
        }
        let (segment_bytes, used) = (self.segment_bytes, self.used);
        let header = Header::decode(self.bytes(offset, RECORD_HEADER_BYTES)?, used);
        Ok(header.and_then(|header| {
            let fits = record_end(offset, u64::from(header.len)) <= segment_bytes;
            if fits { Ok(header) } else { Err(Bad::Malformed) }
        }))
    }

    /// The header at `offset`, its payload's checksum looked at too.
    pub(crate) fn record(&mut self, offset: u64) -> io::Result<Result<Header, Bad>> {
        let header = match self.header(offset)? {
            Ok(header) => header,
            Err(bad) => return Ok(Err(bad)),
        };
        let (mut at, mut left) = (offset + RECORD_HEADER_BYTES, u64::from(header.len));
        let mut crc = 0;
        while left > 0 {
            let piece = self.some_bytes(at, left)?;
            crc = crc32c::crc32c_append(crc, piece);
            let len = piece.len() as u64;
            at += len;
            left -= len;
        }
        Ok(if crc == header.payload_crc { Ok(header) } else { Err(Bad::Payload) })
    }

    /// The payload of the record at `offset`.
    pub(crate) fn payload(&mut self, offset: u64, header: &Header) -> io::Result<Vec<u8>> {
        Ok(self.bytes(offset + RECORD_HEADER_BYTES, u64::from(header.len))?.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    struct Counted {
        bytes: Vec<u8>,
        read: AtomicU64,
    }

    impl MediaFile for Counted {
        fn write_at(&self, _parts: &[IoSlice<'_>], _offset: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn fill(&self, _len: u64) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
            let from = self.bytes.get(offset as usize..).unwrap_or(&[]);
            let from = from.get(..buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            buffer.copy_from_slice(from);
            Ok(())
        }

        fn data_from(&self, offset: u64) -> io::Result<Option<u64>> {
            Ok(Some(offset))
        }

        fn size(&self) -> io::Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn headers_cost_little_and_payloads_are_read_once() {
        const SIZE: u64 = 8 << 20;
        const RECORD: u64 = (256 << 10) + 128;
        let bytes: Vec<u8> = (0..SIZE).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect();
        let expected = bytes.clone();
        let file = Arc::new(Counted { bytes, read: AtomicU64::new(0) });
        let used = Use { number: 1, salt: 1 };
        let window = || Window::new(file.clone(), SIZE, used);
        let read = |of: &mut dyn FnMut()| {
            let before = file.read.load(Ordering::Relaxed);
            of();
            file.read.load(Ordering::Relaxed) - before
        };
        let starts = || (4096..SIZE - RECORD).step_by(RECORD as usize);
        let headers = read(&mut || {
            let mut window = window();
            for start in starts() {
                let header = window.bytes(start, 64).unwrap();
                assert_eq!(header, &expected[start as usize..][..64]);
            }
        });
        assert!(headers <= 32 * CHUNK_BYTES_MIN, "{headers} bytes for headers");
        let all = read(&mut || {
            let mut window = window();
            for start in starts() {
                assert_eq!(window.bytes(start, 64).unwrap(), &expected[start as usize..][..64]);
                let (mut at, end) = (start + 64, start + RECORD);
                while at < end {
                    let piece = window.some_bytes(at, end - at).unwrap();
                    assert_eq!(piece, &expected[at as usize..][..piece.len()]);
                    at += piece.len() as u64;
                }
            }
        });
        assert!(all <= SIZE + SIZE / 8, "{all} of {SIZE} bytes");
    }
}
