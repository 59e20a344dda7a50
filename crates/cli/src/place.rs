//! Places: what the file commands work on. A place is local or remote, and no command asks which.

mod file;
mod local;
mod remote;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use address::{Resolved, Uri, clean_absolute, detect};
use anyhow::{Context, Result};

use crate::format::name_text;
use crate::in_force::InForce;

pub(crate) use file::{Reader, Writer};
pub(crate) use remote::{Remote, Sessions, umask};

/// Why something could not be done at a place.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The local system refused.
    Local(io::Error),
    /// The service refused, or cannot be reached.
    Remote(client::Error),
}

pub(crate) type Outcome<T> = std::result::Result<T, Trouble>;

impl Trouble {
    /// What the file system, here or there, said; none if it was not asked or not heard: a service that cannot be
    /// reached says nothing about its files.
    pub(crate) fn errno(&self) -> Option<i32> {
        match self {
            Self::Local(error) => error.raw_os_error(),
            Self::Remote(client::Error::Refused(errno)) => Some(errno.raw()),
            Self::Remote(_) => None,
        }
    }

    /// Whether the file does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.errno() == Some(p9::Errno::ENOENT.raw())
    }

    /// Whether the file exists already.
    pub(crate) fn is_there_already(&self) -> bool {
        self.errno() == Some(p9::Errno::EEXIST.raw())
    }

    /// Whether a directory cannot go because of what is in it.
    pub(crate) fn is_not_empty(&self) -> bool {
        // rmdir(2): systems are free to say either.
        [p9::Errno::ENOTEMPTY, p9::Errno::EEXIST].iter().any(|e| self.errno() == Some(e.raw()))
    }

    /// Whether something stands on it, as on a mount point.
    fn is_busy(&self) -> bool {
        self.errno() == Some(p9::Errno::EBUSY.raw())
    }

    /// Whether it could have been done, were it not read-only there.
    fn is_read_only(&self) -> bool {
        self.errno() == Some(p9::Errno::EROFS.raw())
    }

    /// Whether this cannot be done here by anyone.
    pub(crate) fn is_unsupported(&self) -> bool {
        let unsupported = [p9::Errno::EOPNOTSUPP, p9::Errno::ENOSYS, p9::Errno::EINVAL];
        self.errno().is_some_and(|errno| unsupported.iter().any(|known| known.raw() == errno))
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::Remote(client::Error::Unreachable { .. }) => {
                "; is a service running there? `sluice serve` starts one"
            }
            Self::Remote(client::Error::UnknownHost { .. }) => {
                "; check how the host's name is spelt, or give its number"
            }
            Self::Remote(client::Error::Lost { .. }) => {
                "; start the service again and repeat the command"
            }
            Self::Remote(client::Error::Version { .. }) => "; only 9P2000.L services can be used",
            Self::Remote(client::Error::AbsoluteLink { .. }) => {
                "; its target lies outside the service: name the target's own address"
            }
            Self::Remote(_) if self.is_read_only() => "; it is exported read-only",
            _ if self.errno() == Some(p9::Errno::ENOSPC.raw()) => "; make room there",
            _ => "",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(error) => match error.raw_os_error() {
                // Without Rust's "(os error 2)".
                Some(errno) => write!(f, "{}", io_message(errno, error)),
                None => write!(f, "{error}"),
            },
            Self::Remote(error) => {
                write!(f, "{error}")?;
                let mut source = std::error::Error::source(error);
                while let Some(cause) = source {
                    write!(f, ": {cause}")?;
                    source = cause.source();
                }
                Ok(())
            }
        }?;
        f.write_str(self.advice())
    }
}

fn io_message(errno: i32, error: &io::Error) -> Cow<'static, str> {
    match p9::Errno::from_raw(errno).message() {
        "unknown error" => Cow::Owned(error.to_string()),
        known => Cow::Borrowed(known),
    }
}

impl std::error::Error for Trouble {}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Local(error)
    }
}

impl From<client::Error> for Trouble {
    fn from(error: client::Error) -> Self {
        Self::Remote(error)
    }
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Type and permission, as `st_mode`.
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) mtime: Moment,
    pub(crate) atime: Moment,
    pub(crate) ctime: Moment,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) links: u64,
    pub(crate) inode: u64,
    /// Of 512 bytes.
    pub(crate) blocks: u64,
}

/// Seconds and nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Moment {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

impl Meta {
    fn kind(&self) -> u32 {
        self.mode & p9::mode::TYPE_MASK
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind() == p9::mode::DIRECTORY
    }

    pub(crate) fn is_symlink(&self) -> bool {
        self.kind() == p9::mode::SYMLINK
    }

    pub(crate) fn is_regular(&self) -> bool {
        self.kind() == p9::mode::REGULAR
    }
}

/// A file, directory or link, here or there; it need not exist.
#[derive(Clone)]
pub(crate) enum Place {
    Local(PathBuf),
    Remote(Remote),
}

