//! The files beside a log: who has it, and how far it is.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hostlog::media::directory::{self, Directory};
use hostlog::{Log, Recovery};
use serde::{Deserialize, Serialize};

use crate::sockets;

/// An agent that was killed may have its log for so long still: the system gives its memory back before its locks.
const GONE_AFTER: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Who has a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// The agent's process.
    pub(crate) pid: u32,
    /// The agent's socket.
    pub(crate) socket: PathBuf,
    /// The log's identity.
    pub(crate) log: String,
    /// Where it is drained to.
    pub(crate) target: String,
    /// The run that uses it.
    pub(crate) run: String,
    /// That run for people.
    pub(crate) command: String,
}

/// A log's directory.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
}

impl Place {
    /// The directory, which must be there.
    pub(crate) fn of(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize().with_context(|| {
            format!("there is no log in {}: give the directory that --log named", dir.display())
        })?;
        Ok(Self { dir })
    }

    /// The directory, made where it is missing.
    pub(crate) fn made(dir: &Path) -> Result<Self> {
        let made = Directory::new(dir).make();
        made.with_context(|| format!("cannot make the log's directory {}", dir.display()))?;
        Self::of(dir)
    }

    pub(crate) fn media(&self) -> Directory {
        Directory::new(&self.dir)
    }

    /// Opens the log, once a process that is just ending has let go of it.
    pub(crate) fn open(&self, options: hostlog::Options) -> hostlog::Result<(Log, Recovery)> {
        let since = Instant::now();
        loop {
            match Log::open(Arc::new(self.media()), options) {
                Err(hostlog::Error::Busy { .. }) if since.elapsed() < GONE_AFTER => {
                    std::thread::sleep(LOOK_AGAIN);
                }
                result => return result,
            }
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Where the agent listens: in the directory, or, where its name is too long for a socket, in one of this user's, by the
    /// directory's identity. Others find it in `agent.json`.
    pub(crate) fn socket(&self) -> Result<PathBuf> {
        let path = self.file("agent.sock");
        if path.as_os_str().len() < sockets::PATH_BYTES {
            return Ok(path);
        }
        let dir = self.dir.display();
        let found = self.dir.metadata().with_context(|| dir.to_string())?;
        sockets::private(&format!("log-{:x}-{:x}", found.dev(), found.ino())).with_context(|| {
            format!("{dir}: the name is too long for a socket, and there is no other place for one")
        })
    }

    /// Who has the log now; `None` if there is nobody who answers.
    pub(crate) fn holder(&self) -> Option<Holder> {
        let holder = self.last_holder()?;
        UnixStream::connect(&holder.socket).ok().map(|_| holder)
    }

    /// Who had it last, or has it now.
    pub(crate) fn last_holder(&self) -> Option<Holder> {
        serde_json::from_slice(&fs::read(self.file("agent.json")).ok()?).ok()
    }

    /// Keeps everybody else from starting or ending an agent.
    pub(crate) fn turn(&self, wait: bool) -> Result<Option<File>> {
        let path = self.file("start.lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file =
            options.open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let locked = if wait { file.lock().map(|()| true) } else { Ok(file.try_lock().is_ok()) };
        Ok(locked.with_context(|| format!("cannot lock {}", path.display()))?.then_some(file))
    }

    /// Replaces a small file as a whole.
    pub(crate) fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        directory::replace(&self.file(name), text.as_bytes(), &|_| Ok(()))
    }

    /// Removes everything that belongs to a log. `log.toml` goes first: from then on there is none.
    pub(crate) fn discard(&self) -> Result<()> {
        let gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        for name in FILES {
            for path in [self.file(name), self.file(&format!("{name}.new"))] {
                gone(fs::remove_file(&path))
                    .with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        // What an agent that was killed left elsewhere.
        if let Ok(path) = self.socket() {
            let _ = fs::remove_file(path);
        }
        let path = self.file("segments");
        gone(fs::remove_dir_all(&path)).with_context(|| format!("cannot remove {}", path.display()))
    }
}

const FILES: [&str; 10] = [
    "log.toml",
    "checkpoint",
    "drain",
    "drain.intent",
    "drain.begun",
    "status.json",
    "agent.json",
    "agent.log",
    "agent.sock",
    "meeting.json",
];
