//! Requests that only 9P2000.L has.

use std::sync::Arc;

use p9::{
    Data, Dialect, DirEntry, Errno, Fid, GetattrMask, OpenFlags, QidType, Reply, Request,
    SetattrMask, UNLINK_DIRECTORY,
};
use store::LockRange;

use super::fids::{Entry, Opened, State};
use super::names::check_entry;
use super::xattr::{XattrRead, XattrWrite};
use super::{Out, Outcome, Session};

/// Open flags that mean something to a store; what else a client's open(2) had is its own affair.
const OPEN_FLAGS: OpenFlags = OpenFlags::WRITE_ONLY
    .union(OpenFlags::READ_WRITE)
    .union(OpenFlags::EXCLUSIVE)
    .union(OpenFlags::TRUNCATE)
    .union(OpenFlags::APPEND)
    .union(OpenFlags::NONBLOCK)
    .union(OpenFlags::DIRECTORY)
    .union(OpenFlags::NOFOLLOW)
    .union(OpenFlags::SYNC);

impl Session {
    pub(super) fn act_linux(&self, request: &Request<'_>, out: &mut Out<'_>) -> Outcome {
        match request {
            Request::Lopen { fid, flags } => self.lopen(*fid, *flags, out),
            Request::Lcreate { fid, name, flags, mode, .. } => {
                self.lcreate(*fid, name, *flags, *mode, out)
            }
            Request::Statfs { fid } => {
                let statfs = self.fids.get(*fid)?.file()?.statfs()?;
                reply(out, &Reply::Statfs { statfs })
            }
            Request::Getattr { fid, .. } => {
                let entry = self.fids.get(*fid)?;
                let mut attributes = match &entry.state {
                    State::Open(opened) => opened.node.attributes()?,
                    State::Walked | State::XattrRead(_) | State::XattrWrite(_) => {
                        entry.file()?.attributes()?
                    }
                };
                if self.terms().map(|terms| terms.dialect) != Some(Dialect::Sluice) {
                    attributes.valid -= GetattrMask::CLOSE_COUNTS;
                }
                reply(out, &Reply::Getattr { attributes })
            }
            Request::Setattr { fid, set } => {
                let entry = self.fids.get(*fid)?;
                let node = entry.file()?;
                match &entry.state {
                    // An open file may have lost its name. But ftruncate(2) wants a file open for
                    // writing, and a client may well set the size through a fid it reads from.
                    State::Open(opened)
                        if opened.flags.writes() || !set.valid.contains(SetattrMask::SIZE) =>
                    {
                        opened.node.set_attributes(set)?;
                    }
                    State::Open(_) | State::Walked | State::XattrRead(_) | State::XattrWrite(_) => {
                        node.set_attributes(set)?
                    }
                }
                reply(out, &Reply::Setattr {})
            }
            Request::Readdir { fid, offset, count } => self.readdir(*fid, *offset, *count, out),
            Request::Fsync { fid, data_only } => {
                let data_only = data_only.0.is_some_and(|value| value != 0);
                self.fids.get(*fid)?.opened()?.node.sync(data_only)?;
                reply(out, &Reply::Fsync {})
            }
            Request::Lock { fid, kind, start, length, process, client, .. } => {
                let range = LockRange { kind: *kind, start: *start, length: *length };
                self.wanted(*fid, (client, *process), range)?.take(out)
            }
            Request::Getlock { fid, kind, start, length, process, client } => {
                let range = LockRange { kind: *kind, start: *start, length: *length };
                self.wanted(*fid, (client, *process), range)?.find(out)
            }
            Request::Readlink { fid } => {
                let target = self.fids.get(*fid)?.file()?.read_link()?;
                reply(out, &Reply::Readlink { target: &target })
            }
            Request::Xattrwalk { fid, new_fid, name } => self.xattrwalk(*fid, *new_fid, name, out),
            Request::Xattrcreate { fid, name, size, flags } => {
                let entry = self.fids.get(*fid)?;
                entry.unopened()?;
                let value = XattrWrite::new(name, *size, *flags)?;
                self.fids.replace(*fid, &entry, entry.with_state(State::XattrWrite(value)))?;
                reply(out, &Reply::Xattrcreate {})
            }
            Request::Symlink { .. }
            | Request::Mknod { .. }
            | Request::Mkdir { .. }
            | Request::Link { .. }
            | Request::Rename { .. }
            | Request::Renameat { .. }
            | Request::Unlinkat { .. } => self.change_directory(request, out),
            _ => Err(Errno::EOPNOTSUPP.into()),
        }
    }

