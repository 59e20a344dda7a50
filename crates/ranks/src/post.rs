//! Sending and receiving messages among ranks, without ever waiting.

use std::collections::VecDeque;

use mpi::{Comm, Mpi, Receiving, Sending};

use crate::Result;
use crate::message::{HEADER_BYTES, Header, PAYLOAD_BYTES_MAX};

/// The tag of all messages in the private communicator.
const TAG: i32 = 9;
/// Messages that are being received at a time.
const RECEIVING_MAX: usize = 16;
/// Large buffers that are kept for the next message.
const KEPT_BUFFERS_MAX: usize = 32;

/// A message that has arrived: `bytes[..HEADER_BYTES]` is its header.
pub(crate) struct Arrived {
    pub(crate) from: u32,
    pub(crate) header: Header,
    pub(crate) buffer: Vec<u8>,
    /// Header included.
    pub(crate) length: usize,
}

/// What carries messages: MPI, or in tests a queue.
pub(crate) trait Post {
    /// Sends a message whose payload stands in `buffer` behind room for the header.
    fn send(&mut self, to: u32, header: Header, buffer: Vec<u8>, payload: usize) -> Result<()>;

    /// Carries on what is under way. Whether anything happened.
    fn turn(&mut self, arrived: &mut Vec<Arrived>) -> Result<bool>;

    /// Whether all that was sent has left.
    fn is_idle(&self) -> bool;

    /// A buffer with room for a header and the longest payload.
    fn buffer(&mut self) -> Vec<u8> {
        vec![0; HEADER_BYTES + PAYLOAD_BYTES_MAX]
    }

    /// Gives back a buffer that is not needed any more.
    fn recycle(&mut self, buffer: Vec<u8>) {
        drop(buffer);
    }

    /// Sends a message without a payload.
    fn say(&mut self, to: u32, header: Header) -> Result<()> {
        self.send(to, header, vec![0; HEADER_BYTES], 0)
    }
}

/// By MPI messages of a communicator in which nothing else travels.
pub(crate) struct MpiPost {
    mpi: &'static Mpi,
    comm: Comm,
    sending: VecDeque<Sending>,
    receiving: VecDeque<Receiving>,
    kept: Vec<Vec<u8>>,
}

impl MpiPost {
    pub(crate) fn new(mpi: &'static Mpi, comm: Comm) -> Self {
        Self { mpi, comm, sending: VecDeque::new(), receiving: VecDeque::new(), kept: Vec::new() }
    }
}

impl Post for MpiPost {
    fn send(&mut self, to: u32, header: Header, mut buffer: Vec<u8>, payload: usize) -> Result<()> {
        buffer[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        self.sending.push_back(self.mpi.send(
            self.comm,
            to,
            TAG,
            buffer,
            HEADER_BYTES + payload,
        )?);
        Ok(())
    }

    fn turn(&mut self, arrived: &mut Vec<Arrived>) -> Result<bool> {
        let mut happened = false;
        for _ in 0..self.sending.len() {
            let Some(mut sending) = self.sending.pop_front() else { break };
            if sending.is_done(self.mpi)? {
                self.recycle(sending.into_buffer());
                happened = true;
            } else {
                self.sending.push_back(sending);
            }
        }
        while self.receiving.len() < RECEIVING_MAX {
            let Some(waiting) = self.mpi.probe(self.comm, TAG)? else { break };
            let buffer = match waiting.bytes {
                0..=HEADER_BYTES => vec![0; HEADER_BYTES],
                _ => self.buffer(),
            };
            self.receiving.push_back(self.mpi.receive(self.comm, TAG, waiting, buffer)?);
            happened = true;
        }
        // In the order in which they were found, which for one sender is the order of sending.
        while let Some(first) = self.receiving.front_mut() {
            if !first.is_done(self.mpi)? {
                break;
            }
            let Some(message) = self.receiving.pop_front() else { break };
            let from = message.from();
            let (buffer, length) = message.into_message();
            // What has no header of ours is nobody's.
            if let Some(header) = Header::parse(&buffer[..length]) {
                arrived.push(Arrived { from, header, buffer, length });
            }
            happened = true;
        }
        Ok(happened)
    }

    fn is_idle(&self) -> bool {
        self.sending.is_empty()
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.kept.pop().unwrap_or_else(|| vec![0; HEADER_BYTES + PAYLOAD_BYTES_MAX])
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if buffer.len() > HEADER_BYTES && self.kept.len() < KEPT_BUFFERS_MAX {
            self.kept.push(buffer);
        }
    }
}
