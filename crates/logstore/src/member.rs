//! The store of a node that keeps bytes of its own, while another node, the home, keeps the order of everything.
//!
//! All is the home's, and asked of it, but for one thing: what a rank writes to a file that it has open with others goes
//! to this node's log if it is large enough, and the home is told where it is.
//!
//! 1. [`Node::set_xattr`] hands on what a rank tells. Before it hands on that a rank has come to an epoch, this log is
//!    synced: what the home commits is durable everywhere.
//! 2. [`OpenNode::write_at`] appends to the log, and tells the home ([`epochs::Extent`]); where there is no space,
//!    or the home does not know the writer as a rank, the bytes go to the home.
//! 3. [`MemberStore::look_after`] asks the home how far it is, and gives space back that it needs no more.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use epochs::{Extent, Notice, Standing};
use hostlog::{FileId, Log, Sequence, Write};
use p9::{Attributes, DirEntry, Errno, OpenFlags, Qid, SetAttributes, StatFs};
use store::{LockOwner, LockRange, Node, OpenNode, Result, Store, Walk};

use crate::error::refusal;
use crate::files::told;
use crate::tree::guard;

/// The one file of a member's log: whose bytes are whose the home knows.
const FILE: FileId = FileId(1);

/// See the module.
pub struct MemberStore {
    home: Arc<dyn Store>,
    kept: Arc<Kept>,
}

/// What this node keeps.
struct Kept {
    log: Arc<Log>,
    /// What others call it.
    number: u64,
    /// Writes of fewer bytes go to the home.
    len_min: usize,
    /// The last record of bytes.
    last: AtomicU64,
    /// Held for reading while bytes are in the log of which the home has not been told yet.
    telling: RwLock<()>,
    /// Records up to the first are needed until the home has drained the second.
    mark: Mutex<Option<(Sequence, u64)>>,
    /// Nobody needs records up to here.
    given_back: AtomicU64,
}

/// What is left of this node's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// The home may need some.
    Yes,
    /// Nobody needs any.
    No,
}

impl MemberStore {
    /// Keeps in `log` what the ranks of this node write, in pieces of at least `len_min` bytes, and asks `home` for all
    /// else. `number` is what others call the log. Each attach of `home` must be a stream of its own there.
    #[must_use]
    pub fn new(home: Arc<dyn Store>, log: Arc<Log>, number: u64, len_min: usize) -> Self {
        // What an earlier use left is asked about as if it were this one's.
        let status = log.status();
        let kept = Kept {
            number,
            len_min,
            last: AtomicU64::new(status.last.0),
            telling: RwLock::default(),
            mark: Mutex::default(),
            given_back: AtomicU64::new(status.drained.0),
            log,
        };
        Self { home, kept: Arc::new(kept) }
    }

    /// Gives space back that the home needs no more, and says whether it needs any. `root` is the home's root.
    ///
    /// # Errors
    /// The home's, and the log's.
    pub fn look_after(&self, root: &dyn Node) -> Result<Needed> {
        let kept = &*self.kept;
        let before = {
            let _turn = kept.telling.write().unwrap_or_else(PoisonError::into_inner);
            Sequence(kept.last.load(Ordering::Acquire))
        };
        if kept.given_back.load(Ordering::Acquire) >= before.0 {
            return Ok(Needed::No);
        }
        let answer = root.xattr(epochs::ELSEWHERE)?;
        let standing = Standing::parse(&answer).map_err(|_| refusal("getxattr", Errno::EPROTO))?;
        let mut mark = guard(&kept.mark);
        let through = match *mark {
            _ if standing.is_idle => before,
            Some((through, last)) if standing.drained >= last => through,
            Some(_) => return Ok(Needed::Yes),
            None => {
                *mark = Some((before, standing.last));
                return Ok(Needed::Yes);
            }
        };
        *mark = None;
        let given_back = kept.log.sync().and_then(|()| kept.log.drained(through, &[]));
        given_back.map_err(|error| told("fsync", error))?;
        kept.given_back.store(through.0, Ordering::Release);
        Ok(if through == before { Needed::No } else { Needed::Yes })
    }
}

impl Store for MemberStore {
    fn root(&self) -> Result<Arc<dyn Node>> {
        let attach = Attach { kept: Arc::clone(&self.kept), joined: Mutex::default() };
        Ok(Arc::new(MemberNode { attach: Arc::new(attach), inner: self.home.root()? }))
    }

    fn blocks(&self) -> bool {
        true
    }
}

/// One process of this node.
struct Attach {
    kept: Arc<Kept>,
    /// The files that it has open as a rank, by the group and the rank.
    joined: Mutex<HashMap<(epochs::Group, u32), u64>>,
}

impl Attach {
    fn has_joined(&self, file: u64) -> bool {
        guard(&self.joined).values().any(|joined| *joined == file)
    }

    /// Makes durable what this node keeps.
    fn sync(&self) -> Result<()> {
        self.kept.log.sync().map_err(|error| told("fsync", error))
    }
}

struct MemberNode {
    attach: Arc<Attach>,
    inner: Arc<dyn Node>,
}

impl MemberNode {
    fn node(&self, inner: Arc<dyn Node>) -> Arc<dyn Node> {
        Arc::new(Self { attach: Arc::clone(&self.attach), inner })
    }

    fn opened(
        &self,
        node: &Arc<dyn Node>,
        inner: Arc<dyn OpenNode>,
        flags: OpenFlags,
    ) -> MemberOpen {
        MemberOpen {
            attach: Arc::clone(&self.attach),
            node: Arc::clone(node),
            file: node.qid().path,
            flags,
            has_kept: AtomicBool::new(false),
            inner,
        }
    }

