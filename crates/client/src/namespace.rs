//! Operations on paths.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use p9::{
    Attributes, Errno, Fid, GetattrMask, OpenFlags, QidType, Reply, Request, SetAttributes,
    SetattrMask, StatFs, UNLINK_DIRECTORY,
};

use crate::connection::Body;
use crate::error::{Error, Result};
use crate::handle::{FirstRead, Handle, O_PATH};
use crate::live::{Live, Tail};
use crate::path::{End, Parsed, join};
use crate::resolve::{Missing, Outcome, Plan, Reached, why_not};
use crate::session::{At, Repeat, Session};
use crate::xattr;

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
    /// What stat(2), or without `follow` lstat(2), tells: one round trip.
    ///
    /// # Errors
    /// As stat(2); [`Error::AbsoluteLink`] where a symbolic link leads out of the service.
    pub fn stat(&self, at: At<'_>, follow: bool) -> Result<Attributes> {
        self.on_node(
            at,
            Repeat::Safe,
            follow,
            false,
            &getattr,
            |live, mut reached| {
                let body = one(&mut reached)?;
                match live.reply(&body)? {
                    Reply::Getattr { attributes } => Ok(attributes),
                    _ => Err(Error::Refused(Errno::EPROTO)),
                }
            },
        )
    }

    /// Changes what is marked valid.
    ///
    /// # Errors
    /// As truncate(2), chmod(2), chown(2), utimensat(2); and as [`Session::stat`].
    pub fn set_attributes(&self, at: At<'_>, follow: bool, set: &SetAttributes) -> Result<()> {
        // Size and mode of a symbolic link cannot be set; the rest would be, on the wrong file.
        let careful = follow && set.valid != SetattrMask::SIZE && set.valid != SetattrMask::MODE;
        let set = *set;
        let request = move |fid| vec![Request::Setattr { fid, set }];
        self.on_node(
            at,
            Repeat::Safe,
            follow,
            careful,
            &request,
            |_, mut reached| one(&mut reached).map(|_| ()),
        )
    }

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
            return self.attempt(Repeat::Safe, |live| {
                self.open_found(live, at, &parsed, flags)
            });
        }
        let flags = OpenFlags::from_bits_retain(flags.bits() & SENT_FLAGS);
        if !creates {
            return self.attempt(Repeat::Safe, |live| {
                self.open_found(live, at, &parsed, flags)
            });
        }
        if parsed.directory || parsed.end == End::Nothing {
            return Err(Error::Refused(Errno::EISDIR));
        }
        let exclusive = flags.contains(OpenFlags::EXCLUSIVE);
        // Creating with EXCLUSIVE a second time would fail where the first succeeded.
        let repeat = if exclusive {
            Repeat::OnlyUnsent
        } else {
            Repeat::Safe
        };
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

    /// Makes a directory.
    ///
    /// # Errors
    /// As mkdir(2); and as [`Session::stat`].
    pub fn make_directory(&self, at: At<'_>, mode: u32) -> Result<()> {
        let (parsed, name) = new_name(at.path)?;
        self.in_parent(at, &parsed, &|dir| Request::Mkdir {
            dir,
            name,
            mode,
            gid: group(),
        })
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As symlink(2); and as [`Session::stat`].
    pub fn symlink(&self, target: &[u8], at: At<'_>) -> Result<()> {
        let (parsed, name) = new_name(at.path)?;
        if parsed.directory {
            return Err(Error::Refused(Errno::ENOENT));
        }
        if target.is_empty() {
            return Err(Error::Refused(Errno::ENOENT));
        }
        self.in_parent(at, &parsed, &|dir| Request::Symlink {
            dir,
            name,
            target,
            gid: group(),
        })
    }

    /// Removes a file, or with `directory` an empty directory.
    ///
    /// # Errors
    /// As unlink(2) and rmdir(2); and as [`Session::stat`].
    pub fn remove(&self, at: At<'_>, directory: bool) -> Result<()> {
        let parsed = parse(at.path)?;
        let refuse = |errno| Err(Error::Refused(errno));
        let name = match (parsed.end, parsed.names.last()) {
            (End::Name, Some(name)) => *name,
            (End::Nothing, _) if at.path.is_empty() => return refuse(Errno::ENOENT),
            (End::Dot, _) if directory => return refuse(Errno::EINVAL),
            (End::DotDot, _) if directory => return refuse(Errno::ENOTEMPTY),
            (End::Nothing, _) if directory => return refuse(Errno::EBUSY),
            _ => return refuse(Errno::EISDIR),
        };
        if parsed.directory && !directory {
            let attributes = self.stat(
                At {
                    path: trimmed(at.path),
                    ..at
                },
                false,
            )?;
            let errno = if attributes.is_directory() {
                Errno::EISDIR
            } else {
                Errno::ENOTDIR
            };
            return refuse(errno);
        }
        let flags = if directory { UNLINK_DIRECTORY } else { 0 };
        self.in_parent(at, &parsed, &|dir| Request::Unlinkat { dir, name, flags })
    }

    /// Renames `from` to `to`, replacing what is there; with `no_replace` a name that exists is
    /// `EEXIST`, found out by a look before, because the protocol has no such rename.
    ///
    /// # Errors
    /// As rename(2); and as [`Session::stat`].
    pub fn rename(&self, from: At<'_>, to: At<'_>, no_replace: bool) -> Result<()> {
        let (old_parsed, old_name) = busy_name(from.path)?;
        let (new_parsed, new_name) = busy_name(to.path)?;
        if old_parsed.directory || new_parsed.directory {
            let attributes = self.stat(
                At {
                    path: trimmed(from.path),
                    ..from
                },
                false,
            )?;
            if !attributes.is_directory() {
                return Err(Error::Refused(Errno::ENOTDIR));
            }
        }
        if no_replace {
            match self.stat(
                At {
                    path: trimmed(to.path),
                    ..to
                },
                false,
            ) {
                Ok(_) => return Err(Error::Refused(Errno::EEXIST)),
                Err(Error::Refused(Errno::ENOENT)) => {}
                Err(error) => return Err(error),
            }
        }
        self.attempt(Repeat::OnlyUnsent, |live| {
            let same = same_parent(from, &old_parsed, to, &new_parsed);
            let old_dir = self.parent(live, from, &old_parsed)?;
            let new_dir = if same {
                Ok(old_dir)
            } else {
                self.parent(live, to, &new_parsed)
            };
            let outcome = new_dir.and_then(|new_dir| {
                let request = Request::Renameat {
                    old_dir,
                    old_name,
                    new_dir,
                    new_name,
                };
                let outcome = live.connection.call(&request).map(|_| ());
                if !same {
                    live.clunk(new_dir);
                }
                outcome
            });
            live.clunk(old_dir);
            outcome
        })
    }

    /// Makes `to` another name of `from`; with `follow` of what a symbolic link there leads to.
    ///
    /// # Errors
    /// As linkat(2); and as [`Session::stat`].
    pub fn link(&self, from: At<'_>, to: At<'_>, follow: bool) -> Result<()> {
        let old_parsed = parse(from.path)?;
        let (new_parsed, name) = new_name(to.path)?;
        if new_parsed.directory {
            return Err(Error::Refused(Errno::ENOENT));
        }
        self.attempt(Repeat::OnlyUnsent, |live| {
            let fid = self.node(live, from, &old_parsed, follow)?;
            let outcome = self.parent(live, to, &new_parsed).and_then(|dir| {
                let outcome = live
                    .connection
                    .call(&Request::Link { dir, fid, name })
                    .map(|_| ());
                live.clunk(dir);
                outcome
            });
            live.clunk(fid);
            outcome
        })
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// As readlink(2); and as [`Session::stat`].
    pub fn read_link(&self, at: At<'_>) -> Result<Vec<u8>> {
        let request = |fid| vec![Request::Readlink { fid }];
        self.on_node(
            at,
            Repeat::Safe,
            false,
            false,
            &request,
            |live, mut reached| {
                if !reached.qid.kind.contains(QidType::SYMLINK) {
                    return Err(Error::Refused(Errno::EINVAL));
                }
                let body = one(&mut reached)?;
                match live.reply(&body)? {
                    Reply::Readlink { target } => Ok(target.to_vec()),
                    _ => Err(Error::Refused(Errno::EPROTO)),
                }
            },
        )
    }

    /// Room of the file system at a path.
    ///
    /// # Errors
    /// As statfs(2); and as [`Session::stat`].
    pub fn statfs(&self, at: At<'_>) -> Result<StatFs> {
        let request = |fid| vec![Request::Statfs { fid }];
        self.on_node(
            at,
            Repeat::Safe,
            true,
            false,
            &request,
            |live, mut reached| {
                let body = one(&mut reached)?;
                match live.reply(&body)? {
                    Reply::Statfs { statfs } => Ok(statfs),
                    _ => Err(Error::Refused(Errno::EPROTO)),
                }
            },
        )
    }

    /// The value of an extended attribute; with an empty name the names of all, each ended by a
    /// NUL.
    ///
    /// # Errors
    /// As getxattr(2), listxattr(2); and as [`Session::stat`].
    pub fn xattr(&self, at: At<'_>, follow: bool, name: &[u8]) -> Result<Vec<u8>> {
        let parsed = parse(at.path)?;
        self.attempt(Repeat::Safe, |live| {
            let fid = self.node(live, at, &parsed, follow)?;
            let outcome = live.new_fid().and_then(|new_fid| {
                let replies = live.all(&xattr::get(&live.connection, fid, new_fid, name))?;
                xattr::value(live, new_fid, replies)
            });
            live.clunk(fid);
            outcome
        })
    }

    /// Sets an extended attribute; `flags` as setxattr(2).
    ///
    /// # Errors
    /// As setxattr(2); and as [`Session::stat`].
    pub fn set_xattr(
        &self,
        at: At<'_>,
        follow: bool,
        name: &[u8],
        value: &[u8],
        flags: u32,
    ) -> Result<()> {
        let flags = if value.is_empty() && flags == xattr::REPLACE {
            // On the wire this would mean removal.
            self.xattr(at, follow, name)?;
            0
        } else {
            flags
        };
        self.create_xattr(at, follow, name, value, flags)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// As removexattr(2); and as [`Session::stat`].
    pub fn remove_xattr(&self, at: At<'_>, follow: bool, name: &[u8]) -> Result<()> {
        self.create_xattr(at, follow, name, &[], xattr::REPLACE)
    }

    fn create_xattr(
        &self,
        at: At<'_>,
        follow: bool,
        name: &[u8],
        value: &[u8],
        flags: u32,
    ) -> Result<()> {
        let parsed = parse(at.path)?;
        self.attempt(Repeat::OnlyUnsent, |live| {
            let fid = self.node(live, at, &parsed, follow)?;
            let requests = xattr::create(&live.connection, fid, name, value, flags)?;
            let outcome = xattr::created(live.all(&requests)?);
            live.release(fid);
            outcome
        })
    }

    /// Makes requests on the end of a path; the fid does not stay.
    fn on_node<'p, T>(
        &self,
        at: At<'_>,
        repeat: Repeat,
        follow: bool,
        careful: bool,
        requests: &'p dyn Fn(Fid) -> Vec<Request<'p>>,
        done: impl Fn(&Live, Reached) -> Result<T>,
    ) -> Result<T> {
        let parsed = parse(at.path)?;
        let plan = Plan {
            follow,
            careful,
            keep: false,
            requests,
            eager: None,
        };
        self.attempt(repeat, |live| {
            Self::resolve(live, at, &parsed, &plan, |outcome, base| {
                done(live, found(live, base, outcome)?)
            })
        })
    }

    /// A fid at the end of a path.
    fn node(&self, live: &Arc<Live>, at: At<'_>, parsed: &Parsed<'_>, follow: bool) -> Result<Fid> {
        let plan = Plan {
            follow,
            careful: false,
            keep: true,
            requests: &|_| Vec::new(),
            eager: None,
        };
        Self::resolve(live, at, parsed, &plan, |outcome, base| {
            Ok(found(live, base, outcome)?.fid)
        })
    }

    /// A fid at the directory that holds the last component.
    fn parent(&self, live: &Arc<Live>, at: At<'_>, parsed: &Parsed<'_>) -> Result<Fid> {
        self.node(live, at, &parent_of(parsed), true)
    }

    /// Makes one request on the directory that holds the last component, once at most.
    fn in_parent<'p>(
        &self,
        at: At<'_>,
        parsed: &Parsed<'_>,
        request: &'p dyn Fn(Fid) -> Request<'p>,
    ) -> Result<()> {
        let parent = parent_of(parsed);
        let requests = move |fid| vec![request(fid)];
        let plan = Plan {
            follow: true,
            careful: false,
            keep: false,
            requests: &requests,
            eager: None,
        };
        self.attempt(Repeat::OnlyUnsent, |live| {
            Self::resolve(live, at, &parent, &plan, |outcome, base| {
                one(&mut found(live, base, outcome)?).map(|_| ())
            })
        })
    }

    fn open_found(
        self: &Arc<Self>,
        live: &Arc<Live>,
        at: At<'_>,
        parsed: &Parsed<'_>,
        flags: OpenFlags,
    ) -> Result<Opened> {
        self.open_with(live, at, parsed, flags, |outcome, base| {
            found(live, base, outcome)
        })
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
        let opened = self.open_with(
            live,
            at,
            parsed,
            flags - OpenFlags::CREATE,
            |outcome, base| match outcome {
                Outcome::Missing(missing) => {
                    created = Some(self.create(live, base, missing, flags, mode)?);
                    Err(Error::Refused(Errno::ENOENT))
                }
                reached @ Outcome::Reached(_) => found(live, base, reached),
            },
        );
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
            listed.set(if as_directory {
                live.new_fid().ok()
            } else {
                None
            });
            let opened = listed.get().unwrap_or(fid);
            if let Some(new_fid) = listed.get() {
                requests.push(Request::Walk {
                    fid,
                    new_fid,
                    names: p9::Names::collect([]),
                });
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
        let first = move |fid| Request::Read {
            fid,
            offset: 0,
            count,
        };
        let reads_first = flags.reads()
            && count > 0
            && !place_only
            && !as_directory
            && !flags.contains(OpenFlags::TRUNCATE);
        let plan = Plan {
            follow,
            // Emptying what a link that a service follows by itself leads to cannot be undone.
            careful: flags.contains(OpenFlags::TRUNCATE),
            keep: true,
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
            let first = reached
                .eager
                .take()
                .map(|ticket| FirstRead::new(&live.connection, ticket, count));
            let fid = listed.get().unwrap_or(reached.fid);
            match opened_attributes(live, &reached, flags, place_only) {
                Ok(attributes) => {
                    let qid = if reached.path.is_empty() {
                        attributes.qid
                    } else {
                        reached.qid
                    };
                    let place = listed.get().map(|_| reached.fid);
                    let path = std::mem::take(&mut reached.path);
                    let handle = Handle::new(self, live, fid, place, path, flags, qid);
                    Ok(Opened {
                        handle,
                        attributes,
                        first,
                    })
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
        let mut requests = vec![Request::Lcreate {
            fid,
            name,
            flags,
            mode,
            gid: group(),
        }];
        requests.extend(getattr(fid));
        let tail = Tail {
            requests,
            eager: None,
            keep: true,
            careful: false,
        };
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
            let mut requests = vec![Request::Lcreate {
                fid,
                name,
                flags,
                mode,
                gid: group(),
            }];
            requests.extend(getattr(fid));
            requests
        };
        let plan = Plan {
            follow: true,
            careful: false,
            keep: true,
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
                Ok(Opened {
                    handle,
                    attributes,
                    first: None,
                })
            }
            Err(error) => {
                live.clunk(fid);
                Err(error)
            }
        }
    }
}

fn parse(path: &[u8]) -> Result<Parsed<'_>> {
    Parsed::new(path).map_err(Error::Refused)
}

/// The last component of a path that is about to be made: no `.`, `..` or nothing.
fn new_name(path: &[u8]) -> Result<(Parsed<'_>, &[u8])> {
    let parsed = parse(path)?;
    match (parsed.end, parsed.names.last().copied()) {
        (End::Name, Some(name)) => Ok((parsed, name)),
        _ if path.is_empty() => Err(Error::Refused(Errno::ENOENT)),
        _ => Err(Error::Refused(Errno::EEXIST)),
    }
}

/// The last component of a path that is about to be renamed.
fn busy_name(path: &[u8]) -> Result<(Parsed<'_>, &[u8])> {
    new_name(path).map_err(|error| match error {
        Error::Refused(Errno::EEXIST) => Error::Refused(Errno::EBUSY),
        other => other,
    })
}

fn parent_of<'a>(parsed: &Parsed<'a>) -> Parsed<'a> {
    let mut names = parsed.names.clone();
    names.pop();
    Parsed {
        names,
        directory: false,
        end: End::Name,
    }
}

