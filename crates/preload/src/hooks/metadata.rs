//! stat(2) and its relatives: attributes, rights, times, extended attributes.

use std::ffi::{c_char, c_int, c_uint, c_void};

use p9::Errno;

use super::data::{buffer, data};
use super::{Named, hooks, original};
use crate::context::{Located, Place, locate};
use crate::glance::may_be_far;
use crate::install::{Technique, technique};
use crate::ops::metadata as ops;
use crate::outcome::{CReturn, Outcome, guarded};
use crate::table::is_ours;

type Path = *const c_char;

/// A structure of the program's to fill.
fn out<'a, T>(address: *mut T) -> Result<&'a mut T, Errno> {
    // SAFETY: the caller of stat(2) and its kin promises room for the structure, and its fields are
    // integers, so that every content is valid.
    unsafe { address.as_mut() }.ok_or(Errno::EFAULT)
}

/// Runs on the place that a path leads to.
pub(super) fn at<T>(
    dir: c_int,
    path: Path,
    run: impl FnOnce(&Place) -> Result<T, Errno>,
) -> Outcome<T> {
    match locate(dir, path) {
        Located::Far(place) => run(&place).into(),
        Located::Nowhere(errno) => Outcome::Fail(errno),
        // What lies beside a mapped prefix is reached by stat, open and chdir, as in `ls -la`; other
        // calls get the kernel's answer, which is that there is no such path.
        Located::Near(_) | Located::Here => Outcome::PassThrough,
    }
}

/// Whether the path is empty, so that with `AT_EMPTY_PATH` the descriptor itself is meant.
fn is_empty(path: Path) -> bool {
    // SAFETY: not NULL, NUL-terminated by contract.
    !path.is_null() && unsafe { *path } == 0
}

fn names_descriptor(dir: c_int, path: Path, flags: c_int) -> bool {
    flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || is_empty(path)) && is_ours(dir)
}

fn stat(dir: c_int, path: Path, to: *mut libc::stat64, follow: bool) -> Outcome<c_int> {
    if let Located::Near(path) = locate(dir, path) {
        return out(to).and_then(|to| crate::own::stat(&path, follow, to)).map(|()| 0).into();
    }
    at(dir, path, |place| {
        let attributes = ops::stat(place, follow)?;
        ops::fill_stat(out(to)?, &attributes, place);
        Ok(0)
    })
}

fn stat_fd(fd: c_int, to: *mut libc::stat64) -> Outcome<c_int> {
    (|| {
        let (attributes, place) = ops::stat_open(fd)?;
        ops::fill_stat(out(to)?, &attributes, &place);
        Ok(0)
    })()
    .into()
}

/// Flags of fstatat(2).
const STAT_FLAGS: c_int = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH | libc::AT_NO_AUTOMOUNT;

fn stat_at(dir: c_int, path: Path, to: *mut libc::stat64, flags: c_int) -> Outcome<c_int> {
    if names_descriptor(dir, path, flags) {
        return stat_fd(dir, to);
    }
    // No path and not our descriptor: fstat(2) of a local file in disguise, or ENOENT.
    if is_empty(path) {
        return Outcome::PassThrough;
    }
    if flags & !STAT_FLAGS != 0 {
        return at(dir, path, |_| Err(Errno::EINVAL));
    }
    stat(dir, path, to, flags & libc::AT_SYMLINK_NOFOLLOW == 0)
}

fn statx(dir: c_int, path: Path, flags: c_int, to: *mut libc::statx) -> Outcome<c_int> {
    let fill = |attributes, place: &Place| -> Result<c_int, Errno> {
        ops::fill_statx(out(to)?, &attributes, place);
        Ok(0)
    };
    if names_descriptor(dir, path, flags) {
        return ops::stat_open(dir).and_then(|(attributes, place)| fill(attributes, &place)).into();
    }
    if flags & !(STAT_FLAGS | libc::AT_STATX_SYNC_TYPE) != 0 {
        return at(dir, path, |_| Err(Errno::EINVAL));
    }
    // No path and not our descriptor: fstat(2) of a local file in disguise, or ENOENT.
    if is_empty(path) {
        return Outcome::PassThrough;
    }
    if let Located::Near(path) = locate(dir, path) {
        let mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME;
        return out(to).and_then(|to| crate::own::statx(&path, flags, mask, to)).map(|()| 0).into();
    }
    at(dir, path, |place| fill(ops::stat(place, flags & libc::AT_SYMLINK_NOFOLLOW == 0)?, place))
}

