//! read(2), write(2) and what moves bytes.

use std::ffi::{c_char, c_int, c_uint, c_void};

use p9::Errno;

use super::hooks;
use crate::ops::data as ops;
use crate::outcome::{ErrorNumber, Outcome};
use crate::table::is_ours;

type Count = libc::size_t;
type Offset = libc::off_t;

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Redirected calls wait in places where a thread cannot be cancelled, so a pending cancellation is
/// acted on before (pthreads(7), "cancellation points").
pub(super) fn cancellation_point() -> bool {
    // SAFETY: no arguments; the frames that it may unwind hold nothing.
    unsafe { pthread_testcancel() };
    true
}

/// The program's buffer to fill.
pub(super) fn buffer<'a>(address: *mut c_void, count: Count) -> Result<&'a mut [u8], Errno> {
    let count = count.min(ops::COUNT_MAX);
    if count == 0 {
        return Ok(&mut []);
    }
    if address.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: the caller of read(2) and its kin promises `count` writable bytes at `address`.
    Ok(unsafe { std::slice::from_raw_parts_mut(address.cast(), count) })
}

/// The program's data.
pub(super) fn data<'a>(address: *const c_void, count: Count) -> Result<&'a [u8], Errno> {
    let count = count.min(ops::COUNT_MAX);
    if count == 0 {
        return Ok(&[]);
    }
    if address.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: the caller of write(2) and its kin promises `count` readable bytes at `address`.
    Ok(unsafe { std::slice::from_raw_parts(address.cast(), count) })
}

fn vectors<'a>(vectors: *const libc::iovec, count: c_int) -> Result<&'a [libc::iovec], Errno> {
    // UIO_MAXIOV of readv(2).
    let count = usize::try_from(count).ok().filter(|n| *n <= 1024).ok_or(Errno::EINVAL)?;
    if count == 0 {
        return Ok(&[]);
    }
    if vectors.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: the caller of readv(2) promises `count` vectors at `vectors`.
    Ok(unsafe { std::slice::from_raw_parts(vectors, count) })
}

/// For functions that return the error number.
fn return_error(errno: Errno) -> Outcome<ErrorNumber> {
    Outcome::Fail(errno)
}

fn signed(count: Result<usize, Errno>) -> Outcome<isize> {
    count.map(|count| count as isize).into()
}

fn read_vector(fd: c_int, v: *const libc::iovec, n: c_int, at: Option<Offset>) -> Outcome<isize> {
    signed((|| {
        let vectors = vectors(v, n)?;
        let mut buffers = Vec::with_capacity(vectors.len());
        for vector in vectors {
            buffers.push(buffer(vector.iov_base, vector.iov_len)?);
        }
        ops::read_vector(fd, buffers.into_iter(), at)
    })())
}

fn write_vector(fd: c_int, v: *const libc::iovec, n: c_int, at: Option<Offset>) -> Outcome<isize> {
    signed((|| {
        let vectors = vectors(v, n)?;
        let mut parts = Vec::with_capacity(vectors.len());
        for vector in vectors {
            parts.push(data(vector.iov_base, vector.iov_len)?);
        }
        ops::write_vector(fd, parts.into_iter(), at)
    })())
}

/// `preadv2` with offset −1 uses the file offset.
fn v2_offset(offset: Offset) -> Option<Offset> {
    (offset != -1).then_some(offset)
}

