//! Nodes of the overlay.

use std::any::Any;
use std::sync::Arc;

use epochs::{Extent, Notice};
use hostlog::{Operation, Time as LogTime};
use p9::{Attributes, Errno, OpenFlags, Qid, SetAttributes, SetattrMask, StatFs, Time};
use store::{Error, Node, OpenNode, Result, Walk};

use crate::changes::New;
use crate::content::Content;
use crate::error::{Tried, refusal};
use crate::files::told;
use crate::inode::{Base, Body, Inode};
use crate::names::Entry;
use crate::open::LogOpen;
use crate::stream::Stream;
use crate::tree::{Access, RACES_MAX, Tree, guard, now, reading};

/// The longest target of a symbolic link: `PATH_MAX` of linux/limits.h without its NUL.
const TARGET_BYTES_MAX: usize = 4095;

pub(crate) struct LogNode {
    stream: Arc<Stream>,
    entry: Arc<Entry>,
}

impl LogNode {
    pub(crate) fn new(stream: &Arc<Stream>, entry: &Arc<Entry>) -> Self {
        Self { stream: Arc::clone(stream), entry: Arc::clone(entry) }
    }

    fn tree(&self) -> &Tree {
        &self.stream.tree
    }

    fn inode(&self) -> &Arc<Inode> {
        &self.entry.inode
    }

    fn is_root(&self) -> bool {
        Arc::ptr_eq(self.inode(), &self.tree().root.inode)
    }

    fn at(&self, entry: &Arc<Entry>) -> Self {
        Self::new(&self.stream, entry)
    }

    fn step(&self, element: &[u8]) -> Result<Self> {
        if !self.inode().is_directory() {
            return Err(refusal("walk", Errno::ENOTDIR));
        }
        match element {
            b"." => Ok(self.at(&self.entry)),
            b".." if self.is_root() => Ok(self.at(&self.entry)),
            b".." => match self.entry.place() {
                Some(place) => Ok(self.at(&Entry::unplaced(place.dir))),
                None => Err(refusal("walk", Errno::ENOENT)),
            },
            _ => {
                store::check_name("walk", element, Errno::EINVAL)?;
                Ok(self.at(&self.tree().look_up("walk", self.inode(), element)?))
            }
        }
    }

    /// The other node of an operation, when it is of this tree.
    fn kin<'n>(&self, operation: &'static str, other: &'n dyn Node) -> Result<&'n Self> {
        (other as &dyn Any)
            .downcast_ref::<Self>()
            .filter(|other| Arc::ptr_eq(&self.stream.tree, &other.stream.tree))
            .ok_or(Error::AcrossStores { operation })
    }

    /// Does something that appends to the log.
    fn patiently<T>(
        &self,
        operation: &'static str,
        attempt: impl FnMut() -> Tried<T>,
    ) -> Result<T> {
        self.tree().patiently(operation, attempt)
    }

    fn add(&self, operation: &'static str, name: &[u8], new: &New<'_>) -> Result<Arc<Entry>> {
        self.patiently(operation, || {
            self.tree().add(operation, self.stream.number, self.inode(), name, new)
        })
    }

    fn opened(&self, flags: OpenFlags) -> Arc<dyn OpenNode> {
        Arc::new(LogOpen::new(&self.stream, &self.entry, flags))
    }

    /// Whether the target lets the file be opened. What it gives may read later.
    fn open_base(&self, flags: OpenFlags) -> Result<()> {
        let inode = self.inode();
        let writes = flags.writes() || flags.contains(OpenFlags::TRUNCATE);
        let Base::Node(base) = inode.base() else {
            if flags.reads() {
                self.tree().user.check("open", inode, Access::READ)?;
            }
            if writes {
                self.tree().user.check("open", inode, Access::WRITE)?;
            }
            return match inode.base() {
                Base::None | Base::Node(_) => Ok(()),
                Base::Unknown | Base::Lost => Err(refusal("open", Errno::ESTALE)),
            };
        };
        let access = match (flags.reads(), writes) {
            (true, true) => OpenFlags::READ_WRITE,
            (false, _) => OpenFlags::WRITE_ONLY,
            (true, false) => OpenFlags::empty(),
        };
        let open = base.open(access)?;
        if !writes {
            inode.keep_reader(open);
        }
        Ok(())
    }
}

impl Node for LogNode {
    fn qid(&self) -> Qid {
        self.inode().qid()
    }

