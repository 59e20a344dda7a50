//! Our own use of the system: raw calls that never enter a patched function, descriptors that stay
//! out of the program's way, and the stores of `scdc:///`.

use std::ffi::{CStr, c_int};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use address::StoreSpec;
use client::{Exchange, Options, Place, SocketDial};
use p9::Errno;
use rustix::io::Errno as SystemErrno;
use rustix::process::{Resource, getrlimit};

use crate::hooks::direct;

/// Sockets of ours that the program must not close by accident: programs close "all" descriptors
/// after fork(2).
const KEPT_MAX: usize = 64;

/// Below the lowest of them: what almost every close(2) asks about.
static KEPT_FROM: AtomicI32 = AtomicI32::new(i32::MAX);

static KEPT: [AtomicI32; KEPT_MAX] = [const { AtomicI32::new(-1) }; KEPT_MAX];

/// The lowest number of the descriptors that the stores of `scdc:///` hold in this process;
/// `u32::MAX`: no such store is open.
static STORES_FROM: AtomicU32 = AtomicU32::new(u32::MAX);

/// As many descriptors as the program may have now, within reason.
fn descriptors_max() -> i32 {
    getrlimit(Resource::Nofile).current.unwrap_or(1 << 20).min(1 << 20) as i32
}

/// Where the numbers begin that close_range(2) must leave alone, since stores of ours have files
/// there. What the program itself put so high stays open with them.
pub(crate) fn stores_from() -> u32 {
    STORES_FROM.load(Ordering::Relaxed)
}

