//! Every request of 9P2000.L, against a real directory.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use common::{Client, Fixture, ROOT, pattern, walk};
use p9::{
    Data, DirEntries, Errno, Fid, GetattrMask, LockKind, LockStatus, OpenFlags, Optional, QidType,
    Reply, Request, SetAttributes, SetattrMask, Time,
};

const F: Fid = Fid(1);
const G: Fid = Fid(2);

#[test]
fn version_is_negotiated_down_and_begins_anew() {
    let fixture = Fixture::new();
    let mut client = fixture.connect();
    let big = Request::Version { msize: u32::MAX, version: b"9P2000.L" };
    let most = (4 << 20) + 24;
    assert_eq!(client.call(&big).reply(), Reply::Version { msize: most, version: b"9P2000.L" });
    client.begin("9P2000.L", 8192);
    assert_eq!(client.walk(ROOT, F, &[]).header.kind, 111);
    client.begin("9P2000.L", 8192);
    assert_eq!(client.refused(&Request::Clunk { fid: F }), Errno::EBADF);
}

#[test]
fn unknown_versions_and_extensions_are_answered_as_the_manual_says() {
    let fixture = Fixture::new();
    let mut client = fixture.connect();
    for (asked, answered) in [
        ("9P2000.L", "9P2000.L"),
        ("9P2000.L.sluice", "9P2000.L.sluice"),
        ("9P2000.L.other", "9P2000.L"),
        ("9P2000.u", "9P2000"),
        ("9P3000", "unknown"),
        ("", "unknown"),
    ] {
        let answer = client.call(&Request::Version { msize: 8192, version: asked.as_bytes() });
        assert_eq!(
            answer.reply(),
            Reply::Version { msize: 8192, version: answered.as_bytes() },
            "{asked}"
        );
    }
    let too_small = client.call(&Request::Version { msize: 100, version: b"9P2000.L" });
    assert_eq!(too_small.reply(), Reply::Version { msize: 100, version: b"unknown" });
}

#[test]
fn authentication_is_refused_with_enoent() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let request = Request::Auth { afid: F, uname: b"root", aname: b"", uid: Optional(Some(0)) };
    assert_eq!(client.refused(&request), Errno::ENOENT);
}

#[test]
fn attach_goes_to_a_subtree_and_stays_there() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("a/b")).unwrap();
    fs::write(fixture.path("outside"), "x").unwrap();
    let mut client = fixture.client();
    for (fid, tree) in [(10, "a/b"), (11, "/a/b"), (12, "/a//b/")] {
        let answer = client.attach(Fid(fid), tree);
        assert!(matches!(answer.reply(), Reply::Attach { .. }), "{tree}");
    }
    assert_eq!(client.attach(Fid(13), "a/missing").errno(), Some(Errno::ENOENT));
    assert_eq!(client.attach(Fid(10), "a").errno(), Some(Errno::EBADF));
    // `..` stops at the attach point, not at the store's root.
    client.done(&walk(Fid(10), F, &["..", ".."]));
    assert_eq!(client.walk(F, G, &["outside"]).errno(), Some(Errno::ENOENT));
    assert_eq!(client.walk(F, G, &["a"]).errno(), Some(Errno::ENOENT));
}

#[test]
fn walks_whole_partial_and_cloning() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.path("a/b")).unwrap();
    fs::write(fixture.path("a/b/file"), "x").unwrap();
    let mut client = fixture.client();
    let qids = |client: &mut Client, new_fid: Fid, names: &[&str]| match client
        .walk(ROOT, new_fid, names)
        .reply()
    {
        Reply::Walk { qids } => Ok(qids.as_slice().len()),
        Reply::Lerror { errno } => Err(errno),
        other => panic!("{other:?}"),
    };
    assert_eq!(qids(&mut client, F, &["a", "b", "file"]), Ok(3));
    assert_eq!(qids(&mut client, F, &["a"]), Err(Errno::EBADF), "fid in use");
    assert_eq!(qids(&mut client, G, &["a", "missing", "x"]), Ok(1));
    assert_eq!(client.refused(&Request::Clunk { fid: G }), Errno::EBADF, "partial: no new fid");
    assert_eq!(qids(&mut client, G, &["missing"]), Err(Errno::ENOENT));
    assert_eq!(qids(&mut client, G, &["a/b"]), Err(Errno::EINVAL));
    assert_eq!(qids(&mut client, G, &["a", "b/file"]), Ok(1));
    assert_eq!(qids(&mut client, G, &["a", "..", "a", "b"]), Ok(4));
    assert_eq!(qids(&mut client, Fid(3), &[]), Ok(0));
    assert_eq!(qids(&mut client, Fid(4), &[".", "a", "."]), Ok(3));
    assert_eq!(qids(&mut client, Fid(5), &["a", "b", "file", "."]), Ok(3));
    // A walk to itself moves the fid.
    client.done(&walk(G, G, &["file"]));
    assert_eq!(client.size(G), 1);
}

