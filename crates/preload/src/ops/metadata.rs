//! What files are: attributes, rights, times, extended attributes.

use std::ffi::c_int;
use std::sync::Arc;

use client::{At, Handle, RemoteFile};
use p9::{Attributes, Errno, SetAttributes, SetattrMask, StatFs, Time};

use crate::context::Place;
use crate::description::Content;
use crate::remote::Remote;
use crate::table;

/// st_blksize: what CPython, cp and tar take as the size of their buffers.
const BLOCK_SIZE: i64 = 256 * 1024;

fn errno(error: client::Error) -> Errno {
    error.to_errno()
}

/// What a descriptor leads to.
pub(crate) enum Target {
    File(Arc<RemoteFile>),
    Directory(Arc<Handle>),
    /// A mere name (`O_PATH`).
    Name(Place),
}

/// What a descriptor leads to.
pub(crate) fn target(fd: c_int) -> Result<(Target, Place), Errno> {
    table::get(fd).ok_or(Errno::EBADF)?.with(fd, |live| {
        let place = Place::new(live.uri.clone());
        let target = match live.content()? {
            Content::File(file) => Target::File(file.clone()),
            Content::Directory(handle, _) => Target::Directory(handle.clone()),
            Content::Name | Content::Unopened => Target::Name(place.clone()),
        };
        Ok((target, place))
    })
}

/// stat(2) and lstat(2).
pub(crate) fn stat(place: &Place, follow: bool) -> Result<Attributes, Errno> {
    settle(place)?;
    place.run(|remote, at, _| remote.stat(at, follow))
}

/// fstat(2).
pub(crate) fn stat_open(fd: c_int) -> Result<(Attributes, Place), Errno> {
    let (target, place) = target(fd)?;
    let attributes = match target {
        Target::File(file) => file.attributes().map_err(errno)?,
        Target::Directory(handle) => handle.attributes().map_err(errno)?,
        Target::Name(place) => stat(&place, false)?,
    };
    Ok((attributes, place))
}

/// Before a path is asked about: what this process has written to the same service arrives first,
/// so that a program sees its own writes whichever way it looks.
pub(crate) fn settle(place: &Place) -> Result<(), Errno> {
    place.remote()?.settle();
    Ok(())
}

/// `st_dev`: one number per service, so that (device, inode) stays unique.
pub(crate) fn device(place: &Place) -> u64 {
    // FNV-1a; 0x5c is a major number that no driver has (Documentation/admin-guide/devices.txt
    // marks 60–63, 120–127 and 240–254 as local; above 511 nothing is assigned).
    let hash =
        place.uri.endpoint.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    libc::makedev(0x5c5, (hash & 0xf_ffff) as u32)
}

/// Fills a `struct stat`, zeroing what there is nothing to say about.
pub(crate) fn fill_stat(stat: &mut libc::stat64, attributes: &Attributes, place: &Place) {
    // SAFETY: `stat64` is integers only; all zeros is one of its values.
    *stat = unsafe { std::mem::zeroed() };
    stat.st_dev = device(place);
    stat.st_ino = attributes.qid.path;
    stat.st_mode = attributes.mode;
    stat.st_nlink = attributes.nlink;
    stat.st_uid = attributes.uid;
    stat.st_gid = attributes.gid;
    stat.st_rdev = attributes.rdev;
    stat.st_size = attributes.size as i64;
    stat.st_blksize = BLOCK_SIZE;
    stat.st_blocks = attributes.blocks as i64;
    (stat.st_atime, stat.st_atime_nsec) = time(attributes.atime);
    (stat.st_mtime, stat.st_mtime_nsec) = time(attributes.mtime);
    (stat.st_ctime, stat.st_ctime_nsec) = time(attributes.ctime);
}

fn time(time: Time) -> (i64, i64) {
    (time.seconds as i64, time.nanoseconds as i64)
}

