//! Paths as lists of names: the part of an address that is walked at the far end.

use std::fmt;

/// The names of a path in order; empty components and `.` are skipped, `..` is kept.
pub fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

/// True if a trailing `/` or `/.` demands that the path be a directory.
///
/// # Source
/// POSIX.1-2024 §4.16, "Pathname Resolution".
pub fn demands_directory(path: &[u8]) -> bool {
    matches!(path, [.., b'/'] | b"." | [.., b'/', b'.'])
}

/// Folds `.`, `..` and repeated slashes of an absolute path, without asking any file system.
pub fn clean_absolute(path: &[u8]) -> Vec<u8> {
    let mut clean: Vec<u8> = Vec::with_capacity(path.len());
    for name in names(path) {
        if name == b".." {
            let parent_len = memchr::memrchr(b'/', &clean).unwrap_or(0);
            clean.truncate(parent_len);
        } else {
            clean.push(b'/');
            clean.extend_from_slice(name);
        }
    }
    if clean.is_empty() {
        clean.push(b'/');
    }
    clean
}

/// A path below the root of a service: names separated by one `/`, none at the front.
///
/// Any byte but `/` and NUL may occur in a name; nothing is decoded. `..` is kept, because only the
/// far end knows where a symbolic link before it leads. One trailing `/` is kept, because it demands a
/// directory. The empty path is the root.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RemotePath(Vec<u8>);

impl RemotePath {
    /// The path of `bytes`, with repeated slashes and `.` folded.
    pub fn new(bytes: &[u8]) -> Self {
        let mut path = Self::default();
        path.extend(bytes);
        path
    }

    /// Appends the names of `rest`. A leading `/` of `rest` means nothing: this is concatenation.
    pub fn extend(&mut self, rest: &[u8]) {
        for name in names(rest) {
            if !self.0.is_empty() && self.0.last() != Some(&b'/') {
                self.0.push(b'/');
            }
            self.0.extend_from_slice(name);
        }
        if demands_directory(rest) && !self.0.is_empty() && self.0.last() != Some(&b'/') {
            self.0.push(b'/');
        }
    }

    /// This path with one more name.
    #[must_use]
    pub fn join(&self, rest: &[u8]) -> Self {
        let mut path = self.clone();
        path.extend(rest);
        path
    }

    /// The names, first to last; `..` may be among them.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> + Clone {
        names(&self.0)
    }

    /// The last name, unless this is the root or the name is `..`.
    pub fn file_name(&self) -> Option<&[u8]> {
        self.names().last().filter(|name| *name != b"..")
    }

    /// The path without its last name; none for the root and after `..`.
    pub fn parent(&self) -> Option<Self> {
        self.file_name()?;
        let trimmed = self.0.strip_suffix(b"/").unwrap_or(&self.0);
        let cut = memchr::memrchr(b'/', trimmed).unwrap_or(0);
        Some(Self(trimmed[..cut].to_vec()))
    }

    /// True if a trailing slash demands a directory.
    pub fn demands_directory(&self) -> bool {
        self.0.last() == Some(&b'/')
    }

    /// True if there is no name at all.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes: `a/b/c`, `a/b/` or nothing.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What follows `base` in this path, if `base` leads to it on a boundary of names.
    pub fn strip_prefix(&self, base: &RemotePath) -> Option<&[u8]> {
        let base = base.0.strip_suffix(b"/").unwrap_or(&base.0);
        let rest = self.0.strip_prefix(base)?;
        match rest {
            _ if base.is_empty() => Some(rest),
            [] => Some(rest),
            [b'/', rest @ ..] => Some(rest),
            _ => None,
        }
    }
}

impl fmt::Debug for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemotePath({:?})", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Display for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_and_dots_fold_and_a_directory_stays_demanded() {
        assert_eq!(RemotePath::new(b"//a/.//b").as_bytes(), b"a/b");
        assert_eq!(RemotePath::new(b"/a/b/").as_bytes(), b"a/b/");
        assert_eq!(RemotePath::new(b"a/.").as_bytes(), b"a/");
        assert_eq!(RemotePath::new(b"/./").as_bytes(), b"");
        assert_eq!(RemotePath::new(b"a/../b").as_bytes(), b"a/../b");
        assert_eq!(RemotePath::new(b"...").as_bytes(), b"...");
    }

    #[test]
    fn parent_and_name() {
        let path = RemotePath::new(b"a/b/");
        assert_eq!(path.file_name(), Some(&b"b"[..]));
        assert_eq!(path.parent(), Some(RemotePath::new(b"a")));
        assert_eq!(RemotePath::new(b"a").parent(), Some(RemotePath::default()));
        assert_eq!(RemotePath::default().parent(), None);
        assert_eq!(RemotePath::new(b"a/..").parent(), None);
    }

    #[test]
    fn prefixes_end_on_boundaries() {
        let base = RemotePath::new(b"a/b");
        assert_eq!(RemotePath::new(b"a/b/c").strip_prefix(&base), Some(&b"c"[..]));
        assert_eq!(RemotePath::new(b"a/b").strip_prefix(&base), Some(&b""[..]));
        assert_eq!(RemotePath::new(b"a/bc").strip_prefix(&base), None);
        assert_eq!(RemotePath::new(b"x").strip_prefix(&RemotePath::default()), Some(&b"x"[..]));
    }

    #[test]
    fn absolute_paths_are_cleaned_like_a_shell_does() {
        assert_eq!(clean_absolute(b"/a/../../b/./c//"), b"/b/c");
        assert_eq!(clean_absolute(b"/.."), b"/");
        assert_eq!(clean_absolute(b"/a/b/.."), b"/a");
    }
}
