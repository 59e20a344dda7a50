//! Names that a client may not use, and tree names of an attach.

use p9::Errno;

use super::Outcome;

/// Checks one element of a walk: not empty, no `/`, no NUL. walk(5) has no element `.`, but clients
/// send it (diodls).
///
/// # Errors
/// `EINVAL`, or `ENOENT` for the empty name, as the system calls have it.
pub(crate) fn check_element(name: &[u8]) -> Outcome {
    if name.is_empty() {
        return Err(Errno::ENOENT.into());
    }
    if name.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(Errno::EINVAL.into());
    }
    if name.len() > 255 { Err(Errno::ENAMETOOLONG.into()) } else { Ok(()) }
}

/// Checks the name of something to be made, renamed or removed: an element other than `.` and
/// `..`.
///
/// # Errors
/// As [`check_element`].
pub(crate) fn check_entry(name: &[u8]) -> Outcome {
    check_element(name)?;
    if matches!(name, b"." | b"..") { Err(Errno::EINVAL.into()) } else { Ok(()) }
}

/// The elements of a tree name: `""` and `"/"` have none, `"NAME/sub"` and `"/NAME/sub"` two.
pub(crate) fn tree_elements(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|byte| *byte == b'/').filter(|element| !element.is_empty() && *element != b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_leave_the_directory_are_refused() {
        for bad in [&b"a/b"[..], b"/", b"a\0b"] {
            assert_eq!(check_element(bad), Err(Errno::EINVAL.into()), "{bad:?}");
        }
        assert_eq!(check_element(b""), Err(Errno::ENOENT.into()));
        assert_eq!(check_element(&[b'x'; 256]), Err(Errno::ENAMETOOLONG.into()));
        assert_eq!(check_element(b".."), Ok(()));
        assert_eq!(check_entry(b"."), Err(Errno::EINVAL.into()));
        assert_eq!(check_entry(b".."), Err(Errno::EINVAL.into()));
        assert_eq!(check_entry(b"..."), Ok(()));
    }

    #[test]
    fn tree_names_with_and_without_slash_are_the_same() {
        let elements = |name: &'static [u8]| tree_elements(name).collect::<Vec<_>>();
        assert!(elements(b"").is_empty());
        assert!(elements(b"/").is_empty());
        assert_eq!(elements(b"data"), [b"data"]);
        assert_eq!(elements(b"/data/sub//x/"), [&b"data"[..], b"sub", b"x"]);
    }
}
