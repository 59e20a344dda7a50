//! Carrying the bytes of sockets as messages, on both sides.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_send_buffer_size, socket_peercred};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen,
    shutdown, socket_with, socketpair,
};

use crate::message::{HEADER_BYTES, Header, Kind, PAYLOAD_BYTES_MAX};
use crate::pace::Pace;
use crate::post::{Arrived, Post};
use crate::stream::{Read, Stream, move_away};
use crate::{Control, Error, Member, Result, socket_name};

/// A service of which nothing was heard for so long is asked whether it is there …
const PING_AFTER: Duration = Duration::from_secs(3);
/// … and given up after so many questions.
const PINGS_MAX: u32 = 7;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

/// How a client left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parting {
    /// All services have said farewell: the job can be finalized.
    Orderly,
    /// A service did not answer any more: MPI_Finalize would wait for it for ever.
    Abandoned,
}

/// What makes a rank a service.
pub(crate) struct Services<'a> {
    pub(crate) adopt: &'a mut dyn FnMut(OwnedFd) -> bool,
    pub(crate) clients: BTreeSet<u32>,
    /// Those that have not said goodbye.
    pub(crate) remaining: BTreeSet<u32>,
}

/// What makes a rank a client.
#[derive(Debug)]
pub(crate) struct Clients {
    doors: Vec<Door>,
    services: BTreeMap<u32, Service>,
}

/// A socket on which programs reach a service.
#[derive(Debug)]
struct Door {
    service: u32,
    socket: OwnedFd,
}

impl Drop for Door {
    fn drop(&mut self) {
        // Also where a child has inherited it: connecting is refused from now on.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

/// What a client knows of a service.
#[derive(Debug)]
struct Service {
    heard: Instant,
    /// Since something was heard.
    pings: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Serving,
    /// It takes no connections any more.
    Ended,
    /// It has said farewell.
    Done,
    /// It does not answer.
    Lost,
}

impl Service {
    /// From now on its silence counts.
    fn listen(&mut self) {
        (self.heard, self.pings) = (Instant::now(), 0);
    }
}

impl Clients {
    /// Binds the sockets of all services.
    pub(crate) fn listen(sockets: &str, services: &[Member]) -> Result<Self> {
        let mut doors = Vec::new();
        for member in services {
            for name in [member.name.to_string(), member.rank.to_string()] {
                let socket = door(&socket_name(sockets, &name))?;
                doors.push(Door { service: member.rank, socket });
            }
        }
        let new = || Service { heard: Instant::now(), pings: 0, state: State::Serving };
        let services = services.iter().map(|member| (member.rank, new())).collect();
        Ok(Self { doors, services })
    }
}

fn door(name: &[u8]) -> Result<OwnedFd> {
    let failed = || Error::system("make a socket for this rank's programs");
    let address = SocketAddrUnix::new_abstract_name(name).map_err(failed())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(failed())?;
    let socket = move_away(socket);
    match bind(&socket, &address) {
        Err(rustix::io::Errno::ADDRINUSE) => return Err(Error::SocketsTaken),
        other => other.map_err(failed())?,
    }
    listen(&socket, BACKLOG).map_err(failed())?;
    Ok(socket)
}

/// The other rank, and the stream's number there.
type Key = (u32, u32);

/// Carries messages for one rank.
pub(crate) struct Relay<'a, P> {
    post: P,
    control: &'a Control,
    streams: BTreeMap<Key, Stream>,
    pace: Pace,
    next_stream: u32,
    done: Vec<Vec<u8>>,
}

impl<'a, P: Post> Relay<'a, P> {
    pub(crate) fn new(post: P, control: &'a Control) -> Self {
        let (streams, done) = (BTreeMap::new(), Vec::new());
        Self { post, control, streams, pace: Pace::new(), next_stream: 1, done }
    }

    /// The service's side.
    pub(crate) fn serve(mut self, mut side: Services<'_>) -> Result<()> {
        let mut has_ended = false;
        let mut arrived = Vec::new();
        while !side.remaining.is_empty() || !self.post.is_idle() {
            let mut happened = self.post.turn(&mut arrived)?;
            for message in arrived.drain(..) {
                self.serve_message(&mut side, has_ended, message)?;
            }
            if self.control.is_ending() && !has_ended {
                has_ended = true;
                self.streams.clear();
                for client in &side.remaining {
                    self.post.say(*client, Header::new(Kind::Ended))?;
                }
                happened = true;
            }
            let pause = self.pace.pause();
            self.rest(happened, Some(&pause), &[])?;
        }
        Ok(())
    }

