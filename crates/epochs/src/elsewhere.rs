//! What the agent of a node tells the one that keeps the order: where bytes are that it has kept itself.

use std::fmt;

use crate::Malformed;

/// The attribute of a file that an [`Extent`] is set as; of the root, the one in which a [`Standing`] is read.
pub const ELSEWHERE: &[u8] = b"user.sluice.elsewhere";

/// Bytes of a file that are in the log of another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file.
    pub offset: u64,
    /// How many.
    pub len: u64,
    /// In which log.
    pub log: u64,
    /// In which use of which segment.
    pub segment: u32,
    /// Where in the segment.
    pub at: u32,
}

/// How far the log is that keeps the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// All records up to here are in the target.
    pub drained: u64,
    /// The last record.
    pub last: u64,
    /// Nothing in it is needed any more by anybody.
    pub is_idle: bool,
}

fn numbers<const N: usize>(text: &[u8]) -> Result<[u64; N], Malformed> {
    let text = std::str::from_utf8(text).map_err(|_| Malformed)?;
    let number = |text: &str| match text.starts_with('+') {
        true => Err(Malformed),
        false => text.parse().map_err(|_| Malformed),
    };
    let found: Vec<u64> = text.split(' ').map(number).collect::<Result<_, _>>()?;
    found.try_into().map_err(|_| Malformed)
}

impl Extent {
    /// Reads the value of [`ELSEWHERE`].
    ///
    /// # Errors
    /// [`Malformed`], also where it would end behind the last byte that a file can have.
    pub fn parse(text: &[u8]) -> Result<Self, Malformed> {
        let [offset, len, log, segment, at] = numbers(text)?;
        let small = |number: u64| u32::try_from(number).map_err(|_| Malformed);
        let end = offset.checked_add(len).filter(|end| *end <= i64::MAX as u64);
        if len == 0 || end.is_none() {
            return Err(Malformed);
        }
        Ok(Self { offset, len, log, segment: small(segment)?, at: small(at)? })
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, len, log, segment, at } = self;
        write!(f, "{offset} {len} {log} {segment} {at}")
    }
}

impl Standing {
    /// Reads the value of [`ELSEWHERE`] of the root.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(text: &[u8]) -> Result<Self, Malformed> {
        let [drained, last, is_idle] = numbers(text)?;
        Ok(Self { drained, last, is_idle: is_idle == 1 })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.drained, self.last, u8::from(self.is_idle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_and_standings_arrive_as_they_were_sent() {
        let extent = Extent { offset: 1 << 40, len: 7, log: u64::MAX, segment: 9, at: u32::MAX };
        assert_eq!(Extent::parse(extent.to_string().as_bytes()), Ok(extent));
        for is_idle in [true, false] {
            let standing = Standing { drained: 3, last: 1 << 60, is_idle };
            assert_eq!(Standing::parse(standing.to_string().as_bytes()), Ok(standing));
        }
        let too_far = format!("{} 1 1 1 1", i64::MAX);
        for text in ["", "1 2 3 4", "1 0 3 4 5", "+1 2 3 4 5", "1 2 3 4294967296 5", &too_far] {
            assert_eq!(Extent::parse(text.as_bytes()), Err(Malformed), "{text}");
        }
        assert_eq!(Standing::parse(b"1 2"), Err(Malformed));
    }
}
