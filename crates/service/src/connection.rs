//! One client on a socket: the thread that receives, and what it does itself.

mod channel;
mod hand;
mod input;
mod pieces;
mod pool;
mod socket;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use p9::frame::{HEADER_LEN, Header, WRITE_REQUEST_OVERHEAD};
use p9::{Errno, Fid, QidType, Reply, Request, Tag};

use crate::order::Claims;
use crate::session::{Entry, Session, Verdict, guarded};
use channel::Channel;
use input::{INPUT_BYTES, Input};
pub(crate) use pool::{Bounds, Pool};
use pool::{Flushed, Job, Work};
use socket::bytes_to_send;
pub(crate) use socket::{Broken, Socket};

/// Answers gather up to so many bytes before they leave, as long as requests are at hand.
const GATHER_BYTES: usize = 64 << 10;

/// From here on the data of a read leave by sendfile(2). Below, one copy is cheaper than the
/// second system call and the page references.
const SENDFILE_BYTES: usize = 32 << 10;

/// `Twrite` and frames larger than this reach the store piece by piece.
const STREAM_BYTES: usize = 64 << 10;

/// Message type of `Twrite`.
const TWRITE: u8 = 118;

/// One client's connection. The pool's workers share it with the receiving thread.
pub(crate) struct Connection {
    socket: Socket,
    session: Session,
    requests: Arc<AtomicU64>,
}

impl Connection {
    pub(crate) fn new(socket: Socket, session: Session, requests: Arc<AtomicU64>) -> Self {
        Self { socket, session, requests }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }
}

impl Work for Connection {
    fn work(&self, job: &Job, frame: &mut Vec<u8>) -> Verdict {
        let size = (HEADER_LEN + job.body.len()) as u32;
        let header = Header { size, kind: job.kind, tag: job.tag };
        self.session.answer(&header, &job.body, frame)
    }

    fn send(&self, frame: &[u8], verdict: Verdict) {
        if self.socket.send(frame).is_err() || verdict == Verdict::Close {
            self.socket.shut_down();
        }
    }

    fn flushed(&self, flush: Tag) {
        let mut frame = Vec::with_capacity(HEADER_LEN);
        Reply::Flush {}.encode(flush, &mut frame);
        self.send(&frame, Verdict::Continue);
    }
}

/// Serves a connection until it ends, for whatever reason.
pub(crate) fn serve(pool: &Arc<Pool<Connection>>) {
    let mut receiver = Receiver {
        pool,
        input: Input::new(),
        out: Vec::with_capacity(GATHER_BYTES / 4),
        body: Vec::new(),
        piece: Vec::new(),
        channel: None,
        streams: false,
    };
    // Broken is how every connection ends.
    while receiver.step().is_ok() {}
    let _ = receiver.flush_out();
    pool.close();
    pool.worker().socket.shut_down();
    pool.worker().session.forget();
}

/// The receiving thread's own state.
struct Receiver<'a> {
    pool: &'a Arc<Pool<Connection>>,
    input: Input,
    /// Answers that have not left yet: whole frames.
    out: Vec<u8>,
    /// Bodies too large for the input buffer.
    body: Vec<u8>,
    /// What of a large read goes out next.
    piece: Vec<u8>,
    /// Made for the first data that go through it.
    channel: Option<Channel>,
    /// The last request was a large write, and so may be the next one: its data must not be
    /// received into the buffer along with its head.
    streams: bool,
}

