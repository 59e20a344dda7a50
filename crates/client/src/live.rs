//! A connection with what hangs from it: attached roots, fids, batches of dependent requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use p9::{Errno, Fid, Names, Optional, Qid, QidType, Reply, Request};

use crate::connection::{Body, Connection, Ticket};
use crate::error::{Error, ProtocolError, Result};
use crate::lock;

/// A fid number is used again only when so many others were released after it. Nothing relies on it:
/// it is a margin, because a mistake in the order of fids would show one file's data for another's.
const FID_REST: usize = 1024;

/// A negotiated connection and the client's book-keeping about it.
pub(crate) struct Live {
    pub(crate) connection: Arc<Connection>,
    /// Counts the connections of a session; handles remember on which one their fids are.
    pub(crate) generation: u32,
    uname: String,
    fids: Mutex<Fids>,
    roots: Mutex<Vec<Root>>,
}

struct Fids {
    next: u32,
    released: VecDeque<Fid>,
}

/// An attached tree: `prefix` is its name at the service, empty for the unnamed root.
#[derive(Clone)]
pub(crate) struct Root {
    pub(crate) prefix: Vec<Vec<u8>>,
    pub(crate) fid: Fid,
}

/// What a walk came to.
#[derive(Debug)]
pub(crate) struct Walked {
    /// The names reached, in order.
    pub(crate) qids: Vec<Qid>,
    /// Why the next one was not, if the service said so (it does for the first of a message only).
    pub(crate) errno: Option<Errno>,
    /// Every name was reached and the fid exists.
    pub(crate) complete: bool,
}

/// What is done with the end of a walk.
#[derive(Default)]
pub(crate) struct Tail<'t> {
    /// Requests on the walked fid, in order; each reply is waited for.
    pub(crate) requests: Vec<Request<'t>>,
    /// Sent last; its reply is left to come.
    pub(crate) eager: Option<Request<'t>>,
    /// The walked fid stays.
    pub(crate) keep: bool,
    /// Nothing may be sent before the walk is known to have reached `Step::walked`.
    pub(crate) careful: bool,
    /// The last name is walked by itself, because a service says why for the first name of a
    /// message only (walk(5)), and the caller expects that it may be missing.
    pub(crate) alone: bool,
}

/// A walk together with its tail.
pub(crate) struct Step {
    pub(crate) walked: Walked,
    pub(crate) replies: Vec<Result<Body>>,
    pub(crate) eager: Option<Ticket>,
}

impl Live {
    pub(crate) fn new(connection: Connection, generation: u32, uname: &str) -> Self {
        Self {
            connection: Arc::new(connection),
            generation,
            uname: uname.to_owned(),
            fids: Mutex::new(Fids { next: 1, released: VecDeque::new() }),
            roots: Mutex::new(Vec::new()),
        }
    }

    /// A fid number that nothing uses.
    pub(crate) fn new_fid(&self) -> Result<Fid> {
        let mut fids = lock(&self.fids);
        if fids.released.len() > FID_REST
            && let Some(fid) = fids.released.pop_front()
        {
            return Ok(fid);
        }
        let fid = Fid(fids.next);
        if fid == Fid::NONE {
            return fids.released.pop_front().ok_or(Error::Refused(Errno::EMFILE));
        }
        fids.next += 1;
        Ok(fid)
    }

    /// Takes back the number of a fid that the service does not have (any more).
    pub(crate) fn release(&self, fid: Fid) {
        lock(&self.fids).released.push_back(fid);
    }

    /// Tells the service to forget a fid.
    pub(crate) fn clunk(&self, fid: Fid) {
        // A broken connection has no fids any more.
        if self.dismiss(&Request::Clunk { fid }).is_ok() {
            self.release(fid);
        }
    }

    /// Makes a request whose answer does not matter. Nobody waits for it, unless the service might
    /// act on it before it has acted on earlier ones.
    fn dismiss(&self, request: &Request<'_>) -> Result<()> {
        if self.connection.is_ordered() {
            self.connection.forget(self.connection.submit(request)?);
        } else {
            self.connection.quiesce()?;
            let _ = self.call(request)?;
        }
        Ok(())
    }

