//! The Fortran names of the intercepted functions.
//!
//! A Fortran compiler calls a function by its name in lower case with an underscore, without one, with
//! two, or in upper case; the module `mpi_f08` calls `…_f08_` (Open MPI), `…_f08ts_` and `…_c_f08ts_`
//! (MPICH, Intel MPI). Each symbol here counts and jumps on with all registers and the stack as they
//! came, so it needs to know neither how a binding passes arguments nor which ones there are.

#[cfg(target_arch = "x86_64")]
pub(crate) use symbols::COUNTERS;

/// Elsewhere Fortran calls are seen as the C calls that they become.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) static COUNTERS: &[&crate::trace::Counter] = &[];

#[cfg(target_arch = "x86_64")]
mod symbols {
    use std::ffi::{CStr, c_void};
    use std::sync::atomic::{AtomicPtr, Ordering};

    use crate::trace::Counter;

    /// A Fortran symbol, as its code knows it.
    pub(super) struct Symbol {
        name: &'static CStr,
        counter: Counter,
        /// Where the symbol goes on to. At first that is nowhere.
        target: AtomicPtr<c_void>,
    }

    /// Counts, and tells where to go on.
    extern "C" fn enter(symbol: &'static Symbol) -> *mut c_void {
        symbol.counter.count();
        let known = symbol.target.load(Ordering::Acquire);
        if !known.is_null() {
            return known;
        }
        let found = mpi::next_of_mpi(symbol.name);
        if found.is_null() {
            undefined(symbol.name);
        }
        symbol.target.store(found, Ordering::Release);
        found
    }

    /// What the dynamic linker does with a symbol that nobody defines: it says so and ends the
    /// program (`_dl_signal_error` at lazy binding).
    fn undefined(name: &CStr) -> ! {
        let message =
            format!("symbol lookup error: undefined symbol: {}\n", name.to_string_lossy());
        // SAFETY: write(2) of a live buffer, and _exit(2).
        unsafe {
            libc::write(2, message.as_ptr().cast(), message.len());
            libc::_exit(127)
        }
    }

    // With the symbol's address in `r11`.
    patch::jump_to_found!(pass by enter);

    macro_rules! symbols {
        ($($lower:literal $upper:literal;)+) => {
            pub(crate) static COUNTERS: &[&Counter] = &[$(
                one!(concat!("mpi_", $lower, "_")),
                one!(concat!("mpi_", $lower)),
                one!(concat!("mpi_", $lower, "__")),
                one!(concat!("MPI_", $upper)),
                one!(concat!("pmpi_", $lower, "_")),
                one!(concat!("pmpi_", $lower)),
                one!(concat!("pmpi_", $lower, "__")),
                one!(concat!("PMPI_", $upper)),
                one!(concat!("mpi_", $lower, "_f08_")),
                one!(concat!("pmpi_", $lower, "_f08_")),
                one!(concat!("mpi_", $lower, "_f08ts_")),
                one!(concat!("pmpir_", $lower, "_f08ts_")),
                one!(concat!("mpi_", $lower, "_c_f08ts_")),
                one!(concat!("pmpir_", $lower, "_c_f08ts_")),
            )+];
        };
    }

    macro_rules! one {
        ($name:expr) => {{
            static SYMBOL: Symbol = Symbol {
                name: match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a symbol name has no NUL"),
                },
                counter: Counter::new(match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a symbol name has no NUL"),
                }),
                target: AtomicPtr::new(std::ptr::null_mut()),
            };

            #[unsafe(export_name = $name)]
            #[unsafe(naked)]
            unsafe extern "C" fn symbol() {
                std::arch::naked_asm!(
                    "lea r11, [rip + {}]",
                    "jmp {}",
                    sym SYMBOL,
                    sym pass,
                )
            }

            &SYMBOL.counter
        }};
    }

    symbols! {
        "file_open" "FILE_OPEN";
        "file_delete" "FILE_DELETE";
        "file_close" "FILE_CLOSE";
        "file_set_view" "FILE_SET_VIEW";
        "file_set_info" "FILE_SET_INFO";
        "file_sync" "FILE_SYNC";
        "file_read" "FILE_READ";
        "file_write" "FILE_WRITE";
        "file_read_at" "FILE_READ_AT";
        "file_write_at" "FILE_WRITE_AT";
    }
}
