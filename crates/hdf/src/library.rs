//! The HDF5 library: one caller at a time, ids that close themselves, errors in its own words.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use hdf5_metno_sys::h5::{H5dont_atexit, H5free_memory, H5open, herr_t};
use hdf5_metno_sys::h5e::{
    H5E_DEFAULT, H5E_direction_t, H5E_error2_t, H5Eclear2, H5Eset_auto2, H5Ewalk2,
};
use hdf5_metno_sys::h5i::hid_t;

/// The library is built without its own lock, so whoever calls it holds this one.
static CALLERS: Mutex<()> = Mutex::new(());

/// The right to call the library. Ids must be dropped while it is held.
pub(crate) struct Library {
    _turn: MutexGuard<'static, ()>,
}

impl Library {
    /// Waits for its turn.
    pub(crate) fn enter() -> Self {
        static OPENED: Once = Once::new();
        let turn = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
        OPENED.call_once(|| {
            // SAFETY: called once, by the only caller. Without a handler errors are returned, not
            // printed; without its own atexit the library does not run under threads at the end.
            unsafe {
                H5dont_atexit();
                H5open();
                H5Eset_auto2(H5E_DEFAULT, None, std::ptr::null_mut());
            }
        });
        Self { _turn: turn }
    }

    /// What a call returned, unless it is negative.
    pub(crate) fn check(&self, returned: herr_t) -> Result<herr_t, Failure> {
        if returned < 0 { Err(Failure::of_library()) } else { Ok(returned) }
    }

    /// An id that `close` closes, unless it is negative.
    pub(crate) fn id(
        &self,
        returned: hid_t,
        close: unsafe extern "C" fn(hid_t) -> herr_t,
    ) -> Result<Id, Failure> {
        if returned < 0 { Err(Failure::of_library()) } else { Ok(Id { id: returned, close }) }
    }

    /// A text that the library allocated, which is given back.
    pub(crate) fn text(&self, text: *mut c_char) -> Result<String, Failure> {
        if text.is_null() {
            return Err(Failure::of_library());
        }
        // SAFETY: not null, and the library ends its texts with NUL.
        let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: the library allocated it and nobody uses it any more.
        unsafe { H5free_memory(text.cast()) };
        Ok(copy)
    }
}

/// An open object of the library. It is closed when dropped, in the turn of whoever drops it.
#[derive(Debug)]
pub(crate) struct Id {
    id: hid_t,
    close: unsafe extern "C" fn(hid_t) -> herr_t,
}

impl Id {
    /// Its number.
    pub(crate) fn get(&self) -> hid_t {
        self.id
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: `close` is the library's own for this kind of id, and the id is closed once.
        unsafe { (self.close)(self.id) };
    }
}

/// Why the library refused: what its error stack says, the innermost first.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(reason: String) -> Self {
        Failure(reason)
    }

    fn of_library() -> Self {
        let mut words: Vec<String> = Vec::new();
        // SAFETY: `said` gets the pointer to `words`, which outlives the walk.
        unsafe {
            H5Ewalk2(
                H5E_DEFAULT,
                H5E_direction_t::H5E_WALK_UPWARD,
                Some(said),
                (&raw mut words).cast(),
            );
            H5Eclear2(H5E_DEFAULT);
        }
        words.dedup();
        words.truncate(3);
        Failure(if words.is_empty() { "it gave no reason".to_owned() } else { words.join("; ") })
    }

    pub(crate) fn into_words(self) -> String {
        self.0
    }
}

extern "C" fn said(_depth: c_uint, error: *const H5E_error2_t, words: *mut c_void) -> herr_t {
    // SAFETY: the library gives a valid entry, and `words` is what `of_library` handed in.
    let (error, words) = unsafe { (&*error, &mut *words.cast::<Vec<String>>()) };
    if !error.desc.is_null() {
        // SAFETY: not null, and the library ends its texts with NUL.
        words.push(unsafe { CStr::from_ptr(error.desc) }.to_string_lossy().into_owned());
    }
    0
}
