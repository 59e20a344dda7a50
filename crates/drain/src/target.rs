//! The target by paths, with errors that say which.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hostlog::{Attributes, Sequence};
use p9::{Errno, OpenFlags, QidType, SetAttributes, SetattrMask, Time};
use store::{Node, OpenNode, Store};

use crate::error::{Error, Result, shown};

/// A directory and the path that it was found by.
type Place = (Vec<u8>, Arc<dyn Node>);

/// The place to drain to.
pub(crate) struct Target {
    store: Arc<dyn Store>,
    root: Mutex<Option<Arc<dyn Node>>>,
    /// The same place on a way of its own, for what takes long to be carried.
    bulk: Option<Arc<dyn Store>>,
    /// The directory that was needed last: what comes next is often in the same.
    last: Mutex<Option<Place>>,
    /// Directories in which names were changed that may not be durable.
    touched: Mutex<BTreeSet<Vec<u8>>>,
    /// What got a mode, owner or times that may not be durable. None of it is renamed or removed before it is synced.
    changed: Mutex<BTreeSet<Vec<u8>>>,
}

/// How many files have their attributes made durable together.
const CHANGED_MAX: usize = 4096;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says which path an error is about.
pub(crate) fn at(operation: &'static str, path: &[u8]) -> impl FnOnce(store::Error) -> Error {
    let path = shown(path);
    move |source| Error::Target { operation, path, source }
}

fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

