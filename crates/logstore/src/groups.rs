//! Ranks that have a file open together: their consistency points are epochs, not closes and syncs.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use epochs::Notice;
use hostlog::{FileId, Member, Prepare};
use p9::Errno;

use crate::content::Content;
use crate::error::{Tried, logged, refuse};
use crate::inode::{Body, Inode};
use crate::stream::Stream;
use crate::tree::{Tree, guard, reading, writing};

/// One group.
pub(crate) struct Group {
    name: epochs::Group,
    /// Its number in the log.
    local: hostlog::Group,
    pub(crate) inode: Arc<Inode>,
    pub(crate) ranks: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    members: BTreeMap<u32, Rank>,
    committed: u32,
    is_over: bool,
}

struct Rank {
    stream: u32,
    /// The last epoch that it has prepared.
    prepared: u32,
    has_left: bool,
    is_alive: bool,
}

/// What is told of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its name.
    pub group: epochs::Group,
    /// The file, if it has a name.
    pub path: Option<Vec<u8>>,
    /// How many ranks it has.
    pub ranks: u32,
    /// The last epoch that counts.
    pub committed: u32,
    /// Ranks that have not come to the next one, while others have.
    pub waiting_for: Vec<u32>,
}

impl State {
    /// What all ranks have prepared; when all have left, everything.
    fn reached(&self, ranks: u32) -> u32 {
        let prepared = || self.members.values().map(|rank| rank.prepared);
        match () {
            () if self.members.len() < ranks as usize => 0,
            () if self.has_ended(ranks) => prepared().max().unwrap_or(0),
            () => prepared().min().unwrap_or(0),
        }
    }

    fn has_ended(&self, ranks: u32) -> bool {
        self.members.len() == ranks as usize && self.members.values().all(|rank| rank.has_left)
    }

    /// Whether there is nobody left who could come to an epoch.
    fn has_died(&self) -> bool {
        self.members.values().all(|rank| !rank.is_alive)
    }
}

impl Group {
    pub(crate) fn status(&self, tree: &Tree) -> GroupStatus {
        let state = guard(&self.state);
        let ahead = state.members.values().any(|rank| rank.prepared > state.committed);
        let is_behind = |rank: &u32| {
            state.members.get(rank).is_none_or(|member| member.prepared <= state.committed)
        };
        GroupStatus {
            group: self.name,
            path: tree.path_of_inode(&self.inode),
            ranks: self.ranks,
            committed: state.committed,
            waiting_for: if ahead {
                (0..self.ranks).filter(is_behind).collect()
            } else {
                Vec::new()
            },
        }
    }
}

impl Tree {
    /// Does what a rank tells of a file.
    ///
    /// # Errors
    /// `EINVAL` for what makes no sense, `EIO` where the log has failed.
    pub(crate) fn notice(&self, stream: &Stream, inode: &Arc<Inode>, notice: Notice) -> Tried<()> {
        let is_file = matches!(inode.body, Body::File(_));
        if !is_file {
            return refuse("setxattr", Errno::EINVAL);
        }
        match notice {
            Notice::Join { group, rank, ranks } => self.join(stream, inode, group, (rank, ranks)),
            Notice::Prepare { group, rank, epoch } => {
                self.prepare(inode, group, rank, epoch, false)
            }
            Notice::Leave { group, rank, epoch } => self.prepare(inode, group, rank, epoch, true),
        }
    }

    fn join(
        &self,
        stream: &Stream,
        inode: &Arc<Inode>,
        name: epochs::Group,
        (rank, ranks): (u32, u32),
    ) -> Tried<()> {
        self.bind("setxattr", stream.number, inode)?;
        // What was written before belongs to no epoch.
        self.commit_if_plain(stream.number, inode).map_err(logged("setxattr"))?;
        let mut groups = guard(&self.groups);
        let group = match groups.get(&name) {
            Some(group) => Arc::clone(group),
            None => {
                let number = self.next_group.fetch_add(1, Ordering::Relaxed);
                let group = Arc::new(Group {
                    name,
                    local: hostlog::Group(number),
                    inode: Arc::clone(inode),
                    ranks,
                    state: Mutex::default(),
                });
                groups.insert(name, Arc::clone(&group));
                guard(&inode.sharing).begin_group();
                group
            }
        };
        if !Arc::ptr_eq(&group.inode, inode) || group.ranks != ranks {
            return refuse("setxattr", Errno::EINVAL);
        }
        let mut state = guard(&group.state);
        if state.is_over || state.members.contains_key(&rank) {
            return refuse("setxattr", Errno::EINVAL);
        }
        let new = Rank { stream: stream.number, prepared: 0, has_left: false, is_alive: true };
        state.members.insert(rank, new);
        // Under the content's lock, so that each write is of one epoch.
        let member = Member { group: group.local, epoch: 1 };
        drop(state);
        self.set_epoch(inode, stream.number, rank, member);
        guard(&stream.joined).push((name, rank));
        Ok(())
    }

