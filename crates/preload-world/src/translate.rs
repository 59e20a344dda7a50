//! Functions that differ from the MPI library's in nothing but which communicator they are given.
//!
//! Every argument is a word: an int, an address, a handle. Where the library expects less than a word it
//! takes the lower part (System V ABI §3.2.3), so that words go on as they came.

/// Defines and exports functions under their names `MPI_…` and `PMPI_…`, by shape: the arguments in
/// brackets are communicators.
macro_rules! communicators {
    ($( $arguments:tt $($name:literal)+; )+) => {
        $( $(
            $crate::translate::communicator!(concat!("MPI_", $name), $arguments);
            $crate::translate::communicator!(concat!("PMPI_", $name), $arguments);
        )+ )+
    };
}

macro_rules! communicator {
    ($name:expr, ($($argument:tt),+)) => {
        const _: () = {
            static NEXT: mpi::Next = mpi::Next::new(
                match std::ffi::CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a symbol name has no NUL"),
                },
            );

            #[unsafe(export_name = $name)]
            unsafe extern "C-unwind" fn function(
                $( $crate::translate::parameter!($argument): usize ),+
            ) -> std::ffi::c_int {
                let address = NEXT.address();
                if address.is_null() {
                    return $crate::missing::missing();
                }
                // SAFETY: the next definition of this name has as many arguments as MPI gives it
                // (MPI-5.0, annex A.3), each at most a word; tests/mpi compares with the headers.
                let next = unsafe {
                    std::mem::transmute::<
                        *const std::ffi::c_void,
                        unsafe extern "C-unwind" fn(
                            $( $crate::translate::word!($argument) ),+
                        ) -> std::ffi::c_int,
                    >(address)
                };
                // SAFETY: the program's own arguments, but for the communicator, which is a live one
                // wherever the program's is.
                unsafe { next($( $crate::translate::value!($argument) ),+) }
            }
        };
    };
}

macro_rules! parameter {
    ([$name:ident]) => {
        $name
    };
    ($name:ident) => {
        $name
    };
}

macro_rules! word {
    ($argument:tt) => {
        usize
    };
}

macro_rules! value {
    ([$name:ident]) => {
        $crate::world::own($name)
    };
    ($name:ident) => {
        $name
    };
}

pub(crate) use {communicator, communicators, parameter, value, word};