    /// Writes may wait for the drain, and everything for the target.
    fn blocks(&self) -> bool {
        true
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let mut qids = Vec::with_capacity(names.len());
        let mut here = self.at(&self.entry);
        for element in names {
            match here.step(element) {
                Ok(node) => here = node,
                Err(error) if qids.is_empty() => return Err(error),
                Err(_) => return Ok(Walk { qids, end: None }),
            }
            qids.push(here.qid());
        }
        Ok(Walk { qids, end: Some(Arc::new(here)) })
    }

    fn attributes(&self) -> Result<Attributes> {
        self.inode().attributes()
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        let inode = self.inode();
        if set.valid.contains(SetattrMask::SIZE) && matches!(inode.body, Body::File(_)) {
            match inode.base_node("truncate")? {
                Some(base) => drop(base.open(OpenFlags::WRITE_ONLY)?),
                None => self.tree().user.check("truncate", inode, Access::WRITE)?,
            }
        }
        set_attributes(&self.stream, inode, set)?;
        let is_open = guard(&inode.sharing).is_being_written();
        if set.valid.contains(SetattrMask::SIZE) && !is_open {
            let done = self.tree().commit_if_plain(self.stream.number, inode);
            done.map_err(|error| told("truncate", error))?;
        }
        Ok(())
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        let refuse = |errno| Err(refusal("open", errno));
        if flags.bits() & OpenFlags::ACCESS_MASK == OpenFlags::ACCESS_MASK {
            return refuse(Errno::EINVAL);
        }
        let changes = flags.writes() || flags.contains(OpenFlags::TRUNCATE);
        match &self.inode().body {
            Body::Symlink(_) => return refuse(Errno::ELOOP),
            Body::Directory(_) if changes => return refuse(Errno::EISDIR),
            Body::Directory(_) => {
                self.tree().user.check("open", self.inode(), Access::READ)?;
                return Ok(self.opened(flags));
            }
            Body::File(_) if flags.contains(OpenFlags::DIRECTORY) => {
                return refuse(Errno::ENOTDIR);
            }
            Body::File(_) => {}
        }
        self.open_base(flags)?;
        // The opening first: its end commits what it does.
        let open = self.opened(flags);
        if flags.contains(OpenFlags::TRUNCATE) {
            self.patiently("open", || self.tree().resize(self.stream.number, self.inode(), 0))?;
        }
        Ok(open)
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        self.tree().check_name("open", name, Errno::EISDIR)?;
        let access = flags.bits() & OpenFlags::ACCESS_MASK;
        if access == OpenFlags::ACCESS_MASK || flags.contains(OpenFlags::DIRECTORY) {
            return Err(refusal("open", Errno::EINVAL));
        }
        for _ in 0..RACES_MAX {
            match self.add("open", name, &New::File { mode }) {
                // Who creates a file has the access that it asked for, whatever the mode says.
                Ok(entry) => {
                    let node = self.at(&entry);
                    let open = node.opened(flags);
                    return Ok((Arc::new(node), open));
                }
                Err(error) if error.to_errno() != Errno::EEXIST => return Err(error),
                Err(error) if flags.contains(OpenFlags::EXCLUSIVE) => return Err(error),
                Err(_) => {}
            }
            match self.tree().look_up("open", self.inode(), name) {
                Ok(entry) => {
                    let node = self.at(&entry);
                    let open = node.open(flags)?;
                    return Ok((Arc::new(node), open));
                }
                Err(error) if error.to_errno() == Errno::ENOENT => {}
                Err(error) => return Err(error),
            }
        }
        Err(refusal("open", Errno::EAGAIN))
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        self.tree().check_name("mkdir", name, Errno::EEXIST)?;
        Ok(self.add("mkdir", name, &New::Directory { mode })?.inode.qid())
    }

    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        self.tree().check_name("symlink", name, Errno::EEXIST)?;
        let errno = match target {
            [] => Some(Errno::ENOENT),
            _ if target.contains(&0) => Some(Errno::EINVAL),
            _ if target.len() > TARGET_BYTES_MAX => Some(Errno::ENAMETOOLONG),
            _ => None,
        };
        match errno {
            Some(errno) => Err(refusal("symlink", errno)),
            None => Ok(self.add("symlink", name, &New::Symlink { target })?.inode.qid()),
        }
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        let existing = self.kin("link", existing)?;
        self.tree().check_name("link", name, Errno::EEXIST)?;
        self.patiently("link", || {
            self.tree().link(self.stream.number, self.inode(), name, existing.inode())
        })
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        match (&self.inode().body, self.inode().base_node("readlink")?) {
            (Body::Symlink(Some(target)), _) => Ok(target.clone()),
            (Body::Symlink(None), Some(base)) => base.read_link(),
            _ => Err(refusal("readlink", Errno::EINVAL)),
        }
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        let new_dir = self.kin("rename", new_dir)?;
        self.tree().check_name("rename", old, Errno::EBUSY)?;
        self.tree().check_name("rename", new, Errno::EBUSY)?;
        // A file that takes another's place should be whole when that is gone.
        if let Ok(moved) = self.tree().look_up("rename", self.inode(), old) {
            let committed = self.tree().commit_if_plain(self.stream.number, &moved.inode);
            committed.map_err(|error| told("rename", error))?;
        }
        self.patiently("rename", || {
            self.tree().rename(self.stream.number, (self.inode(), old), (new_dir.inode(), new))
        })
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        let dots = if directory { Errno::EINVAL } else { Errno::EISDIR };
        self.tree().check_name("unlink", name, dots)?;
        self.patiently("unlink", || {
            self.tree().remove(self.stream.number, self.inode(), name, directory)
        })
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        if self.is_root() {
            return Err(refusal("parent", Errno::EBUSY));
        }
        let place = self.entry.place().ok_or(refusal("parent", Errno::ENOENT))?;
        Ok((Arc::new(self.at(&Entry::unplaced(place.dir))), place.name))
    }

    fn statfs(&self) -> Result<StatFs> {
        let found = match self.inode().base() {
            Base::Node(base) => base.statfs()?,
            _ => match self.tree().root.inode.base_node("statfs")? {
                Some(root) => root.statfs()?,
                None => return Err(refusal("statfs", Errno::ESTALE)),
            },
        };
        Ok(StatFs { name_max: self.tree().name_bytes_max as u32, ..found })
    }

    fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        if name == epochs::ELSEWHERE && self.is_root() {
            return Ok(self.tree().standing().to_string().into_bytes());
        }
        match self.inode().base_node("getxattr")? {
            _ if name == epochs::LOG && !self.inode().is_directory() => {
                Ok(self.tree().options.identity.clone())
            }
            Some(base) => base.xattr(name),
            None => Err(refusal("getxattr", Errno::ENODATA)),
        }
    }

    fn xattr_list(&self) -> Result<Vec<u8>> {
        match self.inode().base_node("listxattr")? {
            Some(base) => base.xattr_list(),
            None => Ok(Vec::new()),
        }
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        if name == epochs::ELSEWHERE {
            let Ok(extent) = Extent::parse(value) else {
                return Err(refusal("setxattr", Errno::EINVAL));
            };
            let tree = self.tree();
            return self
                .patiently("write", || tree.refer(self.stream.number, self.inode(), &extent));
        }
        if name == epochs::NOTICE {
            let Ok(notice) = Notice::parse(value) else {
                return Err(refusal("setxattr", Errno::EINVAL));
            };
            return self
                .patiently("setxattr", || self.tree().notice(&self.stream, self.inode(), notice));
        }
        match self.inode().base_node("setxattr")? {
            _ if name == epochs::LOG => Err(refusal("setxattr", Errno::EPERM)),
            Some(base) => base.set_xattr(name, value, flags),
            // The log has no record for it.
            None => Err(refusal("setxattr", Errno::EOPNOTSUPP)),
        }
    }

    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        match self.inode().base_node("removexattr")? {
            Some(base) => base.remove_xattr(name),
            None => Err(refusal("removexattr", Errno::ENODATA)),
        }
    }
}