/// A path without the slashes at its end.
fn trimmed(path: &[u8]) -> &[u8] {
    let len = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |last| last + 1);
    &path[..len]
}

fn same_parent(a: At<'_>, a_parsed: &Parsed<'_>, b: At<'_>, b_parsed: &Parsed<'_>) -> bool {
    let same_start = match (a.dir, b.dir) {
        (None, None) => true,
        (Some(a), Some(b)) => std::ptr::eq(a, b),
        _ => false,
    };
    let (a, b) = (&a_parsed.names, &b_parsed.names);
    same_start && a.len() == b.len() && a[..a.len() - 1] == b[..b.len() - 1]
}

/// The group for new files, as Linux's own client sends it; services may think otherwise.
fn group() -> u32 {
    rustix::process::getegid().as_raw()
}

fn getattr(fid: Fid) -> Vec<Request<'static>> {
    vec![Request::Getattr {
        fid,
        mask: GetattrMask::BASIC,
    }]
}

fn attributes_of(live: &Live, body: &Body) -> Result<Attributes> {
    match live.reply(body)? {
        Reply::Getattr { attributes } => Ok(attributes),
        _ => Err(Error::Refused(Errno::EPROTO)),
    }
}

/// The reply to a plan of one request.
fn one(reached: &mut Reached) -> Result<Body> {
    reached
        .replies
        .pop()
        .unwrap_or(Err(Error::Refused(Errno::EPROTO)))
}

/// Insists that the path exists.
fn found(live: &Live, base: Fid, outcome: Outcome<'_>) -> Result<Reached> {
    match outcome {
        Outcome::Reached(reached) => Ok(reached),
        Outcome::Missing(Missing {
            errno: Some(errno), ..
        }) => Err(Error::Refused(errno)),
        Outcome::Missing(missing) => {
            let names: Vec<&[u8]> = missing.names.iter().map(Cow::as_ref).collect();
            let errno = match names.split_last() {
                Some((name, parents)) => why_not(live, base, parents, name)?,
                None => Errno::ENOENT,
            };
            Err(Error::Refused(errno))
        }
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
