//! The receive buffer of a connection.

use super::channel::Channel;
use super::socket::{Broken, Socket};

/// Bytes of the buffer. It need not hold a whole large write, which reaches the store in pieces;
/// it should stay in the processor's cache between receiving and writing.
pub(crate) const INPUT_BYTES: usize = 576 << 10;

/// Bytes received and not yet used.
pub(crate) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; INPUT_BYTES], start: 0, end: 0 }
    }

    /// A buffer that can receive nothing.
    pub(crate) fn empty() -> Self {
        Self { buffer: Vec::new(), start: 0, end: 0 }
    }

    /// What is there.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start >= self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Takes what `channel` holds; the buffer must be empty and large enough for it.
    pub(crate) fn fill_from(&mut self, channel: &mut Channel) -> Result<(), Broken> {
        while channel.held() > 0 {
            self.end += channel.read(&mut self.buffer[self.end..])?;
        }
        Ok(())
    }

    /// Receives until at least `wanted` bytes are there, but not more than `most`. At most
    /// [`INPUT_BYTES`] can be wanted. For `expecting` see [`Socket::receive`].
    pub(crate) fn fill(
        &mut self,
        socket: &Socket,
        wanted: usize,
        most: usize,
        expecting: impl Fn() -> bool,
    ) -> Result<(), Broken> {
        if self.len() >= wanted {
            return Ok(());
        }
        // Little is left whenever this happens: the start of one frame, or less than a page.
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let limit = most.min(self.buffer.len());
        while self.end < wanted {
            match socket.receive(&mut self.buffer[self.end..limit], &expecting)? {
                0 => return Err(Broken),
                count => self.end += count,
            }
        }
        Ok(())
    }
}