/// Changes attributes: the size as part of the content, the others as a record of the namespace.
pub(crate) fn set_attributes(
    stream: &Stream,
    inode: &Arc<Inode>,
    set: &SetAttributes,
) -> Result<()> {
    let tree = &stream.tree;
    let has = |bit| set.valid.contains(bit);
    let given = [(SetattrMask::ATIME_SET, set.atime), (SetattrMask::MTIME_SET, set.mtime)];
    if given.iter().any(|(bit, time)| has(*bit) && time.nanoseconds >= 1_000_000_000) {
        return Err(refusal("utimensat", Errno::EINVAL));
    }
    if has(SetattrMask::MODE) && matches!(inode.body, Body::Symlink(_)) {
        return Err(refusal("chmod", Errno::EOPNOTSUPP));
    }
    check_owner(tree, inode, set)?;
    if has(SetattrMask::SIZE) {
        tree.patiently("truncate", || tree.resize(stream.number, inode, set.size))?;
    }
    if (set.valid - SetattrMask::SIZE).is_empty() {
        return Ok(());
    }
    tree.patiently("setattr", || change_attributes(stream, inode, set))
}

fn change_attributes(stream: &Stream, inode: &Arc<Inode>, set: &SetAttributes) -> Tried<()> {
    let tree = &stream.tree;
    let _turn = guard(&tree.changes);
    let file = tree.bind_in_turn("setattr", stream.number, inode)?;
    let has = |bit| set.valid.contains(bit);
    let t = now();
    let either = |any, given, time: Time| match () {
        () if has(given) => Some(time),
        () if has(any) => Some(t),
        () => None,
    };
    let atime = either(SetattrMask::ATIME, SetattrMask::ATIME_SET, set.atime);
    let mtime = either(SetattrMask::MTIME, SetattrMask::MTIME_SET, set.mtime);
    let recorded = hostlog::Attributes {
        mode: has(SetattrMask::MODE).then_some(set.mode & p9::mode::PERMISSIONS),
        uid: has(SetattrMask::UID).then_some(set.uid),
        gid: has(SetattrMask::GID).then_some(set.gid),
        accessed: atime.map(to_log),
        modified: mtime.map(to_log),
    };
    if recorded != hostlog::Attributes::default() {
        let what = Operation::Attributes { path: Vec::new(), set: recorded };
        inode.touched_by(tree.record("setattr", stream.number, Some(file), &what)?);
        tree.hold(inode);
    }
    apply_attributes(inode, &recorded);
    Ok(())
}

