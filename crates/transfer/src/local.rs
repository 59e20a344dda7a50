//! Files of this machine's kernel.

use std::cell::{Cell, OnceCell};
use std::io::{IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use nix::fcntl::FcntlArg;
use nix::libc::c_int;
use rustix::fs::{Advice, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use sieve::plan::Mapped;
use sieve::{Access, Warmth};

use crate::error::{Error, Result};
use crate::map::FileMap;
use crate::ranges::{self, Identity};
use crate::target::{LockKind, Piece, Target, WriteRequest, write_full};

/// In how many parts a range is cut to see which of their ends are in the page cache. Each look costs
/// about as much as a small read.
const PROBES: u64 = 6;

/// An open file, known by its descriptor. Making one costs nothing; what it has to know of the
/// descriptor it asks when it is needed.
#[derive(Debug)]
pub struct LocalFile<'fd> {
    fd: BorrowedFd<'fd>,
    flags: OnceCell<OFlags>,
    /// Whether nobody else uses the same open file at the same time.
    is_private: bool,
    /// Which file it is, once it had to be known.
    identity: OnceCell<Identity>,
    /// The file system has said that it cannot tell what is at hand.
    is_mute: Cell<bool>,
    /// What of it is mapped, where somebody keeps that.
    map: Option<&'fd FileMap>,
}

impl<'fd> LocalFile<'fd> {
    /// The file behind a descriptor.
    #[must_use]
    pub fn new(fd: BorrowedFd<'fd>) -> Self {
        Self {
            fd,
            is_private: false,
            flags: OnceCell::new(),
            identity: OnceCell::new(),
            is_mute: Cell::new(false),
            map: None,
        }
    }

    /// The same for a descriptor whose open file no other thread uses meanwhile, by whatever
    /// descriptor: then the kernel's locks are enough.
    #[must_use]
    pub fn private(fd: BorrowedFd<'fd>) -> Self {
        Self { is_private: true, ..Self::new(fd) }
    }

    /// The same, and what pays to be mapped is mapped: `map` is kept by the caller as long as the
    /// file is open. One that is kept for another file is no harm but for its being lost.
    #[must_use]
    pub fn keeping(self, map: &'fd FileMap) -> Self {
        Self { map: Some(map), ..self }
    }

    /// How it was opened. A descriptor that is none answers as if it were for reading only: the
    /// call that comes next says `EBADF`.
    fn flags(&self) -> OFlags {
        *self.flags.get_or_init(|| rustix::fs::fcntl_getfl(self.fd).unwrap_or(OFlags::RDONLY))
    }

    /// Which file it is.
    fn identity(&self) -> std::result::Result<Identity, Errno> {
        if let Some(identity) = self.identity.get() {
            return Ok(*identity);
        }
        let about = rustix::fs::fstat(self.fd)?;
        Ok(*self.identity.get_or_init(|| (about.st_dev, about.st_ino)))
    }

    /// Takes a lock that belongs to the open file, not to the process: fcntl(2), "Open file
    /// description locks".
    fn take_lock(&self, file: &Range<u64>, kind: c_int) -> std::result::Result<(), Errno> {
        let lock = flock(file, kind);
        loop {
            match nix::fcntl::fcntl(self.fd, FcntlArg::F_OFD_SETLK(&lock)) {
                Ok(_) => return Ok(()),
                Err(nix::Error::EINTR) => continue,
                Err(nix::Error::EAGAIN | nix::Error::EACCES) => {}
                Err(errno) => return Err(Errno::from_raw_os_error(errno as i32)),
            }
            // A traditional lock of this very process's would be waited for as if it were another's,
            // by the one who has to give it back.
            let mut holder = lock;
            let asked = nix::fcntl::fcntl(self.fd, FcntlArg::F_OFD_GETLK(&mut holder));
            let is_held = asked.is_ok() && c_int::from(holder.l_type) != nix::libc::F_UNLCK;
            if is_held && u32::try_from(holder.l_pid) == Ok(std::process::id()) {
                return Err(Errno::DEADLK);
            }
            match nix::fcntl::fcntl(self.fd, FcntlArg::F_OFD_SETLKW(&lock)) {
                Ok(_) => return Ok(()),
                Err(nix::Error::EINTR) => {}
                Err(errno) => return Err(Errno::from_raw_os_error(errno as i32)),
            }
        }
    }
}

/// A range of a file as fcntl(2) has it.
fn flock(file: &Range<u64>, kind: c_int) -> nix::libc::flock {
    nix::libc::flock {
        l_type: kind as nix::libc::c_short,
        l_whence: nix::libc::SEEK_SET as nix::libc::c_short,
        // Offsets of files are below 2^63; a length of 0 would mean "to the end of time".
        l_start: file.start as i64,
        l_len: (file.end.saturating_sub(file.start)).max(1) as i64,
        l_pid: 0,
    }
}

impl Target for LocalFile<'_> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::result::Result<usize, Errno> {
        rustix::io::pread(self.fd, buf, offset)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> std::result::Result<usize, Errno> {
        rustix::io::pwrite(self.fd, data, offset)
    }

    fn read_vectored_at(
        &self,
        offset: u64,
        bufs: &mut [IoSliceMut<'_>],
    ) -> std::result::Result<usize, Errno> {
        rustix::io::preadv(self.fd, bufs, offset)
    }

    fn write_vectored_at(
        &self,
        offset: u64,
        bufs: &[IoSlice<'_>],
    ) -> std::result::Result<usize, Errno> {
        rustix::io::pwritev(self.fd, bufs, offset)
    }

    fn is_vectored(&self) -> bool {
        true
    }

    fn write_batch(&self, writes: &mut [WriteRequest<'_>]) {
        // A page that is written in part has to be read: that is what can be asked for ahead.
        for write in writes.iter().filter(|_| self.is_readable()) {
            self.announce(write.offset..write.offset + write.data.len() as u64);
        }
        for write in writes {
            (write.done, write.errno) = write_full(self, write.offset, write.data);
        }
    }

    fn announces(&self) -> bool {
        true
    }

    /// Tells the kernel what will be wanted, so that the disk works on all of it at once:
    /// posix_fadvise(2), `POSIX_FADV_WILLNEED`. A kernel that does not listen is no error.
    fn announce(&self, file: Range<u64>) {
        if let Some(len) = NonZeroU64::new(file.end.saturating_sub(file.start)) {
            let _ = rustix::fs::fadvise(self.fd, file.start, Some(len), Advice::WillNeed);
        }
    }

    fn mapped(&self, file: Range<u64>, access: Access) -> Option<Mapped> {
        self.map?.planned(self.fd, &file, access, self.flags())
    }

    fn credit(&self, change_ns: f64) {
        if let Some(map) = self.map {
            map.credit(change_ns);
        }
    }

    fn read_mapped(&self, pieces: &[Piece], out: &mut [u8]) -> std::result::Result<usize, Errno> {
        self.map.ok_or(Errno::NOSYS)?.read(self.fd, pieces, out)
    }

    fn write_mapped(&self, pieces: &[Piece], data: &[u8]) -> std::result::Result<usize, Errno> {
        self.map.ok_or(Errno::NOSYS)?.write(self.fd, pieces, data)
    }

    fn check(&self, access: Access) -> Result<()> {
        let refused = |errno| Error::Io { access, offset: 0, len: 0, errno };
        match access {
            // A read of nothing finds out about pipes (ESPIPE) and closed descriptors.
            Access::Read => rustix::io::pread(self.fd, &mut [0u8; 0][..], 0).map_err(refused)?,
            Access::Write if self.flags().contains(OFlags::APPEND) => return Err(Error::Append),
            Access::Write => rustix::io::pwrite(self.fd, &[], 0).map_err(refused)?,
        };
        Ok(())
    }

    fn is_readable(&self) -> bool {
        // O_RDONLY is 0 and O_RDWR a value of its own: open(2).
        self.flags() & OFlags::RWMODE != OFlags::WRONLY
    }

    fn warmth(&self, file: Range<u64>) -> Warmth {
        // Read-ahead leaves islands: a few places, both ends among them.
        let last = file.end.saturating_sub(1).max(file.start);
        let mut probes = (0..=PROBES).map(|n| file.start + (last - file.start) / PROBES * n);
        let is_cold = |offset: u64| {
            // Asked once, not for every place of every slice.
            if self.is_mute.get() {
                return false;
            }
            let mut byte = [0u8; 1];
            let mut bufs = [IoSliceMut::new(&mut byte)];
            // preadv2(2), RWF_NOWAIT: "do not wait for data which is not immediately available".
            // File systems that cannot tell say EOPNOTSUPP; most of those are memory.
            let read = rustix::io::preadv2(self.fd, &mut bufs, offset, ReadWriteFlags::NOWAIT);
            self.is_mute.set(read == Err(Errno::OPNOTSUPP));
            read == Err(Errno::AGAIN)
        };
        if self.is_readable() && (probes.any(is_cold) || is_cold(last)) {
            Warmth::Cold
        } else {
            Warmth::Warm
        }
    }

    fn lock(&self, file: Range<u64>, kind: LockKind) -> std::result::Result<(), Errno> {
        let kind = match kind {
            // A lock for reading needs a descriptor for reading: fcntl(2), EBADF.
            LockKind::Shared if self.is_readable() => nix::libc::F_RDLCK,
            LockKind::Shared | LockKind::Exclusive => nix::libc::F_WRLCK,
        };
        if self.is_private {
            return self.take_lock(&file, kind);
        }
        let identity = self.identity()?;
        ranges::take(identity, &file);
        self.take_lock(&file, kind).inspect_err(|_| ranges::give_back(identity, &file))
    }

    fn unlock(&self, file: Range<u64>) {
        // Giving back what is held cannot fail; were it so, closing the file would do it.
        let lock = flock(&file, nix::libc::F_UNLCK);
        let _ = nix::fcntl::fcntl(self.fd, FcntlArg::F_OFD_SETLK(&lock));
        if !self.is_private
            && let Ok(identity) = self.identity()
        {
            ranges::give_back(identity, &file);
        }
    }
}