#[test]
fn symbolic_links_are_nodes_not_ways() {
    let fixture = Fixture::new();
    symlink("/etc", fixture.path("way")).unwrap();
    let mut client = fixture.client();
    let Reply::Walk { qids } = client.walk(ROOT, F, &["way"]).reply() else { panic!() };
    assert!(qids.as_slice()[0].kind.contains(QidType::SYMLINK));
    let answer = client.done(&Request::Readlink { fid: F });
    assert_eq!(answer.reply(), Reply::Readlink { target: b"/etc" });
    let Reply::Walk { qids } = client.walk(ROOT, G, &["way", "passwd"]).reply() else { panic!() };
    assert_eq!(qids.as_slice().len(), 1);
}

#[test]
fn created_file_is_written_and_read_at_all_sizes() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.create(F, "data");
    let data = pattern(900_000);
    let mut offset = 0;
    // Below and above the limits of batching, of streaming, of sendfile.
    for len in [1, 4096, 30_000, 65_500, 65_536, 70_001, 300_000, 200_000] {
        let part = &data[offset..offset + len];
        assert_eq!(client.write(F, offset as u64, part), len as u32);
        assert_eq!(client.read(F, offset as u64, len as u32), part, "{len}");
        offset += len;
    }
    assert_eq!(fs::read(fixture.path("data")).unwrap(), data[..offset]);
    assert_eq!(client.read(F, 0, 800_000), data[..offset.min(800_000)]);
    assert_eq!(client.read(F, offset as u64 - 10, 100_000), data[offset - 10..offset]);
    assert_eq!(client.read(F, offset as u64, 100_000), b"");
    assert_eq!(client.read(F, 0, 0), b"");
    // A count beyond the message size gets what fits.
    assert_eq!(client.read(F, 0, u32::MAX).len(), offset.min((1 << 20) - 11));
    assert_eq!(
        client.refused(&Request::Read { fid: F, offset: 1 << 63, count: 10 }),
        Errno::EINVAL
    );
    let huge = vec![0; 100_000];
    let beyond = Request::Write { fid: F, offset: u64::MAX - 5, data: Data(&huge) };
    assert_eq!(client.refused(&beyond), Errno::EFBIG);
    assert_eq!(client.size(F), offset as u64, "still in step");
}

#[test]
fn access_is_that_of_the_open() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "hello").unwrap();
    let mut client = fixture.client();
    let read = Request::Read { fid: F, offset: 0, count: 10 };
    let write = Request::Write { fid: F, offset: 0, data: Data(b"x") };
    client.walk(ROOT, F, &["f"]);
    assert_eq!(client.refused(&read), Errno::EBADF, "not open");
    assert_eq!(client.refused(&Request::Fsync { fid: F, data_only: Optional(None) }), Errno::EBADF);
    client.done(&Request::Lopen { fid: F, flags: OpenFlags::empty() });
    assert_eq!(client.refused(&write), Errno::EBADF);
    assert_eq!(
        client.refused(&Request::Lopen { fid: F, flags: OpenFlags::empty() }),
        Errno::EBADF,
        "open twice"
    );
    client.done(&Request::Clunk { fid: F });
    client.open(F, "f", OpenFlags::WRITE_ONLY);
    assert_eq!(client.refused(&read), Errno::EBADF);
    let large = vec![b'y'; 200_000];
    client.done(&write);
    client.done(&Request::Write { fid: F, offset: 0, data: Data(&large) });
    client.done(&Request::Clunk { fid: F });
    client.open(F, "f", OpenFlags::empty());
    let refused = client.refused(&Request::Write { fid: F, offset: 0, data: Data(&large) });
    assert_eq!(refused, Errno::EBADF);
    assert_eq!(client.read(F, 0, 3), b"yyy");
}

