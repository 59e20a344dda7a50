//! One connection's end at this rank: a socket, and what is on its way to it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::frames::Frames;
use crate::message::HEADER_BYTES;

/// How many bytes may be under way in one direction of a stream without having been delivered.
pub(crate) const WINDOW_BYTES: usize = 4 << 20;
/// When so many have been delivered, the sender is told.
const CREDIT_BYTES: usize = WINDOW_BYTES / 4;

/// Descriptors of ours stay above this number where the limit allows it: programs expect low ones for
/// their own files.
const DESCRIPTORS_FROM: i32 = 400;

/// What came of reading a stream's socket.
pub(crate) enum Read {
    /// So many bytes stand in the buffer behind room for a header.
    Bytes(usize),
    /// None now.
    Nothing,
    /// None any more.
    End,
}

/// One end of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: OwnedFd,
    /// Bytes that may be sent to the other end.
    credit: usize,
    /// Messages for the socket, and how much of the first has been written.
    incoming: VecDeque<(Vec<u8>, usize)>,
    written: usize,
    /// Delivered since the other end was last told.
    delivered: usize,
    sent: Frames,
    received: Frames,
    /// The socket takes nothing any more.
    is_deaf: bool,
    /// The socket gives nothing any more, and the other end has been told.
    pub(crate) is_read: bool,
    /// The other end gives nothing any more.
    is_closed: bool,
}

impl Stream {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            credit: WINDOW_BYTES,
            incoming: VecDeque::new(),
            written: 0,
            delivered: 0,
            sent: Frames::default(),
            received: Frames::default(),
            is_deaf: false,
            is_read: false,
            is_closed: false,
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether bytes of the socket may be sent now.
    pub(crate) fn wants_input(&self) -> bool {
        !self.is_read && self.credit > 0
    }

    /// Whether bytes wait for the socket.
    pub(crate) fn wants_output(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Whether nothing will happen to it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_read && self.is_closed && self.incoming.is_empty()
    }

    /// Reads what the socket has, as far as it may be sent, into a message's buffer.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Read {
        let room = &mut buffer[HEADER_BYTES..];
        let most = room.len().min(self.credit);
        match recv(&self.socket, &mut room[..most], RecvFlags::DONTWAIT) {
            Ok((0, _)) => Read::End,
            Ok((count, _)) => {
                self.credit -= count;
                self.sent.pass(&room[..count]);
                Read::Bytes(count)
            }
            Err(Errno::AGAIN | Errno::INTR) => Read::Nothing,
            Err(_) => Read::End,
        }
    }

    /// The other end may be sent so many bytes more.
    pub(crate) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes as usize).min(WINDOW_BYTES);
    }

    /// A message of `length` bytes, header included, for the socket.
    pub(crate) fn take_in(&mut self, buffer: Vec<u8>, length: usize) {
        self.received.pass(&buffer[HEADER_BYTES..length]);
        self.incoming.push_back((buffer, length));
    }

    /// Whether the other end has something to say: it has not answered all messages, is to grant more
    /// bytes, or is to close.
    pub(crate) fn is_waiting(&self) -> bool {
        self.sent.begun() > self.received.complete() || self.credit == 0 || self.is_read
    }

    /// The other end will give no more.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.finish();
    }

    /// Writes what the socket takes; buffers that are done with go to `done`.
    pub(crate) fn write(&mut self, done: &mut Vec<Vec<u8>>) {
        while let Some((buffer, length)) = self.incoming.front() {
            let at = HEADER_BYTES + self.written;
            if !self.is_deaf && at < *length {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                match send(&self.socket, &buffer[at..*length], flags) {
                    Ok(count) => {
                        self.written += count;
                        continue;
                    }
                    Err(Errno::INTR) => continue,
                    Err(Errno::AGAIN) => return,
                    Err(_) => self.is_deaf = true,
                }
            }
            self.delivered += length - HEADER_BYTES;
            self.written = 0;
            done.extend(self.incoming.pop_front().map(|(buffer, _)| buffer));
        }
        self.finish();
    }

    /// How many bytes the other end should be told of, if it is time for that.
    pub(crate) fn credit_due(&mut self) -> Option<u32> {
        if self.delivered < CREDIT_BYTES || self.is_closed {
            return None;
        }
        u32::try_from(std::mem::take(&mut self.delivered)).ok()
    }

    /// Lets the socket's user see the end once everything has been delivered.
    fn finish(&mut self) {
        if self.is_closed && self.incoming.is_empty() {
            self.is_deaf = true;
            // A user that is gone already need not see it.
            let _ = shutdown(&self.socket, Shutdown::Write);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A child of the program may have inherited the descriptor: closing alone ends nothing.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

/// Gives a descriptor a high number, if one is free.
pub(crate) fn move_away(fd: OwnedFd) -> OwnedFd {
    rustix::io::fcntl_dupfd_cloexec(&fd, DESCRIPTORS_FROM).unwrap_or(fd)
}
