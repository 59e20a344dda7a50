//! Messages and recordings as bytes.
//!
//! A frame begins with `SC`, a version, the kind and the length of the rest in four bytes; then come file and cycle, and what
//! is told. All numbers are little-endian and of fixed width; what may be missing follows a byte that is 1 if it is there, lists begin
//! with their length in four bytes, slabs with their rank in two, followed by start, count and step of each dimension in eight bytes each.

use hyperslab::{Slab, SlabError};
use nctypes::Type;

use crate::pattern::{Flow, Recording};
use crate::{
    Announce, Batch, Component, Cycle, Deliver, File, Gap, Message, Place, Role, Said, Variable,
    Why, Wish,
};

/// The version of the format.
const VERSION: u8 = 1;
const MAGIC: [u8; 2] = *b"SC";
const HEADER_BYTES: usize = 8;

/// Bytes that are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// They end too early.
    #[error("the message ends after {bytes} bytes, where more is due")]
    Short {
        /// How many there are.
        bytes: usize,
    },
    /// They do not begin as a message does.
    #[error("this is no message of Sluice: it begins with other bytes than `SC`")]
    Foreign,
    /// Another version has written them.
    #[error(
        "the message is of version {version}; this is version {VERSION}: use the same Sluice on all sides"
    )]
    Version {
        /// Theirs.
        version: u8,
    },
    /// A number that means nothing here.
    #[error("byte {at}: {value} is no {what}")]
    Value {
        /// Where.
        at: usize,
        /// The number.
        value: u64,
        /// What was expected.
        what: &'static str,
    },
    /// A slab that cannot be.
    #[error("byte {at}: a slab that cannot be")]
    Slab {
        /// Where.
        at: usize,
        /// Why.
        #[source]
        source: SlabError,
    },
    /// A name that is no text.
    #[error("byte {at}: a name that is not UTF-8")]
    Name {
        /// Where.
        at: usize,
    },
    /// More bytes than belong to it.
    #[error("{bytes} bytes are left behind the end of the message")]
    Trailing {
        /// How many.
        bytes: usize,
    },
}

mod kind {
    pub(super) const BATCH: u8 = 1;
    pub(super) const DELIVER: u8 = 2;
    pub(super) const GAPS: u8 = 3;
    pub(super) const REFUSE: u8 = 4;
    pub(super) const CLOSED: u8 = 5;
    pub(super) const MAY_BEGIN: u8 = 6;
    pub(super) const BEGIN: u8 = 7;
    pub(super) const SAME_AS: u8 = 8;
    pub(super) const REPLAY: u8 = 9;
    pub(super) const DONE: u8 = 10;
    pub(super) const RECORDING: u8 = 64;
}

/// A reason, by its number.
mod why {
    pub(super) const UNWRITTEN: u8 = 1;
    pub(super) const RECORDS: u8 = 2;
    pub(super) const DEFINITION: u8 = 3;
    pub(super) const LOST: u8 = 4;
}

