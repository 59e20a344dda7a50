//! What names lead to, for the whole process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use reach::{Far, Reach};

use crate::error::Result;

/// Made at the first call.
static REACH: Mutex<Option<Reach>> = Mutex::new(None);

/// This process was forked since sessions were last used: it must not speak on its parent's connections.
static FORKED: AtomicBool = AtomicBool::new(false);

extern "C" fn forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Where a URI, or a path below a mapped prefix, leads. Nothing is sent yet.
pub(crate) fn find(name: &[u8]) -> Result<Far> {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler does nothing but store to an atomic. It fails for want of memory alone
        // (pthread_atfork(3)), and then only children would notice.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    let mut reach = REACH.lock().unwrap_or_else(PoisonError::into_inner);
    if FORKED.swap(false, Ordering::Relaxed)
        && let Some(reach) = &*reach
    {
        reach.sessions().for_each(|session| session.abandon());
    }
    let reach = match &mut *reach {
        Some(reach) => reach,
        none => none.insert(Reach::configured()?),
    };
    Ok(reach.find(name)?)
}
