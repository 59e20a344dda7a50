//! Files and directories of a bucket, not opened.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use p9::{Attributes, Errno, OpenFlags, Qid, SetAttributes, SetattrMask, StatFs};
use store::{Error, Node, OpenListing, OpenNode, Result, Walk, check_name};

use crate::bucket::join;
use crate::directory::Directory;
use crate::error::refusal;
use crate::open::OpenFile;
use crate::read::Reader;
use crate::tree::{Found, Tree, missing};

/// What was seen of a file is good for so long, for who walked to it just now.
const SEEN_FOR: Duration = Duration::from_secs(1);

pub(crate) struct ObjectNode {
    tree: Arc<Tree>,
    key: String,
    seen: Mutex<Seen>,
}

struct Seen {
    found: Found,
    /// When the service was asked; `None` if a listing said it.
    when: Option<Instant>,
}

impl ObjectNode {
    pub(crate) fn root(tree: &Arc<Tree>) -> Self {
        Self::new(tree, tree.root.clone(), Found::Directory, None)
    }

    fn new(tree: &Arc<Tree>, key: String, found: Found, when: Option<Instant>) -> Self {
        Self { tree: Arc::clone(tree), key, seen: Mutex::new(Seen { found, when }) }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn seen(&self) -> Found {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).found.clone()
    }

    /// What is there now.
    fn now(&self, operation: &'static str) -> Result<Found> {
        self.now_or_listed(operation, false)
    }

    /// The same; with `may_be_listed`, as a listing has just said it.
    fn now_or_listed(&self, operation: &'static str, may_be_listed: bool) -> Result<Found> {
        {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            // What is being written changes here and not there; directories are what they are.
            let is_fresh = match &seen.found {
                // A web server does not say what is a directory: it was taken for one on the way to something.
                Found::Directory => self.tree.bucket().lists() || self.key == self.tree.root,
                Found::Pending(writing) => {
                    self.tree.writing(&self.key).is_some_and(|now| Arc::ptr_eq(&now, writing))
                }
                Found::File(_) => {
                    seen.when.is_some_and(|when| when.elapsed() < SEEN_FOR)
                        && self.tree.writing(&self.key).is_none()
                }
            };
            if is_fresh {
                return Ok(seen.found.clone());
            }
        }
        let listed = may_be_listed.then(|| self.tree.listed(&self.key)).flatten();
        if let Some(meta) = listed.filter(|_| self.tree.writing(&self.key).is_none()) {
            return Ok(Found::File(meta));
        }
        let found = self.tree.look(operation, &self.key, false)?;
        let found = found.ok_or_else(|| missing(operation))?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) =
            Seen { found: found.clone(), when: Some(Instant::now()) };
        Ok(found)
    }

    fn is_directory(&self) -> bool {
        matches!(self.seen(), Found::Directory)
    }

    fn directory(&self, operation: &'static str) -> Result<()> {
        if self.is_directory() { Ok(()) } else { Err(refusal(operation, Errno::ENOTDIR)) }
    }

    /// The key of a name here, which must be one.
    fn child(&self, operation: &'static str, name: &[u8], for_dots: Errno) -> Result<String> {
        self.directory(operation)?;
        check_name(operation, name, for_dots)?;
        join(operation, &self.key, name)
    }

    fn unsupported<T>(&self, operation: &'static str, hint: &str) -> Result<T> {
        let place = format!("{}/{}", self.tree.bucket().name(), self.key);
        self.tree.bucket().say(&format!("{place}: {operation}: {hint}"));
        Err(Error::Unsupported { operation, store: "object" })
    }

    /// Opens a regular file that is there.
    fn open_file(&self, found: Found, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if flags.contains(OpenFlags::DIRECTORY) {
            return Err(refusal("open", Errno::ENOTDIR));
        }
        let truncates = flags.contains(OpenFlags::TRUNCATE);
        if truncates && !flags.writes() {
            return Err(refusal("open", Errno::EACCES));
        }
        let file = OpenFile::new(&self.tree, &self.key, flags);
        match found {
            Found::Directory => return Err(refusal("open", Errno::EISDIR)),
            Found::File(meta) if truncates => file.begin(Some(meta), true)?,
            Found::File(meta) => {
                // Somebody is replacing it: who writes takes part in that. One without bytes can be written as a new one.
                let is_empty = meta.size == 0;
                let reader = Reader::new(&self.tree.shared, &self.key, meta.clone());
                file.read_by(Arc::new(reader));
                if flags.writes() && (is_empty || self.tree.writing(&self.key).is_some()) {
                    file.begin(Some(meta), false)?;
                }
            }
            Found::Pending(_) if flags.writes() => file.begin(None, truncates)?,
            Found::Pending(writing) => file.look_at(writing),
        }
        if flags.writes() {
            self.learn();
        }
        Ok(Arc::new(file))
    }

    /// What is being written by now is what this node is.
    fn learn(&self) {
        if let Some(writing) = self.tree.writing(&self.key) {
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) =
                Seen { found: Found::Pending(writing), when: None };
        }
    }

    /// What is at a name, for a change of it.
    fn target(&self, operation: &'static str, key: &str) -> Result<Option<Found>> {
        self.tree.look(operation, key, false)
    }

    /// Up is where a directory is, and not a file: each element has to be looked at.
    fn walk_step_by_step(&self, names: &[&[u8]]) -> Result<Walk> {
        let mut walk = self.walk(&names[..1])?;
        for name in &names[1..] {
            let Some(end) = walk.end.take() else { break };
            match end.walk(&[name]) {
                Ok(next) => {
                    walk.qids.extend(next.qids);
                    walk.end = next.end;
                }
                Err(_) => break,
            }
        }
        Ok(walk)
    }

    fn rename_file(&self, from: &str, to: &str) -> Result<()> {
        // What is being written must be there before it can be copied, and cannot be written any more after that.
        if let Some(writing) = self.tree.writing(from) {
            writing.store()?;
            writing.close();
            self.tree.stop_writing(from);
        }
        if let Some(writing) = self.tree.stop_writing(to) {
            writing.remove();
        }
        self.tree.bucket().copy(from, to)?;
        self.tree.forget(to);
        self.tree.bucket().delete("rename", from)?;
        self.tree.forget(from);
        // As elsewhere, a directory does not go with its last file.
        self.tree.make(self.tree.above(from));
        Ok(())
    }
}

