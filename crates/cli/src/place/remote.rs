//! Operations on files of a service.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use address::{Endpoint, RemotePath, Settings, Uri};
use anyhow::{Result, bail};
use client::{At, Options, Session, SocketDial};
use p9::{Attributes, OpenFlags, SetAttributes, SetattrMask, Time};
use transfer_remote::ServedFile;

use super::file::RemoteOpen;
use super::{Meta, Moment, Outcome};
use crate::stores;

/// One session for each service, made when first asked for.
pub(crate) struct Sessions {
    settings: Settings,
    open: Mutex<HashMap<Endpoint, Arc<Session>>>,
}

impl Sessions {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), open: Mutex::default() }
    }

    /// The session with a service. Nothing is sent yet.
    pub(crate) fn to(&self, endpoint: &Endpoint) -> Result<Arc<Session>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = open.get(endpoint) {
            return Ok(Arc::clone(session));
        }
        let options = Options::from(&self.settings.client);
        let session = match client::Place::of(endpoint) {
            Some(place) => Session::new(Box::new(SocketDial::new(place)), options),
            None if *endpoint == Endpoint::Direct => stores::direct(&self.settings, options)?,
            None if matches!(endpoint, Endpoint::Object { .. }) => {
                stores::bucket(endpoint, options)?
            }
            None if matches!(endpoint, Endpoint::Mpi { .. }) => bail!(
                "{endpoint}: this process is no rank of an MPI job; start it by mpirun, together with `sluice serve \
                 --listen mpi:NAME`, as docs/MPI.md shows"
            ),
            None => bail!(
                "{endpoint}: this version of Sluice cannot reach {} addresses; use scdc+uds://, scdc+tcp:// or s3://",
                endpoint.scheme()
            ),
        };
        open.insert(endpoint.clone(), Arc::clone(&session));
        Ok(session)
    }
}

/// A file of a service.
#[derive(Clone)]
pub(crate) struct Remote {
    session: Arc<Session>,
    uri: Uri,
    /// How the user wrote the place that led here: a URI or a mapped path.
    shown: Vec<u8>,
}

impl Remote {
    pub(super) fn new(session: Arc<Session>, uri: Uri, shown: Vec<u8>) -> Self {
        Self { session, uri, shown }
    }

    /// The session with its service.
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Opens it for reading and writing past the client's own read-ahead and write-behind, created if it is missing.
    pub(crate) fn served(&self, mode: u32) -> Outcome<ServedFile> {
        let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
        let path = self.uri.path.as_bytes();
        Ok(ServedFile::open(&self.session, path, flags, mode & !umask())?)
    }

    pub(super) fn shown(&self) -> Vec<u8> {
        self.shown.clone()
    }

    pub(super) fn child(&self, name: &[u8]) -> Self {
        let mut shown = self.shown.clone();
        if shown.last() != Some(&b'/') {
            shown.push(b'/');
        }
        shown.extend_from_slice(name);
        Self { session: Arc::clone(&self.session), uri: self.uri.join(name), shown }
    }

    pub(super) fn parent(&self) -> Option<Self> {
        let path = self.uri.path.parent()?;
        let uri = Uri { endpoint: self.uri.endpoint.clone(), path };
        // What the user wrote, if it has a parent that means the same.
        let shown = match self.file_name().and_then(|name| self.shown.strip_suffix(&name[..])) {
            Some(above) if above.ends_with(b"/") && above.len() > 1 && !above.ends_with(b"://") => {
                above[..above.len() - 1].to_vec()
            }
            _ => uri.to_bytes(),
        };
        Some(Self { session: Arc::clone(&self.session), uri, shown })
    }

    pub(super) fn file_name(&self) -> Option<Vec<u8>> {
        self.uri.path.file_name().map(<[u8]>::to_vec)
    }

    /// The root of the service.
    pub(crate) fn root(&self) -> Uri {
        Uri { endpoint: self.uri.endpoint.clone(), path: RemotePath::default() }
    }

