//! Requests that only base 9P2000 has.

use std::sync::Arc;

use p9::{
    Attributes, Data, DirEntry, Errno, Fid, LegacyMode, LegacyStat, OpenFlags, Qid, QidType, Reply,
    Request, SetAttributes, SetattrMask, Time,
};

use super::fids::{Entry, Listing, Opened, State};
use super::names::check_entry;
use super::{Out, Outcome, Session};

/// Bits of a permission word that a file here can have: `DMDIR` and nine permission bits.
const PERMISSION_BITS: u32 = LegacyStat::DIRECTORY | 0o777;

impl Session {
    pub(super) fn act_legacy(&self, request: &Request<'_>, out: &mut Out<'_>) -> Outcome {
        match request {
            Request::Open { fid, mode } => self.open_legacy(*fid, *mode, out),
            Request::Create { fid, name, permission, mode } => {
                self.create_legacy(*fid, name, *permission, *mode, out)
            }
            Request::Stat { fid } => {
                let entry = self.fids.get(*fid)?;
                let attributes = attributes(&entry)?;
                let name = name_of(&entry);
                with_stat(&name, &attributes, |stat| out.reply(&Reply::Stat { stat: *stat }));
                Ok(())
            }
            Request::Wstat { fid, stat } => {
                self.wstat(*fid, stat)?;
                out.reply(&Reply::Wstat {});
                Ok(())
            }
            _ => Err(Errno::EOPNOTSUPP.into()),
        }
    }

    fn open_legacy(&self, fid: Fid, mode: LegacyMode, out: &mut Out<'_>) -> Outcome {
        let entry = self.fids.get(fid)?;
        let node = entry.unopened()?;
        let flags = mode.to_flags()?;
        let qid = node.qid();
        if qid.kind.contains(QidType::DIR) && flags.writes() {
            return Err(Errno::EISDIR.into());
        }
        let mut opened = Opened::new(node.open(flags)?, flags);
        opened.remove_on_clunk = mode.0 & LegacyMode::REMOVE_ON_CLOSE != 0;
        self.fids.replace(fid, &entry, entry.with_state(State::Open(opened)))?;
        out.reply(&Reply::Open { qid, iounit: 0 });
        Ok(())
    }

