//! A file that `libsluice.so` redirects, as what the sieve reads and writes.
//!
//! It is a descriptor of ours beside the MPI library's: `libsluice.so` keeps the two in step, because they
//! are one file of one process. A batch goes by lio_listio(3), which `libsluice.so` turns into requests
//! that are under way together, past its caches, and which does not return before writes are
//! acknowledged: an error of theirs is this call's.

use std::collections::HashMap;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use sieve::{Access, Profile};
use transfer::{LockKind, ReadRequest, Target, WriteRequest};

/// Requests handed over at a time: each takes some 170 bytes.
const LIST_MAX: usize = 4096;

/// An open redirected file.
#[derive(Debug)]
pub(crate) struct FarFile {
    fd: OwnedFd,
    may_read: bool,
    may_write: bool,
}

/// The profiles that this process has measured, by the number of the service.
static MEASURED: Mutex<Option<HashMap<u64, Profile>>> = Mutex::new(None);

impl FarFile {
    /// The file behind a redirected descriptor, opened with `flags`.
    pub(crate) fn new(fd: OwnedFd, flags: c_int) -> FarFile {
        let mode = flags & libc::O_ACCMODE;
        FarFile { fd, may_read: mode != libc::O_WRONLY, may_write: mode != libc::O_RDONLY }
    }

    /// What stat(2) says of it: asked of the service.
    pub(crate) fn about(&self) -> Result<libc::stat, Errno> {
        let mut about = MaybeUninit::uninit();
        // SAFETY: fstat(2) of an open descriptor into room for its answer.
        answer(unsafe { libc::fstat(self.fd.as_raw_fd(), about.as_mut_ptr()) })?;
        // SAFETY: filled in where the call succeeded.
        Ok(unsafe { about.assume_init() })
    }

    /// What an access costs on the way there: measured once for each service and process.
    pub(crate) fn profile(&self) -> Option<Profile> {
        let service = self.about().ok()?.st_dev;
        let mut known = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(profile) = known.get(&service) {
            return Some(*profile);
        }
        let turn = || self.about().map(|about| u64::try_from(about.st_size).unwrap_or(0));
        let read = |reads: &mut [ReadRequest<'_>]| {
            self.read_batch(reads);
            reads.iter().find_map(|read| read.errno).map_or(Ok(()), Err)
        };
        let profile = transfer::measure_route(self.may_read, turn, read).ok()?;
        known.insert(service, profile);
        Some(profile)
    }

    /// Has `libsluice.so` keep nothing of the file, by whichever opening of this process: other ranks use it at the same
    /// time, and what MPI libraries do below a shared file (reading blocks, changing parts of them and writing them back)
    /// is right only where each sees what the others have written.
    pub(crate) fn keep_nothing(&self) -> Result<(), Errno> {
        let name = c"user.sluice.concurrent";
        // SAFETY: fsetxattr(2) of an open descriptor, with a NUL-terminated name and no value.
        answer(unsafe {
            libc::fsetxattr(self.fd.as_raw_fd(), name.as_ptr(), std::ptr::null(), 0, 0)
        })
    }

    /// Makes durable what was written.
    pub(crate) fn synchronise(&self) -> Result<(), Errno> {
        // SAFETY: fsync(2) of an open descriptor.
        answer(unsafe { libc::fsync(self.fd.as_raw_fd()) })
    }

    /// Carries out requests that are under way together. What came of each, in order.
    ///
    /// # Safety
    /// Each has the address and length of memory that may be read (for writes) or written (for reads).
    unsafe fn list(
        &self,
        operation: c_int,
        requests: impl Iterator<Item = (u64, *mut u8, usize)>,
    ) -> Vec<Result<usize, Errno>> {
        let control = |(offset, address, count): (u64, *mut u8, usize)| {
            // SAFETY: zeros are what aio(7) wants in all other fields.
            let mut control: libc::aiocb = unsafe { MaybeUninit::zeroed().assume_init() };
            control.aio_fildes = self.fd.as_raw_fd();
            control.aio_lio_opcode = operation;
            control.aio_buf = address.cast();
            control.aio_nbytes = count;
            // Of a file no offset is beyond that.
            control.aio_offset = i64::try_from(offset).unwrap_or(i64::MAX);
            control
        };
        let mut controls: Vec<libc::aiocb> = requests.map(control).collect();
        for some in controls.chunks_mut(LIST_MAX) {
            let list: Vec<*mut libc::aiocb> = some.iter_mut().map(std::ptr::from_mut).collect();
            let notice = std::ptr::null_mut();
            // SAFETY: lio_listio(3): a list of live requests, which are not touched until it returns;
            // their memory is the caller's promise. What failed is asked of each below.
            unsafe { libc::lio_listio(libc::LIO_WAIT, list.as_ptr(), list.len() as c_int, notice) };
        }
        let outcome = |control: &mut libc::aiocb| {
            // SAFETY: aio_error(3) and aio_return(3) of a request that is over.
            let (errno, count) = unsafe { (libc::aio_error(control), libc::aio_return(control)) };
            match errno {
                0 => Ok(usize::try_from(count).unwrap_or(0)),
                errno => Err(Errno::from_raw_os_error(errno)),
            }
        };
        controls.iter_mut().map(outcome).collect()
    }