#[test]
fn large_writes_arrive_whole_in_whatever_pieces() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.create(F, "f");
    // Single bytes fill any pipe by their number; others end within pages.
    for (round, piece) in [1, 999, 70_001, 300_000].into_iter().enumerate() {
        let data: Vec<u8> = pattern(150_000).iter().map(|byte| byte ^ piece as u8).collect();
        let offset = 777 * round as u64;
        for half in data.chunks(75_000) {
            let mut frame = Vec::new();
            let at = offset + if half == &data[..75_000] { 0 } else { 75_000 };
            let request = Request::Write { fid: F, offset: at, data: Data(half) };
            request.encode(p9::Tag(9), &mut frame);
            frame.chunks(piece).for_each(|piece| client.send_bytes(piece));
            let answer = client.receive();
            assert_eq!(answer.reply(), Reply::Write { count: 75_000 });
        }
        let now = fs::read(fixture.path("f")).unwrap();
        assert!(now[offset as usize..] == data, "in pieces of {piece} bytes");
        assert_eq!(client.size(F), offset + 150_000);
    }
}

#[test]
fn appends_stay_whole_and_go_to_the_end() {
    let fixture = Fixture::new();
    fs::write(fixture.path("log"), "begin").unwrap();
    let mut client = fixture.client();
    client.open(F, "log", OpenFlags::WRITE_ONLY | OpenFlags::APPEND);
    let large = pattern(150_000);
    assert_eq!(client.write(F, 0, b"-small-"), 7);
    assert_eq!(client.write(F, 0, &large), 150_000);
    let now = fs::read(fixture.path("log")).unwrap();
    assert_eq!(&now[..12], b"begin-small-");
    assert_eq!(now[12..], large);
}

#[test]
fn truncate_and_exclusive() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "hello").unwrap();
    let mut client = fixture.client();
    client.walk(ROOT, F, &[]);
    let create = |flags| Request::Lcreate { fid: F, name: b"f", flags, mode: 0o600, gid: 0 };
    assert_eq!(
        client.refused(&create(OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY)),
        Errno::EEXIST
    );
    client.done(&create(OpenFlags::WRITE_ONLY));
    assert_eq!(client.size(F), 5);
    client.open(G, "f", OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE);
    assert_eq!(client.size(F), 0);
}

#[test]
fn attributes_are_told_and_set() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "hello").unwrap();
    let mut client = fixture.client();
    client.walk(ROOT, F, &["f"]);
    let set = SetAttributes {
        valid: SetattrMask::MODE | SetattrMask::SIZE | SetattrMask::MTIME | SetattrMask::MTIME_SET,
        mode: 0o640,
        size: 3,
        mtime: Time { seconds: 1_000_000, nanoseconds: 5 },
        ..SetAttributes::default()
    };
    client.done(&Request::Setattr { fid: F, set });
    let answer = client.done(&Request::Getattr { fid: F, mask: GetattrMask::BASIC });
    let Reply::Getattr { attributes } = answer.reply() else { panic!() };
    let meta = fs::metadata(fixture.path("f")).unwrap();
    assert_eq!(attributes.mode, meta.mode());
    assert_eq!(attributes.mode & 0o777, 0o640);
    assert_eq!((attributes.size, meta.len()), (3, 3));
    assert_eq!(attributes.mtime, Time { seconds: 1_000_000, nanoseconds: 5 });
    assert_eq!(u64::from(attributes.uid), u64::from(meta.uid()));
    // Through a fid that is open for reading only, the size can be set like by truncate(2).
    client.done(&Request::Lopen { fid: F, flags: OpenFlags::empty() });
    let set = SetAttributes { valid: SetattrMask::SIZE, size: 1, ..SetAttributes::default() };
    client.done(&Request::Setattr { fid: F, set });
    assert_eq!(client.size(F), 1);
}

