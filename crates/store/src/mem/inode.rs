//! Files, whatever their names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};

use p9::{Attributes, Errno, GetattrMask, Qid, QidType, SetAttributes, SetattrMask, Time, mode};

use super::content::{Content, GRAIN_BYTES};
use super::tree::Entries;
use super::{Space, guard, now, reading, refusal, writing};
use crate::error::Result;
use crate::locks::FileLocks;

/// The largest value of an extended attribute: `XATTR_SIZE_MAX` of linux/limits.h.
const XATTR_BYTES_MAX: usize = 65_536;
/// Room for the extended attributes of one file in all.
const XATTRS_BYTES_MAX: usize = 1 << 20;
/// The longest name of one: `XATTR_NAME_MAX` of linux/limits.h.
const XATTR_NAME_MAX: usize = 255;

pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) body: Body,
    meta: Mutex<Meta>,
    pub(super) locks: Arc<FileLocks>,
    space: Arc<Space>,
}

pub(super) enum Body {
    File(RwLock<Content>),
    Directory(RwLock<Entries>),
    Symlink(Vec<u8>),
}

struct Meta {
    mode: u32,
    uid: u32,
    gid: u32,
    nlink: u64,
    atime: Time,
    mtime: Time,
    ctime: Time,
    btime: Time,
    version: u32,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// The kinds of access that permission bits are for.
#[derive(Clone, Copy)]
pub(super) struct Access(u32);

impl Access {
    pub(super) const READ: Access = Access(4);
    pub(super) const WRITE: Access = Access(2);
    pub(super) const SEARCH: Access = Access(1);
}

impl Inode {
    fn new(number: u64, mode: u32, owner: (u32, u32), body: Body, space: &Arc<Space>) -> Self {
        let (uid, gid) = owner;
        let t = now();
        let nlink = if mode & mode::TYPE_MASK == mode::DIRECTORY { 2 } else { 1 };
        let times = (t, t, t, t);
        let (atime, mtime, ctime, btime) = times;
        let xattrs = BTreeMap::new();
        let meta = Meta { mode, uid, gid, nlink, atime, mtime, ctime, btime, version: 1, xattrs };
        let space = Arc::clone(space);
        Self { number, body, meta: Mutex::new(meta), locks: Arc::default(), space }
    }

    pub(super) fn file(number: u64, mode: u32, owner: (u32, u32), space: &Arc<Space>) -> Self {
        let body = Body::File(RwLock::new(Content::new(space)));
        Self::new(number, mode::REGULAR | mode & mode::PERMISSIONS, owner, body, space)
    }

    pub(super) fn directory(number: u64, mode: u32, owner: (u32, u32), space: &Arc<Space>) -> Self {
        let body = Body::Directory(RwLock::default());
        Self::new(number, mode::DIRECTORY | mode & mode::PERMISSIONS, owner, body, space)
    }

    pub(super) fn symlink(
        number: u64,
        target: &[u8],
        owner: (u32, u32),
        space: &Arc<Space>,
    ) -> Self {
        Self::new(number, mode::SYMLINK | 0o777, owner, Body::Symlink(target.to_vec()), space)
    }

    pub(super) fn kind(&self) -> QidType {
        match self.body {
            Body::File(_) => QidType::empty(),
            Body::Directory(_) => QidType::DIR,
            Body::Symlink(_) => QidType::SYMLINK,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory(_))
    }

    /// The names in this directory.
    pub(super) fn entries(&self, operation: &'static str) -> Result<&RwLock<Entries>> {
        match &self.body {
            Body::Directory(entries) => Ok(entries),
            Body::File(_) | Body::Symlink(_) => Err(refusal(operation, Errno::ENOTDIR)),
        }
    }

    pub(super) fn qid(&self) -> Qid {
        Qid { kind: self.kind(), version: guard(&self.meta).version, path: self.number }
    }

    pub(super) fn nlink(&self) -> u64 {
        guard(&self.meta).nlink
    }

    /// Group and permission bits.
    pub(super) fn group_and_mode(&self) -> (u32, u32) {
        let meta = guard(&self.meta);
        (meta.gid, meta.mode)
    }

