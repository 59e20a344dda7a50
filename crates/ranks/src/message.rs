//! What ranks say to each other: a header of 12 bytes, and the bytes of a stream behind it.

/// Bytes of the header: kind and padding, stream, value; numbers are little-endian.
pub(crate) const HEADER_BYTES: usize = 12;

/// The most that one message carries. A Unix socket gives about as much at a time.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 256 << 10;

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Client to service: a stream begins.
    Open,
    /// Bytes of a stream.
    Data,
    /// The sender's end of a stream gives no more bytes.
    Close,
    /// `value` bytes of a stream have been delivered, and as many more may be sent.
    Credit,
    /// Client to service: are you there?
    Ping,
    /// Service to client: yes.
    Pong,
    /// Service to client: no streams any more.
    Ended,
    /// Client to service: no streams any more.
    Goodbye,
    /// Service to client: all have said goodbye; never again a message.
    Farewell,
}

const KINDS: [(u8, Kind); 9] = [
    (1, Kind::Open),
    (2, Kind::Data),
    (3, Kind::Close),
    (4, Kind::Credit),
    (5, Kind::Ping),
    (6, Kind::Pong),
    (7, Kind::Ended),
    (8, Kind::Goodbye),
    (9, Kind::Farewell),
];

/// A header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// The stream; 0 where none is meant.
    pub(crate) stream: u32,
    /// See [`Kind::Credit`].
    pub(crate) value: u32,
}

impl Header {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, stream: 0, value: 0 }
    }

    pub(crate) fn of(kind: Kind, stream: u32) -> Self {
        Self { kind, stream, value: 0 }
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] =
            KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or(0, |(number, _)| *number);
        bytes[4..8].copy_from_slice(&self.stream.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.value.to_le_bytes());
        bytes
    }

    /// The header of a message, if it has one.
    pub(crate) fn parse(message: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER_BYTES] = message.first_chunk()?;
        let kind = KINDS.iter().find(|(number, _)| *number == header[0])?.1;
        let number = |at: usize| Some(u32::from_le_bytes(header[at..at + 4].try_into().ok()?));
        Some(Self { kind, stream: number(4)?, value: number(8)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_way() {
        for (_, kind) in KINDS {
            let header = Header { kind, stream: 0x0102_0304, value: u32::MAX };
            assert_eq!(Header::parse(&header.to_bytes()), Some(header));
        }
        assert_eq!(Header::parse(&[1; HEADER_BYTES - 1]), None);
        assert_eq!(Header::parse(&[0; HEADER_BYTES]), None);
    }
}
