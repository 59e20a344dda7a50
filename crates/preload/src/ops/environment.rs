//! The environment of programs that this one becomes or starts: it carries Sluice on.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::sync::OnceLock;

use address::Settings;

/// What must be in the environment of every program that this one becomes or starts: `NAME=value`.
static CARRIED: OnceLock<[CString; 2]> = OnceLock::new();

/// Remembers how this process was given Sluice, if `sluice run` did.
pub(crate) fn remember() {
    use std::os::unix::ffi::OsStrExt;
    let variable = |name: &str| std::env::var_os(name);
    let (Some(preload), Some(settings)) = (variable(PRELOAD), variable(Settings::VARIABLE)) else {
        return;
    };
    let entry = |name: &str, value: &OsStr| {
        CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
    };
    let entries = entry(PRELOAD, &preload).zip(entry(Settings::VARIABLE, &settings));
    if let Some((preload, settings)) = entries {
        let _ = CARRIED.set([preload, settings]);
    }
}

const PRELOAD: &str = "LD_PRELOAD";

/// The environment for execve(2), completed where a program cleared it (`env -i`): without Sluice the
/// new image would take redirected paths for local ones. `None`: it is complete.
///
/// # Safety
/// `environment` is NULL or an array of strings that ends in NULL (execve(2)).
pub(crate) unsafe fn complete(environment: *const *const c_char) -> Option<Environment> {
    let carried = CARRIED.get()?;
    let mut entries = Vec::new();
    let mut joined = None;
    let mut missing = [true, true];
    let mut at = environment;
    // SAFETY: the caller's promise.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: as above: a NUL-terminated string.
        let (pointer, text) = unsafe { (*at, CStr::from_ptr(*at).to_bytes()) };
        for (index, entry) in carried.iter().enumerate() {
            let name_len = entry.to_bytes().iter().position(|byte| *byte == b'=')?;
            if text.get(..=name_len) == entry.to_bytes().get(..=name_len) {
                missing[index] = false;
            }
        }
        if let Some(own) = text.strip_prefix(b"LD_PRELOAD=")
            && !own.windows(LIBRARY.len()).any(|part| part == LIBRARY)
        {
            // The program's own libraries, and ours before them.
            let whole = [carried[0].to_bytes(), b":", own].concat();
            joined = CString::new(whole).ok();
            entries.push(joined.as_ref().map_or(pointer, |whole| whole.as_ptr()));
        } else {
            entries.push(pointer);
        }
        // SAFETY: not the end yet.
        at = unsafe { at.add(1) };
    }
    if missing == [false, false] && joined.is_none() {
        return None;
    }
    for (entry, missing) in carried.iter().zip(missing) {
        if missing {
            entries.push(entry.as_ptr());
        }
    }
    entries.push(std::ptr::null());
    Some(Environment { entries, _joined: joined })
}

/// What the library's file is called, whatever its directory.
const LIBRARY: &[u8] = b"libsluice.so";

/// An environment for execve(2).
pub(crate) struct Environment {
    pub(crate) entries: Vec<*const c_char>,
    /// Keeps the one entry that was made anew.
    _joined: Option<CString>,
}
