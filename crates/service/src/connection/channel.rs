//! A pipe between the socket and a file, through which the kernel moves the data of large writes
//! without a copy in this process (splice(2)).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno as Os;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::socket::Broken;

/// Asked for, in bytes, as the kernel counts them: it has room for this many pages (`F_SETPIPE_SZ`,
/// fcntl(2)), and data from sockets come in pieces of one to eight pages. The default is a fourth.
const CAPACITY: usize = 256 << 10;

/// The pipe, and what is in it.
pub(super) struct Channel {
    from: OwnedFd,
    to: OwnedFd,
    held: usize,
}

impl Channel {
    /// `None` when there are no descriptors left.
    pub(super) fn new() -> Option<Self> {
        let (from, to) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        // Best effort: there is a limit for each user, and smaller pipes do it too.
        let _ = fcntl_setpipe_size(&to, CAPACITY);
        Some(Self { from, to, held: 0 })
    }

    /// Bytes in the pipe.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Whether something can be taken in. How many bytes a pipe holds depends on how they arrived,
    /// so only the kernel knows; taking in from a full pipe would wait for ever.
    pub(super) fn has_room(&self) -> bool {
        if self.held == 0 {
            return true;
        }
        let mut fds = [PollFd::from_borrowed_fd(self.to.as_fd(), PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&at_once)), Ok(1..))
    }

    /// Takes in up to `most` bytes, waiting for the first. There must be room.
    pub(super) fn take(&mut self, socket: BorrowedFd<'_>, most: usize) -> Result<(), Broken> {
        loop {
            match splice(socket, None, &self.to, None, most, SpliceFlags::MOVE) {
                Ok(0) => return Err(Broken),
                Ok(count) => {
                    self.held += count;
                    return Ok(());
                }
                Err(Os::INTR) => {}
                Err(_) => return Err(Broken),
            }
        }
    }

    /// Writes up to `count` of the bytes held to `file` and returns how many. 0: not in this way.
    pub(super) fn give(&mut self, file: BorrowedFd<'_>, offset: u64, count: usize) -> usize {
        loop {
            let mut at = offset;
            match splice(&self.from, None, file, Some(&mut at), count, SpliceFlags::MOVE) {
                Ok(given) => {
                    self.held -= given.min(self.held);
                    return given;
                }
                Err(Os::INTR) => {}
                Err(_) => return 0,
            }
        }
    }

    /// Reads some of the bytes held into `buffer`.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Broken> {
        loop {
            match rustix::io::read(&self.from, &mut *buffer) {
                Ok(0) => return Err(Broken),
                Ok(count) => {
                    self.held -= count.min(self.held);
                    return Ok(count);
                }
                Err(Os::INTR) => {}
                Err(_) => return Err(Broken),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_full_pipe_says_so_and_gives_everything_back() {
        let (mut ours, theirs) = UnixStream::pair().expect("a socket pair");
        let mut channel = Channel::new().expect("a pipe");
        let mut sent = Vec::new();
        // One byte each: they fill the pipe by their number.
        while channel.has_room() {
            let byte = [sent.len() as u8];
            ours.write_all(&byte).expect("send");
            sent.extend(byte);
            channel.take(theirs.as_fd(), 1).expect("take");
        }
        assert!(sent.len() < 4096 && channel.held() == sent.len());
        let file = tempfile::tempfile().expect("a file");
        assert_eq!(channel.give(file.as_fd(), 10, 3), 3);
        // Not open for writing: the bytes stay.
        let null = std::fs::File::open("/dev/null").expect("open");
        assert_eq!(channel.give(null.as_fd(), 0, 3), 0);
        let mut rest = vec![0; 8192];
        let mut filled = 0;
        while channel.held() > 0 {
            filled += channel.read(&mut rest[filled..]).expect("read");
        }
        assert_eq!(&rest[..filled], &sent[3..]);
        let mut written = [0; 3];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut written, 10).expect("read");
        assert_eq!(written, sent[..3]);
        assert!(channel.has_room());
    }
}
