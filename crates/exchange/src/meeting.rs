//! The directory where ranks find each other.
//!
//! ```text
//! MEET/s/PROCESS.sock                    where a process listens
//! MEET/f/STREAM/name                     the file that the number stands for
//! MEET/f/STREAM/READER.OPENING.wWRITER   ranks of a writing component that have created it for a reading one
//! MEET/f/STREAM/READER.OPENING.r         ranks that read it
//! MEET/f/STREAM/READER.OPENING.cCYCLE    header and records of a cycle that is finished
//! MEET/f/STREAM/READER.OPENING.xCYCLE    why there is no such cycle
//! MEET/f/STREAM/READER.OPENING.dWRITER   the component has closed the file (mode `file`)
//! MEET/ended/COMPONENT                   how a component has ended: from the launcher
//! MEET/flow/PROCESS                      what has been carried: for the launcher
//! ```
//!
//! A file appears under its name when it is complete, and is never changed. What belongs to an opening goes when the next one is over: its
//! number is needed until then by those who count anew.

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;

use crate::Fault;
use crate::wire::{Contact, LaneKey, Post};

/// Names that nobody looks for.
static TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// Without a notice, so often is looked: file systems of several machines give none.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub(crate) struct Meeting {
    root: PathBuf,
}

impl Meeting {
    /// Its directories.
    pub(crate) const PARTS: [&str; 4] = ["s", "f", "ended", "flow"];

