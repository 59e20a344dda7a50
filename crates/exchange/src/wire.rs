//! What processes tell each other beside the messages of nodes, and what they leave in the directory, as bytes.
//!
//! A frame is its length in four bytes and its kind in one. All numbers are little-endian; lists begin with their length.

use hyperslab::{Slab, Steps};
use matching::{Component, Cycle, Length, Message, Place, VariableSpec};
use nctypes::{Format, Type};

/// Processes of other versions are not understood.
const VERSION: u16 = 1;

/// The readers of one component and the writers of one opening of a file: they have a node on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LaneKey {
    /// The file and who writes it.
    pub(crate) stream: u64,
    /// The component that reads.
    pub(crate) reader: u16,
    /// The how-manieth opening for it.
    pub(crate) opening: u32,
}

/// A process, wherever it runs.
pub(crate) type ProcessId = [u8; 16];

/// How a rank is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contact {
    pub(crate) process: ProcessId,
    /// Which machine.
    pub(crate) node: String,
    pub(crate) socket: String,
}

/// What a reader needs to know of a cycle before it can ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Post {
    /// The file, as the writers call it.
    pub(crate) name: String,
    pub(crate) header: Vec<u8>,
    pub(crate) format: Format,
    pub(crate) variables: Vec<VariableSpec>,
    pub(crate) records: u64,
}

/// Who a process is, and where the others can try whether they can read its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) process: ProcessId,
    pub(crate) pid: u32,
    pub(crate) probe_at: u64,
    pub(crate) probe: [u8; 16],
}

/// Values that belong to a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) lane: LaneKey,
    pub(crate) cycle: Cycle,
    pub(crate) wish: u32,
    pub(crate) part: Slab,
    /// Bytes of a value.
    pub(crate) size: u8,
}

/// Where values lie in a process's memory: a run, and loops around it, outermost first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) address: u64,
    /// Elements of a run.
    pub(crate) run: u64,
    /// Turns, and elements from one to the next.
    pub(crate) loops: Vec<(u64, i64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Hello(Hello),
    /// From one node to another.
    Note(LaneKey, Place, Message),
    /// Fetch this, and say so by its number.
    Offer(u64, Parcel, Source),
    /// So many bytes follow.
    Values(Parcel, u64),
    /// These were fetched.
    Pulled(Vec<u64>),
    /// This cannot be fetched.
    Deny(u64),
    /// A writer has finished a cycle.
    Finished(LaneKey, Place, Cycle, u64),
    /// The ranks of a component.
    Roster(LaneKey, u16, Vec<Contact>),
    /// A writer is gone.
    Gone(LaneKey, Place),
    /// A reader has closed the file.
    Left(LaneKey, Place),
    /// The process ends, and nobody needs it any more.
    Bye,
}

/// Bytes that mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Garbled;

#[derive(Default)]
pub(crate) struct Put(pub(crate) Vec<u8>);

impl Put {
    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }
    fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
    fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
    fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }
    fn list(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(bytes.len() as u32).bytes(bytes)
    }
    fn lane(&mut self, lane: LaneKey) -> &mut Self {
        self.u64(lane.stream).u16(lane.reader).u32(lane.opening)
    }
    fn place(&mut self, place: Place) -> &mut Self {
        self.u16(place.component.0).u32(place.rank)
    }
    fn slab(&mut self, slab: &Slab) -> &mut Self {
        self.u16(slab.rank() as u16);
        for steps in slab.dimensions() {
            self.u64(steps.start()).u64(steps.step()).u64(steps.count());
        }
        self
    }
    fn parcel(&mut self, parcel: &Parcel) -> &mut Self {
        self.lane(parcel.lane).u32(parcel.cycle.0).u32(parcel.wish).slab(&parcel.part);
        self.u8(parcel.size)
    }
    fn contacts(&mut self, contacts: &[Contact]) -> &mut Self {
        self.u32(contacts.len() as u32);
        for one in contacts {
            self.contact(one);
        }
        self
    }
    fn contact(&mut self, one: &Contact) -> &mut Self {
        self.bytes(&one.process).list(one.node.as_bytes()).list(one.socket.as_bytes())
    }
}

pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl<'a> Take<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Garbled> {
        let (first, rest) = self.0.split_at_checked(length).ok_or(Garbled)?;
        self.0 = rest;
        Ok(first)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Garbled> {
        self.bytes(N)?.try_into().map_err(|_| Garbled)
    }
    fn u8(&mut self) -> Result<u8, Garbled> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    fn u16(&mut self) -> Result<u16, Garbled> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    fn u32(&mut self) -> Result<u32, Garbled> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    fn u64(&mut self) -> Result<u64, Garbled> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    fn list(&mut self) -> Result<&'a [u8], Garbled> {
        let length = self.u32()?;
        self.bytes(length as usize)
    }
    fn text(&mut self) -> Result<String, Garbled> {
        String::from_utf8(self.list()?.to_vec()).map_err(|_| Garbled)
    }
    /// The length of a list of which each element has at least `least` bytes.
    fn count(&mut self, least: usize) -> Result<usize, Garbled> {
        let count = self.u32()? as usize;
        if count.saturating_mul(least) > self.0.len() { Err(Garbled) } else { Ok(count) }
    }
    fn lane(&mut self) -> Result<LaneKey, Garbled> {
        Ok(LaneKey { stream: self.u64()?, reader: self.u16()?, opening: self.u32()? })
    }
    fn place(&mut self) -> Result<Place, Garbled> {
        Ok(Place { component: Component(self.u16()?), rank: self.u32()? })
    }
    fn slab(&mut self) -> Result<Slab, Garbled> {
        let rank = self.u16()?;
        let steps = (0..rank).map(|dimension| {
            let (start, step, count) = (self.u64()?, self.u64()?, self.u64()?);
            Steps::new(usize::from(dimension), start, count, step).map_err(|_| Garbled)
        });
        Ok(Slab::from_steps(steps.collect::<Result<Vec<_>, _>>()?))
    }
    fn parcel(&mut self) -> Result<Parcel, Garbled> {
        Ok(Parcel {
            lane: self.lane()?,
            cycle: Cycle(self.u32()?),
            wish: self.u32()?,
            part: self.slab()?,
            size: self.u8()?,
        })
    }
    fn contacts(&mut self) -> Result<Vec<Contact>, Garbled> {
        (0..self.count(24)?).map(|_| self.contact()).collect()
    }
    fn contact(&mut self) -> Result<Contact, Garbled> {
        Ok(Contact { process: self.array()?, node: self.text()?, socket: self.text()? })
    }
    fn end(&self) -> Result<(), Garbled> {
        if self.0.is_empty() { Ok(()) } else { Err(Garbled) }
    }
}

impl Frame {
    /// Appends it.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        let mut put = Put(std::mem::take(bytes));
        put.u32(0);
        match self {
            Self::Hello(hello) => {
                put.u8(0).u16(VERSION).bytes(&hello.process).u32(hello.pid);
                put.u64(hello.probe_at).bytes(&hello.probe);
            }
            Self::Note(lane, from, message) => {
                put.u8(1).lane(*lane).place(*from);
                message.encode(&mut put.0);
            }
            Self::Offer(number, parcel, source) => {
                put.u8(2).u64(*number).parcel(parcel).u64(source.address).u64(source.run);
                put.u32(source.loops.len() as u32);
                for (count, step) in &source.loops {
                    put.u64(*count).bytes(&step.to_le_bytes());
                }
            }
            Self::Values(parcel, bytes) => {
                put.u8(3).parcel(parcel).u64(*bytes);
            }
            Self::Pulled(numbers) => {
                put.u8(4).u32(numbers.len() as u32);
                for number in numbers {
                    put.u64(*number);
                }
            }
            Self::Deny(number) => {
                put.u8(5).u64(*number);
            }
            Self::Finished(lane, from, cycle, records) => {
                put.u8(6).lane(*lane).place(*from).u32(cycle.0).u64(*records);
            }
            Self::Roster(lane, component, contacts) => {
                put.u8(7).lane(*lane).u16(*component).contacts(contacts);
            }
            Self::Gone(lane, place) => {
                put.u8(8).lane(*lane).place(*place);
            }
            Self::Left(lane, place) => {
                put.u8(9).lane(*lane).place(*place);
            }
            Self::Bye => {
                put.u8(10);
            }
        }
        *bytes = put.0;
        let length = (bytes.len() - begin - 4) as u32;
        bytes[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// The first frame and its length, if all of it is there.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Garbled> {
        let Some(length) = bytes.first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        let Some(body) = bytes.get(4..4 + length) else { return Ok(None) };
        let mut take = Take(body);
        let frame = match take.u8()? {
            0 => {
                if take.u16()? != VERSION {
                    return Err(Garbled);
                }
                let (process, pid) = (take.array()?, take.u32()?);
                Self::Hello(Hello { process, pid, probe_at: take.u64()?, probe: take.array()? })
            }
            1 => {
                let (lane, from) = (take.lane()?, take.place()?);
                let (message, rest) = Message::decode(take.0).map_err(|_| Garbled)?;
                take.0 = rest;
                Self::Note(lane, from, message)
            }
            2 => {
                let (number, parcel) = (take.u64()?, take.parcel()?);
                let (address, run) = (take.u64()?, take.u64()?);
                let loops = (0..take.count(16)?)
                    .map(|_| Ok((take.u64()?, i64::from_le_bytes(take.array()?))))
                    .collect::<Result<_, _>>()?;
                Self::Offer(number, parcel, Source { address, run, loops })
            }
            3 => Self::Values(take.parcel()?, take.u64()?),
            4 => Self::Pulled((0..take.count(8)?).map(|_| take.u64()).collect::<Result<_, _>>()?),
            5 => Self::Deny(take.u64()?),
            6 => Self::Finished(take.lane()?, take.place()?, Cycle(take.u32()?), take.u64()?),
            7 => Self::Roster(take.lane()?, take.u16()?, take.contacts()?),
            8 => Self::Gone(take.lane()?, take.place()?),
            9 => Self::Left(take.lane()?, take.place()?),
            10 => Self::Bye,
            _ => return Err(Garbled),
        };
        take.end()?;
        Ok(Some((frame, 4 + length)))
    }
}

