//! What is in force in a program that no command line says anything to.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use address::config::Config;
use address::{Route, Routes, Settings};

use crate::error::{Error, Result};
use crate::working_directory;

/// The settings of an enclosing `sluice run`, over those of the configuration file, over the defaults.
pub(crate) fn settings() -> Result<Settings> {
    let outer = match std::env::var_os(Settings::VARIABLE) {
        Some(value) => Some(Settings::from_env(value.as_bytes())?),
        None => None,
    };
    let config = config()?;
    let client = match &outer {
        Some(outer) => outer.client,
        None => config.client.options(),
    };
    let outer = outer.unwrap_or_default();
    let mut routes: Vec<Route> = Vec::new();
    for route in outer.routes.iter().chain(config.routes.iter()) {
        if routes.iter().all(|stronger| stronger.prefix() != route.prefix()) {
            routes.push(route.clone());
        }
    }
    Ok(Settings { routes: Routes::new(routes)?, client, ..outer })
}

fn config() -> Result<Config> {
    let cwd = working_directory();
    let named = std::env::var_os("SLUICE_CONFIG").filter(|value| !value.is_empty());
    let path = match named {
        Some(path) => Some(cwd.join(path)),
        None => {
            let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            let home = std::env::var_os("HOME").map(PathBuf::from);
            let places = Config::search_order(&cwd, xdg.as_deref(), home.as_deref());
            // A file that is there but cannot be read is in force and must be complained about.
            places.into_iter().find(|path| path.symlink_metadata().is_ok())
        }
    };
    let Some(path) = path else { return Ok(Config::default()) };
    let text = std::fs::read_to_string(&path)
        .map_err(|source| Error::Unreadable { path: path.display().to_string(), source })?;
    Ok(Config::parse(&text, &path)?)
}
