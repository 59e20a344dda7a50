//! A part of a file that may be looked into, for processes that are our own.
//!
//! A load from a page of a mapping that cannot be had is a `SIGBUS`: the file has become shorter, or
//! the disk is broken. [`Guarded`] catches it. The handler puts a page of zeros in the place of the one
//! that is missing, so that the load goes on, and notes that the mapping is *lost*: [`Guarded::look`]
//! then says that nothing of what was seen counts.
//!
//! The handler is the process's: it is for programs that are Sluice, and not for libraries in others.
//! Whatever it does not know goes to the handler that was there before.
//!
//! # Source
//! sigaction(2), `SIGBUS` and `si_addr`; mmap(2), `MAP_FIXED` and "SIGBUS"; signal-safety(7): raw system
//! calls and atomics are all that the handler uses.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::Mapping;

/// The most mappings at a time.
pub const GUARDED_MAX: usize = 256;

/// What the handler knows of a mapping.
struct Slot {
    /// Its address; 0: free, or not in use yet.
    start: AtomicUsize,
    len: AtomicUsize,
    is_taken: AtomicBool,
    is_lost: AtomicBool,
}

static SLOTS: [Slot; GUARDED_MAX] = [const {
    Slot {
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        is_taken: AtomicBool::new(false),
        is_lost: AtomicBool::new(false),
    }
}; GUARDED_MAX];

/// Whether the handler is in place, with what was there before.
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

/// A part of a file in the address space of this process, from its begin on.
#[derive(Debug)]
pub struct Guarded {
    mapping: Mapping,
    slot: usize,
}

impl Guarded {
    /// Maps the first `len` bytes of a file for reading, and from then on catches `SIGBUS` in this
    /// process.
    ///
    /// # Errors
    /// As mmap(2); `ENOMEM` when there are [`GUARDED_MAX`] already; `ENOSYS` when the handler cannot
    /// be set.
    pub fn new(fd: BorrowedFd<'_>, len: usize) -> Result<Self, Errno> {
        if !catches() {
            return Err(Errno::NOSYS);
        }
        let mapping = Mapping::new(fd, 0, len, false)?;
        let free = |slot: &Slot| !slot.is_taken.swap(true, Ordering::SeqCst);
        let slot = SLOTS.iter().position(free).ok_or(Errno::NOMEM)?;
        SLOTS[slot].is_lost.store(false, Ordering::SeqCst);
        SLOTS[slot].len.store(len, Ordering::SeqCst);
        SLOTS[slot].start.store(mapping.start.as_ptr().addr(), Ordering::SeqCst);
        Ok(Self { mapping, slot })
    }

    /// How many bytes of the file it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// Never: mmap(2) refuses to map nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mapping.is_empty()
    }

    /// Has somebody look at a part of the file. `None`: a page of it could not be had, so that what
    /// was seen are not the bytes of the file; it will be so for good.
    ///
    /// Others may write to the file meanwhile: whoever looks takes the bytes as they come, and
    /// decides nothing by them. Where the file ends within a page, the rest of that page are zeros
    /// and no fault, so that afterwards the caller must ask for the size of the file.
    ///
    /// # Panics
    /// If the part is not one of the mapping's.
    pub fn look<T>(&self, part: Range<usize>, look: impl FnOnce(&[u8]) -> T) -> Option<T> {
        assert!(part.start <= part.end && part.end <= self.len(), "a part of the mapping");
        if self.is_lost() {
            return None;
        }
        // SAFETY: within the mapping, by the assertion, which lives as long as `self`. Pages that are
        // not there are replaced by the handler, since the slot names the mapping. The bytes may
        // change while they are looked at: copies of them are all that is asked for, and those are
        // no worse than what read(2) gives in the midst of a write.
        let bytes = unsafe {
            let start = self.mapping.start.as_ptr().cast::<u8>().add(part.start);
            std::slice::from_raw_parts(start, part.end - part.start)
        };
        let seen = look(bytes);
        if self.is_lost() { None } else { Some(seen) }
    }

    fn is_lost(&self) -> bool {
        SLOTS[self.slot].is_lost.load(Ordering::SeqCst)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // The mapping itself goes after this: nobody looks into it any more.
        SLOTS[self.slot].start.store(0, Ordering::SeqCst);
        SLOTS[self.slot].is_taken.store(false, Ordering::SeqCst);
    }
}

/// Sets the handler, once. Says whether it is set.
fn catches() -> bool {
    let set = || {
        PAGE_BYTES.store(rustix::param::page_size(), Ordering::SeqCst);
        let mut before = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: only asks, and fills what it is given; sigaction(2).
        let asked = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) };
        // SAFETY: it was filled, where the call has not failed.
        (asked == 0).then(|| unsafe { before.assume_init() })
    };
    static IS_SET: OnceLock<bool> = OnceLock::new();
    // What was there before is known before the handler can run.
    if BEFORE.get_or_init(set).is_none() {
        return false;
    }
    *IS_SET.get_or_init(|| {
        // SAFETY: all zeros are an action: no flags, no signals blocked.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler does what signal-safety(7) allows, and keeps errno.
        unsafe { libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) == 0 }
    })
}

