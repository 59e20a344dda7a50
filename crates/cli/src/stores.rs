//! Opening stores by what the command line calls them.

use std::sync::Arc;

use address::{Settings, StorePlace, StoreSpec};
use anyhow::{Context, Result, bail};
use client::{Options, Session, SocketDial};
use store::fs::FsStore;
use store::mem::MemStore;
use store::relay::RelayStore;
use store::{Exports, ReadOnly, Store};

use crate::format::name_text;
use crate::place::{options, socket_place};

/// The stores of this process, as `scdc:///` shows them.
pub(crate) fn direct(settings: &Settings, options: Options) -> Result<Arc<Session>> {
    if settings.stores.is_empty() {
        bail!(
            "scdc:/// has no store in this process; give one with --store NAME=DIR or in [stores] of sluice.toml"
        );
    }
    let exports = exports(&settings.stores, false, settings)?;
    let service = service::Direct::new(Arc::new(exports));
    Ok(Session::new(
        Box::new(client::direct(Arc::new(InProcess(service)))),
        options,
    ))
}

/// All stores under one root.
pub(crate) fn exports(
    specs: &[StoreSpec],
    read_only: bool,
    settings: &Settings,
) -> Result<Exports> {
    let mut members = Vec::new();
    for spec in specs {
        let store = open(spec, settings)?;
        let store: Arc<dyn Store> = match spec.read_only || read_only {
            true => Arc::new(ReadOnly::new(store)),
            false => store,
        };
        members.push((spec.name.clone(), store));
    }
    Ok(Exports::new(members)?)
}

fn open(spec: &StoreSpec, settings: &Settings) -> Result<Arc<dyn Store>> {
    match &spec.place {
        StorePlace::Dir(dir) => {
            let store = FsStore::new(dir);
            let context = || {
                format!(
                    "store `{}`: cannot offer the directory {}",
                    name_text(&spec.name),
                    dir.display()
                )
            };
            Ok(Arc::new(store.with_context(context)?))
        }
        StorePlace::Mem => Ok(Arc::new(MemStore::new())),
        StorePlace::Relay(uri) => {
            let Some(place) = socket_place(&uri.endpoint) else {
                bail!(
                    "store `{}`: cannot relay to {uri}; a relay leads to a scdc+uds:// or scdc+tcp:// address",
                    name_text(&spec.name)
                )
            };
            let dial = Box::new(SocketDial::new(place));
            let session = Session::new(dial, options(&settings.client));
            Ok(Arc::new(RelayStore::new(session, uri.path.as_bytes())))
        }
    }
}

/// The service as the client's transport.
struct InProcess(service::Direct);

impl client::Exchange for InProcess {
    fn exchange(&self, request: &[u8], reply: &mut Vec<u8>) {
        self.0.exchange(request, reply);
    }
}