/// Refuses what an object cannot keep, unless it would change nothing.
pub(crate) fn check_attributes(set: &SetAttributes, shown: &Attributes) -> Result<()> {
    let valid = set.valid;
    let differs = (valid.contains(SetattrMask::MODE)
        && set.mode & p9::mode::PERMISSIONS != shown.mode & p9::mode::PERMISSIONS)
        || (valid.contains(SetattrMask::UID) && set.uid != shown.uid)
        || (valid.contains(SetattrMask::GID) && set.gid != shown.gid)
        || valid.intersects(SetattrMask::ATIME_SET | SetattrMask::MTIME_SET);
    for (mask, time) in [(SetattrMask::ATIME_SET, set.atime), (SetattrMask::MTIME_SET, set.mtime)] {
        if valid.contains(mask) && time.nanoseconds >= 1_000_000_000 {
            return Err(refusal("utimensat", Errno::EINVAL));
        }
    }
    if differs {
        return Err(Error::Unsupported { operation: "setattr", store: "object" });
    }
    Ok(())
}

impl Node for ObjectNode {
    fn qid(&self) -> Qid {
        self.tree.qid(&self.key, &self.seen())
    }

    fn blocks(&self) -> bool {
        true
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        if names.is_empty() {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let node = Self::new(&self.tree, self.key.clone(), seen.found.clone(), seen.when);
            return Ok(Walk { qids: Vec::new(), end: Some(Arc::new(node)) });
        }
        let web = !self.tree.bucket().lists();
        if !web {
            self.directory("walk")?;
        }
        if names[1..].contains(&&b".."[..]) {
            return self.walk_step_by_step(names);
        }
        let mut keys: Vec<String> = Vec::with_capacity(names.len());
        let mut wrong = None;
        for name in names {
            let here = keys.last().unwrap_or(&self.key);
            let next = match *name {
                b".." => Ok(self.tree.above(here).to_owned()),
                b"." => Ok(here.clone()),
                name => {
                    check_name("walk", name, Errno::EINVAL).and_then(|()| join("walk", here, name))
                }
            };
            match next {
                Ok(key) => keys.push(key),
                Err(error) => {
                    wrong = Some(error);
                    break;
                }
            }
        }
        // If the last is there, so are the directories above it: one question instead of one for each.
        let directory = |key: &String| self.tree.qid(key, &Found::Directory);
        for reached in (1..=keys.len()).rev() {
            let key = &keys[reached - 1];
            let is_whole = reached == names.len();
            let went_up = names[reached - 1] == b"..";
            let found = if went_up || (web && !is_whole) {
                Some(Found::Directory)
            } else {
                // Of a web server's, more may follow: whether it is there is asked when it is used.
                self.tree.look("walk", key, true)?.or(web.then_some(Found::Directory))
            };
            let Some(found) = found else { continue };
            let mut qids: Vec<Qid> = keys[..reached - 1].iter().map(directory).collect();
            qids.push(self.tree.qid(key, &found));
            let is_certain = self.tree.writing(key).is_none() && self.tree.listed(key).is_none();
            let when = is_certain.then(Instant::now);
            let end = Self::new(&self.tree, key.clone(), found, when);
            let end = is_whole.then(|| Arc::new(end) as Arc<dyn Node>);
            return Ok(Walk { qids, end });
        }
        Err(wrong.unwrap_or_else(|| missing("walk")))
    }

