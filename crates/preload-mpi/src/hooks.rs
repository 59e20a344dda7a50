//! Every MPI function that Sluice stands before, in one table.
//!
//! From one declaration come the exported symbols `MPI_…` and `PMPI_…`, their counters, and the way to
//! the next definition. What is done with a call of the program's is written behind it; `pass` makes the
//! call as the program made it, but that the library may know a file by another name (`names`). Handles are words here, as [`mpi`] explains.

use std::ffi::{c_char, c_int, c_void};

use mpi::Mpi;
use sieve::Access;

use crate::notes;
use crate::strided::{self, Call};
use crate::trace::{self, Counter};

/// A handle passed by value.
type Word = usize;
/// Where a program keeps a handle.
type Place = *mut c_void;
/// An MPI_Status of the program's, or MPI_STATUS_IGNORE.
type Status = *mut c_void;

macro_rules! hooks {
    ($(
        $name:ident $profiling:ident ($($arg:ident: $ty:ty),*) $(named $path:ident)?
        |$pass:ident| $body:expr, else $missing:expr;
    )+) => {
        $(
            $crate::hooks::symbol!($name ($($arg: $ty),*) $(named $path)? |$pass| $body, else $missing);
            $crate::hooks::symbol!($profiling ($($arg: $ty),*) $(named $path)? |$pass| $body, else $missing);
        )+

        /// How often the program called which function, under which name.
        pub(crate) static COUNTERS: &[&Counter] =
            &[$( &counters::$name, &counters::$profiling, )+];

        #[allow(non_upper_case_globals, reason = "each is named like its function")]
        mod counters {
            use super::Counter;

            $(
                pub(super) static $name: Counter = Counter::new($crate::hooks::c_name!($name));
                pub(super) static $profiling: Counter =
                    Counter::new($crate::hooks::c_name!($profiling));
            )+
        }
    };
}

macro_rules! symbol {
    (
        $name:ident ($($arg:ident: $ty:ty),*) $(named $path:ident)? |$pass:ident| $body:expr,
        else $missing:expr
    ) => {
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "MPI's name")]
        unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
            static NEXT: mpi::Next = mpi::Next::new($crate::hooks::c_name!($name));
            $(
                // SAFETY: the program's own argument.
                let name = unsafe { $crate::names::Name::of($path) };
                let $path = name.as_ptr();
            )?
            let $pass = || {
                let address = NEXT.address();
                if address.is_null() {
                    return $missing;
                }
                // SAFETY: the next definition of this name has MPI's signature (MPI-4.1, annex A.3),
                // which the declaration repeats, with handles as words.
                let next = unsafe {
                    std::mem::transmute::<
                        *const c_void,
                        unsafe extern "C-unwind" fn($($ty),*) -> c_int,
                    >(address)
                };
                // SAFETY: the program's own arguments.
                unsafe { next($($arg),*) }
            };
            let Some(_inside) = $crate::inside::Inside::enter() else { return $pass() };
            counters::$name.count();
            $body
        }
    };
}

macro_rules! c_name {
    ($name:ident) => {{
        const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
            concat!(stringify!($name), "\0").as_bytes(),
        ) {
            Ok(name) => name,
            Err(_) => panic!("a symbol name has no NUL"),
        };
        NAME
    }};
}
use {c_name, symbol};

/// The answer to a call that nobody implements: only a program that looked the name up by itself can
/// make one.
fn missing() -> c_int {
    /// MPI_ERR_OTHER of Open MPI and the standard interface.
    const OTHER: c_int = 16;
    Mpi::find().map_or(OTHER, |mpi| mpi.constants().numbers.error.other)
}

/// The answer to a count that the library has no function for.
fn too_many() -> c_int {
    /// MPI_ERR_COUNT of all interfaces.
    const COUNT: c_int = 2;
    Mpi::find().map_or(COUNT, |mpi| mpi.constants().numbers.error.count)
}

/// Makes a large-count call by its older form, for a library that lacks the new one: a program that
/// tests by a weak reference whether the name exists (mpi4py does) finds ours.
macro_rules! narrow {
    ($name:literal, $count:ident, ($($ty:ty),*), ($($value:expr),*)) => {{
        let address = mpi::next_of_mpi($name);
        let Ok($count) = c_int::try_from($count) else { return too_many() };
        if address.is_null() {
            return missing();
        }
        // SAFETY: the function of this name has this signature (MPI-4.1, annex A.3).
        let next = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($ty),*) -> c_int>(address)
        };
        // SAFETY: the program's own arguments.
        unsafe { next($($value),*) }
    }};
}

/// A read of the program's: by the sieve, or else by the MPI library.
macro_rules! strided {
    ($access:ident $file:expr, $at:expr, $buffer:expr, $count:expr, $datatype:expr, $status:expr, $pass:ident) => {{
        let call = Call {
            file: $file,
            at: $at,
            buffer: $buffer,
            count: i64::from($count),
            datatype: $datatype,
            status: $status,
        };
        // SAFETY: the program's own arguments.
        match unsafe { strided::carry_out(Access::$access, &call) } {
            Some(code) => code,
            None => $pass(),
        }
    }};
}