/// Runs the method of the kind of place.
macro_rules! either {
    ($place:expr, $method:ident($($argument:expr),*)) => {
        match $place {
            Place::Local(path) => local::$method(path $(, $argument)*).map_err(Trouble::Local),
            Place::Remote(remote) => remote.$method($($argument),*),
        }
    };
}

impl Place {
    /// What is known of it; `follow`: of what a symbolic link leads to.
    pub(crate) fn stat(&self, follow: bool) -> Outcome<Meta> {
        either!(self, stat(follow))
    }

    /// The names in a directory, sorted, without `.` and `..`.
    pub(crate) fn list(&self) -> Outcome<Vec<Vec<u8>>> {
        let mut names: Vec<Vec<u8>> = either!(self, list())?;
        names.sort_unstable();
        Ok(names)
    }

    pub(crate) fn read_link(&self) -> Outcome<Vec<u8>> {
        either!(self, read_link())
    }

    pub(crate) fn make_symlink(&self, target: &[u8]) -> Outcome<()> {
        either!(self, make_symlink(target))
    }

    pub(crate) fn make_directory(&self, mode: u32) -> Outcome<()> {
        either!(self, make_directory(mode))
    }

    pub(crate) fn remove_file(&self) -> Outcome<()> {
        either!(self, remove_file())
    }

    pub(crate) fn remove_directory(&self) -> Outcome<()> {
        either!(self, remove_directory())
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Outcome<()> {
        either!(self, set_mode(mode))
    }

    pub(crate) fn set_times(&self, atime: Moment, mtime: Moment) -> Outcome<()> {
        either!(self, set_times(atime, mtime))
    }

    /// Makes the names in a directory durable.
    pub(crate) fn sync_directory(&self) -> Outcome<()> {
        either!(self, sync_directory())
    }

    /// Gives it another name within its service or file system, replacing what is there.
    pub(crate) fn rename(&self, to: &Place) -> Outcome<()> {
        match (self, to) {
            (Self::Local(from), Self::Local(to)) => Ok(std::fs::rename(from, to)?),
            (Self::Remote(from), Self::Remote(to)) => from.rename(to),
            _ => Err(Trouble::Local(io::Error::from_raw_os_error(p9::Errno::EXDEV.raw()))),
        }
    }

    pub(crate) fn open(&self) -> Outcome<Reader> {
        match self {
            Self::Local(path) => Ok(Reader::Local(std::fs::File::open(path)?)),
            Self::Remote(remote) => Ok(Reader::Remote(Box::new(remote.open()?))),
        }
    }

    /// Opens for writing, created with `mode` if missing, its content kept.
    pub(crate) fn create(&self, mode: u32) -> Outcome<Writer> {
        match self {
            Self::Local(path) => Ok(Writer::Local(local::create(path, mode)?)),
            Self::Remote(remote) => Ok(Writer::Remote(Box::new(remote.create(mode)?))),
        }
    }

    /// Opens for writing from nothing, what has been there being replaced.
    pub(crate) fn create_anew(&self, mode: u32) -> Outcome<Writer> {
        match self {
            Self::Local(path) => {
                let file = local::create(path, mode)?;
                file.set_len(0)?;
                Ok(Writer::Local(file))
            }
            Self::Remote(remote) => Ok(Writer::Remote(Box::new(remote.create_anew(mode)?))),
        }
    }

    /// Whether it is in a bucket, where a file appears as a whole and has no mode or times of its own.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Remote(remote) if remote.is_object())
    }

    /// A file in this directory.
    pub(crate) fn child(&self, name: &[u8]) -> Self {
        match self {
            Self::Local(path) => Self::Local(path.join(OsStr::from_bytes(name))),
            Self::Remote(remote) => Self::Remote(remote.child(name)),
        }
    }

    /// The directory that holds it.
    pub(crate) fn parent(&self) -> Option<Self> {
        match self {
            Self::Local(path) => {
                let parent = path.parent()?;
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                path.file_name()?;
                Some(Self::Local(parent.to_path_buf()))
            }
            Self::Remote(remote) => remote.parent().map(Self::Remote),
        }
    }

    /// Its last name; none for roots and after `..`.
    pub(crate) fn file_name(&self) -> Option<Vec<u8>> {
        match self {
            Self::Local(path) => path.file_name().map(|name| name.as_bytes().to_vec()),
            Self::Remote(remote) => remote.file_name(),
        }
    }

