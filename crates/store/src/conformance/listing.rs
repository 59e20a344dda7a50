//! Listing directories.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use p9::{Errno, OpenFlags, QidType};

use super::Factory;
use super::helpers::{READ, create, directory, errno, file, list, root};
use crate::node::{Node, OpenNode};

/// The next `count` names from a cookie, and the cookie behind them.
fn some(open: &Arc<dyn OpenNode>, mut cookie: u64, count: usize) -> (Vec<Vec<u8>>, u64) {
    let mut names = Vec::new();
    open.read_directory(cookie, &mut |entry| {
        if names.len() == count {
            return false;
        }
        assert!(names.len() < 100_000, "the listing does not end");
        names.push(entry.name.to_vec());
        cookie = entry.offset;
        true
    })
    .expect("list");
    (names, cookie)
}

fn many(root: &Arc<dyn Node>, count: usize) -> BTreeSet<Vec<u8>> {
    (0..count)
        .map(|n| {
            let name = format!("a-name-of-some-length-{n}");
            create(root, &name);
            name.into_bytes()
        })
        .collect()
}

pub(super) fn a_listing_has_every_entry_once(make: Factory<'_>) {
    let root = root(make);
    directory(&root, "dir");
    file(&root, "file", b"");
    root.make_symlink(b"link", b"x").unwrap();
    let kinds: BTreeMap<Vec<u8>, (QidType, u8)> =
        list(&root).into_iter().map(|(name, (qid, _, kind))| (name, (qid.kind, kind))).collect();
    let expected = [
        (&b"."[..], QidType::DIR, 4),
        (b"..", QidType::DIR, 4),
        (b"dir", QidType::DIR, 4),
        (b"file", QidType::empty(), 8),
        (b"link", QidType::SYMLINK, 10),
    ];
    let expected = expected.map(|(name, qid, kind)| (name.to_vec(), (qid, kind)));
    assert_eq!(kinds, BTreeMap::from(expected));
    let names = many(&root, 1500);
    assert_eq!(list(&root).len(), 1505);
    assert!(names.iter().all(|name| root.walk(&[name]).is_ok()));
}

pub(super) fn a_listing_goes_on_from_any_cookie(make: Factory<'_>) {
    let root = root(make);
    many(&root, 700);
    let open = root.open(OpenFlags::DIRECTORY).unwrap();
    let (all, _) = some(&open, 0, usize::MAX);
    assert_eq!(all.len(), 702);
    let mut cookies = vec![0];
    let mut pieces = Vec::new();
    while let (names, cookie) = some(&open, *cookies.last().unwrap(), 37)
        && !names.is_empty()
    {
        pieces.extend(names);
        cookies.push(cookie);
    }
    assert_eq!(pieces, all);
    // Back, and in another opening.
    let other = root.open(READ).unwrap();
    for n in [3, 1, 15, 0, 7] {
        for open in [&open, &other] {
            let (names, _) = some(open, cookies[n], 37);
            assert_eq!(names, all[n * 37..(n + 1) * 37]);
        }
    }
    let (last, cookie) = some(&open, cookies[cookies.len() - 2], usize::MAX);
    assert_eq!(last, all[(cookies.len() - 2) * 37..]);
    assert_eq!(some(&open, cookie, 1).0, Vec::<Vec<u8>>::new(), "behind the last is nothing");
}

pub(super) fn removing_what_was_listed_skips_nothing(make: Factory<'_>) {
    let root = root(make);
    let mut left = many(&root, 1000);
    let open = root.open(READ).unwrap();
    let mut cookie = 0;
    loop {
        let (names, next) = some(&open, cookie, 23);
        if names.is_empty() {
            break;
        }
        cookie = next;
        for name in names.iter().filter(|name| !name.starts_with(b".")) {
            root.remove(name, false).unwrap();
            assert!(left.remove(name), "an entry came twice");
        }
    }
    assert!(left.is_empty(), "{} entries were skipped", left.len());
    assert_eq!(list(&root).len(), 2);
}

pub(super) fn what_stays_is_listed_once_while_others_come_and_go(make: Factory<'_>) {
    let root = root(make);
    let stay = many(&root, 300);
    let open = root.open(READ).unwrap();
    let mut seen = BTreeMap::<Vec<u8>, usize>::new();
    let (mut cookie, mut round) = (0, 0);
    loop {
        let (names, next) = some(&open, cookie, 11);
        if names.is_empty() || round > 1000 {
            break;
        }
        cookie = next;
        for name in names {
            *seen.entry(name).or_default() += 1;
        }
        if round < 40 {
            create(&root, &format!("passing-{round}"));
            if round % 3 == 0 {
                let _ = root.remove(format!("passing-{}", round / 2).as_bytes(), false);
            }
        }
        round += 1;
    }
    for name in stay {
        assert_eq!(seen.get(&name), Some(&1), "{} came not once", name.escape_ascii());
    }
}

pub(super) fn only_directories_are_listed(make: Factory<'_>) {
    let root = root(make);
    let (_, open) = create(&root, "file");
    assert_eq!(errno(open.read_directory(0, &mut |_| true)), Errno::ENOTDIR);
    // One that was removed is none any more (getdents64(2)).
    let dir = directory(&root, "dir");
    let open = dir.open(READ).unwrap();
    root.remove(b"dir", true).unwrap();
    assert_eq!(errno(open.read_directory(0, &mut |_| true)), Errno::ENOENT);
}
