//! Byte-range locks of one file, as POSIX has them: an owner's new lock replaces its old ones in
//! the same range, splitting and joining them as needed.

mod held;

use p9::{Errno, LockKind};

use crate::error::{Error, Result};
use crate::node::{LockOwner, LockRange};

pub use held::{FileLocks, OpeningLocks};

/// The last byte that a lock can cover: offsets are signed in the kernel's `struct flock`.
const LAST_BYTE: u64 = i64::MAX as u64;

/// A range of bytes, both ends included: "to the end of the file" has no end to leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Span {
    /// The bytes that a request means.
    ///
    /// # Errors
    /// `EINVAL` and `EOVERFLOW` as fcntl(2) has them for offsets that are not a file's, and
    /// `EINVAL` for a kind of lock that does not exist.
    pub(crate) fn of(range: LockRange) -> Result<Self> {
        let refuse = |errno| Error::System { operation: "fcntl", errno };
        if range.kind.0 > LockKind::UNLOCK.0 || range.start > LAST_BYTE {
            return Err(refuse(Errno::EINVAL));
        }
        let last = match range.length {
            0 => LAST_BYTE,
            length => match range.start.checked_add(length - 1) {
                Some(last) if last <= LAST_BYTE => last,
                _ => return Err(refuse(Errno::EOVERFLOW)),
            },
        };
        Ok(Self { first: range.start, last })
    }

    /// The length as requests and fcntl(2) have it: 0 means without end.
    pub(crate) fn length(self) -> u64 {
        if self.last == LAST_BYTE { 0 } else { self.last - self.first + 1 }
    }

    fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn touches(self, other: Self) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }
}

#[derive(Debug, Clone)]
struct Held {
    owner: LockOwner,
    kind: LockKind,
    span: Span,
}

/// All locks of one file.
#[derive(Debug, Default)]
pub(crate) struct LockTable {
    held: Vec<Held>,
}

impl LockTable {
    /// The first lock, by offset, of another owner that excludes one of `kind` on `span`.
    pub(crate) fn in_the_way(
        &self,
        owner: &LockOwner,
        kind: LockKind,
        span: Span,
    ) -> Option<(LockOwner, LockRange)> {
        if kind == LockKind::UNLOCK {
            return None;
        }
        self.held
            .iter()
            .filter(|held| held.owner != *owner && held.span.overlaps(span))
            .filter(|held| kind == LockKind::WRITE || held.kind == LockKind::WRITE)
            .min_by_key(|held| held.span.first)
            .map(|held| {
                let range = LockRange {
                    kind: held.kind,
                    start: held.span.first,
                    length: held.span.length(),
                };
                (held.owner.clone(), range)
            })
    }

    /// Makes `kind` the owner's lock on `span`, whatever it held there before.
    pub(crate) fn set(&mut self, owner: &LockOwner, kind: LockKind, span: Span) {
        let mut new = span;
        let mut kept = Vec::with_capacity(self.held.len() + 2);
        for held in self.held.drain(..) {
            if held.owner != *owner {
                kept.push(held);
            } else if held.kind == kind && held.span.touches(new) {
                new.first = new.first.min(held.span.first);
                new.last = new.last.max(held.span.last);
            } else if held.span.overlaps(span) {
                if held.span.first < span.first {
                    let left = Span { first: held.span.first, last: span.first - 1 };
                    kept.push(Held { span: left, ..held.clone() });
                }
                if held.span.last > span.last {
                    let right = Span { first: span.last + 1, last: held.span.last };
                    kept.push(Held { span: right, ..held });
                }
            } else {
                kept.push(held);
            }
        }
        if kind != LockKind::UNLOCK {
            kept.push(Held { owner: owner.clone(), kind, span: new });
        }
        self.held = kept;
    }

    /// Drops all locks of an owner.
    pub(crate) fn release(&mut self, owner: &LockOwner) {
        self.held.retain(|held| held.owner != *owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(process: u32) -> LockOwner {
        LockOwner { client: b"host".to_vec(), process }
    }

    fn span(first: u64, last: u64) -> Span {
        Span { first, last }
    }

    /// What `process` holds, by offset.
    fn held(table: &LockTable, process: u32) -> Vec<(u8, u64, u64)> {
        let mut all: Vec<_> = table
            .held
            .iter()
            .filter(|held| held.owner == owner(process))
            .map(|held| (held.kind.0, held.span.first, held.span.last))
            .collect();
        all.sort_unstable_by_key(|held| held.1);
        all
    }

    #[test]
    fn unlocking_the_middle_leaves_two_ends() {
        let mut table = LockTable::default();
        table.set(&owner(1), LockKind::WRITE, span(10, 29));
        table.set(&owner(1), LockKind::UNLOCK, span(15, 19));
        assert_eq!(held(&table, 1), [(1, 10, 14), (1, 20, 29)]);
    }

    #[test]
    fn changing_the_kind_of_a_part_splits_and_changing_it_back_joins() {
        let mut table = LockTable::default();
        table.set(&owner(1), LockKind::READ, span(0, 99));
        table.set(&owner(1), LockKind::WRITE, span(40, 59));
        assert_eq!(held(&table, 1), [(0, 0, 39), (1, 40, 59), (0, 60, 99)]);
        table.set(&owner(1), LockKind::READ, span(40, 59));
        assert_eq!(held(&table, 1), [(0, 0, 99)]);
    }

    #[test]
    fn only_other_owners_exclusive_locks_are_in_a_readers_way() {
        let mut table = LockTable::default();
        table.set(&owner(1), LockKind::READ, span(0, 9));
        assert_eq!(table.in_the_way(&owner(2), LockKind::READ, span(5, 5)), None);
        assert_eq!(table.in_the_way(&owner(1), LockKind::WRITE, span(5, 5)), None);
        let expected = LockRange { kind: LockKind::READ, start: 0, length: 10 };
        assert_eq!(
            table.in_the_way(&owner(2), LockKind::WRITE, span(5, 5)),
            Some((owner(1), expected))
        );
        assert_eq!(table.in_the_way(&owner(2), LockKind::WRITE, span(10, 10)), None);
    }

    #[test]
    fn a_length_of_zero_reaches_past_every_offset() {
        let range = LockRange { kind: LockKind::READ, start: 7, length: 0 };
        let all = Span::of(range).unwrap();
        assert_eq!(all.last, LAST_BYTE);
        assert_eq!(all.length(), 0);
        assert!(Span::of(LockRange { start: LAST_BYTE + 1, ..range }).is_err());
        assert!(Span::of(LockRange { start: LAST_BYTE, length: 2, ..range }).is_err());
    }
}
