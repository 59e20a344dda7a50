//! Giving up a wait because of a signal: for interpreters, whose handlers run between system calls and
//! cannot run while one of them waits for a service that does not answer.

use std::sync::OnceLock;
use std::time::Duration;

use p9::Errno;

/// How often it is asked where a signal may have come just before the wait began.
pub(crate) const TICK: Duration = Duration::from_millis(200);

static ASK: OnceLock<fn() -> bool> = OnceLock::new();

/// Has `ask` called on the thread that waits for a service: whenever a signal has interrupted the wait, some
/// times a second besides, and before something that failed is tried again. When it says true, the operation
/// fails and the connection ends, as a part of an answer may have been received: the next operation makes another one.
/// What was being written may or may not have been.
///
/// The first call counts. Locks of this crate are held while `ask` runs: what it calls must not come back
/// to a file or session on the same thread.
pub fn watch_interrupts(ask: fn() -> bool) {
    let _ = ASK.set(ask);
}

/// Whether anybody watches.
pub(crate) fn is_watched() -> bool {
    ASK.get().is_some()
}

/// Whether to give up.
pub(crate) fn interrupted() -> bool {
    ASK.get().is_some_and(|ask| ask())
}

/// The errno of an operation that was given up.
pub(crate) const INTERRUPTED: Errno = Errno::EINTR;
