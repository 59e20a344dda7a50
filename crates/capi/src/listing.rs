//! Listings of directories, as `sluice.h` has them. What the functions promise stands there.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use client::{At, Handle};
use p9::OpenFlags;
use reach::Far;

use crate::error::{Result, report};
use crate::files::{failed, place};
use crate::handles::Table;

/// A directory that is being listed.
struct Listing {
    far: Far,
    handle: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Names that have come and were not told, the next one last.
    waiting: Vec<CString>,
    /// Where the service goes on.
    cookie: u64,
    ended: bool,
    /// The name that the caller has.
    told: CString,
}

static LISTINGS: Table<Listing> = Table::new("listing");

/// `sluice_list`.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_list(name: *const c_char) -> *mut c_void {
    report(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let far = unsafe { place(name) }?;
        let opened = far.session.open(At::root(far.uri.path.as_bytes()), OpenFlags::DIRECTORY, 0);
        let handle = opened.map_err(failed("opendir", &far.uri))?.handle;
        Ok(LISTINGS.add(Listing { far, handle, state: Mutex::default() }))
    })
}

/// `sluice_list_next`.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_list_next(listing: *mut c_void) -> *const c_char {
    report(std::ptr::null(), || {
        let listing = LISTINGS.get(listing)?;
        let mut state = listing.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.waiting.is_empty() && !state.ended {
            listing.more(&mut state)?;
        }
        Ok(match state.waiting.pop() {
            Some(name) => {
                state.told = name;
                state.told.as_ptr()
            }
            None => {
                // SAFETY: __errno_location(3) never fails and its place is this thread's own.
                unsafe { *libc::__errno_location() = 0 };
                std::ptr::null()
            }
        })
    })
}

impl Listing {
    /// Gets the next names that are not `.` and `..`.
    fn more(&self, state: &mut State) -> Result<()> {
        while state.waiting.is_empty() && !state.ended {
            let State { waiting, cookie, .. } = state;
            let held = self.handle.read_directory(*cookie, &mut |entry| {
                *cookie = entry.offset;
                let name: &[u8] = entry.name;
                // No name has a NUL (the codec refuses it).
                if !matches!(name, b"." | b"..")
                    && let Ok(name) = CString::new(name)
                {
                    waiting.push(name);
                }
                true
            });
            state.ended = held.map_err(failed("readdir", &self.far.uri))? == 0;
            state.waiting.reverse();
        }
        Ok(())
    }
}

/// `sluice_list_close`.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_list_close(listing: *mut c_void) -> c_int {
    report(-1, || {
        let listing = LISTINGS.take(listing)?;
        if let Ok(listing) = std::sync::Arc::try_unwrap(listing) {
            listing.handle.close();
        }
        Ok(0)
    })
}