    /// The attached tree that holds `path`. Where the service refuses the unnamed root, growing
    /// beginnings of the path are tried as names of trees.
    pub(crate) fn root_of(&self, path: &[&[u8]]) -> Result<Root> {
        let mut roots = lock(&self.roots);
        let covers = |root: &&Root| {
            root.prefix.len() <= path.len() && root.prefix.iter().zip(path).all(|(a, b)| a == b)
        };
        if let Some(root) = roots.iter().find(covers) {
            return Ok(root.clone());
        }
        let mut refusal = Errno::ENOENT;
        // With one named tree attached the unnamed one was refused already.
        let first = usize::from(!roots.is_empty());
        for len in first..=path.len() {
            match self.attach(&path[..len]) {
                Ok(fid) => {
                    let prefix = path[..len].iter().map(|name| name.to_vec()).collect();
                    let root = Root { prefix, fid };
                    roots.push(root.clone());
                    return Ok(root);
                }
                Err(Error::Refused(errno)) => {
                    if len == 0 || refusal == Errno::ENOENT {
                        refusal = errno;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Refused(refusal))
    }

    fn attach(&self, names: &[&[u8]]) -> Result<Fid> {
        let mut aname = Vec::new();
        for name in names {
            aname.push(b'/');
            aname.extend_from_slice(name);
        }
        let fid = self.new_fid()?;
        let outcome = self.connection.call(&Request::Attach {
            fid,
            afid: Fid::NONE,
            uname: self.uname.as_bytes(),
            aname: &aname,
            uid: Optional(Some(rustix::process::geteuid().as_raw())),
        });
        if outcome.is_err() {
            self.release(fid);
        }
        outcome.map(|_| fid)
    }

    /// Walks from `base` to `fid` and does what `tail` says with it. All of it travels at once
    /// unless the tail is careful or the service needs it one by one.
    ///
    /// A tail on a walk that fails is harmless, because no fid comes to be and the service refuses
    /// the rest. For the same reason more than 16 names go over fids of their own and never walk
    /// one in place.
    pub(crate) fn step(
        &self,
        base: Fid,
        names: &[&[u8]],
        fid: Fid,
        tail: Tail<'_>,
    ) -> Result<Step> {
        let steps = tail.careful || !self.connection.is_ordered();
        let alone = tail.alone && !steps;
        let mut walks: Vec<Request<'_>> = Vec::with_capacity(8);
        let mut from = base;
        let mut rest = names;
        loop {
            let len = if alone && rest.len() > 1 { rest.len() - 1 } else { rest.len() };
            let (now, later) = rest.split_at(len.min(Names::MAX));
            let new_fid = if later.is_empty() { fid } else { self.new_fid()? };
            let names = Names::collect(now.iter().copied());
            walks.push(Request::Walk { fid: from, new_fid, names });
            rest = later;
            from = new_fid;
            if rest.is_empty() {
                break;
            }
        }
        let mut step =
            if steps { self.in_steps(&walks, &tail)? } else { self.at_once(&walks, &tail)? };
        for walk in &walks[..walks.len() - 1] {
            if let Request::Walk { new_fid, .. } = walk {
                self.release(*new_fid);
            }
        }
        if !tail.keep || !step.walked.complete {
            self.release(fid);
        }
        if !step.walked.complete
            && let Some(ticket) = step.eager.take()
        {
            self.connection.forget(ticket);
        }
        Ok(step)
    }

    /// Sends walks, tail and clunks in one go.
    fn at_once(&self, walks: &[Request<'_>], tail: &Tail<'_>) -> Result<Step> {
        let waited = walks.len() + tail.requests.len();
        let mut requests = Vec::with_capacity(waited + walks.len() + 1);
        requests.extend_from_slice(walks);
        requests.extend_from_slice(&tail.requests);
        requests.extend(tail.eager);
        let passed = if tail.keep { walks.len() - 1 } else { walks.len() };
        requests.extend(walks[..passed].iter().filter_map(clunk_of_target));
        let mut tickets = self.connection.submit_all(&requests)?.into_iter();
        let first: Vec<Ticket> = tickets.by_ref().take(waited).collect();
        let eager = tail.eager.and_then(|_| tickets.next());
        tickets.for_each(|ticket| self.connection.forget(ticket));
        let mut replies = self.wait_all(first)?;
        let tail_replies = replies.split_off(walks.len());
        let walked = self.walked(walks, replies)?;
        Ok(Step { walked, replies: tail_replies, eager })
    }

    /// Makes one request after the other; of a careful tail, none.
    fn in_steps(&self, walks: &[Request<'_>], tail: &Tail<'_>) -> Result<Step> {
        let mut replies = Vec::with_capacity(walks.len());
        for walk in walks {
            replies.push(self.call(walk)?);
        }
        let walked = self.walked(walks, replies)?;
        let replies = if walked.complete && !tail.careful {
            self.one_by_one(&tail.requests)?
        } else {
            Vec::new()
        };
        let passed = if tail.keep { walks.len() - 1 } else { walks.len() };
        for clunk in walks[..passed].iter().filter_map(clunk_of_target) {
            // Also of fids that did not come to be: the service's refusal does not matter.
            self.dismiss(&clunk)?;
        }
        Ok(Step { walked, replies, eager: None })
    }

    /// Requests whose effects build on one another: each waits for the one before. Ends at the
    /// first that is refused; the rest count as refused likewise.
    pub(crate) fn one_by_one(&self, requests: &[Request<'_>]) -> Result<Vec<Result<Body>>> {
        let mut replies: Vec<Result<Body>> = Vec::with_capacity(requests.len());
        for request in requests {
            let refused = match replies.last() {
                Some(Err(error)) => Some(error.clone()),
                _ => None,
            };
            replies.push(match refused {
                Some(error) => Err(error),
                None => self.call(request)?,
            });
        }
        Ok(replies)
    }

    /// Makes requests that build on one another, all at once where the service keeps their order,
    /// and waits for all replies.
    pub(crate) fn all(&self, requests: &[Request<'_>]) -> Result<Vec<Result<Body>>> {
        if !self.connection.is_ordered() {
            return self.one_by_one(requests);
        }
        self.wait_all(self.connection.submit_all(requests)?)
    }

    /// Waits for replies in order. What the service refuses stays with its request; what breaks
    /// the connection ends it all.
    pub(crate) fn wait_all(&self, tickets: Vec<Ticket>) -> Result<Vec<Result<Body>>> {
        let mut replies = Vec::with_capacity(tickets.len());
        for ticket in tickets {
            replies.push(refusal_apart(self.connection.wait(ticket))?);
        }
        Ok(replies)
    }

    fn call(&self, request: &Request<'_>) -> Result<Result<Body>> {
        refusal_apart(self.connection.call(request))
    }

    /// What the replies to walks that build on one another come to.
    fn walked(&self, walks: &[Request<'_>], replies: Vec<Result<Body>>) -> Result<Walked> {
        let mut walked = Walked { qids: Vec::new(), errno: None, complete: false };
        for (walk, reply) in walks.iter().zip(replies) {
            let asked = match walk {
                Request::Walk { names, .. } => names.as_slice().len(),
                _ => 0,
            };
            let body = match reply {
                Ok(body) => body,
                Err(Error::Refused(errno)) => {
                    walked.errno = Some(errno);
                    return Ok(walked);
                }
                Err(error) => return Err(error),
            };
            let Reply::Walk { qids } = self.reply(&body)? else { continue };
            let count = qids.as_slice().len();
            if count > asked {
                return Err(self.broken(ProtocolError::TooMuch { count, asked }));
            }
            walked.qids.extend_from_slice(qids.as_slice());
            if count < asked {
                return Ok(walked);
            }
        }
        walked.complete = true;
        Ok(walked)
    }

    /// The fields of a reply.
    pub(crate) fn reply<'b>(&self, body: &'b Body) -> Result<Reply<'b>> {
        body.reply().map_err(|error| self.broken(error))
    }

    pub(crate) fn broken(&self, source: ProtocolError) -> Error {
        Error::Protocol { peer: self.connection.peer().to_owned(), source }
    }
}

impl Walked {
    /// Where the first symbolic link is among the names reached.
    pub(crate) fn first_link(&self) -> Option<usize> {
        self.qids.iter().position(|qid| qid.kind.contains(QidType::SYMLINK))
    }

    /// Identity of the end; a walk of no names ends where it began, at a directory.
    pub(crate) fn end(&self) -> Qid {
        let directory = Qid { kind: QidType::DIR, version: 0, path: 0 };
        self.qids.last().copied().unwrap_or(directory)
    }
}

/// The request that undoes a walk.
fn clunk_of_target<'a>(request: &Request<'_>) -> Option<Request<'a>> {
    match *request {
        Request::Walk { new_fid, .. } => Some(Request::Clunk { fid: new_fid }),
        _ => None,
    }
}

/// Tells what a service refuses from what breaks the connection.
pub(crate) fn refusal_apart<T>(outcome: Result<T>) -> Result<Result<T>> {
    match outcome {
        Err(error @ Error::Refused(_)) => Ok(Err(error)),
        Err(error) => Err(error),
        Ok(value) => Ok(Ok(value)),
    }
}