    /// Whether `uid`, `gid` may have that access: one class of bits decides (path_resolution(7)).
    ///
    /// # Errors
    /// `EACCES`.
    pub(super) fn check(
        &self,
        operation: &'static str,
        (uid, gid): (u32, u32),
        access: Access,
    ) -> Result<()> {
        let meta = guard(&self.meta);
        let class = match () {
            () if uid == 0 => return Ok(()),
            () if meta.uid == uid => meta.mode >> 6,
            () if meta.gid == gid => meta.mode >> 3,
            () => meta.mode,
        };
        if class & access.0 == 0 { Err(refusal(operation, Errno::EACCES)) } else { Ok(()) }
    }

    pub(super) fn attributes(&self) -> Attributes {
        let (size, taken) = match &self.body {
            Body::File(content) => {
                let content = reading(content);
                (content.size(), content.taken())
            }
            Body::Directory(entries) => (reading(entries).len() as u64, 0),
            Body::Symlink(target) => (target.len() as u64, 0),
        };
        let meta = guard(&self.meta);
        Attributes {
            valid: GetattrMask::BASIC | GetattrMask::BTIME | GetattrMask::DATA_VERSION,
            qid: Qid { kind: self.kind(), version: meta.version, path: self.number },
            mode: meta.mode,
            uid: meta.uid,
            gid: meta.gid,
            nlink: meta.nlink,
            rdev: 0,
            size,
            block_size: GRAIN_BYTES,
            blocks: taken / 512,
            atime: meta.atime,
            mtime: meta.mtime,
            ctime: meta.ctime,
            btime: meta.btime,
            generation: 0,
            data_version: meta.version.into(),
        }
    }

    /// Notes that the content changed. A writer of `user` takes away what ran with the file's
    /// owner's rights, as write(2) does for all but the superuser.
    pub(super) fn touch_content(&self, user: u32) {
        let mut meta = guard(&self.meta);
        let t = now();
        (meta.mtime, meta.ctime) = (t, t);
        meta.version = meta.version.wrapping_add(1);
        if user != 0 && meta.mode & mode::TYPE_MASK == mode::REGULAR {
            meta.mode &= !0o4000;
            if meta.mode & 0o010 != 0 {
                meta.mode &= !0o2000;
            }
        }
    }

    /// Notes a read, in the manner of the mount option `relatime`: only the first after a change.
    pub(super) fn touch_access(&self) {
        let mut meta = guard(&self.meta);
        if meta.atime <= meta.mtime || meta.atime <= meta.ctime {
            meta.atime = now();
        }
    }

    /// Adds links, or with a negative number takes them away.
    pub(super) fn add_links(&self, change: i64) {
        let mut meta = guard(&self.meta);
        meta.nlink = meta.nlink.saturating_add_signed(change);
        meta.ctime = now();
    }

    /// As chmod(2), chown(2), truncate(2), utimensat(2); `may_write` says that the size may be
    /// changed whatever the permission bits are.
    pub(super) fn set_attributes(
        &self,
        user: (u32, u32),
        may_write: bool,
        set: &SetAttributes,
    ) -> Result<()> {
        let has = |bit| set.valid.contains(bit);
        let given = [(SetattrMask::ATIME_SET, set.atime), (SetattrMask::MTIME_SET, set.mtime)];
        if given.iter().any(|(bit, time)| has(*bit) && time.nanoseconds >= 1_000_000_000) {
            return Err(refusal("utimensat", Errno::EINVAL));
        }
        self.check_owner(user, set)?;
        if has(SetattrMask::SIZE) {
            let content = match &self.body {
                Body::File(content) => content,
                Body::Directory(_) => return Err(refusal("truncate", Errno::EISDIR)),
                Body::Symlink(_) => return Err(refusal("truncate", Errno::EINVAL)),
            };
            if !may_write {
                self.check("truncate", user, Access::WRITE)?;
            }
            writing(content).resize(set.size).map_err(|errno| refusal("truncate", errno))?;
            self.touch_content(user.0);
        }
        if has(SetattrMask::MODE) && matches!(self.body, Body::Symlink(_)) {
            return Err(refusal("chmod", Errno::EOPNOTSUPP));
        }
        let t = now();
        let mut meta = guard(&self.meta);
        if has(SetattrMask::UID) || has(SetattrMask::GID) {
            if has(SetattrMask::UID) {
                meta.uid = set.uid;
            }
            if has(SetattrMask::GID) {
                meta.gid = set.gid;
            }
            if meta.mode & mode::TYPE_MASK == mode::REGULAR {
                meta.mode &= !0o4000;
                if meta.mode & 0o010 != 0 {
                    meta.mode &= !0o2000;
                }
            }
        }
        if has(SetattrMask::MODE) {
            meta.mode = meta.mode & mode::TYPE_MASK | set.mode & mode::PERMISSIONS;
        }
        if has(SetattrMask::ATIME_SET) {
            meta.atime = set.atime;
        } else if has(SetattrMask::ATIME) {
            meta.atime = t;
        }
        if has(SetattrMask::MTIME_SET) {
            meta.mtime = set.mtime;
        } else if has(SetattrMask::MTIME) {
            meta.mtime = t;
        }
        if !set.valid.is_empty() {
            meta.ctime = t;
            meta.version = meta.version.wrapping_add(1);
        }
        Ok(())
    }