impl Target {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            root: Mutex::default(),
            bulk: None,
            last: Mutex::default(),
            touched: Mutex::default(),
            changed: Mutex::default(),
        }
    }

    /// Has the bytes of large files carried on a way of their own.
    pub(crate) fn set_bulk(&mut self, store: Arc<dyn Store>) {
        self.bulk = Some(store);
    }

    /// Opens a file to write very much to it; `None` where that has no way of its own.
    pub(crate) fn open_bulk(&self, path: &[u8]) -> Result<Option<Arc<dyn OpenNode>>> {
        let Some(bulk) = &self.bulk else { return Ok(None) };
        let root = bulk.root().map_err(at("open", path))?;
        let names: Vec<&[u8]> =
            path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        let opened = match root.walk(&names) {
            Ok(walk) => walk.end.map(|node| node.open(OpenFlags::WRITE_ONLY)),
            Err(error) => Some(Err(error)),
        };
        match opened {
            Some(Ok(open)) => Ok(Some(open)),
            // The ordinary way knows what to do about it.
            None => Ok(None),
            Some(Err(error)) if matches!(error.to_errno(), Errno::EACCES | Errno::ENOENT) => {
                Ok(None)
            }
            Some(Err(error)) => Err(at("open", path)(error)),
        }
    }

    /// How files are replaced, where none can be changed in part.
    pub(crate) fn wholes(&self) -> Option<&dyn store::Wholes> {
        self.store.wholes()
    }

    /// Forgets everything that was learned.
    pub(crate) fn reset(&self) {
        *lock(&self.root) = None;
        self.forget_directory();
    }

    fn forget_directory(&self) {
        *lock(&self.last) = None;
    }

    fn root(&self) -> Result<Arc<dyn Node>> {
        let mut root = lock(&self.root);
        if let Some(root) = &*root {
            return Ok(Arc::clone(root));
        }
        let found = self.store.root().map_err(at("open", b""))?;
        *root = Some(Arc::clone(&found));
        Ok(found)
    }

    /// What is at a path; `None` if there is nothing.
    pub(crate) fn find(&self, path: &[u8]) -> Result<Option<Arc<dyn Node>>> {
        let root = self.root()?;
        let names: Vec<&[u8]> =
            path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        match root.walk(&names) {
            Ok(walk) => Ok(walk.end),
            Err(error) if matches!(error.to_errno(), Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
            Err(error) => Err(at("find", path)(error)),
        }
    }

    /// The identity of what is at a path. Where files are replaced as wholes, that of its version: a name says
    /// nothing about what has it.
    pub(crate) fn identity(&self, path: &[u8]) -> Result<Option<u64>> {
        if let Some(wholes) = self.wholes()
            && let Some(version) = wholes.version(path).map_err(at("find", path))?
        {
            let mut hasher = DefaultHasher::new();
            version.tag.hash(&mut hasher);
            return Ok(Some(hasher.finish()));
        }
        Ok(self.find(path)?.map(|node| node.qid().path))
    }

    /// The identity by which what is at a path is known for good.
    pub(crate) fn lasting_identity(&self, path: &[u8]) -> Result<Option<u64>> {
        match self.wholes() {
            Some(wholes) => Ok(Some(wholes.identity(path))),
            None => self.identity(path),
        }
    }

    /// The directory that a path is in, and the name there.
    fn directory<'a>(
        &self,
        operation: &'static str,
        path: &'a [u8],
    ) -> Result<(Arc<dyn Node>, &'a [u8])> {
        let (parent, name) = split(path);
        let mut last = lock(&self.last);
        if let Some((_, node)) = last.as_ref().filter(|(known, _)| known == parent) {
            return Ok((Arc::clone(node), name));
        }
        let missing = || store::Error::System { operation: "walk", errno: Errno::ENOENT };
        let node = self.find(parent)?.ok_or_else(|| at(operation, path)(missing()))?;
        *last = Some((parent.to_vec(), Arc::clone(&node)));
        Ok((node, name))
    }

    fn touch(&self, path: &[u8]) {
        lock(&self.touched).insert(split(path).0.to_vec());
    }

    /// Makes a file, or opens it if it is there: its content is not this log's alone.
    pub(crate) fn create(&self, path: &[u8], mode: u32) -> Result<Arc<dyn OpenNode>> {
        let (dir, name) = self.directory("create", path)?;
        self.touch(path);
        match dir.create(name, OpenFlags::WRITE_ONLY, mode) {
            Ok((_, open)) => Ok(open),
            // It is there already, and its mode keeps even its owner from writing.
            Err(error) if error.to_errno() == Errno::EACCES => match self.find(path)? {
                Some(_) => self.open(path),
                None => Err(at("create", path)(error)),
            },
            Err(error) => Err(at("create", path)(error)),
        }
    }

    /// Opens a file to write to it, also where its mode does not let its owner.
    pub(crate) fn open(&self, path: &[u8]) -> Result<Arc<dyn OpenNode>> {
        let error = || at("open", path);
        let missing = store::Error::System { operation: "walk", errno: Errno::ENOENT };
        let node = self.find(path)?.ok_or_else(|| error()(missing))?;
        match node.open(OpenFlags::WRITE_ONLY) {
            Err(refused) if refused.to_errno() == Errno::EACCES => {
                let mode = node.attributes().map_err(error())?.mode & p9::mode::PERMISSIONS;
                let with = |mode| SetAttributes {
                    valid: SetattrMask::MODE,
                    mode,
                    ..SetAttributes::default()
                };
                // Who owns the file may do so; whoever else gets the same answer once more.
                if node.set_attributes(&with(mode | 0o200)).is_err() {
                    return Err(error()(refused));
                }
                let open = node.open(OpenFlags::WRITE_ONLY);
                node.set_attributes(&with(mode)).map_err(error())?;
                open.map_err(error())
            }
            opened => opened.map_err(error()),
        }
    }

    pub(crate) fn make_directory(&self, path: &[u8], mode: u32, sequence: Sequence) -> Result<()> {
        let (dir, name) = self.directory("mkdir", path)?;
        self.touch(path);
        match dir.make_directory(name, mode) {
            Ok(_) => Ok(()),
            Err(error) if error.to_errno() == Errno::EEXIST => {
                self.expect(path, "a directory", sequence, |node| {
                    Ok(node.qid().kind == QidType::DIR)
                })
            }
            Err(error) => Err(at("mkdir", path)(error)),
        }
    }

    pub(crate) fn make_symlink(&self, path: &[u8], to: &[u8], sequence: Sequence) -> Result<()> {
        let (dir, name) = self.directory("symlink", path)?;
        self.touch(path);
        match dir.make_symlink(name, to) {
            Ok(_) => Ok(()),
            Err(error) if error.to_errno() == Errno::EEXIST => {
                self.expect(path, "a symbolic link", sequence, |node| match node.qid().kind {
                    QidType::SYMLINK => Ok(node.read_link().map_err(at("readlink", path))? == to),
                    _ => Ok(false),
                })
            }
            Err(error) => Err(at("symlink", path)(error)),
        }
    }

    /// What is at a path already must be what was to be made: a part of it was done before.
    fn expect(
        &self,
        path: &[u8],
        what: &'static str,
        sequence: Sequence,
        is: impl FnOnce(&dyn Node) -> Result<bool>,
    ) -> Result<()> {
        let is_so = self.find(path)?.map(|node| is(&*node)).transpose()?;
        if is_so == Some(true) {
            Ok(())
        } else {
            Err(Error::InTheWay { path: shown(path), what, sequence })
        }
    }

    /// Makes `path` another name of `existing`, unless it is.
    pub(crate) fn link(&self, existing: &[u8], path: &[u8], sequence: Sequence) -> Result<()> {
        let missing = || Error::Missing { operation: "link", path: shown(existing), sequence };
        let node = self.find(existing)?.ok_or_else(missing)?;
        if self.identity(path)? == Some(node.qid().path) {
            return Ok(());
        }
        let (dir, name) = self.directory("link", path)?;
        self.touch(path);
        match dir.link(&*node, name) {
            Err(error) if error.to_errno() == Errno::EEXIST => {
                Err(Error::InTheWay { path: shown(path), what: "a link", sequence })
            }
            done => done.map_err(at("link", path)),
        }
    }

    pub(crate) fn rename(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let (old_dir, old) = self.directory("rename", from)?;
        let (new_dir, new) = self.directory("rename to", to)?;
        self.touch(from);
        self.touch(to);
        let renamed = old_dir.rename(old, &*new_dir, new).map_err(at("rename", from));
        self.forget_directory();
        renamed
    }

    pub(crate) fn remove(&self, path: &[u8], directory: bool) -> Result<()> {
        let operation = if directory { "rmdir" } else { "unlink" };
        let (dir, name) = self.directory(operation, path)?;
        self.touch(path);
        let removed = dir.remove(name, directory);
        if directory {
            self.forget_directory();
            lock(&self.touched).remove(path);
        }
        match removed {
            // Somebody else was faster.
            Err(error) if error.to_errno() == Errno::ENOENT => Ok(()),
            done => done.map_err(at(operation, path)),
        }
    }

    pub(crate) fn set_attributes(
        &self,
        path: &[u8],
        set: &Attributes,
        sequence: Sequence,
    ) -> Result<()> {
        if self.wholes().is_some() {
            // It has none.
            return Ok(());
        }
        let operation = "set attributes of";
        let missing = || Error::Missing { operation, path: shown(path), sequence };
        let node = self.find(path)?.ok_or_else(missing)?;
        node.set_attributes(&attributes(set)).map_err(at(operation, path))?;
        let count = {
            let mut changed = lock(&self.changed);
            changed.insert(path.to_vec());
            changed.len()
        };
        if count >= CHANGED_MAX { self.sync_attributes() } else { Ok(()) }
    }

    /// Makes all names and attributes durable that were changed.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.wholes().is_some() {
            // What it has answered for is durable.
            lock(&self.touched).clear();
            return Ok(());
        }
        self.sync_attributes()?;
        while let Some(path) = { lock(&self.touched).first().cloned() } {
            // One that is gone has no names to keep.
            if let Some(node) = self.find(&path)? {
                let open = node.open(OpenFlags::DIRECTORY).map_err(at("open", &path))?;
                open.sync(false).map_err(at("sync", &path))?;
            }
            lock(&self.touched).remove(&path);
        }
        Ok(())
    }

    fn sync_attributes(&self) -> Result<()> {
        while let Some(path) = { lock(&self.changed).first().cloned() } {
            if let Some(node) = self.find(&path)? {
                match self.open_to_sync(&*node, &path) {
                    Ok(Some(open)) => open.sync(false).map_err(at("sync", &path))?,
                    Ok(None) => {}
                    // The mode itself keeps everybody out: it will be durable when the system pleases.
                    Err(Error::Target { source, .. }) if source.to_errno() == Errno::EACCES => {}
                    Err(error) => return Err(error),
                }
            }
            lock(&self.changed).remove(&path);
        }
        Ok(())
    }

    fn open_to_sync(&self, node: &dyn Node, path: &[u8]) -> Result<Option<Arc<dyn OpenNode>>> {
        let opened = match node.qid().kind {
            QidType::DIR => node.open(OpenFlags::DIRECTORY),
            QidType::SYMLINK => {
                // It cannot be opened: its directory is as near as one comes.
                self.touch(path);
                return Ok(None);
            }
            _ => match node.open(OpenFlags::empty()) {
                Err(error) if error.to_errno() == Errno::EACCES => {
                    return self.open(path).map(Some);
                }
                opened => opened,
            },
        };
        opened.map(Some).map_err(at("open", path))
    }
}

