//! Where a log is drained to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use address::{Endpoint, ObjectKind, Settings, Uri};
use anyhow::{Context, Result, bail};
use client::{Options, Session, SocketDial};
use object::ObjectStore;
use store::Store;
use store::fs::FsStore;
use store::relay::RelayStore;

/// A directory, a place of a service, or a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Directory(PathBuf),
    Service(Uri),
    Bucket(Uri),
}

impl Target {
    /// What `--to` means; a relative directory begins at the working directory.
    pub(crate) fn parse(text: &OsStr) -> Result<Self> {
        let bytes = text.as_bytes();
        if let Some(found) = address::detect(bytes) {
            let uri = found.uri(bytes)?;
            if let Some(place) = object::Place::of(&uri) {
                if place.kind != ObjectKind::S3 {
                    bail!("--to {uri}: of object stores, a log is drained to s3:// only so far");
                }
                return Ok(Self::Bucket(uri));
            }
            if client::Place::of(&uri.endpoint).is_none() || uri.endpoint == Endpoint::Direct {
                bail!(
                    "--to {uri}: a log is drained to a directory, to scdc+uds:// or scdc+tcp://, or to s3://"
                );
            }
            return Ok(Self::Service(uri));
        }
        let path = std::path::absolute(text).context("--to")?;
        if !path.is_dir() {
            bail!("--to {}: there is no such directory; make it first", path.display());
        }
        Ok(Self::Directory(path))
    }

    /// What a log's description says.
    pub(crate) fn of_log(text: &str) -> Result<Self> {
        match address::detect(text.as_bytes()) {
            Some(found) => {
                let uri = found.uri(text.as_bytes())?;
                let is_bucket = object::Place::of(&uri).is_some();
                Ok(if is_bucket { Self::Bucket(uri) } else { Self::Service(uri) })
            }
            None => Ok(Self::Directory(Path::new(text).to_path_buf())),
        }
    }

    /// As the log's description has it: by it the same place is known again.
    pub(crate) fn text(&self) -> Result<String> {
        match self {
            Self::Directory(path) => {
                let path = path.canonicalize().with_context(|| path.display().to_string())?;
                let text = path.to_str().map(str::to_owned);
                text.with_context(|| format!("{}: the name must be UTF-8", path.display()))
            }
            Self::Service(uri) | Self::Bucket(uri) => Ok(uri.to_string()),
        }
    }

    /// The place as a store.
    pub(crate) fn open(&self, settings: &Settings) -> Result<Arc<dyn Store>> {
        match self {
            Self::Directory(path) => {
                let store = FsStore::new(path);
                Ok(Arc::new(store.with_context(|| format!("cannot drain to {}", path.display()))?))
            }
            Self::Service(uri) => {
                let place = client::Place::of(&uri.endpoint);
                let place = place.with_context(|| format!("cannot drain to {uri}"))?;
                let options = Options::from(&settings.client);
                let session = Session::new(Box::new(SocketDial::new(place)), options);
                Ok(Arc::new(RelayStore::new(session, uri.path.as_bytes())))
            }
            Self::Bucket(uri) => {
                let place = object::Place::of(uri);
                let place = place.with_context(|| format!("cannot drain to {uri}"))?;
                let options = crate::stores::object_options();
                let store = ObjectStore::open(&place, uri.path.as_bytes(), options)?;
                let under = store.under_log();
                Ok(Arc::new(under.with_context(|| format!("cannot drain to {uri}"))?))
            }
        }
    }
}
