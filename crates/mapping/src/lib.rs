//! Parts of a file in memory that only the kernel touches.
//!
//! Many small pieces of a file that is in the page cache cost a system call each, most of which is
//! the way into the kernel, to the file and to the page. A mapping knows the way to the pages, but a
//! load from it is a `SIGBUS` when the file has shrunk meanwhile, and a library must not do that to
//! its host. So nothing here looks into a mapping: the kernel copies, and where a page cannot be had
//! it says so. One copy:
//!
//! 1. [`Mapping::new`] maps a part of the file, shared. No page of it is touched.
//! 2. [`Mapping::populate`] has the kernel enter pages that are at hand, many at a time.
//! 3. [`Pieces::push`] takes down up to [`PIECES_MAX`] pieces of mappings.
//! 4. [`Pieces::copy_out`] is one `process_vm_writev(2)` of the process to itself: from those pieces
//!    to one piece of memory. [`Pieces::copy_in`] is `process_vm_readv(2)`, the other way.
//!
//! A process that is Sluice's own need not be so careful: [`Guarded`] mappings may be looked into, since
//! it catches the signal.
//!
//! A process may always do that to itself (ptrace(2), "Ptrace access mode checking"), unless a
//! filter of system calls forbids it: then these calls fail, and nothing else does.
//!
//! # Source
//! process_vm_readv(2), mmap(2), madvise(2) `MADV_POPULATE_READ`.

#![warn(unsafe_op_in_unsafe_fn)]

mod guarded;

pub use guarded::{GUARDED_MAX, Guarded};

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

/// File systems whose files are pages of this machine's page cache and nothing else, so that a
/// mapping has what was written, and a store into it is as good as a write: statfs(2), `f_type`.
/// Network file systems keep promises at calls that a mapping does not make.
const LOCAL_FILE_SYSTEMS: [i64; 5] = [
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
];

/// Whether a file is in a file system of which mappings and calls see the same bytes.
#[must_use]
pub fn is_local(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|system| LOCAL_FILE_SYSTEMS.contains(&system.f_type))
}

/// How many pieces one call takes: `UIO_MAXIOV`, readv(2).
pub const PIECES_MAX: usize = 1024;

/// A part of a file in the address space of this process.
///
/// There is no way to its bytes but [`Pieces`] and, guarded, [`Guarded`].
pub struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: the address is owned like that of a Box, and a mapping belongs to the process, not to a
// thread.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference nothing of it changes.
unsafe impl Sync for Mapping {}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapping").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Mapping {
    /// Maps `len` bytes of a file from `offset` on, a multiple of the page size; for writing too if
    /// `writes`, which takes a descriptor that is open for both. The file may be shorter.
    ///
    /// # Errors
    /// As mmap(2).
    pub fn new(fd: BorrowedFd<'_>, offset: u64, len: usize, writes: bool) -> Result<Self, Errno> {
        let writing = if writes { ProtFlags::WRITE } else { ProtFlags::empty() };
        let protection = ProtFlags::READ | writing;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of anybody's
        // (mmap(2)), and no reference into it is ever made.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), len, protection, MapFlags::SHARED, fd, offset)
        }?;
        // The kernel maps nothing at 0 that was not asked for there.
        NonNull::new(start).map(|start| Self { start, len }).ok_or(Errno::NOMEM)
    }

    /// How many bytes of the file it has.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: mmap(2) refuses to map nothing.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Enters the pages of a part, which begins at a page, into the process's tables (and what the
    /// kernel maps around them), so that copies need not fault them in one by one.
    ///
    /// # Errors
    /// As madvise(2) with `MADV_POPULATE_READ`: `EINVAL` before Linux 5.14, `EFAULT` behind the end
    /// of the file.
    ///
    /// # Panics
    /// If the part is not one of the mapping's.
    pub fn populate(&self, part: Range<usize>) -> Result<(), Errno> {
        assert!(part.start <= part.end && part.end <= self.len, "a part of the mapping");
        // SAFETY: within the mapping, by the assertion; the advice changes no content.
        unsafe {
            let start = self.start.as_ptr().byte_add(part.start);
            rustix::mm::madvise(start, part.end - part.start, Advice::LinuxPopulateRead)
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and `Pieces` that name it borrow it. It cannot fail: the range is
        // as it was mapped.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.len) };
    }
}

/// Memory for the list of a call, to be used again.
#[derive(Default)]
pub struct List(Vec<libc::iovec>);

// SAFETY: between calls the list is empty; its addresses are numbers for the kernel, behind which
// nothing here looks.
unsafe impl Send for List {}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("capacity", &self.0.capacity()).finish()
    }
}

/// Pieces of mappings that are copied together.
#[derive(Debug)]
pub struct Pieces<'a> {
    list: &'a mut List,
    bytes: usize,
    mappings: PhantomData<&'a Mapping>,
}

impl<'a> Pieces<'a> {
    /// None yet.
    #[must_use]
    pub fn new(list: &'a mut List) -> Self {
        list.0.clear();
        Self { list, bytes: 0, mappings: PhantomData }
    }

    /// How many there are.
    #[must_use]
    #[inline]
    pub fn count(&self) -> usize {
        self.list.0.len()
    }

    /// How many bytes they have together.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds `len` bytes of a mapping from `at` on.
    ///
    /// # Panics
    /// If they do not lie within the mapping.
    #[inline]
    pub fn push(&mut self, mapping: &'a Mapping, at: usize, len: usize) {
        assert!(at <= mapping.len && len <= mapping.len - at, "a piece of the mapping");
        // SAFETY: within the mapping, by the assertion.
        let start = unsafe { mapping.start.as_ptr().byte_add(at) };
        self.list.0.push(libc::iovec { iov_base: start, iov_len: len });
        self.bytes += len;
    }