/// Fills a `struct statx`.
pub(crate) fn fill_statx(statx: &mut libc::statx, attributes: &Attributes, place: &Place) {
    let stamp = |time: Time| {
        // SAFETY: integers only; all zeros is one of its values.
        let mut stamp: libc::statx_timestamp = unsafe { std::mem::zeroed() };
        stamp.tv_sec = time.seconds as i64;
        stamp.tv_nsec = time.nanoseconds as u32;
        stamp
    };
    // SAFETY: as above.
    *statx = unsafe { std::mem::zeroed() };
    statx.stx_mask = libc::STATX_BASIC_STATS;
    statx.stx_blksize = BLOCK_SIZE as u32;
    statx.stx_nlink = attributes.nlink as u32;
    statx.stx_uid = attributes.uid;
    statx.stx_gid = attributes.gid;
    statx.stx_mode = attributes.mode as u16;
    statx.stx_ino = attributes.qid.path;
    statx.stx_size = attributes.size;
    statx.stx_blocks = attributes.blocks;
    statx.stx_atime = stamp(attributes.atime);
    statx.stx_mtime = stamp(attributes.mtime);
    statx.stx_ctime = stamp(attributes.ctime);
    let device = device(place);
    statx.stx_dev_major = libc::major(device);
    statx.stx_dev_minor = libc::minor(device);
    statx.stx_rdev_major = libc::major(attributes.rdev);
    statx.stx_rdev_minor = libc::minor(attributes.rdev);
}

/// access(2) and faccessat(2): by the mode bits that the service shows. Whether the service's own
/// user may do it is known for certain only when it is done.
pub(crate) fn access(
    place: &Place,
    wanted: c_int,
    effective: bool,
    follow: bool,
) -> Result<(), Errno> {
    if wanted & !(libc::R_OK | libc::W_OK | libc::X_OK) != 0 {
        return Err(Errno::EINVAL);
    }
    let attributes = stat(place, follow)?;
    let uid =
        if effective { rustix::process::geteuid() } else { rustix::process::getuid() }.as_raw();
    let gid =
        if effective { rustix::process::getegid() } else { rustix::process::getgid() }.as_raw();
    let wanted = wanted as u32;
    let any_execute = attributes.mode & 0o111 != 0 || attributes.is_directory();
    let granted = if uid == 0 {
        if any_execute { 7 } else { 6 }
    } else if uid == attributes.uid {
        attributes.mode >> 6
    } else if gid == attributes.gid || in_groups(attributes.gid) {
        attributes.mode >> 3
    } else {
        attributes.mode
    };
    if granted & wanted != wanted {
        return Err(Errno::EACCES);
    }
    if wanted & libc::W_OK as u32 != 0 && is_read_only(place, follow) {
        Err(Errno::EROFS)
    } else {
        Ok(())
    }
}

/// Whether the place refuses every change whatever the modes say, as a file system that is mounted
/// read-only. 9P has no word for that; a change of nothing at all is refused there, too.
fn is_read_only(place: &Place, follow: bool) -> bool {
    let nothing = SetAttributes::default();
    let changed = place.run(|remote, at, _| remote.set_attributes(at, follow, &nothing));
    changed == Err(Errno::EROFS)
}

fn in_groups(gid: u32) -> bool {
    let mut groups = [0; 256];
    // SAFETY: the buffer has room for the number of groups given.
    let count = unsafe { libc::getgroups(groups.len() as c_int, groups.as_mut_ptr()) };
    groups.iter().take(usize::try_from(count).unwrap_or(0)).any(|group| *group == gid)
}

/// chmod(2), chown(2), truncate(2), utimensat(2) by path.
pub(crate) fn set(place: &Place, follow: bool, set: &SetAttributes) -> Result<(), Errno> {
    settle(place)?;
    place.run(|remote, at, _| remote.set_attributes(at, follow, set))
}

/// chown(2) that changes no owner: it still takes set-user-ID and set-group-ID off an executable.
pub(crate) fn without_set_id(attributes: &Attributes) -> Option<SetAttributes> {
    let runs = attributes.is_regular() && attributes.mode & 0o111 != 0;
    (runs && attributes.mode & 0o6000 != 0).then(|| mode_change(attributes.mode & 0o1777))
}

/// The same by descriptor.
pub(crate) fn set_open(fd: c_int, set: &SetAttributes) -> Result<(), Errno> {
    match target(fd)?.0 {
        Target::File(file) => file.set_attributes(set).map_err(errno),
        Target::Directory(handle) => handle.set_attributes(set).map_err(errno),
        Target::Name(_) => Err(Errno::EBADF),
    }
}

/// The change that chmod(2) asks for.
pub(crate) fn mode_change(mode: u32) -> SetAttributes {
    SetAttributes { valid: SetattrMask::MODE, mode: mode & 0o7777, ..SetAttributes::default() }
}

/// The change that chown(2) asks for; −1 leaves a field alone.
pub(crate) fn owner_change(uid: u32, gid: u32) -> SetAttributes {
    let mut set = SetAttributes { uid, gid, ..SetAttributes::default() };
    if uid != u32::MAX {
        set.valid |= SetattrMask::UID;
    }
    if gid != u32::MAX {
        set.valid |= SetattrMask::GID;
    }
    set
}