    /// Creates a file or directory and opens it. What exists already is refused (open(5)).
    fn create_legacy(
        &self,
        fid: Fid,
        name: &[u8],
        permission: u32,
        mode: LegacyMode,
        out: &mut Out<'_>,
    ) -> Outcome {
        check_entry(name)?;
        if permission & !PERMISSION_BITS != 0 {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let entry = self.fids.get(fid)?;
        let directory = entry.unopened()?;
        let inherited = directory.attributes()?.mode;
        let (node, open_node, flags) = if permission & LegacyStat::DIRECTORY != 0 {
            let flags = mode.to_flags()?;
            if flags.writes() {
                return Err(Errno::EISDIR.into());
            }
            let mode = permission & (!0o777 | inherited & 0o777) & 0o777;
            directory.make_directory(name, mode)?;
            let node = directory.walk(&[name])?.end.ok_or(Errno::ENOENT)?;
            let open_node = node.open(flags)?;
            (node, open_node, flags)
        } else {
            let flags = mode.to_flags()? | OpenFlags::EXCLUSIVE;
            let mode = permission & (!0o666 | inherited & 0o666) & 0o777;
            let (node, open_node) = directory.create(name, flags, mode)?;
            (node, open_node, flags)
        };
        let qid = node.qid();
        let mut opened = Opened::new(open_node, flags);
        opened.remove_on_clunk = mode.0 & LegacyMode::REMOVE_ON_CLOSE != 0;
        let mut created = Entry::walked(node, entry.root);
        created.state = State::Open(opened);
        self.fids.replace(fid, &entry, created)?;
        out.reply(&Reply::Create { qid, iounit: 0 });
        Ok(())
    }

    /// Changes what the client marked. All checks come before the first change; the rename comes
    /// last, because it is the likeliest to fail (stat(5): all or nothing).
    fn wstat(&self, fid: Fid, stat: &LegacyStat<'_>) -> Outcome {
        let entry = self.fids.get(fid)?;
        let node = entry.file()?;
        let now = attributes(&entry)?;
        let touched = |value: u32| (value != LegacyStat::UNTOUCHED).then_some(value);
        let mut set = SetAttributes::default();
        if let Some(mode) = touched(stat.mode) {
            let is_directory = now.qid.kind.contains(QidType::DIR);
            if (mode & LegacyStat::DIRECTORY != 0) != is_directory {
                return Err(Errno::EPERM.into());
            }
            if mode & !PERMISSION_BITS != 0 {
                return Err(Errno::EOPNOTSUPP.into());
            }
            set.valid |= SetattrMask::MODE;
            set.mode = mode & 0o777;
        }
        if let Some(seconds) = touched(stat.mtime) {
            set.valid |= SetattrMask::MTIME | SetattrMask::MTIME_SET;
            set.mtime = Time { seconds: seconds.into(), nanoseconds: 0 };
        }
        if let Some(seconds) = touched(stat.atime) {
            set.valid |= SetattrMask::ATIME | SetattrMask::ATIME_SET;
            set.atime = Time { seconds: seconds.into(), nanoseconds: 0 };
        }
        if stat.length != u64::MAX && stat.length != legacy_length(&now) {
            if now.qid.kind.contains(QidType::DIR) {
                return Err(Errno::EISDIR.into());
            }
            set.valid |= SetattrMask::SIZE;
            set.size = stat.length;
        }
        if !stat.gid.is_empty() && stat.gid != now.gid.to_string().as_bytes() {
            let gid = std::str::from_utf8(stat.gid).ok().and_then(|text| text.parse().ok());
            set.gid = gid.ok_or(Errno::EPERM)?;
            set.valid |= SetattrMask::GID;
        }
        let current = name_of(&entry);
        let renamed = (!stat.name.is_empty() && stat.name != current).then_some(stat.name);
        if let Some(name) = renamed {
            check_entry(name)?;
        }
        let untouched = set.valid.is_empty() && renamed.is_none();
        match &entry.state {
            // "If all the elements are don't touch, the server may interpret it as a request to
            // guarantee that the contents are committed to stable storage" (stat(5)).
            State::Open(opened) if untouched => opened.node.sync(false)?,
            _ if set.valid.is_empty() => {}
            State::Open(opened)
                if opened.flags.writes() || !set.valid.contains(SetattrMask::SIZE) =>
            {
                opened.node.set_attributes(&set)?;
            }
            _ => node.set_attributes(&set)?,
        }
        if let Some(name) = renamed {
            let (parent, old) = node.parent()?;
            // Plan 9 renames never replace (stat(5)).
            if parent.walk(&[name]).is_ok_and(|walk| walk.end.is_some()) {
                return Err(Errno::EEXIST.into());
            }
            parent.rename(&old, &*parent, name)?;
        }
        Ok(())
    }

    /// Reads a directory as a file of stat entries, whole ones only, from its start or from where
    /// the last read ended (read(5)).
    pub(super) fn read_directory_legacy(
        &self,
        entry: &Arc<Entry>,
        offset: u64,
        room: usize,
        out: &mut Out<'_>,
    ) -> Outcome {
        let opened = entry.opened()?;
        let mut listing = opened.listing.lock().unwrap_or_else(|poison| poison.into_inner());
        if offset == 0 {
            *listing = Listing::default();
        } else if offset != listing.offset {
            return Err(Errno::EINVAL.into());
        }
        let mut next = *listing;
        let mut too_small = false;
        out.data_reply(&Reply::Read { data: Data(&[]) }, |bytes| {
            let start = bytes.len();
            opened.node.read_directory(listing.cookie, &mut |found: DirEntry<'_>| {
                if found.name != b"." && found.name != b".." {
                    // What vanished since, or cannot be looked at, is not listed.
                    let walk = entry.node.walk(&[found.name]).ok().and_then(|walk| walk.end);
                    if let Some(Ok(attributes)) = walk.map(|node| node.attributes()) {
                        let before = bytes.len();
                        with_stat(found.name, &attributes, |stat| stat.put(bytes));
                        if bytes.len() - start > room {
                            bytes.truncate(before);
                            too_small = before == start;
                            return false;
                        }
                    }
                }
                next.cookie = found.offset;
                true
            })?;
            next.offset += (bytes.len() - start) as u64;
            if too_small { Err(Errno::EINVAL.into()) } else { Ok(()) }
        })?;
        *listing = next;
        Ok(())
    }
}

fn attributes(entry: &Entry) -> Outcome<Attributes> {
    Ok(match &entry.state {
        State::Open(opened) => opened.node.attributes()?,
        State::Walked | State::XattrRead(_) | State::XattrWrite(_) => entry.file()?.attributes()?,
    })
}

/// The last element of the path; the attach point is `/`, whatever it is called above.
fn name_of(entry: &Entry) -> Vec<u8> {
    if entry.node.qid().path == entry.root.path {
        return b"/".to_vec();
    }
    entry.node.parent().map_or_else(|_| b"/".to_vec(), |(_, name)| name)
}

fn legacy_length(attributes: &Attributes) -> u64 {
    if attributes.qid.kind.contains(QidType::DIR) { 0 } else { attributes.size }
}

/// Describes a file in Plan 9's terms. Owners are given by number: names would be those of the
/// service's machine, which mean nothing to the client.
fn with_stat(name: &[u8], attributes: &Attributes, then: impl FnOnce(&LegacyStat<'_>)) {
    let Qid { kind, .. } = attributes.qid;
    let directory = if kind.contains(QidType::DIR) { LegacyStat::DIRECTORY } else { 0 };
    let uid = attributes.uid.to_string();
    let gid = attributes.gid.to_string();
    let stat = LegacyStat {
        kind: 0,
        device: 0,
        qid: Qid { kind: kind & QidType::DIR, ..attributes.qid },
        mode: directory | attributes.mode & 0o777,
        atime: attributes.atime.seconds as u32,
        mtime: attributes.mtime.seconds as u32,
        length: legacy_length(attributes),
        name,
        uid: uid.as_bytes(),
        gid: gid.as_bytes(),
        muid: uid.as_bytes(),
    };
    then(&stat);
}
