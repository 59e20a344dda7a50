//! What a program is told of a failure: netCDF's code, and by `ncmpi_strerror` the sentence behind it.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use exchange::Fault;

use crate::codes::NC_EFILE;

/// A code, as a function of PnetCDF returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

thread_local! {
    static LAST: RefCell<Option<(c_int, CString)>> = const { RefCell::new(None) };
}

impl Code {
    /// A code with a sentence of its own.
    pub(crate) fn explained(code: c_int, sentence: String) -> Code {
        let sentence = CString::new(sentence.replace('\0', " ")).unwrap_or_default();
        LAST.set(Some((code, sentence)));
        Code(code)
    }
}

impl From<Fault> for Code {
    fn from(fault: Fault) -> Code {
        Code::explained(fault.status(), fault.report())
    }
}

/// The sentence of this thread's last failure, if `code` is its code. It stays until the next one.
pub(crate) fn sentence(code: c_int) -> Option<*const c_char> {
    LAST.with_borrow(|last| match last {
        Some((last, sentence)) if *last == code => Some(sentence.as_ptr()),
        _ => None,
    })
}

/// What a hook returns; a panic of ours is an error of the file.
pub(crate) fn answer(work: impl FnOnce() -> Result<(), Code>) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(Code(code))) => code,
        Err(_) => {
            let sentence = "a mistake in libsluice_nc.so; please report it".to_owned();
            Code::explained(NC_EFILE, sentence).0
        }
    }
}
