//! Whose rights apply to what the target does not have yet.

use p9::Errno;

use super::guard;
use crate::error::refusal;
use crate::inode::Inode;

/// Whose rights apply to what the target does not have yet.
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    groups: Vec<u32>,
}

/// The kinds of access that permission bits are for.
#[derive(Clone, Copy)]
pub(crate) struct Access(u32);

impl Access {
    pub(crate) const READ: Access = Access(4);
    pub(crate) const WRITE: Access = Access(2);
    pub(crate) const SEARCH: Access = Access(1);
}

impl User {
    pub(super) fn own() -> Self {
        let groups = rustix::process::getgroups().unwrap_or_default();
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: groups.into_iter().map(|group| group.as_raw()).collect(),
        }
    }

    /// Whether it may have that access to something that was made here. What the target has it guards
    /// itself, by rights that are not ours to guess.
    ///
    /// # Errors
    /// `EACCES`.
    pub(crate) fn check(
        &self,
        operation: &'static str,
        inode: &Inode,
        access: Access,
    ) -> store::Result<()> {
        let Some(meta) = *guard(&inode.meta) else { return Ok(()) };
        let class = match () {
            () if self.uid == 0 || inode.created.is_none() => return Ok(()),
            () if meta.uid == self.uid => meta.mode >> 6,
            () if meta.gid == self.gid || self.groups.contains(&meta.gid) => meta.mode >> 3,
            () => meta.mode,
        };
        if class & access.0 == 0 { Err(refusal(operation, Errno::EACCES)) } else { Ok(()) }
    }
}
