//! Every request of base 9P2000, against a real directory.

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use common::{Answer, Client, Fixture, ROOT, walk};
use p9::{Data, Fid, LegacyMode, LegacyStat, Optional, Qid, QidType, Reply, Request};

const F: Fid = Fid(1);
const G: Fid = Fid(2);

const READ: LegacyMode = LegacyMode(0);
const WRITE: LegacyMode = LegacyMode(1);
const READ_WRITE: LegacyMode = LegacyMode(2);
const TRUNCATE: u8 = 0x10;

/// A wstat that touches nothing.
fn untouched() -> LegacyStat<'static> {
    LegacyStat {
        kind: u16::MAX,
        device: u32::MAX,
        qid: Qid { kind: QidType::all(), version: u32::MAX, path: u64::MAX },
        mode: u32::MAX,
        atime: u32::MAX,
        mtime: u32::MAX,
        length: u64::MAX,
        name: b"",
        uid: b"",
        gid: b"",
        muid: b"",
    }
}

fn text(answer: &Answer) -> String {
    match answer.reply() {
        Reply::Error { text } => String::from_utf8(text.to_vec()).unwrap(),
        other => panic!("not refused: {other:?}"),
    }
}

fn open(client: &mut Client, fid: Fid, name: &str, mode: LegacyMode) {
    client.done(&walk(ROOT, fid, &[name]));
    client.done(&Request::Open { fid, mode });
}

#[test]
fn errors_are_words() {
    let fixture = Fixture::new();
    let mut client = fixture.legacy();
    assert_eq!(text(&client.walk(ROOT, F, &["missing"])), "No such file or directory");
    let auth = Request::Auth { afid: F, uname: b"glenda", aname: b"", uid: Optional(None) };
    assert_eq!(text(&client.call(&auth)), "authentication not required");
    let getattr = Request::Getattr { fid: ROOT, mask: p9::GetattrMask::BASIC };
    assert_eq!(text(&client.call(&getattr)), "Operation not supported");
}

#[test]
fn files_are_created_written_read_and_removed() {
    let fixture = Fixture::new();
    let mut client = fixture.legacy();
    client.done(&walk(ROOT, F, &[]));
    let create = |fid, name, permission, mode| Request::Create { fid, name, permission, mode };
    client.done(&create(F, b"f", 0o666, READ_WRITE));
    assert_eq!(client.write(F, 0, b"hello"), 5);
    assert_eq!(client.read(F, 1, 100), b"ello");
    // Permission is limited to that of the directory (open(5)).
    let inherited = fs::metadata(fixture.root()).unwrap().mode();
    let mode = fs::metadata(fixture.path("f")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o666 & (!0o666 | inherited & 0o666));
    client.done(&walk(ROOT, G, &[]));
    assert_eq!(text(&client.call(&create(G, b"f", 0o666, WRITE))), "File exists");
    client.done(&create(G, b"d", LegacyStat::DIRECTORY | 0o755, READ));
    assert!(fs::metadata(fixture.path("d")).unwrap().is_dir());
    assert_eq!(client.read(G, 0, 1000), b"", "an empty directory, open for reading");
    client.done(&Request::Remove { fid: G });
    client.done(&Request::Remove { fid: F });
    assert_eq!(fs::read_dir(fixture.root()).unwrap().count(), 0);
    client.done(&walk(ROOT, F, &[]));
    let append_only = create(F, b"x", 0x4000_0000 | 0o644, WRITE);
    assert_eq!(text(&client.call(&append_only)), "Operation not supported");
}

#[test]
fn open_truncates_and_removes_on_close() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "hello").unwrap();
    let mut client = fixture.legacy();
    open(&mut client, F, "f", LegacyMode(1 | TRUNCATE));
    assert_eq!(fs::metadata(fixture.path("f")).unwrap().len(), 0);
    client.done(&Request::Clunk { fid: F });
    open(&mut client, F, "f", LegacyMode(LegacyMode::REMOVE_ON_CLOSE));
    assert!(fixture.path("f").exists());
    client.done(&Request::Clunk { fid: F });
    assert!(!fixture.path("f").exists());
    client.done(&walk(ROOT, F, &[]));
    let write = Request::Open { fid: F, mode: WRITE };
    assert_eq!(text(&client.call(&write)), "Is a directory");
    let nonsense = Request::Open { fid: F, mode: LegacyMode(0x80) };
    assert_eq!(text(&client.call(&nonsense)), "Invalid argument");
}

