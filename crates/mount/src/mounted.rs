//! A mount that is in place.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use fuser::{BackgroundSession, Config, Session, SessionACL};
use p9::QidType;
use store::Store;

use crate::device;
use crate::error::{Error, Result};
use crate::front::Front;
use crate::mounts::{self, Manner, Standing};

/// Threads that serve requests. They wait for the store, so more than there are processors are of
/// use: over a connection each is one request on its way.
const THREADS: usize = 16;

/// How a store is mounted.
#[derive(Debug, Clone)]
pub struct Options {
    /// The kernel refuses every change, before the store is asked.
    pub read_only: bool,
    /// Users other than the mounting one may use it; the kernel then judges by the files' modes.
    pub allow_other: bool,
    /// What mount tables show as the source.
    pub source: String,
    /// How many nodes of files that are not open may be held at a time.
    pub nodes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            read_only: false,
            allow_other: false,
            source: "sluice".to_owned(),
            // Well below what a service grants one connection.
            nodes_max: 16 * 1024,
        }
    }
}

/// A store that is mounted. Dropping it ends the conversation with the kernel when the process
/// ends; to take the mount away there is [`Mounted::point`].
pub struct Mounted {
    point: MountPoint,
    session: BackgroundSession,
}

/// Where a store is mounted; may be handed to another thread to end the mount.
#[derive(Debug, Clone)]
pub struct MountPoint {
    dir: PathBuf,
}

impl Mounted {
    /// Mounts a store on an empty directory and serves it from threads of its own.
    ///
    /// # Errors
    /// Each kind of [`Error`] but those of unmounting.
    pub fn new(store: &dyn Store, dir: &Path, options: Options) -> Result<Self> {
        let place = check(dir)?;
        let root = store.root().map_err(|source| Error::Store { source })?;
        // Of a relay only asking tells whether the service answers.
        root.attributes().map_err(|source| Error::Store { source })?;
        if !root.qid().kind.contains(QidType::DIR) {
            return Err(Error::StoreIsNoDirectory);
        }
        let failed = |source| Error::Conversation { source };
        let mut config = Config::default();
        config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(THREADS);
        let notifier = Arc::new(OnceLock::new());
        let front = Front::new(root, options.clone(), Arc::clone(&notifier)).map_err(failed)?;

        let device = device::mount(&place, &options)?;
        let point = MountPoint { dir: place };
        let session = Session::from_fd(front, device, config.acl, config).and_then(|session| {
            let _ = notifier.set(session.notifier());
            session.spawn()
        });
        match session {
            Ok(session) => Ok(Self { point, session }),
            Err(source) => {
                let _ = mounts::take_away(&point.dir, Manner::Lazy);
                Err(failed(source))
            }
        }
    }

    /// Where it is mounted.
    #[must_use]
    pub fn point(&self) -> MountPoint {
        self.point.clone()
    }

    /// Waits until it is unmounted, by whomever, and no program uses it any more.
    ///
    /// # Errors
    /// When the kernel's requests could not be read.
    pub fn wait(self) -> Result<()> {
        let dir = self.point.dir;
        match self.session.join() {
            // One of several readers may be told otherwise than by ENODEV that the mount is gone.
            Err(source) if mounts::standing(&dir) == Standing::Ours => {
                Err(Error::Conversation { source })
            }
            _ => Ok(()),
        }
    }
}

impl MountPoint {
    /// The directory, without symbolic links.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes the mount away.
    ///
    /// # Errors
    /// [`Error::Busy`] while programs use it and `manner` does not allow that, or as
    /// [`crate::unmount`].
    pub fn unmount(&self, manner: Manner) -> Result<()> {
        if manner == Manner::Lazy {
            // Pages of mappings that were changed, while there is still somebody to take them.
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
            if let Ok(dir) = rustix::fs::open(&self.dir, flags, rustix::fs::Mode::empty()) {
                let _ = rustix::fs::syncfs(&dir);
            }
        }
        mounts::take_away(&self.dir, manner)
    }
}

/// The directory's path without symbolic links, if something can be mounted there.
fn check(dir: &Path) -> Result<PathBuf> {
    let place = mounts::absolute(dir)?;
    let failed = |source: io::Error| Error::Directory { dir: dir.to_owned(), source };
    let dead = rustix::io::Errno::NOTCONN.raw_os_error();
    match place.metadata() {
        Ok(found) if !found.is_dir() => return Err(Error::NotADirectory { dir: dir.to_owned() }),
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(dead) => {
            return Err(Error::Dead { dir: dir.to_owned() });
        }
        Err(error) => return Err(failed(error)),
    }
    if mounts::standing(&place) == Standing::Ours {
        return Err(Error::AlreadyMounted { dir: dir.to_owned() });
    }
    if place.read_dir().map_err(failed)?.next().is_some() {
        return Err(Error::NotEmpty { dir: dir.to_owned() });
    }
    Ok(place)
}