    fn serve_message(
        &mut self,
        side: &mut Services<'_>,
        has_ended: bool,
        message: Arrived,
    ) -> Result<()> {
        let (from, header) = (message.from, message.header);
        match header.kind {
            Kind::Open => {
                let stream = if has_ended { None } else { adopted(side.adopt) };
                match stream {
                    Some(stream) => drop(self.streams.insert((from, header.stream), stream)),
                    None => self.post.say(from, Header::of(Kind::Close, header.stream))?,
                }
            }
            Kind::Ping => self.post.say(from, Header::new(Kind::Pong))?,
            Kind::Goodbye => {
                self.streams.retain(|(peer, _), _| *peer != from);
                side.remaining.remove(&from);
                if side.remaining.is_empty() {
                    for client in &side.clients {
                        self.post.say(*client, Header::new(Kind::Farewell))?;
                    }
                }
            }
            _ => return self.stream_message(message),
        }
        self.post.recycle(message.buffer);
        Ok(())
    }

    /// The client's side.
    pub(crate) fn attend(mut self, mut side: Clients) -> Result<Parting> {
        let mut arrived = Vec::new();
        let mut is_leaving = false;
        loop {
            let happened = self.post.turn(&mut arrived)?;
            for message in arrived.drain(..) {
                self.attend_message(&mut side, message)?;
            }
            self.look_after(&mut side)?;
            if self.control.is_ending() && !is_leaving {
                is_leaving = true;
                side.doors.clear();
                self.streams.clear();
                for (service, _) in
                    side.services.iter().filter(|(_, known)| known.state != State::Lost)
                {
                    self.post.say(*service, Header::new(Kind::Goodbye))?;
                }
            }
            let mut states = side.services.values().map(|service| service.state);
            if is_leaving && states.all(|state| matches!(state, State::Done | State::Lost)) {
                let lost = side.services.values().any(|service| service.state == State::Lost);
                match lost {
                    true => return Ok(Parting::Abandoned),
                    false if self.post.is_idle() => return Ok(Parting::Orderly),
                    false => {}
                }
            }
            // What services say unasked can wait until they are asked again.
            let is_waiting =
                is_leaving || !self.post.is_idle() || self.streams.values().any(Stream::is_waiting);
            let pause = is_waiting.then(|| self.pace.pause());
            let callers = self.rest(happened, pause.as_ref(), &side.doors)?;
            if !is_waiting {
                // Nobody has listened meanwhile.
                side.services.values_mut().for_each(Service::listen);
            }
            for (service, socket) in callers {
                let id = self.next_stream;
                self.next_stream = self.next_stream.wrapping_add(1).max(1);
                self.post.say(service, Header::of(Kind::Open, id))?;
                self.streams.insert((service, id), Stream::new(socket));
            }
        }
    }

    fn attend_message(&mut self, side: &mut Clients, message: Arrived) -> Result<()> {
        if let Some(service) = side.services.get_mut(&message.from) {
            service.listen();
            match message.header.kind {
                Kind::Ended => {
                    service.state = State::Ended;
                    self.leave(side, message.from);
                }
                Kind::Farewell => service.state = State::Done,
                _ => {}
            }
        }
        self.stream_message(message)
    }

    /// Asks services that are silent whether they are there, and gives up those that are not.
    fn look_after(&mut self, side: &mut Clients) -> Result<()> {
        let mut lost = None;
        for (rank, service) in &mut side.services {
            let is_silent = service.heard.elapsed() > PING_AFTER * (service.pings + 1);
            if !is_silent || matches!(service.state, State::Done | State::Lost) {
                continue;
            }
            if service.pings < PINGS_MAX {
                service.pings += 1;
                self.post.say(*rank, Header::new(Kind::Ping))?;
            } else {
                service.state = State::Lost;
                lost = Some(*rank);
            }
        }
        if let Some(rank) = lost {
            self.leave(side, rank);
        }
        Ok(())
    }

    /// Ends what leads to a service.
    fn leave(&mut self, side: &mut Clients, service: u32) {
        side.doors.retain(|door| door.service != service);
        self.streams.retain(|(peer, _), _| *peer != service);
    }

