//! Locks of a file whose every opening is in this process.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use p9::{Errno, LockKind, OpenFlags};

use super::{LockTable, Span};
use crate::error::{Error, Result};
use crate::node::{LockOwner, LockRange};

/// The locks of one file.
#[derive(Debug, Default)]
pub struct FileLocks {
    held: Mutex<Held>,
}

/// Who has which, and through how many openings.
#[derive(Debug, Default)]
struct Held {
    table: LockTable,
    openings: HashMap<LockOwner, usize>,
}

impl FileLocks {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one opening of a file has to do with its locks. When it is dropped, the owners that locked
/// through no other opening lose their locks.
#[derive(Debug)]
pub struct OpeningLocks {
    file: Arc<FileLocks>,
    flags: OpenFlags,
    owners: Mutex<HashSet<LockOwner>>,
}

impl OpeningLocks {
    /// No locks yet, through an opening with these flags.
    #[must_use]
    pub fn new(file: &Arc<FileLocks>, flags: OpenFlags) -> Self {
        Self { file: Arc::clone(file), flags, owners: Mutex::default() }
    }

    /// As [`OpenNode::lock`](crate::OpenNode::lock).
    ///
    /// # Errors
    /// As there.
    pub fn lock(&self, owner: &LockOwner, range: LockRange) -> Result<bool> {
        let allowed = match range.kind {
            LockKind::READ => self.flags.reads(),
            LockKind::WRITE => self.flags.writes(),
            _ => true,
        };
        if !allowed {
            return Err(Error::System { operation: "fcntl", errno: Errno::EBADF });
        }
        let span = Span::of(range)?;
        let mut held = self.file.held();
        if held.table.in_the_way(owner, range.kind, span).is_some() {
            return Ok(false);
        }
        if range.kind != LockKind::UNLOCK {
            let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
            if owners.insert(owner.clone()) {
                *held.openings.entry(owner.clone()).or_default() += 1;
            }
        }
        held.table.set(owner, range.kind, span);
        Ok(true)
    }

    /// As [`OpenNode::lock_in_the_way`](crate::OpenNode::lock_in_the_way).
    ///
    /// # Errors
    /// As there.
    pub fn in_the_way(
        &self,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        let span = Span::of(range)?;
        Ok(self.file.held().table.in_the_way(owner, range.kind, span))
    }
}

impl Drop for OpeningLocks {
    fn drop(&mut self) {
        let owners = std::mem::take(self.owners.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut held = self.file.held();
        for owner in owners {
            if let Some(openings) = held.openings.get_mut(&owner) {
                *openings -= 1;
                if *openings == 0 {
                    held.openings.remove(&owner);
                    held.table.release(&owner);
                }
            }
        }
    }
}
