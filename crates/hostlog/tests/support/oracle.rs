//! What a log should say: every record with a mark, set when a commit is made, not worked out afterwards.

use hostlog::{FileId, Member};

/// What has become of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing yet.
    Pending,
    /// It counts.
    Committed,
    /// It never counts.
    Void,
}

/// A record of data or an operation.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Which of all.
    pub(crate) id: u64,
    pub(crate) sequence: u64,
    pub(crate) file: FileId,
    pub(crate) member: Option<Member>,
    pub(crate) namespace: bool,
    pub(crate) mark: Mark,
    era: u64,
    /// Whether some rank has prepared its epoch, in its era.
    prepared: bool,
}

/// All records so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Oracle {
    pub(crate) entries: Vec<Entry>,
    era: u64,
}

impl Oracle {
    pub(crate) fn append(
        &mut self,
        id: u64,
        sequence: u64,
        file: FileId,
        member: Option<Member>,
        namespace: bool,
    ) {
        let (mark, era) = (Mark::Pending, self.era);
        let prepared = false;
        self.entries.push(Entry { id, sequence, file, member, namespace, mark, era, prepared });
    }

    fn mark(&mut self, mark: Mark, whom: impl Fn(&Entry) -> bool) {
        for entry in &mut self.entries {
            if entry.mark == Mark::Pending && whom(entry) {
                entry.mark = mark;
            }
        }
    }

    pub(crate) fn commit(&mut self, file: FileId) {
        self.mark(Mark::Committed, |entry| {
            entry.namespace || (entry.member.is_none() && entry.file == file)
        });
    }

    pub(crate) fn abort(&mut self, file: FileId) {
        self.mark(Mark::Void, |entry| {
            !entry.namespace && entry.member.is_none() && entry.file == file
        });
    }

    pub(crate) fn prepare(&mut self, member: Member) {
        for entry in &mut self.entries {
            if entry.era == self.era && reached(entry, member) {
                entry.prepared = true;
            }
        }
    }

    pub(crate) fn decide(&mut self, member: Member, committed: bool) {
        if committed {
            self.mark(Mark::Committed, |entry| entry.namespace || reached(entry, member));
        } else {
            self.mark(Mark::Void, |entry| !entry.namespace && reached(entry, member));
        }
    }

    /// The log was opened again.
    pub(crate) fn restart(&mut self) {
        self.era += 1;
        self.mark(Mark::Void, |entry| entry.member.is_none() || !entry.prepared);
    }

    /// What counts and is not drained.
    pub(crate) fn counts(&self, drained: u64) -> Vec<u64> {
        let counts = |entry: &&Entry| entry.mark == Mark::Committed && entry.sequence > drained;
        self.entries.iter().filter(counts).map(|entry| entry.id).collect()
    }

    /// Up to where everything is decided.
    pub(crate) fn decided(&self) -> u64 {
        let pending = self.entries.iter().find(|entry| entry.mark == Mark::Pending);
        pending.map_or(u64::MAX, |entry| entry.sequence - 1)
    }
}

fn reached(entry: &Entry, member: Member) -> bool {
    entry.member.is_some_and(|of| of.group == member.group && of.epoch <= member.epoch)
}
