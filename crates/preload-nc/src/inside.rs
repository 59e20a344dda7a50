//! Which threads are inside a call on Sluice's own behalf.

use std::cell::Cell;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, what this thread opens and asks for is not the program's: PnetCDF and the MPI library look at files while they
/// serve a call.
pub(crate) struct Inside(bool);

impl Inside {
    pub(crate) fn enter() -> Inside {
        Inside(INSIDE.replace(true))
    }

    /// Whether the thread is inside.
    pub(crate) fn is_entered() -> bool {
        INSIDE.get()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}
