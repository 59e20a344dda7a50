//! Operations on paths.

use std::borrow::Cow;
use std::sync::Arc;

use p9::{
    Attributes, Errno, Fid, GetattrMask, QidType, Reply, Request, SetAttributes, SetattrMask,
    StatFs, UNLINK_DIRECTORY,
};

use crate::connection::Body;
use crate::error::{Error, Result};
use crate::live::Live;
use crate::path::{End, Parsed};
use crate::resolve::{Missing, Outcome, Plan, Reached, why_not};
use crate::session::{At, Repeat, Session};
use crate::xattr;

impl Session {
    /// What stat(2), or without `follow` lstat(2), tells: one round trip.
    ///
    /// # Errors
    /// As stat(2); [`Error::AbsoluteLink`] where a symbolic link leads out of the service.
    pub fn stat(&self, at: At<'_>, follow: bool) -> Result<Attributes> {
        self.on_node(at, Repeat::Safe, follow, false, &getattr, |live, mut reached| {
            let body = one(&mut reached)?;
            match live.reply(&body)? {
                Reply::Getattr { attributes } => Ok(attributes),
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
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
        let outcome =
            self.on_node(at, Repeat::Safe, follow, careful, &request, |_, mut reached| {
                one(&mut reached).map(|_| ())
            });
        if set.valid.contains(SetattrMask::SIZE) {
            // It may be open, by this name or another.
            self.files().invalidate_all();
        }
        outcome
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As mkdir(2); and as [`Session::stat`].
    pub fn make_directory(&self, at: At<'_>, mode: u32) -> Result<()> {
        let (parsed, name) = new_name(at.path)?;
        self.in_parent(at, &parsed, &|dir| Request::Mkdir { dir, name, mode, gid: group() })
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
        self.in_parent(at, &parsed, &|dir| Request::Symlink { dir, name, target, gid: group() })
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
            let attributes = self.stat(At { path: trimmed(at.path), ..at }, false)?;
            let errno = if attributes.is_directory() { Errno::EISDIR } else { Errno::ENOTDIR };
            return refuse(errno);
        }
        let flags = if directory { UNLINK_DIRECTORY } else { 0 };
        match self.in_parent(at, &parsed, &|dir| Request::Unlinkat { dir, name, flags }) {
            Err(Error::Refused(Errno::EOPNOTSUPP)) => self.remove_node(at, &parsed, directory),
            other => other,
        }
    }

    /// Removes with the request that all services have; it does not tell files from directories.
    fn remove_node(&self, at: At<'_>, parsed: &Parsed<'_>, directory: bool) -> Result<()> {
        let parsed = Parsed { directory: false, ..parsed.clone() };
        self.attempt(Repeat::OnlyUnsent, |live| {
            let node = self.node(live, at, &parsed, false)?;
            let errno = match node.qid.kind.contains(QidType::DIR) {
                true if !directory => Some(Errno::EISDIR),
                false if directory => Some(Errno::ENOTDIR),
                _ => None,
            };
            if let Some(errno) = errno {
                live.clunk(node.fid);
                return Err(Error::Refused(errno));
            }
            // The fid is gone afterwards, also when the file is not (remove(5)).
            let outcome = live.connection.call(&Request::Remove { fid: node.fid });
            live.release(node.fid);
            outcome.map(|_| ())
        })
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
            let attributes = self.stat(At { path: trimmed(from.path), ..from }, false)?;
            if !attributes.is_directory() {
                return Err(Error::Refused(Errno::ENOTDIR));
            }
        }
        if no_replace {
            match self.stat(At { path: trimmed(to.path), ..to }, false) {
                Ok(_) => return Err(Error::Refused(Errno::EEXIST)),
                Err(Error::Refused(Errno::ENOENT)) => {}
                Err(error) => return Err(error),
            }
        }
        let outcome = if same_parent(from, &old_parsed, to, &new_parsed) {
            self.in_parent(from, &old_parsed, &|dir| Request::Renameat {
                old_dir: dir,
                old_name,
                new_dir: dir,
                new_name,
            })
        } else {
            self.attempt(Repeat::OnlyUnsent, |live| {
                let old_dir = self.parent(live, from, &old_parsed)?;
                let outcome = self.parent(live, to, &new_parsed).and_then(|new_dir| {
                    let request = Request::Renameat { old_dir, old_name, new_dir, new_name };
                    let outcome = live.connection.call(&request).map(|_| ());
                    live.clunk(new_dir);
                    outcome
                });
                live.clunk(old_dir);
                outcome
            })
        };
        match outcome {
            Err(Error::Refused(Errno::EOPNOTSUPP)) => {
                self.rename_node(from, &old_parsed, to, &new_parsed, new_name)
            }
            other => other,
        }
    }

    /// Renames with the older request that takes the file itself.
    fn rename_node(
        &self,
        from: At<'_>,
        old_parsed: &Parsed<'_>,
        to: At<'_>,
        new_parsed: &Parsed<'_>,
        name: &[u8],
    ) -> Result<()> {
        let old_parsed = Parsed { directory: false, ..old_parsed.clone() };
        self.attempt(Repeat::OnlyUnsent, |live| {
            let fid = self.node(live, from, &old_parsed, false)?.fid;
            let outcome = self.parent(live, to, new_parsed).and_then(|dir| {
                let outcome = live.connection.call(&Request::Rename { fid, dir, name });
                live.clunk(dir);
                outcome.map(|_| ())
            });
            live.clunk(fid);
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
            let fid = self.node(live, from, &old_parsed, follow)?.fid;
            let outcome = self.parent(live, to, &new_parsed).and_then(|dir| {
                let outcome = live.connection.call(&Request::Link { dir, fid, name }).map(|_| ());
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
        self.on_node(at, Repeat::Safe, false, false, &request, |live, mut reached| {
            if !reached.qid.kind.contains(QidType::SYMLINK) {
                return Err(Error::Refused(Errno::EINVAL));
            }
            let body = one(&mut reached)?;
            match live.reply(&body)? {
                Reply::Readlink { target } => Ok(target.to_vec()),
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
    }

    /// Room of the file system at a path.
    ///
    /// # Errors
    /// As statfs(2); and as [`Session::stat`].
    pub fn statfs(&self, at: At<'_>) -> Result<StatFs> {
        let request = |fid| vec![Request::Statfs { fid }];
        self.on_node(at, Repeat::Safe, true, false, &request, |live, mut reached| {
            let body = one(&mut reached)?;
            match live.reply(&body)? {
                Reply::Statfs { statfs } => Ok(statfs),
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
    }

    /// The value of an extended attribute; with an empty name the names of all, each ended by a
    /// NUL.
    ///
    /// # Errors
    /// As getxattr(2), listxattr(2); and as [`Session::stat`].
    pub fn xattr(&self, at: At<'_>, follow: bool, name: &[u8]) -> Result<Vec<u8>> {
        let parsed = parse(at.path)?;
        self.attempt(Repeat::Safe, |live| {
            let fid = self.node(live, at, &parsed, follow)?.fid;
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
            let fid = self.node(live, at, &parsed, follow)?.fid;
            let requests = xattr::create(&live.connection, fid, name, value, flags)?;
            xattr::created(live, fid, live.one_by_one(&requests)?)
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
            // Programs look for files that are not there all the time.
            alone: true,
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
    fn node(
        &self,
        live: &Arc<Live>,
        at: At<'_>,
        parsed: &Parsed<'_>,
        follow: bool,
    ) -> Result<Reached> {
        let plan = Plan {
            follow,
            careful: false,
            keep: true,
            alone: false,
            requests: &|_| Vec::new(),
            eager: None,
        };
        Self::resolve(live, at, parsed, &plan, |outcome, base| found(live, base, outcome))
    }

    /// A fid at the directory that holds the last component.
    fn parent(&self, live: &Arc<Live>, at: At<'_>, parsed: &Parsed<'_>) -> Result<Fid> {
        Ok(self.node(live, at, &parent_of(parsed), true)?.fid)
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
            alone: false,
            requests: &requests,
            eager: None,
        };
        self.attempt(Repeat::OnlyUnsent, |live| {
            Self::resolve(live, at, &parent, &plan, |outcome, base| {
                one(&mut found(live, base, outcome)?).map(|_| ())
            })
        })
    }
}

pub(crate) fn parse(path: &[u8]) -> Result<Parsed<'_>> {
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

pub(crate) fn parent_of<'a>(parsed: &Parsed<'a>) -> Parsed<'a> {
    let mut names = parsed.names.clone();
    names.pop();
    Parsed { names, directory: false, end: End::Name }
}

/// A path without the slashes at its end.
fn trimmed(path: &[u8]) -> &[u8] {
    let len = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
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
pub(crate) fn group() -> u32 {
    rustix::process::getegid().as_raw()
}

pub(crate) fn getattr(fid: Fid) -> Vec<Request<'static>> {
    vec![Request::Getattr { fid, mask: GetattrMask::BASIC }]
}

/// The reply to a plan of one request.
fn one(reached: &mut Reached) -> Result<Body> {
    reached.replies.pop().unwrap_or(Err(Error::Refused(Errno::EPROTO)))
}

/// Insists that the path exists.
pub(crate) fn found(live: &Live, base: Fid, outcome: Outcome<'_>) -> Result<Reached> {
    match outcome {
        Outcome::Reached(reached) => Ok(reached),
        Outcome::Missing(Missing { errno: Some(errno), .. }) => Err(Error::Refused(errno)),
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
