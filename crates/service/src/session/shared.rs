//! Requests that both dialects have.

use std::sync::Arc;

use p9::frame::READ_REPLY_OVERHEAD;
use p9::{Data, Dialect, Errno, Fid, OpenFlags, Qid, QidType, Qids, Reply, Request};
use rustix::buffer::spare_capacity;
use store::{Node, Walk};

use super::fids::{Entry, Opened, State};
use super::names::{check_element, tree_elements};
use super::{Out, Outcome, Refusal, Session};

/// From here on a read by descriptor fills fresh memory without zeroing it first.
const FRESH_READ_BYTES: usize = 64 << 10;

impl Session {
    pub(super) fn act_shared(&self, request: &Request<'_>, out: &mut Out<'_>) -> Outcome {
        match request {
            // Without an authentication service every Tauth is refused; diod's clients go on
            // only if the number is ENOENT.
            Request::Auth { .. } => {
                Err(Refusal::worded(Errno::ENOENT, "authentication not required"))
            }
            Request::Attach { fid, afid, aname, .. } => self.attach(*fid, *afid, aname, out),
            // Whoever calls answers one request after the other, so nothing is left to give up.
            Request::Flush { .. } => {
                out.reply(&Reply::Flush {});
                Ok(())
            }
            Request::Walk { fid, new_fid, names } => {
                self.walk(*fid, *new_fid, names.as_slice(), out)
            }
            Request::Read { fid, offset, count } => self.read(*fid, *offset, *count, out),
            Request::Write { fid, offset, data: Data(data) } => {
                let entry = self.fids.get(*fid)?;
                let count = match &entry.state {
                    State::XattrWrite(value) => value.write(*offset, data)?,
                    State::Walked | State::Open(_) | State::XattrRead(_) => {
                        entry.opened()?.writable()?.write_at(data, *offset)?
                    }
                };
                out.reply(&Reply::Write { count: count as u32 });
                Ok(())
            }
            Request::Clunk { fid } => {
                let entry = self.fids.remove(*fid)?;
                let closed = entry.close();
                match &entry.state {
                    State::XattrWrite(value) => value.finish(&*entry.node)?,
                    State::Open(opened) if opened.remove_on_clunk => {
                        remove_by_node(&*entry.node)?;
                    }
                    State::Walked | State::Open(_) | State::XattrRead(_) => {}
                }
                // The fid is gone even if closing has failed (clunk(5)).
                closed?;
                out.reply(&Reply::Clunk {});
                Ok(())
            }
            Request::Remove { fid } => {
                // The fid is gone even if the removal fails (remove(5)).
                let entry = self.fids.remove(*fid)?;
                remove_by_node(&**entry.file()?)?;
                out.reply(&Reply::Remove {});
                Ok(())
            }
            _ => Err(Errno::EOPNOTSUPP.into()),
        }
    }

    fn attach(&self, fid: Fid, afid: Fid, tree: &[u8], out: &mut Out<'_>) -> Outcome {
        if afid != Fid::NONE {
            return Err(Errno::EBADF.into());
        }
        self.fids.check_free(fid)?;
        let root = self.store.root()?;
        let names: Vec<&[u8]> = tree_elements(tree).collect();
        let node = if names.is_empty() {
            root
        } else {
            let walk = walk_within(&root, root.qid(), &names)?;
            // A last element that is missing must not read as "attached halfway".
            walk.end.ok_or(Errno::ENOENT)?
        };
        let qid = node.qid();
        self.fids.insert(fid, Entry::walked(node, qid))?;
        out.reply(&Reply::Attach { qid });
        Ok(())
    }

