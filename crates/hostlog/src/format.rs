//! What stands on the disk, byte by byte: segment headers, record headers, checkpoint slots.
//!
//! docs/LOGFORMAT.md says the same in words. All numbers are little endian; bytes without a meaning
//! are zero and must be. Everything here is pure: bytes to values and back.

use crate::ids::{FileId, Group, Member, Sequence};

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 3;
/// What a segment's header takes.
pub const SEGMENT_HEADER_BYTES: u64 = 4096;
/// What a record's header takes; records begin at multiples of it.
pub const RECORD_HEADER_BYTES: u64 = 64;
/// The smallest segment that is of any use: its header, and some records.
pub const SEGMENT_BYTES_MIN: u64 = 8192;
/// The largest: offsets within a segment fit in 32 bits.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 31;
/// What a slot of the checkpoint file takes.
pub const SLOT_BYTES: u64 = 4096;
/// Slots of the checkpoint file: two that are synced, in turn, and two that are only written.
pub const SLOTS: u64 = 4;

/// What is above it is no sequence and no generation, neither written nor taken for one. No log gets that far: at a
/// thousand million records a second it would take a century.
pub(crate) const SEQUENCE_MAX: u64 = 1 << 62;

const SEGMENT_MAGIC: [u8; 4] = *b"SLsg";
const RECORD_MAGIC: [u8; 4] = *b"SLrc";
const SLOT_MAGIC: [u8; 4] = *b"SLcp";
const SEGMENT_HEADER_USED: usize = 64;
const SLOT_USED: usize = 96;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The end of a record with `payload` bytes that begins at `start`.
#[must_use]
pub fn record_end(start: u64, payload: u64) -> u64 {
    (start + RECORD_HEADER_BYTES + payload).next_multiple_of(RECORD_HEADER_BYTES)
}

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Bytes of a file.
    Data = 1,
    /// A change that is no data: the payload says which.
    Operation = 2,
    /// A rank is done with an epoch.
    Prepare = 3,
    /// A file's data up to a sequence counts.
    Commit = 4,
    /// A group's data up to an epoch counts.
    CommitGroup = 5,
    /// A group's data up to an epoch, as far as not committed, never counts.
    AbortGroup = 6,
    /// All up to a sequence is in the target.
    Drained = 7,
    /// The log was opened again: what was not committed is void.
    Restart = 8,
    /// A file's data up to a sequence, as far as not committed, never counts.
    Abort = 9,
    /// Bytes of a file, which are in the log of another node.
    Elsewhere = 10,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Data,
            2 => Self::Operation,
            3 => Self::Prepare,
            4 => Self::Commit,
            5 => Self::CommitGroup,
            6 => Self::AbortGroup,
            7 => Self::Drained,
            8 => Self::Restart,
            9 => Self::Abort,
            10 => Self::Elsewhere,
            _ => return None,
        })
    }
}

/// The flag of a record that counts as soon as anything behind it is committed.
pub(crate) const FLAG_NAMESPACE: u8 = 1;

/// Why bytes are not what should stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    /// No record was ever written there, or another use of the segment wrote it.
    Nothing,
    /// The header's checksum is wrong.
    Header,
    /// The payload's checksum is wrong.
    Payload,
    /// The checksum is right and yet no log of this version holds such a record.
    Malformed,
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Bad::Nothing => "no record",
            Bad::Header => "a header whose checksum is wrong",
            Bad::Payload => "a payload whose checksum is wrong",
            Bad::Malformed => "a record with a right checksum that this version does not know",
        })
    }
}

/// Which use of a segment this is. A record belongs to it only if it has both: what else lies in the file, from
/// earlier uses or because a program wrote the image of a log through this one, can look like a record of a number
/// that comes later, but nobody knew its salt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// From 1, and never given twice.
    pub number: u32,
    /// Chosen at random; every record's checksum begins with it.
    pub salt: u32,
}

/// A record without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Whether it counts as soon as anything behind it is committed.
    pub namespace: bool,
    /// Its place in the log's order.
    pub sequence: Sequence,
    /// The use of the segment that it was written in.
    pub segment: u32,
    /// The payload's length in bytes.
    pub len: u32,
    /// Which file it is about.
    pub file: FileId,
    /// Data: the offset in the file. Commit, Abort, Drained: the sequence up to which it holds. Restart:
    /// the last sequence before. Prepare: rank (low half) and ranks (high half).
    pub value: u64,
    /// The group's epoch that it belongs to or decides on.
    pub member: Option<Member>,
    /// The connection or process that asked for it.
    pub stream: u32,
    /// All records up to this one were durable when it was written.
    pub durable: Sequence,
    /// CRC-32C of the payload.
    pub payload_crc: u32,
}

