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

    /// What this process has open there is closed, where that means something: it ends.
    pub(crate) fn finish(&self) {
        self.session.files().finish_all();
    }

    /// What this process has written is safe, where only a close would make it so.
    pub(crate) fn sync(&self) {
        self.session.files().sync_all();
    }

    /// This process may be about to leave the service.
    pub(crate) fn part(&self) {
        self.session.part();
    }

    pub(crate) fn stat(&self, at: At<'_>, follow: bool) -> Result<Attributes> {
        self.session.stat(at, follow)
    }

    pub(crate) fn set_attributes(
        &self,
        at: At<'_>,
        follow: bool,
        set: &SetAttributes,
    ) -> Result<()> {
        self.session.set_attributes(at, follow, set)
    }

    pub(crate) fn open(&self, at: At<'_>, flags: OpenFlags, mode: u32) -> Result<Opened> {
        let opened = self.session.open(at, flags, mode)?;
        if opened.attributes.is_directory() {
            return Ok(Opened::Directory(opened.handle));
        }
        let qid = opened.handle.qid();
        let file = RemoteFile::new(opened);
        Ok(Opened::File(Arc::new(file), qid))
    }

    pub(crate) fn make_directory(&self, at: At<'_>, mode: u32) -> Result<()> {
        self.session.make_directory(at, mode)
    }

    pub(crate) fn remove(&self, at: At<'_>, directory: bool) -> Result<()> {
        self.session.remove(at, directory)
    }

    pub(crate) fn rename(&self, old: At<'_>, new: At<'_>, no_replace: bool) -> Result<()> {
        self.session.rename(old, new, no_replace)
    }

    pub(crate) fn link(&self, old: At<'_>, new: At<'_>, follow: bool) -> Result<()> {
        self.session.link(old, new, follow)
    }

    pub(crate) fn symlink(&self, target: &[u8], at: At<'_>) -> Result<()> {
        self.session.symlink(target, at)
    }

    pub(crate) fn read_link(&self, at: At<'_>) -> Result<Vec<u8>> {
        self.session.read_link(at)
    }

    pub(crate) fn statfs(&self, at: At<'_>) -> Result<StatFs> {
        self.session.statfs(at)
    }

    pub(crate) fn xattr(&self, at: At<'_>, follow: bool, name: &[u8]) -> Result<Vec<u8>> {
        self.session.xattr(at, follow, name)
    }

    pub(crate) fn xattr_list(&self, at: At<'_>, follow: bool) -> Result<Vec<u8>> {
        let mut flags = O_PATH;
        if !follow {
            flags |= OpenFlags::NOFOLLOW;
        }
        self.session.open(at, flags, 0)?.handle.xattr_list()
    }

    pub(crate) fn set_xattr(
        &self,
        at: At<'_>,
        follow: bool,
        name: &[u8],
        value: &[u8],
        flags: u32,
    ) -> Result<()> {
        self.session.set_xattr(at, follow, name, value, flags)
    }

    pub(crate) fn remove_xattr(&self, at: At<'_>, follow: bool, name: &[u8]) -> Result<()> {
        self.session.remove_xattr(at, follow, name)
    }

    /// The same place by a path without symbolic links, `.` and `..`.
    pub(crate) fn resolve(&self, at: At<'_>) -> Result<Vec<u8>> {
        let opened = self.session.open(at, O_PATH, 0)?;
        Ok(opened.handle.path().to_vec())
    }
}
