//! mmap(2) and its relatives.

use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Named, hooks, original};
use crate::ops::memory as ops;
use crate::outcome::{CReturn, Outcome, guarded, is_inside};
use crate::table::is_ours;

type Address = *mut c_void;

/// Some shared mapping of a redirected file has been made: before that, munmap(2) is nobody's
/// business.
static MAPPED: AtomicBool = AtomicBool::new(false);

fn is_mapped(address: Address, length: usize) -> bool {
    MAPPED.load(Ordering::Relaxed) && !is_inside() && ops::touches(address as usize, length)
}

/// mmap(2).
unsafe extern "C-unwind" fn map<H: Named>(
    address: Address,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> Address {
    let call = original!(H: fn(Address, usize, c_int, c_int, c_int, libc::off_t) -> Address);
    if flags & libc::MAP_ANONYMOUS != 0 || !is_ours(fd) {
        // SAFETY: the program's own arguments.
        return unsafe { call(address, length, protection, flags, fd, offset) };
    }
    match guarded(|| ops::prepare(fd, length, protection, flags, offset).into()) {
        Outcome::Handled(prepared) => {
            let memory = prepared.memory.as_raw_fd();
            // SAFETY: the program's own arguments, with a descriptor of the same content, which
            // starts where the mapping does.
            let result = unsafe { call(address, length, protection, flags, memory, 0) };
            if result == libc::MAP_FAILED {
                return result;
            }
            MAPPED.store(true, Ordering::Relaxed);
            let _ = guarded(|| {
                ops::mapped(result, length, offset, prepared);
                Outcome::Handled(())
            });
            result
        }
        Outcome::Fail(errno) => Address::failed(errno),
        Outcome::PassThrough => Address::failed(p9::Errno::EBADF),
    }
}

/// munmap(2).
unsafe extern "C-unwind" fn unmap<H: Named>(address: Address, length: usize) -> c_int {
    let mut failed = None;
    if is_mapped(address, length)
        && let Outcome::Fail(errno) = guarded(|| ops::unmapping(address as usize, length).into())
    {
        failed = Some(errno);
    }
    // SAFETY: the program's own arguments.
    let result = unsafe { original!(H: fn(Address, usize) -> c_int)(address, length) };
    // The mapping is gone in any case; that its changes could not be written must be said.
    failed.map_or(result, c_int::failed)
}

/// mremap(2).
unsafe extern "C-unwind" fn remap<H: Named>(
    old: Address,
    old_length: usize,
    new_length: usize,
    flags: c_int,
    new: Address,
) -> Address {
    let ours = is_mapped(old, old_length);
    let call = original!(H: fn(Address, usize, usize, c_int, Address) -> Address);
    // SAFETY: the program's own arguments.
    let result = unsafe { call(old, old_length, new_length, flags, new) };
    if ours && result != libc::MAP_FAILED {
        let _ = guarded(|| {
            ops::remapped(old as usize, result as usize, new_length);
            Outcome::Handled(())
        });
    }
    result
}

hooks! {
    /// msync(2): MS_ASYNC too, because nothing runs in the background here.
    Always [msync]
    fn sync(address: Address, length: usize, flags: c_int) -> c_int
    where is_mapped(address, length) => {
        let _ = flags;
        ops::sync(address as usize, length).map(|()| 0).into()
    };

    => also {
        Always map [mmap64 mmap]
        Always unmap [munmap]
        Always remap [mremap]
    }
}
