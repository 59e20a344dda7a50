//! Byte-range locks.

use std::sync::Arc;

use p9::{Errno, LockKind};

use super::Factory;
use super::helpers::{BOTH, READ, WRITE, create, errno, root};
use crate::node::{LockOwner, LockRange, Node, OpenNode};

fn owner(process: u32) -> LockOwner {
    LockOwner { client: b"host".to_vec(), process }
}

fn range(kind: LockKind, start: u64, length: u64) -> LockRange {
    LockRange { kind, start, length }
}

/// Whether `process` gets an exclusive lock on one byte; it keeps it.
fn takes(open: &Arc<dyn OpenNode>, process: u32, byte: u64) -> bool {
    open.lock(&owner(process), range(LockKind::WRITE, byte, 1)).unwrap()
}

/// Whether `process` could have an exclusive lock on one byte.
fn free(open: &Arc<dyn OpenNode>, process: u32, byte: u64) -> bool {
    let wanted = range(LockKind::WRITE, byte, 1);
    open.lock_in_the_way(&owner(process), wanted).unwrap().is_none()
}

fn scene(make: Factory<'_>) -> (Arc<dyn Node>, Arc<dyn OpenNode>) {
    let root = root(make);
    create(&root, "file")
}

pub(super) fn owners_exclude_each_other(make: Factory<'_>) {
    let (node, one) = scene(make);
    let two = node.walk(&[]).unwrap().end.unwrap().open(BOTH).unwrap();
    assert!(one.lock(&owner(1), range(LockKind::WRITE, 10, 10)).unwrap());
    for wanted in [
        range(LockKind::WRITE, 10, 10),
        range(LockKind::READ, 0, 11),
        range(LockKind::READ, 19, 0),
        range(LockKind::WRITE, 0, 0),
    ] {
        assert!(!two.lock(&owner(2), wanted).unwrap());
        let found = two.lock_in_the_way(&owner(2), wanted).unwrap();
        assert_eq!(found, Some((owner(1), range(LockKind::WRITE, 10, 10))));
        assert!(two.lock_in_the_way(&owner(1), wanted).unwrap().is_none());
    }
    // Through the same opening too, when the owner is another.
    assert!(!takes(&one, 2, 15));
    let same_process = LockOwner { client: b"elsewhere".to_vec(), process: 1 };
    assert!(!one.lock(&same_process, range(LockKind::WRITE, 15, 1)).unwrap());
    assert!(takes(&two, 2, 9) && takes(&two, 2, 20));
    assert!(one.lock(&owner(1), range(LockKind::UNLOCK, 0, 0)).unwrap());
    assert!(takes(&two, 2, 15));
    assert!(!takes(&one, 1, 15));
}

pub(super) fn readers_share(make: Factory<'_>) {
    let (_, open) = scene(make);
    assert!(open.lock(&owner(1), range(LockKind::READ, 0, 10)).unwrap());
    assert!(open.lock(&owner(2), range(LockKind::READ, 5, 10)).unwrap());
    assert!(!takes(&open, 1, 5));
    assert!(takes(&open, 1, 4));
    assert!(!takes(&open, 3, 14));
    assert!(open.lock(&owner(1), range(LockKind::UNLOCK, 0, 0)).unwrap());
    assert!(takes(&open, 2, 5));
}

pub(super) fn an_owner_replaces_its_own_locks(make: Factory<'_>) {
    let (_, open) = scene(make);
    let one = owner(1);
    assert!(open.lock(&one, range(LockKind::WRITE, 0, 30)).unwrap());
    assert!(open.lock(&one, range(LockKind::UNLOCK, 10, 10)).unwrap());
    assert!(!free(&open, 2, 9) && free(&open, 2, 10) && free(&open, 2, 19) && !free(&open, 2, 20));
    assert!(open.lock(&one, range(LockKind::READ, 5, 20)).unwrap());
    let way = |kind, start| open.lock_in_the_way(&owner(2), range(kind, start, 1)).unwrap();
    assert!(way(LockKind::READ, 4).is_some());
    assert!(way(LockKind::READ, 5).is_none() && way(LockKind::WRITE, 5).is_some());
    assert!(way(LockKind::READ, 24).is_none() && way(LockKind::READ, 25).is_some());
    assert!(way(LockKind::WRITE, 30).is_none());
}

pub(super) fn a_lock_without_length_reaches_past_the_end(make: Factory<'_>) {
    let (_, open) = scene(make);
    assert!(open.lock(&owner(1), range(LockKind::WRITE, 100, 0)).unwrap());
    assert!(free(&open, 2, 99) && !free(&open, 2, 100) && !free(&open, 2, i64::MAX as u64));
    let found = open.lock_in_the_way(&owner(2), range(LockKind::READ, 1 << 50, 1)).unwrap();
    assert_eq!(found, Some((owner(1), range(LockKind::WRITE, 100, 0))));
}

pub(super) fn locks_end_with_the_last_opening_that_took_them(make: Factory<'_>) {
    let (node, watching) = scene(make);
    let open = || node.walk(&[]).unwrap().end.unwrap().open(BOTH).unwrap();
    let (one, two, three) = (open(), open(), open());
    assert!(takes(&one, 1, 0) && takes(&two, 1, 1) && takes(&two, 2, 2));
    // An opening that took none ends none.
    drop(three);
    assert!(!free(&watching, 9, 0) && !free(&watching, 9, 1) && !free(&watching, 9, 2));
    drop(one);
    assert!(!free(&watching, 9, 0) && !free(&watching, 9, 1));
    drop(two);
    assert!(free(&watching, 9, 0) && free(&watching, 9, 1) && free(&watching, 9, 2));
    assert!(takes(&watching, 3, 0));
}

pub(super) fn locks_need_the_access_that_they_protect(make: Factory<'_>) {
    let (node, _) = scene(make);
    let (reading, writing) = (node.open(READ).unwrap(), node.open(WRITE).unwrap());
    let (read, write) = (range(LockKind::READ, 0, 1), range(LockKind::WRITE, 0, 1));
    assert_eq!(errno(reading.lock(&owner(1), write)), Errno::EBADF);
    assert_eq!(errno(writing.lock(&owner(1), read)), Errno::EBADF);
    assert!(reading.lock(&owner(1), read).unwrap());
    assert!(!writing.lock(&owner(2), write).unwrap());
    assert!(writing.lock(&owner(1), write).unwrap());
}

pub(super) fn impossible_ranges_are_refused(make: Factory<'_>) {
    let (_, open) = scene(make);
    let try_out = |wanted| {
        let told = errno(open.lock_in_the_way(&owner(1), wanted));
        assert_eq!(errno(open.lock(&owner(1), wanted)), told);
        told
    };
    assert_eq!(try_out(range(LockKind::WRITE, u64::MAX, 1)), Errno::EINVAL);
    assert_eq!(try_out(range(LockKind::WRITE, 1 << 62, (1 << 62) + 1)), Errno::EOVERFLOW);
    assert_eq!(try_out(range(LockKind::WRITE, 1, u64::MAX)), Errno::EOVERFLOW);
    assert_eq!(try_out(range(LockKind(9), 0, 1)), Errno::EINVAL);
    assert!(free(&open, 2, 0));
}
