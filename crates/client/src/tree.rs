//! Operations on one fid and names beside it, for who keeps a tree of fids: a store that relays
//! another service. Symbolic links are not followed and paths not resolved.

use std::sync::Arc;

use p9::{Errno, Fid, OpenFlags, Qid, QidType, Reply, Request, UNLINK_DIRECTORY};

use crate::connection::Body;
use crate::error::{Error, Result};
use crate::handle::{Handle, O_PATH};
use crate::live::{Live, Tail};
use crate::namespace::group;
use crate::path::{join, names_of};
use crate::session::Repeat;

impl Handle {
    /// Walks by names, `..` included, as walk(5) does: the identities of those reached, and a place
    /// (opened with `O_PATH`) at the end when all were.
    ///
    /// # Errors
    /// When the first name cannot be reached; and as [`Handle::with`].
    pub fn walk(&self, names: &[&[u8]]) -> Result<(Vec<Qid>, Option<Handle>)> {
        self.session().attempt(Repeat::Safe, |live| {
            let fid = live.new_fid()?;
            let tail = Tail { keep: true, ..Tail::default() };
            let walked = live.step(self.place(live)?, names, fid, tail)?.walked;
            if walked.complete {
                let qid = walked.qids.last().copied().unwrap_or(self.qid());
                let place = self.beside(live, fid, names, O_PATH, qid);
                return Ok((walked.qids, Some(place)));
            }
            match walked.errno {
                Some(errno) if walked.qids.is_empty() => Err(Error::Refused(errno)),
                _ => Ok((walked.qids, None)),
            }
        })
    }

    /// Opens what stands at this place.
    ///
    /// # Errors
    /// As open(2), and as [`Handle::with`].
    pub fn open_here(&self, flags: OpenFlags) -> Result<Handle> {
        self.session().attempt(Repeat::Safe, |live| {
            let fid = live.new_fid()?;
            let requests = vec![Request::Lopen { fid, flags }];
            let tail = Tail { requests, keep: true, ..Tail::default() };
            let mut step = live.step(self.place(live)?, &[], fid, tail)?;
            if !step.walked.complete {
                return Err(Error::Refused(step.walked.errno.unwrap_or(Errno::ESTALE)));
            }
            let qid = match last(&mut step.replies).and_then(|body| match live.reply(&body)? {
                Reply::Lopen { qid, .. } => Ok(qid),
                _ => Err(Error::Refused(Errno::EPROTO)),
            }) {
                Ok(qid) => qid,
                Err(error) => {
                    live.clunk(fid);
                    return Err(error);
                }
            };
            Ok(self.beside(live, fid, &[], flags, qid))
        })
    }

    /// Creates a regular file in this directory and opens it: a place and the opening.
    ///
    /// # Errors
    /// As open(2) with `O_CREAT`, and as [`Handle::with`].
    pub fn create_here(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Handle, Handle)> {
        let exclusive = flags.contains(OpenFlags::EXCLUSIVE);
        let repeat = if exclusive { Repeat::OnlyUnsent } else { Repeat::Safe };
        self.session().attempt(repeat, |live| {
            let dir = self.place(live)?;
            let fid = live.new_fid()?;
            let requests = vec![Request::Lcreate { fid, name, flags, mode, gid: group() }];
            let tail = Tail { requests, keep: true, ..Tail::default() };
            let mut step = live.step(dir, &[], fid, tail)?;
            if !step.walked.complete {
                return Err(Error::Refused(step.walked.errno.unwrap_or(Errno::ESTALE)));
            }
            let created = last(&mut step.replies).and_then(|body| match live.reply(&body)? {
                Reply::Lcreate { qid, .. } => Ok(qid),
                _ => Err(Error::Refused(Errno::EPROTO)),
            });
            let qid = match created {
                Ok(qid) => qid,
                Err(error) => {
                    live.clunk(fid);
                    return Err(error);
                }
            };
            let opened = self.beside(live, fid, &[name], flags, qid);
            // A fid that was opened cannot be walked from (walk(5)), so the place has its own. It
            // is the same file unless somebody moved it just now; then it is found at its next use.
            let place = live.new_fid()?;
            let tail = Tail { keep: true, ..Tail::default() };
            let walked = live.step(dir, &[name], place, tail)?.walked;
            match walked.qids.last() {
                Some(found) if walked.complete && found.path == qid.path => {
                    Ok((self.beside(live, place, &[name], O_PATH, qid), opened))
                }
                _ => {
                    if walked.complete {
                        live.clunk(place);
                    }
                    Err(Error::Refused(Errno::ESTALE))
                }
            }
        })
    }

