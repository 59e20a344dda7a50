//! Commits: one sync for all who wait.

use std::sync::Arc;
use std::time::Duration;

use super::append::{Draft, Value};
use super::{Log, MUCH_BYTES, Segment};
use crate::error::{Error, Result};
use crate::format::Kind;
use crate::ids::{FileId, Member, Sequence};
use crate::rules::ranks_value;

/// What a rank says when it is done with an epoch.
#[derive(Debug, Clone, Copy)]
pub struct Prepare<'a> {
    /// The connection or process of the rank.
    pub stream: u32,
    /// The file.
    pub file: FileId,
    /// The epoch, and whose.
    pub member: Member,
    /// Which rank.
    pub rank: u32,
    /// How many the group has, on this node and others.
    pub ranks: u32,
    /// What the group is called on all nodes.
    pub name: &'a [u8],
}

impl Log {
    /// Commits all plain data that `file` has so far, and the namespace, and waits until that is durable.
    ///
    /// # Errors
    /// `Failed`: then it is not known whether it will count after a restart. `System` where the disk is
    /// full.
    pub fn commit(&self, stream: u32, file: FileId) -> Result<Sequence> {
        let sequence = self.begin_commit(stream, file)?;
        self.sync_through(sequence)?;
        Ok(sequence)
    }

    /// The first half of [`Log::commit`]: it counts once [`Log::sync_through`] has returned for what this
    /// returns. Several of them can share one sync.
    ///
    /// # Errors
    /// `Failed`, `System`.
    pub fn begin_commit(&self, stream: u32, file: FileId) -> Result<Sequence> {
        self.begin(Kind::Commit, stream, file)
    }

