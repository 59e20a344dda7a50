//! Byte-range locks, held at the service.

use std::time::Duration;

use p9::{Errno, LOCK_FLAG_BLOCK, LockKind, LockStatus, Reply, Request};

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::session::{Repeat, pause};

/// Waits between attempts at a lock that somebody else holds: a service keeps no queue, and its
/// connection must not be held up by a request that waits.
const BACK_OFF_MIN: Duration = Duration::from_millis(1);
const BACK_OFF_MAX: Duration = Duration::from_millis(200);

/// A lock wanted, held or in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Shared, exclusive, or none.
    pub kind: LockKind,
    /// First byte.
    pub start: u64,
    /// Bytes; 0 means to the end of the file, however far it grows (fcntl(2)).
    pub length: u64,
    /// The process.
    pub process: u32,
    /// What the client calls itself.
    pub client: Vec<u8>,
}

impl Handle {
    /// Takes or, with `UNLOCK`, releases a lock. `wait`: when somebody else holds it, it is asked
    /// for again until the closure says true, which is `EINTR`; `None`: that is `EAGAIN`.
    ///
    /// Locks end with the connection. A handle that had one fails with `EIO` from then on.
    ///
    /// # Errors
    /// As fcntl(2) with `F_SETLK` and `F_SETLKW`, and as [`Handle::with`].
    pub fn lock(&self, lock: &Lock, wait: Option<&dyn Fn() -> bool>) -> Result<()> {
        let flags = if wait.is_some() { LOCK_FLAG_BLOCK } else { 0 };
        let mut back_off = BACK_OFF_MIN;
        loop {
            match self.try_lock(lock, flags)? {
                LockStatus::SUCCESS => return Ok(()),
                LockStatus::BLOCKED | LockStatus::GRACE => {}
                _ => return Err(Error::Refused(Errno::ENOLCK)),
            }
            let Some(should_stop) = wait else {
                return Err(Error::Refused(Errno::EAGAIN));
            };
            if should_stop() {
                return Err(Error::Refused(Errno::EINTR));
            }
            pause(back_off);
            back_off = (back_off * 2).min(BACK_OFF_MAX);
        }
    }

    fn try_lock(&self, lock: &Lock, flags: u32) -> Result<LockStatus> {
        self.session().attempt(Repeat::OnlyUnsent, |live| {
            let fid = self.fid(live)?;
            // Before the request: a lock whose answer is lost with the connection counts as held.
            let takes = lock.kind != LockKind::UNLOCK;
            let before = if takes { self.mark_locked(live) } else { 0 };
            let Lock { kind, start, length, process, ref client } = *lock;
            let request = Request::Lock { fid, kind, flags, start, length, process, client };
            let body = live.connection.call(&request)?;
            match live.reply(&body)? {
                Reply::Lock { status } => {
                    if takes && status != LockStatus::SUCCESS {
                        self.mark_locked_as_before(before);
                    }
                    Ok(status)
                }
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
    }

    /// The first lock of another owner that is in the way of `lock`.
    ///
    /// # Errors
    /// As fcntl(2) with `F_GETLK`, and as [`Handle::with`].
    pub fn lock_in_the_way(&self, lock: &Lock) -> Result<Option<Lock>> {
        self.session().attempt(Repeat::Safe, |live| {
            let fid = self.fid(live)?;
            let Lock { kind, start, length, process, ref client } = *lock;
            let request = Request::Getlock { fid, kind, start, length, process, client };
            let body = live.connection.call(&request)?;
            match live.reply(&body)? {
                Reply::Getlock { kind: LockKind::UNLOCK, .. } => Ok(None),
                Reply::Getlock { kind, start, length, process, client } => {
                    Ok(Some(Lock { kind, start, length, process, client: client.to_vec() }))
                }
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
    }
}
