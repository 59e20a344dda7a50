//! The stores of this process.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use address::{Endpoint, RemotePath, Settings, StorePlace, StoreSpec, Uri};
use anyhow::{Context, Result, bail};
use client::{Options, Session, SocketDial};
use dataset::{Dataset, DatasetStore, Notice};
use store::{Exports, Store};

/// The stores of this process, as `scdc:///` shows them.
pub(crate) fn direct(settings: &Settings, options: Options) -> Result<Arc<Session>> {
    if settings.stores.is_empty() {
        bail!(
            "scdc:/// has no store in this process; give one with --store NAME=DIR or in [stores] of sluice.toml"
        );
    }
    let service = service::Direct::new(Arc::new(exports(&settings.stores, false, settings)?));
    Ok(Session::new(Box::new(client::direct(Arc::new(service))), options))
}

/// All stores under one root.
pub(crate) fn exports(
    specs: &[StoreSpec],
    read_only: bool,
    settings: &Settings,
) -> Result<Exports> {
    let options = Options::from(&settings.client);
    let files = service::FsOptions::default();
    Ok(service::open_stores(
        specs,
        read_only,
        files,
        &options,
        SocketDial::new,
        open_dataset,
        open_object,
    )?)
}

/// A bucket, or a web server, as a service that is called directly.
pub(crate) fn bucket(endpoint: &Endpoint, options: Options) -> Result<Arc<Session>> {
    let uri = Uri { endpoint: endpoint.clone(), path: RemotePath::default() };
    let place = object::Place::of(&uri).context("this is no bucket's address")?;
    let store = object::ObjectStore::open(&place, b"", object_options())?;
    let service = service::Direct::new(Arc::new(store));
    Ok(Session::new(Box::new(client::direct(Arc::new(service))), options))
}

/// Opens what is below an address in a bucket.
fn open_object(
    uri: &Uri,
) -> std::result::Result<Arc<dyn Store>, Box<dyn std::error::Error + Send + Sync>> {
    let place = object::Place::of(uri).ok_or("this is no bucket's address")?;
    let store = object::ObjectStore::open(&place, uri.path.as_bytes(), object_options())?;
    Ok(Arc::new(store))
}

/// How this process uses object stores: what is wrong with them is said, as programs get a number only.
pub(crate) fn object_options() -> object::Options {
    let tell: object::Tell =
        Arc::new(|text: &str| crate::report::say(format_args!("sluice: {text}")));
    object::Options { tell: Some(tell), ..object::Options::default() }
}

/// Opens a dataset, and says what becomes of its replicas while it is served.
fn open_dataset(
    path: &Path,
) -> std::result::Result<Arc<dyn Store>, Box<dyn std::error::Error + Send + Sync>> {
    let name = path.display().to_string();
    let tell: dataset::Tell = Arc::new(move |notice| {
        let is_good = matches!(notice, Notice::Made { .. } | Notice::Recovered { .. });
        if is_good && ONLY_TROUBLE.load(Ordering::Relaxed) {
            return;
        }
        crate::report::say(format_args!("sluice: {name}: {notice}"));
    });
    let options = dataset::Options {
        tell: Some(tell),
        // The process is our own.
        mapped_read_min_bytes: Some(dataset::MAPPED_READ_BYTES),
        ..dataset::Options::default()
    };
    let dataset = Arc::new(Dataset::open(path, &options)?);
    let open = (path.to_path_buf(), Arc::downgrade(&dataset));
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(open);
    Ok(Arc::new(DatasetStore::new(dataset)))
}

/// Whether that all is well with a dataset is left unsaid.
static ONLY_TROUBLE: AtomicBool = AtomicBool::new(false);

/// From here on, only what is wrong with datasets is said: what a program writes to standard error is
/// its own.
pub(crate) fn say_only_trouble() {
    ONLY_TROUBLE.store(true, Ordering::Relaxed);
}

/// The datasets that are open, by their definitions.
static OPEN: Mutex<Vec<(PathBuf, Weak<Dataset>)>> = Mutex::new(Vec::new());

/// Tells other processes of this machine where the datasets among these stores are served.
pub(crate) fn announce(specs: &[StoreSpec], service: &Uri, is_private: bool) {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    for spec in specs {
        let StorePlace::Dataset(path) = &spec.place else { continue };
        let found = open.iter().find(|(known, _)| known == path);
        let Some(dataset) = found.and_then(|(_, dataset)| dataset.upgrade()) else { continue };
        let uri = service.join(&spec.name).to_string();
        if let Err(error) = dataset.announce(&dataset::Service { uri, is_private }) {
            // It is served all the same.
            crate::report::say(format_args!("sluice: {}: {}", path.display(), error.in_full()));
        }
    }
}

/// Brings the replicas of all open datasets up to date. To be called before the process ends: a thread
/// of a service may hold a store longer than that. True when all went well.
pub(crate) fn close_datasets() -> bool {
    let mut all_well = true;
    for (name, dataset) in OPEN.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let Some(dataset) = dataset.upgrade() else { continue };
        if let Err(error) = dataset.close() {
            let error = anyhow::Error::new(error);
            crate::report::say(format_args!(
                "sluice: {}: not all replicas could be closed: {error:#}",
                name.display()
            ));
            all_well = false;
        }
    }
    all_well
}
