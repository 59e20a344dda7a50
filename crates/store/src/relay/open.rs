//! Open files of a relayed service.

use std::sync::Arc;

use client::{Connection, Handle, Lock, Repeat};
use p9::{Attributes, DirEntry, Errno, Fid, OpenFlags, Reply, SetAttributes, SetattrMask};

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
        let read =
            |connection: &Arc<Connection>, fid: Fid| read_all(connection, fid, buffer, offset);
        self.handle().with(Repeat::Safe, read).map_err(refused("read"))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        // An append that was made twice would show.
        let appends = self.flags.contains(OpenFlags::APPEND);
        let repeat = if appends { Repeat::OnlyUnsent } else { Repeat::Safe };
        self.handle()
            .with(repeat, |connection, fid| write_all(connection, fid, data, offset))
            .map_err(refused("write"))
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

/// Asks for all parts at once and waits for them in order.
fn read_all(
    connection: &Arc<Connection>,
    fid: Fid,
    buffer: &mut [u8],
    offset: u64,
) -> client::Result<usize> {
    let part_max = connection.payload_max();
    let mut tickets = Vec::with_capacity(buffer.len().div_ceil(part_max));
    let mut at = offset;
    for part in buffer.chunks(part_max) {
        tickets.push(connection.submit_read(fid, at, part.len() as u32)?);
        at = at.saturating_add(part.len() as u64);
    }
    let mut total = 0;
    let mut outcome = Ok(());
    let mut over = false;
    for (ticket, part) in tickets.into_iter().zip(buffer.chunks_mut(part_max)) {
        if over {
            // Past the end, or past an error: what is there would not be in one piece.
            connection.forget(ticket);
            continue;
        }
        match connection.wait_read(ticket, part) {
            Ok(count) => {
                total += count;
                over = count < part.len();
            }
            Err(error) => {
                over = true;
                // A broken connection is for the caller to repeat.
                if total == 0 || error.is_retryable() {
                    outcome = Err(error);
                }
            }
        }
    }
    outcome.map(|()| total)
}

/// Sends all parts at once; the answer is how many bytes were written in one piece.
fn write_all(
    connection: &Arc<Connection>,
    fid: Fid,
    data: &[u8],
    offset: u64,
) -> client::Result<usize> {
    let part_max = connection.payload_max();
    let mut tickets = Vec::with_capacity(data.len().div_ceil(part_max));
    let mut at = offset;
    for part in data.chunks(part_max) {
        tickets.push((connection.submit_write(fid, at, part)?, part.len()));
        at = at.saturating_add(part.len() as u64);
    }
    let mut total = 0;
    let mut failed: Option<client::Error> = None;
    for (ticket, len) in tickets {
        let outcome = connection.wait(ticket).and_then(|body| match body.reply() {
            Ok(Reply::Write { count }) => Ok(count as usize),
            _ => Err(client::Error::Refused(Errno::EIO)),
        });
        match outcome {
            _ if failed.is_some() => {}
            Ok(count) => {
                total += count.min(len);
                if count < len {
                    failed = Some(client::Error::Refused(Errno::EIO));
                }
            }
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        // A broken connection is for the caller to repeat.
        Some(error) if total == 0 || error.is_retryable() => Err(error),
        _ => Ok(total),
    }
}
