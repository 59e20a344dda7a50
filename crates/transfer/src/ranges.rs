//! Which ranges of which files this process holds locks on.
//!
//! The kernel's locks belong to an open file (fcntl(2), "Open file description locks"): threads that
//! share a descriptor are one owner, so that the lock of one keeps out none of the others, and gives
//! back theirs when it is given back. Before the kernel is asked, threads therefore agree among
//! themselves.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A file by its device and its number there.
pub(crate) type Identity = (u64, u64);

struct Held {
    ranges: Vec<(Identity, Range<u64>)>,
    /// How many threads wait. To wake nobody is a system call, too.
    waiting: usize,
}

static HELD: Mutex<Held> = Mutex::new(Held { ranges: Vec::new(), waiting: 0 });
static GIVEN_BACK: Condvar = Condvar::new();

fn held() -> MutexGuard<'static, Held> {
    // Whole whenever the lock is free.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no thread of this process holds any byte of a range, and takes it.
pub(crate) fn take(file: Identity, range: &Range<u64>) {
    let overlaps = |other: &Range<u64>| other.start < range.end && range.start < other.end;
    let mut held = held();
    while held.ranges.iter().any(|(other, theirs)| *other == file && overlaps(theirs)) {
        held.waiting += 1;
        held = GIVEN_BACK.wait(held).unwrap_or_else(PoisonError::into_inner);
        held.waiting -= 1;
    }
    held.ranges.push((file, range.clone()));
}

/// Gives a range back that was taken.
pub(crate) fn give_back(file: Identity, range: &Range<u64>) {
    let mut held = held();
    let mut ranges = held.ranges.iter();
    if let Some(place) = ranges.position(|(other, mine)| *other == file && mine == range) {
        held.ranges.swap_remove(place);
        if held.waiting > 0 {
            GIVEN_BACK.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_what_overlaps_in_the_same_file_waits() {
        let (first, second) = ((u64::MAX, 1), (u64::MAX, 2));
        take(first, &(10..20));
        take(first, &(20..30));
        take(second, &(10..20));
        let (done, is_done) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                take(first, &(19..21));
                done.send(()).unwrap();
            });
            assert!(is_done.recv_timeout(Duration::from_millis(50)).is_err(), "it did not wait");
            give_back(first, &(10..20));
            assert!(is_done.recv_timeout(Duration::from_millis(50)).is_err(), "it did not wait");
            give_back(first, &(20..30));
            assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(()));
        });
        give_back(first, &(19..21));
        give_back(second, &(10..20));
    }
}