#[test]
fn open_files_outlive_their_names() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "hello").unwrap();
    let mut client = fixture.client();
    client.open(F, "f", OpenFlags::READ_WRITE);
    fs::remove_file(fixture.path("f")).unwrap();
    assert_eq!(client.read(F, 0, 10), b"hello");
    assert_eq!(client.size(F), 5);
    let set = SetAttributes { valid: SetattrMask::SIZE, size: 2, ..SetAttributes::default() };
    client.done(&Request::Setattr { fid: F, set });
    assert_eq!(client.read(F, 0, 10), b"he");
}

#[test]
fn directories_are_listed_whole_in_any_portions() {
    let fixture = Fixture::new();
    let mut expected: Vec<String> = (0..300).map(|i| format!("file-{i}")).collect();
    for name in &expected {
        fs::write(fixture.path(name), "").unwrap();
    }
    expected.extend([".".to_owned(), "..".to_owned()]);
    expected.sort();
    let mut client = fixture.client();
    client.walk(ROOT, F, &[]);
    client.done(&Request::Lopen { fid: F, flags: OpenFlags::DIRECTORY });
    for count in [64, 1000, 100_000] {
        let mut names = Vec::new();
        let mut offset = 0;
        loop {
            let answer = client.done(&Request::Readdir { fid: F, offset, count });
            let Reply::Readdir { data } = answer.reply() else { panic!() };
            assert!(data.0.len() <= count as usize);
            if data.0.is_empty() {
                break;
            }
            for entry in DirEntries::new(data.0) {
                let entry = entry.unwrap();
                names.push(String::from_utf8(entry.name.to_vec()).unwrap());
                offset = entry.offset;
            }
        }
        names.sort();
        assert_eq!(names, expected, "{count}");
    }
    let small = Request::Readdir { fid: F, offset: 0, count: 10 };
    assert_eq!(client.refused(&small), Errno::EINVAL);
    assert_eq!(client.refused(&Request::Read { fid: F, offset: 0, count: 10 }), Errno::EISDIR);
    client.open(G, "file-0", OpenFlags::empty());
    let file = Request::Readdir { fid: G, offset: 0, count: 100 };
    assert_eq!(client.refused(&file), Errno::ENOTDIR);
}

#[test]
fn names_are_made_moved_and_removed() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.done(&Request::Mkdir { dir: ROOT, name: b"d", mode: 0o750, gid: 0 });
    let meta = fs::metadata(fixture.path("d")).unwrap();
    assert!(meta.is_dir() && meta.permissions().mode() & 0o777 == 0o750);
    client.done(&Request::Symlink { dir: ROOT, name: b"s", target: b"d/f", gid: 0 });
    assert_eq!(fs::read_link(fixture.path("s")).unwrap().to_str(), Some("d/f"));
    fs::write(fixture.path("f"), "hello").unwrap();
    client.walk(ROOT, F, &["f"]);
    client.walk(ROOT, G, &["d"]);
    client.done(&Request::Link { dir: G, fid: F, name: b"hard" });
    assert_eq!(fs::metadata(fixture.path("d/hard")).unwrap().nlink(), 2);
    client.done(&Request::Rename { fid: F, dir: G, name: b"moved" });
    assert!(fixture.path("d/moved").exists() && !fixture.path("f").exists());
    client.done(&Request::Renameat {
        old_dir: G,
        old_name: b"moved",
        new_dir: ROOT,
        new_name: b"back",
    });
    assert!(fixture.path("back").exists());
    let busy = Request::Unlinkat { dir: ROOT, name: b"d", flags: p9::UNLINK_DIRECTORY };
    assert_eq!(client.refused(&busy), Errno::ENOTEMPTY);
    let wrong = Request::Unlinkat { dir: ROOT, name: b"d", flags: 0 };
    assert_eq!(client.refused(&wrong), Errno::EISDIR);
    client.done(&Request::Unlinkat { dir: G, name: b"hard", flags: 0 });
    client.done(&busy);
    // Remove takes the fid along, whether it succeeds or not.
    client.done(&Request::Remove { fid: F });
    assert!(!fixture.path("back").exists());
    assert_eq!(client.refused(&Request::Clunk { fid: F }), Errno::EBADF);
    assert!(client.call(&Request::Remove { fid: G }).errno().is_some());
    assert_eq!(client.refused(&Request::Clunk { fid: G }), Errno::EBADF);
    for name in [&b"."[..], b"..", b"a/b", b"nul\0"] {
        let mkdir = Request::Mkdir { dir: ROOT, name, mode: 0o755, gid: 0 };
        assert_eq!(client.refused(&mkdir), Errno::EINVAL, "{}", name.escape_ascii());
    }
    let device =
        Request::Mknod { dir: ROOT, name: b"null", mode: 0o020_666, major: 1, minor: 3, gid: 0 };
    assert_eq!(client.refused(&device), Errno::EOPNOTSUPP);
}

