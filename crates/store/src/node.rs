//! The store trait and what hangs from it.

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use p9::{Attributes, DirEntry, Errno, LockKind, OpenFlags, Qid, SetAttributes, StatFs};

use crate::error::{Error, Result};
use crate::locks::OpeningLocks;
use crate::wholes::Wholes;

/// A place where data lives: a tree of nodes.
pub trait Store: Send + Sync {
    /// The top directory.
    ///
    /// # Errors
    /// When the place cannot be reached.
    fn root(&self) -> Result<Arc<dyn Node>>;

    /// Whether [`Store::root`], or a walk from it, may wait for another machine.
    fn blocks(&self) -> bool {
        false
    }

    /// How files are replaced, if none can be changed in part.
    fn wholes(&self) -> Option<&dyn Wholes> {
        None
    }
}

/// Where a walk ended.
pub struct Walk {
    /// Identity of each element reached, in order.
    pub qids: Vec<Qid>,
    /// The last node, when every element was reached.
    pub end: Option<Arc<dyn Node>>,
}

/// A file, directory or symbolic link, not opened. Two-node operations ([`Node::rename`],
/// [`Node::link`]) find their own kind by downcasting through [`Any`]. What only directories and links
/// can do is refused as a regular file does, unless a node says otherwise.
pub trait Node: Any + Send + Sync {
    /// Identity: `path` is unique among all files of the store, `kind` tells directories and
    /// symbolic links, `version` changes with the content. It is that of this moment where that is
    /// known without asking another machine, and otherwise that of the last walk, opening or
    /// [`Node::attributes`].
    fn qid(&self) -> Qid;

    /// Whether operations on this node, and on what is opened from it, may wait for another
    /// machine. A service then does them in a pool of threads, so that they overlap.
    fn blocks(&self) -> bool {
        false
    }

    /// Goes down by names. `..` goes up but never above the root; symbolic links are not followed,
    /// so that an element behind one is `ENOTDIR`. An empty walk gives a second handle of this
    /// node.
    ///
    /// # Errors
    /// When the *first* element cannot be reached; later ones only end the walk (walk(5)).
    fn walk(&self, names: &[&[u8]]) -> Result<Walk>;

    /// What stat(2) tells.
    ///
    /// # Errors
    /// As stat(2).
    fn attributes(&self) -> Result<Attributes>;

    /// Changes what is marked valid.
    ///
    /// # Errors
    /// As chmod(2), chown(2), truncate(2), utimensat(2).
    fn set_attributes(&self, set: &SetAttributes) -> Result<()>;

    /// Opens a regular file or a directory. `CREATE` and `EXCLUSIVE` mean nothing here;
    /// `TRUNCATE` empties; `NONBLOCK` changes nothing, since it never waits.
    ///
    /// # Errors
    /// As open(2); `ELOOP` for symbolic links, `ENXIO` for what is neither file nor directory.
    fn open(&self, flags: OpenFlags) -> Result<Arc<dyn OpenNode>>;