/// Flags of preadv2(2) that are understood: hints, and those that [`write_v2`] acts on.
fn v2_flags(flags: c_int) -> Result<(), Errno> {
    const HARMLESS: c_int =
        libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_NOWAIT | libc::RWF_APPEND;
    if flags & !HARMLESS == 0 { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
}

/// pwritev2(2) with flags that were checked.
fn write_v2(
    fd: c_int,
    vectors: *const libc::iovec,
    count: c_int,
    offset: Offset,
    flags: c_int,
) -> Outcome<isize> {
    let at = if flags & libc::RWF_APPEND == 0 {
        v2_offset(offset)
    } else {
        match crate::ops::metadata::stat_open(fd) {
            Ok((attributes, _)) => Some(attributes.size as Offset),
            Err(errno) => return Outcome::Fail(errno),
        }
    };
    let written = write_vector(fd, vectors, count, at);
    // Without an offset of its own the call moves the file's, to behind what it appended.
    if let (Outcome::Handled(written), Some(at), None) = (&written, at, v2_offset(offset))
        && let Err(errno) = ops::seek(fd, at + *written as Offset, libc::SEEK_SET)
    {
        return Outcome::Fail(errno);
    }
    if flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0
        && matches!(written, Outcome::Handled(_))
        && let Err(errno) = ops::sync(fd, flags & libc::RWF_SYNC == 0)
    {
        return Outcome::Fail(errno);
    }
    written
}

/// A descriptor at one end of sendfile(2) and its kin, with the offset that the program passes by
/// address, or none.
struct End {
    fd: c_int,
    offset: *mut Offset,
}

impl End {
    fn read(&self, into: &mut [u8]) -> Result<usize, Errno> {
        self.at(|offset| match (is_ours(self.fd), offset) {
            (true, None) => ops::read(self.fd, into),
            (true, Some(offset)) => ops::read_at(self.fd, into, offset),
            (false, None) => crate::own::read(self.fd, into),
            (false, Some(offset)) => crate::own::read_at(self.fd, into, offset),
        })
    }

    fn write(&self, from: &[u8]) -> Result<usize, Errno> {
        self.at(|offset| match (is_ours(self.fd), offset) {
            (true, None) => ops::write(self.fd, from),
            (true, Some(offset)) => ops::write_at(self.fd, from, offset),
            (false, None) => crate::own::write(self.fd, from),
            (false, Some(offset)) => crate::own::write_at(self.fd, from, offset),
        })
    }

    fn at(&self, run: impl FnOnce(Option<Offset>) -> Result<usize, Errno>) -> Result<usize, Errno> {
        if self.offset.is_null() {
            return run(None);
        }
        // SAFETY: sendfile(2): a pointer to the offset, read and written by the call.
        let offset = unsafe { self.offset.read() };
        let count = run(Some(offset))?;
        // SAFETY: as above.
        unsafe { self.offset.write(offset + count as Offset) };
        Ok(count)
    }
}

fn transfer(from: &End, to: &End, count: Count) -> Outcome<isize> {
    signed(ops::transfer(count.min(ops::COUNT_MAX), |b| from.read(b), |d| to.write(d)))
}

hooks! {
    /// read(2).
    Always [read]
    fn read(fd: c_int, address: *mut c_void, count: Count) -> isize
    where is_ours(fd) && cancellation_point()
    => signed(buffer(address, count).and_then(|b| ops::read(fd, b)));

    /// The form that glibc's stdio uses, with locks of its own held.
    Always [__read_nocancel]
    fn read_not_cancelled(fd: c_int, address: *mut c_void, count: Count) -> isize
    where is_ours(fd) => signed(buffer(address, count).and_then(|b| ops::read(fd, b)));

    /// `_FORTIFY_SOURCE` form: the object's size is known.
    Always [__read_chk]
    fn read_checked(fd: c_int, address: *mut c_void, count: Count, size: Count) -> isize
    where is_ours(fd) && count <= size
    => signed(buffer(address, count).and_then(|b| ops::read(fd, b)));

    /// write(2).
    Always [write]
    fn write(fd: c_int, address: *const c_void, count: Count) -> isize
    where is_ours(fd) && cancellation_point()
    => signed(data(address, count).and_then(|d| ops::write(fd, d)));

    /// The form without a cancellation point.
    Always [__write_nocancel]
    fn write_not_cancelled(fd: c_int, address: *const c_void, count: Count) -> isize
    where is_ours(fd) => signed(data(address, count).and_then(|d| ops::write(fd, d)));

    /// pread(2).
    Always [pread64 pread]
    fn read_at(fd: c_int, address: *mut c_void, count: Count, offset: Offset) -> isize
    where is_ours(fd) && cancellation_point()
    => signed(buffer(address, count).and_then(|b| ops::read_at(fd, b, offset)));

    /// The form without a cancellation point.
    Always [__pread64_nocancel]
    fn read_at_not_cancelled(
        fd: c_int, address: *mut c_void, count: Count, offset: Offset
    ) -> isize
    where is_ours(fd) => signed(buffer(address, count).and_then(|b| ops::read_at(fd, b, offset)));

    /// `_FORTIFY_SOURCE` form.
    Always [__pread64_chk __pread_chk]
    fn read_at_checked(
        fd: c_int, address: *mut c_void, count: Count, offset: Offset, size: Count
    ) -> isize
    where is_ours(fd) && count <= size
    => signed(buffer(address, count).and_then(|b| ops::read_at(fd, b, offset)));

    /// pwrite(2).
    Always [pwrite64 pwrite __pwrite64_nocancel]
    fn write_at(fd: c_int, address: *const c_void, count: Count, offset: Offset) -> isize
    where is_ours(fd) && cancellation_point()
    => signed(data(address, count).and_then(|d| ops::write_at(fd, d, offset)));

    /// readv(2).
    Always [readv]
    fn readv(fd: c_int, vectors: *const libc::iovec, count: c_int) -> isize
    where is_ours(fd) => read_vector(fd, vectors, count, None);

    /// writev(2).
    Always [writev __writev_nocancel]
    fn writev(fd: c_int, vectors: *const libc::iovec, count: c_int) -> isize
    where is_ours(fd) => write_vector(fd, vectors, count, None);

    /// preadv(2).
    Always [preadv64 preadv]
    fn preadv(fd: c_int, vectors: *const libc::iovec, count: c_int, offset: Offset) -> isize
    where is_ours(fd) => read_vector(fd, vectors, count, Some(offset));

    /// pwritev(2).
    Always [pwritev64 pwritev]
    fn pwritev(fd: c_int, vectors: *const libc::iovec, count: c_int, offset: Offset) -> isize
    where is_ours(fd) => write_vector(fd, vectors, count, Some(offset));

    /// preadv2(2).
    Always [preadv64v2 preadv2]
    fn preadv2(
        fd: c_int, vectors: *const libc::iovec, count: c_int, offset: Offset, flags: c_int
    ) -> isize
    where is_ours(fd) => match v2_flags(flags) {
        Ok(()) => read_vector(fd, vectors, count, v2_offset(offset)),
        Err(errno) => Outcome::Fail(errno),
    };

    /// pwritev2(2).
    Always [pwritev64v2 pwritev2]
    fn pwritev2(
        fd: c_int, vectors: *const libc::iovec, count: c_int, offset: Offset, flags: c_int
    ) -> isize
    where is_ours(fd) => match v2_flags(flags) {
        Ok(()) => write_v2(fd, vectors, count, offset, flags),
        Err(errno) => Outcome::Fail(errno),
    };

    /// lseek(2).
    Always [lseek64 lseek]
    fn seek(fd: c_int, offset: Offset, whence: c_int) -> Offset
    where is_ours(fd) => ops::seek(fd, offset, whence).into();

    /// fsync(2).
    Always [fsync]
    fn sync(fd: c_int) -> c_int
    where is_ours(fd) && cancellation_point() => ops::sync(fd, false).map(|()| 0).into();

    /// fdatasync(2).
    Always [fdatasync]
    fn sync_data(fd: c_int) -> c_int
    where is_ours(fd) => ops::sync(fd, true).map(|()| 0).into();

    /// sync_file_range(2): a part cannot be told from the whole.
    Always [sync_file_range]
    fn sync_range(fd: c_int, offset: Offset, length: Offset, flags: c_uint) -> c_int
    where is_ours(fd) => {
        let _ = (offset, length, flags);
        ops::sync(fd, true).map(|()| 0).into()
    };

    /// syncfs(2): of the file alone.
    Always [syncfs]
    fn sync_fs(fd: c_int) -> c_int
    where is_ours(fd) => ops::sync(fd, false).map(|()| 0).into();

    /// ftruncate(2).
    Always [ftruncate64 ftruncate]
    fn truncate(fd: c_int, length: Offset) -> c_int
    where is_ours(fd) => ops::truncate(fd, length).map(|()| 0).into();

    /// posix_fallocate(3): returns the error number.
    Always [posix_fallocate64 posix_fallocate]
    fn allocate(fd: c_int, offset: Offset, length: Offset) -> ErrorNumber
    where is_ours(fd) => ops::allocate(fd, offset, length).map(|()| ErrorNumber(0)).into();

    /// fallocate(2): 9P has no way to say more than a length.
    Always [fallocate64 fallocate]
    fn fallocate(fd: c_int, mode: c_int, offset: Offset, length: Offset) -> c_int
    where is_ours(fd) => match mode {
        0 => ops::allocate(fd, offset, length).map(|()| 0).into(),
        _ => Outcome::Fail(Errno::EOPNOTSUPP),
    };

    /// posix_fadvise(2): advice; read-ahead finds out by itself.
    Always [posix_fadvise64 posix_fadvise]
    fn advise(fd: c_int, offset: Offset, length: Offset, advice: c_int) -> ErrorNumber
    where is_ours(fd) => {
        let _ = offset;
        if length < 0 || !(libc::POSIX_FADV_NORMAL..=libc::POSIX_FADV_NOREUSE).contains(&advice) {
            return_error(Errno::EINVAL)
        } else {
            Outcome::Handled(ErrorNumber(0))
        }
    };

    /// readahead(2): advice.
    Always [readahead]
    fn read_ahead(fd: c_int, offset: libc::off64_t, count: Count) -> isize
    where is_ours(fd) => {
        let _ = (offset, count);
        Outcome::Handled(0)
    };

    /// sendfile(2).
    Always [sendfile64 sendfile]
    fn send_file(to: c_int, from: c_int, offset: *mut Offset, count: Count) -> isize
    where is_ours(to) || is_ours(from)
    => transfer(
        &End { fd: from, offset },
        &End { fd: to, offset: std::ptr::null_mut() },
        count,
    );

    /// copy_file_range(2).
    Always [copy_file_range]
    fn copy_range(
        from: c_int, from_offset: *mut Offset, to: c_int, to_offset: *mut Offset, count: Count,
        flags: c_uint
    ) -> isize
    where is_ours(to) || is_ours(from) => match flags {
        0 => {
            // SAFETY: copy_file_range(2): NULL or a pointer to an offset.
            let at = |offset: *mut Offset| unsafe { offset.as_ref() }.copied();
            match ops::copy_count((from, at(from_offset)), (to, at(to_offset)), count) {
                Ok(count) => transfer(
                    &End { fd: from, offset: from_offset },
                    &End { fd: to, offset: to_offset },
                    count,
                ),
                Err(errno) => Outcome::Fail(errno),
            }
        }
        _ => Outcome::Fail(Errno::EINVAL),
    };

    /// splice(2).
    Always [splice]
    fn splice(
        from: c_int, from_offset: *mut Offset, to: c_int, to_offset: *mut Offset, count: Count,
        flags: c_uint
    ) -> isize
    where is_ours(to) || is_ours(from)
    => {
        let _ = flags;
        // One piece only: the other end is a pipe, which gives and takes what it has room for.
        let count = count.min(64 * 1024);
        transfer(&End { fd: from, offset: from_offset }, &End { fd: to, offset: to_offset }, count)
    };

    /// getdents64(2), beneath opendir(3), readdir(3), scandir(3), nftw(3), glob(3).
    Always [getdents64]
    fn list(fd: c_int, address: *mut c_void, count: Count) -> isize
    where is_ours(fd)
    => signed(buffer(address, count).and_then(|b| crate::listing::fill(fd, b)));

    /// ttyname_r(3).
    Always [ttyname_r]
    fn terminal_name(fd: c_int, name: *mut c_char, len: Count) -> ErrorNumber
    where is_ours(fd) => { let _ = (name, len); return_error(Errno::ENOTTY) };

    /// tcgetattr(3): libc's makes its system call itself.
    Always [tcgetattr]
    fn terminal_attributes(fd: c_int, to: *mut libc::termios) -> c_int
    where is_ours(fd) => { let _ = to; Outcome::Fail(Errno::ENOTTY) };

    /// tcsetattr(3).
    Always [tcsetattr]
    fn set_terminal_attributes(fd: c_int, action: c_int, from: *const libc::termios) -> c_int
    where is_ours(fd) => { let _ = (action, from); Outcome::Fail(Errno::ENOTTY) };

    => also {
        Always is_terminal [isatty]
    }
}

/// isatty(3): 0 is its failure.
unsafe extern "C-unwind" fn is_terminal<H: super::Named>(fd: c_int) -> c_int {
    if is_ours(fd) {
        crate::outcome::set_errno(Errno::ENOTTY);
        return 0;
    }
    // SAFETY: the program's own argument.
    unsafe { super::original!(H: fn(c_int) -> c_int)(fd) }
}