impl Receiver<'_> {
    fn socket(&self) -> &Socket {
        &self.pool.worker().socket
    }

    fn session(&self) -> &Session {
        &self.pool.worker().session
    }

    /// Does the next request.
    fn step(&mut self) -> Result<(), Broken> {
        self.want(HEADER_LEN)?;
        let Some(bytes) = self.input.bytes().first_chunk::<HEADER_LEN>() else {
            return Err(Broken);
        };
        let header = match Header::parse(bytes, self.session().msize()) {
            Ok(header) => header,
            Err(_) => {
                let tag = Tag(u16::from_le_bytes([bytes[5], bytes[6]]));
                return self.give_up(tag);
            }
        };
        self.pool.worker().requests.fetch_add(1, Ordering::Relaxed);
        let size = header.size as usize;
        if header.kind == TWRITE && size > STREAM_BYTES {
            self.large_write(&header)?;
        } else if size > INPUT_BYTES {
            // No request but a write is ever so long: names are at most 255 bytes.
            self.input.consume(HEADER_LEN);
            self.drain(header.body_len())?;
            self.pool.worker().session.refuse(header.tag, Errno::E2BIG.into(), &mut self.out);
        } else {
            self.streams = false;
            self.want(size)?;
            let input = std::mem::replace(&mut self.input, Input::empty());
            let done = self.request(&header, Body::Borrowed(&input.bytes()[HEADER_LEN..size]));
            self.input = input;
            self.input.consume(size);
            done?;
        }
        if self.out.len() >= GATHER_BYTES { self.flush_out() } else { Ok(()) }
    }

    /// Sees that `count` bytes are at hand. Answers leave before it waits.
    fn want(&mut self, count: usize) -> Result<(), Broken> {
        if self.input.len() < count {
            self.flush_out()?;
            let expecting = || !self.pool.is_empty();
            let most = if self.streams { count.max(WRITE_REQUEST_OVERHEAD) } else { INPUT_BYTES };
            self.input.fill(&self.pool.worker().socket, count, most, expecting)?;
        }
        Ok(())
    }

    /// Throws away `count` bytes.
    fn drain(&mut self, count: usize) -> Result<(), Broken> {
        let mut left = count;
        while left > 0 {
            self.want(1)?;
            let part = self.input.len().min(left);
            self.input.consume(part);
            left -= part;
        }
        Ok(())
    }

    fn flush_out(&mut self) -> Result<(), Broken> {
        if !self.out.is_empty() {
            let sent = self.pool.worker().socket.send(&self.out);
            self.out.clear();
            sent?;
        }
        Ok(())
    }

    /// Answers what cannot be understood, and ends the connection.
    fn give_up(&mut self, tag: Tag) -> Result<(), Broken> {
        self.pool.worker().session.refuse(tag, Errno::EPROTO.into(), &mut self.out);
        self.flush_out()?;
        Err(Broken)
    }

    /// Does one request, or has the pool do it.
    fn request(&mut self, header: &Header, body: Body<'_>) -> Result<(), Broken> {
        let session = &self.pool.worker().session;
        let tag = header.tag;
        let Ok(request) = Request::decode(header.kind, body.bytes()) else {
            return match session.answer(header, body.bytes(), &mut self.out) {
                Verdict::Continue => Ok(()),
                Verdict::Close => {
                    self.flush_out()?;
                    Err(Broken)
                }
            };
        };
        if let Request::Flush { old_tag } = request {
            if self.pool.flush(old_tag, tag) == Flushed::Now {
                Reply::Flush {}.encode(tag, &mut self.out);
            }
            return Ok(());
        }
        if let Request::Version { .. } = request {
            self.flush_out()?;
            self.pool.drain();
        }
        let waits = session.may_wait(&request);
        if waits || !self.pool.is_empty() {
            if self.pool.has_tag(tag) {
                session.refuse(tag, Errno::EINVAL.into(), &mut self.out);
                return Ok(());
            }
            let claims = Claims::of(&request, session);
            let must_wait = self.pool.must_wait(&claims);
            if let Request::Read { fid, offset, count } = request
                && waits
                && !must_wait
                && self.read_at_hand(tag, fid, offset, count)?
            {
                return Ok(());
            }
            if waits || must_wait {
                self.flush_out()?;
                let job = Job { kind: header.kind, tag, body: body.into_owned(), claims };
                return match self.pool.submit(job) {
                    Ok(()) => Ok(()),
                    // Without a single thread there is nothing pending either.
                    Err(job) => {
                        let connection = self.pool.worker();
                        let mut frame = Vec::new();
                        let verdict = connection.work(&job, &mut frame);
                        connection.send(&frame, verdict);
                        Ok(())
                    }
                };
            }
        }
        if let Request::Read { fid, offset, count } = request
            && (self.read_by_kernel(tag, fid, offset, count)?
                || self.read_in_pieces(tag, fid, offset, count)?)
        {
            return Ok(());
        }
        match session.answer_request(tag, &request, &mut self.out) {
            Verdict::Continue => Ok(()),
            Verdict::Close => {
                self.flush_out()?;
                Err(Broken)
            }
        }
    }

    /// Answers a large read by sendfile(2), if the store lends a descriptor. False: read it the
    /// ordinary way.
    fn read_by_kernel(
        &mut self,
        tag: Tag,
        fid: Fid,
        offset: u64,
        count: u32,
    ) -> Result<bool, Broken> {
        let session = &self.pool.worker().session;
        let room = session.data_room(count);
        if room < SENDFILE_BYTES {
            return Ok(false);
        }
        let Ok(entry) = session.entry(fid) else { return Ok(false) };
        let Some((file, count)) = lent(&entry, offset, room) else { return Ok(false) };
        socket::read_head(tag, count, &mut self.out);
        let sent = self.pool.worker().socket.send_file(&self.out, file, offset, count);
        self.out.clear();
        sent.map(|()| true)
    }
}

/// A descriptor of an open file and how many bytes are to be had there.
fn lent(entry: &Entry, offset: u64, room: usize) -> Option<(std::os::fd::BorrowedFd<'_>, usize)> {
    let outcome = guarded(|| {
        let node = entry.opened()?.readable()?;
        let directory = entry.node.qid().kind.contains(QidType::DIR);
        Ok(if directory { None } else { node.as_fd() })
    });
    let file = outcome.ok().flatten()?;
    let count = bytes_to_send(file, offset, room)?;
    (count >= SENDFILE_BYTES).then_some((file, count))
}

/// The body of a request: within the input buffer, or on its own.
enum Body<'a> {
    Borrowed(&'a [u8]),
    Owned(&'a mut Vec<u8>),
}

impl Body<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Body::Borrowed(bytes) => bytes,
            Body::Owned(bytes) => bytes,
        }
    }

    fn into_owned(self) -> Vec<u8> {
        match self {
            Body::Borrowed(bytes) => bytes.to_vec(),
            Body::Owned(bytes) => std::mem::take(bytes),
        }
    }
}