    fn attributes(&self) -> Result<Attributes> {
        if self.key == self.tree.root {
            self.tree.see_root()?;
        }
        let found = self.now_or_listed("stat", true)?;
        Ok(self.tree.attributes(&self.key, &found))
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        let found = self.now("setattr")?;
        check_attributes(set, &self.tree.attributes(&self.key, &found))?;
        if !set.valid.contains(SetattrMask::SIZE) {
            return Ok(());
        }
        match found {
            Found::Directory => Err(refusal("truncate", Errno::EISDIR)),
            Found::File(meta) if meta.size == set.size => Ok(()),
            Found::Pending(writing) => writing.resize(set.size),
            Found::File(_) => {
                let open = self.open(OpenFlags::WRITE_ONLY)?;
                open.set_attributes(&SetAttributes {
                    valid: SetattrMask::SIZE,
                    size: set.size,
                    ..SetAttributes::default()
                })?;
                open.close()
            }
        }
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        if flags.bits() & 3 == 3 {
            return Err(refusal("open", Errno::EINVAL));
        }
        // Close-to-open: what a listing said is not good enough.
        let found = self.now("open")?;
        match found {
            Found::Directory if flags.writes() || flags.contains(OpenFlags::TRUNCATE) => {
                Err(refusal("open", Errno::EISDIR))
            }
            Found::Directory => Ok(Arc::new(OpenListing(Directory::new(&self.tree, &self.key)))),
            found => self.open_file(found, flags),
        }
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        _mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        let key = self.child("open", name, Errno::EISDIR)?;
        if !self.tree.bucket().lists() {
            return self.unsupported("open", "files of a web server can be read only");
        }
        let flags_open = flags - OpenFlags::CREATE - OpenFlags::EXCLUSIVE;
        let found = self.target("open", &key)?;
        if let Some(found) = found {
            if flags.contains(OpenFlags::EXCLUSIVE) {
                return Err(refusal("open", Errno::EEXIST));
            }
            let node = Self::new(&self.tree, key, found, Some(Instant::now()));
            let open = node.open(flags_open)?;
            return Ok((Arc::new(node), open));
        }
        let file = OpenFile::new(&self.tree, &key, flags_open);
        file.create(flags.contains(OpenFlags::EXCLUSIVE))?;
        self.tree.forget(&key);
        let node = Self::new(&self.tree, key, Found::Directory, None);
        node.learn();
        Ok((Arc::new(node), Arc::new(file)))
    }

