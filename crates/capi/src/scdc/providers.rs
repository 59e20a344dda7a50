//! Data providers: `scdc_dataprov_open` and `scdc_dataprov_close`.

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::sync::Arc;

use commands::{Dataset, HookStore};
use store::Store;
use store::fs::FsStore;
use store::mem::MemStore;

use super::hooks::{Hooks, Shown};
use super::library::{library, lock};
use super::relays::Relays;
use super::report::report;
use super::uri;
use super::variadic::{Arguments, text};
use crate::handles::Table;

/// An open provider.
struct Provider {
    name: String,
    hooks: Option<Arc<Hooks>>,
}

static PROVIDERS: Table<Provider> = Table::new("data provider");

/// `scdc_dataprov_open`.
///
/// # Safety
/// As [`super::variadic`] says.
pub(crate) unsafe extern "C" fn open(
    base_path: *const c_char,
    conf: *const c_char,
    arguments: *mut Arguments,
) -> *mut c_void {
    report(std::ptr::null_mut(), || {
        let library = library()?;
        // SAFETY: the caller's promise.
        let (name, conf) = unsafe { (text(base_path, "base_path")?, text(conf, "conf")?) };
        let name = name.trim_matches('/').to_owned();
        if !uri::is_name(&name) {
            return Err(format!("`{name}` cannot be the base path of a provider").into());
        }
        if library.exports.names().iter().any(|known| *known == name.as_bytes()) {
            return Err(format!("there is a provider '{name}' already").into());
        }
        let (kind, rest) = conf.split_once(':').unwrap_or((&conf, ""));
        let mut hooks = None;
        let store: Arc<dyn Store> = match (kind, rest) {
            ("hook", conf) => {
                // SAFETY: the table of hooks, as this configuration says; what follows is for its `open`.
                let opened = unsafe {
                    let table = (*arguments).pointer();
                    Hooks::open(table.cast(), conf, arguments)?
                };
                hooks = Some(Arc::clone(&opened));
                Arc::new(HookStore::new(Arc::new(Shown(opened))))
            }
            ("relay", "") => Relays::new()?.1,
            ("access", "mem") => Arc::new(MemStore::new()),
            ("store", "mem") => Arc::new(Dataset::shelf(Arc::new(MemStore::new()))),
            // SAFETY: a directory, as these configurations say.
            ("access", "fs") | ("fs", "" | "access") => unsafe { directory(arguments) }?,
            // SAFETY: as above.
            ("store", "fs") | ("fs", "store") => {
                // SAFETY: as above.
                let files = unsafe { directory(arguments) }?;
                Arc::new(Dataset::shelf(files))
            }
            _ => {
                let known = "access:fs, access:mem, store:fs, store:mem, hook and relay are known";
                return Err(format!("a provider `{conf}` is not supported: {known}").into());
            }
        };
        let added = library.exports.add(name.as_bytes(), store);
        added.map_err(|error| error.to_string())?;
        if let Some(hooks) = &hooks {
            lock(&library.hooks).insert(name.clone(), Arc::clone(hooks));
        }
        Ok((PROVIDERS.add(Provider { name, hooks }), Vec::new()))
    })
}

/// # Safety
/// There is one more parameter, a C string.
unsafe fn directory(arguments: *mut Arguments) -> Result<Arc<dyn Store>, String> {
    // SAFETY: the caller's promise.
    let path = unsafe { (*arguments).text("the root directory") }?;
    if !Path::new(&path).is_dir() {
        return Err(format!("root directory '{path}' does not exist or is not a directory"));
    }
    match FsStore::new(Path::new(&path)) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(format!("root directory '{path}': {error}")),
    }
}

fn close(provider: &Provider) -> Result<(), String> {
    if let Ok(library) = library() {
        library.exports.remove(provider.name.as_bytes());
        lock(&library.hooks).remove(&provider.name);
    }
    provider.hooks.as_ref().map_or(Ok(()), |hooks| hooks.close())
}

/// `scdc_dataprov_close`.
#[unsafe(no_mangle)]
pub extern "C" fn scdc_dataprov_close(dataprov: *mut c_void) {
    report((), || {
        let provider = PROVIDERS.take(dataprov).map_err(|error| error.to_string())?;
        close(&provider)?;
        Ok(((), Vec::new()))
    });
}

/// Closes what is left.
pub(crate) fn end_all() {
    for provider in PROVIDERS.take_all() {
        // Nobody is left to be told.
        let _ = close(&provider);
    }
}