    fn walk(&self, fid: Fid, new_fid: Fid, names: &[&[u8]], out: &mut Out<'_>) -> Outcome {
        let entry = self.fids.get(fid)?;
        let node = entry.file()?;
        if new_fid == fid {
            if !names.is_empty() {
                entry.unopened()?;
            }
        } else {
            self.fids.check_free(new_fid)?;
        }
        // To walk an open fid to itself says in Sluice's dialect that its opening is over and was not closed: so a relay
        // tells of a client that it has lost.
        let is_told_apart = self.terms().map(|terms| terms.dialect) == Some(Dialect::Sluice);
        if new_fid == fid && names.is_empty() && is_told_apart && entry.opened().is_ok() {
            self.fids.replace(fid, &entry, Entry::walked(Arc::clone(node), entry.root))?;
            entry.lose();
        }
        // Also with no names at all the store makes a node of its own: what one fid opens must not
        // stay open through another.
        let walk = if names.is_empty() {
            if new_fid == fid { Walk { qids: Vec::new(), end: None } } else { node.walk(&[])? }
        } else {
            walk_within(node, entry.root, names)?
        };
        if let Some(end) = walk.end {
            let walked = Entry::walked(end, entry.root);
            if new_fid != fid {
                self.fids.insert(new_fid, walked)?;
            } else {
                self.fids.replace(fid, &entry, walked)?;
            }
        }
        out.reply(&Reply::Walk { qids: Qids::collect(walk.qids) });
        Ok(())
    }

    fn read(&self, fid: Fid, offset: u64, count: u32, out: &mut Out<'_>) -> Outcome {
        let entry = self.fids.get(fid)?;
        let count = self.data_room(count);
        if let State::XattrRead(value) = &entry.state {
            out.reply(&Reply::Read { data: Data(value.part(offset, count)) });
            return Ok(());
        }
        let opened = entry.opened()?;
        if entry.node.qid().kind.contains(QidType::DIR) {
            return match self.terms().map(|terms| terms.dialect) {
                Some(Dialect::Plan9) => self.read_directory_legacy(&entry, offset, count, out),
                Some(Dialect::Linux | Dialect::Sluice) | None => Err(Errno::EISDIR.into()),
            };
        }
        out.data_reply(&Reply::Read { data: Data(&[]) }, |bytes| {
            read_file(opened, offset, count, bytes)
        })
    }

    /// How much data an answer may carry if `count` bytes are asked for: a client that forgets
    /// the agreed message size gets less, not an oversized frame.
    pub(crate) fn data_room(&self, count: u32) -> usize {
        count.min(self.msize() - READ_REPLY_OVERHEAD as u32) as usize
    }

    /// Whether reads through `fid` depend on their offsets only, not on each other. Only base
    /// 9P2000's listing of directories is different.
    pub(crate) fn reads_by_range(&self, fid: Fid) -> bool {
        match self.terms().map(|terms| terms.dialect) {
            Some(Dialect::Linux | Dialect::Sluice) | None => true,
            Some(Dialect::Plan9) => {
                self.fids.get(fid).is_ok_and(|entry| !entry.node.qid().kind.contains(QidType::DIR))
            }
        }
    }

    /// Whether writes through `fid` concern only the bytes that they name. Not so for appending,
    /// for extended attributes, and for what is not known yet.
    pub(crate) fn writes_by_range(&self, fid: Fid) -> bool {
        let appends = |opened: &Opened| opened.flags.contains(OpenFlags::APPEND);
        self.fids
            .get(fid)
            .is_ok_and(|entry| matches!(&entry.state, State::Open(opened) if !appends(opened)))
    }

    /// Whether a request may wait for something other than the local file system's cache.
    pub(crate) fn may_wait(&self, request: &Request<'_>) -> bool {
        let remote = |fid: &Fid| self.fids.get(*fid).is_ok_and(|entry| entry.blocks);
        match request {
            Request::Fsync { .. } | Request::Lock { .. } | Request::Getlock { .. } => true,
            Request::Version { .. } | Request::Auth { .. } | Request::Flush { .. } => false,
            Request::Attach { .. } => self.store.blocks(),
            Request::Walk { fid, .. }
            | Request::Read { fid, .. }
            | Request::Write { fid, .. }
            | Request::Clunk { fid }
            | Request::Remove { fid }
            | Request::Statfs { fid }
            | Request::Lopen { fid, .. }
            | Request::Lcreate { fid, .. }
            | Request::Readlink { fid }
            | Request::Getattr { fid, .. }
            | Request::Setattr { fid, .. }
            | Request::Xattrwalk { fid, .. }
            | Request::Xattrcreate { fid, .. }
            | Request::Readdir { fid, .. }
            | Request::Open { fid, .. }
            | Request::Create { fid, .. }
            | Request::Stat { fid }
            | Request::Wstat { fid, .. } => remote(fid),
            Request::Symlink { dir, .. }
            | Request::Mknod { dir, .. }
            | Request::Mkdir { dir, .. }
            | Request::Unlinkat { dir, .. } => remote(dir),
            Request::Rename { fid, dir, .. } | Request::Link { fid, dir, .. } => {
                remote(fid) || remote(dir)
            }
            Request::Renameat { old_dir, new_dir, .. } => remote(old_dir) || remote(new_dir),
        }
    }

