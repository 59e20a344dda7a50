//! What carries messages: a stream socket, or a service in the same process.

use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use p9::Errno;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg, sockopt};

use crate::interrupt::{INTERRUPTED, TICK, interrupted, is_watched};

/// A service in the same process: one call, one reply. Implemented by the `service` crate.
pub trait Exchange: Send + Sync {
    /// Handles the request frame and appends the reply frame.
    fn exchange(&self, request: &[u8], reply: &mut Vec<u8>);
}

/// A way to a service.
pub enum Link {
    /// A connected, blocking stream socket.
    Stream(OwnedFd),
    /// Direct function calls.
    Local(Arc<dyn Exchange>),
}

impl Link {
    /// Bounds how long receiving may wait. Best effort: without it a wait only takes longer.
    pub(crate) fn limit_waits(&self, limit: Duration) {
        if let Link::Stream(socket) = self {
            let receive = sockopt::Timeout::Recv;
            let _ = sockopt::set_socket_timeout(socket, receive, Some(limit));
        }
    }
}

/// What came of sending without waiting.
pub(crate) enum Sent {
    /// So many bytes went out.
    Bytes(usize),
    /// The socket is full.
    Full,
}

pub(crate) fn errno_of(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// Sends what fits of `head` followed by `tail`, without waiting and without SIGPIPE.
pub(crate) fn send_some(socket: &OwnedFd, head: &[u8], tail: &[u8]) -> Result<Sent, Errno> {
    let parts = [IoSlice::new(head), IoSlice::new(tail)];
    let parts = if head.is_empty() { &parts[1..] } else { &parts[..] };
    loop {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(socket, parts, &mut SendAncillaryBuffer::default(), flags) {
            Ok(count) => return Ok(Sent::Bytes(count)),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(Sent::Full),
            Err(error) => return Err(errno_of(error)),
        }
    }
}

/// Receives at least one byte, waiting for it. The end of the stream is `ECONNRESET`: a service
/// never ends a connection in good order.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8], whole: bool) -> Result<usize, Errno> {
    if !whole && is_watched() {
        wait_watched(socket)?;
    }
    let flags = if whole { RecvFlags::WAITALL } else { RecvFlags::empty() };
    loop {
        match recv(socket, &mut *buffer, flags) {
            Ok((0, _)) if !buffer.is_empty() => return Err(Errno::ECONNRESET),
            Ok((count, _)) => return Ok(count),
            Err(rustix::io::Errno::INTR) if interrupted() => return Err(INTERRUPTED),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return Err(Errno::ETIMEDOUT),
            Err(error) => return Err(errno_of(error)),
        }
    }
}

/// Waits for input as long as receiving would, and asks meanwhile whether to give up. A signal that came just before
/// recv(2) would not end that.
fn wait_watched(socket: &OwnedFd) -> Result<(), Errno> {
    if has_input(socket) {
        return Ok(());
    }
    let limit = sockopt::socket_timeout(socket, sockopt::Timeout::Recv).ok().flatten();
    let since = Instant::now();
    while limit.is_none_or(|limit| since.elapsed() < limit) {
        let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        let tick = rustix::event::Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        match poll(&mut fds, Some(&tick)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {
                if interrupted() {
                    return Err(INTERRUPTED);
                }
            }
            // What is wrong with the socket is said by recv(2).
            _ => return Ok(()),
        }
    }
    Err(Errno::ETIMEDOUT)
}

/// Waits until the socket can take bytes or has some; true: it has some.
pub(crate) fn wait_either(socket: &OwnedFd, want_input: bool) -> bool {
    let mut flags = PollFlags::OUT;
    if want_input {
        flags |= PollFlags::IN;
    }
    let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), flags)];
    // A bound on the wait: another thread may leave the reader's role to us meanwhile.
    let limit = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    match poll(&mut fds, Some(&limit)) {
        Ok(_) => fds[0].revents().contains(PollFlags::IN),
        Err(_) => false,
    }
}

/// Whether a receive would not wait.
pub(crate) fn has_input(socket: &OwnedFd) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&at_once)), Ok(1..))
}

/// Whether the peer has closed its end, as far as is known here.
pub(crate) fn has_hung_up(socket: &OwnedFd) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::RDHUP)];
    let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    matches!(poll(&mut fds, Some(&at_once)), Ok(1..)) && fds[0].revents().intersects(gone)
}
