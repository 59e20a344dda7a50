//! Open files of a relayed service.

use std::sync::Arc;

use client::{Handle, Lock, ReadPart, Repeat, WritePart};
use p9::{Attributes, DirEntry, Errno, OpenFlags, SetAttributes, SetattrMask};

use crate::error::{Error, Result};
use crate::node::{LockOwner, LockRange, OpenNode};
use crate::relay::names::Whereabouts;
use crate::relay::node::Tree;
use crate::relay::refused;

/// An opened fid at the other service.
pub(super) struct RelayFile {
    tree: Arc<Tree>,
    whereabouts: Arc<Whereabouts>,
    handle: Handle,
    flags: OpenFlags,
}

impl RelayFile {
    pub(super) fn new(
        tree: &Arc<Tree>,
        whereabouts: &Arc<Whereabouts>,
        handle: Handle,
        flags: OpenFlags,
    ) -> Self {
        Self { tree: Arc::clone(tree), whereabouts: Arc::clone(whereabouts), handle, flags }
    }

    /// The handle, ready to be found again where its file is by now.
    fn handle(&self) -> &Handle {
        if let Some(way) = self.whereabouts.get() {
            self.tree.tell(&self.handle, &way);
        }
        &self.handle
    }
}

impl OpenNode for RelayFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut part = ReadPart::new(offset, buffer);
        let outcome = self.handle().read_batch(std::slice::from_mut(&mut part));
        carried(outcome, part.done, part.refusal).map_err(refused("read"))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        // An append that was made twice would show.
        let appends = self.flags.contains(OpenFlags::APPEND);
        let repeat = if appends { Repeat::OnlyUnsent } else { Repeat::Safe };
        let mut part = WritePart::new(offset, data);
        let outcome = self.handle().write_batch(repeat, std::slice::from_mut(&mut part));
        carried(outcome, part.done, part.refusal).map_err(refused("write"))
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let mut cookie = cookie;
        let mut more = true;
        while more {
            let held = self.handle().read_directory(cookie, &mut |entry| {
                cookie = entry.offset;
                more = take(entry);
                more
            });
            if held.map_err(refused("getdents"))? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn attributes(&self) -> Result<Attributes> {
        self.handle().attributes().map_err(refused("fstat"))
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        // A service sets the size by any fid, as truncate(2) does; this is ftruncate(2).
        if set.valid.contains(SetattrMask::SIZE) && !self.flags.writes() {
            return Err(Error::System { operation: "ftruncate", errno: Errno::EINVAL });
        }
        self.handle().set_attributes(set).map_err(refused("setattr"))
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        self.handle().sync(data_only).map_err(refused("fsync"))
    }

    fn close(&self) -> Result<()> {
        if !self.flags.writes() {
            return Ok(());
        }
        self.handle.finish().map_err(refused("close"))
    }

    fn lost(&self) {
        self.handle.abandon();
    }

    fn lock(&self, owner: &LockOwner, range: LockRange) -> Result<bool> {
        match self.handle().lock(&lock_of(owner, range), None) {
            Ok(()) => Ok(true),
            Err(client::Error::Refused(Errno::EAGAIN)) => Ok(false),
            Err(error) => Err(refused("lock")(error)),
        }
    }

    fn lock_in_the_way(
        &self,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        let found = self.handle().lock_in_the_way(&lock_of(owner, range));
        Ok(found.map_err(refused("lock"))?.map(|lock| {
            let Lock { kind, start, length, process, client } = lock;
            (LockOwner { client, process }, LockRange { kind, start, length })
        }))
    }
}

fn lock_of(owner: &LockOwner, range: LockRange) -> Lock {
    let LockRange { kind, start, length } = range;
    Lock { kind, start, length, process: owner.process, client: owner.client.clone() }
}

/// How many bytes went, or why none did.
fn carried(
    outcome: client::Result<()>,
    done: usize,
    refusal: Option<Errno>,
) -> client::Result<usize> {
    match (outcome, refusal) {
        (Err(error), _) => Err(error),
        (Ok(()), Some(errno)) if done == 0 => Err(client::Error::Refused(errno)),
        (Ok(()), _) => Ok(done),
    }
}
