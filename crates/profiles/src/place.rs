//! Which place a file is in: a mounted file system, or a service.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A place for which parameters are measured once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// A mounted file system.
    Mount {
        /// Where it is mounted.
        point: PathBuf,
        /// Its type, such as `ext4`.
        kind: String,
    },
    /// A service, by its address without a path.
    Service(String),
}

impl Place {
    /// The file system in which a path lies. The path need not exist, but its directory must.
    ///
    /// # Errors
    /// When the path cannot be followed, or the kernel does not tell what is mounted.
    ///
    /// # Source
    /// proc(5), `/proc/pid/mountinfo`.
    pub fn of_path(path: &Path) -> io::Result<Self> {
        let real = match path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                parent.unwrap_or(Path::new(".")).canonicalize()?
            }
            other => other?,
        };
        // Names of other encodings are for whoever mounted them; the rest of the table still counts.
        let table = String::from_utf8_lossy(&fs::read("/proc/self/mountinfo")?).into_owned();
        let missing =
            || io::Error::new(io::ErrorKind::NotFound, "no mounted file system has this path");
        Self::in_table(&real, &table).ok_or_else(missing)
    }

    fn in_table(real: &Path, table: &str) -> Option<Self> {
        let mut found: Option<(usize, Self)> = None;
        for line in table.lines() {
            // 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
            let Some((before, behind)) = line.split_once(" - ") else { continue };
            let Some(point) = before.split(' ').nth(4) else { continue };
            let Some(kind) = behind.split(' ').next() else { continue };
            let point = PathBuf::from(unescaped(point));
            let depth = point.components().count();
            // A later line of the same point is mounted over the earlier.
            if real.starts_with(&point)
                && found.as_ref().is_none_or(|(deepest, _)| depth >= *deepest)
            {
                found = Some((depth, Self::Mount { point, kind: kind.to_owned() }));
            }
        }
        found.map(|(_, place)| place)
    }

    /// Name of the file that keeps its profile: everything but letters, digits, `.`, `_` and `-` is
    /// written as `%` and two hexadecimal digits.
    #[must_use]
    pub fn file_name(&self) -> String {
        match self {
            Place::Mount { point, kind } => {
                format!(
                    "{}-{}.toml",
                    escaped(kind.as_bytes()),
                    escaped(point.as_os_str().as_encoded_bytes())
                )
            }
            Place::Service(address) => format!("{}.toml", escaped(address.as_bytes())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Mount { point, kind } => write!(f, "{kind} at {}", point.display()),
            Place::Service(address) => f.write_str(address),
        }
    }
}

fn escaped(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    bytes
        .iter()
        .map(
            |byte| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02x}") },
        )
        .collect()
}

/// Blanks, tabs, newlines and backslashes stand as three octal digits in mountinfo.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        let code = behind.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                rest = &behind[3..];
            }
            None => {
                out.push('\\');
                rest = behind;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:21 / /dev/shm rw shared:3 - tmpfs tmpfs rw
24 22 0:30 / /with\\040blank rw - xfs /dev/vdb rw
25 22 0:31 / /dev/shm rw - ramfs none rw
";

    #[test]
    fn the_deepest_and_latest_mount_counts() {
        let place = |path: &str| Place::in_table(Path::new(path), TABLE).unwrap().to_string();
        assert_eq!(place("/home/a"), "ext4 at /");
        assert_eq!(place("/dev/shm/a/b"), "ramfs at /dev/shm");
        assert_eq!(place("/dev/shmem"), "ext4 at /");
        assert_eq!(place("/with blank/x"), "xfs at /with blank");
    }

    #[test]
    fn file_names_are_single_and_distinct() {
        let place = Place::Mount { point: "/a b/c".into(), kind: "fuse.sshfs".into() };
        assert_eq!(place.file_name(), "fuse.sshfs-%2fa%20b%2fc.toml");
        let service = Place::Service("scdc+tcp://h:1".into());
        assert_eq!(service.file_name(), "scdc%2btcp%3a%2f%2fh%3a1.toml");
    }

    #[test]
    fn a_path_that_does_not_exist_yet_lies_where_its_directory_does() {
        let dir = tempfile::tempdir().unwrap();
        let there = Place::of_path(dir.path()).unwrap();
        assert_eq!(Place::of_path(&dir.path().join("new")).unwrap(), there);
        assert!(Place::of_path(&dir.path().join("no/new")).is_err());
    }
}
