//! Reading a segment from its beginning to its end, some hundred kilobytes at a time.

use std::io;
use std::sync::Arc;

use crate::format::{Bad, Header, RECORD_HEADER_BYTES, Use, record_end};
use crate::media::MediaFile;

const CHUNK_BYTES: u64 = 256 << 10;

/// A part of a segment in memory.
pub(crate) struct Window {
    file: Arc<dyn MediaFile>,
    segment_bytes: u64,
    used: Use,
    start: u64,
    held: Vec<u8>,
}

impl Window {
    pub(crate) fn new(file: Arc<dyn MediaFile>, segment_bytes: u64, used: Use) -> Self {
        Self { file, segment_bytes, used, start: 0, held: Vec::new() }
    }

    /// `len` bytes from `offset`, which do not pass the segment's end.
    fn bytes(&mut self, offset: u64, len: u64) -> io::Result<&[u8]> {
        let end = self.start + self.held.len() as u64;
        if offset < self.start || offset + len > end {
            let chunk = CHUNK_BYTES.max(len).min(self.segment_bytes.saturating_sub(offset));
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
            let piece = left.min(CHUNK_BYTES);
            crc = crc32c::crc32c_append(crc, self.bytes(at, piece)?);
            at += piece;
            left -= piece;
        }
        Ok(if crc == header.payload_crc { Ok(header) } else { Err(Bad::Payload) })
    }

    /// The payload of the record at `offset`.
    pub(crate) fn payload(&mut self, offset: u64, header: &Header) -> io::Result<Vec<u8>> {
        Ok(self.bytes(offset + RECORD_HEADER_BYTES, u64::from(header.len))?.to_vec())
    }
}
