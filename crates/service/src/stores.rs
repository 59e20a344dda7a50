//! Opening stores by their descriptions: what `sluice serve` offers, and what `scdc:///` shows.

use std::path::Path;
use std::sync::Arc;

use address::{Endpoint, StorePlace, StoreSpec, Uri};
use client::{Dial, Options, Session, SocketDial};
use store::fs::{FsOptions, FsStore};
use store::mem::MemStore;
use store::relay::RelayStore;
use store::{Exports, ReadOnly, Store};

use crate::error::{Error, Result};

/// What opens a dataset by its definition: the service does not know what a store is made of.
pub type OpenDataset =
    fn(&Path) -> std::result::Result<Arc<dyn Store>, Box<dyn std::error::Error + Send + Sync>>;

/// What opens a bucket of an object store, or what is below a prefix of one.
pub type OpenObject =
    fn(&Uri) -> std::result::Result<Arc<dyn Store>, Box<dyn std::error::Error + Send + Sync>>;

/// All stores under one root, read-only where their description or `read_only` says so. Directories
/// are opened with `files`; relays talk to their service with `options`, through what `dial` makes of
/// a place; datasets are opened by `dataset`, buckets by `object`.
///
/// # Errors
/// When a store cannot be opened, or a relay leads to what is not a plain socket.
pub fn open_stores(
    specs: &[StoreSpec],
    read_only: bool,
    files: FsOptions,
    options: &Options,
    dial: fn(client::Place) -> SocketDial,
    dataset: OpenDataset,
    object: OpenObject,
) -> Result<Exports> {
    let mut members = Vec::new();
    for spec in specs {
        let store = open(spec, files, options, dial, dataset, object)?;
        let store: Arc<dyn Store> =
            if spec.read_only || read_only { Arc::new(ReadOnly::new(store)) } else { store };
        members.push((spec.name.clone(), store));
    }
    Exports::new(members).map_err(|source| Error::Store { name: "/".to_owned(), source })
}

fn open(
    spec: &StoreSpec,
    files: FsOptions,
    options: &Options,
    dial: fn(client::Place) -> SocketDial,
    dataset: OpenDataset,
    object: OpenObject,
) -> Result<Arc<dyn Store>> {
    let name = || String::from_utf8_lossy(&spec.name).into_owned();
    match &spec.place {
        StorePlace::Dir(path) => match FsStore::with_options(path, files) {
            Ok(store) => Ok(Arc::new(store)),
            Err(source) => Err(Error::Directory { name: name(), path: path.clone(), source }),
        },
        StorePlace::Dataset(path) => dataset(path).map_err(|source| Error::Dataset {
            name: name(),
            path: path.clone(),
            source,
        }),
        StorePlace::Mem => Ok(Arc::new(MemStore::new())),
        StorePlace::Relay(uri) if matches!(uri.endpoint, Endpoint::Object { .. }) => object(uri)
            .map_err(|source| Error::Object { name: name(), uri: uri.to_string(), source }),
        StorePlace::Relay(uri) => {
            let Some(place) = client::Place::of(&uri.endpoint) else {
                return Err(Error::Relay { name: name(), uri: uri.to_string() });
            };
            let dial: Box<dyn Dial> = Box::new(dial(place));
            let session = Session::new(dial, options.clone());
            Ok(Arc::new(RelayStore::new(session, uri.path.as_bytes())))
        }
    }
}
