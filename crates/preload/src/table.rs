//! Which descriptors are ours: one load for every call of the program.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use crate::description::Description;
use crate::hooks::direct;

/// Descriptors from here on cannot be redirected; Linux allows no more per process by default
/// (`/proc/sys/fs/nr_open`). The table takes 8 MiB of address space, of which only pages in use
/// become memory.
pub(crate) const DESCRIPTORS_MAX: usize = 1 << 20;

static TABLE: [AtomicPtr<Description>; DESCRIPTORS_MAX] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; DESCRIPTORS_MAX];

/// One past the highest descriptor that has ever been ours.
static USED: AtomicI32 = AtomicI32::new(0);

/// Whether a descriptor is redirected.
#[inline(always)]
pub(crate) fn is_ours(fd: c_int) -> bool {
    match direct!(TABLE).get(fd as usize) {
        Some(entry) => !entry.load(Ordering::Relaxed).is_null(),
        None => false,
    }
}

/// What a descriptor stands for. Descriptions are never freed, only used again, so the reference
/// stays valid; whether it is still the same open file is for its lock to tell.
#[inline]
pub(crate) fn get(fd: c_int) -> Option<&'static Description> {
    let pointer = TABLE.get(fd as usize)?.load(Ordering::Acquire);
    // SAFETY: entries are null or point to descriptions that were leaked on purpose.
    unsafe { pointer.as_ref() }
}

/// Whether `fd` still stands for `description`.
pub(crate) fn is_still(fd: c_int, description: &'static Description) -> bool {
    get(fd).is_some_and(|now| std::ptr::eq(now, description))
}

/// Records what a descriptor stands for, and returns what it stood for before.
pub(crate) fn set(fd: c_int, description: &'static Description) -> Option<&'static Description> {
    USED.fetch_max(fd.saturating_add(1), Ordering::Relaxed);
    let pointer = std::ptr::from_ref(description).cast_mut();
    let before = TABLE.get(fd as usize)?.swap(pointer, Ordering::AcqRel);
    // SAFETY: as in `get`.
    unsafe { before.as_ref() }
}

/// Forgets a descriptor, and returns what it stood for.
pub(crate) fn take(fd: c_int) -> Option<&'static Description> {
    let before = TABLE.get(fd as usize)?.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: as in `get`.
    unsafe { before.as_ref() }
}

/// All redirected descriptors, lowest first.
pub(crate) fn all() -> impl Iterator<Item = (c_int, &'static Description)> {
    (0..USED.load(Ordering::Acquire)).filter_map(|fd| Some((fd, get(fd)?)))
}

/// Whether any descriptor has ever been ours: if not, there is nothing to do at fork and exit.
#[inline(always)]
pub(crate) fn any() -> bool {
    direct!(USED).load(Ordering::Relaxed) != 0
}