    /// True if both are the same by name.
    pub(crate) fn same_name(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Local(a), Self::Local(b)) => match (a.canonicalize(), b.canonicalize()) {
                (Ok(a), Ok(b)) => a == b,
                _ => a == b,
            },
            (Self::Remote(a), Self::Remote(b)) => a.uri() == b.uri(),
            _ => false,
        }
    }

    /// True if it lies in `directory`, or is it, by name.
    pub(crate) fn is_within(&self, directory: &Self) -> bool {
        match (self, directory) {
            (Self::Local(path), Self::Local(directory)) => {
                let Ok(directory) = directory.canonicalize() else {
                    return false;
                };
                // The part of the path that exists decides.
                let there = path.ancestors().find_map(|above| match above.as_os_str().is_empty() {
                    true => Path::new(".").canonicalize().ok(),
                    false => above.canonicalize().ok(),
                });
                there.is_some_and(|there| there.starts_with(&directory))
            }
            (Self::Remote(a), Self::Remote(b)) => {
                a.uri().endpoint == b.uri().endpoint
                    && a.uri().path.strip_prefix(&b.uri().path).is_some()
            }
            _ => false,
        }
    }

    /// What went wrong here, and what to do about it.
    pub(crate) fn explain(&self, trouble: &Trouble) -> String {
        match self {
            Self::Remote(remote) if remote.is_object() => trouble.to_string(),
            // Read-only whatever the stores are.
            Self::Remote(remote) if trouble.is_read_only() && remote.depth() <= 1 => {
                format!(
                    "the root of a service only lists its stores, and nothing can be made there; name something in a \
                     store, such as {}",
                    remote.root().join(b"STORE").join(b"NAME")
                )
            }
            Self::Remote(remote) if trouble.is_missing() && remote.depth() == 1 => {
                format!(
                    "{trouble}; at the root of a service are its stores: `sluice ls {}` lists those it has",
                    remote.root()
                )
            }
            Self::Remote(remote) if trouble.is_busy() && remote.depth() == 1 => format!(
                "it is a whole store, and nothing in it was touched; to remove what it holds: sluice run -- sh -c \
                 'rm -r {self}/*'"
            ),
            _ => trouble.to_string(),
        }
    }

    /// The text that leads here again: a path or a URI.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Local(path) => path.as_os_str().as_bytes().to_vec(),
            Self::Remote(remote) => remote.shown(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name_text(&self.to_bytes()))
    }
}

/// Looks at many places at a time, as each look may be a round trip to another machine. The answers
/// are in the order of `places`; symbolic links are not followed.
pub(crate) fn stat_all(places: &[Place]) -> Vec<Outcome<Meta>> {
    const LOOKS_AT_A_TIME: usize = 16;
    let far = places.iter().any(|place| matches!(place, Place::Remote(_)));
    if !far || places.len() < 2 {
        return stat_each(places);
    }
    let share = places.len().div_ceil(LOOKS_AT_A_TIME);
    std::thread::scope(|scope| {
        let look = |part| scope.spawn(move || stat_each(part));
        let threads: Vec<_> = places.chunks(share).map(look).collect();
        let parts = threads.into_iter().zip(places.chunks(share));
        // A thread that panicked has said so; its part is looked at here.
        parts.flat_map(|(thread, part)| thread.join().unwrap_or_else(|_| stat_each(part))).collect()
    })
}

fn stat_each(places: &[Place]) -> Vec<Outcome<Meta>> {
    places.iter().map(|place| place.stat(false)).collect()
}

/// Finds places: knows the routes, and has one session for each service.
pub(crate) struct Places {
    in_force: InForce,
    cwd: PathBuf,
    sessions: Sessions,
}

impl Places {
    pub(crate) fn new(in_force: InForce) -> Result<Self> {
        let cwd = std::env::current_dir().context("cannot tell the working directory")?;
        let sessions = Sessions::new(&in_force.settings);
        Ok(Self { in_force, cwd, sessions })
    }

    pub(crate) fn in_force(&self) -> &InForce {
        &self.in_force
    }

    /// The place that a word of the command line means.
    pub(crate) fn find(&self, text: &OsStr) -> Result<Place> {
        let bytes = text.as_bytes();
        if let Some(found) = detect(bytes) {
            return self.remote(&found.uri(bytes)?, bytes.to_vec());
        }
        // Here a web server's file is meant; in what programs open it is not (address::detect).
        if bytes.starts_with(b"https://") || bytes.starts_with(b"http://") {
            return self.remote(&Uri::parse(bytes)?, bytes.to_vec());
        }
        match self.in_force.settings.routes.resolve(self.cwd.as_os_str().as_bytes(), bytes) {
            Resolved::Local => Ok(Place::Local(PathBuf::from(text))),
            Resolved::LocalCleaned => {
                let clean = clean_absolute(self.cwd.join(text).as_os_str().as_bytes());
                Ok(Place::Local(OsString::from_vec(clean).into()))
            }
            Resolved::Remote(hit) => self.remote(&hit.uri(), bytes.to_vec()),
        }
    }

    /// The place of a URI, which the user knows as `shown`.
    pub(crate) fn remote(&self, uri: &Uri, shown: Vec<u8>) -> Result<Place> {
        let uri = self.in_force.settings.lead(uri.clone());
        let session = self.sessions.to(&uri.endpoint)?;
        Ok(Place::Remote(Remote::new(session, uri, shown)))
    }
}
