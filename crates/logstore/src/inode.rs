//! Files, whatever their names: what the log knows of them over what the target has.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

use hostlog::{FileId, Sequence};
use p9::{Attributes, Errno, GetattrMask, OpenFlags, Qid, QidType, Time, mode};
use store::{FileLocks, Node, OpenNode};

use crate::content::Content;
use crate::error::refusal;
use crate::names::{Entry, Names, Place};
use crate::sharing::Sharing;
use crate::tree::{guard, now, reading, writing};

/// What the target has of a file.
#[derive(Clone)]
pub(crate) enum Base {
    /// Nothing, or nothing that is known yet: all there is of the file is in the log.
    None,
    /// This: a handle, which leads to the file whatever it is called there.
    Node(Arc<dyn Node>),
    /// Something that has not been looked up, while the log is read after a start.
    Unknown,
    /// Something that is not found there: somebody else has removed or replaced it.
    Lost,
}

pub(crate) enum Body {
    /// `None` as long as only the target has bytes of it.
    File(RwLock<Option<Content>>),
    Directory(Mutex<Names>),
    /// The target, where the link was made here.
    Symlink(Option<Vec<u8>>),
}

/// Attributes that are ours to tell, since the log has changed them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u64,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
    pub(crate) btime: Time,
    pub(crate) version: u32,
}

pub(crate) struct Inode {
    /// `qid.path`. Set once; while the log is read after a start it may not be known.
    number: OnceLock<u64>,
    file_id: OnceLock<FileId>,
    /// The record that created it, if one did.
    pub(crate) created: Option<Sequence>,
    base: RwLock<Base>,
    /// The base, opened for reading.
    reader: Mutex<Option<Arc<dyn OpenNode>>>,
    pub(crate) meta: Mutex<Option<Meta>>,
    pub(crate) body: Body,
    /// Names of it that somebody knows; directories have but one, and know it themselves.
    pub(crate) entries: Mutex<Vec<Weak<Entry>>>,
    pub(crate) home: Mutex<Option<Place>>,
    /// Names of which the log says that they are the file id's; for what is no directory.
    bound: Mutex<Vec<Place>>,
    pub(crate) locks: Arc<FileLocks>,
    pub(crate) sharing: Mutex<Sharing>,
    pub(crate) openings: AtomicUsize,
    /// The last record about it.
    last: AtomicU64,
    /// Whether the tree keeps it, because the target has not all of it.
    pub(crate) is_held: AtomicBool,
    /// Whether attributes and size are in memory.
    pub(crate) is_loaded: AtomicBool,
    /// Whether it has lost the names that the log knew, and has others in the target.
    pub(crate) is_astray: AtomicBool,
    /// Whether its content is not known any more.
    pub(crate) is_broken: AtomicBool,
}

/// A mark in `qid.path` of what the log has made. Numbers of the target do not have it: inode numbers are
/// smaller, and the marks of other devices in the upper 16 bits are odd (`store::fs`).
const MADE_HERE: u64 = 0x8000 << 48;

/// The distance of file ids: their low bits say what they are of, so that after a restart everything is
/// what it was, and has the number that clients know, before anybody has looked for it in the target.
pub(crate) const FILE_ID_STEP: u64 = 8;

/// The low bits of the id of something, which the log has made or which the target had.
pub(crate) fn marks(kind: QidType, made_here: bool) -> u64 {
    let kind = match kind {
        QidType::DIR => 2,
        QidType::SYMLINK => 4,
        _ => 0,
    };
    kind | u64::from(made_here)
}

/// Whether the log has made it.
pub(crate) fn is_made_here(file: FileId) -> bool {
    file.0 & 1 == 1
}

/// What it is.
pub(crate) fn kind_of(file: FileId) -> QidType {
    match file.0 & 6 {
        2 => QidType::DIR,
        4 => QidType::SYMLINK,
        _ => QidType::empty(),
    }
}

impl Inode {
    fn blank(base: Base, body: Body, created: Option<Sequence>) -> Self {
        Self {
            number: OnceLock::new(),
            file_id: OnceLock::new(),
            created,
            base: RwLock::new(base),
            reader: Mutex::new(None),
            meta: Mutex::new(None),
            body,
            entries: Mutex::default(),
            home: Mutex::default(),
            bound: Mutex::default(),
            locks: Arc::default(),
            sharing: Mutex::default(),
            openings: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            is_held: AtomicBool::new(false),
            is_loaded: AtomicBool::new(false),
            is_astray: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
        }
    }

    /// A file of the target.
    pub(crate) fn of_target(node: Arc<dyn Node>) -> Self {
        let qid = node.qid();
        let inode = Self::blank(Base::Node(node), body_of(qid.kind), None);
        inode.set_number(qid.path);
        inode
    }

