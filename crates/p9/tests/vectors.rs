//! Messages byte by byte, as the manuals lay them out: whoever changes the codec sees here whether
//! others still understand it.
//!
//! # Source
//! Plan 9 manual, section 5 (version, attach, walk, read, stat); diod's protocol.md for 9P2000.L.

use p9::frame::HEADER_LEN;
use p9::{
    Attributes, Data, DirEntries, Errno, Fid, GetattrMask, LegacyMode, LegacyStat, LockKind, Names,
    OpenFlags, Optional, Qid, QidType, Qids, Reply, Request, SetAttributes, SetattrMask, Tag, Time,
};

/// Bytes from hexadecimal digits; what is in quotes is text, blanks separate.
fn bytes(text: &str) -> Vec<u8> {
    let mut all = Vec::new();
    for (n, piece) in text.split('"').enumerate() {
        if n % 2 == 1 {
            all.extend_from_slice(piece.as_bytes());
            continue;
        }
        let digits: Vec<u8> = piece.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        for pair in digits.chunks(2) {
            let pair = std::str::from_utf8(pair).unwrap();
            all.push(u8::from_str_radix(pair, 16).unwrap());
        }
    }
    all
}

#[track_caller]
fn request(tag: u16, message: Request<'_>, expected: &str) {
    let (mut encoded, expected) = (Vec::new(), bytes(expected));
    message.encode(Tag(tag), &mut encoded);
    assert_eq!(encoded, expected, "{}", message.name());
    assert_eq!(Request::decode(expected[4], &expected[HEADER_LEN..]), Ok(message));
}

#[track_caller]
fn reply(tag: u16, message: Reply<'_>, expected: &str) {
    let (mut encoded, expected) = (Vec::new(), bytes(expected));
    message.encode(Tag(tag), &mut encoded);
    assert_eq!(encoded, expected, "{}", message.name());
    assert_eq!(Reply::decode(expected[4], &expected[HEADER_LEN..]), Ok(message));
}

const DIR: Qid = Qid { kind: QidType::DIR, version: 0x0403_0201, path: 0x0807_0605_0403_0201 };
const FILE: Qid = Qid { kind: QidType::empty(), version: 1, path: 2 };

