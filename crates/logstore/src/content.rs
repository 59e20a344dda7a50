//! Where the bytes of a file are while some of them are in the log only.

use std::collections::BTreeMap;

use extent::{ByteRange, Cut, ExtentMap};
use hostlog::{Member, Position, Sequence};

/// A record's bytes in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) at: Position,
    pub(crate) sequence: Sequence,
}

impl Cut for Spot {
    fn cut(self, by: u64) -> Self {
        Self { at: self.at.advanced(by), ..self }
    }

    fn continued_by(&self, len: u64, next: &Self) -> bool {
        self.sequence == next.sequence && self.at.continued_by(len, &next.at)
    }
}

/// What a record does to a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    Data { offset: u64, len: u64, at: Position },
    Size(u64),
}

impl Edit {
    fn bytes(&self) -> u64 {
        match self {
            Edit::Data { len, .. } => *len,
            Edit::Size(_) => 0,
        }
    }
}

/// An edit that does not count yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    member: Option<Member>,
    edit: Edit,
}

/// A file's bytes: the newest of the log over those of its base in the target.
#[derive(Debug, Default)]
pub(crate) struct Content {
    size: u64,
    map: ExtentMap<Spot>,
    /// Sizes that were set and that the target may not have seen.
    truncations: Vec<(Sequence, u64)>,
    pending: BTreeMap<Sequence, Pending>,
}

/// Where a piece of a read comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Log(Position),
    /// The base, as far as it reaches, and zeros behind that.
    Base,
    Zeros,
}

impl Content {
    /// That of a file which the target has with so many bytes.
    pub(crate) fn of_size(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that are read from the log.
    pub(crate) fn logged_bytes(&self) -> u64 {
        self.map.bytes()
    }

    /// Does what a record says. Records come in their order.
    pub(crate) fn apply(&mut self, sequence: Sequence, edit: Edit) {
        match edit {
            Edit::Data { offset, len, at } => {
                let range = ByteRange::at(offset, len);
                self.map.insert(range, Spot { at, sequence }, |_, _| {});
                self.size = self.size.max(range.end());
            }
            Edit::Size(size) => {
                self.map.truncate(size, |_, _| {});
                self.truncations.push((sequence, size));
                self.size = size;
            }
        }
    }

    /// The same, and remembers that it does not count yet.
    pub(crate) fn apply_pending(&mut self, sequence: Sequence, member: Option<Member>, edit: Edit) {
        self.apply(sequence, edit);
        self.pending.insert(sequence, Pending { member, edit });
    }

    /// From where bytes come, in order and without gaps, up to the end of the file.
    pub(crate) fn sources(&self, offset: u64, len: u64) -> Vec<(ByteRange, Source)> {
        let range = ByteRange::at(offset, len.min(self.size.saturating_sub(offset)));
        // What was cut off once does not come back from the base.
        let limit = self.truncations.iter().map(|(_, size)| *size).min().unwrap_or(u64::MAX);
        let mut sources = Vec::new();
        for piece in self.map.overlay(range) {
            match piece.value {
                Some(spot) => sources.push((piece.range, Source::Log(spot.at))),
                None => {
                    let (below, above) = piece.range.split_at(limit);
                    let both = [(below, Source::Base), (above, Source::Zeros)];
                    sources.extend(both.into_iter().filter(|(range, _)| !range.is_empty()));
                }
            }
        }
        sources
    }

    /// Lets go of what the target has by now: all up to `through`.
    pub(crate) fn forget(&mut self, through: Sequence) {
        let drained = self.map.iter().filter(|(_, spot)| spot.sequence <= through);
        let drained: Vec<ByteRange> = drained.map(|(range, _)| range).collect();
        for range in drained {
            self.map.clear(range, |_, _| {});
        }
        self.truncations.retain(|(sequence, _)| *sequence > through);
        self.pending = self.pending.split_off(&Sequence(through.0 + 1));
    }

    /// Takes notice that plain edits up to `through` count.
    pub(crate) fn settle_plain(&mut self, through: Sequence) {
        self.pending.retain(|sequence, other| other.member.is_some() || *sequence > through);
    }

    /// Takes notice that a group's edits up to an epoch, and before `through`, count.
    pub(crate) fn settle_group(&mut self, member: Member, through: Sequence) {
        self.pending.retain(|sequence, other| {
            *sequence > through
                || other.member.is_none_or(|of| of.group != member.group || of.epoch > member.epoch)
        });
    }

    /// Starts again from `size` bytes of the base: what counts is told by `records`, what may still
    /// count is kept, but for the edits that are void: they never will.
    pub(crate) fn restart_without(
        &mut self,
        is_void: impl Fn(Option<Member>) -> bool,
        size: u64,
        records: Vec<(Sequence, Edit)>,
    ) {
        self.pending.retain(|_, other| !is_void(other.member));
        let mut all: BTreeMap<Sequence, Edit> = records.into_iter().collect();
        all.extend(self.pending.iter().map(|(sequence, other)| (*sequence, other.edit)));
        let pending = std::mem::take(&mut self.pending);
        *self = Self { pending, ..Self::of_size(size) };
        for (sequence, edit) in all {
            self.apply(sequence, edit);
        }
    }

    pub(crate) fn has_plain_pending(&self) -> bool {
        self.oldest_plain_pending().is_some()
    }

    /// The oldest edit without a group that does not count yet.
    pub(crate) fn oldest_plain_pending(&self) -> Option<Sequence> {
        let plain = self.pending.iter().find(|(_, pending)| pending.member.is_none());
        plain.map(|(sequence, _)| *sequence)
    }

    /// The bytes of those.
    pub(crate) fn plain_pending_bytes(&self) -> u64 {
        let plain = self.pending.values().filter(|pending| pending.member.is_none());
        plain.map(|pending| pending.edit.bytes()).sum()
    }

    /// How many edits do not count yet, and their bytes.
    pub(crate) fn pending(&self) -> (u64, u64) {
        let bytes = self.pending.values().map(|pending| pending.edit.bytes()).sum();
        (self.pending.len() as u64, bytes)
    }

    /// The oldest edit that does not count yet.
    pub(crate) fn oldest_pending(&self) -> Option<Sequence> {
        self.pending.keys().next().copied()
    }

    /// The oldest record that bytes are read from.
    pub(crate) fn oldest_spot(&self) -> Option<Sequence> {
        self.map.iter().map(|(_, spot)| spot.sequence).min()
    }

    /// Whether the log has nothing of the file.
    pub(crate) fn is_drained(&self) -> bool {
        self.map.is_empty() && self.truncations.is_empty() && self.pending.is_empty()
    }
}