extern "C" fn on_bus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives the place of a fault with every SIGBUS that is one; sigaction(2).
    let place = unsafe { (*info).si_addr() };
    if !replace(place) {
        hand_on(signal, info, context);
    }
}

/// Puts zeros in the place of the page at an address, if it is in a guarded mapping.
fn replace(place: *mut c_void) -> bool {
    let is_within = |slot: &&Slot| {
        let start = slot.start.load(Ordering::SeqCst);
        start != 0 && place.addr().wrapping_sub(start) < slot.len.load(Ordering::SeqCst)
    };
    let Some(slot) = SLOTS.iter().find(is_within) else { return false };
    // First: whoever sees the zeros must find it lost.
    slot.is_lost.store(true, Ordering::SeqCst);
    let bytes = PAGE_BYTES.load(Ordering::SeqCst);
    let page = place.map_addr(|place| place & !(bytes - 1));
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: a page of a mapping that is ours and that nobody writes to; whoever reads it has been
    // told above that it is lost. Afterwards munmap(2) takes both kinds of pages.
    let put = unsafe { rustix::mm::mmap_anonymous(page, bytes, ProtFlags::READ, flags) };
    put.is_ok()
}

/// Does what would have been done without us.
fn hand_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get().and_then(Option::as_ref);
    match before {
        Some(action) if action.sa_sigaction > libc::SIG_IGN => {
            if action.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: a handler of this kind was set, as the flag says.
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(action.sa_sigaction) };
                handler(signal, info, context);
            } else {
                // SAFETY: likewise, of the other kind.
                let handler: extern "C" fn(c_int) =
                    unsafe { std::mem::transmute(action.sa_sigaction) };
                handler(signal);
            }
        }
        _ => {
            // SAFETY: the default action; the load is repeated, and ends the process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    const PAGE: usize = 4096;

    fn file(len: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; len]).unwrap();
        file
    }

    #[test]
    fn a_file_that_has_shrunk_is_lost_and_no_signal() {
        let (shrinks, other) = (file(3 * PAGE), file(3 * PAGE));
        let first = Guarded::new(shrinks.as_fd(), 3 * PAGE).unwrap();
        let second = Guarded::new(other.as_fd(), 3 * PAGE).unwrap();
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>();
        assert_eq!(first.look(0..3 * PAGE, sum), Some(7 * 3 * PAGE));
        shrinks.set_len(PAGE as u64).unwrap();
        assert_eq!(first.look(0..PAGE, sum), Some(7 * PAGE));
        assert_eq!(first.look(PAGE - 5..PAGE + 5, sum), None);
        // For good, also where the file is.
        assert_eq!(first.look(0..PAGE, sum), None);
        assert_eq!(second.look(0..3 * PAGE, sum), Some(7 * 3 * PAGE));
        drop(first);
        let again = Guarded::new(shrinks.as_fd(), PAGE).unwrap();
        assert_eq!(again.look(0..PAGE, sum), Some(7 * PAGE));
    }

    #[test]
    #[should_panic(expected = "a part of the mapping")]
    fn what_is_not_mapped_is_not_looked_at() {
        let file = file(PAGE);
        let guarded = Guarded::new(file.as_fd(), PAGE).unwrap();
        guarded.look(PAGE - 1..PAGE + 1, |_| ());
    }

    /// Set in the child that is to die.
    const CHILD: &str = "SLUICE_MAPPING_TEST_CHILD";

    #[test]
    fn a_fault_that_is_nobodys_ends_the_process_as_ever() {
        if std::env::var(CHILD).is_ok() {
            let (guarded, faulty) = (file(PAGE), file(PAGE));
            let _guarded = Guarded::new(guarded.as_fd(), PAGE).unwrap();
            let mapping = Mapping::new(faulty.as_fd(), 0, PAGE, false).unwrap();
            faulty.set_len(0).unwrap();
            // SAFETY: it is mapped; that there is no page is what is tested.
            let byte = unsafe { mapping.start.as_ptr().cast::<u8>().read_volatile() };
            println!("read {byte}");
            return;
        }
        use std::os::unix::process::ExitStatusExt;
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "guarded::tests::a_fault_that_is_nobodys_ends_the_process_as_ever"]);
        let ended = child.env(CHILD, "1").output().unwrap();
        assert_eq!(ended.status.signal(), Some(libc::SIGBUS), "{ended:?}");
    }
}