    /// Requests that change what a directory holds.
    fn change_directory(&self, request: &Request<'_>, out: &mut Out<'_>) -> Outcome {
        let node = |fid: Fid| -> Outcome<Arc<dyn store::Node>> {
            Ok(Arc::clone(self.fids.get(fid)?.file()?))
        };
        match request {
            Request::Symlink { dir, name, target, .. } => {
                check_entry(name)?;
                let qid = node(*dir)?.make_symlink(name, target)?;
                reply(out, &Reply::Symlink { qid })
            }
            // Devices, FIFOs and sockets belong to the machine that has them.
            Request::Mknod { .. } => Err(Errno::EOPNOTSUPP.into()),
            Request::Mkdir { dir, name, mode, .. } => {
                check_entry(name)?;
                let qid = node(*dir)?.make_directory(name, *mode)?;
                reply(out, &Reply::Mkdir { qid })
            }
            Request::Link { dir, fid, name } => {
                check_entry(name)?;
                node(*dir)?.link(&*node(*fid)?, name)?;
                reply(out, &Reply::Link {})
            }
            Request::Rename { fid, dir, name } => {
                check_entry(name)?;
                let (parent, old) = node(*fid)?.parent()?;
                parent.rename(&old, &*node(*dir)?, name)?;
                reply(out, &Reply::Rename {})
            }
            Request::Renameat { old_dir, old_name, new_dir, new_name } => {
                check_entry(old_name)?;
                check_entry(new_name)?;
                node(*old_dir)?.rename(old_name, &*node(*new_dir)?, new_name)?;
                reply(out, &Reply::Renameat {})
            }
            Request::Unlinkat { dir, name, flags } => {
                check_entry(name)?;
                if flags & !UNLINK_DIRECTORY != 0 {
                    return Err(Errno::EINVAL.into());
                }
                node(*dir)?.remove(name, flags & UNLINK_DIRECTORY != 0)?;
                reply(out, &Reply::Unlinkat {})
            }
            _ => Err(Errno::EOPNOTSUPP.into()),
        }
    }

    fn lopen(&self, fid: Fid, flags: OpenFlags, out: &mut Out<'_>) -> Outcome {
        let entry = self.fids.get(fid)?;
        let flags = flags & OPEN_FLAGS;
        let opened = entry.unopened()?.open(flags)?;
        let state = State::Open(Opened::new(opened, flags));
        self.fids.replace(fid, &entry, entry.with_state(state))?;
        reply(out, &Reply::Lopen { qid: entry.node.qid(), iounit: 0 })
    }

    fn lcreate(
        &self,
        fid: Fid,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
        out: &mut Out<'_>,
    ) -> Outcome {
        check_entry(name)?;
        let entry = self.fids.get(fid)?;
        let flags = flags & OPEN_FLAGS;
        let (node, opened) = entry.unopened()?.create(name, flags, mode)?;
        let qid = node.qid();
        let mut created = Entry::walked(node, entry.root);
        created.state = State::Open(Opened::new(opened, flags));
        self.fids.replace(fid, &entry, created)?;
        reply(out, &Reply::Lcreate { qid, iounit: 0 })
    }

    fn readdir(&self, fid: Fid, offset: u64, count: u32, out: &mut Out<'_>) -> Outcome {
        let entry = self.fids.get(fid)?;
        let opened = entry.opened()?;
        if !entry.node.qid().kind.contains(QidType::DIR) {
            return Err(Errno::ENOTDIR.into());
        }
        let room = self.data_room(count);
        out.data_reply(&Reply::Readdir { data: Data(&[]) }, |bytes| {
            let start = bytes.len();
            let mut too_small = false;
            opened.node.read_directory(offset, &mut |entry: DirEntry<'_>| {
                if bytes.len() - start + entry.encoded_len() > room {
                    // Nothing at all would read as the end of the directory.
                    too_small = bytes.len() == start;
                    return false;
                }
                entry.put(bytes);
                true
            })?;
            if too_small { Err(Errno::EINVAL.into()) } else { Ok(()) }
        })
    }

    fn xattrwalk(&self, fid: Fid, new_fid: Fid, name: &[u8], out: &mut Out<'_>) -> Outcome {
        let entry = self.fids.get(fid)?;
        let node = entry.file()?;
        if new_fid != fid {
            self.fids.check_free(new_fid)?;
        }
        let value = if name.is_empty() { node.xattr_list()? } else { node.xattr(name)? };
        let size = value.len() as u64;
        let walked = entry.with_state(State::XattrRead(XattrRead::new(value)));
        if new_fid == fid {
            self.fids.replace(fid, &entry, walked)?;
        } else {
            self.fids.insert(new_fid, walked)?;
        }
        reply(out, &Reply::Xattrwalk { size })
    }
}

fn reply(out: &mut Out<'_>, reply: &Reply<'_>) -> Outcome {
    out.reply(reply);
    Ok(())
}
