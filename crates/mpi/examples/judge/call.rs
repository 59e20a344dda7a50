//! Calling functions that only the judge calls, by name.

/// Calls, and returns the error code.
macro_rules! attempt {
    ($library:expr, $name:literal, ($($ty:ty),*), ($($value:expr),*)) => {{
        // SAFETY: the signature is the one that MPI-4.1, annex A.3, gives to this name.
        unsafe {
            let name = concat!($name, "\0").as_ptr().cast();
            let address = libc::dlsym($library.handle, name);
            assert!(!address.is_null(), "{} is missing", $name);
            let call: unsafe extern "C" fn($($ty),*) -> c_int = std::mem::transmute(address);
            call($($value),*)
        }
    }};
}

/// Calls, and must succeed.
macro_rules! call {
    ($library:expr, $name:literal, $types:tt, $values:tt) => {
        assert_eq!($crate::call::attempt!($library, $name, $types, $values), 0, "{} failed", $name)
    };
}
pub(crate) use {attempt, call};
