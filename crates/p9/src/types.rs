//! Values that messages carry.

use bitflags::bitflags;

use crate::wire::{Field, Reader, WireError};

macro_rules! field_newtype {
    ($t:ident, $inner:ty) => {
        impl Field<'_> for $t {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
            fn get(from: &mut Reader<'_>) -> Result<Self, WireError> {
                Ok(Self(<$inner>::get(from)?))
            }
        }
    };
}

macro_rules! field_bits {
    ($t:ident) => {
        impl Field<'_> for $t {
            fn put(&self, out: &mut Vec<u8>) {
                self.bits().put(out);
            }
            fn get(from: &mut Reader<'_>) -> Result<Self, WireError> {
                Ok(Self::from_bits_retain(Field::get(from)?))
            }
        }
    };
}

macro_rules! field_struct {
    ($t:ident { $($f:ident),* $(,)? }) => {
        impl Field<'_> for $t {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$f.put(out);)*
            }
            fn get(from: &mut Reader<'_>) -> Result<Self, WireError> {
                Ok(Self { $($f: Field::get(from)?),* })
            }
        }
    };
}

/// Matches a reply to its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u16);
field_newtype!(Tag, u16);

impl Tag {
    /// `NOTAG`: for `Tversion` only.
    pub const NONE: Tag = Tag(0xffff);
}

/// A client's name for a file, as a descriptor is a process's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fid(pub u32);
field_newtype!(Fid, u32);

impl Fid {
    /// `NOFID`: no authentication fid.
    pub const NONE: Fid = Fid(u32::MAX);
}

/// `n_uname` when the client names no numeric user.
pub const NO_UID: u32 = u32::MAX;

bitflags! {
    /// The high bits of a file's type.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct QidType: u8 {
        /// A directory.
        const DIR = 0x80;
        /// Writes go to the end.
        const APPEND = 0x40;
        /// One opener at a time.
        const EXCLUSIVE = 0x20;
        /// An authentication file.
        const AUTH = 0x08;
        /// Not backed up.
        const TEMPORARY = 0x04;
        /// A symbolic link.
        const SYMLINK = 0x02;
    }
}
field_bits!(QidType);

impl QidType {
    /// `DT_DIR`, `DT_LNK` or `DT_REG` of readdir(3).
    #[must_use]
    pub const fn entry_type(self) -> u8 {
        if self.contains(Self::DIR) {
            4
        } else if self.contains(Self::SYMLINK) {
            10
        } else {
            8
        }
    }
}

/// A service's identity of a file: `type[1] version[4] path[8]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Qid {
    /// What kind of file.
    pub kind: QidType,
    /// Changes when the content does; 0 where the store does not know.
    pub version: u32,
    /// Unique among all files that the service has ever had.
    pub path: u64,
}
field_struct!(Qid { kind, version, path });

bitflags! {
    /// Which attributes are asked for or answered (`Tgetattr`, `Rgetattr`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct GetattrMask: u64 {
        /// Permission and type.
        const MODE = 0x1;
        /// Number of links.
        const NLINK = 0x2;
        /// Owner.
        const UID = 0x4;
        /// Group.
        const GID = 0x8;
        /// Device of a device file.
        const RDEV = 0x10;
        /// Last access.
        const ATIME = 0x20;
        /// Last change of content.
        const MTIME = 0x40;
        /// Last change of attributes.
        const CTIME = 0x80;
        /// Inode number.
        const INO = 0x100;
        /// Size in bytes.
        const SIZE = 0x200;
        /// Blocks of 512 bytes.
        const BLOCKS = 0x400;
        /// All of the above.
        const BASIC = 0x7ff;
        /// Birth.
        const BTIME = 0x800;
        /// Generation of the inode.
        const GEN = 0x1000;
        /// Version of the content.
        const DATA_VERSION = 0x2000;
        /// No attribute, and only in answers between two Sluices: to close the file means more to the service than
        /// to lose its client, and the answer to a clunk says whether what was written is safe.
        const CLOSE_COUNTS = 1 << 62;
    }
}
field_bits!(GetattrMask);

/// A moment: seconds and nanoseconds since the epoch. Seconds before 1970 wrap, as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Seconds.
    pub seconds: u64,
    /// Nanoseconds within the second.
    pub nanoseconds: u64,
}
field_struct!(Time { seconds, nanoseconds });

/// The attributes of a file (`Rgetattr`), as stat(2) has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Which of the following are meant.
    pub valid: GetattrMask,
    /// Identity.
    pub qid: Qid,
    /// `st_mode`: type and permission.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Links.
    pub nlink: u64,
    /// Device number of a device file.
    pub rdev: u64,
    /// Bytes.
    pub size: u64,
    /// Preferred I/O size in bytes.
    pub block_size: u64,
    /// Blocks of 512 bytes allocated.
    pub blocks: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of content.
    pub mtime: Time,
    /// Last change of attributes.
    pub ctime: Time,
    /// Birth.
    pub btime: Time,
    /// Inode generation.
    pub generation: u64,
    /// Version of the content.
    pub data_version: u64,
}
field_struct!(Attributes {
    valid,
    qid,
    mode,
    uid,
    gid,
    nlink,
    rdev,
    size,
    block_size,
    blocks,
    atime,
    mtime,
    ctime,
    btime,
    generation,
    data_version,
});