#[test]
fn statfs_and_fsync_answer() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let answer = client.done(&Request::Statfs { fid: ROOT });
    let Reply::Statfs { statfs } = answer.reply() else { panic!() };
    assert!(statfs.blocks > 0 && statfs.name_max >= 255);
    client.create(F, "f");
    for data_only in [None, Some(0), Some(1)] {
        client.done(&Request::Fsync { fid: F, data_only: Optional(data_only) });
    }
}

#[test]
fn locks_of_two_clients_exclude_each_other() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "hello").unwrap();
    let (mut one, mut two) = (fixture.client(), fixture.client());
    one.open(F, "f", OpenFlags::READ_WRITE);
    two.open(F, "f", OpenFlags::READ_WRITE);
    // Both call themselves the same, and are told apart nevertheless.
    let lock = |kind, start, length| Request::Lock {
        fid: F,
        kind,
        flags: p9::LOCK_FLAG_BLOCK,
        start,
        length,
        process: 7,
        client: b"host",
    };
    let status = |client: &mut Client, request: &Request<'_>| match client.done(request).reply() {
        Reply::Lock { status } => status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status(&mut one, &lock(LockKind::WRITE, 0, 10)), LockStatus::SUCCESS);
    assert_eq!(status(&mut two, &lock(LockKind::WRITE, 5, 10)), LockStatus::BLOCKED);
    assert_eq!(status(&mut two, &lock(LockKind::READ, 10, 10)), LockStatus::SUCCESS);
    let ask = Request::Getlock {
        fid: F,
        kind: LockKind::WRITE,
        start: 0,
        length: 0,
        process: 7,
        client: b"host",
    };
    let answer = two.done(&ask);
    let Reply::Getlock { kind, start, length, process, client } = answer.reply() else { panic!() };
    assert_eq!((kind, start, length, process, client), (LockKind::WRITE, 0, 10, 7, &b"host"[..]));
    assert_eq!(two.refused(&lock(LockKind(9), 0, 1)), Errno::EINVAL);
    assert_eq!(two.refused(&lock(LockKind::READ, u64::MAX, 2)), Errno::EINVAL);
    assert_eq!(two.refused(&lock(LockKind::READ, 2, i64::MAX as u64)), Errno::EOVERFLOW);
    assert_eq!(status(&mut one, &lock(LockKind::READ, i64::MAX as u64, 1)), LockStatus::SUCCESS);
    // The end of a connection ends its locks.
    drop(one);
    common::until(|| fixture.running.counters().connections == 1);
    assert_eq!(status(&mut two, &lock(LockKind::WRITE, 5, 10)), LockStatus::SUCCESS);
}