    /// Makes a directory in this one.
    ///
    /// # Errors
    /// As mkdir(2), and as [`Handle::with`].
    pub fn make_directory_here(&self, name: &[u8], mode: u32) -> Result<Qid> {
        self.once(|live| {
            let dir = self.place(live)?;
            let body = live.connection.call(&Request::Mkdir { dir, name, mode, gid: group() })?;
            match live.reply(&body)? {
                Reply::Mkdir { qid } => Ok(qid),
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
    }

    /// Makes a symbolic link in this directory.
    ///
    /// # Errors
    /// As symlink(2), and as [`Handle::with`].
    pub fn symlink_here(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        self.once(|live| {
            let dir = self.place(live)?;
            let request = Request::Symlink { dir, name, target, gid: group() };
            let body = live.connection.call(&request)?;
            match live.reply(&body)? {
                Reply::Symlink { qid } => Ok(qid),
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
    }

    /// Makes `name` in this directory another name of `existing`, a place of the same session.
    ///
    /// # Errors
    /// As link(2), and as [`Handle::with`].
    pub fn link_here(&self, existing: &Handle, name: &[u8]) -> Result<()> {
        self.once(|live| {
            let (dir, fid) = (self.place(live)?, existing.place(live)?);
            live.connection.call(&Request::Link { dir, fid, name }).map(|_| ())
        })
    }

    /// Moves `old` in this directory to `new` in `new_dir`, a place of the same session.
    ///
    /// # Errors
    /// As rename(2), and as [`Handle::with`].
    pub fn rename_here(&self, old: &[u8], new_dir: &Handle, new: &[u8]) -> Result<()> {
        self.once(|live| {
            let (old_dir, new_dir) = (self.place(live)?, new_dir.place(live)?);
            let (old_name, new_name) = (old, new);
            let request = Request::Renameat { old_dir, old_name, new_dir, new_name };
            match live.connection.call(&request) {
                Err(Error::Refused(Errno::EOPNOTSUPP)) => {
                    // The older request, which takes the file itself.
                    self.on_child(live, old_dir, old, |fid, _| {
                        let request = Request::Rename { fid, dir: new_dir, name: new };
                        let outcome = live.connection.call(&request).map(|_| ());
                        live.clunk(fid);
                        outcome
                    })
                }
                other => other.map(|_| ()),
            }
        })
    }

    /// Removes `name`, which must be a directory exactly when `directory` says so.
    ///
    /// # Errors
    /// As unlinkat(2), and as [`Handle::with`].
    pub fn remove_here(&self, name: &[u8], directory: bool) -> Result<()> {
        let flags = if directory { UNLINK_DIRECTORY } else { 0 };
        self.once(|live| {
            let dir = self.place(live)?;
            match live.connection.call(&Request::Unlinkat { dir, name, flags }) {
                Err(Error::Refused(Errno::EOPNOTSUPP)) => {
                    // The older request, which takes what there is.
                    self.on_child(live, dir, name, |fid, qid| {
                        let errno = match qid.kind.contains(QidType::DIR) {
                            true if !directory => Errno::EISDIR,
                            false if directory => Errno::ENOTDIR,
                            _ => {
                                let outcome = live.connection.call(&Request::Remove { fid });
                                live.release(fid);
                                return outcome.map(|_| ());
                            }
                        };
                        live.clunk(fid);
                        Err(Error::Refused(errno))
                    })
                }
                other => other.map(|_| ()),
            }
        })
    }

    /// The target of the symbolic link at this place.
    ///
    /// # Errors
    /// As readlink(2), and as [`Handle::with`].
    pub fn read_link_here(&self) -> Result<Vec<u8>> {
        self.session().attempt(Repeat::Safe, |live| {
            let body = live.connection.call(&Request::Readlink { fid: self.place(live)? })?;
            match live.reply(&body)? {
                Reply::Readlink { target } => Ok(target.to_vec()),
                _ => Err(Error::Refused(Errno::EPROTO)),
            }
        })
    }

    fn once<T>(&self, work: impl FnMut(&Arc<Live>) -> Result<T>) -> Result<T> {
        self.session().attempt(Repeat::OnlyUnsent, work)
    }

    fn on_child(
        &self,
        live: &Live,
        dir: Fid,
        name: &[u8],
        work: impl FnOnce(Fid, Qid) -> Result<()>,
    ) -> Result<()> {
        let fid = live.new_fid()?;
        let tail = Tail { keep: true, careful: true, ..Tail::default() };
        let walked = live.step(dir, &[name], fid, tail)?.walked;
        match walked.qids.last() {
            Some(qid) if walked.complete => work(fid, *qid),
            _ => Err(Error::Refused(walked.errno.unwrap_or(Errno::ENOENT))),
        }
    }

    /// A handle for a fid that `names` lead to from here.
    fn beside(&self, live: &Live, fid: Fid, names: &[&[u8]], flags: OpenFlags, qid: Qid) -> Handle {
        let path = self.location();
        let mut way = names_of(&path);
        for name in names {
            if *name == b".." {
                way.pop();
            } else {
                way.push(name);
            }
        }
        Handle::new(self.session(), live, fid, None, join(way), flags, qid)
    }
}

fn last(replies: &mut Vec<Result<Body>>) -> Result<Body> {
    replies.pop().unwrap_or(Err(Error::Refused(Errno::EPROTO)))
}
