//! Names of files as the MPI library takes them.

use std::ffi::{CStr, CString, c_char};

use mpi::Mpi;

use crate::romio;

/// Before a name, it tells ROMIO which kind of file system it is on, and that what follows is a path
/// whatever colons it has.
const ROMIO_UFS: &[u8] = b"ufs:";

/// A name to be handed to the MPI library.
pub(crate) enum Name {
    /// As it came.
    Same(*const c_char),
    /// Another.
    Other(CString),
}

impl Name {
    /// The name by which the MPI library opens the file that the program names: an address of Sluice's
    /// would be taken by ROMIO for a file system that it does not know, because of its colon.
    ///
    /// # Safety
    ///
    /// NULL or a string.
    pub(crate) unsafe fn of(name: *const c_char) -> Name {
        if name.is_null() {
            return Name::Same(name);
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
        let is_address = address::detect(bytes).is_some_and(|found| found.start == 0);
        if !is_address || !Mpi::find().is_ok_and(romio::is_in) {
            return Name::Same(name);
        }
        match CString::new([ROMIO_UFS, bytes].concat()) {
            Ok(other) => Name::Other(other),
            Err(_) => Name::Same(name),
        }
    }

    /// For the call; lives as long as this.
    pub(crate) fn as_ptr(&self) -> *const c_char {
        match self {
            Name::Same(name) => *name,
            Name::Other(name) => name.as_ptr(),
        }
    }
}

/// A file name without the prefix by which ROMIO lets the user choose a file system. `None` where the
/// prefix stands for something that has no path, or is not known.
pub(crate) fn path_of(name: &[u8]) -> Option<&[u8]> {
    const PREFIXES: [&[u8]; 5] = [b"ufs", b"nfs", b"xfs", b"lustre", b"gpfs"];
    if address::detect(name).is_some_and(|found| found.start == 0) {
        return Some(name);
    }
    let head = name.split(|byte| *byte == b'/').next()?;
    match head.iter().position(|byte| *byte == b':') {
        None => Some(name),
        Some(colon) => PREFIXES.contains(&&name[..colon]).then(|| &name[colon + 1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::path_of;

    #[test]
    fn prefixes_of_romio_are_taken_off_and_others_are_declined() {
        assert_eq!(path_of(b"/a/b:c"), Some(&b"/a/b:c"[..]));
        assert_eq!(path_of(b"ufs:/a"), Some(&b"/a"[..]));
        assert_eq!(path_of(b"data"), Some(&b"data"[..]));
        assert_eq!(path_of(b"pvfs2:/a"), None);
    }

    #[test]
    fn addresses_are_paths_with_and_without_a_prefix() {
        let address = &b"scdc+tcp://host/a"[..];
        assert_eq!(path_of(address), Some(address));
        assert_eq!(path_of(b"ufs:scdc+tcp://host/a"), Some(address));
        assert_eq!(path_of(b"pvfs2:scdc+tcp://host/a"), None);
    }
}
