//! close(2), dup(2), fcntl(2), ioctl(2), locks.

use std::ffi::{c_int, c_uint, c_ulong, c_void};

use p9::Errno;

use super::{hooks, original};
use crate::ops::descriptor as ops;
use crate::ops::descriptor::{LockCommand, LockOwner};
use crate::outcome::{Outcome, is_nested};
use crate::table::is_ours;
use crate::{ops as all_ops, own};

/// After the kernel duplicated a descriptor.
fn duplicated(old: c_int, new: c_int) -> c_int {
    if new >= 0 && (is_ours(old) || is_ours(new)) {
        ops::duplicated(old, new);
    }
    new
}

/// dup(2).
unsafe extern "C-unwind" fn dup<H: super::Named>(old: c_int) -> c_int {
    // SAFETY: the program's own argument.
    duplicated(old, unsafe { original!(H: fn(c_int) -> c_int)(old) })
}

/// dup2(2).
unsafe extern "C-unwind" fn dup2<H: super::Named>(old: c_int, new: c_int) -> c_int {
    let closed =
        if old != new && is_ours(new) && is_open(old) { ops::replaced(new) } else { Ok(()) };
    // SAFETY: the program's own arguments.
    let result = unsafe { original!(H: fn(c_int, c_int) -> c_int)(old, new) };
    reported(closed, if old == new { result } else { duplicated(old, result) })
}

/// dup3(2).
unsafe extern "C-unwind" fn dup3<H: super::Named>(old: c_int, new: c_int, flags: c_int) -> c_int {
    let closed =
        if old != new && is_ours(new) && is_open(old) { ops::replaced(new) } else { Ok(()) };
    // SAFETY: the program's own arguments.
    let result = unsafe { original!(H: fn(c_int, c_int, c_int) -> c_int)(old, new, flags) };
    reported(closed, duplicated(old, result))
}

/// The result of a duplication whose target was closed on the way. A local file has no delayed writes to lose there,
/// and a shell closes the file of `echo x > file` in no other way: what could not be written must come out, though the
/// duplicate is made.
fn reported(closed: Result<(), Errno>, result: c_int) -> c_int {
    match closed {
        Err(errno) if result >= 0 => <c_int as crate::outcome::CReturn>::failed(errno),
        _ => result,
    }
}

/// dup2(2): "if oldfd is not a valid file descriptor, the call fails, and newfd is not closed".
fn is_open(fd: c_int) -> bool {
    own::is_open(fd)
}

/// fcntl(2). The third argument is passed on as a register's width, whatever it is.
unsafe extern "C-unwind" fn fcntl<H: super::Named>(
    fd: c_int,
    command: c_int,
    argument: usize,
) -> c_int {
    // SAFETY: the program's own arguments, in the registers they came in.
    let pass = || unsafe { original!(H: fn(c_int, c_int, usize) -> c_int)(fd, command, argument) };
    if !is_ours(fd) {
        let result = pass();
        if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
            return duplicated(fd, result);
        }
        return result;
    }
    let outcome = match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => return duplicated(fd, pass()),
        libc::F_GETFD | libc::F_SETFD => return pass(),
        _ => crate::outcome::guarded(|| control(fd, command, argument)),
    };
    match outcome {
        Outcome::Handled(value) => value,
        Outcome::Fail(errno) => <c_int as crate::outcome::CReturn>::failed(errno),
        Outcome::PassThrough => pass(),
    }
}

fn control(fd: c_int, command: c_int, argument: usize) -> Outcome<c_int> {
    let lock = |command, owner| -> Result<c_int, Errno> {
        let lock = argument as *mut libc::flock64;
        // SAFETY: fcntl(2): these commands take a pointer to a lock.
        let lock = unsafe { lock.as_mut() }.ok_or(Errno::EFAULT)?;
        ops::lock(fd, lock, command, owner).map(|()| 0)
    };
    let description = || ops::description_owner(fd);
    let result = match command {
        libc::F_GETFL => ops::flags(fd),
        libc::F_SETFL => ops::set_flags(fd, argument as c_int).map(|()| 0),
        libc::F_SETLK => lock(LockCommand::Try, LockOwner::Process),
        libc::F_SETLKW => lock(LockCommand::Wait, LockOwner::Process),
        libc::F_GETLK => lock(LockCommand::Get, LockOwner::Process),
        libc::F_OFD_SETLK => lock(LockCommand::Try, description()),
        libc::F_OFD_SETLKW => lock(LockCommand::Wait, description()),
        libc::F_OFD_GETLK => lock(LockCommand::Get, description()),
        // Advice on lifetime of the data, and the owner for signals that never come.
        libc::F_SETOWN | libc::F_GETOWN => Ok(0),
        _ => Err(Errno::EINVAL),
    };
    result.into()
}

