//! The root of all exports.

use std::sync::Arc;

use p9::{Attributes, DirEntry, Errno, GetattrMask, OpenFlags, Qid, QidType, StatFs, mode};

use super::List;
use super::member::MemberNode;
use crate::error::{Error, Result};
use crate::listing::{FIRST_COOKIE, Listing, OpenListing, walk_by_steps};
use crate::name::{self, NAME_BYTES_MAX};
use crate::node::{Node, OpenNode, Walk};
use crate::wrapper::refuse_changes;

/// `qid.path` of the root: members' files have marks, so that small numbers are free.
const ROOT_PATH: u64 = 1;

pub(super) struct RootNode {
    list: Arc<List>,
}

pub(super) fn qid() -> Qid {
    Qid { kind: QidType::DIR, version: 0, path: ROOT_PATH }
}

fn refusal(operation: &'static str, errno: Errno) -> Error {
    Error::System { operation, errno }
}

impl RootNode {
    pub(super) fn new(list: &Arc<List>) -> Self {
        Self { list: Arc::clone(list) }
    }

    /// Refuses to make `name`, with what mkdir(2) would say of a read-only file system.
    fn refuse_new<T>(&self, operation: &'static str, name: &[u8]) -> Result<T> {
        name::check(operation, name, Errno::EEXIST)?;
        if self.list.members().contains_key(name) {
            return Err(refusal(operation, Errno::EEXIST));
        }
        Err(Error::ReadOnly { operation })
    }
}

impl Node for RootNode {
    refuse_changes!();

    fn qid(&self) -> Qid {
        qid()
    }

    /// Walking to a member, and listing them, asks for its root.
    fn blocks(&self) -> bool {
        self.list.members().values().any(|member| member.store.blocks())
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let here = || Arc::new(Self::new(&self.list)) as Arc<dyn Node>;
        walk_by_steps(here, names, |name| match name {
            b"." | b".." => Ok(here()),
            name => {
                name::check("walk", name, Errno::EINVAL)?;
                let members = self.list.members();
                let member = members.get(name).ok_or(refusal("walk", Errno::ENOENT))?;
                Ok(Arc::new(MemberNode::top(&self.list, member)?))
            }
        })
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(attributes(&self.list))
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if flags.writes() || flags.contains(OpenFlags::TRUNCATE) {
            return Err(refusal("open", Errno::EISDIR));
        }
        Ok(Arc::new(OpenListing(Members(Arc::clone(&self.list)))))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        _mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        name::check("open", name, Errno::EISDIR)?;
        if self.list.members().contains_key(name) && !flags.contains(OpenFlags::EXCLUSIVE) {
            return Err(refusal("open", Errno::EISDIR));
        }
        self.refuse_new("open", name)
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        Err(refusal("readlink", Errno::EINVAL))
    }

    /// Refuses a member as rmdir(2) does a mount point, which no right to write would change.
    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        if directory && self.list.members().contains_key(name) {
            return Err(refusal("unlink", Errno::EBUSY));
        }
        Err(Error::ReadOnly { operation: "unlink" })
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        Err(refusal("parent", Errno::EBUSY))
    }

    /// No room at all: it is the members that have some.
    fn statfs(&self) -> Result<StatFs> {
        Ok(StatFs {
            // V9FS_MAGIC of linux/magic.h.
            kind: 0x0102_1997,
            block_size: 4096,
            name_max: NAME_BYTES_MAX as u32,
            ..StatFs::default()
        })
    }
}

fn attributes(list: &List) -> Attributes {
    Attributes {
        valid: GetattrMask::BASIC,
        qid: qid(),
        mode: mode::DIRECTORY | 0o555,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        nlink: 2 + list.members().len() as u64,
        rdev: 0,
        size: 0,
        block_size: 4096,
        blocks: 0,
        atime: list.since,
        mtime: list.since,
        ctime: list.since,
        btime: list.since,
        generation: 0,
        data_version: 0,
    }
}

/// All members, once the root is opened.
struct Members(Arc<List>);

impl Listing for Members {
    fn attributes(&self) -> Result<Attributes> {
        Ok(attributes(&self.0))
    }

    fn above(&self) -> Qid {
        qid()
    }

    fn entries(
        &self,
        cookie: u64,
        _is_beginning: bool,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let members = self.0.members();
        let mut members: Vec<_> = members.values().collect();
        // In the order of their numbers, as cookies must be.
        members.sort_unstable_by_key(|member| member.number);
        for member in members {
            // Members are counted from 1.
            let offset = FIRST_COOKIE - 1 + member.number;
            if offset <= cookie {
                continue;
            }
            // A member that cannot be reached now is listed all the same.
            let path = member.store.root().map_or(0, |root| root.qid().path);
            let qid = Qid { kind: QidType::DIR, version: 0, path: member.path(path) };
            if !take(DirEntry::of(qid, offset, &member.name)) {
                return Ok(());
            }
        }
        Ok(())
    }
}
