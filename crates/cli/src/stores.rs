//! The stores of this process.

use std::sync::Arc;

use address::{Settings, StoreSpec};
use anyhow::{Result, bail};
use client::{Options, Session, SocketDial};
use store::Exports;

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
    Ok(service::open_stores(specs, read_only, files, &options, SocketDial::new)?)
}
