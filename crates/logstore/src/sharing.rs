//! Who has a file open to write, and for which group.

use std::collections::HashMap;

use hostlog::{Group, Member};

/// A stream that writes for a rank.
#[derive(Debug, Clone, Copy)]
struct Writer {
    stream: u32,
    member: Member,
    rank: u32,
}

/// The writers of one file.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// The newest last: a stream that joined twice writes for the group that it joined last.
    members: Vec<Writer>,
    /// How many groups have the file open.
    groups: usize,
    /// Openings for writing, by stream.
    openings: HashMap<u32, Openings>,
}

/// Those of a stream.
#[derive(Debug, Default)]
struct Openings {
    count: usize,
    /// Whether the stream has written to the file while it had it open.
    has_written: bool,
}

impl Sharing {
    /// Whether consistency points are epochs, and no closes and syncs.
    pub(crate) fn is_by_groups(&self) -> bool {
        self.groups > 0
    }

    pub(crate) fn begin_group(&mut self) {
        self.groups += 1;
    }

    /// Says whether it was the last.
    pub(crate) fn end_group(&mut self, group: Group) -> bool {
        self.members.retain(|writer| writer.member.group != group);
        self.groups = self.groups.saturating_sub(1);
        self.groups == 0
    }

    /// What a stream writes now belongs to that epoch.
    pub(crate) fn set_epoch(&mut self, stream: u32, rank: u32, member: Member) {
        let is_same = |writer: &&mut Writer| {
            writer.stream == stream && writer.rank == rank && writer.member.group == member.group
        };
        match self.members.iter_mut().find(is_same) {
            Some(writer) => writer.member = member,
            None => self.members.push(Writer { stream, member, rank }),
        }
    }

    pub(crate) fn leave(&mut self, stream: u32, rank: u32, group: Group) {
        self.members.retain(|writer| {
            (writer.stream, writer.rank, writer.member.group) != (stream, rank, group)
        });
    }

    /// Takes notice that a stream writes, and says to which epoch that belongs.
    pub(crate) fn write(&mut self, stream: u32) -> Option<Member> {
        if let Some(openings) = self.openings.get_mut(&stream) {
            openings.has_written = true;
        }
        let mut own = self.members.iter().rev().filter(|writer| writer.stream == stream);
        own.next().map(|writer| writer.member)
    }

    pub(crate) fn begin_writing(&mut self, stream: u32) {
        self.openings.entry(stream).or_default().count += 1;
    }

    /// Says whether a close is a consistency point: the stream's last opening has ended, and it has written to the
    /// file, or nobody else has it open to write. A program that is in the middle of writing does not want to
    /// have half of it counted because somebody else who inherited or opened the file lets go of it.
    pub(crate) fn end_writing(&mut self, stream: u32) -> bool {
        let Some(openings) = self.openings.get_mut(&stream) else { return false };
        openings.count -= 1;
        if openings.count > 0 {
            return false;
        }
        let has_written = openings.has_written;
        self.openings.remove(&stream);
        has_written || self.openings.is_empty()
    }

    pub(crate) fn is_being_written(&self) -> bool {
        !self.openings.is_empty()
    }
}
