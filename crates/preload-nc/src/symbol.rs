//! Names of symbols.

/// The name of a symbol, of pieces.
macro_rules! c_name {
    ($($piece:expr),+) => {{
        const NAME: &std::ffi::CStr =
            match std::ffi::CStr::from_bytes_with_nul(concat!($($piece),+, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a symbol name has no NUL"),
            };
        NAME
    }};
}
pub(crate) use c_name;
