//! Views that are in a replica as they are, so that the kernel may move their bytes.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::dataset::Dataset;
use crate::replica::Files;

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
            let mut slabs = conversion.clip(0..size);
            let slab = slabs.next()?;
            let is_all = slabs.next().is_none()
                && crate::upkeep::brings_data(&slab)
                && slab.dims().is_empty()
                && matches!(slab.fields(), [field] if field.unit == 1
                    && (field.near, field.far, field.bytes) == (0, 0, size));
            is_all.then_some(Direct { replica, files })
        })
    }

    /// Whether the file still has what was last written.
    pub(crate) fn is_current(&self, direct: &Direct) -> bool {
        let current = self.shared.current(&self.shared.plan());
        let mut same = current.iter().filter(|(replica, _)| *replica == direct.replica);
        same.any(|(_, files)| Arc::ptr_eq(files, &direct.files))
    }
}
