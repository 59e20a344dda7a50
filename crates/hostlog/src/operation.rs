//! Changes that are no data: what they say, and their bytes.

/// A time as utimensat(2) has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: u32,
}

/// Attributes to set; what is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of the last access.
    pub accessed: Option<Time>,
    /// Time of the last change of the content.
    pub modified: Option<Time>,
}

/// A change that is no data. Paths are bytes, relative to the target's root, without a leading slash.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named as the system calls have them")]
pub enum Operation {
    /// The record's file is what is found at `path` at this point of the log.
    Bind { path: Vec<u8> },
    /// A new file: the record's file id is its.
    Create { path: Vec<u8>, mode: u32 },
    /// mkdir(2).
    Mkdir { path: Vec<u8>, mode: u32 },
    /// symlink(2).
    Symlink { path: Vec<u8>, target: Vec<u8> },
    /// link(2).
    Link { existing: Vec<u8>, path: Vec<u8> },
    /// unlink(2).
    Unlink { path: Vec<u8> },
    /// rmdir(2).
    Rmdir { path: Vec<u8> },
    /// renameat2(2), flags as there.
    Rename { from: Vec<u8>, to: Vec<u8>, flags: u32 },
    /// The record's file has this size from here on.
    Truncate { size: u64 },
    /// Attributes of what is at `path`; of the record's file where that is empty.
    Attributes { path: Vec<u8>, set: Attributes },
    /// Whatever the log's owner means by it.
    Note { tag: u32, bytes: Vec<u8> },
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn wide(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.number(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.0.extend_from_slice(value);
        self
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn wide(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let len = self.number()?;
        self.take(len as usize).map(<[u8]>::to_vec)
    }
}

impl Operation {
    /// Its bytes: a number for the kind, then the fields in the order of the declaration.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(64));
        match self {
            Self::Bind { path } => out.number(1).bytes(path),
            Self::Create { path, mode } => out.number(2).bytes(path).number(*mode),
            Self::Mkdir { path, mode } => out.number(3).bytes(path).number(*mode),
            Self::Symlink { path, target } => out.number(4).bytes(path).bytes(target),
            Self::Link { existing, path } => out.number(5).bytes(existing).bytes(path),
            Self::Unlink { path } => out.number(6).bytes(path),
            Self::Rmdir { path } => out.number(7).bytes(path),
            Self::Rename { from, to, flags } => out.number(8).bytes(from).bytes(to).number(*flags),
            Self::Truncate { size } => out.number(9).wide(*size),
            Self::Attributes { path, set } => {
                out.number(10).bytes(path);
                encode_attributes(&mut out, set)
            }
            Self::Note { tag, bytes } => out.number(11).number(*tag).bytes(bytes),
        };
        out.0
    }

    /// The change whose bytes these are, all of them.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let operation = match from.number()? {
            1 => Self::Bind { path: from.bytes()? },
            2 => Self::Create { path: from.bytes()?, mode: from.number()? },
            3 => Self::Mkdir { path: from.bytes()?, mode: from.number()? },
            4 => Self::Symlink { path: from.bytes()?, target: from.bytes()? },
            5 => Self::Link { existing: from.bytes()?, path: from.bytes()? },
            6 => Self::Unlink { path: from.bytes()? },
            7 => Self::Rmdir { path: from.bytes()? },
            8 => Self::Rename { from: from.bytes()?, to: from.bytes()?, flags: from.number()? },
            9 => Self::Truncate { size: from.wide()? },
            10 => Self::Attributes { path: from.bytes()?, set: decode_attributes(&mut from)? },
            11 => Self::Note { tag: from.number()?, bytes: from.bytes()? },
            _ => return None,
        };
        from.0.is_empty().then_some(operation)
    }
}

fn encode_attributes<'a>(out: &'a mut Writer, set: &Attributes) -> &'a mut Writer {
    let numbers = [set.mode, set.uid, set.gid];
    let times = [set.accessed, set.modified];
    let present = numbers.iter().map(Option::is_some).chain(times.iter().map(Option::is_some));
    let mask = present.enumerate().map(|(bit, some)| u32::from(some) << bit).sum();
    out.number(mask);
    for value in numbers.into_iter().flatten() {
        out.number(value);
    }
    for time in times.into_iter().flatten() {
        out.wide(time.seconds.cast_unsigned()).number(time.nanoseconds);
    }
    out
}

fn decode_attributes(from: &mut Reader<'_>) -> Option<Attributes> {
    let mask = from.number()?;
    if mask >= 1 << 5 {
        return None;
    }
    let mut set = Attributes::default();
    for (bit, field) in [&mut set.mode, &mut set.uid, &mut set.gid].into_iter().enumerate() {
        if mask & (1 << bit) != 0 {
            *field = Some(from.number()?);
        }
    }
    for (bit, field) in [&mut set.accessed, &mut set.modified].into_iter().enumerate() {
        if mask & (8 << bit) != 0 {
            let seconds = from.wide()?.cast_signed();
            *field = Some(Time { seconds, nanoseconds: from.number()? });
        }
    }
    Some(set)
}
