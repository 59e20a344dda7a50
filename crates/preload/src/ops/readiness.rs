//! poll(2) and select(2): regular files are always ready (poll(2), "always poll TRUE").

use crate::table::is_ours;

/// What a regular file answers of what it is asked.
const READY: i16 = libc::POLLIN | libc::POLLOUT | libc::POLLRDNORM | libc::POLLWRNORM;

/// Hides redirected descriptors from the kernel, which would say that they are not open. Returns how
/// many of them have an answer already.
pub(crate) fn hide(all: &[libc::pollfd]) -> (Vec<libc::pollfd>, usize) {
    let mut hidden = all.to_vec();
    let mut ready = 0;
    for poll in &mut hidden {
        if is_ours(poll.fd) {
            poll.fd = -1;
            ready += usize::from(poll.events & READY != 0);
        }
    }
    (hidden, ready)
}

/// Gives the kernel's answers for the others, and ours.
pub(crate) fn reveal(all: &mut [libc::pollfd], answered: &[libc::pollfd]) {
    for (poll, answer) in all.iter_mut().zip(answered) {
        poll.revents = if is_ours(poll.fd) { poll.events & READY } else { answer.revents };
    }
}
