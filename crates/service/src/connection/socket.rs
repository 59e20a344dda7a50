//! A stream socket: receiving into a buffer, and a writer that several threads share.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use p9::frame::READ_REPLY_OVERHEAD;
use rustix::fs::{FileType, fstat, sendfile};
use rustix::io::Errno as Os;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, send, sendmsg};

/// The connection is of no use any more. Why does not matter to anybody: there is nobody left to
/// tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

/// Places that one call sends from at most (`UIO_MAXIOV`, sendmsg(2)).
const PARTS_MAX: usize = 1024;

/// A connected stream socket, TCP or Unix.
pub(crate) struct Socket {
    fd: OwnedFd,
    /// Held for as long as one frame, or several whole ones, go out.
    sending: Mutex<()>,
}

impl Socket {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self { fd, sending: Mutex::new(()) }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Ends the connection for both sides and for every thread that waits on it.
    pub(crate) fn shut_down(&self) {
        // It fails only if the connection is gone already, which is what is wanted.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Both);
    }

    /// Makes the receiving thread find the end of the connection; answers still leave.
    pub(crate) fn shut_down_receiving(&self) {
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Read);
    }

    /// Receives up to `buffer.len()` bytes; 0 at the end. A client that is silent for too long is
    /// given up, unless it is `expecting` something itself.
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        expecting: impl Fn() -> bool,
    ) -> Result<usize, Broken> {
        loop {
            match recv(&self.fd, &mut *buffer, RecvFlags::empty()) {
                Ok((count, _)) => return Ok(count),
                Err(Os::INTR) => {}
                Err(Os::AGAIN) if expecting() => {}
                Err(_) => return Err(Broken),
            }
        }
    }

    /// Sends all of `bytes`, which are whole frames.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), Broken> {
        let _turn = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        self.send_rest(bytes, SendFlags::empty())
    }

    /// Waits until nobody else sends, and keeps it so: for a frame that goes out in several parts.
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn { socket: self, _held: self.sending.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Sends whole frames that lie in several places.
    pub(crate) fn send_parts(&self, mut parts: &mut [IoSlice<'_>]) -> Result<(), Broken> {
        let _turn = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let at_once = &parts[..parts.len().min(PARTS_MAX)];
            let mut nothing = SendAncillaryBuffer::default();
            match sendmsg(&self.fd, at_once, &mut nothing, SendFlags::NOSIGNAL) {
                Ok(count) => IoSlice::advance_slices(&mut parts, count),
                Err(Os::INTR) => {}
                Err(_) => return self.broken(),
            }
        }
        Ok(())
    }

    fn send_rest(&self, mut bytes: &[u8], flags: SendFlags) -> Result<(), Broken> {
        while !bytes.is_empty() {
            match send(&self.fd, bytes, SendFlags::NOSIGNAL | flags) {
                Ok(count) => bytes = &bytes[count..],
                Err(Os::INTR) => {}
                Err(_) => return self.broken(),
            }
        }
        Ok(())
    }

    /// Sends whole frames and then the head of one whose data are `count` bytes of `file`, which
    /// the kernel moves by itself.
    ///
    /// If the file has become shorter meanwhile, the promise of `head` cannot be kept: then the
    /// connection is ended, rather than padded with bytes that were never in the file. The client
    /// connects again and repeats the read.
    pub(crate) fn send_file(
        &self,
        head: &[u8],
        file: BorrowedFd<'_>,
        offset: u64,
        count: usize,
    ) -> Result<(), Broken> {
        let _turn = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        self.send_rest(head, SendFlags::MORE)?;
        let mut offset = offset;
        let mut left = count;
        while left > 0 {
            match sendfile(&self.fd, file, Some(&mut offset), left) {
                Ok(0) => return self.broken(),
                Ok(sent) => left -= sent.min(left),
                Err(Os::INTR) => {}
                Err(_) => return self.broken(),
            }
        }
        Ok(())
    }

    /// A frame that went out in part cannot be taken back.
    fn broken(&self) -> Result<(), Broken> {
        self.shut_down();
        Err(Broken)
    }
}

/// The right to send.
pub(crate) struct Turn<'a> {
    socket: &'a Socket,
    _held: MutexGuard<'a, ()>,
}

impl Turn<'_> {
    /// Sends the next part of a frame.
    pub(crate) fn send(&self, bytes: &[u8], more_follows: bool) -> Result<(), Broken> {
        let flags = if more_follows { SendFlags::MORE } else { SendFlags::empty() };
        self.socket.send_rest(bytes, flags)
    }

    /// The rest of the frame cannot be sent.
    pub(crate) fn give_up(&self) -> Result<(), Broken> {
        self.socket.broken()
    }
}

/// How many of `count` bytes at `offset` a regular file has now; `None` if only reading can tell.
pub(crate) fn bytes_to_send(file: BorrowedFd<'_>, offset: u64, count: usize) -> Option<usize> {
    let stat = fstat(file).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let left = u64::try_from(stat.st_size).ok()?.saturating_sub(offset);
    Some(usize::try_from(left).unwrap_or(usize::MAX).min(count))
}

/// The start of a `Rread` whose `count` bytes of data follow.
pub(crate) fn read_head(tag: p9::Tag, count: usize, out: &mut Vec<u8>) {
    let start = out.len();
    p9::Reply::Read { data: p9::Data(&[]) }.encode(tag, out);
    let size = (READ_REPLY_OVERHEAD + count) as u32;
    out[start..start + 4].copy_from_slice(&size.to_le_bytes());
    out[start + READ_REPLY_OVERHEAD - 4..].copy_from_slice(&(count as u32).to_le_bytes());
}
