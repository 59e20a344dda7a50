//! Opening and creating.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use p9::{Attributes, Errno, Fid, OpenFlags, QidType, Reply, Request};

use crate::connection::Body;
use crate::error::{Error, Result};
use crate::handle::{FirstRead, Handle, O_PATH};
use crate::live::{Live, Tail};
use crate::namespace::{found, getattr, group, parent_of, parse};
use crate::path::{End, Parsed, join};
use crate::resolve::{Missing, Outcome, Plan, Reached};
use crate::session::{At, Repeat, Session};

/// What the read that travels with an open asks for: most files of a program are smaller.
const FIRST_READ_COUNT: usize = 128 * 1024;

/// How often an open that may create goes round when others create and remove the file meanwhile.
const CREATE_ROUNDS_MAX: u32 = 16;

/// Flags that a service is to know; the rest is between program and kernel.
const SENT_FLAGS: u32 = OpenFlags::ACCESS_MASK
    | OpenFlags::CREATE.bits()
    | OpenFlags::EXCLUSIVE.bits()
    | OpenFlags::TRUNCATE.bits()
    | OpenFlags::APPEND.bits()
    | OpenFlags::NONBLOCK.bits()
    | OpenFlags::SYNC.bits()
    | OpenFlags::DIRECTORY.bits()
    | OpenFlags::NOFOLLOW.bits();

/// What distinguishes `O_TMPFILE` from `O_DIRECTORY` (open(2)).
const TMPFILE_BIT: u32 = 0o20_000_000;

/// What an open gives.
pub struct Opened {
    /// The open file.
    pub handle: Handle,
    /// What fstat(2) would tell.
    pub attributes: Attributes,
    /// The read that was sent along.
    pub first: Option<FirstRead>,
}

impl Session {
    /// Opens, and creates where the flags say so. `mode` is used as it is: the caller has taken
    /// its umask off. An open for reading brings the first bytes along; it takes one round trip,
    /// the creation of a file two, or with `EXCLUSIVE` one.
    ///
    /// # Errors
    /// As open(2); and as [`Session::stat`].
    pub fn open(self: &Arc<Self>, at: At<'_>, flags: OpenFlags, mode: u32) -> Result<Opened> {
        let parsed = parse(at.path)?;
        let creates = flags.contains(OpenFlags::CREATE);
        if flags.bits() & TMPFILE_BIT != 0 {
            return Err(Error::Refused(Errno::EOPNOTSUPP));
        }
        if creates && flags.contains(OpenFlags::DIRECTORY) {
            return Err(Error::Refused(Errno::EINVAL));
        }
        if flags.contains(O_PATH) {
            let flags = flags & (O_PATH | OpenFlags::DIRECTORY | OpenFlags::NOFOLLOW);
            return self.attempt(Repeat::Safe, |live| self.open_found(live, at, &parsed, flags));
        }
        let flags = OpenFlags::from_bits_retain(flags.bits() & SENT_FLAGS);
        if !creates {
            return self.attempt(Repeat::Safe, |live| self.open_found(live, at, &parsed, flags));
        }
        if parsed.directory || parsed.end == End::Nothing {
            return Err(Error::Refused(Errno::EISDIR));
        }
        let exclusive = flags.contains(OpenFlags::EXCLUSIVE);
        // Creating with EXCLUSIVE a second time would fail where the first succeeded.
        let repeat = if exclusive { Repeat::OnlyUnsent } else { Repeat::Safe };
        self.attempt(repeat, |live| {
            if exclusive {
                return self.create_in_parent(live, at, &parsed, flags, mode);
            }
            for _ in 0..CREATE_ROUNDS_MAX {
                match self.open_or_create(live, at, &parsed, flags, mode) {
                    // Someone was between the walk and the creation.
                    Err(Error::Refused(Errno::EEXIST | Errno::ENOENT)) => {}
                    Err(Error::Refused(Errno::ELOOP)) if !flags.contains(OpenFlags::NOFOLLOW) => {}
                    other => return other,
                }
            }
            self.open_or_create(live, at, &parsed, flags, mode)
        })
    }

