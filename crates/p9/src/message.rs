//! Requests and replies: one table each, from which both encoder and decoder are made.

use crate::frame::{HEADER_LEN, Header};
use crate::wire::{Field, Reader};
use crate::{
    Attributes, Data, Errno, Fid, GetattrMask, LegacyMode, LegacyStat, LockKind, LockStatus, Name,
    Names, OpenFlags, Optional, Qid, Qids, SetAttributes, StatFs, Tag, WireError,
};

macro_rules! messages {
    (
        $(#[$meta:meta])* $enum:ident:
        $( $(#[$doc:meta])* $name:ident = $kind:literal { $( $field:ident : $ty:ty ),* $(,)? } )*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum $enum<'a> {
            $( $(#[$doc])* #[allow(missing_docs)] $name { $($field: $ty),* }, )*
        }

        impl<'a> $enum<'a> {
            /// The type byte.
            #[must_use]
            pub fn kind(&self) -> u8 {
                match self { $( $enum::$name { .. } => $kind, )* }
            }

            /// The message's name in the manual's spelling, without its `T` or `R`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $( $enum::$name { .. } => stringify!($name), )* }
            }

            /// Appends header and fields to `out`, all but the bytes of a trailing data field,
            /// which are returned and belong right behind. The header counts them.
            pub fn encode_head(&self, tag: Tag, out: &mut Vec<u8>) -> &'a [u8] {
                let start = out.len();
                out.extend_from_slice(&[0; HEADER_LEN]);
                #[allow(unused_mut, unused_assignments)]
                let mut tail: &'a [u8] = &[];
                match self {
                    $( $enum::$name { $($field),* } => {
                        $( Field::put($field, out); tail = Field::tail($field); )*
                    } )*
                }
                let size = (out.len() - start + tail.len()) as u32;
                let header = Header { size, kind: self.kind(), tag };
                out[start..start + HEADER_LEN].copy_from_slice(&header.to_bytes());
                tail
            }

            /// Appends the whole message to `out`.
            pub fn encode(&self, tag: Tag, out: &mut Vec<u8>) {
                let tail = self.encode_head(tag, out);
                out.extend_from_slice(tail);
            }

            /// Reads the body of a message of type `kind`.
            ///
            /// # Errors
            /// [`WireError`] when the type is unknown or the fields do not fill the body exactly.
            pub fn decode(kind: u8, body: &'a [u8]) -> Result<Self, WireError> {
                let mut from = Reader::new(body);
                let message = match kind {
                    $( $kind => $enum::$name { $($field: Field::get(&mut from)?),* }, )*
                    _ => return Err(WireError::UnknownType { kind }),
                };
                match from.left() {
                    0 => Ok(message),
                    extra => Err(WireError::Trailing { kind, extra }),
                }
            }
        }
    };
}

messages! {
    /// What a client asks (`T` messages).
    Request:
    /// Opens a session, or begins it anew: all fids are gone.
    Version = 100 { msize: u32, version: Name<'a> }
    /// Asks for an authentication fid.
    Auth = 102 { afid: Fid, uname: Name<'a>, aname: Name<'a>, uid: Optional }
    /// Makes `fid` the root of the tree `aname`.
    Attach = 104 { fid: Fid, afid: Fid, uname: Name<'a>, aname: Name<'a>, uid: Optional }
    /// Gives up on an outstanding request.
    Flush = 108 { old_tag: Tag }
    /// Walks from `fid` to `new_fid` by names.
    Walk = 110 { fid: Fid, new_fid: Fid, names: Names<'a> }
    /// Reads from an open file.
    Read = 116 { fid: Fid, offset: u64, count: u32 }
    /// Writes to an open file.
    Write = 118 { fid: Fid, offset: u64, data: Data<'a> }
    /// Forgets a fid.
    Clunk = 120 { fid: Fid }
    /// Removes the file and forgets the fid.
    Remove = 122 { fid: Fid }

    /// Asks for the room of the file system (.L).
    Statfs = 8 { fid: Fid }
    /// Opens (.L).
    Lopen = 12 { fid: Fid, flags: OpenFlags }
    /// Creates in directory `fid` and opens; `fid` becomes the new file (.L).
    Lcreate = 14 { fid: Fid, name: Name<'a>, flags: OpenFlags, mode: u32, gid: u32 }
    /// Makes a symbolic link (.L).
    Symlink = 16 { dir: Fid, name: Name<'a>, target: Name<'a>, gid: u32 }
    /// Makes a device, FIFO or socket (.L).
    Mknod = 18 { dir: Fid, name: Name<'a>, mode: u32, major: u32, minor: u32, gid: u32 }
    /// Renames `fid` into directory `dir` (.L, superseded by `Renameat`).
    Rename = 20 { fid: Fid, dir: Fid, name: Name<'a> }
    /// Reads a symbolic link (.L).
    Readlink = 22 { fid: Fid }
    /// Asks for attributes (.L).
    Getattr = 24 { fid: Fid, mask: GetattrMask }
    /// Sets attributes (.L).
    Setattr = 26 { fid: Fid, set: SetAttributes }
    /// Makes `new_fid` the value of an extended attribute, or with no name the list of them (.L).
    Xattrwalk = 30 { fid: Fid, new_fid: Fid, name: Name<'a> }
    /// Makes `fid` accept the value of an extended attribute by writes; set at clunk (.L).
    Xattrcreate = 32 { fid: Fid, name: Name<'a>, size: u64, flags: u32 }
    /// Lists a directory from a cookie (.L).
    Readdir = 40 { fid: Fid, offset: u64, count: u32 }
    /// Makes a file's data durable (.L).
    Fsync = 50 { fid: Fid, data_only: Optional }
    /// Takes or releases a byte-range lock (.L).
    Lock = 52 {
        fid: Fid, kind: LockKind, flags: u32, start: u64, length: u64, process: u32,
        client: Name<'a>,
    }
    /// Asks who would prevent a lock (.L).
    Getlock = 54 {
        fid: Fid, kind: LockKind, start: u64, length: u64, process: u32, client: Name<'a>,
    }
    /// Makes a hard link to `fid` (.L).
    Link = 70 { dir: Fid, fid: Fid, name: Name<'a> }
    /// Makes a directory (.L).
    Mkdir = 72 { dir: Fid, name: Name<'a>, mode: u32, gid: u32 }
    /// Renames by directory and name (.L).
    Renameat = 74 { old_dir: Fid, old_name: Name<'a>, new_dir: Fid, new_name: Name<'a> }
    /// Removes by directory and name (.L).
    Unlinkat = 76 { dir: Fid, name: Name<'a>, flags: u32 }

    /// Opens (base).
    Open = 112 { fid: Fid, mode: LegacyMode }
    /// Creates and opens (base).
    Create = 114 { fid: Fid, name: Name<'a>, permission: u32, mode: LegacyMode }
    /// Asks for a description (base).
    Stat = 124 { fid: Fid }
    /// Changes a description (base).
    Wstat = 126 { fid: Fid, stat: LegacyStat<'a> }
}

messages! {
    /// What a service answers (`R` messages).
    Reply:
    /// The session's message size and version.
    Version = 101 { msize: u32, version: Name<'a> }
    /// The authentication file.
    Auth = 103 { qid: Qid }
    /// The root.
    Attach = 105 { qid: Qid }
    /// It failed (base): text.
    Error = 107 { text: Name<'a> }
    /// It failed (.L): a number.
    Lerror = 7 { errno: Errno }
    /// The flushed request will not be answered any more.
    Flush = 109 {}
    /// Identity of each element walked; fewer than asked when one was missing.
    Walk = 111 { qids: Qids }
    /// Data, fewer than asked at the end of the file.
    Read = 117 { data: Data<'a> }
    /// Bytes written.
    Write = 119 { count: u32 }
    /// The fid is gone.
    Clunk = 121 {}
    /// File and fid are gone.
    Remove = 123 {}

    /// Room of the file system (.L).
    Statfs = 9 { statfs: StatFs }
    /// Opened (.L).
    Lopen = 13 { qid: Qid, iounit: u32 }
    /// Created and opened (.L).
    Lcreate = 15 { qid: Qid, iounit: u32 }
    /// Made (.L).
    Symlink = 17 { qid: Qid }
    /// Made (.L).
    Mknod = 19 { qid: Qid }
    /// Renamed (.L).
    Rename = 21 {}
    /// The link's target (.L).
    Readlink = 23 { target: Name<'a> }
    /// Attributes (.L).
    Getattr = 25 { attributes: Attributes }
    /// Set (.L).
    Setattr = 27 {}
    /// Length of the value or list (.L).
    Xattrwalk = 31 { size: u64 }
    /// Ready for the value (.L).
    Xattrcreate = 33 {}
    /// Entries, see [`DirEntries`](crate::DirEntries) (.L).
    Readdir = 41 { data: Data<'a> }
    /// Durable (.L).
    Fsync = 51 {}
    /// Held or not (.L).
    Lock = 53 { status: LockStatus }
    /// The lock in the way, or `UNLOCK` (.L).
    Getlock = 55 { kind: LockKind, start: u64, length: u64, process: u32, client: Name<'a> }
    /// Made (.L).
    Link = 71 {}
    /// Made (.L).
    Mkdir = 73 { qid: Qid }
    /// Renamed (.L).
    Renameat = 75 {}
    /// Removed (.L).
    Unlinkat = 77 {}

    /// Opened (base).
    Open = 113 { qid: Qid, iounit: u32 }
    /// Created and opened (base).
    Create = 115 { qid: Qid, iounit: u32 }
    /// The description (base).
    Stat = 125 { stat: LegacyStat<'a> }
    /// Changed (base).
    Wstat = 127 {}
}