    /// The node that the home knows.
    fn kin<'n>(operation: &'static str, other: &'n dyn Node) -> Result<&'n dyn Node> {
        let other = (other as &dyn Any).downcast_ref::<Self>();
        other.map(|other| &*other.inner).ok_or(store::Error::AcrossStores { operation })
    }

    fn notice(&self, notice: Notice, value: &[u8], flags: u32) -> Result<()> {
        let attach = &*self.attach;
        if !matches!(notice, Notice::Join { .. }) {
            attach.sync()?;
        }
        if let Notice::Leave { group, rank, .. } = notice {
            guard(&attach.joined).remove(&(group, rank));
        }
        self.inner.set_xattr(epochs::NOTICE, value, flags)?;
        if let Notice::Join { group, rank, .. } = notice {
            guard(&attach.joined).insert((group, rank), self.inner.qid().path);
        }
        Ok(())
    }
}

impl Node for MemberNode {
    fn qid(&self) -> Qid {
        self.inner.qid()
    }

    fn blocks(&self) -> bool {
        true
    }

    fn walk(&self, names: &[&[u8]]) -> Result<Walk> {
        let Walk { qids, end } = self.inner.walk(names)?;
        Ok(Walk { qids, end: end.map(|inner| self.node(inner)) })
    }

    fn attributes(&self) -> Result<Attributes> {
        self.inner.attributes()
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.inner.set_attributes(set)
    }

    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>> {
        Ok(Arc::new(self.opened(&self.inner, self.inner.open(flags)?, flags)))
    }

    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        let (node, open) = self.inner.create(name, flags, mode)?;
        let open = self.opened(&node, open, flags);
        Ok((self.node(node), Arc::new(open)))
    }

    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        self.inner.make_directory(name, mode)
    }

    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        self.inner.make_symlink(name, target)
    }

    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        self.inner.link(Self::kin("link", existing)?, name)
    }

    fn read_link(&self) -> Result<Vec<u8>> {
        self.inner.read_link()
    }

    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        self.inner.rename(old, Self::kin("rename", new_dir)?, new)
    }

    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        self.inner.remove(name, directory)
    }

    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)> {
        let (node, name) = self.inner.parent()?;
        Ok((self.node(node), name))
    }

    fn statfs(&self) -> Result<StatFs> {
        self.inner.statfs()
    }

    fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        self.inner.xattr(name)
    }

    fn xattr_list(&self) -> Result<Vec<u8>> {
        self.inner.xattr_list()
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], flags: u32) -> Result<()> {
        match (name, Notice::parse(value)) {
            (epochs::NOTICE, Ok(notice)) => self.notice(notice, value, flags),
            // Agents say that, and no program.
            (epochs::ELSEWHERE, _) => Err(refusal("setxattr", Errno::EPERM)),
            _ => self.inner.set_xattr(name, value, flags),
        }
    }

    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        self.inner.remove_xattr(name)
    }
}

struct MemberOpen {
    attach: Arc<Attach>,
    node: Arc<dyn Node>,
    file: u64,
    flags: OpenFlags,
    /// Whether something that was written through it is in this node's log.
    has_kept: AtomicBool,
    inner: Arc<dyn OpenNode>,
}

impl MemberOpen {
    /// Appends to this node's log, and tells the home. `None`: the home has to take the bytes.
    fn keep(&self, data: &[u8], offset: u64) -> Result<Option<usize>> {
        let kept = &*self.attach.kept;
        let _telling = kept.telling.read().unwrap_or_else(PoisonError::into_inner);
        let write = Write { stream: 0, file: FILE, member: None, offset, bytes: data };
        let placed = match kept.log.write(&write) {
            Ok(placed) => placed,
            Err(hostlog::Error::Full { .. }) => return Ok(None),
            Err(error) => return Err(told("write", error)),
        };
        self.has_kept.store(true, Ordering::Release);
        let mut done = 0;
        for piece in placed.iter() {
            kept.last.fetch_max(piece.sequence.0, Ordering::AcqRel);
            let (segment, at) = (piece.at.segment, piece.at.offset);
            let log = kept.number;
            let extent = Extent { offset: piece.offset, len: piece.len, log, segment, at };
            let text = extent.to_string();
            match self.node.set_xattr(epochs::ELSEWHERE, text.as_bytes(), 0) {
                Ok(()) => done += piece.len as usize,
                Err(_) if done > 0 => break,
                Err(error) if error.to_errno() == Errno::EINVAL => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(done))
    }
}

impl OpenNode for MemberOpen {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize> {
        let at_once = OpenFlags::APPEND | OpenFlags::DSYNC | OpenFlags::SYNC;
        let fits = offset.checked_add(data.len() as u64).is_some_and(|end| end <= i64::MAX as u64);
        let may_keep = self.flags.writes()
            && !self.flags.intersects(at_once)
            && fits
            && data.len() >= self.attach.kept.len_min.max(1)
            && self.attach.has_joined(self.file);
        if may_keep && let Some(done) = self.keep(data, offset)? {
            return Ok(done);
        }
        self.inner.write_at(data, offset)
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        self.inner.read_directory(cookie, take)
    }

    fn attributes(&self) -> Result<Attributes> {
        self.inner.attributes()
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.inner.set_attributes(set)
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        if self.has_kept.load(Ordering::Acquire) {
            self.attach.sync()?;
        }
        self.inner.sync(data_only)
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }

    fn lost(&self) {
        self.inner.lost();
    }

    fn lock(&self, owner: &LockOwner, range: LockRange) -> Result<bool> {
        self.inner.lock(owner, range)
    }

    fn lock_in_the_way(
        &self,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        self.inner.lock_in_the_way(owner, range)
    }
}