    /// A file of the target that is to be looked up later.
    pub(crate) fn unknown(kind: QidType) -> Self {
        Self::blank(Base::Unknown, body_of(kind), None)
    }

    /// A new file.
    pub(crate) fn made(file: FileId, body: Body, meta: Meta, sequence: Sequence) -> Self {
        let inode = Self::blank(Base::None, body, Some(sequence));
        inode.set_file_id(file);
        inode.set_number(MADE_HERE | file.0);
        *guard(&inode.meta) = Some(meta);
        inode.is_loaded.store(true, Ordering::Release);
        inode.touched_by(sequence);
        inode
    }

    /// A file that the log has made in an earlier life, and that is in the target by now.
    pub(crate) fn drained(file: FileId) -> Self {
        let inode = Self::unknown(kind_of(file));
        inode.set_file_id(file);
        inode.set_number(MADE_HERE | file.0);
        inode
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.get().copied().unwrap_or_default()
    }

    /// Has no effect the second time.
    pub(crate) fn set_number(&self, number: u64) {
        let _ = self.number.set(number);
    }

    pub(crate) fn file_id(&self) -> Option<FileId> {
        self.file_id.get().copied()
    }

    /// Has no effect the second time.
    pub(crate) fn set_file_id(&self, file: FileId) {
        let _ = self.file_id.set(file);
    }

    pub(crate) fn kind(&self) -> QidType {
        match self.body {
            Body::File(_) => QidType::empty(),
            Body::Directory(_) => QidType::DIR,
            Body::Symlink(_) => QidType::SYMLINK,
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory(_))
    }

    /// The names in this directory.
    pub(crate) fn names(&self, operation: &'static str) -> store::Result<&Mutex<Names>> {
        match &self.body {
            Body::Directory(names) => Ok(names),
            Body::File(_) | Body::Symlink(_) => Err(refusal(operation, Errno::ENOTDIR)),
        }
    }

    pub(crate) fn base(&self) -> Base {
        reading(&self.base).clone()
    }

    pub(crate) fn set_base(&self, base: Base) {
        *writing(&self.base) = base;
    }

    /// The node in the target, if there is one.
    ///
    /// # Errors
    /// `ESTALE` where there should be one.
    pub(crate) fn base_node(
        &self,
        operation: &'static str,
    ) -> store::Result<Option<Arc<dyn Node>>> {
        match self.base() {
            Base::Node(node) => Ok(Some(node)),
            Base::None => Ok(None),
            Base::Unknown | Base::Lost => Err(refusal(operation, Errno::ESTALE)),
        }
    }

    /// The base, opened for reading; it stays open as long as anybody has the file.
    pub(crate) fn reader(&self) -> store::Result<Option<Arc<dyn OpenNode>>> {
        let Some(base) = self.base_node("read")? else { return Ok(None) };
        let mut reader = guard(&self.reader);
        if reader.is_none() {
            *reader = Some(base.open(OpenFlags::empty())?);
        }
        Ok(reader.clone())
    }

    /// Keeps an opening of the base for reading.
    pub(crate) fn keep_reader(&self, open: Arc<dyn OpenNode>) {
        guard(&self.reader).get_or_insert(open);
    }

    /// Closes the base, unless it could not be found again.
    pub(crate) fn close_reader(&self) {
        if self.nlink() != Some(0) {
            let reader = guard(&self.reader).take();
            drop(reader);
        }
    }

    /// The names that the log knows it by.
    pub(crate) fn bound(&self) -> Vec<Place> {
        guard(&self.bound).clone()
    }

    pub(crate) fn add_bound(&self, dir: &Arc<Inode>, name: &[u8]) {
        let mut bound = guard(&self.bound);
        if !self.is_directory() && !bound.iter().any(|place| place.is(dir, name)) {
            bound.push(Place { dir: Arc::clone(dir), name: name.to_vec() });
        }
    }

    pub(crate) fn remove_bound(&self, dir: &Arc<Inode>, name: &[u8]) {
        let mut bound = guard(&self.bound);
        let gone = bound.iter().position(|place| place.is(dir, name));
        let gone = gone.map(|index| bound.swap_remove(index));
        drop(bound);
        drop(gone);
    }

    pub(crate) fn last(&self) -> Sequence {
        Sequence(self.last.load(Ordering::Acquire))
    }

    pub(crate) fn touched_by(&self, sequence: Sequence) {
        self.last.fetch_max(sequence.0, Ordering::AcqRel);
    }

    pub(crate) fn nlink(&self) -> Option<u64> {
        guard(&self.meta).map(|meta| meta.nlink)
    }

