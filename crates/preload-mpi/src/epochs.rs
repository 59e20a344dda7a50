//! Consistency points of files that a host log carries: the log is told which rank has come to which one.
//!
//! The log keeps what ranks write until all of them have reached the same MPI_File_sync or MPI_File_close. Nothing is
//! waited for here that the MPI library does not wait for itself: a program that calls MPI_File_sync on one rank alone, which
//! many libraries let pass, must not hang with Sluice either. The one exchange among ranks is in MPI_File_open, which is
//! collective in every library.

use std::collections::hash_map::DefaultHasher;
use std::ffi::{CStr, CString, c_int};
use std::hash::{Hash, Hasher};
use std::sync::Mutex;
use std::sync::PoisonError;

use epochs::{Epoch, Group, Notice};
use mpi::{Comm, Mpi};
use rustix::io::Errno;

use crate::{descriptor, names};

/// Set by `sluice run --log` to a text that tells one log from another.
const LOG_VARIABLE: &str = "SLUICE_LOG";

/// What each rank gives to the others: the group if it is the first, its log, and whether that answers.
const RECORD_BYTES: usize = 17;

/// What the ranks agreed on before a file was opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Agreement {
    group: Group,
    rank: u32,
    ranks: u32,
}

/// Why a file is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The ranks have several logs: they run on several nodes.
    SeveralLogs,
    /// The log of a rank does not answer: its agent has ended. If MPI_File_open failed on that rank alone, Open MPI's OMPIO
    /// would wait there for the others, and the others elsewhere for it.
    NoAnswer,
}

/// Agrees with the other ranks of a communicator on a group for the file that they are about to open. `None` where no log
/// can be concerned, which all ranks find in the same way: they were started alike and name the same file (MPI-4.1 §14.2.1).
pub(crate) fn agree(mpi: &Mpi, comm: Comm, name: &CStr) -> Option<Result<Agreement, Refusal>> {
    let log = std::env::var_os(LOG_VARIABLE)?;
    let path = path_of(name)?;
    descriptor::endpoint_of(&path)?;
    let rank = mpi.rank(comm).ok()?;
    let ranks = mpi.size(comm).ok()?;
    let mut hasher = DefaultHasher::new();
    log.hash(&mut hasher);
    let log = hasher.finish();
    let mut record = [0; RECORD_BYTES];
    // The first rank's counts. Should there be no random numbers, the time and the process make one.
    rustix::rand::getrandom(&mut record[..8], rustix::rand::GetRandomFlags::empty()).ok()?;
    record[8..16].copy_from_slice(&log.to_le_bytes());
    record[16] = u8::from(answers(&path));
    let all = mpi.gather_all(comm, &record).ok()?;
    Some(decide(&all, rank, ranks))
}

