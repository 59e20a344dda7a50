//! The store's words for files as FUSE has them, and back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use p9::{Attributes, OpenFlags, SetattrMask, Time, mode};

/// Attributes for the kernel.
pub(super) fn file_attr(number: u64, found: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: found.size,
        blocks: found.blocks,
        atime: system_time(found.atime),
        mtime: system_time(found.mtime),
        ctime: system_time(found.ctime),
        crtime: UNIX_EPOCH,
        kind: kind(found.mode),
        perm: (found.mode & mode::PERMISSIONS) as u16,
        nlink: u32::try_from(found.nlink).unwrap_or(u32::MAX),
        uid: found.uid,
        gid: found.gid,
        rdev: device(found.rdev),
        blksize: u32::try_from(found.block_size).unwrap_or(4096),
        flags: 0,
    }
}

fn kind(mode: u32) -> FileType {
    // inode(7).
    match mode & mode::TYPE_MASK {
        mode::DIRECTORY => FileType::Directory,
        mode::SYMLINK => FileType::Symlink,
        0o010_000 => FileType::NamedPipe,
        0o020_000 => FileType::CharDevice,
        0o060_000 => FileType::BlockDevice,
        0o140_000 => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

/// The kind of a directory's entry from `DT_*` (readdir(3)), which is the mode's upper bits.
pub(super) fn entry_kind(kind_of_entry: u8) -> FileType {
    kind(u32::from(kind_of_entry) << 12)
}

/// A device's number in the 32 bits that FUSE has for it (`new_encode_dev` of the kernel's
/// `kdev_t.h`); makedev(3) has 64.
fn device(number: u64) -> u32 {
    let major = (number >> 8 & 0xfff) | (number >> 32 & !0xfff);
    let minor = (number & 0xff) | (number >> 12 & !0xff);
    (minor & 0xff | (major & 0xfff) << 8 | (minor & !0xff) << 12) as u32
}

fn system_time(time: Time) -> SystemTime {
    let part = Duration::from_nanos(time.nanoseconds.min(999_999_999));
    // Seconds before 1970 wrap.
    let seconds = time.seconds as i64;
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start =
        if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    start.and_then(|start| start.checked_add(part)).unwrap_or(UNIX_EPOCH)
}

/// A moment from the kernel.
pub(super) fn time(moment: SystemTime) -> Time {
    match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => Time { seconds: since.as_secs(), nanoseconds: since.subsec_nanos().into() },
        // fuser 0.18 makes of the kernel's pair (−s, n) the moment −s − n where it should make
        // −s + n (its `time.rs`, `system_time_from_time`); the pair itself is not lost.
        Err(before) => {
            let before = before.duration();
            let seconds = (before.as_secs() as i64).wrapping_neg() as u64;
            Time { seconds, nanoseconds: before.subsec_nanos().into() }
        }
    }
}

/// What setattr is to do with one of the two times: the bits for the mask, and the moment.
pub(super) fn set_time(
    wanted: TimeOrNow,
    now: SetattrMask,
    given: SetattrMask,
) -> (SetattrMask, Time) {
    match wanted {
        TimeOrNow::Now => (now, Time::default()),
        TimeOrNow::SpecificTime(moment) => (now | given, time(moment)),
    }
}

/// What a store is told of the flags of open(2). The rest is the kernel's business.
pub(super) fn open_flags(flags: i32) -> OpenFlags {
    let meant = OpenFlags::READ_WRITE.bits()
        | OpenFlags::WRITE_ONLY.bits()
        | OpenFlags::EXCLUSIVE.bits()
        | OpenFlags::TRUNCATE.bits()
        | OpenFlags::APPEND.bits()
        | OpenFlags::SYNC.bits();
    OpenFlags::from_bits_retain(flags as u32 & meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_nanoseconds_on_both_sides_of_1970() {
        let at = |seconds: i64, nanoseconds| Time { seconds: seconds as u64, nanoseconds };
        for moment in [at(0, 0), at(1_700_000_000, 999_999_999)] {
            assert_eq!(time(system_time(moment)), moment);
        }
        let before = UNIX_EPOCH - Duration::new(1, 500_000_000);
        assert_eq!(system_time(at(-2, 500_000_000)), before);
        // What fuser makes of (-2, 500,000,000).
        assert_eq!(time(UNIX_EPOCH - Duration::new(2, 500_000_000)), at(-2, 500_000_000));
    }

    #[test]
    fn devices_are_numbered_as_the_kernel_does() {
        let makedev = |major: u64, minor: u64| {
            (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32
        };
        assert_eq!(device(makedev(8, 1)), 0x801);
        assert_eq!(device(makedev(259, 70_000)), 0x1111_0370);
    }

    #[test]
    fn kinds_of_entries_are_those_of_modes() {
        assert_eq!(entry_kind(4), FileType::Directory);
        assert_eq!(entry_kind(8), FileType::RegularFile);
        assert_eq!(entry_kind(10), FileType::Symlink);
        assert_eq!(entry_kind(1), FileType::NamedPipe);
    }
}