#[test]
fn a_session_begins() {
    request(
        0xffff,
        Request::Version { msize: 8192, version: b"9P2000" },
        r#"13000000 64 ffff 00200000 0600 "9P2000""#,
    );
    reply(
        0xffff,
        Reply::Version { msize: 0x0010_0018, version: b"9P2000.L" },
        r#"15000000 65 ffff 18001000 0800 "9P2000.L""#,
    );
    // 9P2000 has no n_uname, 9P2000.L has one.
    let attach = |uid| Request::Attach {
        fid: Fid(0),
        afid: Fid::NONE,
        uname: b"glenda",
        aname: b"/x",
        uid: Optional(uid),
    };
    request(1, attach(None), r#"1b000000 68 0100 00000000 ffffffff 0600 "glenda" 0200 "/x""#);
    request(
        1,
        attach(Some(1000)),
        r#"1f000000 68 0100 00000000 ffffffff 0600 "glenda" 0200 "/x" e8030000"#,
    );
    reply(1, Reply::Attach { qid: DIR }, "14000000 69 0100 80 01020304 0102030405060708");
}

#[test]
fn a_file_is_walked_to_and_opened() {
    let names = Names::collect([&b"usr"[..], b"glenda"]);
    request(
        2,
        Request::Walk { fid: Fid(0), new_fid: Fid(1), names },
        r#"1e000000 6e 0200 00000000 01000000 0200 0300 "usr" 0600 "glenda""#,
    );
    reply(
        2,
        Reply::Walk { qids: Qids::collect([DIR, FILE]) },
        "23000000 6f 0200 0200 80 01020304 0102030405060708 00 01000000 0200000000000000",
    );
    request(
        3,
        Request::Lopen { fid: Fid(1), flags: OpenFlags::READ_WRITE | OpenFlags::TRUNCATE },
        "0f000000 0c 0300 01000000 02020000",
    );
    reply(
        3,
        Reply::Lopen { qid: FILE, iounit: 4096 },
        "18000000 0d 0300 00 01000000 0200000000000000 00100000",
    );
    request(
        4,
        Request::Open { fid: Fid(1), mode: LegacyMode(0x12) },
        "0c000000 70 0400 01000000 12",
    );
    request(
        5,
        Request::Lcreate {
            fid: Fid(1),
            name: b"new",
            flags: OpenFlags::WRITE_ONLY | OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
            mode: 0o644,
            gid: 100,
        },
        r#"1c000000 0e 0500 01000000 0300 "new" c1000000 a4010000 64000000"#,
    );
}

#[test]
fn data_moves() {
    request(
        5,
        Request::Read { fid: Fid(1), offset: 1 << 32, count: 65536 },
        "17000000 74 0500 01000000 0000000001000000 00000100",
    );
    reply(5, Reply::Read { data: Data(b"hello") }, r#"10000000 75 0500 05000000 "hello""#);
    request(
        6,
        Request::Write { fid: Fid(1), offset: 3, data: Data(b"hello") },
        r#"1c000000 76 0600 01000000 0300000000000000 05000000 "hello""#,
    );
    reply(6, Reply::Write { count: 5 }, "0b000000 77 0600 05000000");
    request(7, Request::Flush { old_tag: Tag(6) }, "09000000 6c 0700 0600");
    reply(7, Reply::Flush {}, "07000000 6d 0700");
    let fsync = |data_only| Request::Fsync { fid: Fid(1), data_only: Optional(data_only) };
    request(8, fsync(None), "0b000000 32 0800 01000000");
    request(8, fsync(Some(1)), "0f000000 32 0800 01000000 01000000");
}

#[test]
fn errors_are_numbers_or_text() {
    reply(9, Reply::Lerror { errno: Errno::ENOENT }, "0b000000 07 0900 02000000");
    reply(9, Reply::Error { text: b"no such file" }, r#"15000000 6b 0900 0c00 "no such file""#);
}

#[test]
fn attributes_are_asked_for_and_set() {
    request(
        10,
        Request::Getattr { fid: Fid(1), mask: GetattrMask::BASIC },
        "13000000 18 0a00 01000000 ff07000000000000",
    );
    let time = |seconds| Time { seconds, nanoseconds: seconds + 1 };
    let attributes = Attributes {
        valid: GetattrMask::BASIC,
        qid: FILE,
        mode: 0o100_644,
        uid: 1,
        gid: 2,
        nlink: 3,
        rdev: 4,
        size: 5,
        block_size: 6,
        blocks: 7,
        atime: time(0x10),
        mtime: time(0x20),
        ctime: time(0x30),
        btime: time(0x40),
        generation: 8,
        data_version: 9,
    };
    reply(
        10,
        Reply::Getattr { attributes },
        "a0000000 19 0a00 ff07000000000000 00 01000000 0200000000000000 \
         a4810000 01000000 02000000 0300000000000000 0400000000000000 0500000000000000 \
         0600000000000000 0700000000000000 1000000000000000 1100000000000000 \
         2000000000000000 2100000000000000 3000000000000000 3100000000000000 \
         4000000000000000 4100000000000000 0800000000000000 0900000000000000",
    );
    let set = SetAttributes {
        valid: SetattrMask::MODE | SetattrMask::SIZE | SetattrMask::MTIME | SetattrMask::MTIME_SET,
        mode: 0o600,
        uid: 1,
        gid: 2,
        size: 3,
        atime: time(4),
        mtime: time(6),
    };
    request(
        11,
        Request::Setattr { fid: Fid(1), set },
        "43000000 1a 0b00 01000000 29010000 80010000 01000000 02000000 0300000000000000 \
         0400000000000000 0500000000000000 0600000000000000 0700000000000000",
    );
}

#[test]
fn directories_are_listed_and_changed() {
    request(
        12,
        Request::Readdir { fid: Fid(1), offset: 7, count: 8192 },
        "17000000 28 0c00 01000000 0700000000000000 00200000",
    );
    let entries = bytes(
        r#"80 01020304 0102030405060708 0100000000000000 04 0100 "."
           00 01000000 0200000000000000 ffffffffffffff7f 08 0400 "file""#,
    );
    reply(
        12,
        Reply::Readdir { data: Data(&entries) },
        r#"40000000 29 0c00 35000000
           80 01020304 0102030405060708 0100000000000000 04 0100 "."
           00 01000000 0200000000000000 ffffffffffffff7f 08 0400 "file""#,
    );
    let found: Vec<_> = DirEntries::new(&entries).map(Result::unwrap).collect();
    assert_eq!((found[0].qid, found[0].name, found[0].kind), (DIR, &b"."[..], 4));
    assert_eq!(
        (found[1].qid, found[1].name, found[1].offset),
        (FILE, &b"file"[..], i64::MAX as u64)
    );
    request(
        13,
        Request::Unlinkat { dir: Fid(1), name: b"old", flags: 0x200 },
        r#"14000000 4c 0d00 01000000 0300 "old" 00020000"#,
    );
    request(
        14,
        Request::Renameat { old_dir: Fid(1), old_name: b"a", new_dir: Fid(2), new_name: b"bc" },
        r#"16000000 4a 0e00 01000000 0100 "a" 02000000 0200 "bc""#,
    );
}

#[test]
fn locks_name_their_owner() {
    request(
        15,
        Request::Lock {
            fid: Fid(1),
            kind: LockKind::WRITE,
            flags: 1,
            start: 2,
            length: 3,
            process: 4,
            client: b"host",
        },
        r#"2a000000 34 0f00 01000000 01 01000000 0200000000000000 0300000000000000 04000000
           0400 "host""#,
    );
    reply(15, Reply::Lock { status: p9::LockStatus::BLOCKED }, "08000000 35 0f00 01");
    reply(
        16,
        Reply::Getlock { kind: LockKind::UNLOCK, start: 0, length: 0, process: 4, client: b"" },
        "1e000000 37 1000 02 0000000000000000 0000000000000000 04000000 0000",
    );
}

/// stat(5): "To make the contents of a directory, such as returned by read(5), easy to parse, each
/// directory entry begins with a size field. For consistency, the entries in Twstat and Rstat
/// messages also contain their size, which means the size appears twice."
#[test]
fn a_description_has_its_size_twice() {
    let stat = LegacyStat {
        kind: 1,
        device: 2,
        qid: FILE,
        mode: 0o644,
        atime: 3,
        mtime: 4,
        length: 5,
        name: b"file",
        uid: b"u",
        gid: b"",
        muid: b"mm",
    };
    reply(
        17,
        Reply::Stat { stat },
        r#"41000000 7d 1100 3800 3600 0100 02000000 00 01000000 0200000000000000 a4010000 03000000
           04000000 0500000000000000 0400 "file" 0100 "u" 0000 0200 "mm""#,
    );
    let mut entry = Vec::new();
    stat.put(&mut entry);
    assert_eq!(entry.len(), 0x38);
    assert_eq!(LegacyStat::parse(&entry), Ok((stat, 0x38)));
}