    /// Creates a regular file in this directory and opens it. Without `EXCLUSIVE` an existing file
    /// is opened, as open(2) does. `mode` is taken as it is: the client has applied its umask.
    ///
    /// # Errors
    /// As open(2) with `O_CREAT`.
    fn create(
        &self,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<(Arc<dyn Node>, Arc<dyn OpenNode>)> {
        let _ = (name, flags, mode);
        Err(Error::System { operation: "open", errno: Errno::ENOTDIR })
    }

    /// Makes a directory in this one.
    ///
    /// # Errors
    /// As mkdir(2).
    fn make_directory(&self, name: &[u8], mode: u32) -> Result<Qid> {
        let _ = (name, mode);
        Err(Error::System { operation: "mkdir", errno: Errno::ENOTDIR })
    }

    /// Makes a symbolic link in this directory.
    ///
    /// # Errors
    /// As symlink(2).
    fn make_symlink(&self, name: &[u8], target: &[u8]) -> Result<Qid> {
        let _ = (name, target);
        Err(Error::System { operation: "symlink", errno: Errno::ENOTDIR })
    }

    /// Makes `name` in this directory another name of `existing`.
    ///
    /// # Errors
    /// As link(2).
    fn link(&self, existing: &dyn Node, name: &[u8]) -> Result<()> {
        let _ = (existing, name);
        Err(Error::System { operation: "link", errno: Errno::ENOTDIR })
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// As readlink(2).
    fn read_link(&self) -> Result<Vec<u8>> {
        Err(Error::System { operation: "readlink", errno: Errno::EINVAL })
    }

    /// Moves `old` in this directory to `new` in `new_dir`, replacing what is there.
    ///
    /// # Errors
    /// As rename(2).
    fn rename(&self, old: &[u8], new_dir: &dyn Node, new: &[u8]) -> Result<()> {
        let _ = (old, new_dir, new);
        Err(Error::System { operation: "rename", errno: Errno::ENOTDIR })
    }

    /// Removes `name`, which must be a directory exactly when `directory` says so.
    ///
    /// # Errors
    /// As unlinkat(2).
    fn remove(&self, name: &[u8], directory: bool) -> Result<()> {
        let _ = (name, directory);
        Err(Error::System { operation: "unlink", errno: Errno::ENOTDIR })
    }

    /// The directory that holds this node and its name there, for requests that name a file by
    /// its fid only (`Tremove`, `Trename`, `Twstat`).
    ///
    /// # Errors
    /// At the root, or when the node has lost its name.
    fn parent(&self) -> Result<(Arc<dyn Node>, Vec<u8>)>;

    /// Room of the file system.
    ///
    /// # Errors
    /// As statfs(2).
    fn statfs(&self) -> Result<StatFs>;

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// As getxattr(2).
    fn xattr(&self, _name: &[u8]) -> Result<Vec<u8>> {
        Err(Error::Unsupported { operation: "getxattr", store: "this" })
    }

    /// The names of all extended attributes, each ended by a NUL, as listxattr(2) has them.
    ///
    /// # Errors
    /// As listxattr(2).
    fn xattr_list(&self) -> Result<Vec<u8>> {
        Err(Error::Unsupported { operation: "listxattr", store: "this" })
    }

    /// Sets an extended attribute; `flags` as setxattr(2). An empty value with `flags` 0 removes
    /// nothing: removal is [`Node::remove_xattr`].
    ///
    /// # Errors
    /// As setxattr(2).
    fn set_xattr(&self, _name: &[u8], _value: &[u8], _flags: u32) -> Result<()> {
        Err(Error::Unsupported { operation: "setxattr", store: "this" })
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// As removexattr(2).
    fn remove_xattr(&self, _name: &[u8]) -> Result<()> {
        Err(Error::Unsupported { operation: "removexattr", store: "this" })
    }
}

/// Who asks for a lock: locks of one owner never conflict with each other. `client` is unique
/// among a service's connections and what their peers call themselves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockOwner {
    /// The connection and the client's own name for itself.
    pub client: Vec<u8>,
    /// The client's process.
    pub process: u32,
}

/// A byte-range lock, wanted or held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockRange {
    /// Shared, exclusive or none.
    pub kind: LockKind,
    /// First byte.
    pub start: u64,
    /// Bytes; 0 means to the end of the file, however far it grows (fcntl(2)).
    pub length: u64,
}

/// Bytes in memory that stay as they are for as long as somebody holds them.
pub type Piece = Box<dyn AsRef<[u8]> + Send + Sync>;

/// A node that was opened. It stays valid when its file is renamed or removed. Who drops it has closed it,
/// unless it was said before that its user is [lost](OpenNode::lost).
pub trait OpenNode: Send + Sync {
    /// Reads at an offset; short only at the end of the file.
    ///
    /// # Errors
    /// As pread(2).
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// What [`OpenNode::read_at`] would give for `len` bytes, in pieces and without waiting, if all of it is in memory by
    /// now: for who would only copy it. It counts as a read. `None`: read it.
    fn at_hand(&self, offset: u64, len: usize) -> Option<Vec<Piece>> {
        let _ = (offset, len);
        None
    }

    /// Writes all of `data` at an offset, or at the end for `APPEND`.
    ///
    /// # Errors
    /// As pwrite(2); a count short of `data` is an error in the middle, told by the next write.
    fn write_at(&self, data: &[u8], offset: u64) -> Result<usize>;