    /// What concerns a stream. One that is not known has been ended here meanwhile.
    fn stream_message(&mut self, message: Arrived) -> Result<()> {
        let (from, header) = (message.from, message.header);
        let key = (from, header.stream);
        let Some(stream) = self.streams.get_mut(&key) else {
            self.post.recycle(message.buffer);
            return Ok(());
        };
        match header.kind {
            Kind::Data => {
                stream.take_in(message.buffer, message.length);
                self.write(key)?;
            }
            Kind::Close => stream.close(),
            Kind::Credit => stream.grant(header.value),
            _ => {}
        }
        if self.streams.get(&key).is_some_and(Stream::is_over) {
            self.streams.remove(&key);
        }
        Ok(())
    }

    /// Writes what waits for a stream's socket.
    fn write(&mut self, key: Key) -> Result<()> {
        let Some(stream) = self.streams.get_mut(&key) else { return Ok(()) };
        stream.write(&mut self.done);
        if let Some(value) = stream.credit_due() {
            self.post.say(key.0, Header { kind: Kind::Credit, stream: key.1, value })?;
        }
        self.done.drain(..).for_each(|buffer| self.post.recycle(buffer));
        Ok(())
    }

    /// Reads what a stream's socket has.
    fn read(&mut self, key: Key) -> Result<()> {
        let Some(stream) = self.streams.get_mut(&key) else { return Ok(()) };
        let mut buffer = self.post.buffer();
        match stream.read(&mut buffer) {
            Read::Bytes(count) => {
                self.post.send(key.0, Header::of(Kind::Data, key.1), buffer, count)?;
            }
            Read::Nothing => self.post.recycle(buffer),
            Read::End => {
                stream.is_read = true;
                self.post.recycle(buffer);
                self.post.say(key.0, Header::of(Kind::Close, key.1))?;
            }
        }
        Ok(())
    }

    /// Waits for sockets, at most for `pause`, and serves those that are ready. Returns whom programs have
    /// connected to.
    fn rest(
        &mut self,
        happened: bool,
        pause: Option<&Timespec>,
        doors: &[Door],
    ) -> Result<Vec<(u32, OwnedFd)>> {
        if happened {
            self.pace.hurry();
        }
        let mut keys = Vec::with_capacity(self.streams.len());
        let mut fds = vec![PollFd::from_borrowed_fd(self.control.bell(), PollFlags::IN)];
        fds.extend(doors.iter().map(|door| PollFd::new(&door.socket, PollFlags::IN)));
        for (key, stream) in &self.streams {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, stream.wants_input());
            flags.set(PollFlags::OUT, stream.wants_output());
            // One that wants nothing would be reported for having been hung up.
            if !flags.is_empty() {
                keys.push(*key);
                fds.push(PollFd::from_borrowed_fd(stream.fd(), flags));
            }
        }
        match poll(&mut fds, pause) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => self.pace.hurry(),
            Err(errno) => return Err(Error::system("wait for sockets")(errno)),
        }
        let ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        drop(fds);
        if !ready[0].is_empty() {
            self.control.quiet();
        }
        let mut callers = Vec::new();
        for (door, _) in doors.iter().zip(&ready[1..]).filter(|(_, ready)| !ready.is_empty()) {
            callers.extend(caller(&door.socket).map(|socket| (door.service, socket)));
        }
        for (key, ready) in keys.into_iter().zip(&ready[1 + doors.len()..]) {
            if ready.contains(PollFlags::OUT) {
                self.write(key)?;
            }
            if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
                && self.streams.get(&key).is_some_and(Stream::wants_input)
            {
                self.read(key)?;
            }
            if self.streams.get(&key).is_some_and(Stream::is_over) {
                self.streams.remove(&key);
            }
        }
        Ok(callers)
    }
}

/// A program's connection, if it is of the same user: names in the abstract name space are open to all.
fn caller(door: &OwnedFd) -> Option<OwnedFd> {
    let socket = move_away(accept_with(door, SocketFlags::CLOEXEC).ok()?);
    let user = socket_peercred(&socket).ok()?.uid;
    if !user.is_root() && user != rustix::process::geteuid() {
        return None;
    }
    widen(&socket);
    Some(socket)
}

/// A connection for the 9P service.
fn adopted(adopt: &mut dyn FnMut(OwnedFd) -> bool) -> Option<Stream> {
    let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = pair.ok()?;
    widen(&ours);
    adopt(theirs).then(|| Stream::new(ours))
}

/// Room for whole messages; less is slower, not wrong.
fn widen(socket: &OwnedFd) {
    let _ = set_socket_send_buffer_size(socket.as_fd(), 2 * (PAYLOAD_BYTES_MAX + HEADER_BYTES));
}

#[cfg(test)]
mod tests;
