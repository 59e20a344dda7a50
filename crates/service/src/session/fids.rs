//! The fid table.

use std::collections::HashMap;
use std::collections::hash_map;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use p9::{Errno, Fid, OpenFlags, Qid};
use store::{Node, OpenNode};

use super::Outcome;
use super::xattr::{XattrRead, XattrWrite};

/// What a fid stands for. An entry never changes: opening a fid puts another entry in its place,
/// so that requests in progress keep what they looked up.
pub(crate) struct Entry {
    pub(crate) node: Arc<dyn Node>,
    /// The attach point, above which `..` does not lead.
    pub(crate) root: Qid,
    pub(crate) state: State,
    /// Whether the store's operations may wait for another machine.
    pub(crate) blocks: bool,
}

pub(crate) enum State {
    Walked,
    Open(Opened),
    XattrRead(XattrRead),
    XattrWrite(XattrWrite),
}

/// An open fid.
pub(crate) struct Opened {
    pub(crate) node: Arc<dyn OpenNode>,
    pub(crate) flags: OpenFlags,
    /// Base 9P2000's ORCLOSE.
    pub(crate) remove_on_clunk: bool,
    /// Where base 9P2000's directory read goes on.
    pub(crate) listing: Mutex<Listing>,
}

/// The state of reading a directory by byte offsets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Listing {
    /// The only offset besides 0 at which the next read may begin.
    pub(crate) offset: u64,
    /// The store's cookie at that offset.
    pub(crate) cookie: u64,
}

impl Entry {
    pub(crate) fn walked(node: Arc<dyn Node>, root: Qid) -> Self {
        let blocks = node.blocks();
        Self { node, root, state: State::Walked, blocks }
    }

    pub(crate) fn with_state(&self, state: State) -> Self {
        Self { node: Arc::clone(&self.node), root: self.root, state, blocks: self.blocks }
    }

    /// Closes what is open, which has no fid any more.
    ///
    /// # Errors
    /// As close(2).
    pub(crate) fn close(&self) -> Outcome {
        match &self.state {
            State::Open(opened) => Ok(opened.node.close()?),
            State::Walked | State::XattrRead(_) | State::XattrWrite(_) => Ok(()),
        }
    }

    /// What is open was not closed, and has no fid any more.
    pub(crate) fn lose(&self) {
        if let State::Open(opened) = &self.state {
            opened.node.lost();
        }
    }

    /// The open file.
    ///
    /// # Errors
    /// `EBADF` when the fid was not opened.
    pub(crate) fn opened(&self) -> Outcome<&Opened> {
        match &self.state {
            State::Open(opened) => Ok(opened),
            State::Walked | State::XattrRead(_) | State::XattrWrite(_) => Err(Errno::EBADF.into()),
        }
    }

    /// Refuses what is only for fids that stand for a file, not an extended attribute.
    pub(crate) fn file(&self) -> Outcome<&Arc<dyn Node>> {
        match &self.state {
            State::Walked | State::Open(_) => Ok(&self.node),
            State::XattrRead(_) | State::XattrWrite(_) => Err(Errno::EBADF.into()),
        }
    }

    /// Refuses what is only for fids not opened yet.
    pub(crate) fn unopened(&self) -> Outcome<&Arc<dyn Node>> {
        match &self.state {
            State::Walked => Ok(&self.node),
            State::Open(_) | State::XattrRead(_) | State::XattrWrite(_) => Err(Errno::EBADF.into()),
        }
    }
}

impl Opened {
    pub(crate) fn new(node: Arc<dyn OpenNode>, flags: OpenFlags) -> Self {
        Self { node, flags, remove_on_clunk: false, listing: Mutex::default() }
    }

    /// The open file for reading.
    pub(crate) fn readable(&self) -> Outcome<&Arc<dyn OpenNode>> {
        if self.flags.reads() { Ok(&self.node) } else { Err(Errno::EBADF.into()) }
    }

    /// The open file for writing.
    pub(crate) fn writable(&self) -> Outcome<&Arc<dyn OpenNode>> {
        if self.flags.writes() { Ok(&self.node) } else { Err(Errno::EBADF.into()) }
    }
}

/// All fids of a session.
pub(crate) struct Fids {
    table: Mutex<HashMap<Fid, Arc<Entry>>>,
    max: usize,
}

impl Fids {
    pub(crate) fn new(max: usize) -> Self {
        Self { table: Mutex::default(), max }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Fid, Arc<Entry>>> {
        // Every change below is a single step, so a panic elsewhere leaves the table whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.table().len()
    }

    /// What `fid` stands for.
    ///
    /// # Errors
    /// `EBADF` when it stands for nothing.
    pub(crate) fn get(&self, fid: Fid) -> Outcome<Arc<Entry>> {
        self.table().get(&fid).cloned().ok_or_else(|| Errno::EBADF.into())
    }

    /// Whether a new fid may be made.
    ///
    /// # Errors
    /// `EBADF` when it is in use or NOFID, `EMFILE` when there are too many.
    pub(crate) fn check_free(&self, fid: Fid) -> Outcome {
        let table = self.table();
        if fid == Fid::NONE || table.contains_key(&fid) {
            return Err(Errno::EBADF.into());
        }
        if table.len() >= self.max { Err(Errno::EMFILE.into()) } else { Ok(()) }
    }

    /// Makes a new fid.
    ///
    /// # Errors
    /// As [`Fids::check_free`].
    pub(crate) fn insert(&self, fid: Fid, entry: Entry) -> Outcome {
        let mut table = self.table();
        let room = table.len() < self.max;
        match table.entry(fid) {
            hash_map::Entry::Vacant(_) if fid == Fid::NONE => Err(Errno::EBADF.into()),
            hash_map::Entry::Vacant(place) if room => {
                place.insert(Arc::new(entry));
                Ok(())
            }
            hash_map::Entry::Vacant(_) => Err(Errno::EMFILE.into()),
            hash_map::Entry::Occupied(_) => Err(Errno::EBADF.into()),
        }
    }

    /// Puts another entry in the place of `old`.
    ///
    /// # Errors
    /// `EBADF` when the fid no longer stands for `old`, because another request was faster.
    pub(crate) fn replace(&self, fid: Fid, old: &Arc<Entry>, entry: Entry) -> Outcome {
        let entry = Arc::new(entry);
        let mut table = self.table();
        match table.get_mut(&fid) {
            Some(place) if Arc::ptr_eq(place, old) => {
                *place = entry;
                Ok(())
            }
            _ => Err(Errno::EBADF.into()),
        }
    }

    /// Forgets a fid and gives what it stood for.
    ///
    /// # Errors
    /// `EBADF` when it stood for nothing.
    pub(crate) fn remove(&self, fid: Fid) -> Outcome<Arc<Entry>> {
        self.table().remove(&fid).ok_or_else(|| Errno::EBADF.into())
    }

    /// Forgets all, closing none. It is done outside the lock, because it may take time.
    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.table());
        gone.values().for_each(|entry| entry.lose());
        drop(gone);
    }
}