    /// What `fid` stands for, for those who move its bytes past the session.
    pub(crate) fn entry(&self, fid: Fid) -> Outcome<Arc<Entry>> {
        self.fids.get(fid)
    }
}

/// Appends up to `count` bytes of a file to `bytes`.
fn read_file(opened: &Opened, offset: u64, count: usize, bytes: &mut Vec<u8>) -> Outcome {
    let node = opened.readable()?;
    let start = bytes.len();
    if count >= FRESH_READ_BYTES
        && let Some(fd) = node.as_fd()
    {
        bytes.reserve_exact(count);
        // The kernel fills all the spare room, so there must not be much more than asked for.
        if bytes.capacity() - start <= count + count / 8 {
            while bytes.len() < start + count {
                let at = offset + (bytes.len() - start) as u64;
                match rustix::io::pread(fd, spare_capacity(bytes), at) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(rustix::io::Errno::INTR) => {}
                    Err(errno) => return Err(Errno::from_raw(errno.raw_os_error()).into()),
                }
            }
            bytes.truncate(start + count);
            return Ok(());
        }
    }
    bytes.resize(start + count, 0);
    let read = node.read_at(&mut bytes[start..], offset)?;
    bytes.truncate(start + read.min(count));
    Ok(())
}

/// Walks by names, never above `root`.
fn walk_within(node: &Arc<dyn Node>, root: Qid, names: &[&[u8]]) -> Outcome<Walk> {
    check_element(names[0])?;
    // A bad element later on only ends the walk.
    let good = names.iter().take_while(|name| check_element(name).is_ok()).count();
    let special = |name: &&[u8]| matches!(*name, b"." | b"..");
    let mut walk = if names[..good].iter().any(special) {
        walk_singly(node, root, &names[..good])?
    } else {
        node.walk(&names[..good])?
    };
    if good < names.len() {
        walk.end = None;
    }
    Ok(walk)
}

/// Walks element by element, so that `.` stays and `..` stops at `root`.
fn walk_singly(node: &Arc<dyn Node>, root: Qid, names: &[&[u8]]) -> Outcome<Walk> {
    // A node of its own, also if every element stays.
    let mut at = node.walk(&[])?.end.ok_or(Errno::EIO)?;
    let mut qids = Vec::with_capacity(names.len());
    for name in names {
        let stays = *name == b"." || *name == b".." && at.qid().path == root.path;
        let step = match stays {
            true if at.qid().kind.contains(QidType::DIR) => {
                qids.push(at.qid());
                continue;
            }
            true => Err(Refusal::from(Errno::ENOTDIR)),
            false => at.walk(std::slice::from_ref(name)).map_err(Refusal::from),
        };
        match step {
            Ok(Walk { qids: step, end: Some(next) }) => {
                qids.extend(step);
                at = next;
            }
            Err(refusal) if qids.is_empty() => return Err(refusal),
            Ok(Walk { end: None, .. }) | Err(_) => return Ok(Walk { qids, end: None }),
        }
    }
    Ok(Walk { qids, end: Some(at) })
}

/// Removes a file that is named by a fid only.
fn remove_by_node(node: &dyn Node) -> Outcome {
    let directory = node.qid().kind.contains(QidType::DIR);
    let (parent, name) = node.parent()?;
    Ok(parent.remove(&name, directory)?)
}

impl Out<'_> {
    /// Appends an answer whose data `fill` appends, and puts the lengths in afterwards. `empty`
    /// is the answer with no data.
    pub(super) fn data_reply(
        &mut self,
        empty: &Reply<'_>,
        fill: impl FnOnce(&mut Vec<u8>) -> Outcome,
    ) -> Outcome {
        let start = self.bytes.len();
        self.reply(empty);
        let data_start = self.bytes.len();
        fill(self.bytes)?;
        let count = (self.bytes.len() - data_start) as u32;
        let size = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&size.to_le_bytes());
        self.bytes[data_start - 4..data_start].copy_from_slice(&count.to_le_bytes());
        Ok(())
    }
}