    fn make_directory(&self, name: &[u8], _mode: u32) -> Result<Qid> {
        let key = self.child("mkdir", name, Errno::EEXIST)?;
        if self.target("mkdir", &key)?.is_some() {
            return Err(refusal("mkdir", Errno::EEXIST));
        }
        self.tree.mark(&key)?;
        Ok(self.tree.qid(&key, &Found::Directory))
    }

    fn make_symlink(&self, name: &[u8], _target: &[u8]) -> Result<Qid> {
        self.child("symlink", name, Errno::EEXIST)?;
        self.unsupported("symlink", "an object store has no links")
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        self.child("link", name, Errno::EEXIST)?;
        let other = (existing as &dyn Any).downcast_ref::<Self>();
        if !other.is_some_and(|other| Arc::ptr_eq(&other.tree, &self.tree)) {
            return Err(Error::AcrossStores { operation: "link" });
        }
        self.unsupported("link", "an object store has no links")
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        let target = (new_dir as &dyn Any).downcast_ref::<Self>();
        let target = target.filter(|target| Arc::ptr_eq(&target.tree, &self.tree));
        let Some(target) = target else {
            return Err(Error::AcrossStores { operation: "rename" });
        };
        let from = self.child("rename", old, Errno::EBUSY)?;
        let to = target.child("rename", new, Errno::EBUSY)?;
        let found = self.target("rename", &from)?.ok_or_else(|| missing("rename"))?;
        let there = self.target("rename", &to)?;
        if from == to {
            return Ok(());
        }
        match (&found, &there) {
            (Found::Directory, Some(Found::File(_) | Found::Pending(_))) => {
                Err(refusal("rename", Errno::ENOTDIR))
            }
            (Found::Directory, _) => self.unsupported(
                "rename",
                "a directory cannot be renamed in an object store, where it would mean to copy every object; copy what \
                 you need: sluice cp -r",
            ),
            (_, Some(Found::Directory)) => Err(refusal("rename", Errno::EISDIR)),
            (_, _) => self.rename_file(&from, &to),
        }
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        let for_dots = if directory { Errno::EINVAL } else { Errno::EISDIR };
        let key = self.child("unlink", name, for_dots)?;
        let found = self.target("unlink", &key)?.ok_or_else(|| missing("unlink"))?;
        match (found, directory) {
            (Found::Directory, false) => Err(refusal("unlink", Errno::EISDIR)),
            (Found::Directory, true) => {
                let listed = self.tree.list("rmdir", &key)?;
                if !listed.files.is_empty() || !listed.directories.is_empty() {
                    return Err(refusal("rmdir", Errno::ENOTEMPTY));
                }
                self.tree.unmark(&key)?;
                self.tree.make(&self.key);
                Ok(())
            }
            (_, true) => Err(refusal("rmdir", Errno::ENOTDIR)),
            (_, false) => {
                if let Some(writing) = self.tree.stop_writing(&key) {
                    writing.remove();
                }
                self.tree.bucket().delete("unlink", &key)?;
                self.tree.forget(&key);
                // As elsewhere, a directory does not go with its last file.
                self.tree.make(&self.key);
                Ok(())
            }
        }
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        if self.key == self.tree.root {
            return Err(missing("parent"));
        }
        self.now("parent")?;
        let above = self.tree.above(&self.key).to_owned();
        let name = self.key.rsplit('/').next().unwrap_or_default().as_bytes().to_vec();
        Ok((Arc::new(Self::new(&self.tree, above, Found::Directory, None)), name))
    }

    fn statfs(&self) -> Result<StatFs> {
        /// There is no limit that a bucket would tell.
        const PLENTY: u64 = 1 << 50;
        Ok(StatFs {
            kind: 0x0102_1997,
            block_size: 4096,
            blocks: PLENTY / 4096,
            blocks_free: PLENTY / 4096,
            blocks_available: PLENTY / 4096,
            files: PLENTY / 4096,
            files_free: PLENTY / 4096,
            fsid: self.tree.identity(&self.tree.root),
            name_max: 255,
        })
    }
}
