//! Stores that this process offers to others.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use address::{Endpoint, RemotePath, SocketName, StorePlace, StoreSpec, Uri};
use client::SocketDial;
use pyo3::prelude::*;
use service::{Address, FsOptions, Listen, Running, Store};

use crate::error::{Error, Result};
use crate::places::{Name, client_options};
use crate::waiting::released;

type Opened = std::result::Result<Arc<dyn Store>, Box<dyn std::error::Error + Send + Sync>>;

fn no_dataset(_: &Path) -> Opened {
    Err("datasets are served by `sluice serve NAME=FILE.drepl`, not from Python".into())
}

fn no_object(_: &Uri) -> Opened {
    Err("buckets are served by `sluice serve NAME=s3://…`, not from Python".into())
}

/// A service in this process: its threads are none of Python's, and answer whatever Python does.
#[pyclass(module = "sluice._sluice", frozen)]
pub(crate) struct Serving {
    running: Mutex<Option<Running>>,
    /// Who started it: in a fork's child the threads are not there, and the sockets are the parent's.
    #[pyo3(get, name = "pid")]
    process: u32,
    /// The addresses under which it is reached.
    #[pyo3(get)]
    uris: Vec<String>,
}

fn listen(text: &[u8]) -> Result<Listen> {
    let endpoint = Endpoint::parse_listen(text)?;
    match client::Place::of(&endpoint) {
        Some(client::Place::Unix(path)) => {
            Ok(Listen::Unix(std::path::absolute(&path).unwrap_or(path)))
        }
        Some(client::Place::Tcp { host, port }) => {
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            Ok(Listen::Tcp(format!("{host}:{port}")))
        }
        Some(client::Place::Job { .. }) | None => {
            Err(Error::Listen { endpoint: endpoint.to_string() })
        }
    }
}

fn uri(address: &Address) -> String {
    let endpoint = match address {
        Address::Unix(path) => Endpoint::Unix(SocketName::Path(path.clone())),
        Address::Tcp(address) => {
            Endpoint::Tcp { host: address.ip().to_string(), port: address.port() }
        }
    };
    let uri = Uri { endpoint, path: RemotePath::default() }.to_string();
    uri.trim_end_matches('/').to_owned()
}

#[pymethods]
impl Serving {
    /// Offers stores, each a name and a directory, `mem:` or the address of another service, on all addresses.
    #[new]
    fn new(
        py: Python<'_>,
        stores: Vec<(Name, Name)>,
        addresses: Vec<Name>,
        read_only: bool,
        insecure: bool,
    ) -> PyResult<Self> {
        let mut specs = Vec::new();
        for (name, place) in &stores {
            let mut text = name.0.clone();
            text.push(b'=');
            text.extend_from_slice(&place.0);
            let mut spec = StoreSpec::parse(&text, read_only).map_err(Error::from)?;
            // The working directory may change.
            if let StorePlace::Dir(directory) = &mut spec.place {
                *directory = std::path::absolute(&directory).unwrap_or_default();
            }
            specs.push(spec);
        }
        StoreSpec::check_distinct(&specs).map_err(Error::from)?;
        let options = client_options()?;
        let listens = addresses.iter().map(|text| listen(&text.0)).collect::<Result<Vec<_>>>()?;
        let running = released(py, || {
            let files = FsOptions::default();
            let dial = SocketDial::new;
            let stores = service::open_stores(
                &specs, read_only, files, &options, dial, no_dataset, no_object,
            )?;
            let builder = service::Service::builder(Arc::new(stores)).insecure(insecure);
            listens.into_iter().fold(builder, service::Builder::listen).start()
        })?;
        let running = running.map_err(Error::from)?;
        let uris = running.addresses().iter().map(uri).collect();
        Ok(Self { running: Mutex::new(Some(running)), process: std::process::id(), uris })
    }

    /// Ends it; what is being answered has some seconds. True when every connection has ended.
    fn stop(&self, py: Python<'_>) -> PyResult<bool> {
        match self.take() {
            Some(running) => released(py, || running.stop()),
            None => Ok(true),
        }
    }

    /// Whether it is not stopped.
    #[getter]
    fn running(&self) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.is_some() && self.process == std::process::id()
    }

    /// Connections so far, those turned away, those now, and requests so far.
    fn counters(&self) -> (u64, u64, u64, u64) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = running.as_ref().map(Running::counters).unwrap_or_default();
        (counters.accepted, counters.refused, counters.connections, counters.requests)
    }
}

impl Serving {
    fn take(&self) -> Option<Running> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        if self.process == std::process::id() {
            return Some(running);
        }
        // Ending it would end the parent's connections, and remove its socket.
        std::mem::forget(running);
        None
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.take());
    }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Serving>()
}
