//! Byte-range locks.

use p9::{Errno, Fid, LockKind, LockStatus, Reply};
use store::{LockOwner, LockRange};

use super::{Out, Outcome, Session};

/// Bytes of a session's number in front of the client's own name.
const PREFIX_LEN: usize = 8;

impl Session {
    /// The owner that the store sees: unique among connections, whatever clients call themselves.
    pub(super) fn lock_owner(&self, client: &[u8], process: u32) -> LockOwner {
        let mut unique = self.id.to_be_bytes().to_vec();
        unique.extend_from_slice(client);
        LockOwner { client: unique, process }
    }

    /// Takes or releases a lock. One that somebody else holds is answered by `BLOCKED` at once,
    /// also if the client would wait: it asks again, as Linux' client does, so that no thread of
    /// the service is bound by a lock that may never come.
    pub(super) fn lock(
        &self,
        fid: Fid,
        kind: LockKind,
        start: u64,
        length: u64,
        owner: &LockOwner,
        out: &mut Out<'_>,
    ) -> Outcome {
        let entry = self.fids.get(fid)?;
        let range = range(kind, start, length)?;
        let held = entry.opened()?.node.lock(owner, range)?;
        let status = if held { LockStatus::SUCCESS } else { LockStatus::BLOCKED };
        out.reply(&Reply::Lock { status });
        Ok(())
    }

    pub(super) fn getlock(
        &self,
        fid: Fid,
        kind: LockKind,
        start: u64,
        length: u64,
        owner: &LockOwner,
        out: &mut Out<'_>,
    ) -> Outcome {
        let entry = self.fids.get(fid)?;
        let wanted = range(kind, start, length)?;
        match entry.opened()?.node.lock_in_the_way(owner, wanted)? {
            Some((holder, LockRange { kind, start, length })) => {
                let client = holder.client.get(PREFIX_LEN..).unwrap_or(&holder.client);
                out.reply(&Reply::Getlock { kind, start, length, process: holder.process, client });
            }
            None => {
                let client = &owner.client[PREFIX_LEN..];
                out.reply(&Reply::Getlock {
                    kind: LockKind::UNLOCK,
                    start,
                    length,
                    process: owner.process,
                    client,
                });
            }
        }
        Ok(())
    }
}

/// # Errors
/// `EINVAL` for an unknown kind or a start that is no file offset, `EOVERFLOW` for a range whose
/// last byte is beyond the largest one, as fcntl(2).
fn range(kind: LockKind, start: u64, length: u64) -> Outcome<LockRange> {
    let is_offset = |byte: u64| i64::try_from(byte).is_ok();
    if kind.0 > LockKind::UNLOCK.0 || !is_offset(start) {
        return Err(Errno::EINVAL.into());
    }
    match start.checked_add(length.saturating_sub(1)) {
        Some(last) if is_offset(last) => Ok(LockRange { kind, start, length }),
        _ => Err(Errno::EOVERFLOW.into()),
    }
}
