//! The frame around every message: `size[4] type[1] tag[2]`, little-endian.

use crate::Tag;
use crate::wire::WireError;

/// Bytes of a frame header.
pub const HEADER_LEN: usize = 7;

/// Bytes that a `Rread` puts before its data: the header and `count[4]`.
pub const READ_REPLY_OVERHEAD: usize = HEADER_LEN + 4;

/// Bytes that a `Twrite` puts before its data: header, `fid[4] offset[8] count[4]`.
pub const WRITE_REQUEST_OVERHEAD: usize = HEADER_LEN + 16;

/// What Plan 9 calls IOHDRSZ: the room to leave beside data in any message.
pub const IO_HEADER_LEN: u32 = 24;

/// The smallest message size that a session can be held with: a walk of one long name, an
/// attribute reply and an error all fit.
pub const MSIZE_MIN: u32 = 4096;

/// The largest message size that this implementation agrees to.
pub const MSIZE_MAX: u32 = 16 * 1024 * 1024;

/// The fixed start of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Length of the whole message in bytes, this header included.
    pub size: u32,
    /// The message type: even for requests (`T`), odd for replies (`R`).
    pub kind: u8,
    /// Matches a reply to its request.
    pub tag: Tag,
}

impl Header {
    /// Reads a header and checks the length that it claims.
    ///
    /// # Errors
    /// [`WireError::Size`] when the message is shorter than its header or longer than `msize`.
    pub fn parse(bytes: &[u8; HEADER_LEN], msize: u32) -> Result<Self, WireError> {
        let [a, b, c, d, kind, e, f] = *bytes;
        let size = u32::from_le_bytes([a, b, c, d]);
        if (size as usize) < HEADER_LEN || size > msize {
            return Err(WireError::Size { size, msize });
        }
        Ok(Self { size, kind, tag: Tag(u16::from_le_bytes([e, f])) })
    }

    /// Bytes that follow the header.
    #[must_use]
    pub fn body_len(&self) -> usize {
        self.size as usize - HEADER_LEN
    }

    /// The header as it goes over the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [a, b, c, d] = self.size.to_le_bytes();
        let [e, f] = self.tag.0.to_le_bytes();
        [a, b, c, d, self.kind, e, f]
    }
}