impl Message {
    /// Appends the message to `bytes`.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let kind = match &self.said {
            Said::Batch(_) => kind::BATCH,
            Said::Deliver(_) => kind::DELIVER,
            Said::Gaps(_) => kind::GAPS,
            Said::Refuse(_) => kind::REFUSE,
            Said::Closed => kind::CLOSED,
            Said::MayBegin => kind::MAY_BEGIN,
            Said::Begin(_) => kind::BEGIN,
            Said::SameAs(..) => kind::SAME_AS,
            Said::Replay(..) => kind::REPLAY,
            Said::Done => kind::DONE,
        };
        frame(bytes, kind, |out| {
            out.u32(self.file.0);
            out.u32(self.cycle.0);
            match &self.said {
                Said::Batch(batch) => out.batch(batch),
                Said::Deliver(list) => out.list(list, |out, one| {
                    out.u32(one.request);
                    out.place(one.reader);
                    out.u32(one.wish);
                    out.slab(&one.part);
                }),
                Said::Gaps(list) => out.list(list, |out, one| {
                    out.u32(one.wish);
                    out.slab(&one.part);
                }),
                Said::Refuse(list) => out.list(list, |out, (wish, why)| {
                    out.u32(*wish);
                    out.why(why);
                }),
                Said::Closed | Said::MayBegin | Said::Done => {}
                Said::Begin(cycle) => out.cycle(*cycle),
                Said::SameAs(role, cycle) => {
                    out.role(*role);
                    out.cycle(*cycle);
                }
                Said::Replay(role, replayed) => {
                    out.role(*role);
                    out.u8(u8::from(*replayed));
                }
            }
        });
    }

    /// The message at the beginning of `bytes`, and what follows it.
    ///
    /// # Errors
    /// Bytes that are none.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let (kind, mut input, rest) = open(bytes)?;
        let (file, cycle) = (File(input.u32()?), Cycle(input.u32()?));
        let said = match kind {
            kind::BATCH => Said::Batch(input.batch()?),
            kind::DELIVER => Said::Deliver(input.list(|input| {
                let (request, reader, wish) = (input.u32()?, input.place()?, input.u32()?);
                Ok(Deliver { request, reader, wish, part: input.slab()? })
            })?),
            kind::GAPS => {
                Said::Gaps(input.list(|input| Ok(Gap { wish: input.u32()?, part: input.slab()? }))?)
            }
            kind::REFUSE => Said::Refuse(input.list(|input| Ok((input.u32()?, input.why()?)))?),
            kind::CLOSED => Said::Closed,
            kind::MAY_BEGIN => Said::MayBegin,
            kind::BEGIN => Said::Begin(input.cycle()?),
            kind::SAME_AS => Said::SameAs(input.role()?, input.cycle()?),
            kind::REPLAY => Said::Replay(input.role()?, input.flag()?),
            kind::DONE => Said::Done,
            other => {
                return Err(WireError::Value {
                    at: 3,
                    value: other.into(),
                    what: "kind of message",
                });
            }
        };
        input.end()?;
        Ok((Self { file, cycle, said }, rest))
    }
}

impl Recording {
    /// The recording as the content of a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame(&mut bytes, kind::RECORDING, |out| {
            out.u32(self.cycle.0);
            out.text(&self.file);
            out.list(&self.components, |out, name| out.text(name));
            out.list(&self.variables, |out, (name, type_)| {
                out.text(name);
                out.u8(*type_ as u8);
            });
            out.list(&self.flows, |out, flow| {
                out.place(flow.from);
                out.place(flow.to);
                out.u32(flow.variable.0);
                out.slab(&flow.part);
            });
        });
        bytes
    }

    /// The recording that `bytes` are.
    ///
    /// # Errors
    /// Bytes that are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let (kind, mut input, rest) = open(bytes)?;
        if kind != kind::RECORDING {
            return Err(WireError::Value { at: 3, value: kind.into(), what: "recording" });
        }
        let (cycle, file) = (Cycle(input.u32()?), input.text()?);
        let components = input.list(Input::text)?;
        let variables = input.list(|input| {
            let (name, at) = (input.text()?, input.at);
            let number = input.u8()?;
            let type_ = Type::from_number(number.into());
            let wrong = WireError::Value { at, value: number.into(), what: "type" };
            Ok((name, type_.ok_or(wrong)?))
        })?;
        let flows = input.list(|input| {
            let (from, to) = (input.place()?, input.place()?);
            Ok(Flow { from, to, variable: Variable(input.u32()?), part: input.slab()? })
        })?;
        input.end()?;
        match rest.len() {
            0 => Ok(Self { file, cycle, components, variables, flows }),
            bytes => Err(WireError::Trailing { bytes }),
        }
    }
}

fn frame(bytes: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Output<'_>)) {
    let begin = bytes.len();
    bytes.extend(MAGIC);
    bytes.extend([VERSION, kind, 0, 0, 0, 0]);
    body(&mut Output(bytes));
    // A message of 4 GiB would be 50 million requests of one rank.
    let length = u32::try_from(bytes.len() - begin - HEADER_BYTES).unwrap_or(u32::MAX);
    bytes[begin + 4..begin + 8].copy_from_slice(&length.to_le_bytes());
}

/// The kind of a frame, what is in it, and what follows it.
fn open(bytes: &[u8]) -> Result<(u8, Input<'_>, &[u8]), WireError> {
    let short = WireError::Short { bytes: bytes.len() };
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(short.clone())?;
    if header[..2] != MAGIC {
        return Err(WireError::Foreign);
    }
    if header[2] != VERSION {
        return Err(WireError::Version { version: header[2] });
    }
    let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    let (_, rest) = rest.split_at_checked(length).ok_or(short)?;
    let input = Input { bytes: &bytes[..HEADER_BYTES + length], at: HEADER_BYTES };
    Ok((header[3], input, rest))
}