    /// Who may change what: mode and given times are the owner's, owner and group only the
    /// superuser's (an owner may name the group that the file has, or its own).
    fn check_owner(&self, (uid, gid): (u32, u32), set: &SetAttributes) -> Result<()> {
        let (owner, group) = {
            let meta = guard(&self.meta);
            (meta.uid, meta.gid)
        };
        if uid == 0 {
            return Ok(());
        }
        let has = |bit| set.valid.contains(bit);
        let chown = has(SetattrMask::UID) && set.uid != owner
            || has(SetattrMask::GID) && set.gid != group && set.gid != gid;
        let owners = set
            .valid
            .intersects(SetattrMask::MODE | SetattrMask::ATIME_SET | SetattrMask::MTIME_SET);
        if chown || owners && uid != owner {
            return Err(refusal("setattr", Errno::EPERM));
        }
        Ok(())
    }

    pub(super) fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        guard(&self.meta).xattrs.get(name).cloned().ok_or(refusal("getxattr", Errno::ENODATA))
    }

    pub(super) fn xattr_list(&self) -> Vec<u8> {
        let meta = guard(&self.meta);
        meta.xattrs.keys().flat_map(|name| name.iter().copied().chain([0])).collect()
    }

    pub(super) fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        /// `XATTR_CREATE` and `XATTR_REPLACE` of linux/xattr.h.
        const CREATE: u32 = 1;
        const REPLACE: u32 = 2;
        let refuse = |errno| Err(refusal("setxattr", errno));
        self.check_xattr_name("setxattr", name)?;
        if value.len() > XATTR_BYTES_MAX {
            return refuse(Errno::E2BIG);
        }
        if flags & !(CREATE | REPLACE) != 0 {
            return refuse(Errno::EINVAL);
        }
        let mut meta = guard(&self.meta);
        let exists = meta.xattrs.contains_key(name);
        if flags & CREATE != 0 && exists {
            return refuse(Errno::EEXIST);
        }
        if flags & REPLACE != 0 && !exists {
            return refuse(Errno::ENODATA);
        }
        let others = meta.xattrs.iter().filter(|(other, _)| other.as_slice() != name);
        let taken: usize = others.map(|(name, value)| name.len() + value.len()).sum();
        if taken + name.len() + value.len() > XATTRS_BYTES_MAX {
            return refuse(Errno::ENOSPC);
        }
        meta.xattrs.insert(name.to_vec(), value.to_vec());
        meta.ctime = now();
        Ok(())
    }

    pub(super) fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        self.check_xattr_name("removexattr", name)?;
        let mut meta = guard(&self.meta);
        meta.xattrs.remove(name).ok_or(refusal("removexattr", Errno::ENODATA))?;
        meta.ctime = now();
        Ok(())
    }

    /// The name spaces of xattr(7) that are only kept, not acted upon. Access control lists would
    /// have to be obeyed, so they are not taken.
    fn check_xattr_name(&self, operation: &'static str, name: &[u8]) -> Result<()> {
        let errno = if name.is_empty() || name.len() > XATTR_NAME_MAX {
            Errno::ERANGE
        } else if name.starts_with(b"user.") {
            if !matches!(self.body, Body::Symlink(_)) {
                return Ok(());
            }
            Errno::EPERM
        } else if name.starts_with(b"trusted.") || name.starts_with(b"security.") {
            return Ok(());
        } else {
            Errno::EOPNOTSUPP
        };
        Err(refusal(operation, errno))
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        self.space.give_file();
    }
}
