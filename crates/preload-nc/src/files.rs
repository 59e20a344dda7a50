//! The coupled files that are open, by the numbers that PnetCDF gave to their private header files.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::inside::Inside;
use crate::open::OpenFile;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static FILES: RwLock<BTreeMap<c_int, Arc<Mutex<OpenFile>>>> = RwLock::new(BTreeMap::new());

/// A coupled file; none for all others, and for calls that PnetCDF makes of itself while it serves one of ours: what it asks is
/// about its private file.
pub(crate) fn find(ncid: c_int) -> Option<Arc<Mutex<OpenFile>>> {
    if COUNT.load(Ordering::Acquire) == 0 || Inside::is_entered() {
        return None;
    }
    FILES.read().unwrap_or_else(PoisonError::into_inner).get(&ncid).cloned()
}

/// Adds a file.
pub(crate) fn add(ncid: c_int, file: OpenFile) {
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    files.insert(ncid, Arc::new(Mutex::new(file)));
    COUNT.store(files.len(), Ordering::Release);
}

/// Takes a file that is being closed.
pub(crate) fn take(ncid: c_int) -> Option<Arc<Mutex<OpenFile>>> {
    let mut files = FILES.write().unwrap_or_else(PoisonError::into_inner);
    let file = files.remove(&ncid);
    COUNT.store(files.len(), Ordering::Release);
    file
}

/// All of them.
pub(crate) fn all() -> Vec<(c_int, Arc<Mutex<OpenFile>>)> {
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    files.iter().map(|(ncid, file)| (*ncid, Arc::clone(file))).collect()
}
