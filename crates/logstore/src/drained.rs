//! What the target has caught up with leaves the overlay.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hostlog::{FileId, Sequence};
use store::Node;

use crate::changes::is_unnamed;
use crate::error::{Error, Result};
use crate::inode::{Base, Body, Inode};
use crate::tree::{Tree, guard, reading, writing};

/// What must stay known of the files when the log is drained.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    /// No file has this number or a higher one.
    pub next_file: u64,
    /// Files that clients hold or that later records speak of.
    pub files: Vec<FileId>,
}

/// Finds the target's node of a file.
pub type Find<'a> = &'a dyn Fn(FileId) -> Option<Arc<dyn Node>>;

impl Tree {
    /// Up to where the log may be drained: what lies behind may still come to count, or not to, or is
    /// read from the log only.
    pub(crate) fn drainable(&self) -> Sequence {
        self.forget_passed_on();
        let (mut limit, held) = {
            let _turn = guard(&self.changes);
            let last = self.log.status().last;
            let before = self.pending_names().0.map(before);
            (before.map_or(last, |before| before.min(last)), self.held())
        };
        for inode in &held {
            let Body::File(content) = &inode.body else { continue };
            let content = reading(content);
            let Some(content) = content.as_ref() else { continue };
            if is_unnamed(inode) {
                // The tree's, and this one: nobody can read it any more.
                if Arc::strong_count(inode) <= 2 {
                    continue;
                }
                limit = content.oldest_spot().map_or(limit, |oldest| before(oldest).min(limit));
            }
            limit = content.oldest_pending().map_or(limit, |oldest| before(oldest).min(limit));
        }
        limit
    }

    /// Takes notice that the target has everything up to `through`.
    pub(crate) fn drained(&self, through: Sequence, find: Find<'_>) -> Result<Kept> {
        let held = self.held();
        for inode in &held {
            self.find_base(inode, through, find)?;
        }
        self.forgotten.fetch_max(through.0, Ordering::AcqRel);
        for place in self.take_undrained(through) {
            if let Body::Directory(names) = &place.dir.body {
                let slot = guard(names).give_back(&place.name, through);
                drop(slot);
            }
        }
        for inode in held {
            self.forget(&inode, through);
        }
        let mut returning = guard(&self.returning);
        let is_over =
            returning.as_ref().is_some_and(|(since, _)| since.elapsed() > self.options.return_wait);
        let gone = if is_over { returning.take() } else { None };
        drop(returning);
        drop(gone);
        Ok(Kept { next_file: self.next_file(), files: self.known_files() })
    }

    /// Takes notice where the target has what the log made.
    fn find_base(&self, inode: &Arc<Inode>, through: Sequence, find: Find<'_>) -> Result<()> {
        let is_due = inode.created.is_some_and(|created| created <= through);
        if !is_due || !matches!(inode.base(), Base::None) {
            return Ok(());
        }
        let Some(file) = inode.file_id() else { return Ok(()) };
        match find(file) {
            Some(node) => {
                self.found(inode, node);
                if is_unnamed(inode) && inode.openings.load(Ordering::Acquire) > 0 {
                    // The next step takes the last name away.
                    let _ = inode.reader();
                }
                Ok(())
            }
            None if is_unnamed(inode) => Ok(()),
            None => Err(Error::Lost { file, through }),
        }
    }

    fn forget(&self, inode: &Arc<Inode>, through: Sequence) {
        let is_drained = match &inode.body {
            Body::File(content) => {
                let mut content = writing(content);
                let is_drained = content.as_mut().is_none_or(|content| {
                    content.forget(through);
                    content.is_drained()
                });
                // Under the content's lock: who writes holds the inode again.
                if is_drained {
                    self.release(inode, through);
                }
                return;
            }
            Body::Directory(names) => guard(names).is_drained(),
            Body::Symlink(_) => true,
        };
        if is_drained {
            self.release(inode, through);
        }
    }
}

fn before(sequence: Sequence) -> Sequence {
    Sequence(sequence.0.saturating_sub(1))
}