#[test]
fn extended_attributes_travel_through_fids() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "hello").unwrap();
    let mut client = fixture.client();
    client.walk(ROOT, F, &["f"]);
    let create = |fid, size, flags| Request::Xattrcreate { fid, name: b"user.note", size, flags };
    client.walk(F, G, &[]);
    client.done(&create(G, 5, 0));
    assert_eq!(client.write(G, 0, b"val"), 3);
    let early = Request::Write { fid: G, offset: 0, data: Data(b"xx") };
    assert_eq!(client.refused(&early), Errno::EINVAL);
    let much = Request::Write { fid: G, offset: 3, data: Data(b"uuuu") };
    assert_eq!(client.refused(&much), Errno::ENOSPC);
    assert_eq!(client.write(G, 3, b"ue"), 2);
    let answer = client.call(&Request::Clunk { fid: G });
    if answer.errno() == Some(Errno::EOPNOTSUPP) {
        eprintln!("skipped: the file system here has no extended attributes");
        return;
    }
    assert_eq!(answer.header.kind, 121, "{:?}", answer.reply());
    let walk_to = |name: &'static [u8]| Request::Xattrwalk { fid: F, new_fid: G, name };
    let answer = client.done(&walk_to(b"user.note"));
    assert_eq!(answer.reply(), Reply::Xattrwalk { size: 5 });
    assert_eq!(client.read(G, 0, 100), b"value");
    assert_eq!(client.read(G, 2, 2), b"lu");
    assert_eq!(client.read(G, 9, 2), b"");
    client.done(&Request::Clunk { fid: G });
    client.done(&walk_to(b""));
    assert!(client.read(G, 0, 1000).windows(10).any(|name| name == b"user.note\0"));
    client.done(&Request::Clunk { fid: G });
    assert_eq!(client.refused(&walk_to(b"user.none")), Errno::ENODATA);
    // What was not delivered in full is not set, and the clunk says so.
    client.walk(F, G, &[]);
    client.done(&create(G, 5, 0));
    client.write(G, 0, b"x");
    assert_eq!(client.refused(&Request::Clunk { fid: G }), Errno::EINVAL);
    assert_eq!(client.refused(&Request::Clunk { fid: G }), Errno::EBADF, "gone nevertheless");
    // Size 0 with XATTR_REPLACE removes.
    client.walk(F, G, &[]);
    client.done(&create(G, 0, 2));
    client.done(&Request::Clunk { fid: G });
    assert_eq!(client.refused(&walk_to(b"user.note")), Errno::ENODATA);
    client.walk(F, G, &[]);
    assert_eq!(client.refused(&create(G, 1 << 20, 0)), Errno::E2BIG);
}

#[test]
fn base_requests_and_unknown_ones_are_refused() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    assert_eq!(client.refused(&Request::Stat { fid: ROOT }), Errno::EOPNOTSUPP);
    client.send_bytes(&[9, 0, 0, 0, 250, 7, 0, 1, 2]);
    let answer = client.receive();
    assert_eq!((answer.header.tag.0, answer.errno()), (7, Some(Errno::EOPNOTSUPP)));
    assert!(client.size(ROOT) > 0 || client.size(ROOT) == 0, "still served");
}

#[test]
fn requests_sent_back_to_back_take_effect_in_order() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), pattern(100_000)).unwrap();
    let mut client = fixture.client();
    let requests = [
        walk(ROOT, F, &["f"]),
        Request::Lopen { fid: F, flags: OpenFlags::READ_WRITE },
        Request::Getattr { fid: F, mask: GetattrMask::BASIC },
        Request::Read { fid: F, offset: 0, count: 50_000 },
        Request::Write { fid: F, offset: 0, data: Data(b"new") },
        Request::Fsync { fid: F, data_only: Optional(Some(1)) },
        Request::Read { fid: F, offset: 0, count: 5 },
        Request::Clunk { fid: F },
        walk(ROOT, F, &["missing"]),
        Request::Lopen { fid: F, flags: OpenFlags::empty() },
    ];
    let mut bytes = Vec::new();
    for (tag, request) in requests.iter().enumerate() {
        request.encode(p9::Tag(tag as u16), &mut bytes);
    }
    client.send_bytes(&bytes);
    let mut answers: Vec<_> = requests.iter().map(|_| client.receive()).collect();
    answers.sort_by_key(|answer| answer.header.tag);
    let kinds: Vec<u8> = answers.iter().map(|answer| answer.header.kind).collect();
    assert_eq!(kinds, [111, 13, 25, 117, 119, 51, 117, 121, 7, 7]);
    let Reply::Read { data } = answers[6].reply() else { panic!() };
    assert_eq!(&data.0[..3], b"new");
    assert_eq!(answers[8].errno(), Some(Errno::ENOENT));
    assert_eq!(answers[9].errno(), Some(Errno::EBADF));
}