fn access(dir: c_int, path: Path, mode: c_int, flags: c_int) -> Outcome<c_int> {
    at(dir, path, |place| {
        let effective = flags & libc::AT_EACCESS != 0;
        ops::access(place, mode, effective, flags & libc::AT_SYMLINK_NOFOLLOW == 0).map(|()| 0)
    })
}

fn set(dir: c_int, path: Path, follow: bool, set: p9::SetAttributes) -> Outcome<c_int> {
    at(dir, path, |place| ops::set(place, follow, &set).map(|()| 0))
}

fn chown(dir: c_int, path: Path, follow: bool, uid: c_uint, gid: c_uint) -> Outcome<c_int> {
    let change = ops::owner_change(uid, gid);
    if !change.valid.is_empty() {
        return set(dir, path, follow, change);
    }
    at(dir, path, |place| match ops::without_set_id(&ops::stat(place, follow)?) {
        Some(change) => ops::set(place, follow, &change).map(|()| 0),
        None => Ok(0),
    })
}

fn chown_fd(fd: c_int, uid: c_uint, gid: c_uint) -> Outcome<c_int> {
    let change = ops::owner_change(uid, gid);
    if !change.valid.is_empty() {
        return set_fd(fd, change);
    }
    match ops::stat_open(fd).map(|(attributes, _)| ops::without_set_id(&attributes)) {
        Ok(Some(change)) => set_fd(fd, change),
        Ok(None) => Outcome::Handled(0),
        Err(errno) => Outcome::Fail(errno),
    }
}

fn set_fd(fd: c_int, set: p9::SetAttributes) -> Outcome<c_int> {
    ops::set_open(fd, &set).map(|()| 0).into()
}

fn timespecs(times: *const libc::timespec) -> Option<[libc::timespec; 2]> {
    // SAFETY: utimensat(2): NULL or two elements.
    (!times.is_null()).then(|| unsafe { [*times, *times.add(1)] })
}

fn timevals(times: *const libc::timeval) -> Option<[libc::timespec; 2]> {
    // SAFETY: utimes(2): NULL or two elements.
    let times = (!times.is_null()).then(|| unsafe { [*times, *times.add(1)] })?;
    // Microseconds out of range become nanoseconds out of range, which `times_change` refuses.
    Some(times.map(|time| libc::timespec {
        tv_sec: time.tv_sec,
        tv_nsec: if (0..1_000_000).contains(&time.tv_usec) { time.tv_usec * 1000 } else { -1 },
    }))
}

fn touch(
    dir: c_int,
    path: Path,
    follow: bool,
    times: Option<[libc::timespec; 2]>,
) -> Outcome<c_int> {
    match ops::times_change(times) {
        Ok(change) => set(dir, path, follow, change),
        Err(errno) => Outcome::Fail(errno),
    }
}

fn touch_fd(fd: c_int, times: Option<[libc::timespec; 2]>) -> Outcome<c_int> {
    match ops::times_change(times) {
        Ok(change) => set_fd(fd, change),
        Err(errno) => Outcome::Fail(errno),
    }
}

fn size(length: libc::off_t) -> Result<u64, Errno> {
    u64::try_from(length).map_err(|_| Errno::EINVAL)
}

fn name<'a>(name: Path) -> Result<&'a [u8], Errno> {
    if name.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: setxattr(2): a NUL-terminated name.
    Ok(unsafe { std::ffi::CStr::from_ptr(name) }.to_bytes())
}

fn value_of(address: *mut c_void, size: usize) -> Result<Option<&'static mut [u8]>, Errno> {
    if size == 0 { Ok(None) } else { buffer(address, size).map(Some) }
}

/// Extended attributes of what lies beside a mapped prefix are not asked for: `ls -la` looks for them.
fn xattr_at<T>(path: Path, run: impl FnOnce(&Place) -> Result<T, Errno>) -> Outcome<T> {
    match locate(CWD, path) {
        Located::Near(_) => Outcome::Fail(Errno::EOPNOTSUPP),
        _ => at(CWD, path, run),
    }
}