#[test]
fn directories_read_as_whole_stat_entries() {
    let fixture = Fixture::new();
    let mut expected: Vec<(String, u64)> = Vec::new();
    for i in 0..100_u64 {
        let name = format!("file-{i}");
        fs::write(fixture.path(&name), vec![0; i as usize]).unwrap();
        expected.push((name, i));
    }
    fs::create_dir(fixture.path("sub")).unwrap();
    expected.push(("sub".into(), 0));
    expected.sort();
    let mut client = fixture.legacy();
    client.done(&walk(ROOT, F, &[]));
    client.done(&Request::Open { fid: F, mode: READ });
    for count in [100, 1000, 60_000] {
        let mut found = Vec::new();
        let mut offset = 0;
        loop {
            let data = client.read(F, offset, count);
            if data.is_empty() {
                break;
            }
            let mut rest = &data[..];
            while !rest.is_empty() {
                let (stat, len) = LegacyStat::parse(rest).expect("whole entries only");
                let name = String::from_utf8(stat.name.to_vec()).unwrap();
                assert_eq!(stat.mode & LegacyStat::DIRECTORY != 0, name == "sub");
                found.push((name, stat.length));
                rest = &rest[len..];
            }
            offset += data.len() as u64;
        }
        found.sort();
        assert_eq!(found, expected, "{count}");
        let elsewhere = Request::Read { fid: F, offset: 5, count };
        assert_eq!(text(&client.call(&elsewhere)), "Invalid argument");
    }
    let small = Request::Read { fid: F, offset: 0, count: 20 };
    assert_eq!(text(&client.call(&small)), "Invalid argument");
}

#[test]
fn stat_describes() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "hello").unwrap();
    let mut client = fixture.legacy();
    client.done(&walk(ROOT, F, &["f"]));
    let answer = client.done(&Request::Stat { fid: F });
    let Reply::Stat { stat } = answer.reply() else { panic!() };
    let meta = fs::metadata(fixture.path("f")).unwrap();
    assert_eq!((stat.name, stat.length), (&b"f"[..], 5));
    assert_eq!(stat.mode, meta.mode() & 0o777);
    assert_eq!(i64::from(stat.mtime), meta.mtime());
    assert_eq!(stat.uid, meta.uid().to_string().as_bytes());
    let answer = client.done(&Request::Stat { fid: ROOT });
    let Reply::Stat { stat } = answer.reply() else { panic!() };
    assert_eq!((stat.name, stat.length), (&b"/"[..], 0));
    assert_eq!(stat.mode & LegacyStat::DIRECTORY, LegacyStat::DIRECTORY);
    assert_eq!(stat.qid.kind, QidType::DIR);
}

#[test]
fn wstat_changes_what_is_marked_and_nothing_else() {
    let fixture = Fixture::new();
    fs::write(fixture.path("f"), "hello").unwrap();
    fs::write(fixture.path("taken"), "other").unwrap();
    let mut client = fixture.legacy();
    client.done(&walk(ROOT, F, &["f"]));
    let before = fs::metadata(fixture.path("f")).unwrap();
    let wstat = |stat| Request::Wstat { fid: F, stat };
    client.done(&wstat(untouched()));
    let after = fs::metadata(fixture.path("f")).unwrap();
    assert_eq!((before.mode(), before.mtime(), before.len()), (after.mode(), after.mtime(), 5));
    client.done(&wstat(LegacyStat {
        mode: 0o600,
        mtime: 1_000_000,
        length: 2,
        name: b"g",
        ..untouched()
    }));
    let meta = fs::metadata(fixture.path("g")).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.mtime(), meta.len()), (0o600, 1_000_000, 2));
    assert!(!fixture.path("f").exists());
    // Nothing changes if one part cannot be.
    let directory = LegacyStat { mode: LegacyStat::DIRECTORY | 0o777, length: 0, ..untouched() };
    assert_eq!(text(&client.call(&wstat(directory))), "Operation not permitted");
    assert_eq!(fs::metadata(fixture.path("g")).unwrap().len(), 2);
    let taken = LegacyStat { name: b"taken", ..untouched() };
    assert_eq!(text(&client.call(&wstat(taken))), "File exists");
    assert_eq!(fs::read(fixture.path("taken")).unwrap(), b"other");
    let outside = LegacyStat { name: b"../g", ..untouched() };
    assert_eq!(text(&client.call(&wstat(outside))), "Invalid argument");
    let group = LegacyStat { gid: b"wheel", ..untouched() };
    assert_eq!(text(&client.call(&wstat(group))), "Operation not permitted");
    client.done(&Request::Open { fid: F, mode: READ });
    client.done(&wstat(LegacyStat { length: 1, ..untouched() }));
    assert_eq!(fs::metadata(fixture.path("g")).unwrap().len(), 1);
    client.done(&wstat(untouched()));
}

#[test]
fn large_reads_and_writes_in_the_base_dialect() {
    let fixture = Fixture::new();
    let mut client = fixture.connect();
    client.begin("9P2000", 1 << 20);
    client.done(&walk(ROOT, F, &[]));
    client.done(&Request::Create { fid: F, name: b"f", permission: 0o644, mode: READ_WRITE });
    let data = common::pattern(500_000);
    assert_eq!(client.write(F, 0, &data), 500_000);
    assert_eq!(client.read(F, 0, 600_000), data);
    client.done(&Request::Clunk { fid: F });
    open(&mut client, F, "f", READ);
    let refused = client.call(&Request::Write { fid: F, offset: 0, data: Data(&data) });
    assert_eq!(text(&refused), "Bad file descriptor");
    assert_eq!(client.read(F, 0, 3), data[..3]);
}
