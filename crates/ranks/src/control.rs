//! Telling the thread that carries messages to come to an end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};

use crate::{Error, Result};

/// Ends [`Job::serve`](crate::Job::serve) or [`Job::attend`](crate::Job::attend) from another thread.
#[derive(Clone, Debug)]
pub struct Control(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ending: AtomicBool,
    bell: OwnedFd,
}

impl Control {
    /// A control that has not been used.
    ///
    /// # Errors
    /// [`Error::System`] without a descriptor for it.
    pub fn new() -> Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = eventfd(0, flags).map_err(Error::system("make an eventfd"))?;
        let bell = crate::stream::move_away(bell);
        Ok(Self(Arc::new(Inner { ending: AtomicBool::new(false), bell })))
    }

    /// A client says goodbye; a service tells its clients that it has ended.
    pub fn end(&self) {
        self.0.ending.store(true, Ordering::Release);
        // Fails only when the counter is full, and then it rings already.
        let _ = rustix::io::write(&self.0.bell, &1u64.to_ne_bytes());
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.0.ending.load(Ordering::Acquire)
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.0.bell.as_fd()
    }

    /// Silences the bell once it has been heard.
    pub(crate) fn quiet(&self) {
        let _ = rustix::io::read(&self.0.bell, &mut [0; 8]);
    }
}