    fn lock_call(&self, command: c_int, kind: c_int, file: &Range<u64>) -> Result<(), Errno> {
        let lock = libc::flock64 {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: file.start as i64,
            // A length of 0 would mean up to the end.
            l_len: file.end.saturating_sub(file.start).max(1) as i64,
            l_pid: 0,
        };
        // SAFETY: fcntl(2) with a lock that lives.
        answer(unsafe { libc::fcntl(self.fd.as_raw_fd(), command, &raw const lock) })
    }
}

/// What a call that answers 0 or −1 came to.
fn answer(code: c_int) -> Result<(), Errno> {
    if code >= 0 {
        return Ok(());
    }
    let number = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    Err(Errno::from_raw_os_error(number))
}

impl Target for FarFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let request = (offset, buf.as_mut_ptr(), buf.len());
        // SAFETY: memory that is ours to write.
        unsafe { self.list(libc::LIO_READ, std::iter::once(request)) }.remove(0)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        let request = (offset, data.as_ptr().cast_mut(), data.len());
        // SAFETY: memory that may be read, and is only read.
        unsafe { self.list(libc::LIO_WRITE, std::iter::once(request)) }.remove(0)
    }

    fn read_batch(&self, reads: &mut [ReadRequest<'_>]) {
        for read in reads.iter_mut() {
            (read.done, read.errno) = (0, None);
        }
        // A service may give less than was asked for without being at the end: what is missing is asked
        // for again, all of it together, until nothing more comes.
        let mut wanted: Vec<usize> = (0..reads.len()).collect();
        while !wanted.is_empty() {
            let requests = wanted.iter().map(|index| {
                let read = &mut reads[*index];
                let rest = &mut read.buf[read.done..];
                (read.offset.saturating_add(read.done as u64), rest.as_mut_ptr(), rest.len())
            });
            // SAFETY: memory that is ours to write; the requests' buffers are apart.
            let outcomes = unsafe { self.list(libc::LIO_READ, requests) };
            let mut again = Vec::new();
            for (index, outcome) in wanted.into_iter().zip(outcomes) {
                let read = &mut reads[index];
                match outcome {
                    Ok(0) => {}
                    Ok(count) => {
                        read.done += count.min(read.buf.len() - read.done);
                        if read.done < read.buf.len() {
                            again.push(index);
                        }
                    }
                    Err(errno) => read.errno = Some(errno),
                }
            }
            wanted = again;
        }
    }

    fn write_batch(&self, writes: &mut [WriteRequest<'_>]) {
        let requests = writes
            .iter()
            .map(|write| (write.offset, write.data.as_ptr().cast_mut(), write.data.len()));
        // SAFETY: memory that may be read, and is only read.
        let outcomes = unsafe { self.list(libc::LIO_WRITE, requests) };
        for (write, outcome) in writes.iter_mut().zip(outcomes) {
            (write.done, write.errno) = match outcome {
                Ok(count) => (count.min(write.data.len()), None),
                Err(errno) => (0, Some(errno)),
            };
            if write.done < write.data.len() && write.errno.is_none() {
                let rest = &write.data[write.done..];
                let offset = write.offset.saturating_add(write.done as u64);
                let (more, errno) = transfer::write_full(self, offset, rest);
                write.done += more;
                write.errno = errno;
            }
        }
    }

    fn check(&self, access: Access) -> transfer::Result<()> {
        let allowed = match access {
            Access::Read => self.may_read,
            Access::Write => self.may_write,
        };
        let errno = Errno::BADF;
        if allowed { Ok(()) } else { Err(transfer::Error::Io { access, offset: 0, len: 0, errno }) }
    }

    fn is_readable(&self) -> bool {
        self.may_read
    }

    fn lock(&self, file: Range<u64>, kind: LockKind) -> Result<(), Errno> {
        let kind = match kind {
            LockKind::Shared => libc::F_RDLCK,
            LockKind::Exclusive => libc::F_WRLCK,
        };
        self.lock_call(libc::F_OFD_SETLKW, kind, &file)
    }

    fn unlock(&self, file: Range<u64>) {
        // Should the connection have broken, the lock is gone already.
        let _ = self.lock_call(libc::F_OFD_SETLK, libc::F_UNLCK, &file);
    }
}