impl Header {
    /// As it stands on the disk, in the use of a segment that has this salt.
    #[must_use]
    pub fn encode(&self, salt: u32) -> [u8; RECORD_HEADER_BYTES as usize] {
        let mut out = [0; RECORD_HEADER_BYTES as usize];
        put(&mut out, 0, &RECORD_MAGIC);
        out[4] = self.kind as u8;
        out[5] = if self.namespace { FLAG_NAMESPACE } else { 0 };
        put(&mut out, 8, &self.sequence.0.to_le_bytes());
        put(&mut out, 16, &self.segment.to_le_bytes());
        put(&mut out, 20, &self.len.to_le_bytes());
        put(&mut out, 24, &self.file.0.to_le_bytes());
        put(&mut out, 32, &self.value.to_le_bytes());
        if let Some(member) = self.member {
            put(&mut out, 40, &member.group.0.to_le_bytes());
            put(&mut out, 44, &member.epoch.to_le_bytes());
        }
        put(&mut out, 48, &self.stream.to_le_bytes());
        // A distance that does not fit says that nothing is known.
        let distance = self.sequence.0.saturating_sub(self.durable.0);
        put(&mut out, 52, &u32::try_from(distance).unwrap_or(u32::MAX).to_le_bytes());
        put(&mut out, 56, &self.payload_crc.to_le_bytes());
        let crc = record_crc(salt, &out[..60]);
        put(&mut out, 60, &crc.to_le_bytes());
        out
    }

    /// What stands at the beginning of `bytes`, which are at least a header's length.
    ///
    /// # Errors
    /// What is wrong with it. The payload's checksum is the caller's to look at.
    pub fn decode(bytes: &[u8], used: Use) -> Result<Self, Bad> {
        let segment = used.number;
        let Some(bytes) = bytes.get(..RECORD_HEADER_BYTES as usize) else {
            return Err(Bad::Nothing);
        };
        if bytes[..4] != RECORD_MAGIC || u32_at(bytes, 16) != segment {
            return Err(if bytes.iter().all(|byte| *byte == 0) || u32_at(bytes, 16) != segment {
                Bad::Nothing
            } else {
                Bad::Header
            });
        }
        if record_crc(used.salt, &bytes[..60]) != u32_at(bytes, 60) {
            return Err(Bad::Header);
        }
        let kind = Kind::of(bytes[4]).ok_or(Bad::Malformed)?;
        let sequence = u64_at(bytes, 8);
        let distance = u32_at(bytes, 52);
        let (group, epoch) = (u32_at(bytes, 40), u32_at(bytes, 44));
        let member = (group != 0).then_some(Member { group: Group(group), epoch });
        let needs_member =
            matches!(kind, Kind::Prepare | Kind::CommitGroup | Kind::AbortGroup | Kind::Elsewhere);
        let distance_known = distance != u32::MAX;
        let looks_back = matches!(kind, Kind::Commit | Kind::Abort | Kind::Drained | Kind::Restart);
        if bytes[5] & !FLAG_NAMESPACE != 0
            || bytes[6..8] != [0, 0]
            || !(1..=SEQUENCE_MAX).contains(&sequence)
            || (looks_back && u64_at(bytes, 32) >= sequence)
            || (member.is_none() && (epoch != 0 || needs_member))
            || (distance_known && u64::from(distance) > sequence)
        {
            return Err(Bad::Malformed);
        }
        Ok(Self {
            kind,
            namespace: bytes[5] & FLAG_NAMESPACE != 0,
            sequence: Sequence(sequence),
            segment,
            len: u32_at(bytes, 20),
            file: FileId(u64_at(bytes, 24)),
            value: u64_at(bytes, 32),
            member,
            stream: u32_at(bytes, 48),
            durable: Sequence(if distance_known { sequence - u64::from(distance) } else { 0 }),
            payload_crc: u32_at(bytes, 56),
        })
    }
}

/// The checksum of a record's header.
fn record_crc(salt: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), bytes)
}

/// The beginning of a segment file: which use of it this is, and which was before in the log's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The log that it is part of.
    pub log: u64,
    /// The use.
    pub used: Use,
    /// The number of the use before it in the log's order; 0 for the first.
    pub previous: u32,
    /// The file's length.
    pub segment_bytes: u64,
}

