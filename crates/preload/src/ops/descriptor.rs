//! Descriptors as such: duplicating, closing, flags, locks.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use client::Lock;
use p9::{Errno, LockKind};

use crate::description::{self, Content};
use crate::ops::{memory, process};
use crate::outcome::is_restricted;
use crate::{own, table};

/// Flags that F_SETFL may change (fcntl(2)).
const SETTABLE: u32 =
    (libc::O_APPEND | libc::O_ASYNC | libc::O_DIRECT | libc::O_NOATIME | libc::O_NONBLOCK) as u32;

/// close(2): the descriptor is gone whatever happens; what its delayed writes met comes out here.
pub(crate) fn close(fd: c_int) -> Result<(), Errno> {
    if !process::owns_the_table() {
        own::close(fd);
        return Ok(());
    }
    if is_restricted() {
        return Err(Errno::EIO);
    }
    let written_back = memory::write_back_of(fd);
    unlock_all(fd);
    let closed = description::forget(fd);
    own::close(fd);
    written_back.and(closed)
}

/// dup(2), dup3(2), F_DUPFD: after the kernel made `new` a copy of `old`.
pub(crate) fn duplicated(old: c_int, new: c_int) {
    if process::owns_the_table() {
        description::duplicate(old, new);
    }
}

/// What dup2(2) will replace: closed first as close(2) would.
///
/// # Errors
/// Those of the writes that were still to be done.
pub(crate) fn replaced(fd: c_int) -> Result<(), Errno> {
    if !process::owns_the_table() {
        return Ok(());
    }
    let written_back = memory::write_back_of(fd);
    unlock_all(fd);
    let closed = description::forget(fd);
    written_back.and(closed)
}

/// F_GETFL.
pub(crate) fn flags(fd: c_int) -> Result<c_int, Errno> {
    // O_LARGEFILE is what every 64-bit open reports on x86-64.
    const LARGE_FILE: u32 = 0o100_000;
    table::get(fd)
        .ok_or(Errno::EBADF)?
        .with(fd, |live| Ok((live.state.flags() | LARGE_FILE) as c_int))
}

/// F_SETFL.
pub(crate) fn set_flags(fd: c_int, flags: c_int) -> Result<(), Errno> {
    table::get(fd).ok_or(Errno::EBADF)?.with(fd, |live| {
        let kept = live.state.flags() & !SETTABLE;
        live.state.set_flags(kept | flags as u32 & SETTABLE);
        Ok(())
    })
}

/// F_SETLK, F_SETLKW, F_GETLK and their open-file-description forms. Taking a lock also means to see
/// what others wrote, and giving one up means that others see what was written.
pub(crate) fn lock(
    fd: c_int,
    lock: &mut libc::flock64,
    command: LockCommand,
    owner: LockOwner,
) -> Result<(), Errno> {
    let file = table::get(fd).ok_or(Errno::EBADF)?.with(fd, |live| {
        let flags = p9::OpenFlags::from_bits_retain(live.state.flags());
        let kind = c_int::from(lock.l_type);
        if command != LockCommand::Get
            && ((kind == libc::F_RDLCK && !flags.reads())
                || (kind == libc::F_WRLCK && !flags.writes()))
        {
            return Err(Errno::EBADF);
        }
        let base = match c_int::from(lock.l_whence) {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => live.state.offset().load(Ordering::Relaxed) as i64,
            libc::SEEK_END => live.file()?.size().map_err(|error| error.to_errno())? as i64,
            _ => return Err(Errno::EINVAL),
        };
        Ok((live.file()?.clone(), base))
    });
    let (file, base) = file?;
    let mut start = base.checked_add(lock.l_start).ok_or(Errno::EOVERFLOW)?;
    let mut length = lock.l_len;
    if length < 0 {
        start += length;
        length = -length;
    }
    let kind = match c_int::from(lock.l_type) {
        libc::F_RDLCK => LockKind::READ,
        libc::F_WRLCK => LockKind::WRITE,
        libc::F_UNLCK => LockKind::UNLOCK,
        _ => return Err(Errno::EINVAL),
    };
    let request = Lock {
        kind,
        start: u64::try_from(start).map_err(|_| Errno::EINVAL)?,
        length: length as u64,
        process: match owner {
            LockOwner::Process => rustix::process::getpid().as_raw_nonzero().get() as u32,
            // Beyond all process numbers: one owner per open file.
            LockOwner::Description(id) => id | 0x8000_0000,
        },
        client: client_name(),
    };
    if command != LockCommand::Get {
        // Also when a lock becomes weaker: from then on others may look.
        file.flush().map_err(|error| error.to_errno())?;
    }
    let errno = |error: client::Error| error.to_errno();
    match command {
        LockCommand::Get => {
            match file.handle().lock_in_the_way(&request).map_err(errno)? {
                None => lock.l_type = libc::F_UNLCK as i16,
                Some(other) => {
                    lock.l_type =
                        if other.kind == LockKind::READ { libc::F_RDLCK } else { libc::F_WRLCK }
                            as i16;
                    lock.l_whence = libc::SEEK_SET as i16;
                    lock.l_start = other.start as i64;
                    lock.l_len = other.length as i64;
                    lock.l_pid = other.process as i32;
                }
            }
            return Ok(());
        }
        LockCommand::Try => {
            file.handle().lock(&request, None).map_err(errno)?;
        }
        LockCommand::Wait => {
            // A signal interrupts the wait (fcntl(2), EINTR), but which signals have handlers we
            // cannot know without being asked at every one; the wait goes on.
            file.handle().lock(&request, Some(&|| false)).map_err(errno)?;
        }
    }
    if kind != LockKind::UNLOCK {
        file.invalidate();
        table::get(fd).ok_or(Errno::EBADF)?.with(fd, |live| {
            live.locked = true;
            LOCKED.store(true, Ordering::Relaxed);
            Ok(())
        })?;
    }
    Ok(())
}