struct Output<'a>(&'a mut Vec<u8>);

impl Output<'_> {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend(text.as_bytes());
    }

    fn list<T>(&mut self, list: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.u32(list.len() as u32);
        for one in list {
            put(self, one);
        }
    }

    fn place(&mut self, place: Place) {
        self.u16(place.component.0);
        self.u32(place.rank);
    }

    fn role(&mut self, role: Role) {
        self.u8(match role {
            Role::Writer => 0,
            Role::Reader => 1,
        });
    }

    fn cycle(&mut self, cycle: Option<Cycle>) {
        self.u8(u8::from(cycle.is_some()));
        if let Some(cycle) = cycle {
            self.u32(cycle.0);
        }
    }

    fn slab(&mut self, slab: &Slab) {
        self.u16(slab.rank() as u16);
        for steps in slab.dimensions() {
            self.u64(steps.start());
            self.u64(steps.count());
            self.u64(steps.step());
        }
    }

    fn why(&mut self, why: &Why) {
        match why {
            Why::Unwritten { part } => {
                self.u8(why::UNWRITTEN);
                self.slab(part);
            }
            Why::Records { records } => {
                self.u8(why::RECORDS);
                self.u64(*records);
            }
            Why::Definition { place } => {
                self.u8(why::DEFINITION);
                self.place(*place);
            }
            Why::Lost { place } => {
                self.u8(why::LOST);
                self.place(*place);
            }
        }
    }

    fn batch(&mut self, batch: &Batch) {
        self.u64(batch.definition);
        self.u64(batch.records);
        self.u8(u8::from(batch.written));
        self.u8(u8::from(batch.wished));
        self.list(&batch.announces, |out, one| {
            out.u32(one.variable.0);
            out.u32(one.request);
            out.u32(one.epoch);
            out.slab(&one.slab);
        });
        self.list(&batch.wishes, |out, one| {
            out.u32(one.variable.0);
            out.u32(one.wish);
            out.slab(&one.slab);
        });
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.first_chunk::<N>().copied();
        self.at += N;
        taken.ok_or(WireError::Short { bytes: self.bytes.len() })
    }

    fn u8(&mut self) -> Result<u8, WireError> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, WireError> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        self.take().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, WireError> {
        let at = self.at;
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(WireError::Value { at, value: value.into(), what: "yes or no" }),
        }
    }

    fn text(&mut self) -> Result<String, WireError> {
        let length = self.u32()? as usize;
        let at = self.at;
        let rest = self.bytes.get(at..).unwrap_or_default();
        let text = rest.get(..length).ok_or(WireError::Short { bytes: self.bytes.len() })?;
        self.at += length;
        String::from_utf8(text.to_vec()).map_err(|_| WireError::Name { at })
    }

    /// However long a list claims to be, only what is there takes memory.
    fn list<T>(
        &mut self,
        mut take: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        let length = self.u32()?;
        let mut list = Vec::new();
        for _ in 0..length {
            list.push(take(self)?);
        }
        Ok(list)
    }

    fn place(&mut self) -> Result<Place, WireError> {
        Ok(Place { component: Component(self.u16()?), rank: self.u32()? })
    }

    fn role(&mut self) -> Result<Role, WireError> {
        Ok(if self.flag()? { Role::Reader } else { Role::Writer })
    }

    fn cycle(&mut self) -> Result<Option<Cycle>, WireError> {
        Ok(if self.flag()? { Some(Cycle(self.u32()?)) } else { None })
    }

    fn slab(&mut self) -> Result<Slab, WireError> {
        let at = self.at;
        let rank = self.u16()?;
        let (mut start, mut count, mut step) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rank {
            start.push(self.u64()?);
            count.push(self.u64()?);
            step.push(self.u64()?);
        }
        Slab::strided(&start, &count, &step).map_err(|source| WireError::Slab { at, source })
    }

    fn why(&mut self) -> Result<Why, WireError> {
        let at = self.at;
        Ok(match self.u8()? {
            why::UNWRITTEN => Why::Unwritten { part: self.slab()? },
            why::RECORDS => Why::Records { records: self.u64()? },
            why::DEFINITION => Why::Definition { place: self.place()? },
            why::LOST => Why::Lost { place: self.place()? },
            value => return Err(WireError::Value { at, value: value.into(), what: "reason" }),
        })
    }

    fn batch(&mut self) -> Result<Batch, WireError> {
        let (definition, records) = (self.u64()?, self.u64()?);
        let (written, wished) = (self.flag()?, self.flag()?);
        let announces = self.list(|input| {
            let (variable, request) = (Variable(input.u32()?), input.u32()?);
            Ok(Announce { variable, request, epoch: input.u32()?, slab: input.slab()? })
        })?;
        let wishes = self.list(|input| {
            let (variable, wish) = (Variable(input.u32()?), input.u32()?);
            Ok(Wish { variable, wish, slab: input.slab()? })
        })?;
        Ok(Batch { definition, announces, wishes, written, wished, records })
    }

    fn end(&self) -> Result<(), WireError> {
        match self.bytes.len().saturating_sub(self.at) {
            0 => Ok(()),
            bytes => Err(WireError::Trailing { bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab() -> Slab {
        Slab::strided(&[0, 7], &[4, 3], &[1, 5]).unwrap()
    }

    fn place(rank: u32) -> Place {
        Place { component: Component(3), rank }
    }

    /// One of every kind.
    fn all() -> Vec<Message> {
        let announce = Announce { variable: Variable(1), request: 2, epoch: 3, slab: slab() };
        let wish = Wish { variable: Variable(4), wish: 5, slab: Slab::all(&[]) };
        let batch = Batch {
            definition: 77,
            announces: vec![announce],
            wishes: vec![wish],
            written: true,
            wished: false,
            records: 9,
        };
        let deliver = Deliver { request: 1, reader: place(2), wish: 3, part: slab() };
        let reasons = vec![
            (1, Why::Unwritten { part: slab() }),
            (2, Why::Records { records: 4 }),
            (3, Why::Definition { place: place(5) }),
            (4, Why::Lost { place: place(6) }),
        ];
        [
            Said::Batch(batch),
            Said::Deliver(vec![deliver]),
            Said::Gaps(vec![Gap { wish: 1, part: slab() }]),
            Said::Refuse(reasons),
            Said::Closed,
            Said::MayBegin,
            Said::Begin(None),
            Said::Begin(Some(Cycle(8))),
            Said::SameAs(Role::Writer, None),
            Said::SameAs(Role::Reader, Some(Cycle(8))),
            Said::Replay(Role::Reader, true),
            Said::Done,
        ]
        .into_iter()
        .map(|said| Message { file: File(1), cycle: Cycle(2), said })
        .collect()
    }

    #[test]
    fn messages_come_back_from_their_bytes() {
        let mut bytes = Vec::new();
        for message in all() {
            message.encode(&mut bytes);
        }
        let mut rest = &bytes[..];
        for message in all() {
            let (decoded, behind) = Message::decode(rest).unwrap();
            assert_eq!(decoded, message);
            rest = behind;
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed_or_harmless() {
        for message in all() {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            for end in 0..bytes.len() {
                assert!(Message::decode(&bytes[..end]).is_err(), "{end} bytes of {message:?}");
            }
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut changed = bytes.clone();
                    changed[at] ^= 1 << bit;
                    if let Ok((other, _)) = Message::decode(&changed) {
                        assert_ne!(other, message, "bit {bit} of byte {at} means nothing");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut bytes = Vec::new();
        all()[4].encode(&mut bytes);
        let told = |bytes: &[u8]| Message::decode(bytes).unwrap_err().to_string();
        assert!(told(b"GET / HTTP/1.1").contains("no message of Sluice"));
        let mut newer = bytes.clone();
        newer[2] = 2;
        assert!(told(&newer).contains("version 2"));
        let mut unknown = bytes.clone();
        unknown[3] = 99;
        assert!(told(&unknown).contains("99 is no kind"));
        let mut longer = bytes.clone();
        longer.push(0);
        longer[4] += 1;
        assert!(told(&longer).contains("1 bytes are left"));
    }

    #[test]
    fn recordings_come_back_from_their_bytes() {
        let flow = Flow { from: place(0), to: place(1), variable: Variable(0), part: slab() };
        let recording = Recording {
            file: "restart.nc".to_owned(),
            cycle: Cycle(3),
            components: vec!["model".to_owned(), "größe".to_owned()],
            variables: vec![("t".to_owned(), Type::Double)],
            flows: vec![flow],
        };
        let bytes = recording.to_bytes();
        assert_eq!(Recording::from_bytes(&bytes), Ok(recording));
        assert!(Recording::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }
}