/// The change that truncate(2) asks for.
pub(crate) fn size_change(size: u64) -> SetAttributes {
    SetAttributes { valid: SetattrMask::SIZE, size, ..SetAttributes::default() }
}

/// The change that utimensat(2) asks for; `None`: both to now.
///
/// # Errors
/// `EINVAL` for nanoseconds beyond a second.
pub(crate) fn times_change(times: Option<[libc::timespec; 2]>) -> Result<SetAttributes, Errno> {
    let now = libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
    let [access, change] = times.unwrap_or([now, now]);
    let mut set = SetAttributes::default();
    let fields = [
        (access, SetattrMask::ATIME, SetattrMask::ATIME_SET, &mut set.atime),
        (change, SetattrMask::MTIME, SetattrMask::MTIME_SET, &mut set.mtime),
    ];
    for (wanted, touch, exact, field) in fields {
        match wanted.tv_nsec {
            libc::UTIME_OMIT => {}
            libc::UTIME_NOW => set.valid |= touch,
            0..1_000_000_000 => {
                set.valid |= touch | exact;
                *field = Time { seconds: wanted.tv_sec as u64, nanoseconds: wanted.tv_nsec as u64 };
            }
            _ => return Err(Errno::EINVAL),
        }
    }
    Ok(set)
}

/// What statfs(2) tells.
pub(crate) struct FileSystem {
    room: StatFs,
    read_only: bool,
}

/// statfs(2) by path.
pub(crate) fn statfs(place: &Place) -> Result<FileSystem, Errno> {
    let room = place.run(|remote, at, _| remote.statfs(at))?;
    Ok(FileSystem { room, read_only: is_read_only(place, true) })
}

/// fstatfs(2).
pub(crate) fn statfs_open(fd: c_int) -> Result<FileSystem, Errno> {
    statfs(&target(fd)?.1)
}

/// `ST_VALID` of Linux linux/statfs.h: the flags mean something.
const FLAGS_VALID: i64 = 0x20;

/// Fills a `struct statfs`.
pub(crate) fn fill_statfs(
    out: &mut libc::statfs64,
    FileSystem { room: from, read_only }: &FileSystem,
) {
    // SAFETY: integers only; all zeros is one of its values.
    *out = unsafe { std::mem::zeroed() };
    out.f_type = from.kind.into();
    out.f_bsize = from.block_size.into();
    out.f_frsize = from.block_size.into();
    out.f_blocks = from.blocks;
    out.f_bfree = from.blocks_free;
    out.f_bavail = from.blocks_available;
    out.f_files = from.files;
    out.f_ffree = from.files_free;
    out.f_namelen = from.name_max.into();
    out.f_flags = FLAGS_VALID | if *read_only { libc::ST_RDONLY as i64 } else { 0 };
}

/// Fills a `struct statvfs`.
pub(crate) fn fill_statvfs(
    out: &mut libc::statvfs64,
    FileSystem { room: from, read_only }: &FileSystem,
) {
    // SAFETY: integers only; all zeros is one of its values.
    *out = unsafe { std::mem::zeroed() };
    out.f_bsize = from.block_size.into();
    out.f_frsize = from.block_size.into();
    out.f_blocks = from.blocks;
    out.f_bfree = from.blocks_free;
    out.f_bavail = from.blocks_available;
    out.f_files = from.files;
    out.f_ffree = from.files_free;
    out.f_favail = from.files_free;
    out.f_fsid = from.fsid;
    out.f_namemax = from.name_max.into();
    out.f_flag = if *read_only { libc::ST_RDONLY } else { 0 };
}

/// Runs an operation on the path that a descriptor was opened by, for calls that 9P has by path
/// only (extended attributes).
pub(crate) fn by_path<T>(
    fd: c_int,
    operation: impl FnMut(&Remote, At<'_>, &Place) -> client::Result<T>,
) -> Result<T, Errno> {
    target(fd)?.1.run(operation)
}

/// Copies a value to the program as getxattr(2) and listxattr(2) do: length 0 only asks for the size.
pub(crate) fn give_value(value: &[u8], buffer: Option<&mut [u8]>) -> Result<isize, Errno> {
    if let Some(buffer) = buffer.filter(|buffer| !buffer.is_empty()) {
        buffer.get_mut(..value.len()).ok_or(Errno::ERANGE)?.copy_from_slice(value);
    }
    Ok(value.len() as isize)
}