/// The log's attributes as the target's.
pub(crate) fn attributes(set: &Attributes) -> SetAttributes {
    let time = |time: hostlog::Time| Time {
        seconds: time.seconds.cast_unsigned(),
        nanoseconds: u64::from(time.nanoseconds),
    };
    let mut out = SetAttributes::default();
    let mut mark = |is_set: bool, bits| out.valid.set(bits, is_set);
    mark(set.mode.is_some(), SetattrMask::MODE);
    mark(set.uid.is_some(), SetattrMask::UID);
    mark(set.gid.is_some(), SetattrMask::GID);
    mark(set.accessed.is_some(), SetattrMask::ATIME | SetattrMask::ATIME_SET);
    mark(set.modified.is_some(), SetattrMask::MTIME | SetattrMask::MTIME_SET);
    SetAttributes {
        mode: set.mode.unwrap_or(0),
        uid: set.uid.unwrap_or(0),
        gid: set.gid.unwrap_or(0),
        atime: set.accessed.map(time).unwrap_or_default(),
        mtime: set.modified.map(time).unwrap_or_default(),
        ..out
    }
}

/// Gives an open file a size.
pub(crate) fn resize(open: &dyn OpenNode, size: u64) -> store::Result<()> {
    open.set_attributes(&SetAttributes {
        valid: SetattrMask::SIZE,
        size,
        ..SetAttributes::default()
    })
}
