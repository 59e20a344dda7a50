//! The state of an open file, kept where the descriptor itself finds it again.
//!
//! A redirected descriptor is an `O_PATH` re-opening of a small memfd (memfd_create(2)). The memfd
//! holds what all processes that share the open file must agree on: its address, flags and offset.
//! So dup, fork, descriptor passing and numbering are the kernel's; a process image started by
//! exec(2) finds its descriptors again by the memfd's name; and a system call that Sluice does not
//! see fails with EBADF, because that is what `O_PATH` descriptors answer (open(2)).

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use p9::Errno;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// How /proc/self/fd/N reads for a redirected descriptor.
pub(crate) const LINK_PREFIX: &[u8] = b"/memfd:sluice-file-1";

const NAME: &CStr = c"sluice-file-1";

/// Bytes of a state: the fixed part and the address, which may hold a path of PATH_MAX.
pub(crate) const STATE_LEN: usize = 8192;

const ADDRESS_MAX: usize = STATE_LEN - 64;

/// What the memfd holds. Layout is part of the name's version: other processes may have been
/// started with the same Sluice only.
#[repr(C)]
struct Shared {
    /// The file offset; for a directory, the cookie of the next entry.
    offset: AtomicU64,
    /// `O_*` of open(2) as F_GETFL reports them.
    flags: AtomicU32,
    /// [`SHARED`] and [`HELD`].
    shared: AtomicU32,
    /// Identity of the file when it was opened.
    qid_path: AtomicU64,
    address_len: AtomicU32,
    reserved: [u32; 9],
    address: [u8; ADDRESS_MAX],
}

/// More than one process may hold the open file.
const SHARED: u32 = 1;

/// To have the file open means something to its service: who inherits it opens it at once, not when it is first used.
const HELD: u32 = 2;

/// A mapping of the state of one open file.
pub(crate) struct State {
    shared: NonNull<Shared>,
}

// SAFETY: everything behind the pointer is atomic, except the address, which is written once before
// the state is shared.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length and owned by this value.
        let _ = unsafe { rustix::mm::munmap(self.shared.as_ptr().cast::<c_void>(), STATE_LEN) };
    }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// The `O_PATH` re-opening of a descriptor.
fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let digits = fd.as_raw_fd().to_string();
    path[14..14 + digits.len()].copy_from_slice(digits.as_bytes());
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| Errno::EINVAL)?;
    rustix::fs::open(path, flags, Mode::empty()).map_err(errno)
}

