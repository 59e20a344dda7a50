//! Fields: how each kind of value is laid out in a message.

use crate::Qid;

/// A message that is not what the protocol allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message ends within a field.
    #[error("message ends within field `{field}`: {needed} bytes needed, {left} left")]
    Truncated {
        /// The kind of field.
        field: &'static str,
        /// Bytes that the field takes.
        needed: usize,
        /// Bytes that the message still has.
        left: usize,
    },
    /// Bytes follow the last field.
    #[error("{extra} bytes follow the last field of message type {kind}")]
    Trailing {
        /// The message type.
        kind: u8,
        /// How many bytes.
        extra: usize,
    },
    /// The frame's length cannot be.
    #[error("frame of {size} bytes: at least 7 and at most msize ({msize}) are allowed")]
    Size {
        /// What the frame claims.
        size: u32,
        /// What was negotiated.
        msize: u32,
    },
    /// No such message type in this direction.
    #[error("unknown message type {kind}")]
    UnknownType {
        /// The type byte.
        kind: u8,
    },
    /// More than [`Names::MAX`] elements in a walk.
    #[error("{count} elements in one walk: at most 16 are allowed")]
    TooManyNames {
        /// What the message claims.
        count: usize,
    },
    /// A nested structure contradicts its own length.
    #[error("stat structure of {claimed} bytes does not hold {held} bytes of fields")]
    StatLength {
        /// The length it states.
        claimed: usize,
        /// The length of its fields.
        held: usize,
    },
}

/// A cursor over a message body. Every read is checked.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], WireError> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(WireError::Truncated { field, needed: len, left: self.rest.len() });
        };
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        field: &'static str,
    ) -> Result<[u8; N], WireError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(WireError::Truncated { field, needed: N, left: self.rest.len() });
        };
        self.rest = rest;
        Ok(*head)
    }
}

/// A value with a place in a message.
pub(crate) trait Field<'a>: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(from: &mut Reader<'a>) -> Result<Self, WireError>;
    /// What is sent after the encoded head instead of being copied into it.
    fn tail(&self) -> &'a [u8] {
        &[]
    }
}

macro_rules! integer_field {
    ($($t:ty),*) => {$(
        impl Field<'_> for $t {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn get(from: &mut Reader<'_>) -> Result<Self, WireError> {
                Ok(<$t>::from_le_bytes(from.array(stringify!($t))?))
            }
        }
    )*};
}
integer_field!(u8, u16, u32, u64);

/// A string: `len[2]` and bytes. Names on Linux are bytes, not text.
pub type Name<'a> = &'a [u8];

impl<'a> Field<'a> for Name<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        // Longer names cannot be expressed; PATH_MAX keeps all real ones far below.
        let len = u16::try_from(self.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&self[..usize::from(len)]);
    }
    fn get(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let len = u16::get(from)?;
        from.take(len.into(), "string")
    }
}

/// Bulk data: `count[4]` and bytes, always the last field of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a>(pub &'a [u8]);

impl<'a> Field<'a> for Data<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        let len = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_le_bytes());
    }
    fn get(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let len = u32::get(from)?;
        Ok(Self(from.take(len as usize, "data")?))
    }
    fn tail(&self) -> &'a [u8] {
        self.0
    }
}

/// The elements of a walk, at most [`Names::MAX`].
#[derive(Clone, Copy)]
pub struct Names<'a> {
    items: [&'a [u8]; Names::MAX],
    len: usize,
}

impl<'a> Names<'a> {
    /// MAXWELEM of the protocol.
    pub const MAX: usize = 16;

    /// Collects up to [`Names::MAX`] elements; what is beyond is left to a further walk.
    pub fn collect(names: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut all = Self { items: [&[]; Self::MAX], len: 0 };
        for name in names.into_iter().take(Self::MAX) {
            all.items[all.len] = name;
            all.len += 1;
        }
        all
    }

    /// The elements in order.
    #[must_use]
    pub fn as_slice(&self) -> &[&'a [u8]] {
        &self.items[..self.len]
    }
}

impl std::fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.as_slice().iter().map(|n| n.escape_ascii().to_string()))
            .finish()
    }
}

impl PartialEq for Names<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Names<'_> {}

impl<'a> Field<'a> for Names<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len as u16).put(out);
        for name in self.as_slice() {
            name.put(out);
        }
    }
    fn get(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let count = usize::from(u16::get(from)?);
        if count > Self::MAX {
            return Err(WireError::TooManyNames { count });
        }
        let mut all = Self { items: [&[]; Self::MAX], len: count };
        for item in &mut all.items[..count] {
            *item = Name::get(from)?;
        }
        Ok(all)
    }
}

/// The qids of a walk's elements, at most [`Names::MAX`].
#[derive(Clone, Copy)]
pub struct Qids {
    items: [Qid; Names::MAX],
    len: usize,
}

impl Qids {
    /// Collects up to [`Names::MAX`] qids.
    pub fn collect(qids: impl IntoIterator<Item = Qid>) -> Self {
        let mut all = Self { items: [Qid::default(); Names::MAX], len: 0 };
        for qid in qids.into_iter().take(Names::MAX) {
            all.items[all.len] = qid;
            all.len += 1;
        }
        all
    }

    /// The qids in the order of the walk.
    #[must_use]
    pub fn as_slice(&self) -> &[Qid] {
        &self.items[..self.len]
    }
}

impl std::fmt::Debug for Qids {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl PartialEq for Qids {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Qids {}

impl<'a> Field<'a> for Qids {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len as u16).put(out);
        for qid in self.as_slice() {
            qid.put(out);
        }
    }
    fn get(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let count = usize::from(u16::get(from)?);
        if count > Names::MAX {
            return Err(WireError::TooManyNames { count });
        }
        let mut all = Self { items: [Qid::default(); Names::MAX], len: count };
        for item in &mut all.items[..count] {
            *item = Qid::get(from)?;
        }
        Ok(all)
    }
}

/// A last field that one dialect has and the other has not (`n_uname` of attach and auth), or
/// that old clients leave out (`datasync` of fsync).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Optional(pub Option<u32>);

impl<'a> Field<'a> for Optional {
    fn put(&self, out: &mut Vec<u8>) {
        if let Some(value) = self.0 {
            value.put(out);
        }
    }
    fn get(from: &mut Reader<'a>) -> Result<Self, WireError> {
        if from.left() == 0 { Ok(Self(None)) } else { Ok(Self(Some(u32::get(from)?))) }
    }
}