fn decide(all: &[u8], rank: u32, ranks: u32) -> Result<Agreement, Refusal> {
    let number = |record: &[u8], at: usize| {
        record[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or_default()
    };
    let (records, _) = all.as_chunks::<RECORD_BYTES>();
    let Some(first) = records.first() else { return Err(Refusal::SeveralLogs) };
    if records.iter().any(|record| number(record, 8) != number(first, 8)) {
        return Err(Refusal::SeveralLogs);
    }
    if records.iter().any(|record| record[16] == 0) {
        return Err(Refusal::NoAnswer);
    }
    Ok(Agreement { group: Group(number(first, 0)), rank, ranks })
}

/// Whether the log says anything of a path, through libc, which `libsluice.so` stands before.
fn answers(path: &CStr) -> bool {
    // SAFETY: access(2) with a NUL-terminated string.
    if unsafe { libc::access(path.as_ptr(), libc::F_OK) } == 0 {
        return true;
    }
    let said = [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::LOOP, Errno::NAMETOOLONG];
    Errno::from_io_error(&std::io::Error::last_os_error())
        .is_some_and(|errno| said.contains(&errno))
}

/// The path of a file as the MPI library names it.
fn path_of(name: &CStr) -> Option<CString> {
    names::path_of(name.to_bytes()).and_then(|path| CString::new(path).ok())
}

/// A file that this rank has open as one of a group.
#[derive(Debug)]
pub(crate) struct Member {
    agreement: Agreement,
    path: CString,
    /// The last epoch that was told; `None` once a notice failed: from then on nothing is promised.
    told: Mutex<Option<Epoch>>,
}

impl Agreement {
    /// Joins the group, after the file was opened. `None` if the file is none of a log's.
    pub(crate) fn join(self, name: &CStr) -> Option<Member> {
        let Agreement { group, rank, ranks } = self;
        let path = path_of(name)?;
        let told = match tell(&path, Notice::Join { group, rank, ranks }) {
            Ok(()) => Some(Epoch(0)),
            Err(Errno::OPNOTSUPP | Errno::NODATA | Errno::NOSYS) => return None,
            // The log cannot be reached: what is written may be kept or not, and it must be said.
            Err(_) => None,
        };
        Some(Member { agreement: self, path, told: Mutex::new(told) })
    }
}

impl Member {
    /// Tells that everything written so far belongs to the epoch that ends here. False: the log does not know.
    pub(crate) fn prepare(&self) -> bool {
        self.advance(|group, rank, epoch| Notice::Prepare { group, rank, epoch })
    }

    /// Tells that this rank has closed the file. False: the log does not know.
    pub(crate) fn leave(&self) -> bool {
        self.advance(|group, rank, epoch| Notice::Leave { group, rank, epoch })
    }

    fn advance(&self, notice: impl FnOnce(Group, u32, Epoch) -> Notice) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = *told else { return false };
        let epoch = Epoch(last.0 + 1);
        let Agreement { group, rank, .. } = self.agreement;
        *told = match tell(&self.path, notice(group, rank, epoch)) {
            Ok(()) => Some(epoch),
            // Deleted, while it is open or by MPI_MODE_DELETE_ON_CLOSE: there is nothing to be consistent.
            Err(Errno::NOENT) => Some(epoch),
            Err(_) => None,
        };
        told.is_some()
    }
}

/// Tells the log, through libc, which `libsluice.so` stands before.
fn tell(path: &CStr, notice: Notice) -> Result<(), Errno> {
    let name = CString::new(epochs::NOTICE).map_err(|_| Errno::INVAL)?;
    let value = notice.to_string();
    // SAFETY: setxattr(2) with NUL-terminated strings and a value of the length given.
    let code: c_int = unsafe {
        libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
    };
    match code {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

#[cfg(test)]
mod tests {
    use epochs::Group;

    use super::{Refusal, decide};

    fn records(all: &[(u64, u64, bool)]) -> Vec<u8> {
        let bytes = |(group, log, answers): &(u64, u64, bool)| {
            [&group.to_le_bytes()[..], &log.to_le_bytes(), &[u8::from(*answers)]].concat()
        };
        all.iter().flat_map(bytes).collect()
    }

    #[test]
    fn the_first_rank_names_the_group() {
        let agreed = decide(&records(&[(7, 1, true), (8, 1, true), (9, 1, true)]), 2, 3).unwrap();
        assert_eq!((agreed.group, agreed.rank, agreed.ranks), (Group(7), 2, 3));
    }

    #[test]
    fn ranks_with_several_logs_are_refused() {
        let refused = decide(&records(&[(7, 1, true), (8, 2, true)]), 0, 2);
        assert_eq!(refused.unwrap_err(), Refusal::SeveralLogs);
    }

    #[test]
    fn nobody_opens_where_the_log_of_one_does_not_answer() {
        let refused = decide(&records(&[(7, 1, true), (8, 1, false)]), 0, 2);
        assert_eq!(refused.unwrap_err(), Refusal::NoAnswer);
    }
}
