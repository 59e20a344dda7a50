//! A service as the operations see it: a session, and the files that are open there.

use std::sync::Arc;

use client::{At, Handle, O_PATH, RemoteFile, Result, Session};
use p9::{Attributes, OpenFlags, Qid, SetAttributes, StatFs};

/// A service in use.
pub(crate) struct Remote {
    session: Arc<Session>,
}

/// What an opening gave.
pub(crate) enum Opened {
    /// A regular file.
    File(Arc<RemoteFile>, Qid),
    /// A directory.
    Directory(Handle),
}

impl Opened {
    /// Identity of what was opened.
    pub(crate) fn qid(&self) -> Qid {
        match self {
            Opened::File(_, qid) => *qid,
            Opened::Directory(handle) => handle.qid(),
        }
    }
}

impl Remote {
    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }

    /// What this process has written to the service arrives; errors stay with their files.
    pub(crate) fn settle(&self) {
        self.session.files().settle_all();
    }

    pub(crate) fn stat(&self, path: &[u8], follow: bool) -> Result<Attributes> {
        self.session.stat(At::root(path), follow)
    }

    pub(crate) fn set_attributes(&self, path: &[u8], follow: bool, set: &SetAttributes) -> Result<()> {
        self.session.set_attributes(At::root(path), follow, set)
    }

    pub(crate) fn open(&self, path: &[u8], flags: OpenFlags, mode: u32) -> Result<Opened> {
        let opened = self.session.open(At::root(path), flags, mode)?;
        if opened.attributes.is_directory() {
            return Ok(Opened::Directory(opened.handle));
        }
        let qid = opened.handle.qid();
        let file = RemoteFile::new(opened);
        Ok(Opened::File(Arc::new(file), qid))
    }

    pub(crate) fn make_directory(&self, path: &[u8], mode: u32) -> Result<()> {
        self.session.make_directory(At::root(path), mode)
    }

    pub(crate) fn remove(&self, path: &[u8], directory: bool) -> Result<()> {
        self.session.remove(At::root(path), directory)
    }

    pub(crate) fn rename(&self, old: &[u8], new: &[u8], no_replace: bool) -> Result<()> {
        self.session.rename(At::root(old), At::root(new), no_replace)
    }

    pub(crate) fn link(&self, old: &[u8], new: &[u8], follow: bool) -> Result<()> {
        self.session.link(At::root(old), At::root(new), follow)
    }

    pub(crate) fn symlink(&self, target: &[u8], path: &[u8]) -> Result<()> {
        self.session.symlink(target, At::root(path))
    }

    pub(crate) fn read_link(&self, path: &[u8]) -> Result<Vec<u8>> {
        self.session.read_link(At::root(path))
    }

    pub(crate) fn statfs(&self, path: &[u8]) -> Result<StatFs> {
        self.session.statfs(At::root(path))
    }

    pub(crate) fn xattr(&self, path: &[u8], follow: bool, name: &[u8]) -> Result<Vec<u8>> {
        self.session.xattr(At::root(path), follow, name)
    }

    pub(crate) fn xattr_list(&self, path: &[u8], follow: bool) -> Result<Vec<u8>> {
        let mut flags = O_PATH;
        if !follow {
            flags |= OpenFlags::NOFOLLOW;
        }
        self.session.open(At::root(path), flags, 0)?.handle.xattr_list()
    }

    pub(crate) fn set_xattr(
        &self,
        path: &[u8],
        follow: bool,
        name: &[u8],
        value: &[u8],
        flags: u32,
    ) -> Result<()> {
        self.session.set_xattr(At::root(path), follow, name, value, flags)
    }

    pub(crate) fn remove_xattr(&self, path: &[u8], follow: bool, name: &[u8]) -> Result<()> {
        self.session.remove_xattr(At::root(path), follow, name)
    }

    /// The same place by a path without symbolic links, `.` and `..`.
    pub(crate) fn resolve(&self, path: &[u8]) -> Result<Vec<u8>> {
        let opened = self.session.open(At::root(path), O_PATH, 0)?;
        Ok(opened.handle.path().to_vec())
    }
}
