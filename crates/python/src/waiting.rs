//! Waiting for a service while other threads of Python run, and until a signal says otherwise.

use std::cell::{Cell, RefCell};
use std::sync::{Mutex, PoisonError};

use client::RemoteFile;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

thread_local! {
    /// This thread is in an operation.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// What a signal's handler raised meanwhile.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Files that lost their last owner in a handler that ran within an operation: closing them may need what that holds.
static LEFT: Mutex<Vec<RemoteFile>> = Mutex::new(Vec::new());

/// Asked while this thread waits for a service: has Python's handlers of signals run, and says whether one raised.
pub(crate) fn must_stop() -> bool {
    // Threads of services are none of Python's.
    if !INSIDE.get() {
        return false;
    }
    if RAISED.with_borrow(Option::is_some) {
        return true;
    }
    match Python::try_attach(|py| py.check_signals()) {
        Some(Err(raised)) => {
            RAISED.set(Some(raised));
            true
        }
        // `None`: the interpreter is ending.
        _ => false,
    }
}

/// Runs `work` without the interpreter. What a signal's handler raises meanwhile is raised here, whatever came of the
/// work.
pub(crate) fn released<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if INSIDE.get() {
        return Err(PyRuntimeError::new_err(
            "a handler of a signal used sluice while its thread was in a call of sluice",
        ));
    }
    let result = py.detach(|| {
        let _inside = Inside::enter();
        let result = work();
        drop(take_left());
        result
    });
    match RAISED.take() {
        Some(raised) => Err(raised),
        None => Ok(result),
    }
}

/// Marks this thread, until it is dropped, by a panic too.
struct Inside;

impl Inside {
    fn enter() -> Self {
        INSIDE.set(true);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

fn take_left() -> Vec<RemoteFile> {
    let Ok(mut left) = LEFT.try_lock() else { return Vec::new() };
    std::mem::take(&mut *left)
}

/// Lets go of a file without having closed it.
pub(crate) fn leave(file: RemoteFile) {
    if INSIDE.get() {
        LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    } else {
        drop(file);
    }
}