    /// Copies the pieces, one after the other, to `out`, as far as that goes. Returns how many bytes
    /// were copied: fewer than there are when a page of the file cannot be had.
    ///
    /// # Errors
    /// `EFAULT` when not a byte could be; `EPERM` or `ENOSYS` where the call is forbidden.
    pub fn copy_out(&self, out: &mut [u8]) -> Result<usize, Errno> {
        let out =
            libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len().min(self.bytes) };
        // SAFETY: the kernel reads from mappings that live as long as `self`, checking each page, and
        // writes to `out` alone, which is ours and which nobody else looks at; process_vm_writev(2).
        let done = unsafe {
            libc::process_vm_writev(own_id(), self.list.0.as_ptr(), self.number(), &out, 1, 0)
        };
        result(done)
    }

    /// Copies `data` to the pieces, one after the other, as far as that goes. Returns how many bytes
    /// were copied. Bytes of the file beside the pieces are not touched.
    ///
    /// # Errors
    /// As [`Pieces::copy_out`].
    pub fn copy_in(&self, data: &[u8]) -> Result<usize, Errno> {
        let data = libc::iovec {
            iov_base: data.as_ptr().cast_mut().cast(),
            iov_len: data.len().min(self.bytes),
        };
        // SAFETY: the kernel reads from `data` alone and writes to mappings that live as long as
        // `self` and into which there are no references; process_vm_readv(2). A mapping that was
        // not made for writing is EFAULT.
        let done = unsafe {
            libc::process_vm_readv(own_id(), self.list.0.as_ptr(), self.number(), &data, 1, 0)
        };
        result(done)
    }

    fn number(&self) -> libc::c_ulong {
        self.list.0.len() as libc::c_ulong
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        self.list.0.clear();
    }
}

/// Asked each time: after fork(2) it is another.
fn own_id() -> libc::pid_t {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn result(done: isize) -> Result<usize, Errno> {
    usize::try_from(done).map_err(|_| {
        let errno = std::io::Error::last_os_error().raw_os_error();
        errno.map_or(Errno::IO, Errno::from_raw_os_error)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    const PAGE: usize = 4096;

    fn file(len: usize) -> (File, Vec<u8>) {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..len).map(|at| (at * 7 % 251) as u8).collect();
        file.write_all(&content).unwrap();
        (file, content)
    }

    #[test]
    fn pieces_are_copied_in_their_order_and_nothing_else_is() {
        let (mut file, mut content) = file(5 * PAGE);
        let first = Mapping::new(file.as_fd(), 0, 2 * PAGE, true).unwrap();
        let second = Mapping::new(file.as_fd(), 2 * PAGE as u64, 3 * PAGE, true).unwrap();
        first.populate(0..2 * PAGE).unwrap();
        let mut list = List::default();
        let mut pieces = Pieces::new(&mut list);
        pieces.push(&second, 10, 5000);
        pieces.push(&first, 4095, 2);
        assert_eq!((pieces.count(), pieces.bytes()), (2, 5002));
        let mut out = vec![0; 6000];
        assert_eq!(pieces.copy_out(&mut out), Ok(5002));
        assert_eq!(out[..5000], content[2 * PAGE + 10..][..5000]);
        assert_eq!(out[5000..5002], content[4095..4097]);
        assert!(out[5002..].iter().all(|byte| *byte == 0));
        assert_eq!(pieces.copy_in(&vec![255; 5001]), Ok(5001));
        content[2 * PAGE + 10..][..5000].fill(255);
        content[4095] = 255;
        drop(pieces);
        let mut now = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut now).unwrap();
        assert!(now == content);
    }

    #[test]
    fn a_file_that_has_shrunk_is_an_error_and_no_signal() {
        let (file, content) = file(3 * PAGE);
        let mapping = Mapping::new(file.as_fd(), 0, 3 * PAGE, true).unwrap();
        file.set_len(PAGE as u64).unwrap();
        let mut list = List::default();
        let mut out = vec![0; 3 * PAGE];
        let mut pieces = Pieces::new(&mut list);
        pieces.push(&mapping, 0, 3 * PAGE);
        assert_eq!(pieces.copy_out(&mut out), Ok(PAGE));
        assert_eq!(out[..PAGE], content[..PAGE]);
        assert_eq!(pieces.copy_in(&out), Ok(PAGE));
        drop(pieces);
        let mut pieces = Pieces::new(&mut list);
        pieces.push(&mapping, 2 * PAGE, 1);
        assert_eq!(pieces.copy_out(&mut out), Err(Errno::FAULT));
        assert_eq!(pieces.copy_in(&out), Err(Errno::FAULT));
        assert_eq!(file.metadata().unwrap().len(), PAGE as u64);
    }

    #[test]
    fn a_mapping_for_reading_cannot_be_written() {
        let (file, _) = file(PAGE);
        let mapping = Mapping::new(file.as_fd(), 0, PAGE, false).unwrap();
        let mut list = List::default();
        let mut pieces = Pieces::new(&mut list);
        pieces.push(&mapping, 0, 8);
        assert_eq!(pieces.copy_in(&[1; 8]), Err(Errno::FAULT));
        assert_eq!(pieces.copy_out(&mut [0; 8]), Ok(8));
    }

    #[test]
    #[should_panic(expected = "a piece of the mapping")]
    fn what_is_not_mapped_is_no_piece() {
        let (file, _) = file(PAGE);
        let mapping = Mapping::new(file.as_fd(), 0, PAGE, false).unwrap();
        Pieces::new(&mut List::default()).push(&mapping, PAGE - 1, 2);
    }
}
