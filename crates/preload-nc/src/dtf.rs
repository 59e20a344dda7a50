//! What `libdtf.so` asks for: the functions of DTF for programs that were written for it.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Code, answer};
use crate::{files, process};

static IS_USED: AtomicBool = AtomicBool::new(false);

/// Whether the program has called `dtf_init`, and so promised to leave memory alone until it calls `dtf_transfer`.
pub(crate) fn is_used() -> bool {
    IS_USED.load(Ordering::Acquire)
}

/// `dtf_init`.
///
/// # Safety
/// Two strings.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sluice_couple_init(
    file: *const c_char,
    component: *const c_char,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let (file, component) = unsafe { (CStr::from_ptr(file), CStr::from_ptr(component)) };
        let (file, component) = (file.to_string_lossy(), component.to_string_lossy());
        process::plan_by_call(Path::new(&*file), &component)?;
        IS_USED.store(true, Ordering::Release);
        Ok(())
    })
}

/// `dtf_transfer` for the file of a number, and for all of them if it is negative. Files that are not coupled are left alone.
#[unsafe(no_mangle)]
extern "C-unwind" fn sluice_couple_transfer(ncid: c_int) -> c_int {
    answer(|| {
        let mut first = Ok::<(), Code>(());
        for (number, file) in files::all() {
            if ncid < 0 || number == ncid {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                first = first.and(file.transfer());
            }
        }
        first
    })
}

/// `dtf_finalize`: waits until what was written is read.
#[unsafe(no_mangle)]
extern "C-unwind" fn sluice_couple_leave() -> c_int {
    answer(|| {
        process::leave();
        Ok(())
    })
}