fn get_xattr(path: Path, follow: bool, n: Path, to: *mut c_void, len: usize) -> Outcome<isize> {
    xattr_at(path, |place| {
        let name = name(n)?;
        let value = place.run(|remote, at, _| remote.xattr(at, follow, name))?;
        ops::give_value(&value, value_of(to, len)?)
    })
}

fn list_xattr(path: Path, follow: bool, to: *mut c_char, len: usize) -> Outcome<isize> {
    xattr_at(path, |place| {
        let names = place.run(|remote, at, _| remote.xattr_list(at, follow))?;
        ops::give_value(&names, value_of(to.cast(), len)?)
    })
}

fn set_xattr(
    path: Path,
    follow: bool,
    n: Path,
    from: *const c_void,
    len: usize,
    flags: c_int,
) -> Outcome<c_int> {
    xattr_at(path, |place| {
        let (name, value) = (name(n)?, data(from, len)?);
        // What a log is told of a file is about everything that was written to it before.
        ops::settle(place)?;
        place.run(|s, at, _| s.set_xattr(at, follow, name, value, flags as u32)).map(|()| 0)
    })
}

fn remove_xattr(path: Path, follow: bool, n: Path) -> Outcome<c_int> {
    xattr_at(path, |place| {
        let name = name(n)?;
        place.run(|remote, at, _| remote.remove_xattr(at, follow, name)).map(|()| 0)
    })
}

const CWD: c_int = libc::AT_FDCWD;

/// Set on a descriptor, this attribute says that other processes use the file at the same time and rely on seeing what each
/// of them has written. It is for us and goes no further: `libsluice_mpi.so` sets it.
const CONCURRENT: &[u8] = b"user.sluice.concurrent";

