//! Messages of every type, filled with arbitrary values.
//!
//! Messages borrow, and so cannot be made by a strategy; [`Parts`] can, and a message is put
//! together from them.

use p9::{
    Attributes, Data, Errno, Fid, GetattrMask, LegacyMode, LegacyStat, LockKind, LockStatus, Names,
    OpenFlags, Optional, Qid, QidType, Qids, Reply, Request, SetAttributes, SetattrMask, StatFs,
    Tag, Time,
};
use proptest::array::{uniform4, uniform32};
use proptest::collection::vec;
use proptest::prelude::*;

/// Types of all requests.
pub(crate) const REQUESTS: [u8; 32] = [
    8, 12, 14, 16, 18, 20, 22, 24, 26, 30, 32, 40, 50, 52, 54, 70, 72, 74, 76, 100, 102, 104, 108,
    110, 112, 114, 116, 118, 120, 122, 124, 126,
];

/// Types of all replies.
pub(crate) const REPLIES: [u8; 34] = [
    7, 9, 13, 15, 17, 19, 21, 23, 25, 27, 31, 33, 41, 51, 53, 55, 71, 73, 75, 77, 101, 103, 105,
    107, 109, 111, 113, 115, 117, 119, 121, 123, 125, 127,
];

/// What messages are made of.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) tag: u16,
    numbers: [u64; 32],
    texts: [Vec<u8>; 4],
    names: Vec<Vec<u8>>,
    data: Vec<u8>,
    optional: Option<u32>,
}

/// Mostly small or at the ends: where lengths and offsets go wrong.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), Just(u64::from(u32::MAX)), 0..20_u64, any::<u64>()]
}

pub(crate) fn parts() -> impl Strategy<Value = Parts> {
    let text = || vec(any::<u8>(), 0..40);
    let names = vec(text(), 0..=Names::MAX);
    let data = vec(any::<u8>(), 0..600);
    let optional = any::<Option<u32>>();
    (any::<u16>(), uniform32(number()), uniform4(text()), names, data, optional).prop_map(
        |(tag, numbers, texts, names, data, optional)| Parts {
            tag,
            numbers,
            texts,
            names,
            data,
            optional,
        },
    )
}

impl Parts {
    pub(crate) fn tag(&self) -> Tag {
        Tag(self.tag)
    }

    fn u8(&self, n: usize) -> u8 {
        self.numbers[n] as u8
    }

    fn u16(&self, n: usize) -> u16 {
        self.numbers[n] as u16
    }

    fn u32(&self, n: usize) -> u32 {
        self.numbers[n] as u32
    }

    fn u64(&self, n: usize) -> u64 {
        self.numbers[n]
    }

    fn fid(&self, n: usize) -> Fid {
        Fid(self.u32(n))
    }

    fn text(&self, n: usize) -> &[u8] {
        &self.texts[n]
    }

