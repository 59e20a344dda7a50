//! Replacing pages of code in one step.
//!
//! `mprotect(2)` of the code itself would leave it not executable for a moment, in which another thread, a signal handler or a
//! policy that refuses the way back (SELinux execmod, PR_SET_MDWE) ends the process. A finished copy moved over the original
//! has no such moment, and everything that can be refused is refused before.

use crate::PatchError;
use rustix::mm::{MapFlags, MprotectFlags, MremapFlags, ProtFlags};
use std::ffi::c_void;
use std::ops::Range;

/// Pages between two runs are copied along up to this many: a page costs less than the two more mappings that every fork
/// of the process would have to copy.
const GAP_PAGES_MAX: usize = 4;

/// Copies of page runs, being written.
#[derive(Debug)]
pub(crate) struct Copies {
    /// Start of the mapping that holds the copies one after the other.
    start: usize,
    size_bytes: usize,
    /// The runs that were copied, ascending, with the place of the copy in the mapping.
    runs: Vec<(Range<usize>, usize)>,
}

/// The runs of pages that cover `ranges` of code, ascending; close ones become one if both lie in the same of `segments`.
pub(crate) fn runs_of(
    ranges: impl Iterator<Item = Range<usize>>,
    segments: &[Range<usize>],
) -> Vec<Range<usize>> {
    let page = page_len();
    let mut pages: Vec<Range<usize>> =
        ranges.map(|range| range.start / page * page..range.end.next_multiple_of(page)).collect();
    pages.sort_unstable_by_key(|range| range.start);
    let mut runs: Vec<Range<usize>> = Vec::new();
    for range in pages {
        match runs.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(last)
                if range.start - last.end <= GAP_PAGES_MAX * page
                    && segments
                        .iter()
                        .any(|segment| segment.start <= last.end && range.start < segment.end) =>
            {
                last.end = range.end;
            }
            _ => runs.push(range),
        }
    }
    runs
}

impl Copies {
    /// Copies `runs`.
    ///
    /// # Safety
    /// Every page of `runs` must be mapped and readable.
    pub(crate) unsafe fn of(runs: Vec<Range<usize>>) -> Result<Self, PatchError> {
        let size_bytes = runs.iter().map(Range::len).sum();
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: mmap(2) of new anonymous memory, at a place of the kernel's choice.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                size_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )
        }
        .map_err(|errno| PatchError::from_system("mmap", errno))? as usize;
        let mut place = start;
        let runs = runs
            .into_iter()
            .map(|run| {
                // SAFETY: the run is readable (caller), the copy has room for the sum of all runs, and the two are different
                // mappings.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        run.start as *const u8,
                        place as *mut u8,
                        run.len(),
                    )
                };
                let copy = place;
                place += run.len();
                (run, copy)
            })
            .collect();
        Ok(Copies { start, size_bytes, runs })
    }

    /// The bytes of the copy that stand for `range` of the original; `range` must lie within one run.
    pub(crate) fn bytes(&mut self, range: Range<usize>) -> &mut [u8] {
        let (run, copy) = self
            .runs
            .iter()
            .find(|(run, _)| run.start <= range.start && range.end <= run.end)
            .expect("a range that was copied");
        // SAFETY: the range lies in a run, so these bytes lie in its copy, which this value owns and which is writable until
        // `replace`, which takes the value.
        unsafe {
            std::slice::from_raw_parts_mut((copy + range.start - run.start) as *mut u8, range.len())
        }
    }

    /// Makes the copies executable and moves each over its original. Calls `failed` with each run that could not be moved.
    /// An error means that nothing was replaced.
    ///
    /// # Safety
    /// The copies must be code that can take the place of the originals at any moment.
    pub(crate) unsafe fn replace(
        self,
        mut failed: impl FnMut(&Range<usize>, PatchError),
    ) -> Result<(), PatchError> {
        // SAFETY: mprotect(2) of this value's own mapping.
        let protected = unsafe {
            rustix::mm::mprotect(
                self.start as *mut c_void,
                self.size_bytes,
                MprotectFlags::READ | MprotectFlags::EXEC,
            )
        };
        if let Err(errno) = protected {
            // SAFETY: munmap(2) of this value's own mapping, which nobody else knows.
            let _ = unsafe { rustix::mm::munmap(self.start as *mut c_void, self.size_bytes) };
            return Err(PatchError::from_system("mprotect", errno));
        }
        for (run, copy) in &self.runs {
            let (original, copy) = (run.start as *mut c_void, *copy as *mut c_void);
            // SAFETY: mremap(2) replaces the pages of `run` by the copy under one lock: whoever executes there goes on in the
            // copy, which is the same code but for the entries (caller). A failure comes before the original is unmapped.
            let moved = unsafe {
                rustix::mm::mremap_fixed(copy, run.len(), run.len(), MremapFlags::MAYMOVE, original)
            };
            if let Err(errno) = moved {
                // SAFETY: munmap(2) of a copy that stayed where it was.
                let _ = unsafe { rustix::mm::munmap(copy, run.len()) };
                failed(run, PatchError::from_system("mremap", errno));
            }
        }
        Ok(())
    }
}

/// Bytes of a page. Asked of libc: rustix would read the auxiliary vector, of which valgrind shows a
/// wrong one.
pub(crate) fn page_len() -> usize {
    // SAFETY: no arguments but a number.
    let len = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(len).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_share_runs_and_runs_do_not_leave_their_segment() {
        let page = page_len();
        let segments = [0..100 * page, 100 * page..200 * page];
        let at = |number: usize, offset: usize| number * page + offset..number * page + offset + 5;
        let runs = |ranges: &[Range<usize>]| {
            let in_pages = |run: Range<usize>| (run.start / page, run.end / page);
            runs_of(ranges.iter().cloned(), &segments).into_iter().map(in_pages).collect::<Vec<_>>()
        };
        assert_eq!(runs(&[at(3, 9), at(3, 100)]), [(3, 4)]);
        assert_eq!(runs(&[at(4, 9), at(3, 100)]), [(3, 5)]);
        assert_eq!(
            runs(&[at(3, page - 2), at(7, 0)]),
            [(3, 8)],
            "an entry across a page boundary, a short gap"
        );
        assert_eq!(runs(&[at(8, 0), at(3, 0)]), [(3, 9)], "a gap of four pages is copied along");
        assert_eq!(runs(&[at(3, 0), at(9, 0)]), [(3, 4), (9, 10)]);
        assert_eq!(runs(&[at(98, 0), at(101, 0)]), [(98, 99), (101, 102)]);
    }
}