impl Attributes {
    /// Whether this is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.mode & mode::TYPE_MASK == mode::DIRECTORY
    }

    /// Whether this is a symbolic link.
    #[must_use]
    pub fn is_symlink(&self) -> bool {
        self.mode & mode::TYPE_MASK == mode::SYMLINK
    }

    /// Whether this is a regular file.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        self.mode & mode::TYPE_MASK == mode::REGULAR
    }
}

/// Bits of `st_mode` (inode(7)).
pub mod mode {
    /// `S_IFMT`.
    pub const TYPE_MASK: u32 = 0o170_000;
    /// `S_IFDIR`.
    pub const DIRECTORY: u32 = 0o040_000;
    /// `S_IFREG`.
    pub const REGULAR: u32 = 0o100_000;
    /// `S_IFLNK`.
    pub const SYMLINK: u32 = 0o120_000;
    /// `S_ISUID`, `S_ISGID`, `S_ISVTX` and the nine permission bits.
    pub const PERMISSIONS: u32 = 0o7777;
}

bitflags! {
    /// Which attributes a `Tsetattr` sets.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct SetattrMask: u32 {
        /// Permission.
        const MODE = 0x1;
        /// Owner.
        const UID = 0x2;
        /// Group.
        const GID = 0x4;
        /// Size: truncate or extend with zeros.
        const SIZE = 0x8;
        /// Last access: to the service's clock unless `ATIME_SET`.
        const ATIME = 0x10;
        /// Last change: to the service's clock unless `MTIME_SET`.
        const MTIME = 0x20;
        /// Last change of attributes, always to the service's clock.
        const CTIME = 0x40;
        /// Last access: to the given moment.
        const ATIME_SET = 0x80;
        /// Last change: to the given moment.
        const MTIME_SET = 0x100;
    }
}
field_bits!(SetattrMask);

/// What a `Tsetattr` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttributes {
    /// Which of the following are meant.
    pub valid: SetattrMask,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Last access.
    pub atime: Time,
    /// Last change.
    pub mtime: Time,
}
field_struct!(SetAttributes { valid, mode, uid, gid, size, atime, mtime });

/// What a file system has room for (`Rstatfs`, statfs(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatFs {
    /// Magic number of the file system type.
    pub kind: u32,
    /// Block size in bytes.
    pub block_size: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Blocks free.
    pub blocks_free: u64,
    /// Blocks free for everybody.
    pub blocks_available: u64,
    /// Inodes in all.
    pub files: u64,
    /// Inodes free.
    pub files_free: u64,
    /// Identity of the file system.
    pub fsid: u64,
    /// Longest name in bytes.
    pub name_max: u32,
}
field_struct!(StatFs {
    kind,
    block_size,
    blocks,
    blocks_free,
    blocks_available,
    files,
    files_free,
    fsid,
    name_max,
});

bitflags! {
    /// How a file is opened: `O_*` of open(2) on x86-64 Linux, which 9P2000.L sends as they are.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct OpenFlags: u32 {
        /// Write only.
        const WRITE_ONLY = 0o1;
        /// Read and write.
        const READ_WRITE = 0o2;
        /// Create if missing.
        const CREATE = 0o100;
        /// Fail if present.
        const EXCLUSIVE = 0o200;
        /// Empty it.
        const TRUNCATE = 0o1000;
        /// Writes go to the end.
        const APPEND = 0o2000;
        /// Do not wait.
        const NONBLOCK = 0o4000;
        /// Writes return once data is durable.
        const DSYNC = 0o10000;
        /// Must be a directory.
        const DIRECTORY = 0o200_000;
        /// Must not be a symbolic link.
        const NOFOLLOW = 0o400_000;
        /// Writes return once data and attributes are durable (includes `DSYNC`).
        const SYNC = 0o4_010_000;
    }
}
field_bits!(OpenFlags);

impl OpenFlags {
    /// `O_ACCMODE`.
    pub const ACCESS_MASK: u32 = 0o3;

    /// Whether reading is allowed.
    #[must_use]
    pub fn reads(self) -> bool {
        self.bits() & Self::ACCESS_MASK != Self::WRITE_ONLY.bits()
    }

    /// Whether writing is allowed.
    #[must_use]
    pub fn writes(self) -> bool {
        self.bits() & Self::ACCESS_MASK != 0
    }
}

/// What kind of byte-range lock (`Tlock`, `Tgetlock`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockKind(pub u8);
field_newtype!(LockKind, u8);

impl LockKind {
    /// Shared.
    pub const READ: LockKind = LockKind(0);
    /// Exclusive.
    pub const WRITE: LockKind = LockKind(1);
    /// None: release, or "nobody holds one".
    pub const UNLOCK: LockKind = LockKind(2);
}

/// The answer to a `Tlock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockStatus(pub u8);
field_newtype!(LockStatus, u8);

impl LockStatus {
    /// The lock is held.
    pub const SUCCESS: LockStatus = LockStatus(0);
    /// Somebody else holds it: ask again.
    pub const BLOCKED: LockStatus = LockStatus(1);
    /// It cannot be had.
    pub const ERROR: LockStatus = LockStatus(2);
    /// The service is in its grace period: ask again.
    pub const GRACE: LockStatus = LockStatus(3);
}

/// `Tlock` flag: the client would wait.
pub const LOCK_FLAG_BLOCK: u32 = 1;

/// `Tunlinkat` flag: remove a directory (`AT_REMOVEDIR`).
pub const UNLINK_DIRECTORY: u32 = 0x200;
