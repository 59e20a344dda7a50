//! Names within a directory.

use p9::Errno;

use crate::error::{Error, Result};

/// Bytes that one name may have: `NAME_MAX` of Linux file systems (limits.h).
pub const NAME_BYTES_MAX: usize = 255;

/// Checks that `name` can stand for one entry of a directory: not empty, neither `.` nor `..`, no
/// `/` and no NUL.
///
/// A client that sends such names is broken or hostile, except for the two dots, for which every
/// call has its own answer: that is `for_dots`.
///
/// # Errors
/// `ENOENT` for the empty name (path_resolution(7)), `for_dots`, `EINVAL`, `ENAMETOOLONG`.
pub fn check(operation: &'static str, name: &[u8], for_dots: Errno) -> Result<()> {
    let errno = match name {
        [] => Errno::ENOENT,
        b"." | b".." => for_dots,
        _ if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Errno::EINVAL,
        _ if name.len() > NAME_BYTES_MAX => Errno::ENAMETOOLONG,
        _ => return Ok(()),
    };
    Err(Error::System { operation, errno })
}
