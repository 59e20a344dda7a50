//! fork(2), exec(2), exit(2): what has been written arrives before the process is another.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use address::Settings;
use p9::Errno;

use crate::ops::{memory, namespace};
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
    }
}

/// What must be in the environment of every program that this one becomes or starts: `NAME=value`.
static CARRIED: OnceLock<[CString; 2]> = OnceLock::new();

/// Remembers how this process was given Sluice, if `sluice run` did.
pub(crate) fn remember_environment() {
    use std::os::unix::ffi::OsStrExt;
    let variable = |name: &str| std::env::var_os(name);
    let (Some(preload), Some(settings)) = (variable(PRELOAD), variable(Settings::VARIABLE)) else {
        return;
    };
    let entry = |name: &str, value: &OsStr| {
        CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
    };
    let entries = entry(PRELOAD, &preload).zip(entry(Settings::VARIABLE, &settings));
    if let Some((preload, settings)) = entries {
        let _ = CARRIED.set([preload, settings]);
    }
}

const PRELOAD: &str = "LD_PRELOAD";

/// The environment for execve(2), completed where a program cleared it (`env -i`): without Sluice the
/// new image would take redirected paths for local ones. `None`: it is complete.
///
/// # Safety
/// `environment` is NULL or an array of strings that ends in NULL (execve(2)).
pub(crate) unsafe fn complete_environment(
    environment: *const *const c_char,
) -> Option<Environment> {
    let carried = CARRIED.get()?;
    let mut entries = Vec::new();
    let mut joined = None;
    let mut missing = [true, true];
    let mut at = environment;
    // SAFETY: the caller's promise.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: as above: a NUL-terminated string.
        let (pointer, text) = unsafe { (*at, CStr::from_ptr(*at).to_bytes()) };
        for (index, entry) in carried.iter().enumerate() {
            let name_len = entry.to_bytes().iter().position(|byte| *byte == b'=')?;
            if text.get(..=name_len) == entry.to_bytes().get(..=name_len) {
                missing[index] = false;
            }
        }
        if let Some(own) = text.strip_prefix(b"LD_PRELOAD=")
            && !own.windows(LIBRARY.len()).any(|part| part == LIBRARY)
        {
            // The program's own libraries, and ours before them.
            let whole = [carried[0].to_bytes(), b":", own].concat();
            joined = CString::new(whole).ok();
            entries.push(joined.as_ref().map_or(pointer, |whole| whole.as_ptr()));
        } else {
            entries.push(pointer);
        }
        // SAFETY: not the end yet.
        at = unsafe { at.add(1) };
    }
    if missing == [false, false] && joined.is_none() {
        return None;
    }
    for (entry, missing) in carried.iter().zip(missing) {
        if missing {
            entries.push(entry.as_ptr());
        }
    }
    entries.push(std::ptr::null());
    Some(Environment { entries, _joined: joined })
}

/// What the library's file is called, whatever its directory.
const LIBRARY: &[u8] = b"libsluice.so";

/// An environment for execve(2).
pub(crate) struct Environment {
    pub(crate) entries: Vec<*const c_char>,
    /// Keeps the one entry that was made anew.
    _joined: Option<CString>,
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
