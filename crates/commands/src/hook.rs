//! A provider of commands as a store.
//!
//! Every name below its root is a directory: what a path means is the provider's business, and it says so when the
//! first command comes. Each directory has the one file through which commands go. It is listed, too, so that people
//! see what they are looking at.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use p9::{
    Attributes, DirEntry, Errno, GetattrMask, OpenFlags, Qid, QidType, SetAttributes, StatFs, Time,
    mode,
};
use store::{Error, FIRST_COOKIE, Listing, Node, OpenListing, OpenNode, Result, Store, Walk};

use crate::opening::Opening;
use crate::stream::Provider;
use crate::wire;

/// The kind of a control file. No store of files has such, and services tell it unasked.
pub(crate) const KIND: QidType = QidType::APPEND.union(QidType::EXCLUSIVE);

/// A provider as a store.
pub struct HookStore {
    shared: Arc<Shared>,
}

struct Shared {
    provider: Arc<dyn Provider>,
    since: Time,
}

impl HookStore {
    /// Serves what `provider` answers.
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let since = Time { seconds: now.tv_sec as u64, nanoseconds: now.tv_nsec as u64 };
        Self { shared: Arc::new(Shared { provider, since }) }
    }
}

impl Store for HookStore {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(Place::at(&self.shared, Vec::new(), false))
    }
}

/// A dataset's directory, or the control file in it.
struct Place {
    shared: Arc<Shared>,
    names: Vec<Vec<u8>>,
    control: bool,
}

fn refuse<T>(operation: &'static str, errno: Errno) -> Result<T> {
    Err(Error::System { operation, errno })
}

impl Place {
    fn at(shared: &Arc<Shared>, names: Vec<Vec<u8>>, control: bool) -> Arc<dyn Node> {
        Arc::new(Self { shared: Arc::clone(shared), names, control })
    }

    fn qid_of(names: &[Vec<u8>], control: bool) -> Qid {
        // The same after a restart: a file that is found again must be the same one. The highest byte is left to
        // those who put several stores together.
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        control.hash(&mut hasher);
        let kind = if control { KIND } else { QidType::DIR };
        Qid { kind, version: 0, path: hasher.finish() >> 8 }
    }

    fn described(&self) -> Attributes {
        let since = self.shared.since;
        Attributes {
            valid: GetattrMask::BASIC,
            qid: self.qid(),
            mode: if self.control { mode::REGULAR | 0o666 } else { mode::DIRECTORY | 0o555 },
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            nlink: if self.control { 1 } else { 2 },
            rdev: 0,
            size: 0,
            block_size: 4096,
            blocks: 0,
            atime: since,
            mtime: since,
            ctime: since,
            btime: since,
            generation: 0,
            data_version: 0,
        }
    }
}

impl Node for Place {
    fn qid(&self) -> Qid {
        Self::qid_of(&self.names, self.control)
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let mut way = self.names.clone();
        let mut control = self.control;
        let mut qids = Vec::with_capacity(names.len());
        for name in names {
            if control {
                return if qids.is_empty() {
                    refuse("walk", Errno::ENOTDIR)
                } else {
                    Ok(Walk { qids, end: None })
                };
            }
            match *name {
                b"." => {}
                b".." => drop(way.pop()),
                wire::NAME => control = true,
                name => match store::check_name("walk", name, Errno::ENOENT) {
                    Ok(()) => way.push(name.to_vec()),
                    Err(error) if qids.is_empty() => return Err(error),
                    Err(_) => return Ok(Walk { qids, end: None }),
                },
            }
            qids.push(Self::qid_of(&way, control));
        }
        Ok(Walk { qids, end: Some(Self::at(&self.shared, way, control)) })
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(self.described())
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        refuse("setattr", Errno::EPERM)
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if self.control {
            let path = self.names.join(&b'/');
            return Ok(Arc::new(Opening::new(&self.shared.provider, &path, self.described())));
        }
        if flags.writes() || flags.contains(OpenFlags::TRUNCATE) {
            return refuse("open", Errno::EISDIR);
        }
        let mut above = self.names.clone();
        above.pop();
        Ok(Arc::new(OpenListing(Inside {
            attributes: self.described(),
            above: Self::qid_of(&above, false),
            control: Self::qid_of(&self.names, true),
        })))
    }

    fn create(
        &self,
        _name: &[u8],
        _flags: OpenFlags,
        _mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        refuse("open", Errno::EPERM)
    }

    fn make_directory(&self, _name: &[u8], _mode: u32) -> Result<Qid> {
        refuse("mkdir", Errno::EEXIST)
    }

    fn make_symlink(&self, _name: &[u8], _target: &[u8]) -> Result<Qid> {
        refuse("symlink", Errno::EPERM)
    }

    fn link(&self, _existing: &dyn Node, _name: &[u8]) -> Result<()> {
        refuse("link", Errno::EPERM)
    }

    fn rename(&self, _old: &[u8], _new_dir: &dyn Node, _new: &[u8]) -> Result<()> {
        refuse("rename", Errno::EPERM)
    }

    fn remove(&self, _name: &[u8], _directory: bool) -> Result<()> {
        refuse("unlink", Errno::EPERM)
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let mut names = self.names.clone();
        let name = if self.control { Some(wire::NAME.to_vec()) } else { names.pop() };
        match name {
            Some(name) => Ok((Self::at(&self.shared, names, false), name)),
            None => refuse("parent", Errno::EBUSY),
        }
    }

    fn statfs(&self) -> Result<StatFs> {
        // V9FS_MAGIC of linux/magic.h; no room at all.
        Ok(StatFs { kind: 0x0102_1997, block_size: 4096, name_max: 255, ..StatFs::default() })
    }
}

/// An opened directory.
struct Inside {
    attributes: Attributes,
    above: Qid,
    control: Qid,
}

impl Listing for Inside {
    fn attributes(&self) -> Result<Attributes> {
        Ok(self.attributes)
    }

    fn above(&self) -> Qid {
        self.above
    }

    fn entries(
        &self,
        cookie: u64,
        _is_beginning: bool,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        if cookie < FIRST_COOKIE {
            take(DirEntry::of(self.control, FIRST_COOKIE, wire::NAME));
        }
        Ok(())
    }
}
