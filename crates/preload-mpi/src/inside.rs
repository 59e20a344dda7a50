//! Which threads are inside an intercepted call.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, further calls of this thread are not the program's: the MPI library implements
/// functions by others, Fortran bindings and tools call `PMPI_` from within `MPI_`.
pub(crate) struct Inside(());

impl Inside {
    /// Enters; `None` if the thread is inside already.
    pub(crate) fn enter() -> Option<Inside> {
        // Made only if it is handed out: dropping one leaves.
        (!INSIDE.replace(true)).then(|| Inside(()))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::Inside;

    #[test]
    fn only_the_outermost_call_is_the_programs() {
        let outer = Inside::enter();
        assert!(outer.is_some());
        assert!(Inside::enter().is_none());
        let elsewhere = std::thread::spawn(|| Inside::enter().is_some()).join();
        assert!(elsewhere.is_ok_and(|entered| entered));
        // A nested attempt that failed has not left on the outer call's behalf.
        assert!(Inside::enter().is_none());
        drop(outer);
        assert!(Inside::enter().is_some());
    }
}
