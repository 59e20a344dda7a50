//! What the ranks of an MPI job tell the host log about the consistency points of a file that they share.
//!
//! Pure: the names of extended attributes and the texts that are set as their values. They travel by setxattr(2) from
//! `libsluice_mpi.so`, through `libsluice.so` and 9P, to the service that keeps the log, so that none of the three has
//! to know of the others more than of any file.
//!
//! 1. MPI_File_open: before it, the ranks agree on a [`Group`]. After it, each sets [`Notice::Join`] on the file.
//!    From then on `fsync` and `close` make data durable, and no more.
//! 2. MPI_File_sync: when the MPI library has done its part, each rank sets [`Notice::Prepare`] with the number of the
//!    epoch that its writes so far belong to. Nobody waits for anybody: with the last rank's notice the epoch is
//!    committed.
//! 3. MPI_File_close: [`Notice::Leave`] is a `Prepare` after which the rank writes no more. With the last one everything
//!    is committed and the group is over.
//!
//! Where ranks run on several nodes, the node that keeps the order of all is told by the others where the bytes are that
//! they have kept themselves ([`Extent`]).
#![forbid(unsafe_code)]

mod elsewhere;

use std::fmt;

pub use elsewhere::{ELSEWHERE, Extent, Standing};

/// The attribute that a [`Notice`] is set as.
pub const NOTICE: &[u8] = b"user.sluice.epoch";

/// The attribute in which a log says which one it is: two ranks that read the same text have the same log. A file of a
/// place that keeps no log does not have it.
pub const LOG: &[u8] = b"user.sluice.log";

/// The ranks that opened a file together: a number that no other group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(pub u64);

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A consistency point of a group's file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// What a rank tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// It has opened the file.
    Join {
        /// With whom.
        group: Group,
        /// Which one it is, from 0.
        rank: u32,
        /// Of how many.
        ranks: u32,
    },
    /// What it has written so far belongs to this epoch, or to an earlier one.
    Prepare {
        /// The group.
        group: Group,
        /// Which rank it is.
        rank: u32,
        /// The epoch.
        epoch: Epoch,
    },
    /// It has closed the file.
    Leave {
        /// The group.
        group: Group,
        /// Which rank it is.
        rank: u32,
        /// The epoch that its last writes belong to.
        epoch: Epoch,
    },
}

/// A text that is no [`Notice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is no notice of an epoch")]
pub struct Malformed;

impl Notice {
    /// The group that it is about.
    #[must_use]
    pub fn group(&self) -> Group {
        match *self {
            Notice::Join { group, .. }
            | Notice::Prepare { group, .. }
            | Notice::Leave { group, .. } => group,
        }
    }

    /// Reads the value of [`NOTICE`].
    ///
    /// # Errors
    /// [`Malformed`], also where a rank is not one of the group's.
    pub fn parse(text: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(text).map_err(|_| Malformed)?;
        let fields: Vec<&str> = text.split(' ').collect();
        let [word, group, rank, last] = fields[..] else { return Err(Malformed) };
        let is_plain = |text: &str| !text.starts_with('+');
        if !is_plain(rank) || !is_plain(last) || !is_plain(group) || group.len() != 16 {
            return Err(Malformed);
        }
        let group = Group(u64::from_str_radix(group, 16).map_err(|_| Malformed)?);
        let rank: u32 = rank.parse().map_err(|_| Malformed)?;
        let last: u64 = last.parse().map_err(|_| Malformed)?;
        let epoch = Epoch(last);
        match word {
            "join" => match u32::try_from(last) {
                Ok(ranks) if rank < ranks => Ok(Notice::Join { group, rank, ranks }),
                _ => Err(Malformed),
            },
            "prepare" if last > 0 => Ok(Notice::Prepare { group, rank, epoch }),
            "leave" if last > 0 => Ok(Notice::Leave { group, rank, epoch }),
            _ => Err(Malformed),
        }
    }
}

impl fmt::Display for Notice {
    /// The value of [`NOTICE`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Join { group, rank, ranks } => write!(f, "join {group} {rank} {ranks}"),
            Notice::Prepare { group, rank, epoch } => {
                write!(f, "prepare {group} {rank} {}", epoch.0)
            }
            Notice::Leave { group, rank, epoch } => write!(f, "leave {group} {rank} {}", epoch.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn notice() -> impl Strategy<Value = Notice> {
        let numbers = (any::<u64>(), any::<u32>(), 1u64..);
        (0..3, numbers).prop_map(|(kind, (group, rank, epoch))| {
            let (group, epoch) = (Group(group), Epoch(epoch));
            match kind {
                0 => Notice::Join { group, rank: rank / 2, ranks: rank / 2 + 1 },
                1 => Notice::Prepare { group, rank, epoch },
                _ => Notice::Leave { group, rank, epoch },
            }
        })
    }

    proptest! {
        #[test]
        fn a_notice_arrives_as_it_was_sent(notice in notice()) {
            prop_assert_eq!(Notice::parse(notice.to_string().as_bytes()), Ok(notice));
        }

        #[test]
        fn only_what_would_be_written_is_read(text in "(join|leave|prepare|x) ?[0-9a-f+ ]{0,40}") {
            if let Ok(notice) = Notice::parse(text.as_bytes()) {
                prop_assert_eq!(Notice::parse(notice.to_string().as_bytes()), Ok(notice));
            }
        }
    }

    #[test]
    fn what_is_no_notice_is_refused() {
        for text in [
            "",
            "join",
            "join 0123456789abcdef 4 4",
            "join 0123456789abcdef 0 0",
            "join 0123456789abcdef 0 4 ",
            "join 123 0 4",
            "prepare 0123456789abcdef 0 0",
            "prepare 0123456789abcdef +1 1",
            "commit 0123456789abcdef 0 1",
            "leave 0123456789abcdef -1 1",
        ] {
            assert_eq!(Notice::parse(text.as_bytes()), Err(Malformed), "{text}");
        }
    }
}