/// ioctl(2): what regular files answer.
fn device_control(fd: c_int, request: c_ulong, argument: *mut c_void) -> Result<c_int, Errno> {
    match request {
        libc::FIONREAD => {
            let size = all_ops::metadata::stat_open(fd)?.0.size;
            let offset = all_ops::data::seek(fd, 0, libc::SEEK_CUR)? as u64;
            let left = size.saturating_sub(offset).min(c_int::MAX as u64) as c_int;
            // SAFETY: FIONREAD takes a pointer to an int.
            unsafe { argument.cast::<c_int>().as_mut() }
                .map(|to| *to = left)
                .ok_or(Errno::EFAULT)?;
            Ok(0)
        }
        libc::FIONBIO | libc::FIOASYNC => Ok(0),
        libc::FIOCLEX | libc::FIONCLEX => own::set_close_on_exec(fd, request == libc::FIOCLEX),
        _ => Err(Errno::ENOTTY),
    }
}

fn lock_file(fd: c_int, operation: c_int, length: libc::off_t) -> Result<c_int, Errno> {
    // SAFETY: integers only; all zeros is one of its values.
    let mut lock: libc::flock64 = unsafe { std::mem::zeroed() };
    lock.l_whence = libc::SEEK_CUR as i16;
    lock.l_len = length;
    lock.l_type = if operation == libc::F_ULOCK { libc::F_UNLCK } else { libc::F_WRLCK } as i16;
    match operation {
        libc::F_LOCK => ops::lock(fd, &mut lock, LockCommand::Wait, LockOwner::Process)?,
        libc::F_TLOCK | libc::F_ULOCK => {
            ops::lock(fd, &mut lock, LockCommand::Try, LockOwner::Process)?;
        }
        libc::F_TEST => {
            ops::lock(fd, &mut lock, LockCommand::Get, LockOwner::Process)?;
            if c_int::from(lock.l_type) != libc::F_UNLCK {
                return Err(Errno::EACCES);
            }
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// closefrom(3): returns nothing.
unsafe extern "C-unwind" fn close_from<H: super::Named>(first: c_int) {
    let _ = crate::outcome::guarded(|| {
        ops::close_range(first.max(0) as u32, u32::MAX, 0).map(|()| 0).into()
    });
}

hooks! {
    /// close(2), and its form without a cancellation point that glibc's stdio uses. A program
    /// that closes all descriptors it can think of finds ours closed already.
    Always [close __close_nocancel]
    fn close(fd: c_int) -> c_int
    where is_ours(fd) || own::may_be_kept(fd)
    => if is_ours(fd) {
        ops::close(fd).map(|()| 0).into()
    } else if own::is_kept(fd) && !is_nested() {
        Outcome::Fail(Errno::EBADF)
    } else {
        Outcome::PassThrough
    };

    /// close_range(2).
    Always [close_range]
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int
    where true => ops::close_range(first, last, flags as u32).map(|()| 0).into();

    /// ioctl(2).
    Always [ioctl]
    fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int
    where is_ours(fd) => device_control(fd, request, argument).into();

    /// flock(2).
    Always [flock]
    fn flock(fd: c_int, operation: c_int) -> c_int
    where is_ours(fd) => ops::flock(fd, operation).map(|()| 0).into();

    /// lockf(3).
    Always [lockf64 lockf]
    fn lockf(fd: c_int, operation: c_int, length: libc::off_t) -> c_int
    where is_ours(fd) => lock_file(fd, operation, length).into();

    => also {
        Always dup [dup]
        Always dup2 [dup2]
        Always dup3 [dup3]
        Always fcntl [fcntl64 fcntl __fcntl64_nocancel]
        Always close_from [closefrom]
    }
}