    /// Lists a directory from `cookie` (0: from the start; else the `offset` of an entry already
    /// given) until `take` says false; the entry that it refused comes again when the listing goes
    /// on behind the one before. `.` and `..` are included, and at the root both are the root.
    /// Every entry that is there all the while comes exactly once, whatever is added and removed
    /// meanwhile. The qids have no version (0).
    ///
    /// # Errors
    /// As getdents64(2).
    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let _ = (cookie, take);
        Err(Error::System { operation: "getdents64", errno: Errno::ENOTDIR })
    }

    /// What fstat(2) tells: also after the last name is gone.
    ///
    /// # Errors
    /// As fstat(2).
    fn attributes(&self) -> Result<Attributes>;

    /// As [`Node::set_attributes`], with the rights of the opening (ftruncate(2), futimens(3)).
    ///
    /// # Errors
    /// As the calls named.
    fn set_attributes(&self, set: &SetAttributes) -> Result<()>;

    /// Makes data, and unless `data_only` attributes, durable.
    ///
    /// # Errors
    /// As fsync(2).
    fn sync(&self, data_only: bool) -> Result<()>;

    /// Ends the opening, and says what comes of that: whoever drops it without is told nothing. Nothing else is
    /// done with it afterwards.
    ///
    /// # Errors
    /// As close(2).
    fn close(&self) -> Result<()> {
        Ok(())
    }

    /// The one who had it open is gone without closing it: his connection broke, as it does when he is killed.
    /// Where a close means something, this is none.
    fn lost(&self) {}

    /// The locks of the file, where the store keeps them in this process. What has none, and answers
    /// [`OpenNode::lock`] no other way, cannot be locked.
    fn locks(&self) -> Option<&OpeningLocks> {
        None
    }

    /// Takes or releases a lock without waiting; false: somebody else holds it. An owner's locks on
    /// a file end when the last [`OpenNode`] through which it locked is dropped.
    ///
    /// # Errors
    /// As fcntl(2) with `F_SETLK`; `EBADF` for a shared lock through what was not opened for
    /// reading, and for an exclusive one through what was not opened for writing.
    fn lock(&self, owner: &LockOwner, range: LockRange) -> Result<bool> {
        match self.locks() {
            Some(locks) => locks.lock(owner, range),
            None if range.kind == LockKind::UNLOCK => Ok(true),
            None => Err(Error::Unsupported { operation: "fcntl", store: "this" }),
        }
    }

    /// The first lock of another owner that is in the way of `range`. Where a process on the
    /// store's own machine holds it, the owner's client is empty and its process that machine's
    /// (0: unknown).
    ///
    /// # Errors
    /// As fcntl(2) with `F_GETLK`.
    fn lock_in_the_way(
        &self,
        owner: &LockOwner,
        range: LockRange,
    ) -> Result<Option<(LockOwner, LockRange)>> {
        self.locks().map_or(Ok(None), |locks| locks.in_the_way(owner, range))
    }

    /// A descriptor through which the kernel may move the file's bytes without copies, for
    /// reading with sendfile(2) and, unless [`OpenNode::write_by_kernel`] says otherwise, writing
    /// with splice(2), always at given offsets. `None` where there is no such thing.
    fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether it is worth while to ask for [`OpenNode::write_by_kernel`].
    fn takes_from_kernel(&self) -> bool {
        self.as_fd().is_some()
    }

    /// Has the kernel write up to `len` bytes at `offset`: `give` is called at most once, with a
    /// descriptor that is only for this call, and says how many bytes it has written to it at that
    /// offset. Returns that; 0: nothing is written, and it is to be done by
    /// [`OpenNode::write_at`], which knows how to say what is wrong.
    fn write_by_kernel(
        &self,
        offset: u64,
        len: usize,
        give: &mut dyn FnMut(BorrowedFd<'_>) -> usize,
    ) -> usize {
        let _ = (offset, len);
        self.as_fd().map_or(0, give)
    }

    /// How many bytes of a file of a [settled size](OpenNode::settled_size) are best read at once, if
    /// more than usual: where so many together take hardly longer than a part of them.
    fn piece_bytes(&self) -> Option<usize> {
        None
    }

    /// How many bytes the file has, where that does not change while it is open and reads before its
    /// end are never short: whoever answers may then promise bytes before they are read. `None` where
    /// that is not so, and from the first read on that has failed.
    fn settled_size(&self) -> Option<u64> {
        None
    }
}
