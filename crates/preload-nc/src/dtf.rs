//! What `libdtf.so` asks for: the functions of DTF for programs that were written for it.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Code, answer};
use crate::open::OpenFile;
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
        if let Err(fault) = process::plan_by_call(Path::new(&*file), &component) {
            // The program has no way to ask for the sentence.
            process::tell(&format!("dtf_init: {}", fault.report()));
            return Err(fault.into());
        }
        IS_USED.store(true, Ordering::Release);
        Ok(())
    })
}

/// Does something with the open file of a number or a name; with all of them if there is neither. Files that are not coupled,
/// or are closed already, have nothing to transfer.
///
/// # Safety
/// NULL or a string.
unsafe fn each(
    name: *const c_char,
    ncid: c_int,
    mut work: impl FnMut(&mut OpenFile) -> Result<(), Code>,
) -> c_int {
    // SAFETY: the caller's promise.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy());
    answer(|| {
        let mut first = Ok(());
        for (number, file) in files::all() {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let is_meant = if ncid >= 0 {
                number == ncid
            } else {
                name.as_ref().is_none_or(|name| *name == file.name)
            };
            if is_meant {
                first = first.and(work(&mut file));
            }
        }
        first
    })
}

/// `dtf_transfer`.
///
/// # Safety
/// NULL or a string.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sluice_couple_transfer(name: *const c_char, ncid: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        each(name, ncid, |file| if file.is_read_several_times() { Ok(()) } else { file.transfer() })
    }
}

/// `dtf_transfer_multiple`: the readers will call `dtf_transfer` several times for this cycle.
///
/// # Safety
/// NULL or a string.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sluice_couple_transfer_multiple(
    name: *const c_char,
    ncid: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        each(name, ncid, |file| {
            file.notes.several_times = true;
            file.transfer()
        })
    }
}

/// `dtf_complete_multiple`: this reader has read enough of the cycle.
///
/// # Safety
/// NULL or a string.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sluice_couple_complete_multiple(
    name: *const c_char,
    ncid: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { each(name, ncid, OpenFile::transfer) }
}

/// `dtf_finalize`: waits until what was written is read.
#[unsafe(no_mangle)]
extern "C-unwind" fn sluice_couple_leave(_name: *const c_char, _ncid: c_int) -> c_int {
    answer(|| {
        process::leave();
        Ok(())
    })
}