impl Contact {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.process == other.process
    }

    pub(crate) fn encode_all(contacts: &[Self]) -> Vec<u8> {
        let mut put = Put::default();
        put.u16(VERSION).contacts(contacts);
        put.0
    }

    pub(crate) fn decode_all(bytes: &[u8]) -> Result<Vec<Self>, Garbled> {
        let mut take = Take(bytes);
        if take.u16()? != VERSION {
            return Err(Garbled);
        }
        let contacts = take.contacts()?;
        take.end()?;
        Ok(contacts)
    }
}

impl Post {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut put = Put::default();
        put.u16(VERSION)
            .list(self.name.as_bytes())
            .list(&self.header)
            .u8(u8::from(self.format == Format::Data64));
        put.u64(self.records).u32(self.variables.len() as u32);
        for variable in &self.variables {
            put.list(variable.name.as_bytes()).u8(variable.type_.number() as u8);
            put.u8(u8::from(variable.fill.is_some())).bytes(&variable.fill.unwrap_or_default());
            put.u32(variable.shape.len() as u32);
            for length in &variable.shape {
                match length {
                    Length::Fixed(length) => put.u8(0).u64(*length),
                    Length::Records => put.u8(1).u64(0),
                };
            }
        }
        put.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let mut take = Take(bytes);
        if take.u16()? != VERSION {
            return Err(Garbled);
        }
        let (name, header) = (take.text()?, take.list()?.to_vec());
        let format = if take.u8()? == 0 { Format::Classic } else { Format::Data64 };
        let records = take.u64()?;
        let mut variables = Vec::new();
        for _ in 0..take.count(18)? {
            let name = take.text()?;
            let type_ = Type::from_number(i32::from(take.u8()?)).ok_or(Garbled)?;
            let (filled, value) = (take.u8()? != 0, take.array()?);
            let shape = (0..take.count(9)?).map(|_| {
                let (records, length) = (take.u8()? != 0, take.u64()?);
                Ok(if records { Length::Records } else { Length::Fixed(length) })
            });
            let shape = shape.collect::<Result<_, Garbled>>()?;
            variables.push(VariableSpec { name, type_, shape, fill: filled.then_some(value) });
        }
        take.end()?;
        Ok(Self { name, header, format, variables, records })
    }
}

/// What each rank tells the others of its group when they open a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) contact: Contact,
    /// For each reading component; the first rank's count.
    pub(crate) openings: Vec<u32>,
    /// For each reading component: 1 if it is too far behind.
    pub(crate) full: Vec<u8>,
}

