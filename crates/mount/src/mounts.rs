//! What is mounted where on this machine, and taking it away.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno as KernelErrno;
use rustix::mount::UnmountFlags;

use crate::device::{SUBTYPE, unmount_by_helper};
use crate::error::{Error, Result};

/// How to unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Only if no program uses it.
    Unused,
    /// The name goes at once; programs keep what they have open there for as long as the mounting
    /// process lives.
    Lazy,
}

/// What is mounted on a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing.
    Nothing,
    /// A mount of this program, alive or dead.
    Ours,
    /// Somebody else's.
    Others,
}

/// Ends a mount that this program made, in whatever process.
///
/// # Errors
/// [`Error::NotMounted`], [`Error::Busy`], or what the system or `fusermount3` said.
pub fn unmount(dir: &Path, manner: Manner) -> Result<()> {
    let place = absolute(dir)?;
    if standing(&place) != Standing::Ours {
        return Err(Error::NotMounted { dir: dir.to_owned() });
    }
    take_away(&place, manner)
}

/// The path without symbolic links. The directory itself may be a dead mount, which cannot be
/// looked at, so only what is above it is resolved where it must.
pub(crate) fn absolute(dir: &Path) -> Result<PathBuf> {
    let error = match dir.canonicalize() {
        Ok(whole) => return Ok(whole),
        Err(error) => error,
    };
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    let is_dead = error.raw_os_error() == Some(KernelErrno::NOTCONN.raw_os_error());
    match (dir.file_name(), parent.canonicalize()) {
        (Some(name), Ok(parent)) if is_dead => Ok(parent.join(name)),
        _ if error.kind() == ErrorKind::NotFound => Err(Error::NoDirectory { dir: dir.to_owned() }),
        _ => Err(Error::Directory { dir: dir.to_owned(), source: error }),
    }
}

/// What is mounted on a directory, a path without symbolic links.
pub(crate) fn standing(dir: &Path) -> Standing {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    // The last line for a directory is what is on top.
    let mut kinds = table.split(|byte| *byte == b'\n').filter_map(parse);
    match kinds.rfind(|(at, _)| at == dir) {
        None => Standing::Nothing,
        Some((_, kind)) if kind == format!("fuse.{SUBTYPE}").as_bytes() => Standing::Ours,
        Some(_) => Standing::Others,
    }
}

/// Mount point and type of one line of proc_pid_mountinfo(5).
fn parse(line: &[u8]) -> Option<(PathBuf, Vec<u8>)> {
    let mut words = line.split(|byte| *byte == b' ');
    let at = unescape(words.nth(4)?);
    // Optional fields, as many as there are, end with a dash.
    words.find(|word| *word == b"-")?;
    Some((PathBuf::from(OsString::from_vec(at)), words.next()?.to_vec()))
}

/// Blanks and backslashes stand as three octal digits.
fn unescape(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| byte == b'\\');
        let value =
            digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(value.unwrap_or(byte));
        rest = if value.is_some() { &behind[3..] } else { behind };
    }
    plain
}

/// Unmounts, by ourselves or by the helper.
pub(crate) fn take_away(dir: &Path, manner: Manner) -> Result<()> {
    let lazy = manner == Manner::Lazy;
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    let busy = || Error::Busy { dir: dir.to_owned() };
    match rustix::mount::unmount(dir, flags | UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(KernelErrno::BUSY) => Err(busy()),
        Err(KernelErrno::PERM) => {
            unmount_by_helper(dir, lazy).map_err(|source| match source.kind() {
                ErrorKind::ResourceBusy => busy(),
                ErrorKind::NotFound => Error::NoHelper,
                _ => Error::Unmount { dir: dir.to_owned(), source },
            })
        }
        Err(errno) => Err(Error::Unmount { dir: dir.to_owned(), source: errno.into() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn lines_of_the_mount_table_are_read() {
        let line = b"86 68 0:41 / /mnt/with\\040blank rw,nosuid shared:5 master:2 - fuse.sluice scdc:///x rw";
        let (at, kind) = parse(line).expect("a line");
        assert_eq!(at.as_os_str().as_bytes(), b"/mnt/with blank");
        assert_eq!(kind, b"fuse.sluice");
        assert_eq!(parse(b"22 1 8:1 / / rw - ext4 /dev/sda1 rw").expect("a line").1, b"ext4");
        assert_eq!(parse(b""), None);
        assert_eq!(unescape(b"a\\134b\\9"), b"a\\b\\9");
    }

    #[test]
    fn what_is_no_mount_of_ours_is_not_unmounted() {
        let dir = tempfile::tempdir().expect("a directory");
        let refused = unmount(dir.path(), Manner::Unused);
        assert!(matches!(refused, Err(Error::NotMounted { .. })), "{refused:?}");
        let refused = unmount(Path::new("/proc"), Manner::Lazy);
        assert!(matches!(refused, Err(Error::NotMounted { .. })), "{refused:?}");
        let missing = unmount(&dir.path().join("x"), Manner::Unused);
        assert!(matches!(missing, Err(Error::NoDirectory { .. })), "{missing:?}");
    }
}