    fn set_epoch(&self, inode: &Inode, stream: u32, rank: u32, member: Member) {
        if let Body::File(content) = &inode.body {
            let _content = writing(content);
            guard(&inode.sharing).set_epoch(stream, rank, member);
        }
    }

    fn prepare(
        &self,
        inode: &Arc<Inode>,
        name: epochs::Group,
        rank: u32,
        epoch: epochs::Epoch,
        leaves: bool,
    ) -> Tried<()> {
        let invalid = || refuse("setxattr", Errno::EINVAL);
        let Some(group) = guard(&self.groups).get(&name).cloned() else { return invalid() };
        let next = u32::try_from(epoch.0).ok().and_then(|epoch| epoch.checked_add(1));
        let Some(next) = next.filter(|_| Arc::ptr_eq(&group.inode, inode)) else {
            return invalid();
        };
        let epoch = next - 1;
        let stream = match guard(&group.state).members.get(&rank) {
            Some(member) if !member.has_left && member.prepared < epoch => member.stream,
            _ => return invalid(),
        };
        let Some(file) = inode.file_id() else { return invalid() };
        // What the rank writes from here on is of the next epoch.
        let member = Member { group: group.local, epoch };
        if leaves {
            guard(&inode.sharing).leave(stream, rank, group.local);
        } else {
            self.set_epoch(inode, stream, rank, Member { epoch: next, ..member });
        }
        // Names count by a commit before the next start only: should the agent die now and the epoch be
        // found to be prepared by all, its file must be known.
        let names = match self.pending_names().0 {
            Some(_) => {
                Some(self.log.begin_commit(stream, FileId::NONE).map_err(logged("setxattr"))?)
            }
            None => None,
        };
        let name = name.to_string();
        let (ranks, name) = (group.ranks, name.as_bytes());
        let prepared = self
            .log
            .begin_prepare(&Prepare { stream, file, member, rank, ranks, name })
            .map_err(logged("setxattr"))?;
        self.advance(&group, rank, epoch, leaves)?;
        // The last of the ranks need not wait once more: its commit stands behind, and is durable.
        self.log.sync_through(prepared).map_err(logged("setxattr"))?;
        if let Some(through) = names {
            self.settle_names(through);
        }
        Ok(())
    }

    /// Takes notice that a rank has prepared, and commits what all have: durably, and with it what they prepared.
    fn advance(&self, group: &Arc<Group>, rank: u32, epoch: u32, leaves: bool) -> Tried<()> {
        let mut state = guard(&group.state);
        if let Some(member) = state.members.get_mut(&rank) {
            member.prepared = epoch.max(member.prepared);
            member.has_left |= leaves;
        }
        let reached = state.reached(group.ranks);
        if reached > state.committed {
            let member = Member { group: group.local, epoch: reached };
            let through = self.log.commit_group(member).map_err(logged("setxattr"))?;
            self.settle_epoch(&group.inode, member, through);
            state.committed = reached;
        }
        if !state.has_ended(group.ranks) || std::mem::replace(&mut state.is_over, true) {
            return Ok(());
        }
        drop(state);
        self.end(group);
        self.commit_if_plain(0, &group.inode).map_err(logged("setxattr"))
    }

    fn end(&self, group: &Group) {
        guard(&self.groups).remove(&group.name);
        guard(&group.inode.sharing).end_group(group.local);
    }

    /// Takes notice that a stream is gone that wrote for a rank.
    pub(crate) fn lost(&self, stream: u32, name: epochs::Group, rank: u32) {
        let Some(group) = guard(&self.groups).get(&name).cloned() else { return };
        guard(&group.inode.sharing).leave(stream, rank, group.local);
        {
            let mut state = guard(&group.state);
            if let Some(member) = state.members.get_mut(&rank) {
                member.is_alive = false;
            }
            if !state.has_died() || std::mem::replace(&mut state.is_over, true) {
                return;
            }
        }
        // Nobody can come to an epoch any more: what lies behind the last one is no part of the file.
        self.end(&group);
        let inode = &group.inode;
        let dropped = self
            .log
            .abort_group(Member { group: group.local, epoch: u32::MAX })
            .and_then(|_| self.commit_if_plain(0, inode))
            .and_then(|()| self.restore(inode, group.local));
        if dropped.is_err() && self.has_pending(inode) {
            // It is not known what the file holds.
            inode.is_broken.store(true, Ordering::Release);
        }
    }

    fn has_pending(&self, inode: &Inode) -> bool {
        match &inode.body {
            Body::File(content) => {
                reading(content).as_ref().is_some_and(|content| Content::pending(content).0 > 0)
            }
            Body::Directory(_) | Body::Symlink(_) => false,
        }
    }
}
