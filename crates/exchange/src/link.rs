//! Connections between processes. Each is used in one direction: whoever has something to say makes one.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use hyperslab::Slab;
use matching::Handle;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::memory::Walk;
use crate::wire::{Contact, Frame, Hello, Parcel, Source};

/// Something that waits to be sent.
#[derive(Debug)]
pub(crate) enum Out {
    Bytes(Vec<u8>),
    /// Values, gathered when there is room for them; from the element `done` on.
    Piece {
        handle: Handle,
        part: Slab,
        done: u64,
    },
}

/// To another process.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: String,
    pub(crate) fd: Option<OwnedFd>,
    pub(crate) out: VecDeque<Out>,
    /// Of the first bytes that wait.
    pub(crate) sent: usize,
    /// The process cannot read our memory.
    pub(crate) denied: bool,
    pub(crate) broken: bool,
}

/// Messages that are sent together.
const TOGETHER: usize = 1 << 16;

impl Link {
    pub(crate) fn new(contact: &Contact, hello: Hello) -> Self {
        let mut one = Self {
            socket: contact.socket.clone(),
            fd: None,
            out: VecDeque::new(),
            sent: 0,
            denied: false,
            broken: false,
        };
        one.push(&Frame::Hello(hello));
        one
    }

    pub(crate) fn push(&mut self, frame: &Frame) {
        match self.out.back_mut() {
            Some(Out::Bytes(bytes)) if bytes.len() < TOGETHER => frame.encode(bytes),
            _ => {
                let mut bytes = Vec::new();
                frame.encode(&mut bytes);
                self.out.push_back(Out::Bytes(bytes));
            }
        }
    }

    /// Dials if there is no connection yet; an error if there cannot be one. False: later.
    pub(crate) fn dial(&mut self) -> io::Result<bool> {
        if self.fd.is_some() {
            return Ok(true);
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let address = SocketAddrUnix::new(self.socket.as_str())?;
        match rustix::net::connect(&fd, &address) {
            Ok(()) => {}
            // Many dial at once.
            Err(rustix::io::Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.fd = Some(fd);
        Ok(true)
    }

    /// Sends what can be sent; `gather` appends values of a piece, and answers how far it is and whether that is all.
    pub(crate) fn send(
        &mut self,
        mut gather: impl FnMut(Handle, &Slab, u64, &mut Vec<u8>) -> (u64, bool),
    ) -> io::Result<()> {
        if !self.dial()? {
            return Ok(());
        }
        let Some(fd) = &self.fd else { return Ok(()) };
        while let Some(front) = self.out.front_mut() {
            match front {
                Out::Bytes(bytes) => {
                    match rustix::net::send(
                        fd,
                        &bytes[self.sent..],
                        rustix::net::SendFlags::NOSIGNAL,
                    ) {
                        Ok(length) => self.sent += length,
                        Err(rustix::io::Errno::INTR) => {}
                        Err(rustix::io::Errno::AGAIN) => return Ok(()),
                        Err(error) => return Err(error.into()),
                    }
                    if self.sent == bytes.len() {
                        self.sent = 0;
                        self.out.pop_front();
                    }
                }
                Out::Piece { handle, part, done } => {
                    let mut bytes = Vec::new();
                    let (now, last) = gather(*handle, part, *done, &mut bytes);
                    *done = now;
                    if last {
                        self.out.pop_front();
                    }
                    self.out.push_front(Out::Bytes(bytes));
                }
            }
        }
        Ok(())
    }

    /// Whether the other end is gone: nothing is ever sent back.
    pub(crate) fn is_cut(&self) -> bool {
        let Some(fd) = &self.fd else { return false };
        let mut byte = [0u8; 1];
        let flags = rustix::net::RecvFlags::DONTWAIT;
        !matches!(
            rustix::net::recv(fd.as_fd(), &mut byte, flags),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR)
        )
    }
}

/// From another process.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) fd: OwnedFd,
    pub(crate) peer: Option<Hello>,
    /// Whether its memory can be read, once that was tried.
    pub(crate) readable: Option<bool>,
    pub(crate) buffer: Vec<u8>,
    pub(crate) used: usize,
    pub(crate) work: Work,
    /// It has taken leave.
    pub(crate) bye: bool,
    pub(crate) ended: bool,
}

/// What has to be done before the next frame.
#[derive(Debug)]
pub(crate) enum Work {
    None,
    /// Values that follow: elements that are there, bytes that are not.
    Values {
        parcel: Parcel,
        done: u64,
        left: u64,
    },
    /// Values that are fetched.
    Pull {
        number: u64,
        parcel: Parcel,
        address: u64,
        walk: Walk,
        done: u64,
    },
}

/// Bytes that are received at once.
const RECEIVED: usize = 1 << 18;

impl Inbound {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            peer: None,
            readable: None,
            buffer: Vec::new(),
            used: 0,
            work: Work::None,
            bye: false,
            ended: false,
        }
    }

    /// What was received and not looked at.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    /// Receives once.
    pub(crate) fn receive(&mut self) {
        self.buffer.drain(..self.used);
        self.used = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + RECEIVED, 0);
        let flags = rustix::net::RecvFlags::DONTWAIT;
        let received = match rustix::net::recv(&self.fd, &mut self.buffer[before..], flags) {
            Ok((0, _)) => {
                self.ended = true;
                0
            }
            Ok((length, _)) => length,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => 0,
            Err(_) => {
                self.ended = true;
                0
            }
        };
        self.buffer.truncate(before + received);
    }

    /// Takes the next frame, if all of it is there.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        match Frame::decode(self.bytes()) {
            Ok(Some((frame, length))) => {
                self.used += length;
                Some(frame)
            }
            Ok(None) => None,
            // Another version, or no Sluice: nothing that it says can be trusted.
            Err(_) => {
                self.ended = true;
                None
            }
        }
    }

    /// Begins to fetch; false if what is told cannot be.
    pub(crate) fn pull(&mut self, number: u64, parcel: Parcel, source: &Source) -> bool {
        let elements = u64::try_from(parcel.part.elements()).ok();
        let walk = elements.and_then(|elements| Walk::told(source, elements));
        let Some(walk) = walk else { return false };
        self.work = Work::Pull { number, parcel, address: source.address, walk, done: 0 };
        true
    }
}