impl State {
    /// Makes a state and the descriptor that a program is given for it.
    ///
    /// # Errors
    /// As memfd_create(2) and open(2): `EMFILE`, `ENOMEM`; `ENAMETOOLONG` for an address that
    /// does not fit.
    pub(crate) fn create(
        address: &[u8],
        flags: u32,
        qid_path: u64,
        close_on_exec: bool,
    ) -> Result<(Self, c_int), Errno> {
        if address.len() > ADDRESS_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let memory = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC).map_err(errno)?;
        rustix::fs::ftruncate(&memory, STATE_LEN as u64).map_err(errno)?;
        let state = Self::map(memory.as_fd())?;
        state.shared().flags.store(flags, Ordering::Relaxed);
        state.shared().qid_path.store(qid_path, Ordering::Relaxed);
        state.shared().address_len.store(address.len() as u32, Ordering::Relaxed);
        // SAFETY: the mapping is new and nobody else knows it; the length was checked.
        unsafe {
            let target = (&raw mut (*state.shared.as_ptr()).address).cast::<u8>();
            std::ptr::copy_nonoverlapping(address.as_ptr(), target, address.len());
        }
        let cloexec = if close_on_exec { OFlags::CLOEXEC } else { OFlags::empty() };
        let given = reopen(memory.as_fd(), OFlags::PATH | cloexec)?;
        // The program gets the lowest free descriptor, as POSIX wants: the memfd's own number, when
        // it is below and about to be free.
        if memory.as_raw_fd() < given.as_raw_fd() {
            let number = memory.into_raw_fd();
            // SAFETY: `number` was owned until the line above; dup3 replaces it in one step.
            let mut lowest = unsafe { std::os::fd::FromRawFd::from_raw_fd(number) };
            let dup_flags = if close_on_exec {
                rustix::io::DupFlags::CLOEXEC
            } else {
                rustix::io::DupFlags::empty()
            };
            rustix::io::dup3(&given, &mut lowest, dup_flags).map_err(errno)?;
            drop(given);
            return Ok((state, OwnedFd::into_raw_fd(lowest)));
        }
        Ok((state, given.into_raw_fd()))
    }

    /// Finds the state behind a descriptor that was inherited or passed; `None`: it is no
    /// redirected one.
    pub(crate) fn adopt(fd: BorrowedFd<'_>) -> Option<Self> {
        // Cheaper than a look at its link, and no for nearly all.
        if !rustix::fs::fcntl_getfl(fd).ok()?.contains(OFlags::PATH) {
            return None;
        }
        let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
        let digits = fd.as_raw_fd().to_string();
        path[14..14 + digits.len()].copy_from_slice(digits.as_bytes());
        let path = CStr::from_bytes_until_nul(&path).ok()?;
        let mut link = [0_u8; 64];
        let len = rustix::fs::readlinkat_raw(rustix::fs::CWD, path, &mut link[..]).ok()?;
        if !link[..len].starts_with(LINK_PREFIX) {
            return None;
        }
        let memory = reopen(fd, OFlags::RDWR | OFlags::CLOEXEC).ok()?;
        let size = rustix::fs::fstat(&memory).ok()?.st_size;
        if size != STATE_LEN as i64 {
            return None;
        }
        Self::map(memory.as_fd()).ok()
    }

    fn map(memory: BorrowedFd<'_>) -> Result<Self, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh shared mapping at an address of the kernel's choice.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                STATE_LEN,
                protection,
                MapFlags::SHARED,
                memory,
                0,
            )
        };
        let address = address.map_err(errno)?;
        let shared = NonNull::new(address.cast()).ok_or(Errno::ENOMEM)?;
        Ok(Self { shared })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: mapped for as long as `self` lives, page-aligned, and every bit pattern is valid.
        unsafe { self.shared.as_ref() }
    }

    /// The canonical URI of the file.
    pub(crate) fn address(&self) -> &[u8] {
        let shared = self.shared();
        let len = (shared.address_len.load(Ordering::Relaxed) as usize).min(ADDRESS_MAX);
        &shared.address[..len]
    }

    /// The file offset.
    #[inline]
    pub(crate) fn offset(&self) -> &AtomicU64 {
        &self.shared().offset
    }

    /// `O_*` as F_GETFL reports them.
    pub(crate) fn flags(&self) -> u32 {
        self.shared().flags.load(Ordering::Relaxed)
    }

    /// F_SETFL.
    pub(crate) fn set_flags(&self, flags: u32) {
        self.shared().flags.store(flags, Ordering::Relaxed);
    }

    /// Identity of the file when it was opened.
    pub(crate) fn qid_path(&self) -> u64 {
        self.shared().qid_path.load(Ordering::Relaxed)
    }

    /// Whether another process may hold the open file too.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared().shared.load(Ordering::Relaxed) & SHARED != 0
    }

    /// Says that another process may hold the open file from now on.
    pub(crate) fn share(&self) {
        self.shared().shared.fetch_or(SHARED, Ordering::Relaxed);
    }

    /// Whether who inherits the open file has to open it at once.
    pub(crate) fn is_held(&self) -> bool {
        self.shared().shared.load(Ordering::Relaxed) & HELD != 0
    }

    /// Says so.
    pub(crate) fn hold(&self) {
        self.shared().shared.fetch_or(HELD, Ordering::Relaxed);
    }
}
