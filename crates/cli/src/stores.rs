//! The stores of this process.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use address::{Settings, StoreSpec};
use anyhow::{Result, bail};
use client::{Options, Session, SocketDial};
use dataset::{Dataset, DatasetStore};
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
    Ok(service::open_stores(specs, read_only, files, &options, SocketDial::new, open_dataset)?)
}

/// Opens a dataset, and says what becomes of its replicas while it is served.
fn open_dataset(
    path: &Path,
) -> std::result::Result<Arc<dyn Store>, Box<dyn std::error::Error + Send + Sync>> {
    let name = path.display().to_string();
    let tell: dataset::Tell = Arc::new(move |notice| {
        crate::report::say(format_args!("sluice: {name}: {notice}"));
    });
    let options = dataset::Options {
        tell: Some(tell),
        // The process is our own.
        mapped_read_min_bytes: Some(dataset::MAPPED_READ_BYTES),
        ..dataset::Options::default()
    };
    let dataset = Arc::new(Dataset::open(path, &options)?);
    let open = (path.display().to_string(), Arc::downgrade(&dataset));
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(open);
    Ok(Arc::new(DatasetStore::new(dataset)))
}

/// The datasets that are open, by their definitions.
static OPEN: Mutex<Vec<(String, Weak<Dataset>)>> = Mutex::new(Vec::new());

/// Brings the replicas of all open datasets up to date. To be called before the process ends: a thread
/// of a service may hold a store longer than that. True when all went well.
pub(crate) fn close_datasets() -> bool {
    let mut all_well = true;
    for (name, dataset) in OPEN.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let Some(dataset) = dataset.upgrade() else { continue };
        if let Err(error) = dataset.close() {
            let error = anyhow::Error::new(error);
            crate::report::say(format_args!(
                "sluice: {name}: not all replicas could be closed: {error:#}"
            ));
            all_well = false;
        }
    }
    all_well
}
