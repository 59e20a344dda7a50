//! The files beside a log: who has it, and how far it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hostlog::media::directory::Directory;
use hostlog::{Log, Recovery};
use serde::{Deserialize, Serialize};

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
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(dir);
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

    /// Where the agent listens: in the directory, unless its name is too long for a socket (unix(7)).
    pub(crate) fn socket(&self) -> Result<PathBuf> {
        let path = self.file("agent.sock");
        if path.as_os_str().len() >= 108 {
            bail!("{}: the name is too long for a socket; use a shorter one", self.dir.display());
        }
        Ok(path)
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
        let fresh = self.file(&format!("{name}.new"));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&fresh, self.file(name))
    }

    /// Removes everything that belongs to a log. `log.toml` goes first: from then on there is none.
    pub(crate) fn discard(&self) -> Result<()> {
        let gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        for name in FILES {
            let path = self.file(name);
            gone(fs::remove_file(&path))
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
        let path = self.file("segments");
        gone(fs::remove_dir_all(&path)).with_context(|| format!("cannot remove {}", path.display()))
    }
}

const FILES: [&str; 9] = [
    "log.toml",
    "checkpoint",
    "drain",
    "drain.intent",
    "status.json",
    "agent.json",
    "agent.log",
    "agent.sock",
    "meeting.json",
];