    /// Whether it is in a bucket that this process speaks with itself.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.uri.endpoint, Endpoint::Object { .. })
    }

    /// How many names lead here from the root of the service.
    pub(super) fn depth(&self) -> usize {
        self.uri.path.names().count()
    }

    fn at(&self) -> At<'_> {
        At::root(self.uri.path.as_bytes())
    }

    pub(super) fn stat(&self, follow: bool) -> Outcome<Meta> {
        Ok(meta(&self.session.stat(self.at(), follow)?))
    }

    pub(super) fn list(&self) -> Outcome<Vec<Vec<u8>>> {
        let handle = self.session.open(self.at(), OpenFlags::DIRECTORY, 0)?.handle;
        let mut names = Vec::new();
        handle.into_entries(|entry| names.push(entry.name.to_vec()))?;
        Ok(names)
    }

    pub(super) fn read_link(&self) -> Outcome<Vec<u8>> {
        Ok(self.session.read_link(self.at())?)
    }

    pub(super) fn make_symlink(&self, target: &[u8]) -> Outcome<()> {
        Ok(self.session.symlink(target, self.at())?)
    }

    pub(super) fn make_directory(&self, mode: u32) -> Outcome<()> {
        Ok(self.session.make_directory(self.at(), mode & !umask())?)
    }

    pub(super) fn remove_file(&self) -> Outcome<()> {
        Ok(self.session.remove(self.at(), false)?)
    }

    pub(super) fn remove_directory(&self) -> Outcome<()> {
        Ok(self.session.remove(self.at(), true)?)
    }

    pub(super) fn set_mode(&self, mode: u32) -> Outcome<()> {
        Ok(self.session.set_attributes(self.at(), true, &mode_only(mode))?)
    }

    pub(super) fn set_times(&self, atime: Moment, mtime: Moment) -> Outcome<()> {
        Ok(self.session.set_attributes(self.at(), true, &times_only(atime, mtime))?)
    }

    pub(super) fn sync_directory(&self) -> Outcome<()> {
        let handle = self.session.open(self.at(), OpenFlags::DIRECTORY, 0)?.handle;
        let synced = handle.sync(false);
        handle.close();
        Ok(synced?)
    }

    pub(super) fn rename(&self, to: &Self) -> Outcome<()> {
        if self.uri.endpoint != to.uri.endpoint {
            return Err(client::Error::Refused(p9::Errno::EXDEV).into());
        }
        Ok(self.session.rename(self.at(), to.at(), false)?)
    }

    pub(super) fn open(&self) -> Outcome<RemoteOpen> {
        let opened = self.session.open(self.at(), OpenFlags::empty(), 0)?;
        if opened.attributes.is_directory() {
            opened.handle.close();
            return Err(client::Error::Refused(p9::Errno::EISDIR).into());
        }
        Ok(RemoteOpen::new(opened))
    }

    /// Opens for writing from nothing.
    pub(super) fn create_anew(&self, mode: u32) -> Outcome<RemoteOpen> {
        let flags = OpenFlags::WRITE_ONLY | OpenFlags::CREATE | OpenFlags::TRUNCATE;
        Ok(RemoteOpen::new(self.session.open(self.at(), flags, mode & !umask())?))
    }

    pub(super) fn create(&self, mode: u32) -> Outcome<RemoteOpen> {
        let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE;
        Ok(RemoteOpen::new(self.session.open(self.at(), flags, mode & !umask())?))
    }
}

pub(super) fn meta(found: &Attributes) -> Meta {
    // Seconds before 1970 wrap on the wire.
    let moment =
        |time: Time| Moment { seconds: time.seconds as i64, nanoseconds: time.nanoseconds as u32 };
    Meta {
        mode: found.mode,
        size: found.size,
        mtime: moment(found.mtime),
        atime: moment(found.atime),
        ctime: moment(found.ctime),
        uid: found.uid,
        gid: found.gid,
        links: found.nlink,
        inode: found.qid.path,
        blocks: found.blocks,
    }
}

pub(super) fn mode_only(mode: u32) -> SetAttributes {
    SetAttributes { valid: SetattrMask::MODE, mode, ..SetAttributes::default() }
}

pub(super) fn times_only(atime: Moment, mtime: Moment) -> SetAttributes {
    let time = |moment: Moment| Time {
        seconds: moment.seconds as u64,
        nanoseconds: moment.nanoseconds.into(),
    };
    let valid =
        SetattrMask::ATIME | SetattrMask::ATIME_SET | SetattrMask::MTIME | SetattrMask::MTIME_SET;
    SetAttributes { valid, atime: time(atime), mtime: time(mtime), ..SetAttributes::default() }
}

/// The process's umask: services take a mode as it is.
pub(crate) fn umask() -> u32 {
    static UMASK: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *UMASK.get_or_init(|| {
        // umask(2) only sets; /proc tells without a moment in which files of other threads get the wrong mode.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        field.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o022)
    })
}