/// What this machine calls itself to lock managers: processes of several machines may have one number.
fn client_name() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// What is asked about a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockCommand {
    Get,
    Try,
    Wait,
}

/// Whose a lock is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockOwner {
    /// The process (F_SETLK).
    Process,
    /// The open file (F_OFD_SETLK, flock(2)), by a number of its own.
    Description(u32),
}

/// The owner for locks of the open file itself.
pub(crate) fn description_owner(fd: c_int) -> LockOwner {
    let address = table::get(fd).map_or(0, |d| std::ptr::from_ref(d) as usize);
    LockOwner::Description((address >> 4) as u32 & 0x7fff_ffff)
}

/// This process has taken a lock at some time.
static LOCKED: AtomicBool = AtomicBool::new(false);

/// fcntl(2): closing *any* descriptor of a file releases the process's locks on it, whichever
/// descriptor they were taken through.
fn unlock_all(fd: c_int) {
    if !LOCKED.load(Ordering::Relaxed) {
        return;
    }
    let Some(closing) = table::get(fd) else { return };
    let Some(identity) = closing.identity() else { return };
    for (_, description) in table::all() {
        if description.identity().as_ref() != Some(&identity) {
            continue;
        }
        unlock(description);
    }
}

fn unlock(description: &crate::description::Description) {
    if let Some(file) = description.locked_file() {
        let process = rustix::process::getpid().as_raw_nonzero().get() as u32;
        let client = client_name();
        let everything = Lock { kind: LockKind::UNLOCK, start: 0, length: 0, process, client };
        let _ = file.flush();
        let _ = file.handle().lock(&everything, None);
    }
}

/// At exit: whoever waits for this process finds its locks released, as with local files. The service
/// would release them too, once it notices that the connection is gone.
pub(crate) fn unlock_everything() {
    if LOCKED.load(Ordering::Relaxed) {
        for (_, description) in table::all() {
            unlock(description);
        }
    }
}

/// flock(2).
pub(crate) fn flock(fd: c_int, operation: c_int) -> Result<(), Errno> {
    let kind = match operation & !libc::LOCK_NB {
        libc::LOCK_SH => libc::F_RDLCK,
        libc::LOCK_EX => libc::F_WRLCK,
        libc::LOCK_UN => libc::F_UNLCK,
        _ => return Err(Errno::EINVAL),
    };
    table::get(fd).ok_or(Errno::EBADF)?.with(fd, |live| {
        // The lock belongs to the open file, which other processes hold too and may hold longer than
        // this one: a lock that ends with this process would protect nothing.
        let outlives = live.inherited && operation & libc::LOCK_UN == 0;
        match live.content()? {
            Content::File(_) if outlives => Err(Errno::ENOLCK),
            Content::File(_) => Ok(()),
            _ => Err(Errno::EOPNOTSUPP),
        }
    })?;
    // SAFETY: integers only; all zeros is one of its values.
    let mut whole: libc::flock64 = unsafe { std::mem::zeroed() };
    whole.l_type = kind as i16;
    let command = if operation & libc::LOCK_NB != 0 { LockCommand::Try } else { LockCommand::Wait };
    // flock(2) asks for no access mode.
    lock_any_mode(fd, &mut whole, command)
}

/// A service takes an exclusive lock only through a file open for writing, and a shared one only
/// through one open for reading: where this one is not, a second opening carries the lock.
fn lock_any_mode(fd: c_int, whole: &mut libc::flock64, command: LockCommand) -> Result<(), Errno> {
    match lock(fd, whole, command, description_owner(fd)) {
        Err(Errno::EBADF) => {
            let file = table::get(fd).ok_or(Errno::EBADF)?.with(fd, |live| live.file_to_lock())?;
            let kind = match c_int::from(whole.l_type) {
                libc::F_RDLCK => LockKind::READ,
                _ => LockKind::WRITE,
            };
            let LockOwner::Description(id) = description_owner(fd) else {
                return Err(Errno::EBADF);
            };
            let process = id | 0x8000_0000;
            let request = Lock { kind, start: 0, length: 0, process, client: client_name() };
            let wait: Option<&dyn Fn() -> bool> = match command {
                LockCommand::Wait => Some(&|| false),
                LockCommand::Get | LockCommand::Try => None,
            };
            file.handle().lock(&request, wait).map_err(|error| error.to_errno())
        }
        other => other,
    }
}

/// close_range(2): `keep` our own descriptors, drop the redirected ones, let the kernel do the rest.
pub(crate) fn close_range(first: u32, last: u32, flags: u32) -> Result<(), Errno> {
    if first > last {
        return Err(Errno::EINVAL);
    }
    if flags & libc::CLOSE_RANGE_CLOEXEC == 0 && process::owns_the_table() {
        let ours: Vec<c_int> = table::all()
            .map(|(fd, _)| fd)
            .filter(|fd| (first..=last).contains(&(*fd as u32)))
            .collect();
        for fd in ours {
            let _ = close(fd);
        }
    }
    let mut from = first;
    let last = last.min(own::stores_from().saturating_sub(1));
    for kept in own::kept_between(first, last) {
        let kept = kept as u32;
        if from < kept {
            raw_close_range(from, kept - 1, flags)?;
        }
        from = kept + 1;
    }
    if from <= last { raw_close_range(from, last, flags) } else { Ok(()) }
}

fn raw_close_range(first: u32, last: u32, flags: u32) -> Result<(), Errno> {
    own::system_call(
        libc::SYS_close_range,
        [first as usize, last as usize, flags as usize, 0, 0, 0],
    )
    .map(|_| ())
}
