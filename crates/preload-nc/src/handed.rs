//! Files that programs hand over as files: PnetCDF reads and writes them, and only opening and closing is told.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

use crate::definition::check;
use crate::failure::{Code, answer};
use crate::group::Ranks;
use crate::open::Side;

static FILES: Mutex<BTreeMap<c_int, (Side, Ranks)>> = Mutex::new(BTreeMap::new());

/// Opens a file as the program wanted it.
///
/// # Safety
/// A place that holds the number of the file when the call has succeeded.
pub(crate) unsafe fn opened(
    side: Side,
    ranks: Ranks,
    ncid: *const c_int,
    pass: impl FnOnce() -> c_int,
) -> Result<(), Code> {
    check(pass())?;
    // SAFETY: the caller's promise.
    let ncid = unsafe { ncid.read() };
    FILES.lock().unwrap_or_else(PoisonError::into_inner).insert(ncid, (side, ranks));
    Ok(())
}

/// Closes a file, and tells the others when it is complete.
pub(crate) fn close(ncid: c_int, pass: impl FnOnce() -> c_int) -> c_int {
    let file = FILES.lock().unwrap_or_else(PoisonError::into_inner).remove(&ncid);
    let Some((side, ranks)) = file else { return pass() };
    answer(|| {
        let code = pass();
        let told = match side {
            Side::Writer(written) if code == 0 => written.close(0),
            Side::Writer(written) => {
                written.abort();
                Ok(())
            }
            Side::Reader(wanted) => wanted.close(),
        };
        ranks.free();
        check(code)?;
        Ok(told?)
    })
}