hooks! {
    /// fstat(2).
    Always [fstat64 fstat]
    fn fstat(fd: c_int, to: *mut libc::stat64) -> c_int
    where is_ours(fd) => stat_fd(fd, to);

    /// fstatat(2).
    Always [fstatat64 fstatat]
    fn fstatat(dir: c_int, path: Path, to: *mut libc::stat64, flags: c_int) -> c_int
    where names_descriptor(dir, path, flags) || may_be_far(dir, path)
    => stat_at(dir, path, to, flags);

    /// stat(2) as programs linked before glibc 2.33 call it.
    Always [__xstat64 __xstat]
    fn xstat(version: c_int, path: Path, to: *mut libc::stat64) -> c_int
    where may_be_far(CWD, path) => { let _ = version; stat(CWD, path, to, true) };

    /// lstat(2), likewise.
    Always [__lxstat64 __lxstat]
    fn lxstat(version: c_int, path: Path, to: *mut libc::stat64) -> c_int
    where may_be_far(CWD, path) => { let _ = version; stat(CWD, path, to, false) };

    /// fstat(2), likewise.
    Always [__fxstat64 __fxstat]
    fn fxstat(version: c_int, fd: c_int, to: *mut libc::stat64) -> c_int
    where is_ours(fd) => { let _ = version; stat_fd(fd, to) };

    /// fstatat(2), likewise.
    Always [__fxstatat64 __fxstatat]
    fn fxstatat(version: c_int, dir: c_int, path: Path, to: *mut libc::stat64, flags: c_int) -> c_int
    where names_descriptor(dir, path, flags) || may_be_far(dir, path)
    => { let _ = version; stat_at(dir, path, to, flags) };

    /// statx(2).
    Always [statx]
    fn statx_path(dir: c_int, path: Path, flags: c_int, mask: c_uint, to: *mut libc::statx) -> c_int
    where names_descriptor(dir, path, flags) || may_be_far(dir, path)
    => { let _ = mask; statx(dir, path, flags, to) };

    /// access(2).
    Always [access]
    fn access_path(path: Path, mode: c_int) -> c_int
    where may_be_far(CWD, path) => access(CWD, path, mode, 0);

    /// euidaccess(3), eaccess(3).
    Always [euidaccess]
    fn access_effective(path: Path, mode: c_int) -> c_int
    where may_be_far(CWD, path) => access(CWD, path, mode, libc::AT_EACCESS);

    /// faccessat(2).
    Always [faccessat]
    fn access_at(dir: c_int, path: Path, mode: c_int, flags: c_int) -> c_int
    where may_be_far(dir, path) => access(dir, path, mode, flags);

    /// chmod(2).
    Always [chmod]
    fn chmod(path: Path, mode: c_uint) -> c_int
    where may_be_far(CWD, path) => set(CWD, path, true, ops::mode_change(mode));

    /// lchmod(3).
    Always [lchmod]
    fn lchmod(path: Path, mode: c_uint) -> c_int
    where may_be_far(CWD, path) => set(CWD, path, false, ops::mode_change(mode));

    /// fchmod(2).
    Always [fchmod]
    fn fchmod(fd: c_int, mode: c_uint) -> c_int
    where is_ours(fd) => set_fd(fd, ops::mode_change(mode));

    /// fchmodat(2).
    Always [fchmodat]
    fn fchmodat(dir: c_int, path: Path, mode: c_uint, flags: c_int) -> c_int
    where may_be_far(dir, path)
    => set(dir, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0, ops::mode_change(mode));

    /// chown(2).
    Always [chown]
    fn chown_path(path: Path, uid: c_uint, gid: c_uint) -> c_int
    where may_be_far(CWD, path) => chown(CWD, path, true, uid, gid);

    /// lchown(2).
    Always [lchown]
    fn lchown(path: Path, uid: c_uint, gid: c_uint) -> c_int
    where may_be_far(CWD, path) => chown(CWD, path, false, uid, gid);

    /// fchown(2).
    Always [fchown]
    fn fchown(fd: c_int, uid: c_uint, gid: c_uint) -> c_int
    where is_ours(fd) => chown_fd(fd, uid, gid);

    /// fchownat(2).
    Always [fchownat]
    fn fchownat(dir: c_int, path: Path, uid: c_uint, gid: c_uint, flags: c_int) -> c_int
    where names_descriptor(dir, path, flags) || may_be_far(dir, path)
    => if names_descriptor(dir, path, flags) {
        chown_fd(dir, uid, gid)
    } else {
        chown(dir, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0, uid, gid)
    };

    /// truncate(2).
    Always [truncate64 truncate]
    fn truncate(path: Path, length: libc::off_t) -> c_int
    where may_be_far(CWD, path) => match size(length) {
        Ok(size) => set(CWD, path, true, ops::size_change(size)),
        Err(errno) => Outcome::Fail(errno),
    };

    /// utime(2).
    Always [utime]
    fn utime(path: Path, times: *const libc::utimbuf) -> c_int
    where may_be_far(CWD, path) => {
        // SAFETY: utime(2): NULL or a structure.
        let times = unsafe { times.as_ref() }.map(|times| {
            [times.actime, times.modtime].map(|tv_sec| libc::timespec { tv_sec, tv_nsec: 0 })
        });
        touch(CWD, path, true, times)
    };

    /// utimes(2).
    Always [utimes]
    fn utimes(path: Path, times: *const libc::timeval) -> c_int
    where may_be_far(CWD, path) => touch(CWD, path, true, timevals(times));

    /// lutimes(3).
    Always [lutimes]
    fn lutimes(path: Path, times: *const libc::timeval) -> c_int
    where may_be_far(CWD, path) => touch(CWD, path, false, timevals(times));

    /// futimesat(2).
    Always [futimesat]
    fn futimesat(dir: c_int, path: Path, times: *const libc::timeval) -> c_int
    where (path.is_null() && is_ours(dir)) || may_be_far(dir, path)
    => if path.is_null() {
        touch_fd(dir, timevals(times))
    } else {
        touch(dir, path, true, timevals(times))
    };

    /// futimes(3).
    Always [futimes]
    fn futimes(fd: c_int, times: *const libc::timeval) -> c_int
    where is_ours(fd) => touch_fd(fd, timevals(times));

    /// futimens(3).
    Always [futimens]
    fn futimens(fd: c_int, times: *const libc::timespec) -> c_int
    where is_ours(fd) => touch_fd(fd, timespecs(times));

    /// utimensat(2).
    Always [utimensat]
    fn utimensat(dir: c_int, path: Path, times: *const libc::timespec, flags: c_int) -> c_int
    where (path.is_null() && is_ours(dir)) || names_descriptor(dir, path, flags)
        || may_be_far(dir, path)
    => if path.is_null() || names_descriptor(dir, path, flags) {
        touch_fd(dir, timespecs(times))
    } else {
        touch(dir, path, flags & libc::AT_SYMLINK_NOFOLLOW == 0, timespecs(times))
    };

    /// statfs(2).
    Always [statfs64 statfs]
    fn statfs(path: Path, to: *mut libc::statfs64) -> c_int
    where may_be_far(CWD, path) => at(CWD, path, |place| {
        ops::fill_statfs(out(to)?, &ops::statfs(place)?);
        Ok(0)
    });

    /// fstatfs(2).
    Always [fstatfs64 fstatfs]
    fn fstatfs(fd: c_int, to: *mut libc::statfs64) -> c_int
    where is_ours(fd) => (|| {
        ops::fill_statfs(out(to)?, &ops::statfs_open(fd)?);
        Ok(0)
    })().into();

    /// statvfs(3).
    Always [statvfs64 statvfs]
    fn statvfs(path: Path, to: *mut libc::statvfs64) -> c_int
    where may_be_far(CWD, path) => at(CWD, path, |place| {
        ops::fill_statvfs(out(to)?, &ops::statfs(place)?);
        Ok(0)
    });

    /// fstatvfs(3).
    Always [fstatvfs64 fstatvfs]
    fn fstatvfs(fd: c_int, to: *mut libc::statvfs64) -> c_int
    where is_ours(fd) => (|| {
        ops::fill_statvfs(out(to)?, &ops::statfs_open(fd)?);
        Ok(0)
    })().into();

    /// getxattr(2).
    Always [getxattr]
    fn getxattr(path: Path, n: Path, to: *mut c_void, len: usize) -> isize
    where may_be_far(CWD, path) => get_xattr(path, true, n, to, len);

    /// lgetxattr(2).
    Always [lgetxattr]
    fn lgetxattr(path: Path, n: Path, to: *mut c_void, len: usize) -> isize
    where may_be_far(CWD, path) => get_xattr(path, false, n, to, len);

    /// fgetxattr(2).
    Always [fgetxattr]
    fn fgetxattr(fd: c_int, n: Path, to: *mut c_void, len: usize) -> isize
    where is_ours(fd) => (|| {
        let name = name(n)?;
        let value = ops::by_path(fd, |remote, at, _| remote.xattr(at, true, name))?;
        ops::give_value(&value, value_of(to, len)?)
    })().into();

    /// listxattr(2).
    Always [listxattr]
    fn listxattr(path: Path, to: *mut c_char, len: usize) -> isize
    where may_be_far(CWD, path) => list_xattr(path, true, to, len);

    /// llistxattr(2).
    Always [llistxattr]
    fn llistxattr(path: Path, to: *mut c_char, len: usize) -> isize
    where may_be_far(CWD, path) => list_xattr(path, false, to, len);

    /// flistxattr(2).
    Always [flistxattr]
    fn flistxattr(fd: c_int, to: *mut c_char, len: usize) -> isize
    where is_ours(fd) => (|| {
        let names = ops::by_path(fd, |remote, at, _| remote.xattr_list(at, true))?;
        ops::give_value(&names, value_of(to.cast(), len)?)
    })().into();

    /// setxattr(2).
    Always [setxattr]
    fn setxattr(path: Path, n: Path, from: *const c_void, len: usize, flags: c_int) -> c_int
    where may_be_far(CWD, path) => set_xattr(path, true, n, from, len, flags);

    /// lsetxattr(2).
    Always [lsetxattr]
    fn lsetxattr(path: Path, n: Path, from: *const c_void, len: usize, flags: c_int) -> c_int
    where may_be_far(CWD, path) => set_xattr(path, false, n, from, len, flags);

    /// fsetxattr(2).
    Always [fsetxattr]
    fn fsetxattr(fd: c_int, n: Path, from: *const c_void, len: usize, flags: c_int) -> c_int
    where is_ours(fd) => (|| {
        let (name, value) = (name(n)?, data(from, len)?);
        if name == CONCURRENT {
            crate::ops::data::keep_nothing(fd)?;
            return Ok(0);
        }
        ops::by_path(fd, |s, at, _| s.set_xattr(at, true, name, value, flags as u32))?;
        Ok(0)
    })().into();

    /// removexattr(2).
    Always [removexattr]
    fn removexattr(path: Path, n: Path) -> c_int
    where may_be_far(CWD, path) => remove_xattr(path, true, n);

    /// lremovexattr(2).
    Always [lremovexattr]
    fn lremovexattr(path: Path, n: Path) -> c_int
    where may_be_far(CWD, path) => remove_xattr(path, false, n);

    /// fremovexattr(2).
    Always [fremovexattr]
    fn fremovexattr(fd: c_int, n: Path) -> c_int
    where is_ours(fd) => (|| {
        let name = name(n)?;
        ops::by_path(fd, |remote, at, _| remote.remove_xattr(at, true, name))?;
        Ok(0)
    })().into();

    /// pathconf(3): limits of a Linux file system.
    Always [pathconf]
    fn pathconf(path: Path, which: c_int) -> libc::c_long
    where may_be_far(CWD, path) => at(CWD, path, |place| ops::stat(place, true).and_then(|_| limit(which)));

    /// fpathconf(3).
    Always [fpathconf]
    fn fpathconf(fd: c_int, which: c_int) -> libc::c_long
    where is_ours(fd) => limit(which).into();

    => also {
        Always stat_path [stat64 stat]
        Always lstat_path [lstat64 lstat]
    }
}

