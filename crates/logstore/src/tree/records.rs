//! Records of the namespace, and the numbers that files of the target have in the log.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use hostlog::{Change, FileId, Operation, Sequence};
use p9::Errno;

use super::{Tree, guard, writing};
use crate::content::Content;
use crate::error::{Tried, logged, refusal};
use crate::inode::{Body, Inode};
use crate::names::{Entry, Place};
use crate::state::IDENTITY_TAG;

impl Tree {
    /// Appends a record of the namespace. The caller holds `changes`, so that the order of the records is
    /// that of the changes.
    pub(crate) fn record(
        &self,
        operation: &'static str,
        stream: u32,
        file: Option<FileId>,
        what: &Operation,
    ) -> Tried<Sequence> {
        let file = file.unwrap_or(FileId::NONE);
        let change = Change { stream, file, member: None, namespace: true };
        let sequence = self.log.change(&change, what).map_err(logged(operation))?;
        guard(&self.pending_names).push_back(sequence);
        Ok(sequence)
    }

    /// Takes notice that a commit stands behind the namespace's records up to `through`, durably.
    pub(crate) fn settle_names(&self, through: Sequence) {
        let mut pending = guard(&self.pending_names);
        while pending.front().is_some_and(|sequence| *sequence <= through) {
            pending.pop_front();
        }
    }

    /// The oldest record of the namespace that may not count yet, and how many there are.
    pub(crate) fn pending_names(&self) -> (Option<Sequence>, usize) {
        let pending = guard(&self.pending_names);
        (pending.front().copied(), pending.len())
    }

    /// Gives a file of the target a number in the log, and says there which it is.
    pub(crate) fn bind(
        &self,
        operation: &'static str,
        stream: u32,
        inode: &Arc<Inode>,
    ) -> Tried<FileId> {
        if let Some(file) = inode.file_id() {
            load(operation, inode)?;
            self.find_again(operation, stream, inode)?;
            return Ok(file);
        }
        let _turn = guard(&self.changes);
        self.bind_in_turn(operation, stream, inode)
    }

    /// The same; the caller holds `changes`.
    pub(crate) fn bind_in_turn(
        &self,
        operation: &'static str,
        stream: u32,
        inode: &Arc<Inode>,
    ) -> Tried<FileId> {
        load(operation, inode)?;
        if let Some(file) = inode.file_id() {
            return Ok(file);
        }
        let file = self.new_file(inode.kind(), false);
        // What has lost its last name goes to the log only to be read again.
        match self.places_of(inode).first() {
            Some(place) => self.bind_name(operation, stream, file, inode, place)?,
            None if Arc::ptr_eq(inode, &self.root.inode) => {
                self.bind_path(operation, stream, file, inode, Vec::new())?;
            }
            None => {}
        }
        inode.set_file_id(file);
        self.know(inode);
        self.hold(inode);
        Ok(file)
    }

    /// Where an inode can be found, first where the log says so.
    pub(super) fn places_of(&self, inode: &Arc<Inode>) -> Vec<Place> {
        if inode.is_directory() {
            return guard(&inode.home).iter().cloned().collect();
        }
        let mut places = inode.bound();
        let known: Vec<Arc<Entry>> =
            guard(&inode.entries).iter().filter_map(Weak::upgrade).collect();
        for place in known.iter().filter_map(|entry| entry.place()) {
            if !places.iter().any(|other| other.is(&place.dir, &place.name)) {
                places.push(place);
            }
        }
        places
    }

    /// Says in the log that this is a name of a file, unless it does: the drain must not lose a file of
    /// which one name is removed and the other was never spoken of. The caller holds `changes`.
    pub(crate) fn bind_name(
        &self,
        operation: &'static str,
        stream: u32,
        file: FileId,
        inode: &Inode,
        place: &Place,
    ) -> Tried<()> {
        if inode.bound().iter().any(|other| other.is(&place.dir, &place.name)) {
            return Ok(());
        }
        if let Some(path) = self.path_of(place) {
            self.bind_path(operation, stream, file, inode, path)?;
            inode.add_bound(&place.dir, &place.name);
        }
        Ok(())
    }

    fn bind_path(
        &self,
        operation: &'static str,
        stream: u32,
        file: FileId,
        inode: &Inode,
        path: Vec<u8>,
    ) -> Tried<()> {
        let base = inode.base_node(operation)?.ok_or(refusal(operation, Errno::ESTALE))?;
        self.record(operation, stream, Some(file), &Operation::Bind { path })?;
        let bytes = base.qid().path.to_le_bytes().to_vec();
        let note = Operation::Note { tag: IDENTITY_TAG, bytes };
        inode.touched_by(self.record(operation, stream, Some(file), &note)?);
        Ok(())
    }

    /// Before a name of a file is taken away that has others: sees to it that the log knows one of those.
    pub(crate) fn bind_another(
        &self,
        operation: &'static str,
        stream: u32,
        entry: &Entry,
    ) -> Tried<()> {
        let inode = &entry.inode;
        let file = self.bind_in_turn(operation, stream, inode)?;
        let Some(here) = entry.place() else { return Ok(()) };
        // Those that the log knows come first.
        let places = self.places_of(inode);
        match places.iter().find(|place| !place.is(&here.dir, &here.name)) {
            Some(place) => self.bind_name(operation, stream, file, inode, place)?,
            None => inode.is_astray.store(true, Ordering::Release),
        }
        Ok(())
    }

    /// Whether a file that has lost its known names has been seen by another since.
    ///
    /// # Errors
    /// `EIO` as long as it has not: what is written could be brought to no name.
    fn find_again(&self, operation: &'static str, stream: u32, inode: &Arc<Inode>) -> Tried<()> {
        if !inode.is_astray.load(Ordering::Acquire) {
            return Ok(());
        }
        let _turn = guard(&self.changes);
        let (places, file) = (self.places_of(inode), inode.file_id());
        let (Some(place), Some(file)) = (places.first(), file) else {
            return Err(refusal(operation, Errno::EIO).into());
        };
        self.bind_name(operation, stream, file, inode, place)?;
        inode.is_astray.store(false, Ordering::Release);
        Ok(())
    }
}

/// Has attributes and size of a file in memory from here on.
fn load(operation: &'static str, inode: &Inode) -> store::Result<()> {
    if inode.is_loaded.load(Ordering::Acquire) {
        return Ok(());
    }
    inode.load_meta(operation)?;
    if let Body::File(content) = &inode.body {
        let mut content = writing(content);
        if content.is_none() {
            let base = inode.base_node(operation)?.ok_or(refusal(operation, Errno::ESTALE))?;
            *content = Some(Content::of_size(base.attributes()?.size));
        }
    }
    inode.is_loaded.store(true, Ordering::Release);
    Ok(())
}