hooks! {
    MPI_File_open PMPI_File_open(
        comm: Word, name: *const c_char, amode: c_int, info: Word, file: Place
    ) named name |pass| {
        // SAFETY: the program's own arguments.
        let agreement = match unsafe { notes::opening(comm, name) } {
            Ok(agreement) => agreement,
            Err(code) => return code,
        };
        let code = pass();
        if code == 0 {
            // SAFETY: the program's own arguments, which the library has just accepted.
            unsafe { notes::opened(comm, name, amode, info, file, agreement) };
        }
        code
    }, else missing();

    MPI_File_delete PMPI_File_delete(name: *const c_char, info: Word) named name
    |pass| pass(), else missing();

    MPI_File_close PMPI_File_close(file: Place) |pass| {
        // SAFETY: the program's own argument.
        let closing = unsafe { notes::closing(file) };
        match pass() {
            0 if !notes::closed(closing) => notes::io_error(),
            code => code,
        }
    }, else missing();

    MPI_File_set_view PMPI_File_set_view(
        file: Word, displacement: i64, etype: Word, filetype: Word, datarep: *const c_char, info: Word
    ) |pass| {
        let code = pass();
        if code == 0 {
            // SAFETY: the program's own arguments, which the library has just accepted.
            unsafe { notes::viewed(file, displacement, etype, filetype, datarep, info) };
        } else {
            // Open MPI refuses some views and uses them nevertheless.
            // SAFETY: the program's own argument.
            unsafe { notes::view_refused(file) };
        }
        code
    }, else missing();

    MPI_File_set_info PMPI_File_set_info(file: Word, info: Word) |pass| {
        let code = pass();
        if code == 0 {
            // SAFETY: the program's own arguments, which the library has just accepted.
            unsafe { notes::hinted(file, info) };
        }
        code
    }, else missing();

    MPI_File_sync PMPI_File_sync(file: Word) |pass| {
        // SAFETY: the program's own argument.
        let is_durable = unsafe { notes::synchronise(file) };
        // Collective: the library is called whatever became of our part.
        match pass() {
            // SAFETY: as above.
            0 if !is_durable || !unsafe { notes::synchronised(file) } => unsafe { notes::failed(file) },
            code => code,
        }
    }, else missing();

    MPI_File_read PMPI_File_read(
        file: Word, buffer: *mut c_void, count: c_int, datatype: Word, status: Status
    ) |pass| strided!(Read file, None, buffer, count, datatype, status, pass), else missing();

    MPI_File_read_c PMPI_File_read_c(
        file: Word, buffer: *mut c_void, count: i64, datatype: Word, status: Status
    ) |pass| strided!(Read file, None, buffer, count, datatype, status, pass), else narrow!(
        c"MPI_File_read", count, (Word, *mut c_void, c_int, Word, Status),
        (file, buffer, count, datatype, status)
    );

    MPI_File_write PMPI_File_write(
        file: Word, buffer: *const c_void, count: c_int, datatype: Word, status: Status
    ) |pass| strided!(Write file, None, buffer, count, datatype, status, pass), else missing();

    MPI_File_write_c PMPI_File_write_c(
        file: Word, buffer: *const c_void, count: i64, datatype: Word, status: Status
    ) |pass| strided!(Write file, None, buffer, count, datatype, status, pass), else narrow!(
        c"MPI_File_write", count, (Word, *const c_void, c_int, Word, Status),
        (file, buffer, count, datatype, status)
    );

    MPI_File_read_at PMPI_File_read_at(
        file: Word, offset: i64, buffer: *mut c_void, count: c_int, datatype: Word, status: Status
    ) |pass| strided!(Read file, Some(offset), buffer, count, datatype, status, pass), else missing();

    MPI_File_read_at_c PMPI_File_read_at_c(
        file: Word, offset: i64, buffer: *mut c_void, count: i64, datatype: Word, status: Status
    ) |pass| strided!(Read file, Some(offset), buffer, count, datatype, status, pass), else narrow!(
        c"MPI_File_read_at", count, (Word, i64, *mut c_void, c_int, Word, Status),
        (file, offset, buffer, count, datatype, status)
    );

    MPI_File_write_at PMPI_File_write_at(
        file: Word, offset: i64, buffer: *const c_void, count: c_int, datatype: Word, status: Status
    ) |pass| strided!(Write file, Some(offset), buffer, count, datatype, status, pass), else missing();

    MPI_File_write_at_c PMPI_File_write_at_c(
        file: Word, offset: i64, buffer: *const c_void, count: i64, datatype: Word, status: Status
    ) |pass| strided!(Write file, Some(offset), buffer, count, datatype, status, pass), else narrow!(
        c"MPI_File_write_at", count, (Word, i64, *const c_void, c_int, Word, Status),
        (file, offset, buffer, count, datatype, status)
    );

    MPI_Finalize PMPI_Finalize() |pass| {
        trace::write();
        pass()
    }, else missing();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::COUNTERS;

    #[test]
    fn the_page_lists_what_is_intercepted() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/MPI.md");
        let page = std::fs::read_to_string(page).unwrap();
        let listed: BTreeSet<&str> =
            page.lines().filter(|line| line.starts_with("MPI_") && !line.contains(' ')).collect();
        let names: Vec<&str> =
            COUNTERS.iter().map(|counter| counter.name().to_str().unwrap()).collect();
        let plain: BTreeSet<&str> =
            names.iter().copied().filter(|name| name.starts_with("MPI_")).collect();
        assert_eq!(listed, plain);
        for name in plain {
            assert!(names.contains(&format!("P{name}").as_str()), "P{name}");
        }
    }
}
