//! Which requests of a connection must keep their order.
//!
//! A request that does not wait is answered before the next one is looked at. The rule here is
//! for those that wait in the pool, and for those that arrive meanwhile: a request follows an
//! earlier one if both name the same fid, unless they cannot notice each other:
//!
//! * reads and looks (getattr, walks from the fid, listings) overtake each other and fsync;
//! * reads and writes of different byte ranges overtake each other;
//! * fsync follows earlier writes; later reads and writes overtake it;
//! * everything else (open, create, clunk, setattr, locks, changes of a directory) keeps its
//!   place.
//!
//! Requests that name different fids overtake each other, also if both fids stand for the same
//! file: a client for which that matters waits for the first answer. `Tversion` waits until all
//! before it are answered.
//!
//! It is effects that keep their order. Answers of requests that waited may arrive in any order.

use p9::{Fid, Request};

use crate::session::Session;

/// What a request does with one fid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Looks at the whole, changes nothing.
    Look,
    /// Reads bytes from the first up to, not including, the second.
    Read(u64, u64),
    /// Writes bytes from the first up to, not including, the second.
    Write(u64, u64),
    /// Makes earlier writes durable.
    Sync,
    /// Changes the fid or the file as a whole.
    Change,
}

impl Access {
    fn must_follow(self, earlier: Access) -> bool {
        use Access::{Change, Look, Read, Sync, Write};
        let overlap = |a: u64, b: u64, c: u64, d: u64| a < d && c < b;
        match (self, earlier) {
            (Change, _) | (_, Change) => true,
            (Look | Sync, Write(..)) | (Write(..), Look) => true,
            (Read(a, b) | Write(a, b), Write(c, d)) | (Write(a, b), Read(c, d)) => {
                overlap(a, b, c, d)
            }
            (Look | Read(..) | Sync, Look | Read(..)) => false,
            (Look | Read(..) | Write(..) | Sync, Sync) => false,
        }
    }
}

/// All that a request needs kept in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claims {
    fids: [Option<(Fid, Access)>; 2],
}

impl Claims {
    /// What `request` touches. The session tells what its fids stand for by now.
    pub(crate) fn of(request: &Request<'_>, session: &Session) -> Self {
        use Access::{Change, Look, Sync};
        let one = |fid: &Fid, access| Self { fids: [Some((*fid, access)), None] };
        let two = |a: &Fid, access_a, b: &Fid, access_b| {
            if a == b {
                return one(a, Change);
            }
            Self { fids: [Some((*a, access_a)), Some((*b, access_b))] }
        };
        match request {
            // The receiving thread sees to the order of versions and flushes; authentication is
            // refused whatever comes before.
            Request::Version { .. } | Request::Auth { .. } | Request::Flush { .. } => {
                Self { fids: [None, None] }
            }
            Request::Walk { fid, new_fid, .. } | Request::Xattrwalk { fid, new_fid, .. } => {
                two(fid, Look, new_fid, Change)
            }
            Request::Read { fid, offset, count } => {
                let end = offset.saturating_add(u64::from(*count));
                let by_range = session.reads_by_range(*fid);
                one(fid, if by_range { Access::Read(*offset, end) } else { Change })
            }
            Request::Write { fid, offset, data } => {
                let end = offset.saturating_add(data.0.len() as u64);
                let by_range = session.writes_by_range(*fid);
                one(fid, if by_range { Access::Write(*offset, end) } else { Change })
            }
            Request::Statfs { fid }
            | Request::Getattr { fid, .. }
            | Request::Readlink { fid }
            | Request::Readdir { fid, .. }
            | Request::Stat { fid } => one(fid, Look),
            Request::Fsync { fid, .. } => one(fid, Sync),
            Request::Attach { fid, .. }
            | Request::Clunk { fid }
            | Request::Remove { fid }
            | Request::Lopen { fid, .. }
            | Request::Lcreate { fid, .. }
            | Request::Setattr { fid, .. }
            | Request::Xattrcreate { fid, .. }
            | Request::Lock { fid, .. }
            | Request::Getlock { fid, .. }
            | Request::Open { fid, .. }
            | Request::Create { fid, .. }
            | Request::Wstat { fid, .. } => one(fid, Change),
            Request::Symlink { dir, .. }
            | Request::Mknod { dir, .. }
            | Request::Mkdir { dir, .. }
            | Request::Unlinkat { dir, .. } => one(dir, Change),
            Request::Rename { fid, dir, .. } => two(fid, Change, dir, Change),
            Request::Link { dir, fid, .. } => two(dir, Change, fid, Look),
            Request::Renameat { old_dir, new_dir, .. } => two(old_dir, Change, new_dir, Change),
        }
    }

    /// Whether this request must not begin before `earlier` is done.
    pub(crate) fn must_follow(&self, earlier: &Claims) -> bool {
        self.fids.iter().flatten().any(|(fid, access)| {
            earlier
                .fids
                .iter()
                .flatten()
                .any(|(other, before)| fid == other && access.must_follow(*before))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Access::{self, Change, Look, Read, Sync, Write};

    #[test]
    fn only_what_can_notice_the_other_keeps_its_order() {
        let pairs: [(Access, Access, bool); 14] = [
            (Read(0, 10), Read(0, 10), false),
            (Read(0, 10), Write(5, 6), true),
            (Read(0, 10), Write(10, 20), false),
            (Write(0, 10), Read(9, 20), true),
            (Write(0, 10), Write(9, 20), true),
            (Write(0, 10), Write(10, 20), false),
            (Look, Write(0, 1), true),
            (Write(0, 1), Look, true),
            (Look, Read(0, 1), false),
            (Sync, Write(0, 1), true),
            (Write(0, 1), Sync, false),
            (Read(0, 1), Sync, false),
            (Change, Sync, true),
            (Look, Change, true),
        ];
        for (later, earlier, expected) in pairs {
            assert_eq!(later.must_follow(earlier), expected, "{later:?} after {earlier:?}");
        }
    }
}
