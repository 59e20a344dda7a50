//! Directories that no file system has: a store makes them up.

use std::sync::Arc;

use p9::{Attributes, DirEntry, Errno, Qid, SetAttributes};

use crate::error::{Error, Result};
use crate::node::{Node, OpenNode, Walk};

/// What is in a made-up directory.
pub trait Listing: Send + Sync {
    /// As fstat(2). Its qid is that of `.`, too.
    ///
    /// # Errors
    /// As fstat(2).
    fn attributes(&self) -> Result<Attributes>;

    /// The identity of `..`: at the root that of the root.
    fn above(&self) -> Qid;

    /// Gives the entries whose offsets are greater than `cookie`, as [`OpenNode::read_directory`] does, but for
    /// `.` and `..`. The first offset is [`FIRST_COOKIE`] at least, and `is_beginning` says that a listing begins.
    ///
    /// # Errors
    /// As getdents64(2).
    fn entries(
        &self,
        cookie: u64,
        is_beginning: bool,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()>;

    /// As [`OpenNode::set_attributes`].
    ///
    /// # Errors
    /// As there; unless a listing says otherwise, nothing can be set.
    fn set_attributes(&self, _set: &SetAttributes) -> Result<()> {
        Err(Error::ReadOnly { operation: "setattr" })
    }

    /// As [`OpenNode::sync`].
    ///
    /// # Errors
    /// As there.
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

/// The first offset that an entry of a [`Listing`] may have: those before are of `.` and `..`.
pub const FIRST_COOKIE: u64 = 3;

/// A made-up directory that was opened.
pub struct OpenListing<L>(pub L);

impl<L: Listing> OpenNode for OpenListing<L> {
    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> Result<usize> {
        Err(Error::System { operation: "read", errno: Errno::EISDIR })
    }

    fn write_at(&self, _data: &[u8], _offset: u64) -> Result<usize> {
        Err(Error::System { operation: "write", errno: Errno::EBADF })
    }

    fn read_directory(
        &self,
        cookie: u64,
        take: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        let own = self.0.attributes()?.qid;
        for (offset, name, qid) in [(1, &b"."[..], own), (2, b"..", self.0.above())] {
            if offset > cookie && !take(DirEntry::of(Qid { version: 0, ..qid }, offset, name)) {
                return Ok(());
            }
        }
        self.0.entries(cookie.max(FIRST_COOKIE - 1), cookie == 0, take)
    }

    fn attributes(&self) -> Result<Attributes> {
        self.0.attributes()
    }

    fn set_attributes(&self, set: &SetAttributes) -> Result<()> {
        self.0.set_attributes(set)
    }

    fn sync(&self, _data_only: bool) -> Result<()> {
        self.0.sync()
    }
}

/// A walk by `names` from a directory whose entries are found one by one: `step` goes to one of them, to the directory
/// itself for `.`, and to the one above for `..`.
///
/// # Errors
/// What `step` says of the first name.
pub fn walk_by_steps(
    here: impl Fn() -> Arc<dyn Node>,
    names: &[&[u8]],
    step: impl Fn(&[u8]) -> Result<Arc<dyn Node>>,
) -> Result<Walk> {
    let Some((first, rest)) = names.split_first() else {
        return Ok(Walk { qids: Vec::new(), end: Some(here()) });
    };
    let next = step(first)?;
    let qid = next.qid();
    if rest.is_empty() {
        return Ok(Walk { qids: vec![qid], end: Some(next) });
    }
    // The first element was reached, so that no later one makes the walk fail.
    let mut walk = next.walk(rest).unwrap_or(Walk { qids: Vec::new(), end: None });
    walk.qids.insert(0, qid);
    Ok(walk)
}