fn errno(error: SystemErrno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

fn borrowed<'a>(fd: c_int) -> BorrowedFd<'a> {
    // SAFETY: the program's own descriptor, used for one call that answers EBADF if it is closed.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Moves a descriptor of ours to a high number, so that the program's numbers are those it would
/// have without us, and remembers it.
pub(crate) fn keep_away(fd: OwnedFd) -> OwnedFd {
    let limit = descriptors_max();
    let wanted = (limit - KEPT_MAX as i32).max(limit / 2);
    let moved = match rustix::io::fcntl_dupfd_cloexec(&fd, wanted) {
        Ok(moved) => moved,
        // No number that high is free: the one we have is good too.
        Err(_) => fd,
    };
    // A number that was kept before and is handed out again needs no second entry.
    KEPT_FROM.fetch_min(moved.as_raw_fd(), Ordering::Relaxed);
    if !is_kept(moved.as_raw_fd()) {
        for kept in &KEPT {
            let number = kept.load(Ordering::Relaxed);
            if (number == -1 || is_closed(number))
                && kept
                    .compare_exchange(
                        number,
                        moved.as_raw_fd(),
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                break;
            }
        }
    }
    moved
}

fn is_closed(fd: c_int) -> bool {
    rustix::io::fcntl_getfd(borrowed(fd)) == Err(SystemErrno::BADF)
}

/// Whether a descriptor has so high a number that it must be asked whether it is one of ours.
#[inline(always)]
pub(crate) fn may_be_kept(fd: c_int) -> bool {
    fd >= direct!(KEPT_FROM).load(Ordering::Relaxed)
}

/// Whether a descriptor is one of ours.
pub(crate) fn is_kept(fd: c_int) -> bool {
    may_be_kept(fd) && KEPT.iter().any(|kept| kept.load(Ordering::Relaxed) == fd)
}

/// Our descriptors within a range, in ascending order.
pub(crate) fn kept_between(first: u32, last: u32) -> Vec<c_int> {
    let mut kept: Vec<c_int> = KEPT
        .iter()
        .map(|kept| kept.load(Ordering::Relaxed))
        .filter(|fd| u32::try_from(*fd).is_ok_and(|fd| (first..=last).contains(&fd)))
        .collect();
    kept.sort_unstable();
    kept
}

/// In a forked child: closes our copies of the parent's sockets, which are the parent's to use.
pub(crate) fn close_kept() {
    for kept in &KEPT {
        let fd = kept.swap(-1, Ordering::AcqRel);
        if fd >= 0 {
            close(fd);
        }
    }
}

/// close(2) past all hooks: the caller gives the descriptor up.
pub(crate) fn close(fd: c_int) {
    // Linux closes the descriptor whatever it answers (close(2)).
    let _ = system_call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
}

/// The path of a local directory that a descriptor has open.
pub(crate) fn path_of(fd: c_int) -> Option<Vec<u8>> {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{fd}"), Vec::new()).ok()?.into_bytes();
    link.starts_with(b"/").then_some(link)
}

/// read(2) of a local descriptor.
pub(crate) fn read(fd: c_int, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::read(borrowed(fd), buffer).map_err(errno)
}

/// pread(2) of a local descriptor.
pub(crate) fn read_at(fd: c_int, buffer: &mut [u8], offset: i64) -> Result<usize, Errno> {
    rustix::io::pread(borrowed(fd), buffer, offset as u64).map_err(errno)
}

/// write(2) to a local descriptor.
pub(crate) fn write(fd: c_int, data: &[u8]) -> Result<usize, Errno> {
    rustix::io::write(borrowed(fd), data).map_err(errno)
}

/// pwrite(2) to a local descriptor.
pub(crate) fn write_at(fd: c_int, data: &[u8], offset: i64) -> Result<usize, Errno> {
    rustix::io::pwrite(borrowed(fd), data, offset as u64).map_err(errno)
}

/// stat(2) of a local file.
pub(crate) fn stat(path: &CStr, follow: bool, to: &mut libc::stat64) -> Result<(), Errno> {
    let flags = if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    let arguments = [
        libc::AT_FDCWD as usize,
        path.as_ptr() as usize,
        std::ptr::from_mut(to) as usize,
        flags as usize,
        0,
        0,
    ];
    system_call(libc::SYS_newfstatat, arguments).map(drop)
}

/// statx(2) of a local file.
pub(crate) fn statx(
    path: &CStr,
    flags: c_int,
    mask: u32,
    to: &mut libc::statx,
) -> Result<(), Errno> {
    let arguments = [
        libc::AT_FDCWD as usize,
        path.as_ptr() as usize,
        flags as usize,
        mask as usize,
        std::ptr::from_mut(to) as usize,
        0,
    ];
    system_call(libc::SYS_statx, arguments).map(drop)
}

/// open(2) of a local file.
pub(crate) fn open(path: &CStr, flags: c_int, mode: u32) -> Result<c_int, Errno> {
    let arguments =
        [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, mode as usize, 0, 0];
    system_call(libc::SYS_openat, arguments).map(|fd| fd as c_int)
}

/// fchdir(2) to a local directory.
pub(crate) fn change_directory_to(fd: c_int) -> Result<(), Errno> {
    rustix::process::fchdir(borrowed(fd)).map_err(errno)
}

/// Dials with sockets that stay out of the program's way.
pub(crate) fn dial(place: Place) -> SocketDial {
    SocketDial { move_away: keep_away, ..SocketDial::new(place) }
}

/// The stores of this process as a service that is called directly.
pub(crate) fn service(stores: &[StoreSpec], options: &Options) -> Result<Arc<dyn Exchange>, Errno> {
    let descriptors_from = (descriptors_max() / 2) as u32;
    STORES_FROM.store(descriptors_from, Ordering::Relaxed);
    let files = service::FsOptions { descriptors_from };
    let exports = service::open_stores(stores, false, files, options, dial, no_dataset, no_object)
        .map_err(|error| errno_of(&error))?;
    Ok(Arc::new(service::Direct::new(Arc::new(exports))))
}

/// A dataset has replicas to keep equal, and threads that do it: that is no work for a guest.
/// `sluice run` refuses such a store before the program starts.
fn no_dataset(
    _path: &std::path::Path,
) -> Result<Arc<dyn service::Store>, Box<dyn std::error::Error + Send + Sync>> {
    Err("a dataset is served by `sluice serve`, not within a program".into())
}

/// The client of an object store needs threads and an asynchronous runtime: that is no work for a guest either.
/// `sluice run` leads such a store over the user's agent.
fn no_object(
    _uri: &address::Uri,
) -> Result<Arc<dyn service::Store>, Box<dyn std::error::Error + Send + Sync>> {
    Err("a bucket is served by an agent, not within a program".into())
}

/// Why a store cannot be opened: that the program has no descriptor left is for it to know, all else is
/// the matter of who gave the store.
fn errno_of(error: &service::Error) -> Errno {
    match error {
        service::Error::Directory { source, .. } => match source.to_errno() {
            shortage @ (Errno::EMFILE | Errno::ENFILE) => shortage,
            _ => Errno::EIO,
        },
        _ => Errno::EIO,
    }
}

/// Whether a descriptor is open.
pub(crate) fn is_open(fd: c_int) -> bool {
    !is_closed(fd)
}

/// FIOCLEX and FIONCLEX.
pub(crate) fn set_close_on_exec(fd: c_int, on: bool) -> Result<c_int, Errno> {
    let flags = if on { rustix::io::FdFlags::CLOEXEC } else { rustix::io::FdFlags::empty() };
    rustix::io::fcntl_setfd(borrowed(fd), flags).map(|()| 0).map_err(errno)
}

/// A system call that rustix does not have.
///
/// # Errors
/// What the kernel answers.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn system_call(number: libc::c_long, arguments: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: syscall(2), x86-64: number in rax, arguments in rdi, rsi, rdx, r10, r8, r9; rcx and r11
    // are overwritten. Callers pass arguments that are valid for the call.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    if result < 0 { Err(Errno::from_raw(-result as i32)) } else { Ok(result as usize) }
}

/// A system call that rustix does not have.
///
/// # Errors
/// What the kernel answers.
#[cfg(target_arch = "aarch64")]
pub(crate) fn system_call(number: libc::c_long, arguments: [usize; 6]) -> Result<usize, Errno> {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: syscall(2), arm64: number in x8, arguments in x0 to x5, result in x0.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    if result < 0 { Err(Errno::from_raw(-result as i32)) } else { Ok(result as usize) }
}

/// The descriptors that are open now.
pub(crate) fn open_descriptors() -> Vec<c_int> {
    use rustix::fs::{Dir, Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open("/proc/self/fd", flags, Mode::empty()) else {
        return Vec::new();
    };
    let itself = directory.as_raw_fd();
    let Ok(entries) = Dir::new(directory) else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str().ok()?.parse().ok())
        .filter(|fd| *fd != itself)
        .collect()
}

/// A file of /proc that fits a page.
pub(crate) fn read_small_file(path: &str) -> Option<Vec<u8>> {
    use rustix::fs::{Mode, OFlags};
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut content = vec![0; 4096];
    let count = rustix::io::read(&file, &mut content).ok()?;
    content.truncate(count);
    Some(content)
}