/// stat(2) and lstat(2) of local files: libc's do nothing but this system call, by way of its fstatat(2), whose hook would look
/// at the path once more.
#[inline(always)]
unsafe fn stat_here<H: Named>(path: Path, to: *mut libc::stat64, flags: c_int) -> c_int {
    if technique() != Technique::Patching {
        // SAFETY: the program's own arguments.
        return unsafe { original!(H: fn(Path, *mut libc::stat64) -> c_int)(path, to) };
    }
    let arguments = [CWD as usize, path as usize, to as usize, flags as usize, 0, 0];
    match crate::own::system_call(libc::SYS_newfstatat, arguments) {
        Ok(_) => 0,
        Err(errno) => c_int::failed(errno),
    }
}

/// stat(2) and lstat(2) of a path that may lead to a service. Apart from the hooks, so that a call that is not ours need not
/// keep its arguments.
#[inline(never)]
unsafe extern "C-unwind" fn stat_second_look<H: Named>(
    path: Path,
    to: *mut libc::stat64,
    flags: c_int,
) -> c_int {
    match guarded(|| stat(CWD, path, to, flags & libc::AT_SYMLINK_NOFOLLOW == 0)) {
        Outcome::Handled(value) => value,
        Outcome::Fail(errno) => c_int::failed(errno),
        // SAFETY: the program's own arguments.
        Outcome::PassThrough => unsafe { stat_here::<H>(path, to, flags) },
    }
}