    fn data(&self) -> Data<'_> {
        Data(&self.data)
    }

    fn time(&self, n: usize) -> Time {
        Time { seconds: self.u64(n), nanoseconds: self.u64(n + 1) }
    }

    pub(crate) fn qid(&self, n: usize) -> Qid {
        let kind = QidType::from_bits_retain(self.u8(n));
        Qid { kind, version: self.u32(n + 1), path: self.u64(n + 2) }
    }

    fn legacy(&self) -> LegacyStat<'_> {
        LegacyStat {
            kind: self.u16(0),
            device: self.u32(1),
            qid: self.qid(2),
            mode: self.u32(5),
            atime: self.u32(6),
            mtime: self.u32(7),
            length: self.u64(8),
            name: self.text(0),
            uid: self.text(1),
            gid: self.text(2),
            muid: self.text(3),
        }
    }

    fn set(&self) -> SetAttributes {
        SetAttributes {
            valid: SetattrMask::from_bits_retain(self.u32(1)),
            mode: self.u32(2),
            uid: self.u32(3),
            gid: self.u32(4),
            size: self.u64(5),
            atime: self.time(6),
            mtime: self.time(8),
        }
    }

    fn attributes(&self) -> Attributes {
        Attributes {
            valid: GetattrMask::from_bits_retain(self.u64(0)),
            qid: self.qid(1),
            mode: self.u32(4),
            uid: self.u32(5),
            gid: self.u32(6),
            nlink: self.u64(7),
            rdev: self.u64(8),
            size: self.u64(9),
            block_size: self.u64(10),
            blocks: self.u64(11),
            atime: self.time(12),
            mtime: self.time(14),
            ctime: self.time(16),
            btime: self.time(18),
            generation: self.u64(20),
            data_version: self.u64(21),
        }
    }

    fn statfs(&self) -> StatFs {
        StatFs {
            kind: self.u32(0),
            block_size: self.u32(1),
            blocks: self.u64(2),
            blocks_free: self.u64(3),
            blocks_available: self.u64(4),
            files: self.u64(5),
            files_free: self.u64(6),
            fsid: self.u64(7),
            name_max: self.u32(8),
        }
    }

    /// The request of that type; `None` where there is none.
    pub(crate) fn request(&self, kind: u8) -> Option<Request<'_>> {
        let (one, two, three) = (self.u64(1), self.u64(2), self.u64(3));
        let fid = self.fid(0);
        let name = self.text(0);
        let flags = OpenFlags::from_bits_retain(self.u32(1));
        let mode = LegacyMode(self.u8(1));
        let optional = Optional(self.optional);
        let (process, client) = (self.u32(5), self.text(1));
        let lock = LockKind(self.u8(1));
        Some(match kind {
            8 => Request::Statfs { fid },
            12 => Request::Lopen { fid, flags },
            14 => Request::Lcreate { fid, name, flags, mode: self.u32(2), gid: self.u32(3) },
            16 => Request::Symlink { dir: fid, name, target: self.text(1), gid: self.u32(1) },
            18 => Request::Mknod {
                dir: fid,
                name,
                mode: self.u32(1),
                major: self.u32(2),
                minor: self.u32(3),
                gid: self.u32(4),
            },
            20 => Request::Rename { fid, dir: self.fid(1), name },
            22 => Request::Readlink { fid },
            24 => Request::Getattr { fid, mask: GetattrMask::from_bits_retain(one) },
            26 => Request::Setattr { fid, set: self.set() },
            30 => Request::Xattrwalk { fid, new_fid: self.fid(1), name },
            32 => Request::Xattrcreate { fid, name, size: one, flags: self.u32(2) },
            40 => Request::Readdir { fid, offset: one, count: self.u32(2) },
            50 => Request::Fsync { fid, data_only: optional },
            52 => Request::Lock {
                fid,
                kind: lock,
                flags: self.u32(4),
                start: two,
                length: three,
                process,
                client,
            },
            54 => Request::Getlock { fid, kind: lock, start: two, length: three, process, client },
            70 => Request::Link { dir: fid, fid: self.fid(1), name },
            72 => Request::Mkdir { dir: fid, name, mode: self.u32(1), gid: self.u32(2) },
            74 => Request::Renameat {
                old_dir: fid,
                old_name: name,
                new_dir: self.fid(1),
                new_name: self.text(1),
            },
            76 => Request::Unlinkat { dir: fid, name, flags: self.u32(1) },
            100 => Request::Version { msize: self.u32(0), version: name },
            102 => Request::Auth { afid: fid, uname: name, aname: self.text(1), uid: optional },
            104 => Request::Attach {
                fid,
                afid: self.fid(1),
                uname: name,
                aname: self.text(1),
                uid: optional,
            },
            108 => Request::Flush { old_tag: Tag(self.u16(0)) },
            110 => {
                let names = Names::collect(self.names.iter().map(Vec::as_slice));
                Request::Walk { fid, new_fid: self.fid(1), names }
            }
            112 => Request::Open { fid, mode },
            114 => Request::Create { fid, name, permission: self.u32(2), mode },
            116 => Request::Read { fid, offset: one, count: self.u32(2) },
            118 => Request::Write { fid, offset: one, data: self.data() },
            120 => Request::Clunk { fid },
            122 => Request::Remove { fid },
            124 => Request::Stat { fid },
            126 => Request::Wstat { fid, stat: self.legacy() },
            _ => return None,
        })
    }

    /// The reply of that type; `None` where there is none.
    pub(crate) fn reply(&self, kind: u8) -> Option<Reply<'_>> {
        let qid = self.qid(0);
        let iounit = self.u32(3);
        let text = self.text(0);
        Some(match kind {
            7 => Reply::Lerror { errno: Errno::from_raw(self.u32(0) as i32) },
            9 => Reply::Statfs { statfs: self.statfs() },
            13 => Reply::Lopen { qid, iounit },
            15 => Reply::Lcreate { qid, iounit },
            17 => Reply::Symlink { qid },
            19 => Reply::Mknod { qid },
            21 => Reply::Rename {},
            23 => Reply::Readlink { target: text },
            25 => Reply::Getattr { attributes: self.attributes() },
            27 => Reply::Setattr {},
            31 => Reply::Xattrwalk { size: self.u64(0) },
            33 => Reply::Xattrcreate {},
            41 => Reply::Readdir { data: self.data() },
            51 => Reply::Fsync {},
            53 => Reply::Lock { status: LockStatus(self.u8(0)) },
            55 => Reply::Getlock {
                kind: LockKind(self.u8(0)),
                start: self.u64(1),
                length: self.u64(2),
                process: self.u32(3),
                client: text,
            },
            71 => Reply::Link {},
            73 => Reply::Mkdir { qid },
            75 => Reply::Renameat {},
            77 => Reply::Unlinkat {},
            101 => Reply::Version { msize: self.u32(0), version: text },
            103 => Reply::Auth { qid },
            105 => Reply::Attach { qid },
            107 => Reply::Error { text },
            109 => Reply::Flush {},
            111 => {
                let count = self.names.len();
                Reply::Walk { qids: Qids::collect((0..count).map(|n| self.qid(n))) }
            }
            113 => Reply::Open { qid, iounit },
            115 => Reply::Create { qid, iounit },
            117 => Reply::Read { data: self.data() },
            119 => Reply::Write { count: self.u32(0) },
            121 => Reply::Clunk {},
            123 => Reply::Remove {},
            125 => Reply::Stat { stat: self.legacy() },
            127 => Reply::Wstat {},
            _ => return None,
        })
    }
}
