//! Paths taken apart. Pure.

use std::borrow::Cow;
use std::collections::VecDeque;

use p9::Errno;

/// Longest name in bytes (NAME_MAX).
const NAME_MAX: usize = 255;

/// Longest path in bytes, with the NUL that ends it (PATH_MAX).
const PATH_MAX: usize = 4096;

/// A component still to be walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) name: Cow<'a, [u8]>,
    /// It comes from a symbolic link's target, not from the program.
    pub(crate) from_link: bool,
}

/// A path's components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parsed<'a> {
    /// Without `.` and empty ones.
    pub(crate) names: Vec<&'a [u8]>,
    /// It ends with a slash, `.` or `..`: what it names must be a directory.
    pub(crate) directory: bool,
    /// How it ends.
    pub(crate) end: End,
}

/// The last component, which matters to calls that create or remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// A name.
    Name,
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// There is none: an empty path, or only slashes.
    Nothing,
}

impl<'a> Parsed<'a> {
    /// Takes a path apart. A leading slash means nothing here.
    ///
    /// # Errors
    /// `ENAMETOOLONG`, as path_resolution(7) has it.
    pub(crate) fn new(path: &'a [u8]) -> Result<Self, Errno> {
        if path.len() >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let mut parsed = Self { names: Vec::with_capacity(8), directory: false, end: End::Nothing };
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            if name.len() > NAME_MAX {
                return Err(Errno::ENAMETOOLONG);
            }
            parsed.end = match name {
                b"." => End::Dot,
                b".." => End::DotDot,
                _ => End::Name,
            };
            if parsed.end != End::Dot {
                parsed.names.push(name);
            }
        }
        parsed.directory = match parsed.end {
            End::Dot | End::DotDot => true,
            End::Name => path.ends_with(b"/"),
            End::Nothing => false,
        };
        Ok(parsed)
    }

    pub(crate) fn pieces(&self, from_link: bool) -> VecDeque<Piece<'a>> {
        self.names.iter().map(|name| Piece { name: Cow::Borrowed(*name), from_link }).collect()
    }
}

/// The names of a path that has no `.` or `..`.
pub(crate) fn names_of(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect()
}

/// Names joined by slashes, without a leading one.
pub(crate) fn join<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> Vec<u8> {
    let mut path = Vec::new();
    for name in names {
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &[u8]) -> (Vec<&[u8]>, bool, End) {
        let parsed = Parsed::new(path).expect("short");
        (parsed.names, parsed.directory, parsed.end)
    }

    #[test]
    fn dots_and_slashes_keep_their_meaning_at_the_end() {
        assert_eq!(names(b"a//./b"), (vec![&b"a"[..], b"b"], false, End::Name));
        assert_eq!(names(b"/a/"), (vec![&b"a"[..]], true, End::Name));
        assert_eq!(names(b"a/."), (vec![&b"a"[..]], true, End::Dot));
        assert_eq!(names(b"a/.."), (vec![&b"a"[..], b".."], true, End::DotDot));
        assert_eq!(names(b""), (vec![], false, End::Nothing));
        assert_eq!(names(b"//"), (vec![], false, End::Nothing));
    }

    #[test]
    fn long_names_and_paths_are_refused_and_the_longest_are_not() {
        assert!(Parsed::new(&[b'x'; 255]).is_ok());
        assert_eq!(Parsed::new(&[b'x'; 256]), Err(Errno::ENAMETOOLONG));
        assert!(Parsed::new(&b"abc/".repeat(1024)[..4095]).is_ok());
        assert_eq!(Parsed::new(&b"abc/".repeat(1024)), Err(Errno::ENAMETOOLONG));
    }

    #[test]
    fn joined_names_are_a_path_again() {
        assert_eq!(join([&b"a"[..], b"b"]), b"a/b");
        assert_eq!(join([]), b"");
    }
}
