//! poll(2), select(2), epoll(7).

use std::ffi::{c_int, c_void};

use p9::Errno;

use super::{Named, hooks, original};
use crate::ops::readiness as ops;
use crate::outcome::Outcome;
use crate::table::{any, is_ours};

type Polls = *mut libc::pollfd;

fn slice<'a>(polls: Polls, count: libc::nfds_t) -> &'a mut [libc::pollfd] {
    if polls.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: poll(2): `count` elements at `polls`.
    unsafe { std::slice::from_raw_parts_mut(polls, count as usize) }
}

fn concerns(polls: Polls, count: libc::nfds_t) -> bool {
    any() && slice(polls, count).iter().any(|poll| is_ours(poll.fd))
}

/// Asks the kernel about the others: without waiting when one of ours is ready.
fn polled(polls: Polls, count: libc::nfds_t, ask: impl FnOnce(Polls, bool) -> c_int) -> c_int {
    let all = slice(polls, count);
    let (mut hidden, ready) = ops::hide(all);
    let result = ask(hidden.as_mut_ptr(), ready > 0);
    if result < 0 {
        return result;
    }
    ops::reveal(all, &hidden);
    result + ready as c_int
}

/// poll(2).
unsafe extern "C-unwind" fn poll<H: Named>(
    polls: Polls,
    count: libc::nfds_t,
    timeout: c_int,
) -> c_int {
    let call = original!(H: fn(Polls, libc::nfds_t, c_int) -> c_int);
    if !concerns(polls, count) {
        // SAFETY: the program's own arguments.
        return unsafe { call(polls, count, timeout) };
    }
    polled(polls, count, |hidden, ready| {
        // SAFETY: a copy of the program's array.
        unsafe { call(hidden, count, if ready { 0 } else { timeout }) }
    })
}

/// `_FORTIFY_SOURCE` form of poll(2).
unsafe extern "C-unwind" fn poll_checked<H: Named>(
    polls: Polls,
    count: libc::nfds_t,
    timeout: c_int,
    size: usize,
) -> c_int {
    let call = original!(H: fn(Polls, libc::nfds_t, c_int, usize) -> c_int);
    if !concerns(polls, count) {
        // SAFETY: the program's own arguments.
        return unsafe { call(polls, count, timeout, size) };
    }
    polled(polls, count, |hidden, ready| {
        // SAFETY: a copy of the program's array.
        unsafe { call(hidden, count, if ready { 0 } else { timeout }, size) }
    })
}

/// ppoll(2).
unsafe extern "C-unwind" fn ppoll<H: Named>(
    polls: Polls,
    count: libc::nfds_t,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let call = original!(H: fn(Polls, libc::nfds_t, *const libc::timespec, *const libc::sigset_t) -> c_int);
    if !concerns(polls, count) {
        // SAFETY: the program's own arguments.
        return unsafe { call(polls, count, timeout, mask) };
    }
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    polled(polls, count, |hidden, ready| {
        let timeout = if ready { &raw const now } else { timeout };
        // SAFETY: a copy of the program's array.
        unsafe { call(hidden, count, timeout, mask) }
    })
}

type Set = *mut libc::fd_set;

/// Takes our descriptors out of a set and returns them.
fn take_ours(set: Set, count: c_int) -> Vec<c_int> {
    if set.is_null() {
        return Vec::new();
    }
    let mut ours = Vec::new();
    for fd in 0..count.min(libc::FD_SETSIZE as c_int) {
        // SAFETY: select(2): a set of FD_SETSIZE bits, `fd` below it.
        unsafe {
            if libc::FD_ISSET(fd, set) && is_ours(fd) {
                libc::FD_CLR(fd, set);
                ours.push(fd);
            }
        }
    }
    ours
}

fn give_back(set: Set, ours: &[c_int]) {
    for fd in ours {
        // SAFETY: as in `take_ours`, which found them in this set.
        unsafe { libc::FD_SET(*fd, set) };
    }
}

fn selects(count: c_int) -> bool {
    any() && (0..count.min(libc::FD_SETSIZE as c_int)).any(is_ours)
}

/// Files are ready for reading and writing and have no exceptional conditions (select(2)).
fn selected(
    count: c_int,
    [read, write, except]: [Set; 3],
    ask: impl FnOnce(bool) -> c_int,
) -> c_int {
    let (reading, writing) = (take_ours(read, count), take_ours(write, count));
    take_ours(except, count);
    let ready = reading.len() + writing.len();
    let result = ask(ready > 0);
    if result < 0 {
        return result;
    }
    give_back(read, &reading);
    give_back(write, &writing);
    result + ready as c_int
}

/// select(2).
unsafe extern "C-unwind" fn select<H: Named>(
    count: c_int,
    read: Set,
    write: Set,
    except: Set,
    timeout: *mut libc::timeval,
) -> c_int {
    let call = original!(H: fn(c_int, Set, Set, Set, *mut libc::timeval) -> c_int);
    if !selects(count) {
        // SAFETY: the program's own arguments.
        return unsafe { call(count, read, write, except, timeout) };
    }
    let mut now = libc::timeval { tv_sec: 0, tv_usec: 0 };
    selected(count, [read, write, except], |ready| {
        let timeout = if ready { &raw mut now } else { timeout };
        // SAFETY: the program's own sets, less our descriptors.
        unsafe { call(count, read, write, except, timeout) }
    })
}

/// pselect(2).
unsafe extern "C-unwind" fn pselect<H: Named>(
    count: c_int,
    read: Set,
    write: Set,
    except: Set,
    timeout: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> c_int {
    let call = original!(
        H: fn(c_int, Set, Set, Set, *const libc::timespec, *const libc::sigset_t) -> c_int
    );
    if !selects(count) {
        // SAFETY: the program's own arguments.
        return unsafe { call(count, read, write, except, timeout, mask) };
    }
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    selected(count, [read, write, except], |ready| {
        let timeout = if ready { &raw const now } else { timeout };
        // SAFETY: the program's own sets, less our descriptors.
        unsafe { call(count, read, write, except, timeout, mask) }
    })
}

hooks! {
    /// epoll_ctl(2): EPERM for files, which do not support epoll.
    Always [epoll_ctl]
    fn epoll_control(epoll: c_int, operation: c_int, fd: c_int, event: *mut c_void) -> c_int
    where is_ours(fd) => {
        let _ = (epoll, operation, event);
        Outcome::Fail(Errno::EPERM)
    };

    => also {
        Always poll [poll]
        Always poll_checked [__poll_chk]
        Always ppoll [ppoll]
        Always select [select]
        Always pselect [pselect]
    }
}
