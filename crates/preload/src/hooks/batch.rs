//! lio_listio(3): many reads and writes at once. On redirected files all of them are under way together,
//! and none needs a thread.
//!
//! Other calls of aio(7) are not hooked: glibc's own threads carry them out with pread(2), pwrite(2) and
//! fsync(2), which are.

use std::ffi::{c_int, c_void};
use std::mem::{offset_of, size_of};

use client::{ReadPart, WritePart};
use p9::Errno;

use super::data::{buffer, cancellation_point, data};
use super::hooks;
use crate::ops::batch::{self as ops, Done};
use crate::outcome::Outcome;
use crate::table::is_ours;

/// A request, with the places where aio_error(3) and aio_return(3) look.
///
/// # Source
/// `struct aiocb` in glibc's aio.h, which names them but keeps them to itself.
#[repr(C)]
pub(crate) struct Request {
    fd: c_int,
    operation: c_int,
    _priority: c_int,
    address: *mut c_void,
    count: usize,
    _notice: libc::sigevent,
    _next: *mut c_void,
    _absolute_priority: c_int,
    _policy: c_int,
    error: c_int,
    answer: isize,
    offset: libc::off_t,
    _reserved: [u8; 32],
}

const _: () = assert!(size_of::<Request>() == size_of::<libc::aiocb>());
const _: () = assert!(offset_of!(Request, offset) == offset_of!(libc::aiocb, aio_offset));

/// The requests of a list that ask for something. Nothing is allocated.
///
/// # Safety
/// As for lio_listio(3): `count` pointers, each to a request or null.
unsafe fn requests<'a>(
    list: *const *mut Request,
    count: c_int,
) -> impl Iterator<Item = *mut Request> + Clone + 'a {
    let count = usize::try_from(count).unwrap_or(0);
    let list: &[*mut Request] = match list.is_null() || count == 0 {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { std::slice::from_raw_parts(list, count) },
    };
    let wants = |request: &*mut Request| {
        // SAFETY: the caller's promise.
        !request.is_null() && unsafe { (**request).operation } != libc::LIO_NOP
    };
    list.iter().copied().filter(wants)
}

/// Whether all of a list is about redirected files and is waited for: anything else is glibc's affair.
///
/// # Safety
/// As [`requests`].
unsafe fn is_all_ours(mode: c_int, list: *const *mut Request, count: c_int) -> bool {
    if mode != libc::LIO_WAIT {
        return false;
    }
    // SAFETY: the caller's promise.
    let mut requests = unsafe { requests(list, count) }.peekable();
    requests.peek().is_some()
        // SAFETY: as above.
        && requests.all(|request| is_ours(unsafe { (*request).fd }))
}

/// Carries out all requests, those of one file and one direction together.
///
/// # Safety
/// As [`requests`]; buffers as for read(2) and write(2).
unsafe fn carry_out(list: *const *mut Request, count: c_int) -> Outcome<c_int> {
    // SAFETY: the caller's promise.
    let mut left: Vec<*mut Request> = unsafe { requests(list, count) }.collect();
    let mut all_well = true;
    while let Some(first) = left.first() {
        // SAFETY: the caller's promise.
        let kind = |request: *mut Request| unsafe { ((*request).fd, (*request).operation) };
        let of = kind(*first);
        let (group, rest): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|request| kind(*request) == of);
        left = rest;
        // SAFETY: the caller's promise.
        let outcomes = unsafe { carry_out_group(of.0, of.1, &group) };
        for (request, done) in group.into_iter().zip(outcomes) {
            all_well &= done.is_ok();
            let (error, answer) = match done {
                Ok(count) => (0, count as isize),
                Err(errno) => (errno.raw(), -1),
            };
            // SAFETY: a request of the list belongs to the call until it returns.
            unsafe { ((*request).error, (*request).answer) = (error, answer) };
        }
    }
    // lio_listio(3): which of them failed is to be asked of each.
    if all_well { Outcome::Handled(0) } else { Outcome::Fail(Errno::EIO) }
}

/// Carries out requests of one kind. One that cannot be is refused by itself.
///
/// # Safety
/// As [`carry_out`].
unsafe fn carry_out_group(fd: c_int, operation: c_int, group: &[*mut Request]) -> Vec<Done> {
    // SAFETY: the caller's promise.
    let fields = group.iter().map(|request| unsafe {
        ((**request).address, (**request).count, u64::try_from((**request).offset))
    });
    match operation {
        libc::LIO_READ => {
            let parts = fields.map(|(address, count, offset)| {
                let offset = offset.map_err(|_| Errno::EINVAL)?;
                Ok(ReadPart::new(offset, buffer(address, count)?))
            });
            each(parts, |parts| ops::read(fd, parts))
        }
        libc::LIO_WRITE => {
            let parts = fields.map(|(address, count, offset)| {
                let offset = offset.map_err(|_| Errno::EINVAL)?;
                Ok(WritePart::new(offset, data(address, count)?))
            });
            each(parts, |parts| ops::write(fd, parts))
        }
        _ => group.iter().map(|_| Err(Errno::EINVAL)).collect(),
    }
}

/// Carries out those parts that could be made; the others are refused for what they say.
fn each<P>(
    parts: impl Iterator<Item = Result<P, Errno>>,
    run: impl FnOnce(&mut [P]) -> Vec<Done>,
) -> Vec<Done> {
    let (mut good, mut outcomes) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Ok(part) => {
                good.push(part);
                outcomes.push(None);
            }
            Err(errno) => outcomes.push(Some(errno)),
        }
    }
    let mut done = run(&mut good).into_iter();
    let outcome = |refused: Option<Errno>| match refused {
        Some(errno) => Err(errno),
        None => done.next().unwrap_or(Err(Errno::EIO)),
    };
    outcomes.into_iter().map(outcome).collect()
}

hooks! {
    /// lio_listio(3).
    Always [lio_listio lio_listio64]
    fn list(
        mode: c_int, list: *const *mut Request, count: c_int, notice: *mut libc::sigevent
    ) -> c_int
    // SAFETY: the program's own arguments.
    where unsafe { is_all_ours(mode, list, count) } && cancellation_point()
    => {
        let _ = notice;
        // SAFETY: as above.
        unsafe { carry_out(list, count) }
    };
}