impl Opened {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut put = Put::default();
        put.u16(VERSION).contact(&self.contact).u32(self.openings.len() as u32);
        for opening in &self.openings {
            put.u32(*opening);
        }
        put.list(&self.full);
        put.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let mut take = Take(bytes);
        if take.u16()? != VERSION {
            return Err(Garbled);
        }
        let contact = take.contact()?;
        let openings = (0..take.count(4)?).map(|_| take.u32()).collect::<Result<_, _>>()?;
        let full = take.list()?.to_vec();
        take.end()?;
        Ok(Self { contact, openings, full })
    }
}

/// Ranks of components.
pub(crate) type Rosters = Vec<(u16, Vec<Contact>)>;

/// What the first rank of readers has found out.
pub(crate) fn encode_opening(post: Option<&Post>, rosters: &[(u16, Vec<Contact>)]) -> Vec<u8> {
    let empty = Post {
        name: String::new(),
        header: Vec::new(),
        format: Format::Data64,
        variables: Vec::new(),
        records: 0,
    };
    let mut put = Put::default();
    put.list(&post.unwrap_or(&empty).encode()).u32(rosters.len() as u32);
    for (component, contacts) in rosters {
        put.u16(*component).contacts(contacts);
    }
    put.0
}

pub(crate) fn decode_opening(bytes: &[u8]) -> Result<(Post, Rosters), Garbled> {
    let mut take = Take(bytes);
    let post = Post::decode(take.list()?)?;
    let rosters = (0..take.count(6)?).map(|_| Ok((take.u16()?, take.contacts()?)));
    let rosters = rosters.collect::<Result<_, Garbled>>()?;
    take.end()?;
    Ok((post, rosters))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: LaneKey = LaneKey { stream: 77, reader: 1, opening: 3 };

    fn frames() -> Vec<Frame> {
        let place = Place { component: Component(2), rank: 5 };
        let part = Slab::strided(&[1, 2], &[3, 4], &[5, 6]).unwrap();
        let parcel = Parcel { lane: LANE, cycle: Cycle(9), wish: 4, part, size: 8 };
        let source = Source { address: 4096, run: 7, loops: vec![(3, -8), (2, 100)] };
        let contact =
            Contact { process: [7; 16], node: "node".to_owned(), socket: "/a/b".to_owned() };
        let hello = Hello { process: [1; 16], pid: 12, probe_at: 99, probe: [4; 16] };
        let message =
            Message { file: matching::File(0), cycle: Cycle(1), said: matching::Said::Done };
        vec![
            Frame::Hello(hello),
            Frame::Note(LANE, place, message),
            Frame::Offer(6, parcel.clone(), source),
            Frame::Values(parcel, 800),
            Frame::Pulled(vec![1, 2, 3]),
            Frame::Deny(4),
            Frame::Finished(LANE, place, Cycle(2), 11),
            Frame::Roster(LANE, 1, vec![contact]),
            Frame::Gone(LANE, place),
            Frame::Left(LANE, place),
            Frame::Bye,
        ]
    }

    #[test]
    fn frames_come_back_one_by_one() {
        let mut bytes = Vec::new();
        for frame in frames() {
            frame.encode(&mut bytes);
        }
        let mut rest = bytes.as_slice();
        for frame in frames() {
            let (found, length) = Frame::decode(rest).unwrap().unwrap();
            assert_eq!(found, frame);
            rest = &rest[length..];
        }
        assert_eq!(Frame::decode(rest), Ok(None));
    }

    #[test]
    fn what_is_cut_or_changed_is_never_more_than_garbled() {
        for frame in frames() {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            for length in 0..bytes.len() {
                assert_eq!(Frame::decode(&bytes[..length]), Ok(None));
            }
            for at in 4..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 0xff;
                // Whatever it is taken for, nothing is read beyond its end.
                let _ = Frame::decode(&changed);
            }
        }
    }

    #[test]
    fn posts_come_back() {
        let variables = vec![VariableSpec {
            name: "t".to_owned(),
            type_: Type::Float,
            shape: vec![Length::Records, Length::Fixed(4)],
            fill: Some([1; 8]),
        }];
        let name = "a.nc".to_owned();
        let post =
            Post { name, header: vec![1, 2], format: Format::Classic, variables, records: 3 };
        let bytes = post.encode();
        assert_eq!(Post::decode(&bytes), Ok(post));
        assert_eq!(Post::decode(&bytes[..bytes.len() - 1]), Err(Garbled));
    }
}
