//! The stores of this process.

use std::path::Path;
use std::sync::Arc;

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
    let options = dataset::Options { tell: Some(tell), ..dataset::Options::default() };
    let dataset = Dataset::open(path, &options)?;
    Ok(Arc::new(DatasetStore::new(Arc::new(dataset))))
}
