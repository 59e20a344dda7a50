//! From a path to a fid: walking, symbolic links, `..`.

use std::borrow::Cow;
use std::collections::VecDeque;

use p9::{Errno, Fid, Qid, QidType, Reply, Request};

use crate::connection::{Body, Ticket};
use crate::error::{Error, Result};
use crate::live::{Live, Tail, Walked};
use crate::path::{Parsed, Piece, join};

/// More symbolic links than this in one path are `ELOOP` (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// Where a path begins.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) fid: Fid,
    /// The whole way from the service's root to `fid`.
    pub(crate) way: &'a [&'a [u8]],
    /// How many components of the way are above what symbolic links may reach: the export's name.
    pub(crate) floor: usize,
}

/// The requests to make on the end of a path.
pub(crate) struct Plan<'p> {
    /// A symbolic link at the end is followed.
    pub(crate) follow: bool,
    /// The requests would do harm to a symbolic link that is then followed.
    pub(crate) careful: bool,
    /// The fid stays with the caller.
    pub(crate) keep: bool,
    /// See [`Tail::alone`].
    pub(crate) alone: bool,
    pub(crate) requests: &'p dyn Fn(Fid) -> Vec<Request<'p>>,
    pub(crate) eager: Option<&'p dyn Fn(Fid) -> Request<'p>>,
}

/// The end of a path, where requests were made.
pub(crate) struct Reached {
    pub(crate) fid: Fid,
    pub(crate) qid: Qid,
    pub(crate) replies: Vec<Result<Body>>,
    pub(crate) eager: Option<Ticket>,
    /// From the service's root.
    pub(crate) path: Vec<u8>,
}

/// How a path ended.
pub(crate) enum Outcome<'a> {
    Reached(Reached),
    /// All but the last component are there.
    Missing(Missing<'a>),
}

/// A name that does not exist, in a directory that does.
pub(crate) struct Missing<'a> {
    /// From the start, the last one included.
    pub(crate) names: Vec<Cow<'a, [u8]>>,
    /// What the service said, when it said something.
    pub(crate) errno: Option<Errno>,
    pub(crate) path: Vec<u8>,
}

