//! Attributes: from statx(2), and to the calls that change them.

use std::os::fd::{AsFd, OwnedFd};

use p9::{Attributes, Errno, GetattrMask, Qid, QidType, SetAttributes, SetattrMask, StatFs, Time};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Statx, StatxFlags, StatxTimestamp, Timespec, Timestamps,
    UTIME_NOW, UTIME_OMIT, Uid,
};

use super::{Export, refusal, system};
use crate::error::Result;

/// What makes a file itself, on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// Asks for everything that [`Attributes`] has room for.
pub(super) fn stat(fd: impl AsFd) -> Result<(Identity, Statx)> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, wanted).map_err(system("statx"))?;
    Ok((identity(&found), found))
}

/// As [`stat`], of a name in a directory; a symbolic link is not followed.
pub(super) fn stat_entry(dir: impl AsFd, name: &[u8]) -> Result<(Identity, Statx)> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found =
        rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, wanted).map_err(system("statx"))?;
    Ok((identity(&found), found))
}

fn identity(found: &Statx) -> Identity {
    Identity {
        device: device_number(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
    }
}

/// `dev_t` as glibc and the kernel's 64-bit calls pack it (makedev(3)).
fn device_number(major: u32, minor: u32) -> u64 {
    rustix::fs::makedev(major, minor)
}

pub(super) fn file_type(found: &Statx) -> FileType {
    FileType::from_raw_mode(found.stx_mode.into())
}

pub(super) fn qid_type(kind: FileType) -> QidType {
    match kind {
        FileType::Directory => QidType::DIR,
        FileType::Symlink => QidType::SYMLINK,
        _ => QidType::empty(),
    }
}

/// One step of splitmix64: spreads every bit of `value` over all of the result.
fn scatter(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Export {
    /// `qid.path`: the inode number; for files of another device than the root's, with a mark of
    /// their device in the upper 16 bits, which inode numbers leave free in practice. It is the
    /// same after a restart of the service.
    pub(super) fn qid_path(&self, file: Identity) -> u64 {
        if file.device == self.identity.device {
            file.inode
        } else {
            file.inode ^ ((scatter(file.device) | 1) << 48)
        }
    }

    pub(super) fn qid(&self, file: Identity, found: &Statx) -> Qid {
        Qid { kind: qid_type(file_type(found)), version: version(found), path: self.qid_path(file) }
    }

    pub(super) fn attributes(&self, file: Identity, found: &Statx) -> Attributes {
        let mut valid = GetattrMask::BASIC;
        valid.set(GetattrMask::BTIME, found.stx_mask & StatxFlags::BTIME.bits() != 0);
        Attributes {
            valid,
            qid: self.qid(file, found),
            mode: found.stx_mode.into(),
            uid: found.stx_uid,
            gid: found.stx_gid,
            nlink: found.stx_nlink.into(),
            rdev: device_number(found.stx_rdev_major, found.stx_rdev_minor),
            size: found.stx_size,
            block_size: found.stx_blksize.into(),
            blocks: found.stx_blocks,
            atime: time(found.stx_atime),
            mtime: time(found.stx_mtime),
            ctime: time(found.stx_ctime),
            btime: time(found.stx_btime),
            generation: 0,
            data_version: 0,
        }
    }
}

/// `qid.version`: changes when modification time, change time or size do. Two writes within one
/// tick of the kernel's clock (1 to 10 ms) that leave the size alone are not told apart.
fn version(found: &Statx) -> u32 {
    let moment = |t: StatxTimestamp| (t.tv_sec as u64).rotate_left(30) ^ u64::from(t.tv_nsec);
    let mixed = scatter(moment(found.stx_mtime))
        ^ scatter(moment(found.stx_ctime)).rotate_left(1)
        ^ scatter(found.stx_size).rotate_left(2);
    (mixed ^ (mixed >> 32)) as u32
}

fn time(t: StatxTimestamp) -> Time {
    Time { seconds: t.tv_sec as u64, nanoseconds: t.tv_nsec.into() }
}

/// Changes everything but the size, which is the caller's because it depends on what is open.
///
/// `path` leads to the file by its descriptor ([`super::path_of`]), so that this works for files
/// that were never opened and for symbolic links.
pub(super) fn change(path: &str, current_mode: u32, set: &SetAttributes) -> Result<()> {
    let has = |bit| set.valid.contains(bit);
    // The owner before the mode: chown(2) clears the set-user-ID bit that chmod may set.
    if has(SetattrMask::UID) || has(SetattrMask::GID) {
        let user = has(SetattrMask::UID).then(|| Uid::from_raw(set.uid));
        let group = has(SetattrMask::GID).then(|| Gid::from_raw(set.gid));
        rustix::fs::chown(path, user, group).map_err(system("chown"))?;
    }
    let times = wanted_times(set)?;
    if has(SetattrMask::MODE) {
        chmod(path, set.mode)?;
    } else if set.valid == SetattrMask::CTIME {
        // No call sets the change time alone; giving a file the mode that it has does.
        chmod(path, current_mode)?;
    }
    if let Some(times) = times {
        rustix::fs::utimensat(CWD, path, &times, AtFlags::empty()).map_err(system("utimensat"))?;
    }
    Ok(())
}

pub(super) fn chmod(path: &str, mode: u32) -> Result<()> {
    let mode = Mode::from_raw_mode(mode & p9::mode::PERMISSIONS);
    rustix::fs::chmod(path, mode).map_err(system("chmod"))
}

fn wanted_times(set: &SetAttributes) -> Result<Option<Timestamps>> {
    let either = |now, given, time: Time| {
        if set.valid.contains(given) {
            if time.nanoseconds >= 1_000_000_000 {
                // UTIME_NOW and UTIME_OMIT are such numbers: a client must not send them.
                return Err(refusal("utimensat", Errno::EINVAL));
            }
            let (tv_sec, tv_nsec) = (time.seconds as i64, time.nanoseconds as _);
            Ok(Timespec { tv_sec, tv_nsec })
        } else {
            let tv_nsec = if set.valid.contains(now) { UTIME_NOW } else { UTIME_OMIT };
            Ok(Timespec { tv_sec: 0, tv_nsec })
        }
    };
    let last_access = either(SetattrMask::ATIME, SetattrMask::ATIME_SET, set.atime)?;
    let last_modification = either(SetattrMask::MTIME, SetattrMask::MTIME_SET, set.mtime)?;
    let asked =
        SetattrMask::ATIME | SetattrMask::ATIME_SET | SetattrMask::MTIME | SetattrMask::MTIME_SET;
    Ok(set.valid.intersects(asked).then_some(Timestamps { last_access, last_modification }))
}

pub(super) fn statfs(fd: &OwnedFd) -> Result<StatFs> {
    let system = system("statfs");
    let kind = rustix::fs::fstatfs(fd).map_err(&system)?.f_type as u32;
    let found = rustix::fs::fstatvfs(fd).map_err(&system)?;
    Ok(StatFs {
        kind,
        block_size: u32::try_from(found.f_bsize).unwrap_or(u32::MAX),
        blocks: found.f_blocks,
        blocks_free: found.f_bfree,
        blocks_available: found.f_bavail,
        files: found.f_files,
        files_free: found.f_ffree,
        fsid: found.f_fsid,
        name_max: u32::try_from(found.f_namemax).unwrap_or(u32::MAX),
    })
}