impl SegmentHeader {
    /// As it stands on the disk: one sector of it is used.
    #[must_use]
    pub fn encode(&self) -> [u8; 512] {
        let mut out = [0; 512];
        put(&mut out, 0, &SEGMENT_MAGIC);
        put(&mut out, 4, &VERSION.to_le_bytes());
        put(&mut out, 8, &self.log.to_le_bytes());
        put(&mut out, 16, &self.used.number.to_le_bytes());
        put(&mut out, 20, &self.previous.to_le_bytes());
        put(&mut out, 24, &self.segment_bytes.to_le_bytes());
        put(&mut out, 32, &self.used.salt.to_le_bytes());
        let crc = crc32c::crc32c(&out[..SEGMENT_HEADER_USED - 4]);
        put(&mut out, SEGMENT_HEADER_USED - 4, &crc.to_le_bytes());
        out
    }

    /// What stands at the beginning of a segment file, if any use does. A version that is not ours is
    /// told only when the checksum is right.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Result<Self, u32>> {
        let bytes = bytes.get(..SEGMENT_HEADER_USED)?;
        let crc = u32_at(bytes, SEGMENT_HEADER_USED - 4);
        if bytes[..4] != SEGMENT_MAGIC || crc32c::crc32c(&bytes[..SEGMENT_HEADER_USED - 4]) != crc {
            return None;
        }
        if u32_at(bytes, 4) != VERSION {
            return Some(Err(u32_at(bytes, 4)));
        }
        if u32_at(bytes, 16) == 0 {
            return None;
        }
        Some(Ok(Self {
            log: u64_at(bytes, 8),
            used: Use { number: u32_at(bytes, 16), salt: u32_at(bytes, 32) },
            previous: u32_at(bytes, 20),
            segment_bytes: u64_at(bytes, 24),
        }))
    }
}

/// What the checkpoint file says: where the log begins and ends, as far as is known to be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The log that it is part of.
    pub log: u64,
    /// Grows with each that is written.
    pub generation: u64,
    /// All records up to this one are durable.
    pub durable: u64,
    /// All records up to this one are in the target.
    pub drained: u64,
    /// No sequence above this one was used when it was written.
    pub used: u64,
    /// The first segment that is needed; 0: none was ever used.
    pub first: u32,
    /// The last segment that may hold records.
    pub last: u32,
    /// The highest number that a segment ever got.
    pub highest: u32,
    /// Whether the log was closed in peace, so that nothing stands behind `durable`.
    pub closed: bool,
}

impl Checkpoint {
    /// As it stands on the disk: one sector of it is used.
    #[must_use]
    pub fn encode(&self) -> [u8; 512] {
        let mut out = [0; 512];
        put(&mut out, 0, &SLOT_MAGIC);
        put(&mut out, 4, &VERSION.to_le_bytes());
        put(&mut out, 8, &self.log.to_le_bytes());
        put(&mut out, 16, &self.generation.to_le_bytes());
        put(&mut out, 24, &self.durable.to_le_bytes());
        put(&mut out, 32, &self.drained.to_le_bytes());
        put(&mut out, 40, &self.used.to_le_bytes());
        put(&mut out, 48, &self.first.to_le_bytes());
        put(&mut out, 52, &self.last.to_le_bytes());
        put(&mut out, 56, &self.highest.to_le_bytes());
        put(&mut out, 60, &u32::from(self.closed).to_le_bytes());
        let crc = crc32c::crc32c(&out[..SLOT_USED - 4]);
        put(&mut out, SLOT_USED - 4, &crc.to_le_bytes());
        out
    }

    /// The largest of the numbers that have a limit, [`SEQUENCE_MAX`].
    pub(crate) fn largest(&self) -> u64 {
        self.generation.max(self.durable).max(self.drained).max(self.used)
    }

    /// What stands in a slot, if it is whole.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..SLOT_USED)?;
        let crc = u32_at(bytes, SLOT_USED - 4);
        if bytes[..4] != SLOT_MAGIC
            || u32_at(bytes, 4) != VERSION
            || crc32c::crc32c(&bytes[..SLOT_USED - 4]) != crc
        {
            return None;
        }
        Some(Self {
            log: u64_at(bytes, 8),
            generation: u64_at(bytes, 16),
            durable: u64_at(bytes, 24),
            drained: u64_at(bytes, 32),
            used: u64_at(bytes, 40),
            first: u32_at(bytes, 48),
            last: u32_at(bytes, 52),
            highest: u32_at(bytes, 56),
            closed: u32_at(bytes, 60) == 1,
        })
    }
}