/// Does in memory what a record says.
pub(crate) fn apply_attributes(inode: &Inode, set: &hostlog::Attributes) {
    inode.change_meta(|meta, t| {
        if set.uid.is_some() || set.gid.is_some() {
            meta.uid = set.uid.unwrap_or(meta.uid);
            meta.gid = set.gid.unwrap_or(meta.gid);
            if meta.mode & p9::mode::TYPE_MASK == p9::mode::REGULAR {
                meta.drop_owner_rights();
            }
        }
        if let Some(mode) = set.mode {
            meta.mode = meta.mode & p9::mode::TYPE_MASK | mode;
        }
        meta.atime = set.accessed.map_or(meta.atime, from_log);
        meta.mtime = set.modified.map_or(meta.mtime, from_log);
        meta.ctime = t;
    });
}

/// Who may change what. Of what is made here, mode and given times are the owner's, owner and group only
/// the superuser's (an owner may name the group that the file has, or its own). Of what the target has,
/// the target is asked by a change that changes nothing.
fn check_owner(tree: &Tree, inode: &Arc<Inode>, set: &SetAttributes) -> Result<()> {
    let has = |bit| set.valid.contains(bit);
    let owners = set.valid.intersects(
        SetattrMask::MODE
            | SetattrMask::UID
            | SetattrMask::GID
            | SetattrMask::ATIME_SET
            | SetattrMask::MTIME_SET,
    );
    if let Base::Node(base) = inode.base() {
        let valid = if owners && !matches!(inode.body, Body::Symlink(_)) {
            SetattrMask::CTIME
        } else {
            SetattrMask::empty()
        };
        base.set_attributes(&SetAttributes { valid, ..SetAttributes::default() })?;
    }
    let Some(meta) = *guard(&inode.meta) else { return Ok(()) };
    if tree.user.uid == 0 || inode.created.is_none() {
        return Ok(());
    }
    let chown = has(SetattrMask::UID) && set.uid != meta.uid
        || has(SetattrMask::GID) && set.gid != meta.gid && set.gid != tree.user.gid;
    if chown || owners && tree.user.uid != meta.uid {
        return Err(refusal("setattr", Errno::EPERM));
    }
    Ok(())
}

fn to_log(time: Time) -> LogTime {
    LogTime { seconds: time.seconds as i64, nanoseconds: time.nanoseconds as u32 }
}

fn from_log(time: LogTime) -> Time {
    Time { seconds: time.seconds as u64, nanoseconds: time.nanoseconds.into() }
}

/// How many edits of a file do not count yet, and their bytes.
pub(crate) fn pending(inode: &Inode) -> (u64, u64) {
    match &inode.body {
        Body::File(content) => reading(content).as_ref().map_or((0, 0), Content::pending),
        Body::Directory(_) | Body::Symlink(_) => (0, 0),
    }
}