    /// Makes what is missing.
    pub(crate) fn new(root: &Path) -> Result<Self, Fault> {
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        let one = Self { root };
        for part in Self::PARTS {
            let path = one.root.join(part);
            // Who can connect can read memory: nobody else's business.
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|source| fault("the meeting directory", &path, source))?;
        }
        Ok(one)
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.root.join("s").join(format!("{name}.sock"))
    }

    pub(crate) fn flow(&self, name: &str) -> PathBuf {
        self.root.join("flow").join(name)
    }

    pub(crate) fn stream(&self, stream: u64) -> PathBuf {
        self.root.join("f").join(format!("{stream:016x}"))
    }

    /// Makes the directory of a stream, which is that of one file alone.
    pub(crate) fn begin(&self, stream: u64, name: &str) -> Result<(), Fault> {
        let path = self.stream(stream);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|source| fault("the meeting directory", &path, source))?;
        let file = path.join("name");
        let left = self.leave(&file, name.as_bytes());
        left.map_err(|source| fault("the meeting directory", &file, source))?;
        let known =
            fs::read(&file).map_err(|source| fault("the meeting directory", &file, source))?;
        if known == name.as_bytes() {
            return Ok(());
        }
        let known = String::from_utf8_lossy(&known).into_owned();
        Err(Fault::Broken { what: format!("`{name}` and `{known}` have the same number") })
    }

    fn file(&self, lane: LaneKey, end: &str) -> PathBuf {
        self.stream(lane.stream).join(format!("{}.{}.{end}", lane.reader, lane.opening))
    }

    /// The next opening by `end` for a reading component: all components count for themselves, also when their processes are others.
    pub(crate) fn next_opening(&self, stream: u64, reader: u16, end: &str) -> u32 {
        let entries = fs::read_dir(self.stream(stream)).into_iter().flatten().flatten();
        let number = |name: &str| {
            let mut parts = name.split('.');
            let of = parts.next()?.parse::<u16>().ok()?;
            let number = parts.next()?.parse::<u32>().ok()?;
            (of == reader && parts.next() == Some(end)).then_some(number + 1)
        };
        let numbers = entries.filter_map(|entry| number(entry.file_name().to_str()?));
        numbers.max().unwrap_or(0)
    }

    /// Puts a file in its place; false if it was there already.
    fn leave(&self, path: &Path, bytes: &[u8]) -> io::Result<bool> {
        let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{number}", std::process::id());
        let temporary = path.with_file_name(name);
        let mut file = fs::File::create(&temporary)?;
        let written = file.write_all(bytes);
        let linked = written.and_then(|()| fs::hard_link(&temporary, path));
        let _ = fs::remove_file(&temporary);
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Leaves something of a lane.
    pub(crate) fn put(&self, lane: LaneKey, end: &str, bytes: &[u8]) -> Result<(), Fault> {
        let path = self.file(lane, end);
        match self.leave(&path, bytes) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let source = io::Error::from(io::ErrorKind::AlreadyExists);
                let what = "two groups of ranks have opened the same file at once:";
                Err(fault(what, &path, source))
            }
            Err(source) => Err(fault("the meeting directory", &path, source)),
        }
    }

    /// Removes what the openings before this one have left under these ends.
    pub(crate) fn forget(&self, lane: LaneKey, ends: &[&str]) {
        let Some(opening) = lane.opening.checked_sub(1) else { return };
        for end in ends {
            let _ = fs::remove_file(self.file(LaneKey { opening, ..lane }, end));
        }
    }

    /// Takes back what was left.
    pub(crate) fn withdraw(&self, lane: LaneKey, end: &str) {
        let _ = fs::remove_file(self.file(lane, end));
    }

    pub(crate) fn has(&self, lane: LaneKey, end: &str) -> bool {
        self.file(lane, end).exists()
    }

    fn get(&self, lane: LaneKey, end: &str) -> Option<Vec<u8>> {
        fs::read(self.file(lane, end)).ok()
    }

    pub(crate) fn roster(&self, lane: LaneKey, end: &str) -> Option<Vec<Contact>> {
        Contact::decode_all(&self.get(lane, end)?).ok()
    }

    /// What is known of a cycle: none yet; `Err` if there will be none, and why.
    pub(crate) fn post(&self, lane: LaneKey, cycle: u32) -> Option<Result<Post, String>> {
        if let Some(why) = self.get(lane, &format!("x{cycle}")) {
            return Some(Err(String::from_utf8_lossy(&why).into_owned()));
        }
        let bytes = self.get(lane, &format!("c{cycle}"))?;
        let foreign = "it was left by another version of Sluice; use the same on all sides";
        Some(Post::decode(&bytes).map_err(|_| foreign.to_owned()))
    }

    /// How a component has ended, if it has.
    pub(crate) fn ended(&self, component: u16) -> Option<String> {
        let how = fs::read_to_string(self.root.join("ended").join(component.to_string())).ok()?;
        // One that is empty is being written.
        (!how.is_empty()).then_some(how)
    }

    /// Says how a component has ended; what was said before about it counts.
    pub(crate) fn end(&self, component: u16, how: &str) -> io::Result<()> {
        self.leave(&self.ended_directory().join(component.to_string()), how.as_bytes()).map(drop)
    }

    pub(crate) fn ended_directory(&self) -> PathBuf {
        self.root.join("ended")
    }
}

pub(crate) fn fault(what: &'static str, path: &Path, source: io::Error) -> Fault {
    Fault::Directory { what, path: path.to_owned(), source }
}

/// Notices changes in directories.
#[derive(Debug)]
pub(crate) struct Watch(OwnedFd);

impl Watch {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        Ok(Self(inotify::init(flags)?))
    }

    /// Where it cannot be noticed it is looked at from time to time.
    pub(crate) fn add(&self, directory: &Path) {
        let events = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
        let _ = inotify::add_watch(&self.0, directory, events);
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Forgets what was noticed.
    pub(crate) fn clear(&self) {
        let mut events = [0; 4096];
        while rustix::io::read(&self.0, &mut events).is_ok_and(|n| n > 0) {}
    }

    /// Waits for a change, but not long and not beyond `until`; false if that is over.
    pub(crate) fn wait(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        let time = rustix::time::Timespec::try_from(left.min(LOOK)).ok();
        let _ = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], time.as_ref());
        self.clear();
        true
    }
}
