//! All buckets there are, in one tree: `s3/BUCKET/key`, `gs/BUCKET/key` and so on. A bucket is opened when somebody walks there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use address::ObjectKind;
use p9::{
    Attributes, DirEntry, Errno, GetattrMask, OpenFlags, Qid, QidType, SetAttributes, StatFs, Time,
    mode,
};
use store::{
    Error, FIRST_COOKIE, Listing, Node, OpenListing, OpenNode, Result, Store, Walk, check_name,
    walk_by_steps,
};

use crate::error::refusal;
use crate::place::Place;
use crate::whole::{ObjectStore, Options};

/// The tree of all buckets.
pub struct Buckets {
    opened: Arc<Opened>,
}

struct Opened {
    options: Options,
    stores: Mutex<HashMap<Place, Arc<ObjectStore>>>,
}

impl Buckets {
    /// All buckets that the environment's credentials lead to, each with these options.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { opened: Arc::new(Opened { options, stores: Mutex::default() }) }
    }
}

impl Store for Buckets {
    fn root(&self) -> Result<Arc<dyn Node>> {
        Ok(Arc::new(Level { opened: Arc::clone(&self.opened), kind: None }))
    }

    fn blocks(&self) -> bool {
        true
    }
}

impl Opened {
    /// The root of a bucket.
    fn bucket(&self, kind: ObjectKind, name: &[u8]) -> Result<Arc<dyn Node>> {
        check_name("walk", name, Errno::EINVAL)?;
        let bucket =
            String::from_utf8(name.to_vec()).map_err(|_| refusal("walk", Errno::ENOENT))?;
        let place = Place { kind, bucket };
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = stores.get(&place) {
            return store.root();
        }
        let opened = ObjectStore::open(&place, b"", self.options.clone());
        let store = opened.map_err(|error| {
            if let Some(tell) = &self.options.tell {
                tell(&crate::error::in_full(&error));
            }
            refusal("walk", Errno::EIO)
        })?;
        let root = store.root();
        stores.insert(place, Arc::new(store));
        root
    }
}

/// The root, or what has the buckets of one kind.
struct Level {
    opened: Arc<Opened>,
    kind: Option<ObjectKind>,
}

impl Level {
    fn again(&self) -> Arc<dyn Node> {
        Arc::new(Self { opened: Arc::clone(&self.opened), kind: self.kind })
    }

    fn step(&self, name: &[u8]) -> Result<Arc<dyn Node>> {
        match (name, self.kind) {
            (b"..", _) => Ok(Arc::new(Self { opened: Arc::clone(&self.opened), kind: None })),
            (b".", _) => Ok(self.again()),
            (name, Some(kind)) => self.opened.bucket(kind, name),
            (name, None) => {
                check_name("walk", name, Errno::EINVAL)?;
                let kind = ObjectKind::of_scheme(name).ok_or(refusal("walk", Errno::ENOENT))?;
                Ok(Arc::new(Self { opened: Arc::clone(&self.opened), kind: Some(kind) }))
            }
        }
    }
}

fn qid_of(kind: Option<ObjectKind>) -> Qid {
    let number = kind.map_or(0, |kind| {
        ObjectKind::ALL.iter().position(|other| *other == kind).map_or(0, |n| n as u64 + 1)
    });
    // Those of objects are hashes; among them are no such small numbers.
    Qid { kind: QidType::DIR, version: 0, path: number + 1 }
}

fn attributes_of(kind: Option<ObjectKind>) -> Attributes {
    let none = Time { seconds: 0, nanoseconds: 0 };
    Attributes {
        valid: GetattrMask::BASIC,
        qid: qid_of(kind),
        mode: mode::DIRECTORY | 0o555,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        nlink: 2,
        rdev: 0,
        size: 0,
        block_size: 4096,
        blocks: 0,
        atime: none,
        mtime: none,
        ctime: none,
        btime: none,
        generation: 0,
        data_version: 0,
    }
}

impl Node for Level {
    fn qid(&self) -> Qid {
        qid_of(self.kind)
    }

    fn blocks(&self) -> bool {
        true
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        walk_by_steps(|| self.again(), names, |name| self.step(name))
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(attributes_of(self.kind))
    }

    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        Err(Error::ReadOnly { operation: "setattr" })
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if flags.writes() || flags.contains(OpenFlags::TRUNCATE) {
            return Err(refusal("open", Errno::EISDIR));
        }
        Ok(Arc::new(OpenListing(Kinds { kind: self.kind })))
    }

    fn create(
        &self,
        _name: &[u8],
        _flags: OpenFlags,
        _mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        Err(Error::ReadOnly { operation: "open" })
    }

    fn make_directory(&self, name: &[u8], _mode: u32) -> Result<Qid> {
        // As for any directory that is there; buckets are made by other tools.
        match self.step(name) {
            Ok(_) => Err(refusal("mkdir", Errno::EEXIST)),
            Err(_) => Err(Error::ReadOnly { operation: "mkdir" }),
        }
    }

    fn rename(&self, _old: &[u8], _new_dir: &dyn Node, _new: &[u8]) -> Result<()> {
        Err(Error::ReadOnly { operation: "rename" })
    }

    fn remove(&self, _name: &[u8], _directory: bool) -> Result<()> {
        Err(Error::ReadOnly { operation: "unlink" })
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let kind = self.kind.ok_or(refusal("parent", Errno::ENOENT))?;
        let root = Self { opened: Arc::clone(&self.opened), kind: None };
        Ok((Arc::new(root), kind.scheme().as_bytes().to_vec()))
    }

    fn statfs(&self) -> Result<StatFs> {
        Ok(StatFs { kind: 0x0102_1997, block_size: 4096, name_max: 255, ..StatFs::default() })
    }
}

/// The kinds, once the root is opened. Which buckets there are is not asked.
struct Kinds {
    kind: Option<ObjectKind>,
}

impl Listing for Kinds {
    fn attributes(&self) -> Result<Attributes> {
        Ok(attributes_of(self.kind))
    }

    fn above(&self) -> Qid {
        qid_of(None)
    }

    fn entries(
        &self,
        cookie: u64,
        _is_beginning: bool,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let kinds = ObjectKind::ALL.iter().filter(|_| self.kind.is_none());
        for (offset, kind) in (FIRST_COOKIE..).zip(kinds) {
            let entry = DirEntry::of(qid_of(Some(*kind)), offset, kind.scheme().as_bytes());
            if offset > cookie && !take(entry) {
                break;
            }
        }
        Ok(())
    }
}
