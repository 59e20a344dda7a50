//! Which records count: the rules of commits, as a state machine that is told records in their order.
//!
//! - **Plain data** of a file (data and changes outside of any group) counts when the first decision about
//!   that file which reaches it is a commit; if it is an abort, never.
//! - **Namespace records** count when any commit, of whatever file or group, stands behind them.
//! - **A group's data** counts when the first decision behind it that reaches its epoch is a commit; if
//!   it is an abort, never.
//! - **A restart** makes void what had not been committed, but for a group's data in an epoch that some
//!   rank had prepared: that is in doubt, and a later decision settles it.
//!
//! Time between two restarts is an *era*. Nothing here does I/O or knows where records lie.

use std::collections::{BTreeMap, HashMap};

use crate::format::{Header, Kind};
use crate::ids::{FileId, Group, Member, Sequence};

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It counts.
    Committed,
    /// It may count later.
    Pending,
    /// It never counts.
    Void,
}

/// An epoch of a group that ranks prepared and nobody has decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InDoubt {
    /// Which.
    pub member: Member,
    /// The file.
    pub file: FileId,
    /// How many ranks the group has, here and elsewhere.
    pub ranks: u32,
    /// Those that prepared in this log, in order.
    pub prepared: Vec<u32>,
    /// What the group is called, as its ranks said.
    pub name: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Prepared {
    sequence: Sequence,
    epoch: u32,
    rank: u32,
    ranks: u32,
    file: FileId,
    name: Vec<u8>,
}

/// What becomes of a file's plain data up to a sequence, as far as nothing before has decided on it.
#[derive(Debug, Clone)]
struct Reach {
    era: usize,
    upto: Sequence,
    committed: bool,
}

#[derive(Debug, Clone)]
struct Decision {
    sequence: Sequence,
    epoch: u32,
    committed: bool,
}

#[derive(Debug, Clone, Default)]
struct GroupState {
    prepared: Vec<Prepared>,
    /// In the order of the log.
    decisions: Vec<Decision>,
}

/// What is known from the records so far.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Where eras after the first began.
    restarts: Vec<Sequence>,
    /// For each era that has one, its last commit of anything.
    last_commits: BTreeMap<usize, Sequence>,
    /// For each file what was decided on its plain data, in the order of the log.
    files: HashMap<FileId, Vec<Reach>>,
    groups: BTreeMap<Group, GroupState>,
}

impl Rules {
    /// Nothing was told yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes notice of a record. Records are told in their order; those that decide nothing may be left
    /// out. `payload` is that of a prepare: what the group is called.
    pub fn apply(&mut self, header: &Header, payload: &[u8]) {
        match (header.kind, header.member) {
            (Kind::Restart, _) => self.restarts.push(header.sequence),
            (Kind::Commit, _) => {
                let era = self.era(header.sequence);
                self.last_commits.insert(era, header.sequence);
                self.decide(header, era, true);
            }
            (Kind::Abort, _) => self.decide(header, self.era(header.sequence), false),
            (Kind::CommitGroup | Kind::AbortGroup, Some(member)) => {
                let committed = header.kind == Kind::CommitGroup;
                if committed {
                    self.last_commits.insert(self.era(header.sequence), header.sequence);
                }
                let decision =
                    Decision { sequence: header.sequence, epoch: member.epoch, committed };
                self.groups.entry(member.group).or_default().decisions.push(decision);
            }
            (Kind::Prepare, Some(member)) => {
                self.groups.entry(member.group).or_default().prepared.push(Prepared {
                    sequence: header.sequence,
                    epoch: member.epoch,
                    rank: rank_of(header.value),
                    ranks: ranks_of(header.value),
                    file: header.file,
                    name: payload.to_vec(),
                });
            }
            (Kind::Data | Kind::Elsewhere | Kind::Operation | Kind::Drained, _)
            | (Kind::CommitGroup | Kind::AbortGroup | Kind::Prepare, None) => {}
        }
    }