    pub(crate) fn qid(&self) -> Qid {
        let version = guard(&self.meta).map(|meta| meta.version);
        let version = version.unwrap_or_else(|| match self.base() {
            Base::Node(node) => node.qid().version,
            Base::None | Base::Unknown | Base::Lost => 0,
        });
        Qid { kind: self.kind(), version, path: self.number() }
    }

    /// Has the attributes in memory from here on.
    pub(crate) fn load_meta(&self, operation: &'static str) -> store::Result<()> {
        if guard(&self.meta).is_some() {
            return Ok(());
        }
        let base = self.base_node(operation)?.ok_or(refusal(operation, Errno::ESTALE))?;
        let found = base.attributes()?;
        let t = now();
        // Any number that the file has not had before does.
        let version = found.qid.version ^ (t.nanoseconds as u32).rotate_left(7) ^ 1;
        guard(&self.meta).get_or_insert(Meta {
            mode: found.mode,
            uid: found.uid,
            gid: found.gid,
            nlink: found.nlink,
            atime: found.atime,
            mtime: found.mtime,
            ctime: found.ctime,
            btime: found.btime,
            version,
        });
        Ok(())
    }

    pub(crate) fn attributes(&self) -> store::Result<Attributes> {
        let size = match &self.body {
            Body::File(content) => reading(content).as_ref().map(Content::size),
            Body::Directory(_) => None,
            Body::Symlink(target) => target.as_ref().map(|target| target.len() as u64),
        };
        let counts = match self.body {
            Body::File(_) => GetattrMask::CLOSE_COUNTS,
            Body::Directory(_) | Body::Symlink(_) => GetattrMask::empty(),
        };
        let Some(meta) = *guard(&self.meta) else {
            let found = self.base_node("stat")?.ok_or(refusal("stat", Errno::ESTALE))?;
            let found = found.attributes()?;
            let qid = Qid { path: self.number(), ..found.qid };
            let valid = found.valid | counts;
            return Ok(Attributes { valid, qid, size: size.unwrap_or(found.size), ..found });
        };
        let size = match size {
            Some(size) => size,
            // Of a directory it says nothing; that of a symbolic link never changes.
            None if self.is_directory() => 4096,
            None => match self.base_node("stat")? {
                Some(base) => base.attributes()?.size,
                None => 0,
            },
        };
        Ok(Attributes {
            valid: GetattrMask::BASIC | GetattrMask::BTIME | GetattrMask::DATA_VERSION | counts,
            qid: Qid { kind: self.kind(), version: meta.version, path: self.number() },
            mode: meta.mode,
            uid: meta.uid,
            gid: meta.gid,
            nlink: meta.nlink,
            rdev: 0,
            size,
            block_size: 4096,
            blocks: size.div_ceil(512),
            atime: meta.atime,
            mtime: meta.mtime,
            ctime: meta.ctime,
            btime: meta.btime,
            generation: 0,
            data_version: meta.version.into(),
        })
    }

    /// Notes that the content changed; as write(2) does, takes away what ran with the owner's rights.
    pub(crate) fn touch_content(&self, user: u32) {
        self.change_meta(|meta, t| {
            (meta.mtime, meta.ctime) = (t, t);
            if user != 0 && meta.mode & mode::TYPE_MASK == mode::REGULAR {
                meta.drop_owner_rights();
            }
        });
    }

    /// Adds links, or with a negative number takes them away.
    pub(crate) fn add_links(&self, change: i64) {
        self.change_meta(|meta, t| {
            meta.nlink = meta.nlink.saturating_add_signed(change);
            meta.ctime = t;
        });
    }

    /// Changes attributes that are loaded.
    pub(crate) fn change_meta(&self, change: impl FnOnce(&mut Meta, Time)) {
        let t = now();
        if let Some(meta) = guard(&self.meta).as_mut() {
            change(meta, t);
            meta.version = meta.version.wrapping_add(1);
        }
    }
}

impl Meta {
    /// Those of something new.
    pub(crate) fn new(mode: u32, (uid, gid): (u32, u32)) -> Self {
        let t = now();
        let nlink = if mode & mode::TYPE_MASK == mode::DIRECTORY { 2 } else { 1 };
        let version = (t.nanoseconds as u32).rotate_left(7) ^ t.seconds as u32;
        Self { mode, uid, gid, nlink, atime: t, mtime: t, ctime: t, btime: t, version }
    }

    /// Takes the set-user-ID bit away, and the set-group-ID bit where it is one (inode(7)).
    pub(crate) fn drop_owner_rights(&mut self) {
        self.mode &= !0o4000;
        if self.mode & 0o010 != 0 {
            self.mode &= !0o2000;
        }
    }
}

fn body_of(kind: QidType) -> Body {
    match kind {
        QidType::DIR => Body::Directory(Mutex::default()),
        QidType::SYMLINK => Body::Symlink(None),
        _ => Body::File(RwLock::default()),
    }
}
