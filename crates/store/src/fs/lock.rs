//! Locks that processes on this machine see too.
//!
//! The kernel's "open file description" locks belong to a description, so each pair of owner and
//! file has one of its own here; whoever locks the file on this machine, by fcntl(2) or by another
//! service, meets them. Beside them a [`LockTable`] knows the owners by name: the kernel could not
//! tell a client which of our owners is in its way.
//!
//! # Source
//! fcntl(2), "Open file description locks".

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_RDLCK, F_UNLCK, F_WRLCK, SEEK_SET, flock};
use p9::{Errno, LockKind, OpenFlags};

use super::attributes::Identity;
use super::node::reopen;
use super::{Export, refusal, system};
use crate::error::{Error, Result};
use crate::locks::{LockTable, Span};
use crate::node::{LockOwner, LockRange};

/// The files of an export that have locks, or had.
#[derive(Default)]
pub(super) struct LockFiles {
    files: Mutex<HashMap<Identity, Arc<LockFile>>>,
}

/// The locks of one file, whoever opened it.
#[derive(Default)]
struct LockFile {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    table: LockTable,
    owners: HashMap<LockOwner, Description>,
}

/// The open file description that holds an owner's locks in the kernel.
struct Description {
    fd: Arc<OwnedFd>,
    /// Through how many openings the owner locked: with the last the locks end.
    openings: usize,
}

/// What one opening has to do with locks.
#[derive(Default)]
pub(super) struct FileLocks {
    file: OnceLock<(Identity, Arc<LockFile>)>,
    owners: Mutex<HashSet<LockOwner>>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileLocks {
    fn file(&self, export: &Export, file: Identity) -> &LockFile {
        let (_, found) = self.file.get_or_init(|| {
            let mut files = guard(&export.locks.files);
            (file, Arc::clone(files.entry(file).or_default()))
        });
        found
    }

    pub(super) fn lock(
        &self,
        export: &Export,
        file: Identity,
        fd: &Arc<OwnedFd>,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<bool> {
        let span = Span::of(range)?;
        let mut state = guard(&self.file(export, file).state);
        if state.table.in_the_way(owner, range.kind, span).is_some() {
            return Ok(false);
        }
        let held = state.owners.get(owner).map(|held| Arc::clone(&held.fd));
        if held.is_none() && range.kind == LockKind::UNLOCK {
            return Ok(true);
        }
        let description = match held {
            Some(held) => held,
            None => describe(export, fd)?,
        };
        if !set_kernel_lock(description.as_fd(), range.kind, span)? {
            return Ok(false);
        }
        state.table.set(owner, range.kind, span);
        if guard(&self.owners).insert(owner.clone()) {
            let new = Description { fd: description, openings: 0 };
            state.owners.entry(owner.clone()).or_insert(new).openings += 1;
        }
        Ok(true)
    }

    pub(super) fn in_the_way(
        &self,
        export: &Export,
        file: Identity,
        fd: &Arc<OwnedFd>,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        let span = Span::of(range)?;
        let state = guard(&self.file(export, file).state);
        if let Some(ours) = state.table.in_the_way(owner, range.kind, span) {
            return Ok(Some(ours));
        }
        if range.kind == LockKind::UNLOCK {
            return Ok(None);
        }
        match state.owners.get(owner) {
            Some(held) => kernel_lock_in_the_way(held.fd.as_fd(), range.kind, span),
            // The opening's own description holds no locks, unless `describe` had to use it; then
            // it holds this owner's.
            None => kernel_lock_in_the_way(fd.as_fd(), range.kind, span),
        }
    }

    /// Ends the locks of owners that locked through no other opening.
    pub(super) fn release(&mut self, files: &LockFiles) {
        let Some((identity, file)) = self.file.take() else { return };
        let owners = std::mem::take(self.owners.get_mut().unwrap_or_else(PoisonError::into_inner));
        {
            let mut state = guard(&file.state);
            for owner in owners {
                let Some(held) = state.owners.get_mut(&owner) else { continue };
                held.openings -= 1;
                if held.openings == 0 {
                    if let Some(held) = state.owners.remove(&owner) {
                        // Not left to closing: the description may be an opening's own, see
                        // `describe`. An error leaves nothing to do that closing does not do.
                        let all = Span { first: 0, last: i64::MAX as u64 };
                        let _ = set_kernel_lock(held.fd.as_fd(), LockKind::UNLOCK, all);
                    }
                    state.table.release(&owner);
                }
            }
        }
        let mut files = guard(&files.files);
        // The map's and this opening's: nobody else can come by another but through the map.
        if Arc::strong_count(&file) == 2 {
            files.remove(&identity);
        }
    }
}

/// A new open file description of the file of `fd`.
///
/// It must be open for whatever the owner may lock later, through this or another opening. Where
/// rights do not allow that (a file created for writing with mode 0444), the opening's own
/// description takes its place: it has the rights, and the table keeps its owners apart.
fn describe(export: &Export, fd: &Arc<OwnedFd>) -> Result<Arc<OwnedFd>> {
    match reopen(export, fd, OpenFlags::READ_WRITE) {
        Ok(new) => Ok(Arc::new(new)),
        Err(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => {
            Err(refusal("fcntl", Errno::ENOLCK))
        }
        Err(_) => Ok(Arc::clone(fd)),
    }
}

fn request(kind: LockKind, span: Span) -> flock {
    let l_type = match kind {
        LockKind::READ => F_RDLCK,
        LockKind::WRITE => F_WRLCK,
        _ => F_UNLCK,
    };
    flock {
        l_type: l_type as _,
        l_whence: SEEK_SET as _,
        l_start: span.first as _,
        l_len: span.length() as _,
        // Must be 0 for open file description locks.
        l_pid: 0,
    }
}

fn set_kernel_lock(fd: BorrowedFd<'_>, kind: LockKind, span: Span) -> Result<bool> {
    match fcntl(fd, FcntlArg::F_OFD_SETLK(&request(kind, span))) {
        Ok(_) => Ok(true),
        Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EACCES) => Ok(false),
        Err(errno) => Err(fcntl_refused(errno)),
    }
}

/// What somebody who is no owner of ours holds: a process of this machine, or another service.
fn kernel_lock_in_the_way(
    fd: BorrowedFd<'_>,
    kind: LockKind,
    span: Span,
) -> Result<Option<(LockOwner, LockRange)>> {
    let mut found = request(kind, span);
    fcntl(fd, FcntlArg::F_OFD_GETLK(&mut found)).map_err(fcntl_refused)?;
    let kind = match i32::from(found.l_type) {
        F_RDLCK => LockKind::READ,
        F_WRLCK => LockKind::WRITE,
        _ => return Ok(None),
    };
    // A description's lock has no process: the kernel says -1.
    let process = u32::try_from(found.l_pid).unwrap_or(0);
    let owner = LockOwner { client: Vec::new(), process };
    let (start, length) = (found.l_start as u64, found.l_len as u64);
    Ok(Some((owner, LockRange { kind, start, length })))
}

fn fcntl_refused(errno: nix::errno::Errno) -> Error {
    system("fcntl")(rustix::io::Errno::from_raw_os_error(errno as i32))
}
