//! fork(2), exec(2), exit(2): what has been written arrives before the process is another.

use std::ffi::CString;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use p9::Errno;

use crate::ops::{descriptor, memory, namespace};
use crate::remote::Opened;
use crate::{context, description, own, table};

/// The process that the table belongs to. A child of vfork(2) or posix_spawn(3) runs in its parent's
/// memory with descriptors of its own: there the two differ.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// The umask, as last seen by umask(2)'s hook or read when first needed.
static UMASK: AtomicU32 = AtomicU32::new(UMASK_UNKNOWN);

const UMASK_UNKNOWN: u32 = u32::MAX;

fn pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Whether the calling process is the one whose descriptors the table lists.
pub(crate) fn owns_the_table() -> bool {
    pid() == OWNER.load(Ordering::Relaxed)
}

/// At the start of a process image: who we are, and which descriptors were inherited.
pub(crate) fn start() {
    OWNER.store(pid(), Ordering::Relaxed);
}

/// Finds redirected descriptors and working directory that the previous image left.
pub(crate) fn adopt_inherited() {
    for fd in own::open_descriptors() {
        description::adopt(fd);
    }
    if let Some(cwd) = namespace::inherited_cwd() {
        context::set_virtual_cwd(Some(cwd));
    }
}

/// The umask of this process, from /proc, because umask(2) cannot ask without changing it.
fn read_umask() -> u32 {
    let status = own::read_small_file("/proc/self/status").unwrap_or_default();
    let text = String::from_utf8_lossy(&status);
    text.lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok())
        .unwrap_or(0o22)
}

/// The umask.
pub(crate) fn umask() -> u32 {
    let known = UMASK.load(Ordering::Relaxed);
    if known != UMASK_UNKNOWN {
        return known;
    }
    let read = read_umask();
    // The hook may have seen a newer one meanwhile.
    match UMASK.compare_exchange(UMASK_UNKNOWN, read, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => read,
        Err(newer) => newer,
    }
}

/// umask(2) was called.
pub(crate) fn set_umask(mask: u32) {
    UMASK.store(mask & 0o777, Ordering::Relaxed);
}

/// Sends everything that was written and waits until it has arrived. Errors stay with their files, whose
/// next write, fsync or close reports them.
pub(crate) fn settle_all() {
    if !table::any() {
        return;
    }
    memory::write_back_all();
    for remote in context::context().remotes() {
        remote.settle();
        remote.part();
    }
}

/// Before the end of the process: what it has open is closed, as the kernel closes descriptors. Who is killed
/// does not come by here, and that is how a service can tell one from the other.
pub(crate) fn before_exit() {
    settle_all();
    descriptor::unlock_everything();
    for remote in context::context().remotes() {
        remote.finish();
    }
}

/// Before fork(2) and its kin: the child inherits the open files, so from now on both hold them.
pub(crate) fn before_fork() {
    if !table::any() {
        return;
    }
    settle_all();
    for (_, description) in table::all() {
        description.share();
    }
}

/// In the child of fork(2).
pub(crate) fn after_fork_in_child() {
    let was = OWNER.swap(pid(), Ordering::Relaxed);
    if was == pid() {
        return;
    }
    let cwd = context::inherited_virtual_cwd();
    context::renew(cwd);
    own::close_kept();
    description::start_anew();
}

/// Before exec(2), in the process that will become another program: what the table knows is lost,
/// the descriptors are not.
pub(crate) fn before_exec() {
    if !table::any() {
        return;
    }
    settle_all();
    if owns_the_table() {
        for (_, description) in table::all() {
            description.share();
        }
        // The openings of this image end with it, and nobody closes them.
        for remote in context::context().remotes() {
            remote.sync();
        }
    }
}

/// A program that is to be executed lies on a service: it is copied into memory, and that is
/// executed. Returns a path for execve(2).
pub(crate) fn fetch_program(place: &context::Place) -> Result<CString, Errno> {
    use rustix::fs::MemfdFlags;
    let system = |error: rustix::io::Errno| Errno::from_raw(error.raw_os_error());
    let remote = |error: client::Error| error.to_errno();
    crate::ops::metadata::access(place, libc::X_OK, true, true)?;
    let opened = place.run(|remote, at, _| remote.open(at, p9::OpenFlags::empty(), 0))?;
    let Opened::File(file, _) = opened else { return Err(Errno::EACCES) };
    // A script's interpreter opens it again by the descriptor, so that it must survive exec.
    let memory =
        rustix::fs::memfd_create(c"sluice-program", MemfdFlags::empty()).map_err(system)?;
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    loop {
        let count = file.read_at(&mut buffer, offset).map_err(remote)?;
        if count == 0 {
            break;
        }
        let mut rest = &buffer[..count];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&memory, rest).map_err(system)?..];
        }
        offset += count as u64;
    }
    let fd = std::os::fd::IntoRawFd::into_raw_fd(memory);
    CString::new(format!("/proc/self/fd/{fd}")).map_err(|_| Errno::EINVAL)
}