    /// Drops all plain data that `file` has so far and that is not committed, durably.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn abort(&self, file: FileId) -> Result<Sequence> {
        let sequence = self.begin(Kind::Abort, 0, file)?;
        self.sync_through(sequence)?;
        Ok(sequence)
    }

    fn begin(&self, kind: Kind, stream: u32, file: FileId) -> Result<Sequence> {
        let draft =
            Draft { kind, namespace: false, file, value: Value::Before, member: None, stream };
        self.append(&draft, &[], false)
    }

    /// Says durably that a rank has written all of an epoch.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn prepare(&self, prepare: &Prepare<'_>) -> Result<Sequence> {
        let sequence = self.begin_prepare(prepare)?;
        self.sync_through(sequence)?;
        Ok(sequence)
    }

    /// The first half of [`Log::prepare`]: it is said once [`Log::sync_through`] has returned for what this returns,
    /// or a decision that follows it is durable.
    ///
    /// # Errors
    /// As [`Log::begin_commit`].
    pub fn begin_prepare(&self, prepare: &Prepare<'_>) -> Result<Sequence> {
        let draft = Draft {
            kind: Kind::Prepare,
            namespace: false,
            file: prepare.file,
            value: Value::Is(ranks_value(prepare.rank, prepare.ranks)),
            member: Some(prepare.member),
            stream: prepare.stream,
        };
        self.append(&draft, prepare.name, false)
    }

    /// Commits all of a group's data so far up to an epoch, durably. The caller knows that all ranks, here
    /// and elsewhere, have prepared it.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn commit_group(&self, member: Member) -> Result<Sequence> {
        self.decide(Kind::CommitGroup, member)
    }

    /// Drops all of a group's data so far up to an epoch, as far as it is not committed, durably.
    ///
    /// # Errors
    /// As [`Log::commit`].
    pub fn abort_group(&self, member: Member) -> Result<Sequence> {
        self.decide(Kind::AbortGroup, member)
    }

    fn decide(&self, kind: Kind, member: Member) -> Result<Sequence> {
        let draft = Draft {
            kind,
            namespace: false,
            file: FileId::NONE,
            value: Value::Is(0),
            member: Some(member),
            stream: 0,
        };
        let sequence = self.append(&draft, &[], false)?;
        self.sync_through(sequence)?;
        Ok(sequence)
    }

    /// Says that all records up to `through` that count are durable in the target, and gives away the
    /// segments that hold nothing else. Nobody may read those any more, and nothing up to `through` may
    /// be committed any more.
    ///
    /// `state` is told when the log is opened again ([`Recovery::drained_state`](super::Recovery)): what
    /// the owner needs to understand later records, such as the names of the files by their numbers.
    ///
    /// # Errors
    /// `NotDurable`, `TooLarge`; as [`Log::commit`].
    pub fn drained(&self, through: Sequence, state: &[u8]) -> Result<()> {
        {
            let shared = self.state();
            if through.0 > shared.durable {
                return Err(Error::NotDurable { through, durable: Sequence(shared.durable) });
            }
            if through.0 <= shared.drained {
                return Ok(());
            }
        }
        let draft = Draft {
            kind: Kind::Drained,
            namespace: false,
            file: FileId::NONE,
            value: Value::Is(through.0),
            member: None,
            stream: 0,
        };
        let sequence = self.append(&draft, state, false)?;
        self.sync_through(sequence)?;
        {
            let mut shared = self.state();
            shared.drained = shared.drained.max(through.0);
        }
        self.recycle()
    }

    /// Makes everything durable that was appended so far. It does not make it count.
    ///
    /// # Errors
    /// `Failed`.
    pub fn sync(&self) -> Result<()> {
        let last = {
            let state = self.state();
            if let Some(failure) = self.failure(&state) {
                return Err(failure);
            }
            if state.restart.is_some() {
                return Ok(());
            }
            state.next - 1
        };
        self.sync_through(Sequence(last))
    }

    /// Waits until `bytes` were written since the last sync, and makes them durable, so that who commits has less to wait
    /// for. After `timeout` it returns all the same. It is meant to be called by a thread of its own; nothing counts
    /// because of it.
    ///
    /// # Errors
    /// `Failed`.
    pub fn sync_ahead(&self, bytes: u64, timeout: Duration) -> Result<()> {
        let mut state = self.state();
        if state.unsynced < bytes {
            state.sync_ahead_at = Some(bytes);
            state = match self.grown.wait_timeout(state, timeout) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
            state.sync_ahead_at = None;
        }
        if let Some(failure) = self.failure(&state) {
            return Err(failure);
        }
        if state.unsynced < bytes {
            return Ok(());
        }
        let through = state.written;
        drop(state);
        self.sync_through(Sequence(through))
    }

    /// Waits until all records up to `through` are durable. Of those who wait one syncs for all.
    ///
    /// # Errors
    /// `Failed`.
    pub fn sync_through(&self, through: Sequence) -> Result<()> {
        let mut state = self.state();
        let (target, dirty) = loop {
            if state.durable >= through.0 {
                return Ok(());
            }
            if let Some(failure) = self.failure(&state) {
                return Err(failure);
            }
            if !state.syncing && state.written >= through.0 {
                state.syncing = true;
                state.unsynced = 0;
                let dirty = state.live.iter().filter(|live| live.dirty);
                let dirty: Vec<(u32, Arc<Segment>)> =
                    dirty.map(|live| (live.used.number, live.segment.clone())).collect();
                break (state.written, dirty);
            }
            state = self.wait(state);
        };
        drop(state);
        for (_, segment) in &dirty {
            segment.file.sync().map_err(|source| {
                self.fail(Error::system("syncing", &self.place, &segment.name, source))
            })?;
        }
        let mut state = self.state();
        state.syncing = false;
        // Somebody's write may have failed meanwhile: below `target` everything was written before.
        state.durable = state.durable.max(target);
        let tail = state.tail.as_ref().map(|tail| tail.used.number);
        for live in &mut state.live {
            let synced = dirty.iter().any(|(number, _)| *number == live.used.number);
            if synced && live.last <= target && Some(live.used.number) != tail {
                live.dirty = false;
            }
        }
        let mut is_much = false;
        while state.decisions.front().is_some_and(|(header, _)| header.sequence.0 <= target) {
            if let Some((header, payload)) = state.decisions.pop_front() {
                state.rules.apply(&header, &payload);
                is_much = state.untold >= MUCH_BYTES;
            }
        }
        if is_much {
            state.untold = 0;
        }
        self.announce(state);
        if is_much {
            self.call_watcher();
        }
        self.hint(target)
    }

    /// Writes to the checkpoint how far the log is durable, without waiting for anything.
    fn hint(&self, durable: u64) -> Result<()> {
        let mut checkpoint = match self.checkpoint.try_lock() {
            Ok(checkpoint) => checkpoint,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return Ok(()),
        };
        if checkpoint.value.durable >= durable {
            return Ok(());
        }
        let value = crate::format::Checkpoint { durable, ..checkpoint.value };
        let written = checkpoint.write_hint(value);
        drop(checkpoint);
        written.map_err(|source| {
            self.fail(Error::system("writing", &self.place, crate::names::CHECKPOINT, source))
        })
    }
}
