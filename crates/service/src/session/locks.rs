//! Byte-range locks.

use std::sync::Arc;

use p9::{Errno, Fid, LockKind, LockStatus, Reply};
use store::{LockOwner, LockRange};

use super::fids::Entry;
use super::{Out, Outcome, Session};

/// Bytes of a session's number in front of the client's own name.
const PREFIX_LEN: usize = 8;

/// A lock that Tlock or Tgetlock asks about.
pub(super) struct Wanted {
    entry: Arc<Entry>,
    owner: LockOwner,
    range: LockRange,
}

impl Session {
    /// A lock in a client's words: of which file, for whom, and which bytes.
    ///
    /// # Errors
    /// `EBADF` for a fid that is none, and as [`check`].
    pub(super) fn wanted(
        &self,
        fid: Fid,
        (client, process): (&[u8], u32),
        range: LockRange,
    ) -> Outcome<Wanted> {
        let entry = self.fids.get(fid)?;
        check(range)?;
        // The owner that the store sees is unique among connections, whatever clients call themselves.
        let client = [&self.id.to_be_bytes()[..], client].concat();
        Ok(Wanted { entry, owner: LockOwner { client, process }, range })
    }
}

impl Wanted {
    /// Takes or releases the lock. One that somebody else holds is answered by `BLOCKED` at once,
    /// also if the client would wait: it asks again, as Linux' client does, so that no thread of
    /// the service is bound by a lock that may never come.
    pub(super) fn take(&self, out: &mut Out<'_>) -> Outcome {
        let held = self.entry.opened()?.node.lock(&self.owner, self.range)?;
        let status = if held { LockStatus::SUCCESS } else { LockStatus::BLOCKED };
        out.reply(&Reply::Lock { status });
        Ok(())
    }

    /// Says which lock is in the way; if none is, this one, unlocked.
    pub(super) fn find(self, out: &mut Out<'_>) -> Outcome {
        let found = self.entry.opened()?.node.lock_in_the_way(&self.owner, self.range)?;
        let free = LockRange { kind: LockKind::UNLOCK, ..self.range };
        let (holder, LockRange { kind, start, length }) = found.unwrap_or((self.owner, free));
        // A process on the store's own machine has no name.
        let client = holder.client.get(PREFIX_LEN..).unwrap_or(&holder.client);
        out.reply(&Reply::Getlock { kind, start, length, process: holder.process, client });
        Ok(())
    }
}

/// # Errors
/// `EINVAL` for an unknown kind or a start that is no file offset, `EOVERFLOW` for a range whose
/// last byte is beyond the largest one, as fcntl(2).
fn check(LockRange { kind, start, length }: LockRange) -> Outcome {
    let is_offset = |byte: u64| i64::try_from(byte).is_ok();
    if kind.0 > LockKind::UNLOCK.0 || !is_offset(start) {
        return Err(Errno::EINVAL.into());
    }
    match start.checked_add(length.saturating_sub(1)) {
        Some(last) if is_offset(last) => Ok(()),
        _ => Err(Errno::EOVERFLOW.into()),
    }
}