    fn open_found(
        self: &Arc<Self>,
        live: &Arc<Live>,
        at: At<'_>,
        parsed: &Parsed<'_>,
        flags: OpenFlags,
    ) -> Result<Opened> {
        self.open_with(live, at, parsed, flags, |outcome, base| found(live, base, outcome))
    }

    fn open_or_create(
        self: &Arc<Self>,
        live: &Arc<Live>,
        at: At<'_>,
        parsed: &Parsed<'_>,
        flags: OpenFlags,
        mode: u32,
    ) -> Result<Opened> {
        let mut created = None;
        let opened =
            self.open_with(live, at, parsed, flags - OpenFlags::CREATE, |outcome, base| {
                match outcome {
                    Outcome::Missing(missing) => {
                        created = Some(self.create(live, base, missing, flags, mode)?);
                        Err(Error::Refused(Errno::ENOENT))
                    }
                    reached @ Outcome::Reached(_) => found(live, base, reached),
                }
            });
        match created {
            Some(created) => Ok(created),
            None => opened,
        }
    }

    /// Opens what is there; `found` judges how the path ended.
    fn open_with(
        self: &Arc<Self>,
        live: &Arc<Live>,
        at: At<'_>,
        parsed: &Parsed<'_>,
        flags: OpenFlags,
        found: impl FnOnce(Outcome<'_>, Fid) -> Result<Reached>,
    ) -> Result<Opened> {
        let place_only = flags.contains(O_PATH);
        let follow = !flags.contains(OpenFlags::NOFOLLOW);
        let as_directory = flags.contains(OpenFlags::DIRECTORY) && !place_only;
        // A directory gets a second fid: one to list, one to walk from.
        let listed = Cell::new(None);
        let requests = |fid| {
            let mut requests: Vec<Request<'_>> = Vec::with_capacity(3);
            listed.set(if as_directory { live.new_fid().ok() } else { None });
            let opened = listed.get().unwrap_or(fid);
            if let Some(new_fid) = listed.get() {
                requests.push(Request::Walk { fid, new_fid, names: p9::Names::collect([]) });
            }
            if !place_only {
                requests.push(Request::Lopen { fid: opened, flags });
            }
            requests.extend(getattr(opened));
            requests
        };
        let count = FIRST_READ_COUNT
            .min(self.options().read_ahead_max)
            .min(live.connection.payload_max()) as u32;
        let first = move |fid| Request::Read { fid, offset: 0, count };
        // A program that opens for reading and writing may want neither yet, and would find the time
        // of last access changed.
        let reads_first = flags.reads()
            && !flags.writes()
            && count > 0
            && !place_only
            && !as_directory
            && !flags.contains(OpenFlags::TRUNCATE);
        let plan = Plan {
            follow,
            // Emptying what a link that a service follows by itself leads to cannot be undone.
            careful: flags.contains(OpenFlags::TRUNCATE),
            keep: true,
            alone: true,
            requests: &requests,
            eager: if reads_first { Some(&first) } else { None },
        };
        Self::resolve(live, at, parsed, &plan, |outcome, base| {
            let mut reached = match found(outcome, base) {
                Ok(reached) => reached,
                Err(error) => {
                    listed.get().into_iter().for_each(|fid| live.release(fid));
                    return Err(error);
                }
            };
            let first =
                reached.eager.take().map(|ticket| FirstRead::new(&live.connection, ticket, count));
            let fid = listed.get().unwrap_or(reached.fid);
            match opened_attributes(live, &reached, flags, place_only) {
                Ok(attributes) => {
                    let mut qid =
                        if reached.path.is_empty() { attributes.qid } else { reached.qid };
                    // Only the opening makes it so.
                    qid.kind |= attributes.qid.kind & QidType::EXCLUSIVE;
                    let place = listed.get().map(|_| reached.fid);
                    let path = std::mem::take(&mut reached.path);
                    let handle = Handle::new(self, live, fid, place, path, flags, qid);
                    Ok(Opened { handle, attributes, first })
                }
                Err(error) => {
                    live.clunk(reached.fid);
                    listed.get().into_iter().for_each(|fid| live.clunk(fid));
                    Err(error)
                }
            }
        })
    }

    /// Creates a name that was missing a moment ago.
    fn create(
        self: &Arc<Self>,
        live: &Arc<Live>,
        base: Fid,
        missing: Missing<'_>,
        flags: OpenFlags,
        mode: u32,
    ) -> Result<Opened> {
        let names: Vec<&[u8]> = missing.names.iter().map(Cow::as_ref).collect();
        let Some((name, parents)) = names.split_last() else {
            return Err(Error::Refused(Errno::EISDIR));
        };
        let fid = live.new_fid()?;
        let mut requests = vec![Request::Lcreate { fid, name, flags, mode, gid: group() }];
        requests.extend(getattr(fid));
        let tail = Tail { requests, keep: true, ..Tail::default() };
        let step = live.step(base, parents, fid, tail)?;
        if !step.walked.complete {
            return Err(Error::Refused(step.walked.errno.unwrap_or(Errno::ENOENT)));
        }
        self.created(live, fid, step.replies, missing.path, flags)
    }

    /// Creates with `EXCLUSIVE`: no look before, one round trip.
    fn create_in_parent(
        self: &Arc<Self>,
        live: &Arc<Live>,
        at: At<'_>,
        parsed: &Parsed<'_>,
        flags: OpenFlags,
        mode: u32,
    ) -> Result<Opened> {
        let Some(name) = parsed.names.last().copied() else {
            return Err(Error::Refused(Errno::EEXIST));
        };
        let requests = |fid| {
            let mut requests = vec![Request::Lcreate { fid, name, flags, mode, gid: group() }];
            requests.extend(getattr(fid));
            requests
        };
        let plan = Plan {
            follow: true,
            careful: false,
            keep: true,
            alone: false,
            requests: &requests,
            eager: None,
        };
        Self::resolve(live, at, &parent_of(parsed), &plan, |outcome, base| {
            let reached = found(live, base, outcome)?;
            let way = [reached.path.as_slice(), name];
            let path = join(way.into_iter().filter(|part| !part.is_empty()));
            self.created(live, reached.fid, reached.replies, path, flags)
        })
    }

    fn created(
        self: &Arc<Self>,
        live: &Arc<Live>,
        fid: Fid,
        replies: Vec<Result<Body>>,
        path: Vec<u8>,
        flags: OpenFlags,
    ) -> Result<Opened> {
        let mut replies = replies.into_iter();
        let mut next = || replies.next().unwrap_or(Err(Error::Refused(Errno::EPROTO)));
        let outcome = (|| {
            let created = next()?;
            let Reply::Lcreate { qid, .. } = live.reply(&created)? else {
                return Err(Error::Refused(Errno::EPROTO));
            };
            Ok((qid, attributes_of(live, &next()?)?))
        })();
        match outcome {
            Ok((qid, attributes)) => {
                let handle = Handle::new(self, live, fid, None, path, flags, qid);
                Ok(Opened { handle, attributes, first: None })
            }
            Err(error) => {
                live.clunk(fid);
                Err(error)
            }
        }
    }
}

fn attributes_of(live: &Live, body: &Body) -> Result<Attributes> {
    match live.reply(body)? {
        Reply::Getattr { attributes } => Ok(attributes),
        _ => Err(Error::Refused(Errno::EPROTO)),
    }
}

/// What the opening answered, after all that makes it a failure.
fn opened_attributes(
    live: &Live,
    reached: &Reached,
    flags: OpenFlags,
    place_only: bool,
) -> Result<Attributes> {
    let link = reached.qid.kind.contains(QidType::SYMLINK);
    if link && !place_only {
        return Err(Error::Refused(Errno::ELOOP));
    }
    if let Some(Err(error)) = reached.replies.iter().find(|reply| reply.is_err()) {
        return Err(error.clone());
    }
    if flags.contains(OpenFlags::DIRECTORY) && !reached.qid.kind.contains(QidType::DIR) {
        return Err(Error::Refused(Errno::ENOTDIR));
    }
    match reached.replies.last() {
        Some(Ok(body)) => attributes_of(live, body),
        _ => Err(Error::Refused(Errno::EPROTO)),
    }
}