    fn decide(&mut self, header: &Header, era: usize, committed: bool) {
        if header.file == FileId::NONE {
            return;
        }
        let upto = Sequence(header.value);
        let reached = self.files.entry(header.file).or_default();
        match reached.last_mut() {
            Some(last) if last.era == era && last.committed == committed => {
                last.upto = upto.max(last.upto);
            }
            _ => reached.push(Reach { era, upto, committed }),
        }
    }

    fn era(&self, sequence: Sequence) -> usize {
        self.restarts.partition_point(|restart| *restart <= sequence)
    }

    /// What becomes of a record, as far as is known: one of data or of an operation.
    #[must_use]
    pub fn fate(&self, header: &Header) -> Fate {
        let (sequence, era) = (header.sequence, self.era(header.sequence));
        let undecided = if era == self.restarts.len() { Fate::Pending } else { Fate::Void };
        let behind_a_commit = self.last_commits.get(&era).is_some_and(|last| *last > sequence);
        if header.namespace && behind_a_commit {
            return Fate::Committed;
        }
        let Some(member) = header.member else {
            let mut reached = self.files.get(&header.file).into_iter().flatten();
            return match reached.find(|reach| reach.era == era && reach.upto >= sequence) {
                Some(reach) if reach.committed => Fate::Committed,
                Some(_) => Fate::Void,
                None => undecided,
            };
        };
        let Some(group) = self.groups.get(&member.group) else {
            return undecided;
        };
        let reaches = |at: Sequence, epoch: u32| at > sequence && epoch >= member.epoch;
        let decision = group.decisions.iter().find(|other| reaches(other.sequence, other.epoch));
        // What a crash found unprepared no rank elsewhere can rely on.
        let prepared = |other: &Prepared| {
            reaches(other.sequence, other.epoch) && self.era(other.sequence) == era
        };
        match decision {
            Some(decision) if !decision.committed => Fate::Void,
            Some(decision) if self.era(decision.sequence) == era => Fate::Committed,
            _ if undecided == Fate::Pending => Fate::Pending,
            _ if !group.prepared.iter().any(prepared) => Fate::Void,
            Some(_) => Fate::Committed,
            None => Fate::Pending,
        }
    }

    /// The epochs that ranks prepared and nobody has decided on, in order.
    #[must_use]
    pub fn in_doubt(&self) -> Vec<InDoubt> {
        let mut found: BTreeMap<(Group, u32), InDoubt> = BTreeMap::new();
        for (group, state) in &self.groups {
            for prepared in &state.prepared {
                let decided = state.decisions.iter().any(|decision| {
                    decision.sequence > prepared.sequence && decision.epoch >= prepared.epoch
                });
                if decided {
                    continue;
                }
                let member = Member { group: *group, epoch: prepared.epoch };
                let entry = found.entry((*group, prepared.epoch)).or_insert_with(|| InDoubt {
                    member,
                    file: prepared.file,
                    ranks: prepared.ranks,
                    prepared: Vec::new(),
                    name: prepared.name.clone(),
                });
                entry.prepared.push(prepared.rank);
            }
        }
        for entry in found.values_mut() {
            entry.prepared.sort_unstable();
            entry.prepared.dedup();
        }
        found.into_values().collect()
    }

    /// The highest number of a group that was told.
    #[must_use]
    pub fn last_group(&self) -> Option<Group> {
        self.groups.keys().next_back().copied()
    }

    /// Lets go of what only records up to `through` need. Nobody may ask about those any more.
    pub fn forget(&mut self, through: Sequence) {
        self.files.retain(|_, reached| reached.iter().any(|reach| reach.upto > through));
        self.groups.retain(|_, state| {
            state.prepared.retain(|prepared| prepared.sequence > through);
            state.decisions.retain(|decision| decision.sequence > through);
            !state.prepared.is_empty() || !state.decisions.is_empty()
        });
    }
}

/// Rank and number of ranks in the value of a prepare.
#[must_use]
pub fn ranks_value(rank: u32, ranks: u32) -> u64 {
    u64::from(ranks) << 32 | u64::from(rank)
}

fn rank_of(value: u64) -> u32 {
    (value & u64::from(u32::MAX)) as u32
}

fn ranks_of(value: u64) -> u32 {
    (value >> 32) as u32
}