/// stat(2).
unsafe extern "C-unwind" fn stat_path<H: Named>(path: Path, to: *mut libc::stat64) -> c_int {
    if may_be_far(CWD, path) {
        // SAFETY: the program's own arguments.
        return unsafe { stat_second_look::<H>(path, to, 0) };
    }
    // SAFETY: the program's own arguments.
    unsafe { stat_here::<H>(path, to, 0) }
}

/// lstat(2).
unsafe extern "C-unwind" fn lstat_path<H: Named>(path: Path, to: *mut libc::stat64) -> c_int {
    if may_be_far(CWD, path) {
        // SAFETY: the program's own arguments.
        return unsafe { stat_second_look::<H>(path, to, libc::AT_SYMLINK_NOFOLLOW) };
    }
    // SAFETY: the program's own arguments.
    unsafe { stat_here::<H>(path, to, libc::AT_SYMLINK_NOFOLLOW) }
}

fn limit(which: c_int) -> Result<libc::c_long, Errno> {
    Ok(match which {
        libc::_PC_LINK_MAX => 127,
        libc::_PC_NAME_MAX => 255,
        libc::_PC_PATH_MAX => 4096,
        libc::_PC_PIPE_BUF => 4096,
        libc::_PC_CHOWN_RESTRICTED | libc::_PC_NO_TRUNC => 1,
        libc::_PC_FILESIZEBITS => 64,
        libc::_PC_2_SYMLINKS => 1,
        // No limit, or none known.
        _ => -1,
    })
}
