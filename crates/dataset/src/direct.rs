//! Views that are in a replica as they are, so that the kernel may move their bytes.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use drepl::definition::Update;
use layout::Slab;

use crate::dataset::{Dataset, has};
use crate::error::Result;
use crate::flow::{WINDOW_BYTES, is_sparse};
use crate::plan::Plan;
use crate::replica::Files;
use crate::upkeep::brings_data;

/// A file of a replica that has the bytes of a view, and nothing else.
pub(crate) struct Direct {
    replica: usize,
    files: Arc<Files>,
}

impl AsFd for Direct {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.files.get(0).as_fd()
    }
}

impl Dataset {
    /// Whether no view ever changes its size.
    pub(crate) fn has_fixed_sizes(&self) -> bool {
        self.shared.plan().model.lengths_view().is_none()
    }

    /// A file that is what a view is, if there is one.
    pub(crate) fn direct(&self, view: usize) -> Option<Direct> {
        if !self.has_fixed_sizes() {
            // What a view is may change.
            return None;
        }
        let plan = self.shared.plan();
        let size = plan.size(view);
        self.shared.current(&plan).into_iter().find_map(|(replica, files)| {
            if plan.sizes(replica) != [size] || !files.get(0).is_raw() {
                return None;
            }
            let conversion = plan.read(view, &[replica]).ok()?;
            is_all(conversion.clip(0..size), size).then_some(Direct { replica, files })
        })
    }

    /// Whether a piece of a view is strewn over a file.
    pub(crate) fn is_sparse(&self, view: usize) -> bool {
        let plan = self.shared.plan();
        let current = self.shared.current(&plan);
        let numbers: Vec<usize> = current.iter().map(|(replica, _)| *replica).collect();
        let Ok(conversion) = plan.read(view, &numbers) else { return false };
        let piece = 0..plan.size(view).min(WINDOW_BYTES as u64);
        is_sparse(conversion.clip(piece).filter(brings_data))
    }

    /// A file that all of a view is written to, as it is and to nowhere else, if there is one.
    pub(crate) fn written_direct(&self, view: usize) -> Option<Direct> {
        let direct = self.direct(view)?;
        let plan = self.shared.plan();
        let size = plan.size(view);
        // An element that is in a view twice is read from one place, but written to both.
        is_all(plan.write(view, direct.replica).clip(0..size), size).then_some(direct)
    }

    /// Has somebody write a range of a view to the file that it is, as [`Dataset::write`] would.
    /// Says how many bytes that were; 0: nothing was written, and `write` has to do it.
    ///
    /// # Errors
    /// As [`Dataset::write`]. Nothing was written.
    pub(crate) fn write_directly(
        &self,
        direct: &Direct,
        view: usize,
        range: Range<u64>,
        give: &mut dyn FnMut(BorrowedFd<'_>) -> usize,
    ) -> Result<usize> {
        let shared = &self.shared;
        // Held until it is over: replicas come, go and are completed while nobody writes.
        let mut writing = shared.writing();
        shared.save_if_needed()?;
        let plan = shared.plan();
        let (offset, len) = (range.start, range.end - range.start);
        if len == 0
            || !direct.is_all_that_is_due(&plan, view, &range)
            || !direct.files.get(0).may_be_written(offset, len as usize)
        {
            return Ok(0);
        }
        shared.declare(&plan, &mut writing, view, offset, len)?;
        shared.in_progress.fetch_add(1, Ordering::SeqCst);
        let written = give(direct.as_fd());
        shared.wrote(&plan, view, range);
        Ok(written)
    }

    /// Whether the file still has what was last written.
    pub(crate) fn is_current(&self, direct: &Direct) -> bool {
        let current = self.shared.current(&self.shared.plan());
        let mut same = current.iter().filter(|(replica, _)| *replica == direct.replica);
        same.any(|(_, files)| Arc::ptr_eq(files, &direct.files))
    }
}

impl Direct {
    /// Whether a write to the file is all that a write to a view has to do at once.
    fn is_all_that_is_due(&self, plan: &Plan, view: usize, range: &Range<u64>) -> bool {
        let is_this = matches!(&plan.primaries()[..], [(replica, files)]
            if *replica == self.replica && Arc::ptr_eq(files, &self.files));
        is_this
            && !has(plan, Update::Async)
            && !plan.model.definition.views[view].read_only
            && range.end <= plan.size(view)
    }
}

/// Whether slabs are all bytes of a file, from its begin on and as they are.
fn is_all(mut slabs: impl Iterator<Item = Slab>, size: u64) -> bool {
    let (Some(slab), None) = (slabs.next(), slabs.next()) else { return false };
    brings_data(&slab)
        && slab.dims().is_empty()
        && matches!(slab.fields(), [field] if field.unit == 1
            && (field.near, field.far, field.bytes) == (0, 0, size))
}