/// A path on its way.
pub(crate) struct Resolver<'a> {
    live: &'a Live,
    start: Start<'a>,
    /// Walked already, from the start: `..` only at the beginning, no symbolic links.
    resolved: Vec<Cow<'a, [u8]>>,
    pending: VecDeque<Piece<'a>>,
    /// What the path names must be a directory.
    directory: bool,
    links: u32,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(live: &'a Live, start: Start<'a>, parsed: &Parsed<'a>) -> Self {
        Self {
            live,
            start,
            resolved: Vec::new(),
            pending: parsed.pieces(false),
            directory: parsed.directory,
            links: 0,
        }
    }

    /// Goes to the end of the path and makes the plan's requests there.
    pub(crate) fn run(&mut self, plan: &Plan<'_>) -> Result<Outcome<'a>> {
        loop {
            let up = self.pending.iter().position(|piece| piece.name.as_ref() == b"..");
            let len = up.unwrap_or(self.pending.len());
            if up.is_none() {
                if let Some(outcome) = self.last_run(plan)? {
                    return Ok(outcome);
                }
                continue;
            }
            if len > 0 && !self.middle_run(len)? {
                continue;
            }
            if let Some(piece) = self.pending.pop_front() {
                self.go_up(piece.from_link)?;
            }
        }
    }

    /// Walks the components before a `..`, which all must be directories. False: a symbolic link
    /// was put in place of itself, start over.
    fn middle_run(&mut self, len: usize) -> Result<bool> {
        let fid = self.live.new_fid()?;
        let names = self.names(len);
        let names: Vec<&[u8]> = names.iter().map(Cow::as_ref).collect();
        let tail = Tail::default();
        let walked = self.live.step(self.start.fid, &names, fid, tail)?.walked;
        let total = names.len();
        if let Some(link) = walked.first_link() {
            self.expand(link)?;
            return Ok(false);
        }
        if !walked.complete {
            return Err(Error::Refused(self.why(&walked, total)?));
        }
        if !walked.end().kind.contains(QidType::DIR) {
            return Err(Error::Refused(Errno::ENOTDIR));
        }
        self.resolved.extend(self.pending.drain(..len).map(|piece| piece.name));
        Ok(true)
    }

    /// Walks what is left, with the plan's requests. `None`: a symbolic link was put in place of
    /// itself, start over.
    fn last_run(&mut self, plan: &Plan<'_>) -> Result<Option<Outcome<'a>>> {
        let live = self.live;
        let fid = live.new_fid()?;
        let careful = plan.careful || self.directory;
        let all = self.names(self.pending.len());
        let names: Vec<&[u8]> = all.iter().map(Cow::as_ref).collect();
        let total = names.len();
        let tail = Tail {
            requests: if careful { Vec::new() } else { (plan.requests)(fid) },
            eager: plan.eager.filter(|_| !careful).map(|eager| eager(fid)),
            keep: plan.keep || careful,
            careful,
            alone: plan.alone,
        };
        let step = live.step(self.start.fid, &names, fid, tail)?;
        let follow = plan.follow || self.directory;
        let walked = &step.walked;
        if let Some(link) = walked.first_link()
            && (link + 1 < total || follow)
        {
            // A service that follows links by itself may have done the work already, but where
            // the link leads is for us to say; what such a one did, it did on the right file
            // unless the link was absolute.
            if let Some(ticket) = step.eager {
                live.connection.forget(ticket);
            }
            if walked.complete && (plan.keep || careful) {
                live.clunk(fid);
            }
            self.expand(link)?;
            return Ok(None);
        }
        let path = self.absolute(&names);
        if !walked.complete {
            let parent_is_directory = match walked.qids.last() {
                Some(qid) => qid.kind.contains(QidType::DIR),
                None => true,
            };
            let absent = matches!(walked.errno, None | Some(Errno::ENOENT));
            if walked.qids.len() + 1 == total && parent_is_directory && absent {
                let errno = walked.errno;
                drop(names);
                return Ok(Some(Outcome::Missing(Missing { names: all, errno, path })));
            }
            return Err(Error::Refused(self.why(walked, total)?));
        }
        let qid = walked.end();
        if self.directory && !qid.kind.contains(QidType::DIR) {
            live.clunk(fid);
            return Err(Error::Refused(Errno::ENOTDIR));
        }
        let mut replies = step.replies;
        let eager = step.eager;
        if careful {
            replies = live.all(&(plan.requests)(fid))?;
            if !plan.keep {
                live.clunk(fid);
            }
        }
        Ok(Some(Outcome::Reached(Reached { fid, qid, replies, eager, path })))
    }

    /// Names from the start to the end of the first `len` pending components.
    fn names(&self, len: usize) -> Vec<Cow<'a, [u8]>> {
        let pending = self.pending.iter().take(len).map(|piece| &piece.name);
        self.resolved.iter().chain(pending).cloned().collect()
    }

    /// From the service's root: `names` from the start, whose leading `..` are taken off its way.
    fn absolute(&self, names: &[&[u8]]) -> Vec<u8> {
        let ups = names.iter().take_while(|name| **name == b"..").count();
        let way = &self.start.way[..self.start.way.len().saturating_sub(ups)];
        join(way.iter().chain(&names[ups..]).copied())
    }

    /// Goes to the parent of what is resolved. The root is its own parent, as in a chroot(2); but
    /// a symbolic link that leaves its export means a file that is not ours to guess.
    fn go_up(&mut self, from_link: bool) -> Result<()> {
        let ups = self.resolved.iter().take_while(|name| name.as_ref() == b"..").count();
        let below = self.resolved.len() - ups;
        let depth = (self.start.way.len() + below).saturating_sub(ups);
        if from_link && depth <= self.start.floor {
            return Err(Error::Refused(Errno::EXDEV));
        }
        if below > 0 {
            self.resolved.pop();
        } else if depth > 0 {
            self.resolved.push(Cow::Borrowed(b".."));
        }
        Ok(())
    }

    /// Puts the target of the symbolic link at `index` from the start in place of the link.
    fn expand(&mut self, index: usize) -> Result<()> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Error::Refused(Errno::ELOOP));
        }
        let Some(before) = index.checked_sub(self.resolved.len()) else {
            // What was a directory when we came by is a link now. Once more from there.
            return Err(Error::Refused(Errno::ENOENT));
        };
        let target = self.target_of(index + 1)?;
        self.resolved.extend(self.pending.drain(..before).map(|piece| piece.name));
        self.pending.pop_front();
        let parsed = Parsed::new(&target).map_err(Error::Refused)?;
        if target.first() == Some(&b'/') {
            let mut rest = join(self.pending.iter().map(|piece| piece.name.as_ref()));
            if self.directory && !rest.is_empty() {
                rest.push(b'/');
            }
            return Err(Error::AbsoluteLink { target, rest });
        }
        if target.is_empty() {
            return Err(Error::Refused(Errno::ENOENT));
        }
        if self.pending.is_empty() {
            self.directory |= parsed.directory;
        }
        for name in parsed.names.into_iter().rev() {
            self.pending.push_front(Piece { name: Cow::Owned(name.to_vec()), from_link: true });
        }
        Ok(())
    }

    /// What the symbolic link at the end of the first `len` names says.
    fn target_of(&self, len: usize) -> Result<Vec<u8>> {
        let names = self.names(len - self.resolved.len());
        let names: Vec<&[u8]> = names.iter().map(Cow::as_ref).collect();
        let fid = self.live.new_fid()?;
        let requests = vec![Request::Readlink { fid }];
        let tail = Tail { requests, ..Tail::default() };
        let mut step = self.live.step(self.start.fid, &names, fid, tail)?;
        if !step.walked.complete {
            return Err(Error::Refused(step.walked.errno.unwrap_or(Errno::ENOENT)));
        }
        let body = match step.replies.pop() {
            Some(reply) => reply?,
            None => return Err(Error::Refused(Errno::EIO)),
        };
        match self.live.reply(&body)? {
            Reply::Readlink { target } => Ok(target.to_vec()),
            _ => Ok(Vec::new()),
        }
    }

    /// Why a walk ended early. A service gives a reason for the first name of a message only
    /// (walk(5)), so the first name not reached is asked for by itself.
    fn why(&self, walked: &Walked, total: usize) -> Result<Errno> {
        if let Some(errno) = walked.errno {
            return Ok(errno);
        }
        let reached = walked.qids.len();
        if walked.qids.last().is_some_and(|qid| !qid.kind.contains(QidType::DIR)) {
            return Ok(Errno::ENOTDIR);
        }
        let names = self.names(total - self.resolved.len());
        let names: Vec<&[u8]> = names.iter().map(Cow::as_ref).collect();
        why_not(self.live, self.start.fid, &names[..reached], names[reached])
    }
}

/// The reason why `name` in the directory at `parents` cannot be reached.
pub(crate) fn why_not(live: &Live, base: Fid, parents: &[&[u8]], name: &[u8]) -> Result<Errno> {
    let parent = live.new_fid()?;
    let tail = Tail { keep: true, careful: true, ..Tail::default() };
    let to_parent = live.step(base, parents, parent, tail)?;
    if !to_parent.walked.complete {
        return Ok(to_parent.walked.errno.unwrap_or(Errno::ENOENT));
    }
    let fid = live.new_fid()?;
    let tail = Tail::default();
    let last = live.step(parent, &[name], fid, tail)?;
    live.clunk(parent);
    Ok(last.walked.errno.unwrap_or(Errno::ENOENT))
}
